"""Whole rows that a kernel gathers from a table: their index is computed once a row, and rows further on are asked for meanwhile.

Rows of a table come from anywhere in memory: the processor fetches ahead within a row, not from one row to the next, so each begins with
the latency of memory. The index of a row some steps ahead is known; a `memref.prefetch` of the same columns of that row goes with each
vector of the present one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue

from gradir.dialects.upstream import linalg, memref
from gradir.lowering.lower_kernels.binding import BoundOp, Kernel, Space, compute
from gradir.lowering.lower_kernels.builder import LoopBuilder, strides_of
from gradir.lowering.lower_kernels.tiles import Tile
from gradir.lowering.schedules.machine import LINE_BYTES, Machine, element_bytes
from gradir.lowering.schedules.streaming import bytes_in_all

AHEAD_BYTES = 4 << 10
"""How far ahead in bytes that are copied meanwhile: about the latency of memory."""
SHORTEST_ROW = 4 * LINE_BYTES
"""Shorter rows are over before what was asked for arrives."""


@dataclass(frozen=True, eq=False)
class GatheredRows:
    """One gather of whole rows: `load` in the body of `op` reads `table` at indices that `dim`, the vector dimension, does not change."""

    kernel: Kernel
    space: Space
    op: BoundOp
    load: memref.LoadOp
    table: SSAValue
    dim: int
    row: int
    steps: int
    """How many rows on to ask for; 0: none."""
    inside: tuple[SSAValue, ...]
    """Values of the body that are for these indices only."""

    @contextmanager
    def row_at(self, b: LoopBuilder, at: Tile) -> Generator[Callable[[LoopBuilder, Tile], None]]:
        """Compute the indices of the row at `at` once, for all that is built inside; gives what asks for a later row at a tile."""
        wanted = self.load.indices[:-1]
        here = [compute(b, self.kernel, self.op, at, {}, None, index) for index in wanted]
        later: list[SSAValue] = []
        if self.steps:
            last = b.sub(self.space.extents[self.row], 1)
            ahead = at.moved(self.row, b.minimum(b.add(at.at[self.row], self.steps), last))
            later = [compute(b, self.kernel, self.op, ahead, {}, None, index) for index in wanted]
        values = self.kernel.values
        known = {**dict.fromkeys(self.inside, here[0]), **dict(zip(wanted, here))}
        values.update(known)

        def ask(c: LoopBuilder, tile: Tile) -> None:
            if not later or not tile.axes:
                return
            for first in range(0, tile.axes[-1].size, LINE_BYTES // element_bytes(self.load.res.type)):
                column = c.value(c.add(tile.at[self.dim], first))
                c.prefetch(self.table, [*later, column])

        try:
            yield ask
        finally:
            for value in known:
                del values[value]


def gathered_rows(kernel: Kernel, space: Space, dim: int, machine: Machine) -> GatheredRows | None:
    """The one gather of a kernel that reads rows along `dim`, with indices that come from memory alone."""
    around = [d for d in range(len(space.extents)) if d != dim and space.extents[d] != 1]
    found = [
        (op, i) for op in space.ops if isinstance(op.op, linalg.GenericOp) for i in op.op.body.block.ops if isinstance(i, memref.LoadOp)
    ]
    extent = space.extents[dim]
    if len(found) != 1 or not around or not isinstance(extent, int):
        return None
    op, load = found[0]
    last, table = load.indices[-1].owner, kernel.value(load.memref)
    whole = isinstance(last, linalg.IndexOp) and op.dims[last.dim.value.data] == dim
    if not whole or len(load.indices) < 2 or not isinstance(table.type, MemRefType) or strides_of(table.type)[-1] != 1:
        return None
    slice_ = _slice(load)
    if any(isinstance(o, linalg.IndexOp) and op.dims[o.dim.value.data] == dim for o in slice_):
        return None
    produced = space.produced
    if any(i is not None and (i.memory in produced or dim in {d for e in i.map.results for d in e.used_dims()}) for i in op.used):
        return None
    inside = tuple(r for o in slice_ for r in o.results if all(use.operation in slice_ or use.operation is load for use in r.uses))
    if not set(load.indices[:-1]) <= set(inside):
        return None
    row_bytes = extent * element_bytes(load.res.type)
    far = row_bytes >= SHORTEST_ROW and bytes_in_all(table) > machine.l2
    return GatheredRows(kernel, space, op, load, table, dim, around[-1], max(1, AHEAD_BYTES // row_bytes) if far else 0, inside)


def _slice(load: memref.LoadOp) -> set[Operation]:
    """The ops of the body that the rows' indices are computed by."""
    found: set[Operation] = set()
    waiting: list[SSAValue] = list(load.indices[:-1])
    while waiting:
        owner = waiting.pop().owner
        if isinstance(owner, Operation) and owner.parent is load.parent and owner not in found:
            found.add(owner)
            waiting += owner.operands
    return found


__all__ = ["GatheredRows", "gathered_rows"]
