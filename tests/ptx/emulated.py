"""Running members of the families of `tests/targets/gpu_programs.py`: as PTX in the emulator, and through `ptxas`."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

import gradir as gd
from gradir.dialects.target import CudaTargetAttr
from gradir.dialects.upstream import gpu
from gradir.driver.emulate import PtxLauncher, evaluate_as_ptx
from gradir.driver.evaluate import evaluate_level1
from gradir.driver.lower import lower
from gradir.ir.structure import public_functions
from gradir.targets.nvptx import KernelReport, assemble, compile_ptx, device_text
from tests.targets.gpu_programs import GpuProgram

RECORDED = Path(__file__).parents[1] / "targets" / "gpu_registers.json"
ARCHITECTURES = ("sm_80", "sm_90", "sm_90a", "sm_100a")


def traced(program: GpuProgram) -> tuple[ModuleOp, str, list[np.ndarray[Any, Any]]]:
    """The level-1 module, its entry and the arguments."""
    inputs = program.inputs()
    module = gd.jit(program.family.function).lower(*inputs)
    (entry,) = public_functions(module)
    return module, entry.sym_name.data, inputs


def check_emulated(program: GpuProgram, seeds: Sequence[int | None]) -> None:
    """The results of the PTX are those of the reference, and the emulator reports nothing (a report is an exception)."""
    module, name, inputs = traced(program)
    expected = evaluate_level1(module.clone(), name, inputs)
    kernels = lower(module, target="cuda")
    launcher = PtxLauncher(kernels)
    for seed in seeds:
        launcher.seed = seed
        found = evaluate_as_ptx(kernels, name, inputs, launcher)
        for position, (wanted, result) in enumerate(zip(expected, found, strict=True)):
            compare(np.asarray(wanted), np.asarray(result), program.tolerance, f"{program.name}, result {position}, seed {seed}")


def compare(wanted: np.ndarray[Any, Any], found: np.ndarray[Any, Any], tolerance: float, message: str) -> None:
    """Equal where whole, else within the tolerance."""
    if wanted.dtype.itemsize == 1 and wanted.dtype.kind not in "iub":
        found = found.view(wanted.dtype)  # 8-bit floats travel as the integers of their bits
    if wanted.dtype.kind in "iub":
        np.testing.assert_array_equal(found, wanted, message)
    else:
        np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), tolerance, tolerance, err_msg=message)


def kernel_text(program: GpuProgram, number: int, arch: str) -> tuple[str, list[str]]:
    """LLVM IR of the program's kernels under names that no other program has, and these names."""
    module = lower(traced(program)[0], target=f"cuda:{arch}")
    if not any(isinstance(op, gpu.ModuleOp) for op in module.body.block.ops):
        return "", []
    text = re.sub(r'@("?)(?!llvm\.)(?=[\w$])', rf"@\1p{number}_", device_text(module))
    text = text.replace('target triple = "nvptx64-nvidia-cuda"', "")
    return text, re.findall(r'define ptx_kernel void @"?([\w.$]+)"?\(', text)


@cache
def assembled(programs: tuple[GpuProgram, ...], arch: str) -> dict[str, dict[str, KernelReport]]:
    """Program -> kernel -> what `ptxas` says of it; one call for all programs."""
    texts = [kernel_text(program, number, arch) for number, program in enumerate(programs)]
    joined = 'target triple = "nvptx64-nvidia-cuda"\n' + "\n".join(text for text, _ in texts)
    ptx = compile_ptx(joined, CudaTargetAttr.of(arch))
    reports = {report.name: report for report in assemble(ptx, arch)[1]}
    return {
        program.name: {name.partition("_")[2]: reports[name] for name in names} for program, (_, names) in zip(programs, texts, strict=True)
    }


def recorded() -> dict[str, dict[str, dict[str, list[int]]]]:
    """Architecture -> program -> kernel -> [registers, bytes of shared memory]."""
    return json.loads(RECORDED.read_text())
