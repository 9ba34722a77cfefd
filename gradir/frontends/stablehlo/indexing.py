"""Dynamic slices, gather and scatter.

A gather along one axis is `nd.gather`, a single one `nd.dynamic_slice`, a scatter that adds along one axis `nd.scatter_add`; all others
keep their dimension numbers: `nd.gather_general`, `nd.scatter_general`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.ir import Attribute, Block, Operation, SSAValue

from gradir.dialects import nd
from gradir.dialects.types import Dim, element_of, is_bool, rank_of, shape_of, tensor
from gradir.frontends.stablehlo.attributes import Numbers
from gradir.frontends.stablehlo.conversion import Conversion, Rule, UnsupportedError, Values, is_return, reshape, transpose
from gradir.frontends.stablehlo.dialect import attribute, numbers
from gradir.frontends.stablehlo.reductions import known_op
from gradir.frontends.stablehlo.regions import converted


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
    return [gathered(conversion, op, operand, indices, numbers(op, "slice_sizes") or ())]


def dynamic_gather(conversion: Conversion, op: Operation) -> Values:
    """The same with slice sizes that an operand holds."""
    operand, indices, _ = conversion.operands(op)
    sizes = conversion.dynamic.symbolic.sizes(op.operands[2]) if conversion.dynamic is not None else [None]
    return [gathered(conversion, op, operand, indices, sizes)]


def gathered(conversion: Conversion, op: Operation, operand: SSAValue, indices: SSAValue, sizes: Sequence[Dim]) -> SSAValue:
    """The gather `op` of these values."""
    dims = _dimension_numbers(op, "dimension_numbers")
    rank = rank_of(op.results[0])
    offsets = dims.numbers("offset_dims")
    vectors = _index_vectors(conversion, indices, dims.number("index_vector_dim"))
    axis = _taken_axis(dims, sizes, shape_of(operand))
    if axis is not None:
        taken = conversion.emit(nd.GatherOp.make(operand, _scalar_vectors(conversion, vectors), axis))
        batch = [d for d in range(rank) if d not in offsets]
        order = [*offsets[:axis], *batch, *offsets[axis:]]  # where each dimension of `taken` goes
        return transpose(conversion, taken, [order.index(d) for d in range(rank)])
    if rank_of(vectors) == 1 and not dims.numbers("operand_batching_dims"):
        kept = [size for d, size in enumerate(sizes) if d not in dims.numbers("collapsed_slice_dims")]
        return _one_slice(conversion, operand, vectors, dims.numbers("start_index_map"), sizes, kept)
    if not all(isinstance(size, int) for size in sizes):
        raise UnsupportedError(f"slices of run-time sizes {list(sizes)} at several places")
    made = nd.GatherGeneralOp.make(
        operand,
        vectors,
        cast("Sequence[int]", sizes),
        offset=offsets,
        collapsed=dims.numbers("collapsed_slice_dims"),
        operand_batch=dims.numbers("operand_batching_dims"),
        indices_batch=_without(dims.numbers("start_indices_batching_dims"), dims.number("index_vector_dim")),
        map=dims.numbers("start_index_map"),
    )
    return conversion.emit(made)


def _without(dims: Sequence[int], vector_dim: int) -> list[int]:
    """Dimensions of the indices as they are when the index vectors are last."""
    return [d - (d > vector_dim) for d in dims]


def _dimension_numbers(op: Operation, name: str) -> Numbers:
    found = attribute(op, name)
    if not isinstance(found, Numbers):
        raise UnsupportedError(f"{name} are not in the form #stablehlo.{op.name.partition('.')[2]}<..>")
    return found


def _index_vectors(conversion: Conversion, indices: SSAValue, vector_dim: int) -> SSAValue:
    """The indices with their vectors along a last dimension."""
    rank = rank_of(indices)
    if vector_dim == rank:
        return reshape(conversion, indices, [*shape_of(indices), 1])
    return transpose(conversion, indices, [*(d for d in range(rank) if d != vector_dim), vector_dim])


def _scalar_vectors(conversion: Conversion, vectors: SSAValue) -> SSAValue:
    return reshape(conversion, vectors, shape_of(vectors)[:-1])


def _taken_axis(dims: Numbers, sizes: Sequence[Dim], shape: Sequence[Dim]) -> int | None:
    """The axis along which whole rows are taken, if the gather does that."""
    mapped = dims.numbers("start_index_map")
    if len(mapped) != 1 or dims.numbers("operand_batching_dims") or dims.numbers("collapsed_slice_dims") != mapped:
        return None
    (axis,) = mapped
    whole = all(size == n for d, (size, n) in enumerate(zip(sizes, shape)) if d != axis)
    return axis if whole and sizes[axis] == 1 else None


def _one_slice(
    conversion: Conversion, operand: SSAValue, vector: SSAValue, mapped: Sequence[int], sizes: Sequence[Dim], shape: Sequence[Dim]
) -> SSAValue:
    """One index vector, one slice."""
    zero = conversion.constant(0, tensor(element_of(vector)))
    starts = [zero] * len(sizes)
    for k, d in enumerate(mapped):
        starts[d] = reshape(conversion, conversion.emit(nd.SliceOp.make(vector, [k], [k + 1])), [])
    found = conversion.emit(nd.DynamicSliceOp.make(operand, starts, sizes)) if sizes else operand
    return reshape(conversion, found, shape)  # offset dimensions keep their order


# -- scatter


KINDS = {"stablehlo.add": "add", "stablehlo.multiply": "mul", "stablehlo.minimum": "min", "stablehlo.maximum": "max"}


def scatter(conversion: Conversion, op: Operation) -> Values:
    """The operands with every update combined into its place; what lies outside is dropped, element by element."""
    operands = conversion.operands(op)
    count = len(operands) // 2
    inputs, indices, updates = operands[:count], operands[count], operands[count + 1 :]
    dims = _dimension_numbers(op, "scatter_dimension_numbers")
    vectors = _index_vectors(conversion, indices, dims.number("index_vector_dim"))
    kind = _kind(op.regions[0].block, element_of(inputs[0]))
    window = dims.numbers("update_window_dims")
    axis = _added_axis(dims, shape_of(inputs[0]), shape_of(updates[0])) if kind == "add" else None
    if axis is not None:
        batch = [d for d in range(rank_of(updates[0])) if d not in window]
        rows = transpose(conversion, updates[0], [*window[:axis], *batch, *window[axis:]])
        return [conversion.emit(nd.ScatterAddOp.make(inputs[0], _scalar_vectors(conversion, vectors), rows, axis))]
    made = nd.ScatterGeneralOp.make(
        kind,
        inputs,
        vectors,
        updates,
        window=window,
        inserted=dims.numbers("inserted_window_dims"),
        operand_batch=dims.numbers("input_batching_dims"),
        indices_batch=_without(dims.numbers("scatter_indices_batching_dims"), dims.number("index_vector_dim")),
        map=dims.numbers("scatter_dims_to_operand_dims"),
        combiner=converted(conversion, op.regions[0].block) if kind == "region" else None,
    )
    conversion.emit(made)
    return made.results


def _kind(body: Block, element: Attribute) -> str:
    """The combiner of level 1 that the body is."""
    only = body.first_op
    count = len(body.args) // 2
    if only is not None and is_return(only) and list(only.operands) == list(body.args[count:]):
        return "set"
    return KINDS.get(known_op(body), "region") if count == 1 and not is_bool(element) else "region"


def _added_axis(dims: Numbers, shape: Sequence[Dim], updates: Sequence[Dim]) -> int | None:
    """The axis along which whole rows are added, if the scatter does that."""
    mapped = dims.numbers("scatter_dims_to_operand_dims")
    if len(mapped) != 1 or dims.numbers("input_batching_dims") or dims.numbers("inserted_window_dims") != mapped:
        return None
    (axis,) = mapped
    rows = [n for d, n in enumerate(shape) if d != axis]
    return axis if rows == [updates[d] for d in dims.numbers("update_window_dims")] else None


RULES: dict[str, Rule] = {
    "stablehlo.dynamic_gather": dynamic_gather,
    "stablehlo.dynamic_slice": dynamic_slice,
    "stablehlo.dynamic_update_slice": dynamic_update_slice,
    "stablehlo.gather": gather,
    "stablehlo.scatter": scatter,
}
