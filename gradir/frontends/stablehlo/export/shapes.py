"""Constants, iota and ops that move elements by static rules."""

from __future__ import annotations

from typing import Any

from gradir.dialects import nd
from gradir.dialects.nd.shape import TO_END
from gradir.dialects.types import element_of, is_bool, rank_of, static_shape, tensor
from gradir.frontends.stablehlo.conversion import UnsupportedError
from gradir.frontends.stablehlo.export.writer import ExportRule, Values, Writer, i64s, kind_of, list_text, type_text


def constant(w: Writer, op: nd.ConstantOp, operands: Values) -> Values:
    """The elements, bit by bit."""
    kind = kind_of(op.result.type)
    value = op.splat_value
    if value is not None and 0 not in static_shape(kind):
        return [w.constant(value, element_of(kind), static_shape(kind))]
    return [w.array(op.evaluate(), kind)]


def iota(w: Writer, op: nd.IotaOp, operands: Values) -> Values:
    """Positions along one dimension."""
    kind = kind_of(op.result.type)
    if is_bool(element_of(kind)):
        raise UnsupportedError("iota of i1")
    return [w.short(f"stablehlo.iota dim = {op.number('dim')}", kind)]


def empty(w: Writer, op: nd.EmptyOp, operands: Values) -> Values:
    """Elements that nobody reads: zeros."""
    kind = kind_of(op.result.type)
    return [w.constant(0, element_of(kind), static_shape(kind))]


def reshape(w: Writer, op: nd.ReshapeOp, operands: Values) -> Values:
    """The same elements in row-major order."""
    return [w.reshape(operands[0], static_shape(op.result))]


def transpose(w: Writer, op: nd.TransposeOp, operands: Values) -> Values:
    """Result dim i is operand dim perm[i]."""
    return [w.transpose(operands[0], op.numbers("perm"))]


def broadcast(w: Writer, op: nd.BroadcastOp, operands: Values) -> Values:
    """Operand dim k is result dim dims[k]."""
    return [w.broadcast(operands[0], op.numbers("dims"), static_shape(op.result))]


def slice_op(w: Writer, op: nd.SliceOp, operands: Values) -> Values:
    """`operand[start:limit:stride]`; a limit `TO_END` is the size."""
    limits = [size if limit == TO_END else limit for limit, size in zip(op.numbers("limit"), operands[0].shape)]
    return [w.slice(operands[0], op.numbers("start"), limits, op.numbers("stride"))]


def pad(w: Writer, op: nd.PadOp, operands: Values) -> Values:
    """Padding at the edges and between elements; negative padding removes."""
    low, high, interior = (list(op.numbers(name)) for name in ("low", "high", "interior"))
    result = kind_of(op.result.type)
    text = f"stablehlo.pad {operands[0].name}, {operands[1].name}, low = {low}, high = {high}, interior = {interior}"
    return [w.short(text, result, f"({list_text(v.type for v in operands)}) -> {type_text(result)}")]


def concatenate(w: Writer, op: nd.ConcatenateOp, operands: Values) -> Values:
    """One after the other along a dimension."""
    return [w.one("stablehlo.concatenate", operands, kind_of(op.result.type), f"dimension = {op.number('dim')} : i64")]


def reverse(w: Writer, op: nd.ReverseOp, operands: Values) -> Values:
    """Back to front along some dimensions."""
    return [w.one("stablehlo.reverse", operands, operands[0].type, f"dimensions = {i64s(op.numbers('dims'))}")]


def extract(w: Writer, op: Any, operands: Values) -> Values:
    """`tensor.extract`: one element, as a tensor of rank 0."""
    source, *at = operands
    if not at:
        return [source]
    sizes = [1] * source.rank
    found = w.one("stablehlo.dynamic_slice", operands, tensor(source.element, sizes), f"slice_sizes = {i64s(sizes)}")
    return [w.reshape(found, ())]


def from_elements(w: Writer, op: Any, operands: Values) -> Values:
    """`tensor.from_elements`: scalars in row-major order."""
    kind = kind_of(op.results[0].type)
    rows = [w.reshape(value, (1,)) for value in operands] if rank_of(kind) else [w.reshape(operands[0], ())]
    if len(rows) > 1:
        rows = [w.one("stablehlo.concatenate", rows, tensor(element_of(kind), [len(rows)]), "dimension = 0 : i64")]
    return [w.reshape(rows[0], static_shape(kind))]


RULES: dict[str, ExportRule] = {
    "nd.constant": constant,
    "nd.iota": iota,
    "nd.empty": empty,
    "nd.reshape": reshape,
    "nd.transpose": transpose,
    "nd.broadcast": broadcast,
    "nd.slice": slice_op,
    "nd.pad": pad,
    "nd.concatenate": concatenate,
    "nd.reverse": reverse,
    "tensor.extract": extract,
    "tensor.from_elements": from_elements,
}
