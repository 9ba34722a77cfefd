"""Reductions, argmax and argmin as JAX spells them, cumulative ops as composites over windows."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute

from gradir.dialects import nd
from gradir.dialects.types import is_bool, is_float, numpy_dtype, tensor
from gradir.frontends.stablehlo.export.composites import expands
from gradir.frontends.stablehlo.export.writer import ExportRule, Value, Values, Writer, i64s, kind_of

LOGADDEXP = "logaddexp"
"""A combiner of several ops: `ln(e**x + e**y)`."""

REDUCTIONS: dict[str, str] = {
    "nd.reduce_sum": "stablehlo.add",
    "nd.reduce_prod": "stablehlo.multiply",
    "nd.reduce_max": "stablehlo.maximum",
    "nd.reduce_min": "stablehlo.minimum",
    "nd.reduce_any": "stablehlo.or",
    "nd.reduce_all": "stablehlo.and",
}
CUMULATIVE: dict[str, str] = {
    "nd.cumsum": "stablehlo.add",
    "nd.cumprod": "stablehlo.multiply",
    "nd.cummax": "stablehlo.maximum",
    "nd.cummin": "stablehlo.minimum",
    "nd.cumlogsumexp": LOGADDEXP,
}


def identity(name: str, element: Attribute) -> Any:
    """The number that changes nothing when `name` combines it."""
    if name in ("stablehlo.add", "stablehlo.or"):
        return 0
    if name in ("stablehlo.multiply", "stablehlo.and"):
        return 1
    least = name in ("stablehlo.maximum", LOGADDEXP)
    if is_bool(element):
        return not least
    if is_float(element):
        return -np.inf if least else np.inf
    limits = np.iinfo(numpy_dtype(element))
    return limits.min if least else limits.max


def _reduction(name: str) -> ExportRule:
    def write(w: Writer, op: nd.Reduce, operands: Values) -> Values:
        (x,) = operands
        start = w.constant(identity(name, x.element), x.element)
        return [w.reduce(name, x, start, op.numbers("dims"), kind_of(op.result.type))]

    return write


def _arg(direction: str) -> ExportRule:
    """The greater (or smaller) value or a NaN wins, then the lower position."""

    def write(w: Writer, op: Any, operands: Values) -> Values:
        (x,) = operands
        result, dim = kind_of(op.result.type), op.number("dim")
        positions = w.short(f"stablehlo.iota dim = {dim}", tensor(result.element_type, x.shape))
        worst = w.constant(identity("stablehlo.maximum" if direction == "GT" else "stablehlo.minimum", x.element), x.element)
        zero = w.constant(0, positions.element)
        scalars = [worst.type, zero.type]
        body = w.region([*scalars, *scalars], lambda arguments: _better(w, direction, arguments))
        values = tensor(x.element, [n for d, n in enumerate(x.shape) if d != dim])
        found = w.op("stablehlo.reduce", [x, positions, worst, zero], [values, result], f"dimensions = array<i64: {dim}>", [body])
        return found[1:]

    return write


def _better(w: Writer, direction: str, arguments: Values) -> Values:
    x, i, y, j = arguments
    wins = w.binary("stablehlo.or", w.compare(direction, x, y), w.compare("NE", x, x))
    tie = w.binary("stablehlo.and", w.compare("EQ", x, y), w.compare("LT", i, j))
    first = w.binary("stablehlo.or", wins, tie)
    return [w.select(wins, x, y), w.select(first, i, j)]


def _cumulative(name: str) -> ExportRule:
    """Every window that ends at an element, in f32 at least; with `exclusive` before it, with `reverse` from the other side."""

    def write(w: Writer, op: nd.Cumulative, operands: Values) -> Values:
        (x,) = operands
        dim, size = op.number("dim"), x.shape[op.number("dim")]
        if not size:
            return [x]
        narrow = is_float(x.element) and numpy_dtype(x.element).itemsize < 4
        wide = w.convert(x, f32) if narrow else x
        start = w.constant(identity(name, wide.element), wide.element)
        one_sided = [size - 1, 0] if not op.number("reverse") else [0, size - 1]
        if op.number("exclusive"):
            wide = _shifted(w, wide, start, dim, back=bool(op.number("reverse")))
        rows = ", ".join(str(one_sided if d == dim else [0, 0]) for d in range(x.rank))
        window = [size if d == dim else 1 for d in range(x.rank)]
        attributes = f"window_dimensions = {i64s(window)}, padding = dense<[{rows}]> : tensor<{x.rank}x2xi64>"
        scalars = [start.type, start.type]
        body = w.region(scalars, lambda pair: [_logaddexp(w, *pair)]) if name == LOGADDEXP else w.applied(name, wide.element)
        return [w.convert(w.one("stablehlo.reduce_window", [wide, start], wide.type, attributes, [body]), x.element)]

    return write


def _logaddexp(w: Writer, x: Value, y: Value) -> Value:
    """`m + ln(1 + e**(least - m))`, m the greater; m itself where it is infinite."""
    most, least = w.binary("stablehlo.maximum", x, y), w.binary("stablehlo.minimum", x, y)
    rest = w.unary("stablehlo.log_plus_one", w.unary("stablehlo.exponential", w.binary("stablehlo.subtract", least, most)))
    infinite = w.compare("EQ", w.unary("stablehlo.abs", most), w.constant(np.inf, most.element))
    return w.select(infinite, most, w.binary("stablehlo.add", most, rest))


def _shifted(w: Writer, x: Value, start: Value, dim: int, *, back: bool) -> Value:
    """Each element's predecessor along `dim`, the identity before the first; `back`: the successor."""
    low, high = [0] * x.rank, [0] * x.rank
    low[dim], high[dim] = (-1, 1) if back else (1, -1)
    text = f"stablehlo.pad {x.name}, {start.name}, low = {low}, high = {high}, interior = {[0] * x.rank}"
    return w.short(text, x.type, f"({x.type}, {start.type}) -> {x.type}")


RULES: dict[str, ExportRule] = {
    **{op: _reduction(name) for op, name in REDUCTIONS.items()},
    **{op: expands(_cumulative(name)) for op, name in CUMULATIVE.items()},
    "nd.argmax": _arg("GT"),
    "nd.argmin": _arg("LT"),
}
