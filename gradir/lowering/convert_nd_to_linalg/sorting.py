"""`nd.sort`: a template that merges sorted runs, bottom-up, row by row; n log n comparisons, stable.

Two buffers per operand: a pass merges runs from one into the other, and passes come in pairs, so that a row ends where it began. The
sorted dimension comes last, so that a row is contiguous. Of a sort of which a few first elements are read these are selected; long rows
with one key are dealt by digits (`radix`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import IntegerType, i1, i32
from xdsl.ir import Attribute, SSAValue

from gradir.dialects.nd.shape import SliceOp
from gradir.dialects.nd.sorting import SortOp
from gradir.dialects.target import CudaTargetAttr, target_of
from gradir.dialects.types import Dim, element_of, is_unsigned, rank_of, shape_of
from gradir.dialects.upstream import arith
from gradir.lowering.convert_nd_to_linalg.conversions import widen
from gradir.lowering.convert_nd_to_linalg.elements import lowered, width
from gradir.lowering.convert_nd_to_linalg.function import Lowering
from gradir.lowering.convert_nd_to_linalg.parallel_sorting import merge_by_ranks
from gradir.lowering.convert_nd_to_linalg.radix import PILES, deal_rows, digits_of, is_dealt, key_of
from gradir.lowering.convert_nd_to_linalg.regions import code_of, scalar_code
from gradir.lowering.convert_nd_to_linalg.rules import lowers
from gradir.lowering.convert_nd_to_linalg.scalars import Scalars, compare
from gradir.lowering.convert_nd_to_linalg.templates import LoopBuilder, copied_row
from gradir.lowering.convert_nd_to_linalg.views import Linear, View, dims

Before = Callable[[Scalars, Sequence[SSAValue], Sequence[SSAValue]], SSAValue]
"""`before(scalars, right, left)` -> i1: must the element of the right run, which is later, come before that of the left run?"""


@lowers(SortOp)
def lower_sort(lowering: Lowering, op: SortOp) -> tuple[View, ...] | View:
    """Every row along `dim` by merging; operands of at most one element per row are sorted already."""
    found = _sorted(lowering, op)
    return tuple(found) if len(found) > 1 else found[0]


def _sorted(lowering: Lowering, op: SortOp) -> list[View]:
    dim, shape = op.number("dim"), shape_of(op.inputs[0])
    if shape[dim] in (0, 1) or 0 in shape:
        return [lowering.view(value) for value in op.inputs]
    order = [*(d for d in range(len(shape)) if d != dim), dim]
    moved = tuple(shape[d] for d in order)
    back = dims(*(order.index(d) for d in range(len(shape))))
    operands = [lowering.materialized(lowering.view(value).over(back), moved) for value in op.inputs]
    elements = [element_of(value) for value in op.inputs]
    count = len(operands)
    before = _comparator(op) if op.comparator is not None else _order(op, elements[: op.number("keys")])
    if isinstance(target_of(op), CudaTargetAttr) and isinstance(shape[dim], int):
        return _merged_by_ranks(lowering, op, operands, moved, dims(*order), before)
    first = first_wanted(op)
    if first is not None:
        kept = [lowering.nests.empty(element, (*moved[:-1], first)) for element in elements]

        def select(loops: LoopBuilder, arguments: Sequence[SSAValue]) -> Sequence[SSAValue]:
            return select_rows(loops, arguments[:count], arguments[count:], first, before)

        results = lowering.templates.call_all(lowering.builder, "select", (first, *_key(op, elements)), operands, kept, select)
        return [View(value, dims(*order), element) for value, element in zip(results, elements)]
    if op.comparator is None and op.number("keys") == 1 and is_dealt(lowered(elements[0]), operands[0]):
        return _dealt(lowering, op, operands, moved, dims(*order))
    buffers = [lowering.nests.empty(element, moved) for element in (*elements, *elements)]

    def body(loops: LoopBuilder, arguments: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return sort_rows(loops, arguments[:count], arguments[count:], before)

    results = lowering.templates.call_all(lowering.builder, "sort", _key(op, elements), operands, buffers, body)
    forth = dims(*order)
    return [View(value, forth, element) for value, element in zip(results[:count], elements)]


def _merged_by_ranks(
    lowering: Lowering, op: SortOp, operands: Sequence[SSAValue], moved: tuple[Dim, ...], forth: tuple[Linear, ...], before: Before
) -> list[View]:
    """For a GPU: all elements of a pass at once."""
    elements, count = [element_of(value) for value in op.inputs], len(operands)
    compared = count if op.comparator is not None else op.number("keys")
    buffers = [lowering.nests.empty(element, moved) for element in (*elements, *elements)]

    def body(loops: LoopBuilder, arguments: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return merge_by_ranks(loops, arguments[:count], arguments[count:], before, compared)

    results = lowering.templates.call_all(lowering.builder, "merge", _key(op, elements), operands, buffers, body)
    return [View(value, forth, element) for value, element in zip(results[:count], elements)]


def _dealt(lowering: Lowering, op: SortOp, operands: Sequence[SSAValue], moved: tuple[Dim, ...], forth: tuple[Linear, ...]) -> list[View]:
    """By digits instead of comparisons."""
    elements, count = [element_of(value) for value in op.inputs], len(operands)
    element = lowered(elements[0])
    key = key_of(element, unsigned=is_unsigned(elements[0]), descending=op.is_descending, total=op.is_total)
    buffers = [lowering.nests.empty(e, moved) for e in (*elements, *elements)]
    buffers.append(lowering.nests.empty(i32, (*moved[:-1], PILES)))

    def body(loops: LoopBuilder, arguments: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return deal_rows(loops, arguments[:count], arguments[count:], key, digits_of(element), _visits(operands[0]))

    results = lowering.templates.call_all(lowering.builder, "deal", _key(op, elements), operands, buffers, body)
    return [View(value, forth, e) for value, e in zip(results[:count], elements)]


def _key(op: SortOp, elements: Sequence[Attribute]) -> Any:
    """What sorts of equal operand types differ in."""
    return (op.number("keys"), op.is_descending, op.is_total, code_of(op.comparator), tuple(map(is_unsigned, elements)))


MOST_SELECTED = 64
"""So many elements are found by selection, whose cost grows with them; more by sorting."""


def first_wanted(op: SortOp) -> int | None:
    """How many elements of each row somebody reads, when all readers take the same few first ones (`nd.top_k`)."""
    dim, found = op.number("dim"), set[int]()
    for result in op.results:
        for use in result.uses:
            reader = use.operation
            if not isinstance(reader, SliceOp):
                return None
            start, limit, strides = (reader.numbers(name) for name in ("start", "limit", "stride"))
            if start[dim] != 0 or strides[dim] != 1 or limit[dim] <= 0:
                return None
            found.add(limit[dim])
    n = shape_of(op.results[0])[dim]
    k = found.pop() if len(found) == 1 else 0
    return k if 0 < k <= MOST_SELECTED and isinstance(n, int) and 4 * k <= n else None


def _comparator(op: SortOp) -> Before:
    """The op's region, as written."""

    def before(s: Scalars, right: Sequence[SSAValue], left: Sequence[SSAValue]) -> SSAValue:
        assert op.comparator is not None
        pairs = [x for pair in zip(right, left) for x in pair]
        return scalar_code(s.builder, op.comparator.block, pairs)[0]

    return before


def _order(op: SortOp, keys: Sequence[Attribute]) -> Before:
    """Lexicographic over the keys: `k0 < l0 or (k0 = l0 and (k1 < l1 or ..))`."""

    def before(s: Scalars, right: Sequence[SSAValue], left: Sequence[SSAValue]) -> SSAValue:
        found: SSAValue | None = None
        for element, x, y in reversed(list(zip(keys, right, left))):
            t = Scalars(s.builder, is_unsigned(element))
            less, equal = ordered(t, x, y, total=op.is_total, descending=op.is_descending)
            found = less if found is None else t.any(less, t.i(arith.AndIOp, equal(), found))
        assert found is not None, "a sort has a key"
        return found

    return before


def ordered(s: Scalars, x: SSAValue, y: SSAValue, *, total: bool, descending: bool) -> tuple[SSAValue, Callable[[], SSAValue]]:
    """(x comes strictly before y, how to ask whether they are equal) in the order of `nd.sort`."""
    if descending:
        x, y = y, x
    if isinstance(x.type, IntegerType) or total:
        x, y = (v if isinstance(v.type, IntegerType) else total_order_bits(s, v) for v in (x, y))
        return compare(s, "lt", x, y), lambda: compare(s, "eq", x, y)
    x, y = widen(s, x), widen(s, y)
    nan_x, nan_y = s.cmpf("uno", x, x), s.cmpf("uno", y, y)
    less = s.any(s.cmpf("olt", x, y), s.i(arith.AndIOp, nan_y, s.i(arith.XOrIOp, nan_x, s.constant(-1, i1))))
    return less, lambda: s.any(s.cmpf("oeq", x, y), s.i(arith.AndIOp, nan_x, nan_y))


_WIDTHS = {"f64": 64, "f32": 32, "f16": 16, "bf16": 16}


def total_order_bits(s: Scalars, x: SSAValue) -> SSAValue:
    """A signed integer that orders as the float does in IEEE's total order: of negative numbers all bits but the sign are inverted."""
    bits = s.to(arith.BitcastOp, x, IntegerType(_WIDTHS[str(x.type)]))
    size = width(bits.type)
    sign = s.i(arith.ShRSIOp, bits, s.like(size - 1, bits))
    return s.i(arith.XOrIOp, bits, s.i(arith.AndIOp, sign, s.like((1 << (size - 1)) - 1, bits)))


def sort_rows(loops: LoopBuilder, operands: Sequence[SSAValue], buffers: Sequence[SSAValue], before: Before) -> list[SSAValue]:
    """Each row of the last dimension: copied into the first buffers, then merged to and fro."""
    count = len(operands)
    *rows, n = loops.sizes(operands[0])

    def one_row(row: LoopBuilder, at: list[SSAValue], carried: list[SSAValue]) -> list[SSAValue]:
        copied = copied_row(row, at, n, operands, carried[:count])

        def pair(inner: LoopBuilder, _: list[SSAValue], state: list[SSAValue]) -> list[SSAValue]:
            there, other, run = state[:count], state[count:-1], state[-1]
            s = Scalars(inner.builder)
            twice = s.i(arith.AddiOp, run, run)
            other = _merge_pass(inner, at, n, run, there, other, before)
            there = _merge_pass(inner, at, n, twice, other, there, before)
            return [*there, *other, s.i(arith.AddiOp, twice, twice)]

        *merged, _ = row.loops([_pairs(row, n, operands[0])], [*copied, *carried[count:], row.index(1)], pair)
        return merged

    return loops.loops(rows, list(buffers), one_row, work=_visits(operands[0]))


def select_rows(
    loops: LoopBuilder, operands: Sequence[SSAValue], results: Sequence[SSAValue], first: int, before: Before
) -> list[SSAValue]:
    """The `first` elements of each sorted row: the best so far are kept in order, most elements only compare with the last of them.

    An element goes before what it must come before and behind its equals, so that the order is that of a stable sort.
    """
    *rows, n = loops.sizes(operands[0])
    count = len(operands)

    def one_row(row: LoopBuilder, at: list[SSAValue], carried: list[SSAValue]) -> list[SSAValue]:
        def put(inner: LoopBuilder, xs: Sequence[SSAValue], into: Sequence[SSAValue], filled: SSAValue) -> list[SSAValue]:
            """Insert `xs` among the first `filled`; what comes out at the end."""
            moved = Scalars(inner.builder).constant(0, i1)

            def step(deeper: LoopBuilder, j: list[SSAValue], state: list[SSAValue]) -> list[SSAValue]:
                s = Scalars(deeper.builder)
                kept, mine, going = state[:count], state[count:-1], state[-1]
                place = [*at, *j]
                there = [deeper.load(x, place) for x in kept]
                takes = s.any(going, before(s, mine, there))
                stored = [deeper.store(s.select(takes, x, y), z, place) for x, y, z in zip(mine, there, kept)]
                return [*stored, *(s.select(takes, y, x) for x, y in zip(mine, there)), takes]

            return inner.loops([filled], [*into, *xs, moved], step)[:-1]

        def fill(inner: LoopBuilder, i: list[SSAValue], kept: list[SSAValue]) -> list[SSAValue]:
            found = put(inner, [inner.load(x, [*at, *i]) for x in operands], kept, i[0])
            return [inner.store(x, z, [*at, *i]) for x, z in zip(found[count:], found[:count])]

        def visit(inner: LoopBuilder, i: list[SSAValue], state: list[SSAValue]) -> list[SSAValue]:
            s = Scalars(inner.builder)
            kept, worst = state[:count], state[count:]
            place = s.i(arith.AddiOp, i[0], inner.index(first))
            xs = [inner.load(x, [*at, place]) for x in operands]

            def insert(deeper: LoopBuilder) -> list[SSAValue]:
                found = put(deeper, xs, kept, deeper.index(first))[:count]
                return [*found, *(deeper.load(z, [*at, deeper.index(first - 1)]) for z in found)]

            return inner.when_all(before(s, xs, worst), insert, [*kept, *worst])

        filled = row.loops([row.index(first)], carried, fill)
        worst = [row.load(z, [*at, row.index(first - 1)]) for z in filled]
        rest = Scalars(row.builder).i(arith.SubiOp, n, row.index(first))
        return row.loops([rest], [*filled, *worst], visit)[:count]

    return loops.loops(rows, list(results), one_row, work=_visits(operands[0]))


def _visits(operand: SSAValue) -> int:
    """About how many elements sorting one row visits; a size that only the run knows counts as 64."""
    size = shape_of(operand)[rank_of(operand) - 1]
    known = size if isinstance(size, int) else 64
    return known * known.bit_length()


def _pairs(loops: LoopBuilder, n: SSAValue, operand: SSAValue) -> SSAValue:
    """How many pairs of passes sort n elements: the least p with 4**p >= n."""
    size = shape_of(operand)[rank_of(operand) - 1]
    if isinstance(size, int):
        return loops.index(next(p for p in range(64) if 4**p >= size))
    s = Scalars(loops.builder)
    total = loops.index(0)
    for p in range(31):
        longer = s.cmpi("ugt", n, loops.index(4**p))
        total = s.i(arith.AddiOp, total, s.select(longer, loops.index(1), loops.index(0)))
    return total


def _merge_pass(
    loops: LoopBuilder,
    row: Sequence[SSAValue],
    n: SSAValue,
    run: SSAValue,
    source: Sequence[SSAValue],
    target: Sequence[SSAValue],
    before: Before,
) -> list[SSAValue]:
    """Neighbouring runs of length `run` of `source`, merged into `target`."""
    s = Scalars(loops.builder)
    span = s.i(arith.AddiOp, run, run)
    last, one = s.i(arith.SubiOp, n, loops.index(1)), loops.index(1)
    blocks = s.i(arith.DivUIOp, s.i(arith.AddiOp, last, span), span)

    def one_block(block: LoopBuilder, at: list[SSAValue], carried: list[SSAValue]) -> list[SSAValue]:
        t = Scalars(block.builder)
        low = t.i(arith.MuliOp, at[0], span)
        middle = t.i(arith.MinUIOp, t.i(arith.AddiOp, low, run), n)
        high = t.i(arith.MinUIOp, t.i(arith.AddiOp, low, span), n)

        def step(inner: LoopBuilder, k: list[SSAValue], state: list[SSAValue]) -> list[SSAValue]:
            u = Scalars(inner.builder)
            *into, i, j = state
            lefts = [inner.load(x, [*row, u.i(arith.MinUIOp, i, last)]) for x in source]
            rights = [inner.load(x, [*row, u.i(arith.MinUIOp, j, last)]) for x in source]
            left_done, right_left = u.cmpi("uge", i, middle), u.cmpi("ult", j, high)
            takes = u.i(arith.AndIOp, right_left, u.any(left_done, before(u, rights, lefts)))
            place = [*row, u.i(arith.AddiOp, low, k[0])]
            stored = [inner.store(u.select(takes, y, x), z, place) for x, y, z in zip(lefts, rights, into)]
            ahead, further = u.i(arith.AddiOp, i, one), u.i(arith.AddiOp, j, one)
            return [*stored, u.select(takes, i, ahead), u.select(takes, further, j)]

        *filled, _, _ = block.loops([t.i(arith.SubiOp, high, low)], [*carried, low, middle], step)
        return filled

    return loops.loops([blocks], list(target), one_block)
