"""Folds of the ops of `nd` that move elements: what changes nothing, what undoes or continues what its producer did."""

from __future__ import annotations

from typing import Any

from xdsl.ir import Operation, SSAValue

from gradir.dialects.nd import indexing, shape
from gradir.dialects.types import is_static, shape_of
from gradir.lowering.folds.nd_elementwise import first
from gradir.lowering.folds.nd_values import Values, fill, is_splat, place, splat
from gradir.lowering.folds.table import Folder, Rule

MOST_INPUTS = 64
"""Inputs of a concatenation made from others: keeps a chain of them linear."""


def of_splat(op: Any, folder: Folder) -> Values:
    """move (splat c) -> splat c."""
    number = splat(op.operands[0]) if is_static(op.results[0]) else None
    return None if number is None else [fill(folder, op.results[0].type, number)]


def same_type(op: Any, _: Folder) -> Values:
    """reshape x : t -> t  ->  x."""
    return [op.operand] if op.operand.type == op.result.type else None


def _inner(op: Any, kind: type[Operation]) -> Any:
    return op.operand.owner if isinstance(op.operand.owner, kind) else None


def reshape_of_reshape(op: Any, folder: Folder) -> Values:
    """reshape (reshape x) -> reshape x."""
    inner = _inner(op, shape.ReshapeOp)
    return [place(folder, shape.ReshapeOp.make(inner.operand, shape_of(op.result)))] if inner else None


def transpose_nothing(op: Any, _: Folder) -> Values:
    """transpose x perm [0, 1, ..] -> x."""
    perm = op.numbers("perm")
    return [op.operand] if perm == tuple(range(len(perm))) else None


def transpose_of_transpose(op: Any, folder: Folder) -> Values:
    """transpose (transpose x perm p) perm q -> transpose x perm p[q]."""
    inner = _inner(op, shape.TransposeOp)
    if not inner:
        return None
    p = inner.numbers("perm")
    return [place(folder, shape.TransposeOp.make(inner.operand, [p[d] for d in op.numbers("perm")]))]


def transpose_of_broadcast(op: Any, folder: Folder) -> Values:
    """transpose (broadcast x dims e) perm p -> broadcast x dims [position of e[k] in p]."""
    inner = _inner(op, shape.BroadcastOp)
    if not inner:
        return None
    perm = op.numbers("perm")
    sizes = _sizes_by_dim(inner)
    dims = [perm.index(d) for d in inner.numbers("dims")]
    return [place(folder, shape.BroadcastOp.make(inner.operand, dims, shape_of(op.result), [sizes[d] for d in perm if d in sizes]))]


def _sizes_by_dim(op: Any) -> dict[int, SSAValue]:
    unknown = [d for d, n in enumerate(shape_of(op.result)) if not isinstance(n, int)]
    return dict(zip(unknown, op.sizes))


def broadcast_nothing(op: Any, _: Folder) -> Values:
    """broadcast x dims [0, 1, ..] to its own type -> x."""
    dims = op.numbers("dims")
    return [op.operand] if op.operand.type == op.result.type and dims == tuple(range(len(dims))) else None


def broadcast_of_broadcast(op: Any, folder: Folder) -> Values:
    """broadcast (broadcast x dims e) dims f -> broadcast x dims f[e]."""
    inner = _inner(op, shape.BroadcastOp)
    if not inner:
        return None
    outer = op.numbers("dims")
    dims = [outer[d] for d in inner.numbers("dims")]
    return [place(folder, shape.BroadcastOp.make(inner.operand, dims, shape_of(op.result), op.sizes))]


def broadcast_of_transpose(op: Any, folder: Folder) -> Values:
    """broadcast (transpose x perm p) dims e -> broadcast x with dims[p[d]] = e[d]."""
    inner = _inner(op, shape.TransposeOp)
    if not inner:
        return None
    dims = [0] * len(inner.numbers("perm"))
    for d, source in enumerate(inner.numbers("perm")):
        dims[source] = op.numbers("dims")[d]
    return [place(folder, shape.BroadcastOp.make(inner.operand, dims, shape_of(op.result), op.sizes))]


def slice_everything(op: Any, _: Folder) -> Values:
    """slice x from 0 to its size -> x."""
    whole = all(low == 0 for low in op.numbers("start")) and all(step == 1 for step in op.numbers("stride"))
    return [op.operand] if whole and op.operand.type == op.result.type and None not in shape_of(op.result) else None


def slice_of_slice(op: Any, folder: Folder) -> Values:
    """x[a : b : s][c : d : t] -> x[a + c s : a + (d - 1) s + 1 : s t]."""
    inner = _inner(op, shape.SliceOp)
    if not inner or not is_static(inner.operand):
        return None
    start, limit, stride = [], [], []
    before, after = (inner.numbers(p) for p in ("start", "stride")), (op.numbers(p) for p in ("start", "limit", "stride"))
    for a, s, c, d, t, size in zip(*before, *after, shape_of(op.operand)):
        end = shape.limit_of(size, d)
        assert isinstance(end, int), "the sizes of a static slice are numbers"
        start.append(a + c * s)
        limit.append(a + (end - 1) * s + 1 if end > c else a + c * s)
        stride.append(s * t)
    full = shape_of(inner.operand)
    if any(low > n or high > n for low, high, n in zip(start, limit, full) if isinstance(n, int)):
        return None  # an empty slice past the end
    return [place(folder, shape.SliceOp.make(inner.operand, start, limit, stride))]


def slice_of_concatenate(op: Any, folder: Folder) -> Values:
    """a slice of (a ++ b ++ ..) that stays within b -> that slice of b."""
    inner = _inner(op, shape.ConcatenateOp)
    if not inner or not is_static(op.operand):
        return None
    dim = inner.number("dim")
    start, limit = list(op.numbers("start")), list(op.numbers("limit"))
    offset = 0
    for part in inner.inputs:
        size = shape_of(part)[dim]
        if not isinstance(size, int):
            return None
        if offset <= start[dim] < limit[dim] <= offset + size:
            start[dim], limit[dim] = start[dim] - offset, limit[dim] - offset
            return [place(folder, shape.SliceOp.make(part, start, limit, op.numbers("stride")))]
        offset += size
    return None


def pad_nothing(op: Any, _: Folder) -> Values:
    """pad x with no element anywhere -> x."""
    empty = not any((*op.numbers("low"), *op.numbers("high"), *op.numbers("interior")))
    return [op.operand] if empty and op.operand.type == op.result.type else None


def pad_of_same(op: Any, folder: Folder) -> Values:
    """pad (splat c) with c -> splat c."""
    number, value = splat(op.operand), splat(op.value)
    if number is None or value is None or not is_splat(op.value, number) or not is_static(op.result):
        return None
    return [fill(folder, op.result.type, number)]


def concatenate_one(op: Any, folder: Folder) -> Values:
    """concatenate x -> x;  inputs of size 0 along the dimension drop out."""
    dim = op.number("dim")
    if len(op.inputs) == 1:
        return [op.inputs[0]]
    kept = [value for value in op.inputs if shape_of(value)[dim] != 0]
    if len(kept) == len(op.inputs) or not kept:
        return None
    return [place(folder, shape.ConcatenateOp.make(kept, dim))]


def concatenate_of_concatenate(op: Any, folder: Folder) -> Values:
    """(a ++ b) ++ c -> a ++ b ++ c, where nobody else reads a ++ b."""
    dim = op.number("dim")
    inputs: list[SSAValue] = []
    for value in op.inputs:
        inner = value.owner
        nested = isinstance(inner, shape.ConcatenateOp) and inner.number("dim") == dim and value.has_one_use()
        inputs += inner.operands if nested else [value]
    grows = len(op.inputs) < len(inputs) <= MOST_INPUTS
    return [place(folder, shape.ConcatenateOp.make(inputs, dim))] if grows else None


def reverse_nothing(op: Any, folder: Folder) -> Values:
    """reverse x along no dimension of more than one element -> x;  other dimensions of size 1 drop out."""
    dims = op.numbers("dims")
    kept = [d for d in dims if shape_of(op.operand)[d] not in (0, 1)]
    if not kept:
        return [op.operand]
    return [place(folder, shape.ReverseOp.make(op.operand, kept))] if len(kept) < len(dims) else None


def reverse_of_reverse(op: Any, folder: Folder) -> Values:
    """reverse (reverse x along d) along e -> reverse x along the dimensions in one of d, e only."""
    inner = _inner(op, shape.ReverseOp)
    if not inner:
        return None
    dims = sorted(set(op.numbers("dims")) ^ set(inner.numbers("dims")))
    return [place(folder, shape.ReverseOp.make(inner.operand, dims))]


def dynamic_slice_at_constants(op: Any, folder: Folder) -> Values:
    """dynamic_slice x at constants -> slice x, at the clamped starts."""
    numbers, sizes = [splat(start) for start in op.starts], op.numbers("sizes")
    total = shape_of(op.operand)
    if not is_static(op.operand) or not is_static(op.result):
        return None
    known = [int(at) for at in numbers if at is not None]
    if len(known) < len(numbers):
        return None
    start = [min(max(at, 0), n - size) for at, n, size in zip(known, total, sizes) if isinstance(n, int)]
    return [place(folder, shape.SliceOp.make(op.operand, start, [a + size for a, size in zip(start, sizes)]))]


def update_everything(op: Any, _: Folder) -> Values:
    """dynamic_update_slice x with an update of its type -> the update."""
    return [op.update] if op.update.type == op.result.type and is_static(op.result) else None


FOLDS: dict[type[Operation], Rule] = {
    shape.ReshapeOp: first(same_type, of_splat, reshape_of_reshape),
    shape.TransposeOp: first(transpose_nothing, of_splat, transpose_of_transpose, transpose_of_broadcast),
    shape.BroadcastOp: first(broadcast_nothing, of_splat, broadcast_of_broadcast, broadcast_of_transpose),
    shape.SliceOp: first(slice_everything, of_splat, slice_of_slice, slice_of_concatenate),
    shape.PadOp: first(pad_nothing, pad_of_same),
    shape.ConcatenateOp: first(concatenate_one, concatenate_of_concatenate),
    shape.ReverseOp: first(reverse_nothing, of_splat, reverse_of_reverse),
    indexing.DynamicSliceOp: first(dynamic_slice_at_constants),
    indexing.DynamicUpdateSliceOp: first(update_everything),
}
