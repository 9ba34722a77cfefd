"""Formulas inside a loop nest: `Formula` overloads Python's operators and emits scalar ops of arith and math through `Scalars`.

What `expand_math.algebra` is at level 4, for functions that upstream's math dialect lacks and that are spelled out at level 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import f64
from xdsl.ir import Operation, SSAValue

from gradir.dialects.upstream import arith, math
from gradir.lowering.convert_nd_to_linalg.scalars import Body, Scalars

Term: TypeAlias = "Formula | float"


class Condition:
    """An i1 value."""

    __slots__ = ("s", "value")

    def __init__(self, s: Scalars, value: SSAValue) -> None:
        self.s, self.value = s, value

    def __and__(self, other: Condition) -> Condition:
        return Condition(self.s, self.s.i(arith.AndIOp, self.value, other.value))

    def __or__(self, other: Condition) -> Condition:
        return Condition(self.s, self.s.i(arith.OrIOp, self.value, other.value))

    def select(self, yes: Term, no: Term) -> Formula:
        """Where it holds `yes`, else `no`; one of them is a formula."""
        like = yes if isinstance(yes, Formula) else no
        assert isinstance(like, Formula)
        return Formula(self.s, self.s.select(self.value, like.of(yes).value, like.of(no).value))


class Formula:
    """A float value; Python numbers become constants of its type."""

    __slots__ = ("s", "value")

    def __init__(self, s: Scalars, value: SSAValue) -> None:
        self.s, self.value = s, value

    def of(self, other: Term) -> Formula:
        """`other` as a formula of this one's type."""
        return other if isinstance(other, Formula) else Formula(self.s, self.s.like(other, self.value))

    def op(self, kind: type[Operation], *others: Term) -> Formula:
        """A float op on this and others."""
        return Formula(self.s, self.s.f(kind, self.value, *(self.of(other).value for other in others)))

    def __add__(self, other: Term) -> Formula:
        return self.op(arith.AddfOp, other)

    def __sub__(self, other: Term) -> Formula:
        return self.op(arith.SubfOp, other)

    def __rsub__(self, other: float) -> Formula:
        return self.of(other) - self

    def __mul__(self, other: Term) -> Formula:
        return self.op(arith.MulfOp, other)

    def __truediv__(self, other: Term) -> Formula:
        return self.op(arith.DivfOp, other)

    def __rtruediv__(self, other: float) -> Formula:
        return self.of(other) / self

    def __neg__(self) -> Formula:
        return self.op(arith.NegfOp)

    def __abs__(self) -> Formula:
        return self.op(math.AbsFOp)

    def fma(self, factor: Term, addend: Term) -> Formula:
        """self * factor + addend, rounded once."""
        return self.op(math.FmaOp, factor, addend)

    def polynomial(self, coefficients: Sequence[float]) -> Formula:
        """Horner's rule, highest power first."""
        result = self.of(coefficients[0])
        for c in coefficients[1:]:
            result = result.fma(self, c)
        return result

    def chebyshev(self, coefficients: Sequence[float]) -> Formula:
        """The sum of c[k] T_k of this, by Clenshaw's recurrence, lowest first."""
        first, *middle, last = coefficients
        twice, b1 = self + self, self.of(last)
        b2: Term = 0.0
        for c in reversed(middle):
            b1, b2 = twice.fma(b1, c - b2), b1
        return self.fma(b1, first - b2)

    def log(self) -> Formula:
        return self.op(math.LogOp)

    def sqrt(self) -> Formula:
        return self.op(math.SqrtOp)

    def floor(self) -> Formula:
        return self.op(math.FloorOp)

    def round_even(self) -> Formula:
        return self.op(math.RoundEvenOp)

    def copysign(self, sign: Formula) -> Formula:
        return self.op(math.CopySignOp, sign)

    def compare(self, predicate: str, other: Term) -> Condition:
        """`olt`, `oeq`, ...: a comparison of arith.cmpf."""
        return Condition(self.s, self.s.cmpf(predicate, self.value, self.of(other).value))

    def lt(self, other: Term) -> Condition:
        return self.compare("olt", other)

    def ge(self, other: Term) -> Condition:
        return self.compare("oge", other)

    def gt(self, other: Term) -> Condition:
        return self.compare("ogt", other)

    def eq(self, other: Term) -> Condition:
        return self.compare("oeq", other)


def in_f64(function: Callable[..., Formula]) -> Body:
    """The body that computes `function` of formulas in f64 and rounds its result to the operands' type."""

    def body(s: Scalars, *xs: SSAValue) -> SSAValue:
        kind = xs[0].type
        result = function(*(Formula(s, s.to(arith.ExtFOp, x, f64)) for x in xs))
        return s.to(arith.TruncFOp, result.value, kind)

    return body
