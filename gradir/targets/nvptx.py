"""LLVM IR text of kernels to PTX, and PTX through `ptxas`.

Code generation runs in a worker process (see `gradir.targets.worker`). `ptxas` is found in the wheel nvidia-cuda-nvcc-cu12 or on the PATH.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from gradir.dialects.target import CudaTargetAttr, target_of
from gradir.dialects.upstream import gpu
from gradir.errors import GradirError
from gradir.targets.llvm.device import emit_device_module

SECONDS = 300


def device_text(module: ModuleOp) -> str:
    """LLVM IR text of the kernels of a level-4 module for CUDA. `GradirError` OP044 when it has none."""
    found = [op for op in module.body.block.ops if isinstance(op, gpu.ModuleOp)]
    if not found:
        raise GradirError(
            "the module has no kernels for a GPU",
            part="operator",
            code="OP044",
            expected="a gpu.module",
            found=f"target {target_of(module)}",
            hint="set the target to cuda before lowering (`--target=cuda`)",
        )
    return "\n".join(emit_device_module(op, cuda_target(module)) for op in found)


def cuda_target(module: ModuleOp) -> CudaTargetAttr:
    """The module's GPU; sm_80 where it names none."""
    target = target_of(module)
    return target if isinstance(target, CudaTargetAttr) else CudaTargetAttr.of("sm_80")


def compile_ptx(text: str, target: CudaTargetAttr) -> str:
    """PTX of LLVM IR text. Raises `GradirError` OP044 when LLVM rejects the text or ends."""
    request = json.dumps({"text": text, "arch": target.arch})
    command = [sys.executable, "-m", "gradir.targets.worker"]
    done = subprocess.run(command, input=request, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise failed(text, ".ll", f"the PTX worker ended with {done.returncode}", done.stderr)
    return done.stdout


def failed(text: str, suffix: str, message: str, detail: str) -> GradirError:
    """The error of a failed step; leaves its input in a file."""
    with tempfile.NamedTemporaryFile("w", prefix="gradir-", suffix=suffix, delete=False) as file:
        file.write(text)
    lines = [line for line in detail.strip().splitlines() if line.strip()]
    return GradirError(
        f"{message}: {lines[0] if lines else 'no message'}",
        part="operator",
        code="OP044",
        expected="PTX that assembles",
        found="\n".join(lines[:6])[:600],
        hint=f"this is a bug of the emitter; the text is in {file.name}",
    )


def to_ptx(module: ModuleOp) -> str:
    """PTX of all kernels of a level-4 module for CUDA."""
    return compile_ptx(device_text(module), cuda_target(module))


@dataclass(frozen=True)
class KernelReport:
    """What `ptxas -v` says of one kernel: registers, bytes of shared memory, of stack, of spill stores and loads."""

    name: str
    registers: int
    shared: int
    stack: int
    spills: int


def find_ptxas() -> str | None:
    """The path of `ptxas`: from the wheel nvidia-cuda-nvcc-cu12, else from the PATH; None when there is none."""
    try:
        found = importlib.util.find_spec("nvidia.cuda_nvcc")
    except ModuleNotFoundError:
        found = None
    for place in (found.submodule_search_locations or []) if found is not None else []:
        path = Path(place) / "bin" / "ptxas"
        if path.exists():
            return str(path)
    return shutil.which("ptxas")


def assemble(ptx: str, arch: str) -> tuple[bytes, list[KernelReport]]:
    """The cubin of PTX and what `ptxas` reports per kernel. Raises `GradirError` OP044."""
    ptxas = find_ptxas()
    if ptxas is None:
        raise GradirError(
            "ptxas was not found",
            part="operator",
            code="OP044",
            expected="the wheel nvidia-cuda-nvcc-cu12, or ptxas on the PATH",
            found="neither",
            hint="pip install gradir[ptx]",
        )
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "kernels.ptx", Path(folder) / "kernels.cubin"
        source.write_text(ptx)
        command = [ptxas, "-v", f"-arch={arch}", str(source), "-o", str(target)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        if done.returncode:
            raise failed(ptx, ".ptx", f"ptxas -arch={arch} ended with {done.returncode}", done.stderr)
        return target.read_bytes(), _reports(done.stderr)


DISASSEMBLERS = (("cuobjdump", "-sass"), ("nvdisasm",))
"""Commands that print the machine code of a cubin, the first that is there is used."""


def disassemble(cubin: bytes) -> str:
    """The machine code of a cubin as text. GradirError OP044 where no command of the CUDA toolkit for that is on the PATH."""
    command = next(([path, *options] for name, *options in DISASSEMBLERS if (path := shutil.which(name)) is not None), None)
    if command is None:
        raise GradirError(
            "nothing here prints machine code of a GPU",
            part="operator",
            code="OP044",
            expected="cuobjdump or nvdisasm on the PATH",
            found="neither",
            hint="install the CUDA toolkit, or write the cubin (`--to=cubin`) and take it where there is one",
        )
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run([*command, file.name], capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise failed("", ".cubin", f"{command[0]} ended with {done.returncode}", done.stderr)
    return done.stdout


_NAME = re.compile(r"Compiling entry function '([^']+)'")


def _reports(text: str) -> list[KernelReport]:
    parts = _NAME.split(text)
    return [_report(name, body) for name, body in zip(parts[1::2], parts[2::2])]


def _report(name: str, body: str) -> KernelReport:
    def number(pattern: str) -> int:
        return sum(int(n) for n in re.findall(pattern, body))

    return KernelReport(
        name,
        number(r"Used (\d+) registers"),
        number(r"(\d+) bytes smem"),
        number(r"(\d+) bytes stack frame"),
        number(r"(\d+) bytes spill (?:stores|loads)"),
    )
