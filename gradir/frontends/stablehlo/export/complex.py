"""Complex numbers from their parts and back."""

from __future__ import annotations

from typing import Any

from gradir.frontends.stablehlo.export.composites import expands
from gradir.frontends.stablehlo.export.writer import ExportRule, Values, Writer, direct, kind_of


def conj(w: Writer, op: Any, operands: Values) -> Values:
    """`real x - i * imag x`"""
    (x,) = operands
    part = kind_of(w.part_of(x))
    real, imag = (w.one(f"stablehlo.{name}", [x], part) for name in ("real", "imag"))
    return [w.one("stablehlo.complex", [real, w.unary("stablehlo.negate", imag)], x.type)]


RULES: dict[str, ExportRule] = {
    "nd.real": direct("stablehlo.real"),
    "nd.imag": direct("stablehlo.imag"),
    "nd.complex": direct("stablehlo.complex"),
    "nd.conj": expands(conj),
}
