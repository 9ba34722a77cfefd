"""Windows: reduce_window and select_and_scatter."""

from __future__ import annotations

from collections.abc import Sequence

from gradir.dialects import nd
from gradir.dialects.types import tensor
from gradir.frontends.stablehlo.export.reductions import identity
from gradir.frontends.stablehlo.export.writer import ExportRule, Values, Writer, i64s, kind_of

KINDS = {
    "sum": "stablehlo.add",
    "prod": "stablehlo.multiply",
    "max": "stablehlo.maximum",
    "min": "stablehlo.minimum",
    "and": "stablehlo.and",
    "or": "stablehlo.or",
}


def padding_text(numbers: Sequence[int]) -> str:
    """Low and high per dimension, as `padding` spells them."""
    rows = ", ".join(f"[{numbers[2 * d]}, {numbers[2 * d + 1]}]" for d in range(len(numbers) // 2))
    return f"dense<[{rows}]> : tensor<{len(numbers) // 2}x2xi64>"


def reduce_window(w: Writer, op: nd.ReduceWindowOp, operands: Values) -> Values:
    """Every kind of window, from its identity."""
    (x,) = operands
    name = KINDS[op.kind.data.value]
    attributes = [
        f"window_dimensions = {i64s(op.numbers('window'))}",
        f"window_strides = {i64s(op.numbers('strides'))}",
        f"window_dilations = {i64s(op.numbers('dilations'))}",
        *([f"padding = {padding_text(op.numbers('padding'))}"] if x.rank else []),
    ]
    start = w.constant(identity(name, x.element), x.element)
    body = w.applied(name, x.element)
    return [w.one("stablehlo.reduce_window", [x, start], kind_of(op.result.type), ", ".join(attributes), [body])]


def select_and_scatter(w: Writer, op: nd.SelectAndScatterOp, operands: Values) -> Values:
    """Each element of the source goes to the first maximal element of its window."""
    x, source = operands
    scalar = tensor(x.element)
    start = w.constant(0, x.element)
    select = w.region([scalar, scalar], lambda pair: [w.compare("GE", pair[0], pair[1])])
    add = w.applied("stablehlo.add", x.element)
    attributes = [
        f"window_dimensions = {i64s(op.numbers('window'))}",
        f"window_strides = {i64s(op.numbers('strides'))}",
        *([f"padding = {padding_text(op.numbers('padding'))}"] if x.rank else []),
    ]
    return [w.one("stablehlo.select_and_scatter", [x, source, start], x.type, ", ".join(attributes), [select, add])]


RULES: dict[str, ExportRule] = {"nd.reduce_window": reduce_window, "nd.select_and_scatter": select_and_scatter}
