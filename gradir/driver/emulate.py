"""Running a program for CUDA without a GPU: the host part in the evaluator, kernels as the PTX that a GPU would get, in the emulator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, ModuleOp, StridedLayoutAttr
from xdsl.ir import Operation

from gradir.dialects.upstream import gpu
from gradir.dialects.upstream.nvgpu_types import SWIZZLES
from gradir.ptx.launch import DeviceBuffer, launch
from gradir.ptx.tensor_maps import TensorMap
from gradir.reference import run
from gradir.reference.buffers import View
from gradir.reference.tensor_cores import Described
from gradir.targets.nvptx import to_ptx


class PtxLauncher:
    """Runs kernels of a level-4 module as PTX; anything that the emulator reports is a `GradirError` OP062."""

    def __init__(self, module: ModuleOp, seed: int | None = None) -> None:
        has_kernels = any(isinstance(op, gpu.ModuleOp) for op in module.body.block.ops)
        self.text = to_ptx(module) if has_kernels else ""  # nothing is launched where all results are empty or known
        self.seed = seed

    def __call__(
        self, kernel: Operation, grid: tuple[int, int, int], block: tuple[int, int, int], operands: Sequence[Any], shared: int
    ) -> None:
        """One launch; the operands are memrefs of the evaluator, and numbers."""
        function = cast("gpu.FuncOp", kernel)
        if 0 in grid:
            return
        types = [argument.type for argument in function.body.block.args[: function.operand_count]]
        args = [value for type_, operand in zip(types, operands, strict=True) for value in _parameters(type_, operand)]
        launch(self.text, function.sym_name.data, grid=grid, block=block, args=args, shared=shared, seed=self.seed)
        for position, operand in enumerate(operands):
            operand = operand.view if isinstance(operand, Described) else operand
            if isinstance(operand, View) and _access(function, position) != "read":
                _own(operand)


def _access(function: gpu.FuncOp, position: int) -> str:
    """What the kernel does with an operand: read, write, readwrite; empty where nothing says so."""
    attributes = function.arg_attrs.data[position].data if function.arg_attrs is not None else {}
    return str(getattr(attributes.get("gradir.access"), "data", ""))


def _own(view: View) -> None:
    """The elements of the view belong to it from now on: a read through an older view of the arena would be stale."""
    bytes_ = np.asarray(view.positions(view.everywhere()))[..., None] + np.arange(view.dtype.itemsize)
    view.allocation.owner[bytes_] = view.tag


def _parameters(type_: Any, operand: Any) -> list[Any]:
    """How the emitter passes an operand: a pointer, then sizes and strides that the type leaves open."""
    if isinstance(operand, Described):
        return [_tensor_map(operand)]
    if not isinstance(operand, View):
        return [np.asarray(operand)[()]]
    memref = cast("MemRefType[Any]", type_)
    found: list[Any] = [_device_buffer(operand)]
    found += [np.int64(n) for n, declared in zip(operand.shape, memref.get_shape()) if declared == DYNAMIC_INDEX]
    if isinstance(memref.layout, StridedLayoutAttr):
        strides = zip(operand.strides, memref.layout.strides.data)
        found += [np.int64(n // operand.dtype.itemsize) for n, declared in strides if not hasattr(declared, "data")]
    return found


def _device_buffer(view: View) -> DeviceBuffer:
    low, high = view.extent()
    return DeviceBuffer(view.allocation.data[low:high], view.allocation.defined[low:high])


def _tensor_map(described: Described) -> TensorMap:
    """What the runtime would encode for the device; dimensions the other way round."""
    view, words = described.view, described.type
    swizzle, fill = SWIZZLES[words.swizzle.data], words.oob.data
    strides = view.strides[::-1][1:]
    return TensorMap(_device_buffer(view), view.dtype, view.shape[::-1], strides, described.box[::-1], swizzle, fill)


def evaluate_as_ptx(module: ModuleOp, entry: str, inputs: Sequence[Any], launcher: PtxLauncher | None = None) -> list[Any]:
    """Results of `@entry` of a level-4 module for CUDA."""
    return run(module, entry, inputs, launcher=launcher or PtxLauncher(module))
