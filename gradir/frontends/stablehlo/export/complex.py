"""Complex numbers from their parts and back."""

from __future__ import annotations

from typing import Any

from gradir.frontends.stablehlo.export.composites import expands
from gradir.frontends.stablehlo.export.writer import ExportRule, Values, Writer, kind_of


def _direct(name: str) -> ExportRule:
    return lambda w, op, operands: [w.one(name, operands, kind_of(op.result.type))]


def conj(w: Writer, op: Any, operands: Values) -> Values:
    """`real x - i * imag x`"""
    (x,) = operands
    part = kind_of(w.part_of(x))
    real, imag = (w.one(f"stablehlo.{name}", [x], part) for name in ("real", "imag"))
    return [w.one("stablehlo.complex", [real, w.unary("stablehlo.negate", imag)], x.type)]


RULES: dict[str, ExportRule] = {
    "nd.real": _direct("stablehlo.real"),
    "nd.imag": _direct("stablehlo.imag"),
    "nd.complex": _direct("stablehlo.complex"),
    "nd.conj": expands(conj),
}
