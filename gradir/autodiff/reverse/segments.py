"""The policy `sqrt`: a loop of N trips is a loop over ceil(N / B) segments of B = ceil(sqrt(N)) trips each.

    for %s = 0 to S          {gradir.residuals = "none"}       saves the carried values at the beginning of a segment
      for %j = 0 to min(B, N - s B)   {gradir.residuals = "segment"}    runs again in reverse, and saves what its backward part reads

Both are ordinary loops, reversed as their policies say: S + B states are kept where the loop as it was would keep N. The iterations are
the same ones in the same order, so values and derivatives are those of `all` bit by bit.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt

from xdsl.dialects.builtin import f64, i64
from xdsl.ir import Block, Region, SSAValue

from gradir.autodiff.reverse.indices import Indices, Trips, constant_index, count_trips
from gradir.autodiff.reverse.recomputation import drop
from gradir.autodiff.reverse.sweep import Sweep, Unit, clone
from gradir.autodiff.tensors import INDEX, TensorBuilder
from gradir.dialects import nd
from gradir.dialects.residuals import SEGMENT, marked
from gradir.dialects.types import tensor
from gradir.dialects.upstream import arith, scf, tensor as upstream_tensor
from gradir.ir.builder import Builder

Induction = Callable[[Builder, SSAValue], SSAValue]

SHORT = 3
"""Trips up to which segments save nothing: S + B is no less than N."""


def run_in_segments(sweep: Sweep, op: scf.ForOp) -> None:
    """Reverse the two loops in place of `op`."""
    unit = sweep.unit
    trips = count_trips(sweep, *(sweep.value(v) for v in (op.lb, op.ub, op.step)))
    if isinstance(trips.size, int) and trips.size <= SHORT:
        primal = _block_of(unit, op, _copy(unit, op, [op.lb, op.ub, op.step], list(op.iter_args), None))
    else:
        primal = _nest(sweep, op, trips)
    unit.bind(op.results, sweep.forward(primal))
    drop(primal)


def _nest(sweep: Sweep, op: scf.ForOp, trips: Trips) -> Block:
    """The loop over segments, as ops of the primal program; what sizes it is computed where the number of trips is known."""
    unit = sweep.unit
    out = Indices(trips.builder)
    length = _length(unit, trips)
    outer = Block(arg_types=[INDEX, *(a.type for a in op.body.block.args[1:])])
    at = Indices(Builder(outer, op.location))
    first = at.mul(outer.args[0], length)
    known = constant_index(length)
    if known is not None and isinstance(trips.size, int):
        segments = out.constant(-(-trips.size // known))
        even = constant_index(trips.value) == trips.size and trips.size % known == 0
    else:
        segments, even = out.ceil_div(trips.entries, length), False
    count = at.constant(known) if even and known is not None else at.builder(arith.MinSIOp, [length, at.sub(trips.value, first)], [INDEX])
    bounds = [at.constant(0), count, at.constant(1)]

    def induction(inner: Builder, k: SSAValue) -> SSAValue:
        return trips.induction(Indices(inner), Indices(inner).add(first, k))

    inner = _copy(unit, op, bounds, list(outer.args[1:]), induction)
    outer.add_op(inner)
    at.builder.op(scf.YieldOp, inner.results)
    new = scf.ForOp.create(
        operands=[out.constant(0), segments, out.constant(1), *op.iter_args],
        result_types=[r.type for r in op.results],
        attributes=marked(op, "none"),
        regions=[Region(outer)],
        location=op.location,
    )
    unit.same_activity(zip(op.body.block.args[1:], outer.args[1:]))
    unit.same_activity(zip(op.results, outer.args[1:]))  # behind the last trip, segments without a trip hand on what enters them
    unit.same_activity(zip(op.results, inner.results))
    for a, b, c in zip(op.body.block.args[1:], outer.args[1:], inner.results):
        b.name_hint = c.name_hint = a.name_hint
    outer.args[0].name_hint = "s"
    return _block_of(unit, op, new)


def _copy(unit: Unit, op: scf.ForOp, bounds: list[SSAValue], inits: list[SSAValue], induction: Induction | None) -> scf.ForOp:
    """The loop with other bounds; `induction` computes the index of its body from the new one."""
    source = op.body.block
    body = Block(arg_types=[a.type for a in source.args])
    values: dict[SSAValue, SSAValue] = dict(zip(source.args, body.args))
    for a, b in zip(source.args, body.args):
        b.name_hint = a.name_hint
    if induction is not None:
        values[source.args[0]] = induction(Builder(body, op.location), body.args[0])
        body.args[0].name_hint = "j"
    for inner in source.ops:
        body.add_op(clone(inner, values))
    unit.same_activity(values.items())
    new = scf.ForOp.create(
        operands=[*bounds, *inits],
        result_types=[r.type for r in op.results],
        attributes=marked(op, SEGMENT),
        regions=[Region(body)],
        location=op.location,
    )
    assert isinstance(new, scf.ForOp)
    unit.same_activity(zip(op.results, new.results))
    return new


def _block_of(unit: Unit, op: scf.ForOp, loop: scf.ForOp) -> Block:
    """A block that yields what the loop gives."""
    unit.same_activity(zip(op.results, loop.results))
    for a, b in zip(op.results, loop.results):
        b.name_hint = a.name_hint
    block = Block()
    block.add_op(loop)
    Builder(block, op.location).op(scf.YieldOp, loop.results)
    return block


def segment_length(trips: int) -> int:
    """ceil(sqrt(N)), at least 1."""
    return isqrt(max(0, trips - 1)) + 1


def _length(unit: Unit, trips: Trips) -> SSAValue:
    """ceil(sqrt(N)), at least 1, as an index."""
    at = Indices(trips.builder)
    if isinstance(trips.size, int):
        return at.constant(segment_length(trips.size))
    t, scalar = TensorBuilder(trips.builder), tensor(i64, ())
    number = t.builder(arith.IndexCastOp, [trips.entries], [i64])
    root = t.unary(nd.CeilOp, t.unary(nd.SqrtOp, t.convert(t.builder(upstream_tensor.FromElementsOp, [number], [scalar]), f64)))
    number = t.builder(upstream_tensor.ExtractOp, [t.convert(root, i64)], [i64])
    return t.builder(arith.MaxSIOp, [t.builder(arith.IndexCastOp, [number], [INDEX]), at.constant(1)], [INDEX])
