"""Reductions: one nest that folds into an accumulator of at least f32, then a nest that rounds where the type is narrower."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from xdsl.dialects.builtin import IntegerType, i1
from xdsl.ir import Attribute, Operation, SSAValue

from gradir.dialects import nd
from gradir.dialects.types import element_of, is_unsigned, shape_of
from gradir.dialects.upstream import arith
from gradir.lowering.convert_nd_to_linalg.elements import compute_type, greatest, least
from gradir.lowering.convert_nd_to_linalg.function import Lowering
from gradir.lowering.convert_nd_to_linalg.layouts import followed_layout
from gradir.lowering.convert_nd_to_linalg.rules import lowers
from gradir.lowering.convert_nd_to_linalg.scalars import Scalars, compare
from gradir.lowering.convert_nd_to_linalg.views import IOTA, View, dim, dims


def constantly(value: int) -> Callable[[Attribute, bool], float]:
    """A start that is the same in all types."""

    def start(_: Attribute, __: bool) -> float:
        return value

    return start


class Fold(NamedTuple):
    """How elements join the accumulator, and what it starts from."""

    join: Callable[[Scalars, SSAValue, SSAValue], SSAValue]
    start: Callable[[Attribute, bool], float]


def _join(
    floats: type[Operation] | None, integers: type[Operation], unsigned: type[Operation], bits: type[Operation]
) -> Callable[..., SSAValue]:
    def join(s: Scalars, x: SSAValue, accumulator: SSAValue) -> SSAValue:
        if not isinstance(x.type, IntegerType):
            assert floats is not None
            return s.f(floats, x, accumulator)
        return s.i(bits if x.type == i1 else unsigned if s.unsigned else integers, x, accumulator)

    return join


SUM = Fold(_join(arith.AddfOp, arith.AddiOp, arith.AddiOp, arith.OrIOp), constantly(0))
PRODUCT = Fold(_join(arith.MulfOp, arith.MuliOp, arith.MuliOp, arith.AndIOp), constantly(1))
MAX = Fold(_join(arith.MaximumfOp, arith.MaxSIOp, arith.MaxUIOp, arith.OrIOp), least)
MIN = Fold(_join(arith.MinimumfOp, arith.MinSIOp, arith.MinUIOp, arith.AndIOp), greatest)
ANY = Fold(_join(None, arith.OrIOp, arith.OrIOp, arith.OrIOp), constantly(0))
ALL = Fold(_join(None, arith.AndIOp, arith.AndIOp, arith.AndIOp), constantly(-1))

FOLDS: dict[type[Operation], Fold] = {
    nd.ReduceSumOp: SUM,
    nd.ReduceProdOp: PRODUCT,
    nd.ReduceMaxOp: MAX,
    nd.ReduceMinOp: MIN,
    nd.ReduceAnyOp: ANY,
    nd.ReduceAllOp: ALL,
}


@lowers(*FOLDS)
def lower_reduce(lowering: Lowering, op: nd.NdOp) -> View:
    """`result[rest] = fold over dims of operand[rest, dims]`."""
    reduced = op.numbers("dims")
    operand = op.operands[0]
    if not reduced:
        return lowering.view(operand)
    return fold(lowering, operand, reduced, FOLDS[type(op)])


def fold(lowering: Lowering, operand: SSAValue, reduced: tuple[int, ...], how: Fold) -> View:
    """The fold of a level-1 value over `reduced`, in its element type."""
    element = element_of(operand)
    accumulated = fold_view(lowering, lowering.view(operand), shape_of(operand), reduced, how)
    return lowering.whole(lowering.nests.cast(accumulated, accumulator_type(element), element), element)


def accumulator_type(element: Attribute) -> Attribute:
    """The level-1 element type of an accumulator: f32 at least for floats, else the type itself."""
    return element if isinstance(element, IntegerType) else compute_type(element)


def fold_view(lowering: Lowering, view: View, shape: tuple[int | str | None, ...], reduced: tuple[int, ...], how: Fold) -> SSAValue:
    """The accumulators, one for each element that is left."""
    rank, element, unsigned = len(shape), view.element, is_unsigned(view.element)
    if any(view.position_of(d) is None for d in reduced) or not view.is_tensor:  # every reduced loop needs an operand that tells its extent
        view = lowering.whole(lowering.materialized(view, shape), element)
    kept = [d for d in range(rank) if d not in reduced]
    into = accumulator_type(element)
    order = followed_layout([view], shape, lowering.laid_out).order  # the loops follow memory
    return lowering.nests.nest(
        [view.over([dim(order.index(d)) for d in range(rank)])],
        into,
        tuple(shape[d] for d in kept),
        lambda s, xs, accumulator: how.join(s, xs[0], accumulator),
        kinds="".join("r" if d in reduced else "p" for d in order),
        out=[order.index(d) for d in kept],
        init=how.start(into, unsigned),
        unsigned=unsigned,
    )


@lowers(nd.ArgmaxOp, nd.ArgminOp)
def lower_argreduce(lowering: Lowering, op: nd.ArgmaxOp | nd.ArgminOp) -> View:
    """The extreme value of each row, then the least position that holds it (or a NaN, which the extreme value then is)."""
    axis, shape, result = op.number("dim"), shape_of(op.operand), element_of(op.result)
    view = lowering.view(op.operand)
    unsigned = is_unsigned(view.element)
    extreme = fold_view(lowering, view, shape, (axis,), MAX if isinstance(op, nd.ArgmaxOp) else MIN)
    kept = [d for d in range(len(shape)) if d != axis]
    best = View(extreme, dims(*kept), accumulator_type(view.element))
    position = View(IOTA, (dim(axis),), result)
    beyond = greatest(result, is_unsigned(result))

    def candidate(s: Scalars, x: SSAValue, top: SSAValue, at: SSAValue) -> SSAValue:
        found = compare(s, "eq", x, top)
        if not isinstance(x.type, IntegerType):
            found = s.any(found, s.cmpf("uno", x, x))
        return s.select(found, at, s.like(beyond, at))

    candidates = lowering.nests.elementwise([view, best, position], result, shape, candidate, unsigned=unsigned)
    value = fold_view(lowering, lowering.whole(candidates, result), shape, (axis,), MIN)
    return lowering.whole(value, result)
