"""Folds of `tensor`: casts and slices that change nothing, elements of tensors just made, sizes that the type tells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Operation, SSAValue

from gradir.dialects.upstream import tensor
from gradir.lowering.dependences import BARRIER
from gradir.lowering.folds.table import Folder, Rule

Values = Sequence[SSAValue] | None


def fold_cast(op: Any, _: Folder) -> Values:
    """cast x : t to t -> x, unless it is a barrier."""
    if BARRIER in op.attributes:
        return None
    return [op.source] if op.source.type == op.results[0].type else None


def fold_dim(op: Any, folder: Folder) -> Values:
    """dim x, c -> the static size of dimension c."""
    number = folder.integer(op.index)
    type = op.source.type
    if number is None or not isinstance(type, TensorType) or not 0 <= number < len(type.get_shape()):
        return None
    size = type.get_shape()[number]
    return None if size == DYNAMIC_INDEX else [folder.make_integer(size, op.results[0].type)]


def fold_extract(op: Any, folder: Folder) -> Values:
    """from_elements(a, b, ..)[c] -> the element;  splat(a)[..] -> a."""
    inner = op.tensor.owner
    if isinstance(inner, tensor.SplatOp):
        return [inner.operands[0]]
    if not isinstance(inner, tensor.FromElementsOp):
        return None
    position = 0
    for size, index in zip(op.tensor.type.get_shape(), op.indices):
        number = folder.integer(index)
        if number is None or not 0 <= number < size:
            return None
        position = position * size + number
    return [inner.operands[position]]


def fold_from_elements(op: Any, _: Folder) -> Values:
    """from_elements(extract x[]) : tensor<T> -> x."""
    type = op.results[0].type
    inner = op.operands[0].owner if len(op.operands) == 1 else None
    if isinstance(inner, tensor.ExtractOp) and not inner.indices and inner.tensor.type == type:
        return [inner.tensor]
    return None


def fold_extract_slice(op: Any, _: Folder) -> Values:
    """x[0:n, 0:m] of the whole of x -> x."""
    return [op.source] if op.source.type == op.results[0].type and _whole(op) else None


def fold_insert_slice(op: Any, _: Folder) -> Values:
    """y written over the whole of x -> y."""
    return [op.source] if op.source.type == op.results[0].type and _whole(op) else None


def _whole(op: Any) -> bool:
    """Whether a slice starts at 0 with step 1; of the same static type it is then all of the tensor."""
    type = op.source.type
    static = isinstance(type, TensorType) and DYNAMIC_INDEX not in type.get_shape()
    offsets, strides = op.static_offsets.get_values(), op.static_strides.get_values()
    return static and all(o == 0 for o in offsets) and all(s == 1 for s in strides)


FOLDS: dict[type[Operation], Rule] = {
    tensor.CastOp: fold_cast,
    tensor.DimOp: fold_dim,
    tensor.ExtractOp: fold_extract,
    tensor.FromElementsOp: fold_from_elements,
    tensor.ExtractSliceOp: fold_extract_slice,
    tensor.InsertSliceOp: fold_insert_slice,
}
