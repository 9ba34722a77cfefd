"""Runs entries at level 3 or 4 through upstream MLIR: none of our code below the given level takes part.

`mlir-opt-22 --test-lower-to-llvm`, `mlir-translate-22 --mlir-to-llvmir`, then llvmlite compiles the LLVM IR and the entry is called through
MLIR's C interface (a pointer to a descriptor per memref). Strided `memref.copy` needs `libmlir_c_runner_utils`, which comes with mlir-opt.

    from tests.upstream_runner import needs_upstream, run_upstream
    (y,) = run_upstream(module, "layer", [x, w, b])
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr, MemRefType, ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp

from gradir.dialects.types import numpy_dtype
from gradir.ir.text import print_module

MLIR_OPT, MLIR_TRANSLATE = shutil.which("mlir-opt-22"), shutil.which("mlir-translate-22")
needs_upstream = pytest.mark.skipif(
    MLIR_OPT is None or MLIR_TRANSLATE is None, reason="mlir-opt-22 and mlir-translate-22 are not installed"
)
"""Marks tests that call upstream's tools."""

_ALIGNMENT = 64
_SCALARS = {"float32": ctypes.c_float, "float64": ctypes.c_double, "bool": ctypes.c_bool}


def accepted_by_upstream(text: str) -> str:
    """`text` as upstream prints it after verifying it; fails the test with upstream's message otherwise."""
    assert MLIR_OPT is not None
    return _pipe([MLIR_OPT, "--allow-unregistered-dialect", "--verify-each"], text)


def upstream_llvm_ir(module: ModuleOp, entry: str) -> str:
    """LLVM IR that upstream makes of `module`, with a C interface for `@entry`."""
    assert MLIR_OPT is not None and MLIR_TRANSLATE is not None
    module = module.clone()
    for op in module.walk():
        for name in [n for n in op.attributes if n.startswith("gradir.")]:
            del op.attributes[name]
        if isinstance(op, FuncOp):
            op.properties.pop("arg_attrs", None)
            if op.sym_name.data == entry:
                op.attributes["llvm.emit_c_interface"] = UnitAttr()
    lowered = _pipe([MLIR_OPT, "--verify-each", "--test-lower-to-llvm"], print_module(module))
    return _pipe([MLIR_TRANSLATE, "--mlir-to-llvmir"], lowered)


class UpstreamFunction:
    """An entry in memory; calling it returns its outputs."""

    def __init__(self, module: ModuleOp, entry: str) -> None:
        function = next(f for f in module.body.block.ops if isinstance(f, FuncOp) and f.sym_name.data == entry)
        self.types = list(function.function_type.inputs.data)
        self.inputs = _number(function, "gradir.inputs")
        self.results = _number(function, "gradir.results")
        _load_runner_library()
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine(opt=1)
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(upstream_llvm_ir(module, entry)), machine)
        self._engine.finalize_object()
        self._address = self._engine.get_function_address(f"_mlir_ciface_{entry}")

    def __call__(self, inputs: Sequence[Any], result_shapes: Sequence[Sequence[int]] | None = None) -> list[np.ndarray]:
        """Outputs and arena are filled with NaN (all bits set) before the call."""
        assert len(inputs) == self.inputs, f"{self.inputs} inputs expected, {len(inputs)} given"
        buffers: list[Any] = list(inputs)
        for number, type_ in enumerate(self.types[self.inputs :]):
            assert isinstance(type_, MemRefType)
            shape = list(type_.get_shape())
            if DYNAMIC_INDEX in shape:
                assert result_shapes is not None, "result_shapes gives the sizes of outputs that only the caller knows"
                shape = list(result_shapes[number])
            buffers.append(_poisoned(shape, numpy_dtype(type_.element_type)))
        kept = [_argument(value, type_) for value, type_ in zip(buffers, self.types, strict=True)]
        ctypes.CFUNCTYPE(None, *[type(v) for v, _ in kept])(self._address)(*[v for v, _ in kept])
        return buffers[self.inputs : self.inputs + self.results]


def run_upstream(
    module: ModuleOp, entry: str, inputs: Sequence[Any], result_shapes: Sequence[Sequence[int]] | None = None
) -> list[np.ndarray]:
    """The results of `@entry` (level 3 or 4, outputs named by `gradir.inputs` and `gradir.results`) on numpy arrays."""
    return UpstreamFunction(module, entry)(inputs, result_shapes)


def _pipe(command: list[str], text: str) -> str:
    run = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, f"{' '.join(command)}:\n{run.stderr[:4000]}"
    return run.stdout


def _number(function: FuncOp, name: str) -> int:
    value = function.attributes[name]
    assert isinstance(value, IntegerAttr)
    return value.value.data


def _load_runner_library() -> None:
    assert MLIR_OPT is not None
    folder = Path(MLIR_OPT).resolve().parent.parent / "lib"
    for path in sorted(folder.glob("libmlir_c_runner_utils.so*")):
        llvm.load_library_permanently(str(path))
        return


def _poisoned(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """An aligned array whose bits are all set."""
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    memory = np.full(size + _ALIGNMENT, 0xFF, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)


def _argument(value: Any, type_: Any) -> tuple[Any, Any]:
    """(what the C interface takes, what must stay alive)."""
    if not isinstance(type_, MemRefType):
        dtype = numpy_dtype(type_)
        return _SCALARS.get(dtype.name, getattr(ctypes, f"c_{dtype.name}", ctypes.c_int64))(np.asarray(value).item()), None
    array = np.asarray(value)
    if array.dtype.kind == "b":
        array = array.view(np.uint8)
    words = [array.ctypes.data, array.ctypes.data, 0, *array.shape, *(s // array.itemsize for s in array.strides)]
    descriptor = (ctypes.c_int64 * len(words))(*words)
    return ctypes.c_void_p(ctypes.addressof(descriptor)), (descriptor, array)
