"""`vector` of level 4 on numpy arrays: transfers with masks, permutation maps and bounds; contractions; shuffles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Operation
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap

from gradir.dialects.upstream import arith, vector
from gradir.dialects.upstream.vector import CombiningKindAttr, CombiningKindFlag
from gradir.dialects.upstream.vector_shape import int_list
from gradir.reference.buffers import View, check_index, read, write
from gradir.reference.machine import Machine, Value, evaluates
from gradir.reference.mathematics import fused
from gradir.reference.memory import mixed
from gradir.reference.structured import COMBINERS
from gradir.reference.values import dtype_of, partial, parts, require_defined, whole

Array = np.ndarray[Any, Any]

_COMBINE: dict[CombiningKindFlag, tuple[type[Operation], type[Operation]]] = {
    CombiningKindFlag.ADD: (arith.AddfOp, arith.AddiOp),
    CombiningKindFlag.MUL: (arith.MulfOp, arith.MuliOp),
    CombiningKindFlag.MINUI: (arith.MinUIOp, arith.MinUIOp),
    CombiningKindFlag.MINSI: (arith.MinSIOp, arith.MinSIOp),
    CombiningKindFlag.MINNUMF: (arith.MinnumfOp, arith.MinnumfOp),
    CombiningKindFlag.MINIMUMF: (arith.MinimumfOp, arith.MinimumfOp),
    CombiningKindFlag.MAXUI: (arith.MaxUIOp, arith.MaxUIOp),
    CombiningKindFlag.MAXSI: (arith.MaxSIOp, arith.MaxSIOp),
    CombiningKindFlag.MAXNUMF: (arith.MaxnumfOp, arith.MaxnumfOp),
    CombiningKindFlag.MAXIMUMF: (arith.MaximumfOp, arith.MaximumfOp),
    CombiningKindFlag.AND: (arith.AndIOp, arith.AndIOp),
    CombiningKindFlag.OR: (arith.OrIOp, arith.OrIOp),
    CombiningKindFlag.XOR: (arith.XOrIOp, arith.XOrIOp),
}


def fold(kind: CombiningKindAttr, init: Array | None, terms: Array, axes: tuple[int, ...]) -> Array:
    """`terms` combined along `axes`, then with `init` (which lacks the axes)."""
    by_float, by_integer = _COMBINE[kind.data]
    combine = COMBINERS[by_integer if terms.dtype.kind in "iub" else by_float]
    if init is None:
        first = [slice(0, 1) if axis in axes else slice(None) for axis in range(terms.ndim)]
        if len(axes) == 1 and terms.shape[axes[0]] > 1:
            rest = [slice(1, None) if axis in axes else slice(None) for axis in range(terms.ndim)]
            return np.squeeze(combine(terms[tuple(first)], terms[tuple(rest)], axes), axes)
        return np.squeeze(terms[tuple(first)], axes)
    return np.squeeze(combine(np.expand_dims(np.asarray(init), axes), terms, axes), axes)


def _array(machine: Machine, op: Operation, value: Value) -> Array:
    return np.asarray(whole(machine, op, value))


# --- contractions -----------------------------------------------------------------------------------------------------------------


@evaluates(vector.OuterProductOp)
def _outer_product(machine: Machine, op: vector.OuterProductOp, lhs: Array, rhs: Array, acc: Array | None = None) -> Value:
    a = lhs if np.ndim(rhs) == 0 else lhs[:, None]
    if acc is None:
        return np.asarray(a * rhs)
    if op.kind.data == CombiningKindFlag.ADD and lhs.dtype.kind not in "iub":
        return np.asarray(fused(a, rhs, acc, lhs.dtype))
    terms = np.broadcast_to(a * rhs, np.shape(acc))
    return fold(op.kind, np.asarray(acc), terms[None], (0,))


@evaluates(vector.FMAOp)
def _fma(_machine: Machine, _op: Operation, lhs: Array, rhs: Array, acc: Array) -> Value:
    return np.asarray(fused(lhs, rhs, acc, lhs.dtype))


@evaluates(vector.ReductionOp)
def _reduction(_machine: Machine, op: vector.ReductionOp, source: Array, acc: Value | None = None) -> Value:
    return fold(op.kind, None if acc is None else np.asarray(acc), source, (0,))[()]


@evaluates(vector.MultiReductionOp)
def _multi_reduction(_machine: Machine, op: vector.MultiReductionOp, source: Array, acc: Value) -> Value:
    return fold(op.kind, np.asarray(acc), source, tuple(op.reduction_dims.get_values()))[()]


@evaluates(vector.ContractionOp)
def _contract(_machine: Machine, op: vector.ContractionOp, lhs: Array, rhs: Array, acc: Value) -> Value:
    rank = len(op.iterator_types)
    maps = [[expr.position for expr in mapping.data.results if isinstance(expr, AffineDimExpr)] for mapping in op.indexing_maps]

    def spread(array: Array, dims: Sequence[int]) -> Array:
        ordered = np.transpose(array, np.argsort(dims))
        return np.expand_dims(ordered, tuple(d for d in range(rank) if d not in dims))

    reduced = tuple(d for d, kind in enumerate(op.iterator_types) if str(kind.data) == "reduction")
    dtype = np.asarray(acc).dtype
    terms = spread(lhs, maps[0]).astype(dtype) * spread(rhs, maps[1]).astype(dtype)
    kept = [d for d in range(rank) if d not in reduced]
    order = [kept.index(d) for d in maps[2]]
    ordered = np.transpose(np.asarray(acc), np.argsort(order))
    return np.transpose(fold(op.kind, ordered, terms, reduced), order)[()]


# --- shapes -----------------------------------------------------------------------------------------------------------------------


def _shape(type_: Any) -> tuple[int, ...]:
    return type_.get_shape() if isinstance(type_, VectorType) else ()


@evaluates(vector.BroadcastOp)
def _broadcast(_machine: Machine, op: vector.BroadcastOp, source: Value) -> Value:
    return np.broadcast_to(source, _shape(op.vector.type)).copy()


@evaluates(vector.TransposeOp)
def _transpose(_machine: Machine, op: vector.TransposeOp, source: Array) -> Value:
    return np.transpose(source, op.permutation.get_values())


@evaluates(vector.ShapeCastOp)
def _shape_cast(_machine: Machine, op: vector.ShapeCastOp, source: Array) -> Value:
    return source.reshape(_shape(op.result.type))


@evaluates(vector.BitcastOp)
def _bitcast(_machine: Machine, op: vector.BitcastOp, source: Array) -> Value:
    return np.ascontiguousarray(source).view(dtype_of(op.result.type)).reshape(_shape(op.result.type))


@evaluates(vector.StepOp)
def _step(_machine: Machine, op: vector.StepOp) -> Value:
    return np.arange(_shape(op.result.type)[0], dtype=np.int64)


def _position(machine: Machine, op: Any, dynamic: Sequence[Value], shape: Sequence[int]) -> tuple[int, ...]:
    position = mixed(op.static_position, dynamic)
    check_index(machine, op, shape[: len(position)], position)
    return tuple(position)


@evaluates(vector.ExtractOp)
def _extract(machine: Machine, op: vector.ExtractOp, source: Array, *dynamic: Value) -> Value:
    return source[_position(machine, op, dynamic, source.shape)]


@evaluates(vector.InsertOp)
def _insert(machine: Machine, op: vector.InsertOp, source: Value, dest: Array, *dynamic: Value) -> Value:
    result = dest.copy()
    result[_position(machine, op, dynamic, dest.shape)] = source
    return result


@evaluates(vector.ExtractStridedSliceOp)
def _extract_strided(_machine: Machine, op: vector.ExtractStridedSliceOp, source: Array) -> Value:
    bounds = zip(int_list(op.offsets), int_list(op.sizes), int_list(op.strides))
    return source[tuple(slice(offset, offset + (size - 1) * step + 1, step) for offset, size, step in bounds)]


@evaluates(vector.InsertStridedSliceOp)
def _insert_strided(_machine: Machine, op: vector.InsertStridedSliceOp, source: Array, dest: Array) -> Value:
    result = dest.copy()
    offsets, strides = int_list(op.offsets), int_list(op.strides)
    lead = dest.ndim - source.ndim
    steps = [1] * lead + strides
    sizes = [1] * lead + list(source.shape)
    window = tuple(slice(offset, offset + (size - 1) * step + 1, step) for offset, size, step in zip(offsets, sizes, steps))
    result[window] = source.reshape(sizes)
    return result


@evaluates(vector.ShuffleOp)
def _shuffle(machine: Machine, op: vector.ShuffleOp, first: Array, second: Array) -> Value:
    mask = list(op.mask.get_values())
    if -1 in mask:
        machine.fail(op, "OP103", "the mask makes poison lanes (-1)")
    return np.concatenate([np.atleast_1d(first), np.atleast_1d(second)])[mask]


@evaluates(vector.FromElementsOp)
def _from_elements(_machine: Machine, op: vector.FromElementsOp, *elements: Value) -> Value:
    return np.asarray(elements, dtype_of(op.dest.type)).reshape(_shape(op.dest.type))


@evaluates(vector.ToElementsOp)
def _to_elements(_machine: Machine, _op: Operation, source: Array) -> Value:
    return tuple(source.reshape(-1))


@evaluates(vector.InterleaveOp)
def _interleave(_machine: Machine, op: vector.InterleaveOp, first: Array, second: Array) -> Value:
    return np.stack([first, second], axis=-1).reshape(_shape(op.result.type))


@evaluates(vector.DeinterleaveOp)
def _deinterleave(_machine: Machine, _op: Operation, source: Array) -> Value:
    return source[..., 0::2], source[..., 1::2]


def _box_mask(sizes: Sequence[int], shape: Sequence[int]) -> Array:
    mask = np.zeros(shape, np.bool_)
    mask[tuple(slice(0, max(0, size)) for size in sizes)] = True
    return mask


@evaluates(vector.CreateMaskOp)
def _create_mask(_machine: Machine, op: vector.CreateMaskOp, *sizes: Value) -> Value:
    return _box_mask([int(size) for size in sizes], _shape(op.mask_vector.type))


@evaluates(vector.ConstantMaskOp)
def _constant_mask(_machine: Machine, op: vector.ConstantMaskOp) -> Value:
    return _box_mask(list(op.mask_dim_sizes.get_values()), _shape(op.result.type))


# --- memory -----------------------------------------------------------------------------------------------------------------------


def _lanes(index: Sequence[Value], shape: Sequence[int]) -> list[Any]:
    """Coordinates of a vector that lies in the innermost dims from `index` on."""
    rank = len(shape)
    coordinates: list[Any] = [int(i) for i in index]
    for k, size in enumerate(shape):
        grid = np.arange(size).reshape([-1 if j == k else 1 for j in range(rank)])
        coordinates[len(index) - rank + k] = coordinates[len(index) - rank + k] + grid
    return coordinates


@evaluates(vector.LoadOp)
def _load(machine: Machine, op: vector.LoadOp, view: View, *index: Value) -> Value:
    shape = _shape(op.result.type)
    return np.broadcast_to(read(machine, op, view, _lanes(index, shape)), shape)


@evaluates(vector.StoreOp)
def _store(machine: Machine, op: vector.StoreOp, value: Array, view: View, *index: Value) -> None:
    write(machine, op, view, _lanes(index, value.shape), value)


def _masked_read(machine: Machine, op: Operation, view: View, index: Sequence[Any], mask: Any, otherwise: Array) -> Array:
    """Read where `mask` holds; other lanes are not touched."""
    lanes = np.broadcast_arrays(*index, mask) if index else [mask]
    chosen = np.asarray(lanes[-1])
    result = np.array(np.broadcast_to(otherwise, chosen.shape), view.dtype)
    if chosen.any():
        result[chosen] = read(machine, op, view, [np.asarray(i)[chosen] for i in lanes[:-1]])
    return result


@evaluates(vector.MaskedLoadOp)
def _masked_load(machine: Machine, op: vector.MaskedLoadOp, view: View, *rest: Value) -> Value:
    *index, mask, otherwise = rest
    return _masked_read(machine, op, view, _lanes(index, mask.shape), mask, otherwise)


@evaluates(vector.MaskedStoreOp)
def _masked_store(machine: Machine, op: vector.MaskedStoreOp, view: View, *rest: Value) -> None:
    *index, mask, value = rest
    write(machine, op, view, _lanes(index, value.shape), value, mask)


@evaluates(vector.GatherOp)
def _gather(machine: Machine, op: vector.GatherOp, source: Value, *rest: Value) -> Value:
    *offsets, indices, mask, otherwise = rest
    index = [*(int(i) for i in offsets[:-1]), int(offsets[-1]) + indices.astype(np.int64)]
    if isinstance(source, View):
        return _masked_read(machine, op, source, index, mask, otherwise)
    array = _array(machine, op, source)
    check_index(machine, op, array.shape, index, mask)
    safe = [np.where(mask, i, 0) for i in index]
    return np.where(mask, array[tuple(safe)], otherwise).astype(array.dtype)


@evaluates(vector.ScatterOp)
def _scatter(machine: Machine, op: vector.ScatterOp, view: View, *rest: Value) -> None:
    *offsets, indices, mask, value = rest
    index = [*(int(i) for i in offsets[:-1]), int(offsets[-1]) + indices.astype(np.int64)]
    for lane in np.ndindex(*np.shape(value)):
        if mask[lane]:
            write(machine, op, view, [np.broadcast_to(i, np.shape(value))[lane] for i in index], value[lane])


def _transfer(
    machine: Machine, op: Any, shape: Sequence[int], index: Sequence[Value], sizes: Sequence[int], mask: Array | None
) -> tuple[list[Any], Array | None]:
    """Coordinates of each lane, and which lanes are inside (None: all; an out-of-bounds lane of an `in_bounds` dim is an error)."""
    mapping: AffineMap = op.permutation_map.data
    in_bounds = [bool(flag.value.data) for flag in op.in_bounds] or [False] * len(sizes)
    rank = len(sizes)
    coordinates: list[Any] = [np.full([1] * rank, int(i)) for i in index]
    inside: Any = True
    for k, expr in enumerate(mapping.results):
        if isinstance(expr, AffineConstantExpr):
            continue
        assert isinstance(expr, AffineDimExpr)
        grid = np.arange(sizes[k]).reshape([-1 if j == k else 1 for j in range(rank)])
        coordinates[expr.position] = coordinates[expr.position] + grid
        if not in_bounds[k]:
            inside = inside & (coordinates[expr.position] < shape[expr.position]) & (coordinates[expr.position] >= 0)
    if mask is not None:
        inside = inside & _mask_of_lanes(mapping, mask, rank)
    everywhere = inside is True
    check_index(machine, op, shape, coordinates, None if everywhere else inside)
    return coordinates, None if everywhere else np.broadcast_to(inside, list(sizes))


def _mask_of_lanes(mapping: AffineMap, mask: Array, rank: int) -> Array:
    """The mask has the memory's order of dims; lanes have the vector's."""
    dims = [expr.position for expr in mapping.results if isinstance(expr, AffineDimExpr)]
    lanes = [k for k, expr in enumerate(mapping.results) if isinstance(expr, AffineDimExpr)]
    order = [sorted(dims).index(dim) for dim in dims]
    spread = np.transpose(mask, order)
    return spread.reshape([spread.shape[lanes.index(k)] if k in lanes else 1 for k in range(rank)])


@evaluates(vector.TransferReadOp)
def _transfer_read(machine: Machine, op: vector.TransferReadOp, source: Value, *rest: Value) -> Value:
    index, padding = rest[: len(op.indices)], rest[len(op.indices)]
    mask = rest[-1] if op.mask is not None else None
    sizes = _shape(op.result.type)
    coordinates, inside = _transfer(machine, op, source.shape, index, sizes, mask)
    if isinstance(source, View) and inside is None:
        return np.broadcast_to(read(machine, op, source, coordinates), sizes)
    if isinstance(source, View):
        return _masked_read(machine, op, source, coordinates, inside, padding)
    array, defined = parts(source)
    if inside is None:
        inside = np.ones(sizes, np.bool_)
    safe = tuple(np.where(inside, i, 0) for i in coordinates)
    require_defined(machine, op, np.asarray(defined[safe] | ~inside))
    return np.where(inside, array[safe], padding).astype(array.dtype)


@evaluates(vector.TransferWriteOp)
def _transfer_write(machine: Machine, op: vector.TransferWriteOp, value: Array, target: Value, *rest: Value) -> Value | None:
    index = rest[: len(op.indices)]
    mask = rest[-1] if op.mask is not None else None
    coordinates, inside = _transfer(machine, op, target.shape, index, value.shape, mask)
    if isinstance(target, View):
        write(machine, op, target, coordinates, value, inside)
        return None
    array, defined = (each.copy() for each in parts(target))
    if inside is None:
        inside = np.ones(value.shape, np.bool_)
    chosen = tuple(np.broadcast_to(i, inside.shape)[inside] for i in coordinates)
    array[chosen], defined[chosen] = value[inside], True
    return partial(array, defined)
