"""Cumulative ops: a template that walks along the dimension and carries the fold, f32 in f64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isqrt

from xdsl.dialects.builtin import IntegerType, f64
from xdsl.ir import Attribute, Operation, SSAValue

from gradir.dialects.nd import cumulative as nd
from gradir.dialects.target import CudaTargetAttr, target_of
from gradir.dialects.types import element_of, is_unsigned, shape_of
from gradir.dialects.upstream import arith, math
from gradir.lowering.convert_nd_to_linalg.elements import greatest, least
from gradir.lowering.convert_nd_to_linalg.function import Lowering
from gradir.lowering.convert_nd_to_linalg.reduction import accumulator_type
from gradir.lowering.convert_nd_to_linalg.rules import lowers
from gradir.lowering.convert_nd_to_linalg.scalars import Body, Scalars, float_op, integer_op
from gradir.lowering.convert_nd_to_linalg.spreading import parallel_loops
from gradir.lowering.convert_nd_to_linalg.templates import LoopBuilder
from gradir.lowering.convert_nd_to_linalg.views import View


def _log_add(s: Scalars, x: SSAValue, y: SSAValue) -> SSAValue:
    """ln(e**x + e**y) = m + log1p(e**-|x - y|), m the greater; an infinite m is the result."""
    top = s.f(arith.MaximumfOp, x, y)
    more = s.f(math.Log1pOp, s.f(math.ExpOp, s.f(arith.NegfOp, s.f(math.AbsFOp, s.f(arith.SubfOp, x, y)))))
    infinite = s.cmpf("oeq", s.f(math.AbsFOp, top), s.like(float("inf"), top))
    return s.select(infinite, top, s.f(arith.AddfOp, top, more))


def _no_integers(_: Scalars, *__: SSAValue) -> SSAValue:
    raise AssertionError("the verifier lets only floats through")


Identity = Callable[[Attribute, bool], float]
JOINS: dict[type[Operation], tuple[Body, Body, Identity]] = {
    nd.CumsumOp: (float_op(arith.AddfOp), integer_op(arith.AddiOp), lambda _element, _unsigned: 0),
    nd.CumprodOp: (float_op(arith.MulfOp), integer_op(arith.MuliOp), lambda _element, _unsigned: 1),
    nd.CummaxOp: (float_op(arith.MaximumfOp), integer_op(arith.MaxSIOp, arith.MaxUIOp), least),
    nd.CumlogsumexpOp: (_log_add, _no_integers, least),
    nd.CumminOp: (float_op(arith.MinimumfOp), integer_op(arith.MinSIOp, arith.MinUIOp), greatest),
}
"""Op -> how floats and integers join, and from what they start."""


@lowers(*JOINS)
def lower_cumulative(lowering: Lowering, op: nd.Cumulative) -> View:
    """`result[i] = total; total = join(total, operand[i])`, in that order if exclusive."""
    element = element_of(op.operand)
    into, unsigned = accumulator_type(element), is_unsigned(element)
    operand = lowering.nests.cast(lowering.tensor(op.operand), element, into)
    destination = lowering.nests.empty(into, shape_of(op.operand))

    def body(loops: LoopBuilder, arguments: Sequence[SSAValue]) -> SSAValue:
        return _scan(loops, arguments, op, unsigned)

    key = (op.number("dim"), op.is_reverse, op.is_exclusive, unsigned)
    if isinstance(target_of(op), CudaTargetAttr) and isinstance(shape_of(op.operand)[op.number("dim")], int):
        return lowering.whole(lowering.nests.cast(_in_chunks(lowering, op, operand, destination, key), into, element), element)
    result = lowering.templates.call(lowering.builder, op.name.removeprefix("nd."), key, (operand,), destination, body)
    return lowering.whole(lowering.nests.cast(result, into, element), element)


def _scan(loops: LoopBuilder, arguments: Sequence[SSAValue], op: nd.Cumulative, unsigned: bool) -> SSAValue:
    operand, destination = arguments
    axis, element = op.number("dim"), element_of(operand)
    floats, integers, identity = JOINS[type(op)]
    is_integer = isinstance(element, IntegerType)
    join, wide = (integers, element) if is_integer else (floats, f64)
    sizes = loops.sizes(operand)
    count = sizes.pop(axis)
    start = Scalars(loops.builder).constant(identity(element, unsigned), wide)
    last = Scalars(loops.builder).i(arith.SubiOp, count, loops.index(1))

    def one_line(line: LoopBuilder, around: list[SSAValue], carried: list[SSAValue]) -> list[SSAValue]:
        def one(inner: LoopBuilder, index: list[SSAValue], state: list[SSAValue]) -> list[SSAValue]:
            s = Scalars(inner.builder, unsigned)
            (i,), (filled, total) = index, state
            at = s.i(arith.SubiOp, last, i) if op.is_reverse else i
            place = [*around[:axis], at, *around[axis:]]
            following = join(s, total, s.to(arith.ExtFOp, inner.load(operand, place), wide))
            value = total if op.is_exclusive else following
            return [inner.store(s.to(arith.TruncFOp, value, element), filled, place), following]

        return [line.loops([count], [carried[0], start], one)[0]]

    return loops.loops(sizes, [destination], one_line)[0]


LEAST_CHUNK = 16
"""Elements that one thread folds, at least."""


def _in_chunks(lowering: Lowering, op: nd.Cumulative, operand: SSAValue, destination: SSAValue, key: tuple[object, ...]) -> SSAValue:
    """For a GPU: lines in chunks; each is folded, the chunks of a line are scanned, each is scanned from where its line has come."""
    axis, shape, element = op.number("dim"), shape_of(operand), element_of(operand)
    n = shape[axis]
    assert isinstance(n, int)
    size = max(LEAST_CHUNK, isqrt(max(0, n - 1)) + 1)
    chunks = -(-n // size)
    floats, integers, identity = JOINS[type(op)]
    is_integer = isinstance(element, IntegerType)
    join, wide = (integers, element) if is_integer else (floats, f64)
    unsigned = is_unsigned(element_of(op.operand))
    folds = lowering.nests.empty(wide, (*shape[:axis], chunks, *shape[axis + 1 :]))

    def chunk(loops: LoopBuilder, source: SSAValue, at: list[SSAValue], state: list[SSAValue], *, store: bool) -> list[SSAValue]:
        """Go through the chunk at `at` with the fold in `state[-1]`, writing it into `state[0]` where there is a destination."""
        s = Scalars(loops.builder, unsigned)
        low = s.i(arith.MuliOp, at[axis], loops.index(size))
        count = s.i(arith.MinUIOp, loops.index(size), s.i(arith.SubiOp, loops.index(n), low))

        def one(inner: LoopBuilder, index: list[SSAValue], carried: list[SSAValue]) -> list[SSAValue]:
            t = Scalars(inner.builder, unsigned)
            i = t.i(arith.AddiOp, low, index[0])
            there = t.i(arith.SubiOp, inner.index(n - 1), i) if op.is_reverse else i
            place = [*at[:axis], there, *at[axis + 1 :]]
            total = carried[-1]
            following = join(t, total, t.to(arith.ExtFOp, inner.load(source, place), wide))
            value = total if op.is_exclusive else following
            stored = [inner.store(t.to(arith.TruncFOp, value, element), carried[0], place)] if store else []
            return [*stored, following]

        return loops.loops([count], state, one)

    def body(loops: LoopBuilder, arguments: Sequence[SSAValue]) -> Sequence[SSAValue]:
        source, into, folded = arguments
        lines = loops.sizes(folded)
        around = [*lines[:axis], *lines[axis + 1 :]]

        def start(inner: LoopBuilder) -> SSAValue:
            return Scalars(inner.builder).constant(identity(element, unsigned), wide)

        def fold(inner: LoopBuilder, at: list[SSAValue], carried: list[SSAValue]) -> list[SSAValue]:
            return [inner.store(chunk(inner, source, at, [start(inner)], store=False)[-1], carried[0], at)]

        def scan(inner: LoopBuilder, at: list[SSAValue], carried: list[SSAValue]) -> list[SSAValue]:
            def one(deeper: LoopBuilder, index: list[SSAValue], state: list[SSAValue]) -> list[SSAValue]:
                place = [*at[:axis], *index, *at[axis:]]
                held = deeper.load(state[0], place)
                return [deeper.store(state[1], state[0], place), join(Scalars(deeper.builder, unsigned), state[1], held)]

            return [inner.loops([inner.index(chunks)], [carried[0], start(inner)], one)[0]]

        def spread(inner: LoopBuilder, at: list[SSAValue], carried: list[SSAValue]) -> list[SSAValue]:
            return [chunk(inner, source, at, [carried[0], inner.load(folded, at)], store=True)[0]]

        (folded,) = parallel_loops(loops, lines, [folded], fold)
        (folded,) = parallel_loops(loops, around, [folded], scan)
        return [*parallel_loops(loops, lines, [into], spread), folded]

    name = op.name.removeprefix("nd.")
    return lowering.templates.call_all(lowering.builder, name, (*key, "chunks"), (operand,), (destination, folds), body)[0]
