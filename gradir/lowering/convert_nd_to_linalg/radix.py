"""Sorting by digits: the rows of a sort with one key of 16, 32 or 64 bits are dealt into 256 piles a pass, the least digit first.

A pass counts the digits, adds up where each pile begins, and moves the elements: in order, so that every pass is stable, and so is the
sort. Its cost does not depend on what is sorted. A key is an integer without sign in whose order the elements are wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import IntegerType, i32
from xdsl.ir import Attribute, SSAValue

from gradir.dialects.types import shape_of
from gradir.dialects.upstream import arith
from gradir.lowering.convert_nd_to_linalg.scalars import INDEX, Scalars
from gradir.lowering.convert_nd_to_linalg.templates import LoopBuilder, copied_row

DIGIT = 8
PILES = 1 << DIGIT
LEAST_ROW = 256
"""Elements of a row from which on counting 256 piles a pass is little."""
WIDTHS = {"f64": 64, "f32": 32, "f16": 16, "bf16": 16, "i64": 64, "i32": 32, "i16": 16}
_FLOATS = ("f64", "f32", "f16", "bf16")

Key = Callable[[Scalars, SSAValue], SSAValue]


def digits_of(element: Attribute) -> int:
    """Passes that a key of this type takes; 0 where there are none."""
    return WIDTHS.get(str(element), 0) // DIGIT


def key_of(element: Attribute, *, unsigned: bool, descending: bool, total: bool) -> Key:
    """x -> its key. Floats: all NaN are equal and come after infinity, zeros are equal, unless the `total` order is wanted."""
    width = WIDTHS[str(element)]
    bits_type = IntegerType(width)
    sign = -(1 << (width - 1))

    def key(s: Scalars, x: SSAValue) -> SSAValue:
        bits = x
        if str(element) in _FLOATS:
            bits = s.to(arith.BitcastOp, x, bits_type)
            magnitude = s.i(arith.AndIOp, bits, s.like(-sign - 1, bits))
            if not total:
                bits = s.select(s.cmpi("eq", magnitude, s.like(0, bits)), s.like(0, bits), bits)
            # negative floats: all bits but the sign are inverted
            flipped = s.i(arith.ShRSIOp, bits, s.like(width - 1, bits))
            bits = s.i(arith.XOrIOp, bits, s.i(arith.AndIOp, flipped, s.like(-sign - 1, bits)))
            if not total:
                beyond = s.cmpi("ugt", magnitude, s.like(_INFINITY[str(element)], bits))
                bits = s.select(beyond, s.like(-sign - 1, bits), bits)
        if not unsigned:
            bits = s.i(arith.XOrIOp, bits, s.like(sign, bits))
        return s.i(arith.XOrIOp, bits, s.like(-1, bits)) if descending else bits

    return key


_INFINITY = {"f64": 0x7FF << 52, "f32": 0xFF << 23, "f16": 0x1F << 10, "bf16": 0xFF << 7}


def deal_rows(
    loops: LoopBuilder, operands: Sequence[SSAValue], buffers: Sequence[SSAValue], key: Key, digits: int, work: int
) -> list[SSAValue]:
    """Each row of the last dimension, copied into the first buffers, then dealt to and fro; the last buffer counts piles."""
    count = len(operands)
    *rows, n = loops.sizes(operands[0])

    def one_row(row: LoopBuilder, at: list[SSAValue], carried: list[SSAValue]) -> list[SSAValue]:
        copied = copied_row(row, at, n, operands, carried[:count])

        def two(inner: LoopBuilder, p: list[SSAValue], state: list[SSAValue]) -> list[SSAValue]:
            there, other, piles = state[:count], state[count:-1], state[-1]
            s = Scalars(inner.builder)
            low = s.i(arith.MuliOp, p[0], inner.index(2 * DIGIT))
            other, piles = _deal(inner, at, n, low, there, other, piles, key)
            there, piles = _deal(inner, at, n, s.i(arith.AddiOp, low, inner.index(DIGIT)), other, there, piles, key)
            return [*there, *other, piles]

        return row.loops([row.index(digits // 2)], [*copied, *carried[count:]], two)

    return loops.loops(rows, list(buffers), one_row, work=work)


def _deal(
    loops: LoopBuilder,
    row: Sequence[SSAValue],
    n: SSAValue,
    shift: SSAValue,
    source: Sequence[SSAValue],
    target: Sequence[SSAValue],
    piles: SSAValue,
    key: Key,
) -> tuple[list[SSAValue], SSAValue]:
    """`source` by the digit at bit `shift`, in `target`."""
    all_piles = loops.index(PILES)

    def pile_of(inner: LoopBuilder, x: SSAValue) -> SSAValue:
        s = Scalars(inner.builder)
        bits = key(s, x)
        moved = s.i(arith.ShRUIOp, bits, s.to(arith.IndexCastOp, shift, bits.type))
        return s.to(arith.IndexCastUIOp, s.i(arith.AndIOp, moved, s.like(PILES - 1, bits)), INDEX)

    def clear(inner: LoopBuilder, d: list[SSAValue], state: list[SSAValue]) -> list[SSAValue]:
        return [inner.store(Scalars(inner.builder).constant(0, i32), state[0], [*row, *d])]

    def tally(inner: LoopBuilder, i: list[SSAValue], state: list[SSAValue]) -> list[SSAValue]:
        s = Scalars(inner.builder)
        place = [*row, pile_of(inner, inner.load(source[0], [*row, *i]))]
        return [inner.store(s.i(arith.AddiOp, inner.load(state[0], place), s.constant(1, i32)), state[0], place)]

    def begin(inner: LoopBuilder, d: list[SSAValue], state: list[SSAValue]) -> list[SSAValue]:
        s = Scalars(inner.builder)
        held = inner.load(state[0], [*row, *d])
        return [inner.store(state[1], state[0], [*row, *d]), s.i(arith.AddiOp, state[1], held)]

    def move(inner: LoopBuilder, i: list[SSAValue], state: list[SSAValue]) -> list[SSAValue]:
        s = Scalars(inner.builder)
        xs = [inner.load(x, [*row, *i]) for x in source]
        pile = [*row, pile_of(inner, xs[0])]
        found = inner.load(state[-1], pile)
        place = [*row, s.to(arith.IndexCastUIOp, found, INDEX)]
        stored = [inner.store(x, z, place) for x, z in zip(xs, state[:-1])]
        return [*stored, inner.store(s.i(arith.AddiOp, found, s.constant(1, i32)), state[-1], pile)]

    (piles,) = loops.loops([all_piles], [piles], clear)
    (piles,) = loops.loops([n], [piles], tally)
    piles, _ = loops.loops([all_piles], [piles, Scalars(loops.builder).constant(0, i32)], begin)
    *filled, piles = loops.loops([n], [*target, piles], move)
    return filled, piles


def is_dealt(element: Attribute, operand: SSAValue) -> bool:
    """Is a row long enough, of a type with digits? A size that only the run knows is merged."""
    n = shape_of(operand)[-1]
    return digits_of(element) > 0 and isinstance(n, int) and LEAST_ROW <= n < 1 << 31
