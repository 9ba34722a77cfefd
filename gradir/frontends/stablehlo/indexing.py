"""Dynamic slices, gather and scatter.

A gather along one axis is `nd.gather`, a single one `nd.dynamic_slice`; all others read the flattened operand at positions that are
computed from the indices. A scatter that adds is `nd.scatter_add`, along one axis or into the flattened operand; one with another body
combines one update after the other, in row-major order, with what its element outside of the operand dropped (docs/numerics.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import Operation, SSAValue

from gradir.dialects import nd
from gradir.dialects.types import element_of, is_bool, is_unsigned, rank_of, static_shape, tensor
from gradir.frontends.stablehlo.attributes import Numbers
from gradir.frontends.stablehlo.conversion import Conversion, Rule, UnsupportedError, Values, broadcast, like, reshape, transpose
from gradir.frontends.stablehlo.dialect import attribute, numbers
from gradir.frontends.stablehlo.reductions import counted_loop, known_op


def dynamic_slice(conversion: Conversion, op: Operation) -> Values:
    """`operand[s : s + sizes]` with clamped starts."""
    operand, *starts = conversion.operands(op)
    return [conversion.emit(nd.DynamicSliceOp.make(operand, starts, numbers(op, "slice_sizes") or ()))] if starts else [operand]


def dynamic_update_slice(conversion: Conversion, op: Operation) -> Values:
    """`operand` with `operand[s + i] = update[i]`, with clamped starts."""
    operand, update, *starts = conversion.operands(op)
    return [conversion.emit(nd.DynamicUpdateSliceOp.make(operand, update, starts))] if starts else [update]


def gather(conversion: Conversion, op: Operation) -> Values:
    """One slice of the operand per index vector, with clamped starts."""
    operand, indices = conversion.operands(op)
    dims = _dimension_numbers(op, "dimension_numbers")
    sizes = numbers(op, "slice_sizes") or ()
    shape = static_shape(op.results[0])
    offsets = dims.numbers("offset_dims")
    vectors = _index_vectors(conversion, indices, dims.number("index_vector_dim"))
    axis = _taken_axis(dims, sizes, static_shape(operand))
    if axis is not None:
        taken = conversion.emit(nd.GatherOp.make(operand, _scalar_vectors(conversion, vectors), axis))
        batch = [d for d in range(len(shape)) if d not in offsets]
        order = [*offsets[:axis], *batch, *offsets[axis:]]  # where each dimension of `taken` goes
        return [transpose(conversion, taken, [order.index(d) for d in range(len(shape))])]
    if rank_of(vectors) == 1 and not dims.numbers("operand_batching_dims"):
        return [_one_slice(conversion, operand, vectors, dims.numbers("start_index_map"), sizes, shape)]
    return [_gather_flat(conversion, operand, vectors, dims, sizes, shape)]


def _dimension_numbers(op: Operation, name: str) -> Numbers:
    found = attribute(op, name)
    if not isinstance(found, Numbers):
        raise UnsupportedError(f"{name} are not in the form #stablehlo.{op.name.partition('.')[2]}<..>")
    return found


def _index_vectors(conversion: Conversion, indices: SSAValue, vector_dim: int) -> SSAValue:
    """The indices with their vectors along a last dimension."""
    rank = rank_of(indices)
    if vector_dim == rank:
        return reshape(conversion, indices, [*static_shape(indices), 1])
    return transpose(conversion, indices, [*(d for d in range(rank) if d != vector_dim), vector_dim])


def _scalar_vectors(conversion: Conversion, vectors: SSAValue) -> SSAValue:
    return reshape(conversion, vectors, static_shape(vectors)[:-1])


def _taken_axis(dims: Numbers, sizes: Sequence[int], shape: Sequence[int]) -> int | None:
    """The axis along which whole rows are taken, if the gather does that."""
    mapped = dims.numbers("start_index_map")
    if len(mapped) != 1 or dims.numbers("operand_batching_dims") or dims.numbers("collapsed_slice_dims") != mapped:
        return None
    (axis,) = mapped
    whole = all(size == n for d, (size, n) in enumerate(zip(sizes, shape)) if d != axis)
    return axis if whole and sizes[axis] == 1 else None


def _one_slice(
    conversion: Conversion, operand: SSAValue, vector: SSAValue, mapped: Sequence[int], sizes: Sequence[int], shape: Sequence[int]
) -> SSAValue:
    """One index vector, one slice."""
    zero = conversion.constant(0, tensor(element_of(vector)))
    starts = [zero] * len(sizes)
    for k, d in enumerate(mapped):
        starts[d] = reshape(conversion, conversion.emit(nd.SliceOp.make(vector, [k], [k + 1])), [])
    found = conversion.emit(nd.DynamicSliceOp.make(operand, starts, sizes)) if sizes else operand
    return reshape(conversion, found, shape)  # offset dimensions keep their order


def _component(conversion: Conversion, vectors: SSAValue, k: int) -> SSAValue:
    """Component k of every index vector, in i64."""
    *batch, _ = static_shape(vectors)
    first, limit = [*([0] * len(batch)), k], [*batch, k + 1]
    found = reshape(conversion, conversion.emit(nd.SliceOp.make(vectors, first, limit)), batch)
    if element_of(found) == i64:
        return found
    if is_unsigned(element_of(found)):  # beyond i64 all are out of bounds alike
        bits = element_of(found).width.data  # pyright: ignore[reportAttributeAccessIssue]  an integer type
        if bits == 64:
            found = conversion.emit(nd.MinOp.make(found, like(conversion, (1 << 63) - 1, found)))
    return conversion.emit(nd.ConvertOp.make(found, i64))


def _strides(shape: Sequence[int]) -> list[int]:
    """How far apart neighbours along each dimension are in row-major order."""
    return [int(np.prod(shape[d + 1 :], dtype=np.int64)) for d in range(len(shape))]


def _gather_flat(
    conversion: Conversion, operand: SSAValue, vectors: SSAValue, dims: Numbers, sizes: Sequence[int], shape: Sequence[int]
) -> SSAValue:
    """`operand.reshape(-1)[position of every element of the result]`"""
    source = static_shape(operand)
    strides = _strides(source)
    batch = [d for d in range(len(shape)) if d not in dims.numbers("offset_dims")]
    position = like_shape(conversion, 0, shape)
    add, emit = nd.AddOp.make, conversion.emit
    for k, d in enumerate(dims.numbers("start_index_map")):
        start = _component(conversion, vectors, k)
        start = emit(nd.ClampOp.make(like(conversion, 0, start), start, like(conversion, source[d] - sizes[d], start)))
        scaled = emit(nd.MulOp.make(start, like(conversion, strides[d], start)))
        position = emit(add(position, broadcast(conversion, scaled, batch, shape)))
    for d, b in zip(dims.numbers("operand_batching_dims"), dims.numbers("start_indices_batching_dims")):
        place = b - (b > dims.number("index_vector_dim"))
        position = emit(add(position, _counting(conversion, shape, batch[place], strides[d])))
    dropped = {*dims.numbers("collapsed_slice_dims"), *dims.numbers("operand_batching_dims")}
    kept = [d for d in range(len(source)) if d not in dropped]
    for d, place in zip(kept, dims.numbers("offset_dims")):
        position = emit(add(position, _counting(conversion, shape, place, strides[d])))
    return emit(nd.GatherOp.make(reshape(conversion, operand, [int(np.prod(source, dtype=np.int64))]), position, 0))


def like_shape(conversion: Conversion, value: int, shape: Sequence[int]) -> SSAValue:
    """An i64 tensor of that shape, filled."""
    return conversion.constant(value, tensor(i64, shape))


def _counting(conversion: Conversion, shape: Sequence[int], dim: int, step: int) -> SSAValue:
    """`step * index along dim`"""
    counted = conversion.emit(nd.IotaOp.make(tensor(i64, shape), dim))
    return counted if step == 1 else conversion.emit(nd.MulOp.make(counted, like(conversion, step, counted)))


# -- scatter


def scatter(conversion: Conversion, op: Operation) -> Values:
    """The operand with every update combined into its place; what lies outside is dropped, element by element."""
    operands = conversion.operands(op)
    if len(operands) != 3:
        raise UnsupportedError(f"{len(operands) // 2} operands at once")
    operand, indices, updates = operands
    dims = _dimension_numbers(op, "scatter_dimension_numbers")
    vectors = _index_vectors(conversion, indices, dims.number("index_vector_dim"))
    body = op.regions[0].block
    adds = known_op(body) == "stablehlo.add" and not is_bool(element_of(operand))
    axis = _added_axis(dims, static_shape(operand), static_shape(updates))
    if adds and axis is not None:
        window = dims.numbers("update_window_dims")
        batch = [d for d in range(rank_of(updates)) if d not in window]
        rows = transpose(conversion, updates, [*window[:axis], *batch, *window[axis:]])
        return [conversion.emit(nd.ScatterAddOp.make(operand, _scalar_vectors(conversion, vectors), rows, axis))]
    position = _scatter_positions(conversion, vectors, dims, static_shape(operand), static_shape(updates))
    volume = int(np.prod(static_shape(operand), dtype=np.int64))
    count = int(np.prod(static_shape(updates), dtype=np.int64))
    if not volume or not count:
        return [operand]
    flat = reshape(conversion, operand, [volume])
    position, updates = reshape(conversion, position, [count]), reshape(conversion, updates, [count])
    if adds:
        return [reshape(conversion, conversion.emit(nd.ScatterAddOp.make(flat, position, updates, 0)), static_shape(operand))]

    def step(k: SSAValue, state: list[SSAValue]) -> list[SSAValue]:
        emit = conversion.emit
        at, update = emit(nd.IndexAtOp.make(position, k, 0)), emit(nd.IndexAtOp.make(updates, k, 0))
        old = reshape(conversion, emit(nd.DynamicSliceOp.make(state[0], [at], [1])), [])
        (new,) = conversion.inline(body, [old, update])
        inside = emit(nd.CompareOp.make("lt", at, like(conversion, volume, at)))
        kept = reshape(conversion, emit(nd.SelectOp.make(inside, new, old)), [1])
        return [emit(nd.DynamicUpdateSliceOp.make(state[0], kept, [at]))]

    (result,) = counted_loop(conversion, count, [flat], step)
    return [reshape(conversion, result, static_shape(operand))]


def _added_axis(dims: Numbers, shape: Sequence[int], updates: Sequence[int]) -> int | None:
    """The axis along which whole rows are added, if the scatter does that."""
    mapped = dims.numbers("scatter_dims_to_operand_dims")
    if len(mapped) != 1 or dims.numbers("input_batching_dims") or dims.numbers("inserted_window_dims") != mapped:
        return None
    (axis,) = mapped
    rows = [n for d, n in enumerate(shape) if d != axis]
    return axis if rows == [updates[d] for d in dims.numbers("update_window_dims")] else None


def _scatter_positions(conversion: Conversion, vectors: SSAValue, dims: Numbers, shape: Sequence[int], updates: Sequence[int]) -> SSAValue:
    """Where in the flattened operand every element of the updates belongs; the operand's volume for what lies outside."""
    strides, emit = _strides(shape), conversion.emit
    window = dims.numbers("update_window_dims")
    batch = [d for d in range(len(updates)) if d not in window]
    coordinates: dict[int, SSAValue] = {}

    def add(d: int, value: SSAValue) -> None:
        coordinates[d] = emit(nd.AddOp.make(coordinates[d], value)) if d in coordinates else value

    for k, d in enumerate(dims.numbers("scatter_dims_to_operand_dims")):
        add(d, broadcast(conversion, _component(conversion, vectors, k), batch, updates))
    for d, b in zip(dims.numbers("input_batching_dims"), dims.numbers("scatter_indices_batching_dims")):
        add(d, _counting(conversion, updates, batch[b - (b > dims.number("index_vector_dim"))], 1))
    dropped = {*dims.numbers("inserted_window_dims"), *dims.numbers("input_batching_dims")}
    for d, place in zip([d for d in range(len(shape)) if d not in dropped], window):
        add(d, _counting(conversion, updates, place, 1))
    position = like_shape(conversion, 0, updates)
    inside: SSAValue | None = None
    for d, at in coordinates.items():
        position = emit(nd.AddOp.make(position, emit(nd.MulOp.make(at, like(conversion, strides[d], at)))))
        for direction, bound in (("ge", 0), ("lt", shape[d])):
            fits = emit(nd.CompareOp.make(direction, at, like(conversion, bound, at)))
            inside = fits if inside is None else emit(nd.AndOp.make(inside, fits))
    volume = int(np.prod(shape, dtype=np.int64))
    return position if inside is None else emit(nd.SelectOp.make(inside, position, like(conversion, volume, position)))


RULES: dict[str, Rule] = {
    "stablehlo.dynamic_slice": dynamic_slice,
    "stablehlo.dynamic_update_slice": dynamic_update_slice,
    "stablehlo.gather": gather,
    "stablehlo.scatter": scatter,
}
