"""Index expressions of loop nests as sums `constant + sum_d factor_d * d`, and their values as index arithmetic.

`linear` gives None for what is no such sum (`floordiv`, `mod`); `value_of` writes any expression.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr

from gradir.dialects.upstream import arith
from gradir.ir.builder import Builder

INDEX = IndexType()


@dataclass(frozen=True)
class Linear:
    """`constant + sum_d factors[d] * d`; no factor is 0."""

    factors: Mapping[int, int]
    constant: int

    def plus(self, other: Linear, times: int = 1) -> Linear:
        """`self + times * other`"""
        factors = dict(self.factors)
        for d, c in other.factors.items():
            factors[d] = factors.get(d, 0) + times * c
        return Linear({d: c for d, c in factors.items() if c}, self.constant + times * other.constant)

    def only(self, dims: frozenset[int]) -> Linear:
        """The part in `dims`, without the constant."""
        return Linear({d: c for d, c in self.factors.items() if d in dims}, 0)

    def expression(self) -> AffineExpr:
        """As an affine expression."""
        total: AffineExpr | None = None
        for d, c in sorted(self.factors.items()):
            term: AffineExpr = AffineDimExpr(d) if c == 1 else AffineDimExpr(d) * c
            total = term if total is None else total + term
        if total is None:
            return AffineConstantExpr(self.constant)
        return total + self.constant if self.constant else total

    @property
    def single(self) -> tuple[int, int] | None:
        """(d, factor) where one dimension occurs."""
        return next(iter(self.factors.items())) if len(self.factors) == 1 else None


def linear(expr: AffineExpr) -> Linear | None:
    """The sum that an expression is."""
    if isinstance(expr, AffineConstantExpr):
        return Linear({}, expr.value)
    if isinstance(expr, AffineDimExpr):
        return Linear({expr.position: 1}, 0)
    if not isinstance(expr, AffineBinaryOpExpr):
        return None
    lhs, rhs = linear(expr.lhs), linear(expr.rhs)
    if lhs is None or rhs is None:
        return None
    if expr.kind == AffineBinaryOpKind.Add:
        return lhs.plus(rhs)
    if expr.kind == AffineBinaryOpKind.Mul and (not lhs.factors or not rhs.factors):
        number, rest = (lhs.constant, rhs) if not lhs.factors else (rhs.constant, lhs)
        return Linear({}, 0).plus(rest, number)
    return None


def dims_in(expr: AffineExpr) -> frozenset[int]:
    """The dimensions that occur in an expression."""
    if isinstance(expr, AffineDimExpr):
        return frozenset({expr.position})
    if isinstance(expr, AffineBinaryOpExpr):
        return dims_in(expr.lhs) | dims_in(expr.rhs)
    return frozenset()


_ARITHMETIC: Mapping[AffineBinaryOpKind, type[Operation]] = {
    AffineBinaryOpKind.Add: arith.AddiOp,
    AffineBinaryOpKind.Mul: arith.MuliOp,
    AffineBinaryOpKind.FloorDiv: arith.FloorDivSIOp,
    AffineBinaryOpKind.CeilDiv: arith.CeilDivSIOp,
}


def index(builder: Builder, n: int | SSAValue) -> SSAValue:
    """A number as a constant index; an index value is itself."""
    return builder(arith.ConstantOp, [], [INDEX], {"value": IntegerAttr(n, INDEX)}) if isinstance(n, int) else n


def value_of(builder: Builder, expr: AffineExpr, dims: Mapping[int, SSAValue]) -> int | SSAValue:
    """The expression for these values of its dimensions; a number where none occurs."""
    if isinstance(expr, AffineConstantExpr):
        return expr.value
    if isinstance(expr, AffineDimExpr):
        return dims[expr.position]
    assert isinstance(expr, AffineBinaryOpExpr), "maps of loop nests have no symbols"
    lhs, rhs = value_of(builder, expr.lhs, dims), value_of(builder, expr.rhs, dims)
    if isinstance(lhs, int) and isinstance(rhs, int):
        return expr.eval([], [])
    if expr.kind == AffineBinaryOpKind.Add and 0 in (lhs, rhs):
        return rhs if lhs == 0 else lhs
    if expr.kind == AffineBinaryOpKind.Mul and 1 in (lhs, rhs):
        return rhs if lhs == 1 else lhs
    x, y = index(builder, lhs), index(builder, rhs)
    if expr.kind == AffineBinaryOpKind.Mod:  # x >= 0: a coordinate
        return builder(arith.RemSIOp, [x, y], [INDEX])
    kind = _ARITHMETIC[expr.kind]
    flags = {"overflowFlags": arith.IntegerOverflowAttr("none")} if kind in (arith.AddiOp, arith.MuliOp) else {}
    return builder(kind, [x, y], [INDEX], flags)


def arithmetic(builder: Builder, kind: type[Operation], x: SSAValue, y: SSAValue) -> SSAValue:
    """`arith.addi`, `subi` or `muli` on index values."""
    return builder(kind, [x, y], [INDEX], {"overflowFlags": arith.IntegerOverflowAttr("none")})
