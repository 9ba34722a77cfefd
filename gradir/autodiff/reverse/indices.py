"""Index arithmetic of generated loops, and how often a loop runs."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.ir.core import OpResult

from gradir.autodiff.reverse.sweep import Sweep, Unit
from gradir.autodiff.tensors import INDEX
from gradir.dialects import nd
from gradir.dialects.upstream import arith
from gradir.ir.builder import Builder
from gradir.ir.structure import block_of
from gradir.size_algebra import Dim


def constant_index(value: SSAValue) -> int | None:
    """The integer behind an index value, if it is a constant."""
    if isinstance(value, OpResult) and isinstance(value.op, arith.ConstantOp) and isinstance(value.op.value, IntegerAttr):
        return value.op.value.value.data
    return None


class Indices:
    """Index arithmetic with constants folded as it is written."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def constant(self, n: int) -> SSAValue:
        value = self.builder(arith.ConstantOp, [], [INDEX], {"value": IntegerAttr(n, INDEX)})
        value.name_hint = f"c{n}" if n >= 0 else None
        return value

    def _binary(self, kind: type[Operation], x: SSAValue, y: SSAValue) -> SSAValue:
        return self.builder(kind, [x, y], [INDEX], {"overflowFlags": arith.IntegerOverflowAttr("none")})

    def add(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return x if constant_index(y) == 0 else self._binary(arith.AddiOp, x, y)

    def sub(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return x if constant_index(y) == 0 else self._binary(arith.SubiOp, x, y)

    def mul(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return x if constant_index(y) == 1 else self._binary(arith.MuliOp, x, y)

    def ceil_div(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return x if constant_index(y) == 1 else self.builder(arith.CeilDivSIOp, [x, y], [INDEX])

    def max0(self, x: SSAValue) -> SSAValue:
        return self.builder(arith.MaxSIOp, [x, self.constant(0)], [INDEX])


@dataclass(frozen=True)
class Trips:
    """How often the loop runs, `value`, and `size`, the entries of a stack of it: as many, or a bound on it that is known further out.

    `size` is a number where it is known, else a size symbol; `entries` is the same as an index value, made by `builder`.
    """

    size: int | str
    entries: SSAValue
    value: SSAValue
    lower: SSAValue
    step: SSAValue
    builder: Builder

    def position(self, at: Indices, induction: SSAValue) -> SSAValue:
        """Iteration number, from 0, of an induction value."""
        shifted = at.sub(induction, self.lower)
        return shifted if constant_index(self.step) == 1 else at.builder(arith.DivSIOp, [shifted, self.step], [INDEX])

    def induction(self, at: Indices, position: SSAValue) -> SSAValue:
        return at.add(at.mul(position, self.step), self.lower)


def count_trips(sweep: Sweep, lower: SSAValue, upper: SSAValue, step: SSAValue) -> Trips:
    """The trip count, computed as far out as its bounds allow, so that outer loops can stack what it sizes."""
    bounds = (lower, upper, step)
    known = [constant_index(v) for v in bounds]
    home = sweep
    varying = [v for v, k in zip(bounds, known) if k is None]
    while home.parent is not None and all(block_of(v) is not home.block for v in varying):
        home = home.parent
    at = Indices(home.builder)
    lower, upper, step = (v if k is None else at.constant(k) for v, k in zip(bounds, known))
    lo, hi, by = known
    if lo is not None and hi is not None and by is not None:
        n = max(0, -(-(hi - lo) // by))
        value = at.constant(n)
        return Trips(n, value, value, lower, step, home.builder)
    trips = at.ceil_div(at.max0(at.sub(upper, lower)), step)
    limit = _limit(upper)
    if limit is not None:  # at most as many as up to the limit
        most = count_trips(sweep, bounds[0], limit, bounds[2])
        return Trips(most.size, most.entries, trips, lower, step, most.builder)
    return Trips(bind_size(sweep.unit, home.builder, trips), trips, trips, lower, step, home.builder)


def most_trips(trips: Trips, upper: SSAValue) -> Dim:
    """A bound on the number of trips as far as sizes tell: the number itself, else the size that the loop runs to."""
    lower = constant_index(trips.lower)
    if (
        isinstance(trips.size, str)
        and lower is not None
        and lower >= 0
        and isinstance(upper, OpResult)
        and isinstance(upper.op, nd.SymbolOp)
    ):
        return upper.op.sym.data
    return trips.size


def _limit(upper: SSAValue) -> SSAValue | None:
    """A bound of `upper` that is a number, or known outside of the block that computes `upper`."""
    if not isinstance(upper, OpResult) or not isinstance(upper.op, arith.MinSIOp):
        return None
    found = [v for v in upper.op.operands if constant_index(v) is not None]
    return next(iter([*found, *(v for v in upper.op.operands if block_of(v) is not upper.op.parent)]), None)


def bind_size(unit: Unit, builder: Builder, value: SSAValue) -> str:
    """Give a run-time size a name of its own."""
    name = unit.program.fresh_symbol()
    builder.op(nd.BindOp, [value], [], {"sym": StringAttr(name)})
    unit.bound[name] = builder.block
    return name
