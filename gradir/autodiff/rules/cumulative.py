"""Derivatives of the cumulative ops. An extremum's cotangent goes to the first element that has it; products never divide."""

from __future__ import annotations

import math
from typing import Any

from xdsl.dialects.builtin import IntegerAttr, f32, i64
from xdsl.ir import SSAValue

from gradir import size_algebra
from gradir.autodiff.registry import Contribution, vjp
from gradir.autodiff.tensors import TensorBuilder, named_size
from gradir.dialects.nd import cumulative as nd
from gradir.dialects.nd.elementwise import ExpOp, MulStrongOp
from gradir.dialects.nd.indexing import ScatterAddOp
from gradir.dialects.text import flag_attr
from gradir.dialects.types import NARROW_CLASSES, element_of, i64_attr, shape_of, tensor

Rule = tuple[Contribution, ...]


def _scan(t: TensorBuilder, kind: type[nd.Cumulative], x: SSAValue, dim: int, reverse: bool, exclusive: bool) -> SSAValue:
    return t.emit(kind, [x], x.type, dim=i64_attr(dim), reverse=flag_attr(reverse), exclusive=flag_attr(exclusive))


@vjp(nd.CumsumOp)
def cumsum_vjp(t: TensorBuilder, op: nd.CumsumOp, ct: SSAValue) -> Rule:
    """d cumsum(x) = cumsum(dx): the cotangent is summed from the other side"""
    return (_scan(t, nd.CumsumOp, ct, op.number("dim"), not op.is_reverse, op.is_exclusive),)


class _Lines:
    """`x` and the cotangent as rows that are folded forwards, inclusively, in f32 at least; and the way back."""

    def __init__(self, t: TensorBuilder, op: nd.Cumulative, ct: SSAValue) -> None:
        self.t, self.op = t, op
        dim = op.number("dim")
        self.shape = tuple(named_size(op, op.operand, d) for d in range(len(shape_of(op.operand))))
        self.order = (*(k for k in range(len(self.shape)) if k != dim), dim)
        self.n = self.shape[dim]
        rows = size_algebra.product(self.shape[k] for k in self.order[:-1])
        assert rows is not None
        self.rows = rows
        narrow = element_of(op.operand)
        self.element = f32 if isinstance(narrow, NARROW_CLASSES) else narrow
        self.x = self._line(op.operand)
        line = self._line(ct)
        self.ct = t.pad(line, 0.0, (0, -1), (0, 1)) if op.is_exclusive else line  # result[i + 1] of the exclusive fold is that of i

    def _line(self, x: SSAValue) -> SSAValue:
        t = self.t
        flat = t.reshape(t.transpose(t.convert(x, self.element), self.order), (self.rows, self.n))
        return t.reverse(flat, (1,)) if self.op.is_reverse else flat

    def back(self, x: SSAValue) -> SSAValue:
        """Rows in the shape, order and type of the operand."""
        t = self.t
        x = t.reverse(x, (1,)) if self.op.is_reverse else x
        moved = t.reshape(x, [self.shape[k] for k in self.order])
        return t.convert(t.transpose(moved, [self.order.index(k) for k in range(len(self.order))]), element_of(self.op.operand))


class _Pairs:
    """(place j, fold i >= j) of every row, as [rows, n, n]: where a run-time n does not tell how often a recurrence doubles its reach."""

    def __init__(self, lines: _Lines) -> None:
        self.t, self.kind = lines.t, tensor(lines.element, (lines.rows, lines.n, lines.n))
        places = tensor(i64, (lines.rows, lines.n, lines.n))
        self.j, self.i = self.t.iota(places, 1), self.t.iota(places, 2)

    def by_place(self, x: SSAValue) -> SSAValue:
        """x[j] at (j, i)"""
        return self.t.broadcast(x, self.kind, (0, 1))

    def by_fold(self, x: SSAValue) -> SSAValue:
        """x[i] at (j, i)"""
        return self.t.broadcast(x, self.kind, (0, 2))

    def total(self, ct: SSAValue, slopes: SSAValue) -> SSAValue:
        """sum over i >= j of ct[i] slopes[j, i]"""
        t = self.t
        local = t.where(t.compare("ge", self.i, self.j), slopes)
        return t.sum(t.mul_strong(self.by_fold(ct), local), (2,))


@vjp(nd.CumprodOp)
def cumprod_vjp(t: TensorBuilder, op: nd.CumprodOp, ct: SSAValue) -> Rule:
    """d x_j = (prod_{k<j} x_k) s_j dx_j with s_j = ct_j + x_{j+1} s_{j+1}: no division.

    The recurrence doubles its reach each step (Hillis and Steele, 1986): log2(n) steps, never a loop over n. Where n is known at run time
    alone: d x_j = sum_{i>=j} ct_i (prod_{k<=i, k!=j} x_k) dx_j, n^2 products.
    """
    if 0 in shape_of(op.operand):
        return (t.zeros(op.operand.type),)
    lines = _Lines(t, op, ct)
    n = lines.n
    if not isinstance(n, int):
        pairs = _Pairs(lines)
        factors = t.select(t.compare("eq", pairs.i, pairs.j), t.full(1.0, pairs.kind), pairs.by_fold(lines.x))
        return (lines.back(pairs.total(lines.ct, _scan(t, nd.CumprodOp, factors, 2, False, False))),)

    def ahead(x: SSAValue, by: int) -> SSAValue:
        return t.pad(x, 0.0, (0, -by), (0, by))

    factor, s = ahead(lines.x, 1), lines.ct
    reach = 1
    while reach < n:
        s = t.add(s, t.mul_strong(factor, ahead(s, reach)))
        factor = t.binary(MulStrongOp, factor, ahead(factor, reach))
        reach *= 2
    return (lines.back(t.mul_strong(s, _scan(t, nd.CumprodOp, lines.x, 1, False, True))),)


@vjp(nd.CumlogsumexpOp)
def cumlogsumexp_vjp(t: TensorBuilder, op: nd.CumlogsumexpOp, ct: SSAValue) -> Rule:
    """d y_i = sum_{j<=i} e**(x_j - y_i) dx_j: dx_j = e**(x_j - y_j) r_j, r_j = ct_j + e**(y_j - y_{j+1}) r_{j+1}. No exponent is positive.

    The recurrence doubles its reach each step, as that of `cumprod_vjp`; at a run-time n the sum is taken as it is written. Where all so
    far is -inf the derivative is 0.
    """
    if 0 in shape_of(op.operand):
        return (t.zeros(op.operand.type),)
    lines = _Lines(t, op, ct)
    n = lines.n
    y = _scan(t, nd.CumlogsumexpOp, lines.x, 1, False, False)
    nothing = t.compare("eq", y, t.full_like(-math.inf, y))
    if not isinstance(n, int):
        pairs = _Pairs(lines)
        logs = t.select(nothing, t.full_like(math.inf, y), y)  # e**(x - inf) = 0
        slopes = t.unary(ExpOp, t.sub(pairs.by_place(lines.x), pairs.by_fold(logs)))
        return (lines.back(pairs.total(lines.ct, slopes)),)

    def ahead(x: SSAValue, by: int, fill: float = 0.0) -> SSAValue:
        return t.pad(x, fill, (0, -by), (0, by))

    def weight(log: SSAValue) -> SSAValue:
        return t.select(nothing, t.zeros(log.type), t.unary(ExpOp, log))

    factor, r = weight(t.sub(y, ahead(y, 1, math.inf))), lines.ct
    reach = 1
    while reach < n:
        r = t.add(r, t.mul_strong(factor, ahead(r, reach)))
        factor = t.mul_strong(factor, ahead(factor, reach))
        reach *= 2
    return (lines.back(t.mul_strong(weight(t.sub(lines.x, y)), r)),)


def _extremum_vjp(direction: str) -> Any:
    def rule(t: TensorBuilder, op: nd.Cumulative, ct: SSAValue) -> Rule:
        """ct_i goes to the place where the extremum of the first i elements was met first; a NaN counts as the extremum"""
        if 0 in shape_of(op.operand):
            return (t.zeros(op.operand.type),)
        lines = _Lines(t, op, ct)
        x, rows, n = lines.x, lines.rows, lines.n
        places = tensor(i64, (rows, n))
        column = t.iota(places, 1)
        before = _scan(t, type(op), x, 1, False, True)
        fresh = t.logical_and(t.is_nan(x), t.logical_not(t.is_nan(before)))
        better = t.logical_or(t.compare(direction, x, before), fresh)
        starts = t.logical_or(better, t.compare("eq", column, t.zeros(places)))
        winner = _scan(t, nd.CummaxOp, t.where(starts, column), 1, False, False)
        linear = t.add(winner, t.mul(t.iota(places, 0), t.full_size(n, places)))
        size = (size_algebra.times(rows, n),)
        into = t.zeros(tensor(lines.element, size))
        moved = t.emit(ScatterAddOp, [into, t.reshape(linear, size), t.reshape(lines.ct, size)], into.type, dim=IntegerAttr(0, i64))
        return (lines.back(t.reshape(moved, shape_of(x))),)

    return rule


vjp(nd.CummaxOp)(_extremum_vjp("gt"))
vjp(nd.CumminOp)(_extremum_vjp("lt"))
