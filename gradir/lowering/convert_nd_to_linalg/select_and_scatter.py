"""`nd.select_and_scatter`, the derivative of max-pooling.

Windows that do not overlap, without padding: every element asks whether it is the first maximal one of its window; three nests, no
scatter. Otherwise a template: for each window find the first maximal element, then add to it.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerType, i1, i32
from xdsl.ir import SSAValue

from gradir.dialects import nd
from gradir.dialects.target import CudaTargetAttr, target_of
from gradir.dialects.types import element_of, is_unsigned, shape_of
from gradir.dialects.upstream import arith
from gradir.lowering.convert_nd_to_linalg.convolution import split_windows
from gradir.lowering.convert_nd_to_linalg.elements import greatest, least, lowered, number
from gradir.lowering.convert_nd_to_linalg.function import Lowering
from gradir.lowering.convert_nd_to_linalg.reduction import MAX, MIN, accumulator_type, fold_view
from gradir.lowering.convert_nd_to_linalg.reshape import reshape_view
from gradir.lowering.convert_nd_to_linalg.rules import lowers
from gradir.lowering.convert_nd_to_linalg.scalars import Scalars, compare
from gradir.lowering.convert_nd_to_linalg.shape import pad_view
from gradir.lowering.convert_nd_to_linalg.spreading import parallel_loops
from gradir.lowering.convert_nd_to_linalg.templates import LoopBuilder
from gradir.lowering.convert_nd_to_linalg.views import IOTA, Linear, View, dims


@lowers(nd.SelectAndScatterOp)
def lower_select_and_scatter(lowering: Lowering, op: nd.SelectAndScatterOp) -> View:
    window, strides = op.numbers("window"), op.numbers("strides")
    apart = (
        all(s == w for s, w in zip(strides, window))
        and not any(op.numbers("padding"))
        and all(isinstance(n, int) for n in shape_of(op.operand))
    )
    return _apart(lowering, op, window) if apart and any(w != 1 for w in window) else _scatter(lowering, op)


def _apart(lowering: Lowering, op: nd.SelectAndScatterOp, window: Sequence[int]) -> View:
    """`result[w, o] = source[w] if o is the first maximal offset of window w, else 0`."""
    shape, count, element = shape_of(op.operand), shape_of(op.source), element_of(op.operand)
    unsigned = is_unsigned(element)
    view, split, inner = split_windows(lowering, lowering.view(op.operand), shape, window, count)
    if not view.is_tensor:
        view = lowering.whole(lowering.materialized(view, split), element)
    outer = [d for d in range(len(split)) if d not in inner]
    top = View(fold_view(lowering, view, split, inner, MAX), dims(*outer), accumulator_type(element))
    offset = View(IOTA, (_row_major(inner, split),), i32)
    beyond = greatest(i32, unsigned=False)

    def candidate(s: Scalars, x: SSAValue, best: SSAValue, at: SSAValue) -> SSAValue:
        found = compare(s, "eq", x, best)
        if not isinstance(x.type, IntegerType):
            found = s.any(found, s.cmpf("uno", x, x))
        return s.select(found, at, s.like(beyond, at))

    candidates = lowering.whole(lowering.nests.elementwise([view, top, offset], i32, split, candidate, unsigned=unsigned), i32)
    first = View(fold_view(lowering, candidates, split, inner, MIN), dims(*outer), i32)
    source = lowering.view(op.source).over(dims(*outer))

    def chosen(s: Scalars, at: SSAValue, wanted: SSAValue, value: SSAValue) -> SSAValue:
        return s.select(s.cmpi("eq", at, wanted), value, s.like(0, value))

    spread = lowering.nests.elementwise([offset, first, source], element, split, chosen, compute=False)
    covered = tuple(n * w if isinstance(n, int) else n for n, w in zip(count, window))
    joined = reshape_view(lowering, lowering.whole(spread, element), split, covered)
    zero = View(number(0, lowered(element)), (), element)
    rest = [n - m if isinstance(n, int) and isinstance(m, int) else 0 for n, m in zip(shape, covered)]
    return pad_view(lowering, joined, covered, zero, shape, [0] * len(shape), rest, [0] * len(shape))


def _row_major(inner: Sequence[int], shape: Sequence[int | str | None]) -> Linear:
    """The offset within a window as one number."""
    terms: list[tuple[int, int]] = []
    scale = 1
    for d in reversed(inner):
        terms.append((d, scale))
        size = shape[d]
        assert isinstance(size, int)
        scale *= size
    return Linear(tuple(sorted(terms)))


def _scatter(lowering: Lowering, op: nd.SelectAndScatterOp) -> View:
    """A template over windows; sums in f32 at least, then rounded."""
    element = element_of(op.operand)
    into = accumulator_type(element)
    operand = lowering.nests.cast(lowering.tensor(op.operand), element, into)
    source = lowering.nests.cast(lowering.tensor(op.source), element, into)
    numbers = (op.numbers("window"), op.numbers("strides"), op.numbers("padding")[0::2])
    destination = lowering.nests.empty(into, shape_of(op.operand))

    def body(loops: LoopBuilder, arguments: Sequence[SSAValue]) -> SSAValue:
        return _scatter_body(loops, arguments, numbers, is_unsigned(element), parallel=isinstance(target_of(op), CudaTargetAttr))

    key = (*numbers, is_unsigned(element))
    result = lowering.templates.call(lowering.builder, "select_and_scatter", key, (operand, source), destination, body)
    return lowering.whole(lowering.nests.cast(result, into, element), element)


def _scatter_body(
    loops: LoopBuilder,
    arguments: Sequence[SSAValue],
    numbers: tuple[Sequence[int], Sequence[int], Sequence[int]],
    unsigned: bool,
    *,
    parallel: bool,
) -> SSAValue:
    """`parallel`: dimensions along which windows never meet (batches, channels) are loops of their own, whose trips write apart."""
    operand, source, destination = arguments
    window, strides, low = numbers
    zero = loops.builder(arith.ConstantOp, (), (element_of(source),), {"value": number(0, element_of(source))})
    clear = parallel_loops if parallel else LoopBuilder.loops
    (destination,) = clear(loops, loops.sizes(destination), [destination], lambda inner, at, carried: [inner.store(zero, carried[0], at)])

    def one_window(inner: LoopBuilder, at: list[SSAValue], carried: list[SSAValue]) -> list[SSAValue]:
        found, _, place = _first_maximum(inner, operand, at, window, strides, low, unsigned)

        def add(adding: LoopBuilder) -> SSAValue:
            s = Scalars(adding.builder)
            old, new = adding.load(carried[0], place), adding.load(source, at)
            total = s.i(arith.AddiOp, old, new) if isinstance(old.type, IntegerType) else s.f(arith.AddfOp, old, new)
            return adding.store(total, carried[0], place)

        return [inner.when(found, add, carried[0])]

    counts = loops.sizes(source)
    if not parallel:
        return loops.loops(counts, [destination], one_window)[0]
    apart = [d for d, (size, step, before) in enumerate(zip(window, strides, low)) if (size, step, before) == (1, 1, 0)]
    rest = [d for d in range(len(counts)) if d not in apart]

    def of_plane(outer: LoopBuilder, fixed: list[SSAValue], carried: list[SSAValue]) -> list[SSAValue]:
        def window_at(inner: LoopBuilder, at: list[SSAValue], values: list[SSAValue]) -> list[SSAValue]:
            everywhere = dict(zip(apart, fixed)) | dict(zip(rest, at))
            return one_window(inner, [everywhere[d] for d in range(len(counts))], values)

        return outer.loops([counts[d] for d in rest], carried, window_at)

    return parallel_loops(loops, [counts[d] for d in apart], [destination], of_plane)[0]


def _first_maximum(
    loops: LoopBuilder,
    operand: SSAValue,
    window_at: Sequence[SSAValue],
    window: Sequence[int],
    strides: Sequence[int],
    low: Sequence[int],
    unsigned: bool,
) -> tuple[SSAValue, SSAValue, list[SSAValue]]:
    """(found one, its value, its place) over the elements of one window that lie inside the operand; a NaN beats all but earlier NaNs."""
    s = Scalars(loops.builder, unsigned)
    element = element_of(operand)
    sizes = loops.sizes(operand)
    start = [
        s.i(arith.SubiOp, s.i(arith.MuliOp, at, loops.index(stride)), loops.index(before))
        for at, stride, before in zip(window_at, strides, low)
    ]
    nothing = s.constant(0, i1)
    worst = s.constant(least(element, unsigned), element)
    initial = [nothing, worst, *(loops.index(0) for _ in start)]

    def visit(inner: LoopBuilder, offset: list[SSAValue], best: list[SSAValue]) -> list[SSAValue]:
        t = Scalars(inner.builder, unsigned)
        place = [t.i(arith.AddiOp, a, o) for a, o in zip(start, offset)]
        inside = _all(t, [t.cmpi("ult", p, n) for p, n in zip(place, sizes)])  # unsigned: below 0 is beyond any size
        safe = [t.select(inside, p, inner.index(0)) for p in place]
        found, value, *where = best

        def better(reading: LoopBuilder) -> SSAValue:
            u = Scalars(reading.builder, unsigned)
            x = reading.load(operand, safe)
            wins = compare(u, "gt", x, value)
            if not isinstance(x.type, IntegerType):
                wins = u.any(wins, u.i(arith.AndIOp, u.cmpf("uno", x, x), u.cmpf("ord", value, value)))
            return u.any(wins, u.i(arith.XOrIOp, found, u.like(-1, found)))

        takes = inner.when(inside, better, t.like(0, found))
        x = inner.when(takes, lambda reading: reading.load(operand, safe), value)
        return [t.any(found, takes), x, *(t.select(takes, p, w) for p, w in zip(safe, where))]

    found, value, *place = loops.loops([loops.index(w) for w in window], initial, visit)
    return found, value, place


def _all(s: Scalars, conditions: Sequence[SSAValue]) -> SSAValue:
    if not conditions:
        return s.constant(-1, i1)
    result = conditions[0]
    for c in conditions[1:]:
        result = s.i(arith.AndIOp, result, c)
    return result
