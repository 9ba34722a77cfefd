"""`python -m bench.exports hlo|onnx NAME...`: workloads as files for the systems that have no frontend of their own.

StableHLO is written by JAX (for IREE), ONNX by PyTorch (for ONNX Runtime), each in its own environment, under build/bench/exports; the
folder's name is a hash of what they are made of, so a changed workload is exported again.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import traceback
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bench.systems import BUILD, PEERS
from bench.workloads import WORKLOADS, Workload

ROOT = Path(__file__).resolve().parent.parent
MAKERS = {"mlirbc": "jax", "onnx": "torch"}
"""Kind of file -> environment that writes it."""
READERS = {"iree": "mlirbc", "ort": "onnx"}


@cache
def exports_folder() -> Path:
    here = Path(__file__).parent
    sources = [*sorted((here / "workloads").glob("*.py")), *(here / "systems" / f"{n}_system.py" for n in ("numpy", "jax", "torch"))]
    sources += [here / "systems" / "ops.py", Path(__file__)]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]
    return BUILD / "bench" / "exports" / digest


def export_path(name: str, kind: str) -> Path:
    return exports_folder() / kind / f"{name}.{kind}"


def export(system: str, names: Sequence[str]) -> None:
    """Write what `system` reads and what is not there yet; what cannot be exported stays away, with the reason beside it."""
    kind = READERS[system]
    python = PEERS / MAKERS[kind] / "bin" / "python"
    missing = [n for n in names if not export_path(n, kind).exists() and not export_path(n, kind).with_suffix(".txt").exists()]
    if missing and python.exists():
        command = [str(python), "-m", "bench.exports", kind, *missing]
        subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def stablehlo(w: Workload) -> bytes:
    import jax

    from bench.systems.jax_system import JaxSystem

    shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in w.inputs()]
    return jax.export.export(jax.jit(JaxSystem(1).function(w)), platforms=["cpu"])(*shapes).mlir_module_serialized


def onnx(w: Workload, path: Path) -> None:
    import torch
    from torch import nn

    from bench.systems.torch_system import CompiledOps, tensor

    if w.training:
        return
    if w.name == "gemm_i8_1024":
        integer_product(w, path)
        return
    ops = CompiledOps()
    inputs = [tensor(x, np.float32) for x in w.inputs()]

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for k, value in enumerate(inputs[: w.params]):
                self.register_buffer(f"p{k}", value)

        def forward(self, *x: Any) -> Any:
            return w.fn(ops, *(getattr(self, f"p{k}") for k in range(w.params)), *x)

    arguments = tuple(inputs[w.params :])
    torch.onnx.export(Model().eval(), arguments, str(path), dynamo=True, external_data=False, verbose=False)


def integer_product(w: Workload, path: Path) -> None:
    """One MatMulInteger: PyTorch has no export for its own int8 product."""
    from onnx import TensorProto, helper, save

    a, b = w.inputs()
    shapes = [helper.make_tensor_value_info(n, TensorProto.INT8, x.shape) for n, x in (("a", a), ("b", b))]
    result = helper.make_tensor_value_info("c", TensorProto.INT32, (a.shape[0], b.shape[1]))
    graph = helper.make_graph([helper.make_node("MatMulInteger", ["a", "b"], ["c"])], "product", shapes, [result])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), str(path))


def main(kind: str, names: Sequence[str]) -> None:
    for name in names:
        path = export_path(name, kind)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            if kind == "onnx":
                onnx(WORKLOADS[name], path)
            else:
                path.write_bytes(stablehlo(WORKLOADS[name]))
        except Exception:  # a cell of the table, not the end of the run
            path.with_suffix(".txt").write_text(traceback.format_exc(), encoding="utf-8")
        print(name, path.exists(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
