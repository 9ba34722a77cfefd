"""Which tile a block computes: groups of tile rows, column by column, so that blocks that run together read the same operands from L2."""

from __future__ import annotations

from typing import NamedTuple

from gradir.lowering.lower_kernels.builder import Index, LoopBuilder
from gradir.lowering.lower_kernels_gpu.launch import divide

GROUP = 8
"""Tile rows of a group."""


class Place(NamedTuple):
    """What a block computes: number of the batch, tile row and column, part of the sum."""

    batch: Index
    row: Index
    column: Index
    part: Index


def place_of_block(b: LoopBuilder, block: Index, batches: int, rows: int, columns: int) -> Place:
    """The place of the block with number `block` of (parts x batches x rows x columns)."""
    outer, tile = divide(b, block, rows * columns)
    part, batch = divide(b, outer, batches)
    if rows <= GROUP:
        column, row = divide(b, tile, rows)
        return Place(batch, row, column, part)
    group, within = divide(b, tile, GROUP * columns)
    first = b.mul(group, GROUP)
    height: Index = GROUP if rows % GROUP == 0 else b.minimum(b.sub(rows, first), GROUP)
    column, row = divide(b, within, height)
    return Place(batch, b.add(first, row), column, part)
