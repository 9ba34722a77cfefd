"""Tiles of a product on tensor cores: fragments from workgroup memory by `ldmatrix`, 16x8 sums of a warp by `mma.sync`.

A warp adds up `rows x columns` of the block's tile. Fragments along the depth are two pieces of 16 bytes (PTX ISA, "Matrix fragments for
mma.m16n8k16"; one of 8 bit has twice the elements in the same bytes); a tile that lies across the depth is read with `.trans`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Attribute, SSAValue

from gradir.dialects.target.cuda_facts import WARP
from gradir.dialects.types import i64_array
from gradir.dialects.upstream import nvgpu, vector
from gradir.lowering.lower_kernels.builder import Index, LoopBuilder, vector_type
from gradir.lowering.lower_kernels.tiles import vector_slice
from gradir.lowering.lower_kernels_gpu.launch import divide
from gradir.lowering.lower_kernels_gpu.staging import Staged, append, exchanged
from gradir.lowering.schedules.machine import element_bytes

ROWS, COLUMNS = 16, 8
"""Of the sums of one instruction."""
STEP_BYTES = 32
"""Bytes of a factor along the depth of one instruction."""


@dataclass(frozen=True)
class Warps:
    """Where a thread's warp is in the block's tile, and the thread in its warp."""

    rows: int
    columns: int
    row: Index
    column: Index
    lane: Index

    @staticmethod
    def of(b: LoopBuilder, thread: Index, block_rows: int, rows: int, columns: int) -> Warps:
        """Warps of `rows` by `columns`, one below the other first."""
        warp, lane = divide(b, thread, WARP)
        across, down = divide(b, warp, block_rows // rows)
        return Warps(rows, columns, b.mul(down, rows), b.mul(across, columns), lane)

    @property
    def fragments(self) -> tuple[int, int]:
        """Sums of a warp as instructions: down, across."""
        return self.rows // ROWS, self.columns // COLUMNS


def zeros(b: LoopBuilder, warps: Warps, element: Attribute) -> list[SSAValue]:
    """The sums before the first step, row of fragments by row."""
    down, across = warps.fragments
    zero = b.constant(DenseIntOrFPElementsAttr.from_list(vector_type(element, 2, 2), [0]))
    return [zero] * (down * across)


class Fragments:
    """How the lanes of a warp read one side's fragments, 16 rows (or columns) at a time, the warp's own part from `start` on."""

    def __init__(self, b: LoopBuilder, staged: Staged, warps: Warps, start: Index, extent: int, *, left: bool) -> None:
        self.staged, self.count, self.left = staged, extent // ROWS, left
        high, _ = divide(b, warps.lane, 16)
        quarter, low = divide(b, warps.lane, 8)
        _, odd = divide(b, quarter, 2)
        # lane l names row l % 8 of matrix l / 8; a left fragment goes down first, a right one along the depth first
        by_row, by_depth = (odd, high) if left else (high, odd)
        pieces = staged.inner // staged.of_piece
        steps = staged.depth * element_bytes(staged.element) // STEP_BYTES
        if staged.along:
            self.rows = [b.add(b.add(start, i * ROWS), b.add(low, b.mul(by_row, 8))) for i in range(self.count)]
            turn = b.add(low, b.mul(by_row, 8))  # tiles of 16 rows are exchanged alike
            self.columns = [self._column(b, b.add(by_depth, 2 * k), turn, pieces) for k in range(steps)]
        else:
            within = b.add(low, b.mul(by_depth, 8))
            self.rows = [b.add(within, k * 16) for k in range(steps)]
            first = divide(b, start, 8)[0]
            self.columns = [self._column(b, b.add(b.add(first, 2 * i), by_row), within, pieces) for i in range(self.count)]

    def _column(self, b: LoopBuilder, piece: Index, row: Index, pieces: int) -> Index:
        return b.mul(exchanged(b, piece, row, pieces), self.staged.of_piece)

    def read(self, b: LoopBuilder, stage: Index, i: int, k: int) -> list[SSAValue]:
        """The fragments of 16 rows of the left side, or the two of 8 columns of the right one, at step k."""
        staged = self.staged
        at = (self.rows[i], self.columns[k]) if staged.along else (self.rows[k], self.columns[i])
        width = 4 // element_bytes(staged.element)
        four = vector_type(staged.element, 4, width)
        loaded = append(b, nvgpu.LdMatrixOp.make(staged.memory, b.values([stage, *at]), four, not staged.along))
        assert loaded is not None
        if self.left:
            return [loaded]
        two = vector_type(staged.element, 2, width)
        return [
            b(
                vector.ExtractStridedSliceOp,
                [loaded],
                [two],
                {"offsets": vector_slice(k), "sizes": vector_slice(2), "strides": vector_slice(1)},
            )
            for k in (0, 2)
        ]


def multiply(b: LoopBuilder, stage: Index, left: Fragments, right: Fragments, sums: list[SSAValue]) -> list[SSAValue]:
    """The sums of a warp after the tiles of one stage."""
    size = element_bytes(left.staged.element)
    steps = left.staged.depth * size // STEP_BYTES
    shape = (ROWS, COLUMNS, STEP_BYTES // size)
    sums = list(sums)
    for k in range(steps):
        columns = [f for j in range(right.count) for f in right.read(b, stage, j, k)]
        for i in range(left.count):
            (row,) = left.read(b, stage, i, k)
            for j, column in enumerate(columns):
                at = i * len(columns) + j
                found = append(b, nvgpu.MmaSyncOp.make(row, column, sums[at], shape))
                assert found is not None
                sums[at] = found
    return sums


def visit(b: LoopBuilder, warps: Warps, sums: list[SSAValue], store: Callable[[SSAValue, Index, Index], None]) -> None:
    """Call `store(pair, row, column)` for every two neighbouring sums of this lane: rows g and g + 8, columns from 2t of each fragment."""
    group, member = divide(b, warps.lane, 4)
    down, across = warps.fragments
    for i in range(down):
        for half in range(2):
            row = b.add(b.add(warps.row, group), i * ROWS + 8 * half)
            for j in range(across):
                value = sums[i * across + j]
                pair = vector_type(value.type.element_type, 2)  # type: ignore[attr-defined]
                column = b.add(b.add(warps.column, b.mul(member, 2)), j * COLUMNS)
                store(b(vector.ExtractOp, [value], [pair], {"static_position": i64_array((half,))}), row, column)
