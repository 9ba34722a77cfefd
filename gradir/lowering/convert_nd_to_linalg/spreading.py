"""Templates for a GPU: nests whose trips write apart, and owners of the parts of a result that many updates go to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from xdsl.ir import SSAValue

from gradir.dialects.types import Dim
from gradir.lowering.convert_nd_to_linalg.templates import LoopBuilder

THREADS_WANTED = 1 << 15
"""Threads that share the rows of a scatter's operand, if there are so many: each looks at all updates."""
UNKNOWN = 64


def owner_count(rows: Dim, apart: Sequence[Dim]) -> int:
    """Into how many parts (a power of two) `rows` are dealt, where `apart` dimensions have threads of their own already.

    The owner of a row takes its updates in their order: results are those of one thread, bit for bit.
    """
    threads = prod(size if isinstance(size, int) else UNKNOWN for size in apart)
    most = min(rows if isinstance(rows, int) else 1 << 10, max(1, THREADS_WANTED // max(1, threads)))
    return 1 << (max(1, most).bit_length() - 1)


def parallel_loops(
    loops: LoopBuilder,
    counts: Sequence[SSAValue],
    carried: Sequence[SSAValue],
    body: Callable[[LoopBuilder, list[SSAValue], list[SSAValue]], Sequence[SSAValue]],
) -> list[SSAValue]:
    """A nest all of whose loops say that their trips write apart: one launch of a thread per point on a GPU."""
    if not counts:
        return parallel_loops(loops, [loops.index(1)], carried, lambda inner, _, values: body(inner, [], values))

    def rest(inner: LoopBuilder, at: list[SSAValue], values: list[SSAValue]) -> Sequence[SSAValue]:
        if len(counts) == 1:
            return body(inner, at, values)
        return parallel_loops(inner, counts[1:], values, lambda deeper, more, kept: body(deeper, [*at, *more], kept))

    return loops.loops(counts[:1], carried, rest, work=1, alone=True)
