"""Runs single kernels (levels 3 and 4) through upstream MLIR: `mlir-opt` lowers, `mlir-translate` gives LLVM IR, llvmlite runs it.

The level-3 form run this way is the oracle of the level-4 form: none of our loop generation takes part in it.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Mapping, Sequence

import llvmlite.binding as llvm
import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from gradir.dialects.registry import make_context
from gradir.ir.passes import PassContext
from gradir.lowering.lower_kernels import LowerKernels
from gradir.lowering.schedule_kernels import ScheduleKernels

OPT, TRANSLATE = shutil.which("mlir-opt-22"), shutil.which("mlir-translate-22")
needs_upstream = pytest.mark.skipif(OPT is None or TRANSLATE is None, reason="mlir-opt-22 and mlir-translate-22 are not installed")
_SCALARS = {"float32": ctypes.c_float, "float64": ctypes.c_double, "bool": ctypes.c_bool, "int32": ctypes.c_int32, "int64": ctypes.c_int64}


def parse(text: str) -> ModuleOp:
    return Parser(make_context(), text).parse_module()


def lowered(text: str, *, strict: bool = True) -> ModuleOp:
    """The module of level-3 `text` after `schedule-kernels` and `lower-kernels`, verified; `strict`: no kernel may fall back to plain loops."""
    module = parse(text)
    ScheduleKernels().apply(module, PassContext())
    LowerKernels(strict=strict).apply(module, PassContext())
    module.verify()
    return module


def llvm_ir(module: ModuleOp) -> str:
    """LLVM IR of a module, by upstream's passes (which verify it first)."""
    assert OPT is not None and TRANSLATE is not None
    module = module.clone()
    for op in module.walk():
        for name in [n for n in op.attributes if n.startswith("gradir.")]:
            del op.attributes[name]
        op.properties.pop("arg_attrs", None)
    command = [OPT, "--allow-unregistered-dialect", "--verify-each", "--test-lower-to-llvm"]
    lowered_text = subprocess.run(command, input=str(module), capture_output=True, text=True, check=False)
    assert lowered_text.returncode == 0, lowered_text.stderr + str(module)
    out = subprocess.run([TRANSLATE, "--mlir-to-llvmir"], input=lowered_text.stdout, capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr
    return out.stdout


class Compiled:
    """A module in memory; `call` runs one function on numpy arrays (memrefs, in place) and numpy scalars."""

    def __init__(self, module: ModuleOp, level: int = 2) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        host = llvm.get_host_cpu_features()
        machine = llvm.Target.from_default_triple().create_target_machine(cpu=llvm.get_host_cpu_name(), features=host.flatten(), opt=level)
        self.machine = machine
        self.module = llvm.parse_assembly(llvm_ir(module))
        options = llvm.create_pipeline_tuning_options(speed_level=1)
        llvm.create_pass_builder(machine, options).getModulePassManager().run(self.module, llvm.create_pass_builder(machine, options))
        self.engine = llvm.create_mcjit_compiler(self.module, machine)
        self.engine.finalize_object()

    def call(self, name: str, *arguments: np.ndarray | np.generic) -> None:
        values: list[ctypes._SimpleCData] = []
        for a in arguments:
            if isinstance(a, np.ndarray):
                values += [ctypes.c_void_p(a.ctypes.data), ctypes.c_void_p(a.ctypes.data), ctypes.c_int64(0)]
                values += [ctypes.c_int64(n) for n in a.shape]
                values += [ctypes.c_int64(s // a.itemsize) for s in a.strides]
            else:
                values.append(_SCALARS[a.dtype.name](a.item()))
        function = ctypes.CFUNCTYPE(None, *[type(v) for v in values])(self.engine.get_function_address(name))
        function(*values)


Case = tuple[Sequence[np.ndarray | np.generic], Sequence[int]]
"""Arguments of a kernel, and the positions of its outputs."""


def check(kernels: Mapping[str, str], cases: Mapping[str, Sequence[Case]], *, tolerance: float = 1e-5, strict: bool = True) -> ModuleOp:
    """Both levels of every kernel (name -> level-3 text) give the same numbers in all its cases. Returns the level-4 module."""
    text = "\n".join(kernels.values())
    after = lowered(text, strict=strict)
    modules = [Compiled(parse(text)), Compiled(after)]
    for name, calls in cases.items():
        for arguments, outputs in calls:
            copies = [[_copy(a) for a in arguments] for _ in range(2)]
            for module, own in zip(modules, copies, strict=True):
                module.call(name, *own)
            for position, (want, got) in enumerate(zip(*copies, strict=True)):
                if isinstance(want, np.ndarray):
                    exact = position not in outputs
                    _compare(
                        want, got, 0.0 if exact else tolerance, f"{name}, argument {position}, shapes {[np.shape(a) for a in arguments]}"
                    )
    return after


def _compare(want: np.ndarray, got: np.ndarray, tolerance: float, message: str) -> None:
    if want.dtype.kind in "biu":
        np.testing.assert_array_equal(got, want, err_msg=message)
        return
    scale = np.max(np.abs(want[np.isfinite(want)]), initial=0.0)
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * float(scale), err_msg=message)


def _copy(argument: np.ndarray | np.generic) -> np.ndarray | np.generic:
    """A copy with the same strides."""
    if not isinstance(argument, np.ndarray) or argument.base is None or argument.flags.c_contiguous:
        return argument.copy()
    base = argument.base.copy()
    offset = argument.ctypes.data - argument.base.ctypes.data
    return np.ndarray(argument.shape, argument.dtype, base, offset, argument.strides)
