"""Schedules of contractions: the register tile, packing, and the loop that threads share."""

from __future__ import annotations


def even_split(n: int, most: int) -> list[tuple[int, int, int]]:
    """`n` rows as (start, count, size) runs of tiles of at most `most` rows that differ by one row at most.

    A size between 2/3 of `most` and `most` that divides `n` is preferred: one micro-kernel instead of two.
    """
    if n <= 0:
        return []
    for size in range(most, 2 * most // 3, -1):
        if n % size == 0:
            return [(0, n // size, size)]
    count = -(-n // most)
    small, larger = divmod(n, count)
    runs = [(0, larger, small + 1), (larger * (small + 1), count - larger, small)]
    return [r for r in runs if r[1] > 0]
