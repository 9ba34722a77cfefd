"""Tiles of a product by multiply-adds of single threads: vectors of four from workgroup memory, one outer product each two of them.

A thread has one or two fours of rows and of columns; two lie half a tile apart, so that neighbouring threads read neighbouring vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr, i64
from xdsl.ir import Attribute, SSAValue

from gradir.dialects.types import i64_array
from gradir.dialects.upstream import vector
from gradir.lowering.lower_kernels.builder import Index, LoopBuilder, vector_type
from gradir.lowering.lower_kernels_gpu.launch import divide, loop_between
from gradir.lowering.lower_kernels_gpu.staging import Staged

FOUR = 4
ALIGNED: dict[str, Attribute] = {"alignment": IntegerAttr(16, i64)}
_ADD = vector.CombiningKindAttr(vector.CombiningKindFlag.ADD)


@dataclass(frozen=True)
class Threads:
    """First rows and columns of a thread's fours."""

    rows: tuple[Index, ...]
    columns: tuple[Index, ...]

    @staticmethod
    def of(b: LoopBuilder, thread: Index, block: tuple[int, int], tile: tuple[int, int]) -> Threads:
        """Threads side by side along the columns."""
        down, across = divide(b, thread, block[1] // tile[1])
        starts = [
            tuple(b.add(b.mul(own, FOUR), part * (size // (count // FOUR))) for part in range(count // FOUR))
            for own, size, count in ((down, block[0], tile[0]), (across, block[1], tile[1]))
        ]
        return Threads(*starts)


def zeros(b: LoopBuilder, threads: Threads, element: Attribute) -> list[SSAValue]:
    """The sums before the first step, row of fours by row."""
    zero = b.constant(DenseIntOrFPElementsAttr.from_list(vector_type(element, FOUR, FOUR), [0]))
    return [zero] * (len(threads.rows) * len(threads.columns))


def multiply(b: LoopBuilder, stage: Index, left: Staged, right: Staged, threads: Threads, sums: list[SSAValue]) -> list[SSAValue]:
    """The sums of a thread after the tiles of one stage."""
    row = vector_type(left.element, FOUR)

    def step(c: LoopBuilder, p: SSAValue, accs: list[SSAValue]) -> list[SSAValue]:
        rows = [c(vector.LoadOp, [left.memory, *c.values([stage, p, at])], [row], attributes=ALIGNED) for at in threads.rows]
        columns = [c(vector.LoadOp, [right.memory, *c.values([stage, p, at])], [row], attributes=ALIGNED) for at in threads.columns]
        pairs = [(r, k) for r in rows for k in columns]
        return [c(vector.OuterProductOp, [r, k, acc], [acc.type], {"kind": _ADD}) for (r, k), acc in zip(pairs, accs)]

    return loop_between(b, 0, left.depth, 1, sums, step)


def visit(b: LoopBuilder, threads: Threads, sums: list[SSAValue], store: Callable[[SSAValue, Index, Index], None]) -> None:
    """Call `store(four, row, column)` for every row of the thread's fours."""
    for at, value in enumerate(sums):
        down, across = divmod(at, len(threads.columns))
        for r in range(FOUR):
            four = vector_type(value.type.element_type, FOUR)  # type: ignore[attr-defined]
            row = b(vector.ExtractOp, [value], [four], {"static_position": i64_array((r,))})
            store(row, b.add(threads.rows[down], r), threads.columns[across])
