"""Gather, scatter, dynamic slices: starts are clamped and updates outside dropped on both sides."""

from __future__ import annotations

from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute

from gradir.dialects import nd
from gradir.dialects.types import is_unsigned, tensor
from gradir.frontends.stablehlo.export.writer import ExportRule, Value, Values, Writer, i64s, kind_of


def gather(w: Writer, op: nd.GatherOp, operands: Values) -> Values:
    """Rows along one dimension."""
    x, indices = operands
    dim, result = op.number("dim"), kind_of(op.result.type)
    offsets = [d if d < dim else d + indices.rank for d in range(x.rank - 1)]
    sizes = [1 if d == dim else n for d, n in enumerate(x.shape)]
    if 0 in result.get_shape():  # of a dimension of size 0 not even an empty slice can be taken
        return [w.constant(0, x.element, result.get_shape())]
    dims = f"offset_dims = {offsets}, collapsed_slice_dims = [{dim}], start_index_map = [{dim}], index_vector_dim = {indices.rank}"
    attributes = f"dimension_numbers = #stablehlo.gather<{dims}>, slice_sizes = {i64s(sizes)}, indices_are_sorted = false"
    return [w.one("stablehlo.gather", operands, result, attributes)]


def scatter_add(w: Writer, op: nd.ScatterAddOp, operands: Values) -> Values:
    """Rows added along one dimension."""
    x, indices, updates = operands
    dim = op.number("dim")
    window = [d for d in range(updates.rank) if not dim <= d < dim + indices.rank]
    dims = (
        f"update_window_dims = {window}, inserted_window_dims = [{dim}], scatter_dims_to_operand_dims = [{dim}], "
        f"index_vector_dim = {indices.rank}"
    )
    attributes = f"scatter_dimension_numbers = #stablehlo.scatter<{dims}>, indices_are_sorted = false, unique_indices = false"
    return [w.one("stablehlo.scatter", operands, x.type, attributes, [w.applied("stablehlo.add", x.element)])]


def _starts(w: Writer, starts: Values) -> list[Value]:
    """Starts of one integer type."""
    kinds: set[Attribute] = {start.element for start in starts}
    if len(kinds) < 2:
        return list(starts)
    return [_wide(w, start) for start in starts]


def _wide(w: Writer, start: Value) -> Value:
    if is_unsigned(start.element) and start.element.width.data == 64:  # pyright: ignore[reportAttributeAccessIssue]  an integer type
        start = w.binary("stablehlo.minimum", start, w.like((1 << 63) - 1, start))
    return w.convert(start, i64)


def dynamic_slice(w: Writer, op: nd.DynamicSliceOp, operands: Values) -> Values:
    """`operand[s : s + sizes]`"""
    x, *starts = operands
    if not starts:
        return [x]
    return [
        w.one("stablehlo.dynamic_slice", [x, *_starts(w, starts)], kind_of(op.result.type), f"slice_sizes = {i64s(op.numbers('sizes'))}")
    ]


def dynamic_update_slice(w: Writer, op: nd.DynamicUpdateSliceOp, operands: Values) -> Values:
    """`operand` with `operand[s + i] = update[i]`"""
    x, update, *starts = operands
    return [w.one("stablehlo.dynamic_update_slice", [x, update, *_starts(w, starts)], x.type) if starts else update]


def _at(w: Writer, x: Value, at: Value, dim: int) -> list[Value]:
    zero = w.constant(0, at.element)
    return [at if d == dim else zero for d in range(x.rank)]


def index_at(w: Writer, op: nd.IndexAtOp, operands: Values) -> Values:
    """The slice at one index of a dimension."""
    x, at = operands
    dim = op.number("dim")
    sizes = [1 if d == dim else n for d, n in enumerate(x.shape)]
    taken = w.one("stablehlo.dynamic_slice", [x, *_at(w, x, at, dim)], tensor(x.element, sizes), f"slice_sizes = {i64s(sizes)}")
    return [w.reshape(taken, kind_of(op.result.type).get_shape())]


def update_at(w: Writer, op: nd.UpdateAtOp, operands: Values) -> Values:
    """The slice at one index of a dimension replaced."""
    value, x, at = operands
    dim = op.number("dim")
    row = w.reshape(value, [1 if d == dim else n for d, n in enumerate(x.shape)])
    return [w.one("stablehlo.dynamic_update_slice", [x, row, *_at(w, x, at, dim)], x.type)]


RULES: dict[str, ExportRule] = {
    "nd.gather": gather,
    "nd.scatter_add": scatter_add,
    "nd.dynamic_slice": dynamic_slice,
    "nd.dynamic_update_slice": dynamic_update_slice,
    "nd.index_at": index_at,
    "nd.update_at": update_at,
}
