"""Folds whose combiner is a region: templates that walk the elements in index order and carry the accumulators as scalars."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from gradir.dialects.nd.region_reduction import Fold, ReduceOp, ReduceWindowGeneralOp, SelectAndScatterGeneralOp
from gradir.dialects.types import element_of, is_unsigned, shape_of
from gradir.dialects.upstream import arith
from gradir.lowering.convert_nd_to_linalg.function import Lowering
from gradir.lowering.convert_nd_to_linalg.regions import code_of, scalar_code
from gradir.lowering.convert_nd_to_linalg.rules import lowers
from gradir.lowering.convert_nd_to_linalg.scalars import Scalars
from gradir.lowering.convert_nd_to_linalg.templates import LoopBuilder
from gradir.lowering.convert_nd_to_linalg.views import View


def _template(lowering: Lowering, op: Fold, name: str, key: Any, body: Any) -> View | tuple[View, ...]:
    """A template whose operands are the op's and whose destinations are its results."""
    elements = [element_of(value) for value in op.inputs]
    destinations = [lowering.nests.empty(e, shape_of(r)) for e, r in zip(elements, op.outputs)]
    operands = [lowering.tensor(value) for value in op.operands]
    full = (key, code_of(op.combiner), tuple(map(is_unsigned, elements)))
    results = lowering.templates.call_all(lowering.builder, name, full, operands, destinations, body)
    views = [lowering.whole(value, element) for value, element in zip(results, elements)]
    return tuple(views) if len(views) > 1 else views[0]


@lowers(ReduceOp)
def lower_reduce_region(lowering: Lowering, op: ReduceOp) -> View | tuple[View, ...]:
    """For every position that stays: the accumulators through a loop nest over the reduced ones."""
    dims, count = sorted(op.numbers("dims")), len(op.outputs)

    def body(loops: LoopBuilder, arguments: Sequence[SSAValue]) -> Sequence[SSAValue]:
        inputs, starts, destinations = arguments[:count], arguments[count : 2 * count], arguments[2 * count :]
        sizes = loops.sizes(inputs[0])
        kept = [d for d in range(len(sizes)) if d not in dims]

        def one(inner: LoopBuilder, at: list[SSAValue], carried: list[SSAValue]) -> list[SSAValue]:
            def join(joining: LoopBuilder, inside: list[SSAValue], state: list[SSAValue]) -> Sequence[SSAValue]:
                where = dict(zip((*kept, *dims), (*at, *inside)))
                elements = [joining.load(x, [where[d] for d in range(len(sizes))]) for x in inputs]
                return scalar_code(joining.builder, op.combiner.block, [*state, *elements])

            state = inner.loops([sizes[d] for d in dims], [inner.load(x, []) for x in starts], join)
            return [inner.store(x, into, at) for x, into in zip(state, carried)]

        visits = prod(n for d in dims if isinstance(n := shape_of(op.inputs[0])[d], int))
        return loops.loops([sizes[d] for d in kept], destinations, one, work=max(1, visits))

    return _template(lowering, op, "reduce", tuple(dims), body)


@lowers(ReduceWindowGeneralOp)
def lower_reduce_window_general(lowering: Lowering, op: ReduceWindowGeneralOp) -> View | tuple[View, ...]:
    """For every window: the accumulators through its positions; one outside of the operand holds the initial value."""
    count = len(op.outputs)
    numbers = tuple(op.numbers(name) for name in ("window", "strides", "padding", "dilations", "base_dilations"))
    window, strides, edges, dilations, base = numbers

    def body(loops: LoopBuilder, arguments: Sequence[SSAValue]) -> Sequence[SSAValue]:
        inputs, starts, destinations = arguments[:count], arguments[count : 2 * count], arguments[2 * count :]
        sizes = loops.sizes(inputs[0])

        def one(inner: LoopBuilder, at: list[SSAValue], carried: list[SSAValue]) -> list[SSAValue]:
            initial = [inner.load(x, []) for x in starts]
            firsts = [_affine(inner, i, stride, -before) for i, stride, before in zip(at, strides, edges[0::2])]

            def join(joining: LoopBuilder, inside: list[SSAValue], state: list[SSAValue]) -> Sequence[SSAValue]:
                s = Scalars(joining.builder)
                wide = [s.i(arith.AddiOp, f, _affine(joining, k, step, 0)) for f, k, step in zip(firsts, inside, dilations)]
                held, place = _undilated(joining, wide, base, sizes)
                elements = joining.when_all(held, lambda reading: [reading.load(x, place) for x in inputs], initial)
                return scalar_code(joining.builder, op.combiner.block, [*state, *elements])

            state = inner.loops([inner.index(n) for n in window], initial, join)
            return [inner.store(x, into, at) for x, into in zip(state, carried)]

        return loops.loops(loops.sizes(destinations[0]), destinations, one, work=prod(window))

    return _template(lowering, op, "reduce_window", numbers, body)


def _affine(loops: LoopBuilder, index: SSAValue, factor: int, offset: int) -> SSAValue:
    """`factor * index + offset`"""
    s = Scalars(loops.builder)
    scaled = index if factor == 1 else s.i(arith.MuliOp, index, loops.index(factor))
    return scaled if not offset else s.i(arith.AddiOp, scaled, loops.index(offset))


def _undilated(
    loops: LoopBuilder, wide: Sequence[SSAValue], base: Sequence[int], sizes: Sequence[SSAValue]
) -> tuple[SSAValue, list[SSAValue]]:
    """(is this position of the spread and padded operand an element of it, which one)."""
    s = Scalars(loops.builder)
    held, place = s.constant(-1, i1), list[SSAValue]()
    for position, gap, size in zip(wide, base, sizes):
        if gap != 1:  # read as unsigned, a negative position is far beyond any size
            step = loops.index(gap)
            at = s.i(arith.DivUIOp, position, step)
            held = s.i(arith.AndIOp, held, s.cmpi("eq", s.i(arith.RemUIOp, position, step), loops.index(0)))
            held = s.i(arith.AndIOp, held, s.cmpi("sge", position, loops.index(0)))
            position = at
        held = s.i(arith.AndIOp, held, s.cmpi("ult", position, size))
        place.append(position)
    return held, place


@lowers(SelectAndScatterGeneralOp)
def lower_select_and_scatter_general(lowering: Lowering, op: SelectAndScatterGeneralOp) -> View:
    """A template over windows: choose an element by the first region, combine the source into its place by the second."""
    window, strides, low = op.numbers("window"), op.numbers("strides"), op.numbers("padding")[0::2]
    element = element_of(op.operand)

    def body(loops: LoopBuilder, arguments: Sequence[SSAValue]) -> Sequence[SSAValue]:
        operand, source, start, destination = arguments
        sizes = loops.sizes(operand)
        initial = loops.load(start, [])
        filled = loops.loops(sizes, [destination], lambda inner, at, carried: [inner.store(initial, carried[0], at)])

        def one(inner: LoopBuilder, at: list[SSAValue], carried: list[SSAValue]) -> list[SSAValue]:
            firsts = [_affine(inner, i, stride, -before) for i, stride, before in zip(at, strides, low)]
            nothing = Scalars(inner.builder).constant(0, i1)
            state = [nothing, initial, *(inner.index(0) for _ in firsts)]

            def visit(visiting: LoopBuilder, inside: list[SSAValue], best: list[SSAValue]) -> list[SSAValue]:
                s = Scalars(visiting.builder)
                place = [s.i(arith.AddiOp, f, k) for f, k in zip(firsts, inside)]
                held = s.constant(-1, i1)
                for p, n in zip(place, sizes):
                    held = s.i(arith.AndIOp, held, s.cmpi("ult", p, n))

                def look(looking: LoopBuilder) -> list[SSAValue]:
                    t = Scalars(looking.builder)
                    found, value, *where = best
                    x = looking.load(operand, place)
                    (stays,) = scalar_code(looking.builder, op.select.block, [value, x])
                    stays = t.i(arith.AndIOp, found, stays)
                    return [t.constant(-1, i1), t.select(stays, value, x), *(t.select(stays, w, p) for w, p in zip(where, place))]

                return visiting.when_all(held, look, best)

            found, _, *place = inner.loops([inner.index(n) for n in window], state, visit)

            def combine(joining: LoopBuilder) -> list[SSAValue]:
                pair = [joining.load(carried[0], place), joining.load(source, at)]
                (value,) = scalar_code(joining.builder, op.scatter.block, pair)
                return [joining.store(value, carried[0], place)]

            return inner.when_all(found, combine, carried)

        return loops.loops(loops.sizes(source), filled, one)

    key = (window, strides, low, code_of(op.select, op.scatter), is_unsigned(element))
    operands = [lowering.tensor(value) for value in op.operands]
    destination = lowering.nests.empty(element, shape_of(op.operand))
    (result,) = lowering.templates.call_all(lowering.builder, "select_and_scatter_by", key, operands, [destination], body)
    return lowering.whole(result, element)
