"""Elementwise ops: nearly all are one op of StableHLO or CHLO; the others are composites."""

from __future__ import annotations

from typing import Any

from gradir.dialects import nd
from gradir.dialects.nd.saturation import saturated
from gradir.dialects.types import element_of, is_inexact
from gradir.frontends.stablehlo import elementwise as importer
from gradir.frontends.stablehlo.export.composites import by_ops, expands
from gradir.frontends.stablehlo.export.writer import ExportRule, Values, Writer, direct, kind_of

PREFERRED = {"nd.tan": "stablehlo.tan"}
"""Where the importer reads two names as one op, the one to write."""

UNARY: dict[str, str] = {kind.name: name for name, kind in importer.UNARY.items()} | PREFERRED
BINARY: dict[str, str] = {kind.name: name for name, kind in importer.BINARY.items()}
"""Op -> its name in StableHLO: the importer's tables, read backwards."""


def _elementwise(name: str) -> ExportRule:
    """One op on operands of one type; of CHLO only the generic form is stable."""

    def write(w: Writer, op: Any, operands: Values) -> Values:
        result = kind_of(op.results[0].type)
        if name.startswith("chlo.") or result != operands[0].type:
            return [w.one(name, operands, result)]
        return [w.short(f"{name} {', '.join(value.name for value in operands)}", result)]

    return write


_SATURATING = expands(by_ops(lambda op, builder, operands: [saturated(op, builder, operands[0])]))


def convert(w: Writer, op: nd.ConvertOp, operands: Values) -> Values:
    """A cast; one that saturates keeps its name."""
    if op.saturates:
        return _SATURATING(w, op, operands)
    return [w.convert(operands[0], element_of(op.result))]


def compare(w: Writer, op: nd.CompareOp, operands: Values) -> Values:
    """`lhs DIRECTION rhs`, with IEEE comparison."""
    lhs, rhs = operands
    return [w.compare(op.direction.data.value.upper(), lhs, rhs)]


def select(w: Writer, op: nd.SelectOp, operands: Values) -> Values:
    """`on_true if pred else on_false`"""
    return [w.select(*operands)]


def clamp(w: Writer, op: nd.ClampOp, operands: Values) -> Values:
    """`min(max(x, lo), hi)`"""
    return [w.one("stablehlo.clamp", operands, operands[1].type)]


def is_nan(w: Writer, op: nd.IsNanOp, operands: Values) -> Values:
    """`x != x`"""
    return [w.compare("NE", operands[0], operands[0])]


def identity(w: Writer, op: Any, operands: Values) -> Values:
    """The operand: `ad.stop_gradient` is about derivatives alone."""
    return operands


# -- composites


def relu(w: Writer, op: Any, operands: Values) -> Values:
    """`max(x, 0)`"""
    return [w.binary("stablehlo.maximum", operands[0], w.like(0, operands[0]))]


def trunc(w: Writer, op: Any, operands: Values) -> Values:
    """`ceil(x) if x < 0 else floor(x)`"""
    (x,) = operands
    negative = w.compare("LT", x, w.like(0, x))
    return [w.select(negative, w.unary("stablehlo.ceil", x), w.unary("stablehlo.floor", x))]


def mul_strong(w: Writer, op: Any, operands: Values) -> Values:
    """`0 if x == 0 or y == 0 else x * y`"""
    product = w.binary("stablehlo.multiply", *operands)
    if not is_inexact(product.element):
        return [product]
    zero = w.like(0, product)
    x, y = (w.compare("EQ", operand, zero) for operand in operands)
    return [w.select(w.binary("stablehlo.or", x, y), zero, product)]


def trigamma(w: Writer, op: Any, operands: Values) -> Values:
    """The first polygamma function."""
    (x,) = operands
    return [w.one("chlo.polygamma", [w.like(1, x), x], x.type)]


def fma(w: Writer, op: Any, operands: Values) -> Values:
    """`x * y + z`; StableHLO has no way to round once."""
    x, y, z = operands
    return [w.binary("stablehlo.add", w.binary("stablehlo.multiply", x, y), z)]


RULES: dict[str, ExportRule] = {
    **{op: _elementwise(name) for op, name in UNARY.items()},
    **{op: _elementwise(name) for op, name in BINARY.items()},
    "nd.is_finite": direct("stablehlo.is_finite"),
    "nd.is_inf": direct("chlo.is_inf"),
    "nd.convert": convert,
    "nd.compare": compare,
    "nd.select": select,
    "nd.clamp": clamp,
    "nd.is_nan": is_nan,
    "ad.stop_gradient": identity,
    "nd.trigamma": expands(trigamma),
    "nd.fma": expands(fma),
    "nd.relu": expands(relu),
    "nd.trunc": expands(trunc),
    "nd.mul_strong": expands(mul_strong),
}
