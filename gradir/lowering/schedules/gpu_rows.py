"""Schedules of row kernels on a GPU: how many threads share a row, what each of them holds of it, rows of a block.

A row is read once where its elements fit the registers of the threads that share it: one thread for windows, a part of a warp for short
rows, a warp (no barrier) up to 1024 elements, a block beyond. Longer rows are swept from memory once for every value that the next
sweep needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, prod

from gradir.dialects.kernel import RowsAttr
from gradir.dialects.target.cuda import CudaTargetAttr
from gradir.dialects.target.cuda_facts import WARP
from gradir.lowering.groups import Group
from gradir.lowering.schedules.machine import bytes_of

ACCESS = 16
"""Bytes of the widest access."""
MOST_LANES = 8
THREADS = 256
"""Threads of a block whose rows are shorter than a block."""
MOST_THREADS = 1024
HELD = 32
"""4-byte values of a row in a thread's registers: with what is computed from them below the 64 registers of 1024 threads a block."""
WINDOW = 64
"""Elements that one thread sweeps alone, neighbours in the order of the rows."""
LONG_THREADS = 512
"""Threads that sweep a row that no block holds."""


@dataclass(frozen=True)
class RowTile:
    """`width` threads share a row in accesses of `lanes` elements; `chunks` accesses of each are in registers (0: swept from memory)."""

    width: int
    lanes: int
    chunks: int
    rows: int
    """Rows of a block."""

    @classmethod
    def of(cls, schedule: RowsAttr) -> RowTile | None:
        """From tile = [threads of a row, elements of an access, accesses in registers], block = [rows]; None for another machine's."""
        tile, block = schedule.field("tile"), schedule.field("block")
        return cls(*tile, *block) if len(tile) == 3 and len(block) == 1 else None


def schedule_gpu_rows(group: Group, target: CudaTargetAttr) -> RowsAttr:
    """tile = [threads of a row, elements of an access, accesses in registers], block = [rows]."""
    tile = row_tile(group)
    return RowsAttr.of(tile=[tile.width, tile.lanes, tile.chunks], block=[tile.rows])


def row_tile(group: Group) -> RowTile:
    """How the rows of a group are shared out."""
    roles = group.rows
    assert roles is not None
    extents = [group.extents[d] for d in roles.inner]
    known = [e for e in extents if isinstance(e, int)]
    if len(known) != len(extents):
        return RowTile(THREADS, 1, 0, 1)
    length = prod(known)
    sizes = [bytes_of(o.output) for o in group.ops] + [bytes_of(v) for o in group.ops for v, _ in o.inputs if v not in group.produced]
    turned = group.space[-1] in roles.outer
    held = HELD * 4 // max(4, *sizes) // values_held(group)
    if turned and length <= WINDOW:
        return RowTile(1, 1, length if length <= held else 0, THREADS // 2)
    last = next((e for e in reversed(known) if e != 1), 1)
    lanes = 1 if turned or not last else gcd(last, min(MOST_LANES, ACCESS // min(sizes)))
    while lanes > 1 and length // lanes < WARP // 2:  # all lanes of a warp take part first
        lanes //= 2
    accesses = -(-length // lanes)
    chunks = max(1, held // lanes)
    width = 1
    while width < WARP and width < accesses:
        width *= 2
    while width * chunks < accesses and width < MOST_THREADS:
        width *= 2
    if width * chunks < accesses:
        return RowTile(LONG_THREADS, lanes, 0, 1)
    return RowTile(width, lanes, -(-accesses // width), max(1, THREADS // width))


def fits_a_launch(group: Group) -> bool:
    """A single row that is swept more than once has to fit one block: a value that the whole grid joins ends a launch."""
    roles = group.rows
    return roles is None or bool(roles.outer) or roles.sweeps == 1 or row_tile(group).chunks > 0


def values_held(group: Group) -> int:
    """Values of a position in a row that a later sweep reads again, at most: inputs and results of the group."""
    roles = group.rows
    assert roles is not None
    if roles.sweeps == 1:
        return 1
    rank = len(group.extents)
    inputs = {v for o in group.ops for v, m in o.inputs if v not in group.produced and len(m.used_dims()) == rank}
    return max(1, len(inputs))


def reason_gpu_rows(group: Group, target: CudaTargetAttr, schedule: RowsAttr) -> str:
    """`4 rows a block, 64 threads a row, each 7 accesses of 4 elements: the row is read once`"""
    tile = RowTile.of(schedule)
    if tile is None:
        return "a schedule of another machine"
    threads = f"{tile.rows} rows a block, {tile.width} threads a row"
    if not tile.chunks:
        return f"{threads}, swept from memory in accesses of {tile.lanes} elements"
    return f"{threads}, each {tile.chunks} accesses of {tile.lanes} elements in registers"
