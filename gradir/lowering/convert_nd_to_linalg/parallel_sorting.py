"""Sorting for a GPU: merging by ranks, a thread per element.

A pass merges neighbouring runs of each row: an element's place is its own rank in its run and, by binary search, its rank in the other
one. Elements of the left run come before their equals of the right one, so every pass is stable. log2(n) passes of n threads, each a loop
whose trips write apart; nothing depends on the order of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from gradir.dialects.types import shape_of
from gradir.dialects.upstream import arith
from gradir.lowering.convert_nd_to_linalg.scalars import Scalars
from gradir.lowering.convert_nd_to_linalg.spreading import parallel_loops
from gradir.lowering.convert_nd_to_linalg.templates import LoopBuilder

Before = Callable[[Scalars, Sequence[SSAValue], Sequence[SSAValue]], SSAValue]


def merge_by_ranks(
    loops: LoopBuilder, operands: Sequence[SSAValue], buffers: Sequence[SSAValue], before: Before, compared: int
) -> list[SSAValue]:
    """Each row of the last dimension, of static size, sorted into the first buffers; `before` looks at `compared` operands."""
    count, n = len(operands), shape_of(operands[0])[-1]
    assert isinstance(n, int)
    passes = (n - 1).bit_length()
    halves = [list(buffers[:count]), list(buffers[count:])]
    source = list(operands)
    for number in range(passes):
        side = (passes - 1 - number) % 2  # the last pass writes the first buffers
        source = halves[side] = _pass(loops, source, halves[side], n, 1 << number, before, compared)
    return [*halves[0], *halves[1]]


def _pass(
    loops: LoopBuilder, source: Sequence[SSAValue], target: Sequence[SSAValue], n: int, run: int, before: Before, compared: int
) -> list[SSAValue]:
    """Runs of `run` elements of `source`, merged in pairs into `target`."""

    def one(inner: LoopBuilder, at: list[SSAValue], carried: list[SSAValue]) -> list[SSAValue]:
        *row, j = at
        s = Scalars(inner.builder)
        span, length, end = inner.index(2 * run), inner.index(run), inner.index(n)
        low = s.i(arith.MuliOp, s.i(arith.DivUIOp, j, span), span)
        middle = s.i(arith.MinUIOp, s.i(arith.AddiOp, low, length), end)
        high = s.i(arith.MinUIOp, s.i(arith.AddiOp, low, span), end)
        is_left = s.cmpi("ult", j, middle)
        first, last = s.select(is_left, middle, low), s.select(is_left, high, middle)
        mine = [inner.load(x, at) for x in source]
        rank = s.i(arith.SubiOp, _rank(inner, source[:compared], row, n, run, first, last, mine[:compared], is_left, before), first)
        own = s.select(is_left, j, s.i(arith.SubiOp, j, length))
        place = [*row, s.i(arith.AddiOp, own, rank)]
        return [inner.store(x, y, place) for x, y in zip(mine, carried)]

    return parallel_loops(loops, loops.sizes(source[0]), target, one)


def _rank(
    loops: LoopBuilder,
    source: Sequence[SSAValue],
    row: Sequence[SSAValue],
    n: int,
    run: int,
    first: SSAValue,
    last: SSAValue,
    mine: Sequence[SSAValue],
    is_left: SSAValue,
    before: Before,
) -> SSAValue:
    """The first position from `first` to `last` whose element does not precede `mine`."""

    def halve(inner: LoopBuilder, _: list[SSAValue], state: list[SSAValue]) -> list[SSAValue]:
        low, high = state
        s = Scalars(inner.builder)
        middle = s.i(arith.ShRUIOp, s.i(arith.AddiOp, low, high), inner.index(1))
        place = [*row, s.i(arith.MinUIOp, middle, inner.index(n - 1))]
        other = [inner.load(x, place) for x in source]
        right = [s.select(is_left, y, x) for x, y in zip(mine, other)]
        left = [s.select(is_left, x, y) for x, y in zip(mine, other)]
        moves = before(s, right, left)
        precedes = s.i(arith.XOrIOp, s.i(arith.XOrIOp, moves, is_left), s.constant(-1, i1))
        searching = s.cmpi("ult", low, high)
        up = s.i(arith.AndIOp, searching, precedes)
        down = s.i(arith.AndIOp, searching, s.i(arith.XOrIOp, precedes, s.constant(-1, i1)))
        return [s.select(up, s.i(arith.AddiOp, middle, inner.index(1)), low), s.select(down, middle, high)]

    return loops.loops([loops.index(run.bit_length())], [first, last], halve)[0]
