"""`--timing`: a tree of wall times, as `mlir-opt --mlir-timing` prints it."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

WIDTH = 73


@dataclass
class Row:
    """Seconds spent under one name, and the parts of it; equal names of one parent are added up."""

    name: str
    seconds: float = 0.0
    parts: dict[str, Row] = field(default_factory=dict[str, "Row"])


class Timer:
    """`with timer("name")` measures; nested uses become nested rows."""

    def __init__(self, start: float) -> None:
        self.start = start
        self.root = Row("Total")
        self._stack = [self.root]

    @contextmanager
    def __call__(self, name: str) -> Generator[None]:
        row = self._stack[-1].parts.setdefault(name, Row(name))
        self._stack.append(row)
        began = time.perf_counter()
        try:
            yield
        finally:
            row.seconds += time.perf_counter() - began
            self._stack.pop()

    def record(self, name: str, seconds: float) -> None:
        """Add time that was measured elsewhere."""
        self._stack[-1].parts.setdefault(name, Row(name)).seconds += seconds

    def report(self) -> str:
        """The tree, with what no row covers as `Rest`."""
        total = time.perf_counter() - self.start
        rule = f"===-{'-' * WIDTH}-==="
        lines = [rule, f"{'... Execution time report ...':^{WIDTH + 8}}".rstrip(), rule]
        lines += [f"  Total Execution Time: {total:.4f} seconds", "", "  ----Wall Time----  ----Name----"]
        rest = total - sum(row.seconds for row in self.root.parts.values())
        for depth, name, seconds in [*_flat(self.root, 0), (0, "Rest", rest), (0, "Total", total)]:
            lines.append(f"  {seconds:8.4f} ({100 * seconds / total:5.1f}%)  {'  ' * depth}{name}")
        return "\n".join(lines) + "\n"


def _flat(row: Row, depth: int) -> Iterator[tuple[int, str, float]]:
    for part in row.parts.values():
        yield depth, part.name, part.seconds
        yield from _flat(part, depth + 1)
