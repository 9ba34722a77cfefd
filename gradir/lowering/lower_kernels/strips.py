"""Loops over one dimension in vectors, with what is left over in narrower ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from xdsl.ir import SSAValue

from gradir.lowering.lower_kernels.binding import Space
from gradir.lowering.lower_kernels.builder import Index, LoopBuilder
from gradir.lowering.lower_kernels.tiles import Axis, Tile, powers_of_two

Action: TypeAlias = Callable[[LoopBuilder, Tile], None]


def each(b: LoopBuilder, low: Index, high: Index, step: int, action: Callable[[LoopBuilder, SSAValue], None]) -> None:
    """A loop that carries nothing."""

    def carry(c: LoopBuilder, i: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
        action(c, i)
        return []

    b.loop(low, high, step, [], carry)


def each_block(b: LoopBuilder, low: Index, high: Index, block: int, action: Callable[[LoopBuilder, Index, Index], None]) -> None:
    """`scf.parallel` over blocks of a range; `action` gets the bounds of one block."""
    b.parallel(low, high, block, lambda c, i: action(c, i, c.minimum(c.add(i, block), high)))


def nest(b: LoopBuilder, dims: list[int], space: Space, tile: Tile, inside: Action) -> None:
    """Loops over all of `dims`, the first outermost; `inside` gets the tile at each point."""
    if not dims:
        inside(b, tile)
        return
    each(b, 0, space.extents[dims[0]], 1, lambda c, i: nest(c, dims[1:], space, tile.moved(dims[0], i), inside))


def shared_dim(dims: list[int], space: Space) -> tuple[int, list[int]]:
    """The outermost of `dims` that is longer than 1, for threads to share, and the others."""
    first = next((d for d in dims if space.extents[d] != 1), dims[0])
    return first, [d for d in dims if d != first]


def tail(extent: int, whole: int, lanes: int, pieces: bool) -> Iterator[tuple[int, int]]:
    """(start, size) of the vectors after the whole ones: powers of two down to 1, or down to `lanes` when `pieces` is false."""
    for start, size in powers_of_two(extent - whole, 1 << 20):
        if pieces or size >= lanes:
            yield whole + start, size


def strips(b: LoopBuilder, tile: Tile, dim: int, low: Index, high: Index, lanes: int, action: Action, *, pieces: bool = True) -> None:
    """`action` on tiles of `lanes` lanes along `dim` from `low` to `high`, then on narrower ones.

    Left-over lanes of a known number go in pieces of powers of two (`pieces`), else one by one in a loop.
    """
    if lanes == 1:
        each(b, low, high, 1, lambda c, i: action(c, tile.moved(dim, i)))
        return
    if isinstance(low, int) and isinstance(high, int):
        whole: Index = low + (high - low) // lanes * lanes
    else:
        whole = b.add(low, b.round_down(b.sub(high, low), lanes))
    each(b, low, whole, lanes, lambda c, i: action(c, tile.moved(dim, i).with_axes(Axis(dim, lanes))))
    if pieces and isinstance(whole, int) and isinstance(high, int):
        for start, size in powers_of_two(high - whole, lanes):
            at = tile.moved(dim, whole + start)
            action(b, at.with_axes(Axis(dim, size)) if size > 1 else at)
        return
    each(b, whole, high, 1, lambda c, i: action(c, tile.moved(dim, i)))
