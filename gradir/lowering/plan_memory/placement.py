"""Offsets of buffers in one arena: several heuristics, of which the one that needs least is kept (part of `plan-memory`).

Placing intervals in time at offsets so that the total is least is NP-hard (dynamic storage allocation; Garey and Johnson, problem SR2).
A sweep over time with best fit and coalescing gaps is exact for most programs; where it needs more than the greatest number of bytes that
are live at once, buffers are placed one by one in several orders, and then the order is repaired: what ended up on top goes first.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence

from gradir.lowering.plan_memory.lifetimes import Interval

MAX_BY_SIZE = 512
"""Buffers up to which the orders other than time, which are quadratic, are tried."""
ENOUGH = 1.02
"""No further order is tried once the arena is within this factor of the lower bound."""
REPAIRS = 12
"""How often an order is repaired at most."""
REPAIR_WORK = 200_000
"""Pairs of buffers that all repairs together may look at."""

Placement = tuple[dict[Interval, int], int]


def peak(intervals: Sequence[Interval]) -> int:
    """The greatest number of bytes that are live at one moment: no arena can be smaller."""
    return peak_moment(intervals)[0]


def peak_moment(intervals: Sequence[Interval]) -> tuple[int, int]:
    """The greatest number of bytes that are live at one moment, and the first such moment."""
    changes: dict[int, int] = {}
    for i in intervals:
        changes[i.start] = changes.get(i.start, 0) + i.bytes
        changes[i.end + 1] = changes.get(i.end + 1, 0) - i.bytes
    most = live = at = 0
    for position in sorted(changes):
        live += changes[position]
        if live > most:
            most, at = live, position
    return most, at


def place(intervals: Sequence[Interval]) -> Placement:
    """Offsets at which no two buffers that are live together overlap, and the bytes needed."""
    best = _by_time(intervals)
    bound = peak(intervals)
    if best[1] <= bound or len(intervals) > MAX_BY_SIZE:
        return best
    good = bound * ENOUGH
    order = list(intervals)
    for key in _ORDERS:
        if best[1] <= good:
            return best
        tried = sorted(intervals, key=key)
        other = _one_by_one(tried)
        if other[1] < best[1]:
            best, order = other, tried
    return _repaired(order, best, good)


def _large_first(i: Interval) -> tuple[int, int]:
    return (-i.bytes, i.start)


def _long_first(i: Interval) -> tuple[int, int]:
    return (i.start - i.end, -i.bytes)


def _area_first(i: Interval) -> tuple[int, int]:
    return ((i.start - i.end - 1) * i.bytes, i.start)


_ORDERS: tuple[Callable[[Interval], tuple[int, int]], ...] = (_large_first, _area_first, _long_first)


def _repaired(order: Sequence[Interval], best: Placement, good: float) -> Placement:
    """What reaches the top of the arena found no room below it: placed first, it does, and others fill in."""
    current = best
    tried = list(order)
    for _ in range(min(REPAIRS, REPAIR_WORK // len(tried) ** 2)):
        if best[1] <= good:
            break
        offsets, total = current
        on_top = {i for i in tried if offsets[i] + i.bytes == total}
        again = [i for i in tried if i in on_top] + [i for i in tried if i not in on_top]
        if again == tried:
            break
        tried = again
        current = _one_by_one(tried)
        if current[1] < best[1]:
            best = current
    return best


def _by_time(intervals: Sequence[Interval]) -> Placement:
    """Best fit in the order in which buffers come to life; gaps are kept sorted by offset."""
    offsets: dict[Interval, int] = {}
    gaps: list[tuple[int, int]] = []  # (offset, end) of free bytes below `total`
    live: list[tuple[int, int, int]] = []  # (end of life, offset, bytes)
    total = 0
    for i in sorted(intervals, key=lambda i: (i.start, i.start - i.end, -i.bytes)):
        while live and live[0][0] < i.start:
            _, offset, size = live.pop(0)
            _release(gaps, offset, offset + size)
        fitting = [(end - offset, offset) for offset, end in gaps if end - offset >= i.bytes]
        if fitting:
            size, offset = min(fitting)
            k = bisect_left(gaps, (offset, offset + size))
            gaps[k : k + 1] = [(offset + i.bytes, offset + size)] if size > i.bytes else []
        else:
            offset = total
            if gaps and gaps[-1][1] == total:  # grow the last gap
                offset = gaps.pop()[0]
            total = offset + i.bytes
        offsets[i] = offset
        if i.bytes:
            insort(live, (i.end, offset, i.bytes))
    return offsets, total


def _release(gaps: list[tuple[int, int]], start: int, end: int) -> None:
    """Add a gap, joined with its neighbours."""
    k = bisect_left(gaps, (start, end))
    if k < len(gaps) and gaps[k][0] == end:
        end = gaps.pop(k)[1]
    if k > 0 and gaps[k - 1][1] == start:
        k -= 1
        start = gaps.pop(k)[0]
    gaps.insert(k, (start, end))


def _one_by_one(intervals: Sequence[Interval]) -> Placement:
    """Each buffer in the tightest gap, the lowest of several, that is free for its whole life, in the given order."""
    offsets: dict[Interval, int] = {}
    placed: list[tuple[int, int, int, int]] = []  # (start, end of life, offset, end of bytes)
    total = 0
    for i in intervals:
        start, end, size = i.start, i.end, i.bytes
        taken = sorted((low, high) for first, last, low, high in placed if first <= end and start <= last)
        best = top = 0
        tightest: int | None = None
        for low, high in taken:
            gap = low - top
            if gap >= size and (tightest is None or gap < tightest):
                best, tightest = top, gap
            top = max(top, high)
        offset = top if tightest is None else best
        offsets[i] = offset
        if size:
            placed.append((start, end, offset, offset + size))
        total = max(total, offset + size)
    return offsets, total
