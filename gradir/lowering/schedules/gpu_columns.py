"""Schedules of reductions over rows (columns stay) and over everything: into how many parts a sum is cut for the whole card to take part.

A part is a block's; the parts are written to memory and joined by a second launch in their order, so that results do not depend on timing.
"""

from __future__ import annotations

from dataclasses import dataclass

from gradir.dialects.target.cuda import CudaTargetAttr

COLUMNS = 32
"""Columns of a block: a warp reads neighbours."""
LINES = 8
"""Warps of a block, which share its rows."""
LEAST_ROWS = 32
"""Rows of a part, at least: four of each warp."""
LEAST_ELEMENTS = 4096
"""Elements of a part of a total, at least: 16 of each thread."""
MOST_PARTS = 1024
WAVES = 2
"""Blocks for every multiprocessor that there should be."""


@dataclass(frozen=True)
class Parts:
    """`count` parts of `size` rows (of a total: elements) each; the last may be shorter."""

    count: int
    size: int


def column_parts(rows: int | None, columns: int | None, target: CudaTargetAttr) -> Parts | None:
    """Parts of the rows under `columns` columns (1 where everything is reduced); None where one launch does it all."""
    if not rows or not columns:
        return None
    least = LEAST_ELEMENTS if columns == 1 else LEAST_ROWS
    tiles = 1 if columns == 1 else -(-columns // COLUMNS)
    count = min(-(-WAVES * target.sms // tiles), rows // least, MOST_PARTS)
    if count < 2:
        return None
    size = -(-rows // count)
    return Parts(-(-rows // size), size)
