"""Which op has which facet: a meaning, samples, a derivative, a lowering, ... A hole is an error unless it is skipped with a reason.

The tables of the upper layers (derivative rules, lowering rules) are handed in: this folder does not import them. The op reference
prints the table, a test fails on a hole. Plugins call `skip` too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from xdsl.ir import Operation

from gradir.dialects.nd import creation, effects, regions, shape
from gradir.dialects.nd.base import NdOp, Sample

OpClass = type[Operation]

SKIPPED: dict[tuple[OpClass, str], str] = {}
"""(op, facet) -> why the op has no such facet."""


def skip(op: OpClass, facet: str, reason: str) -> None:
    """`op` has no `facet`, on purpose; the reason is printed in the op reference."""
    SKIPPED[op, facet] = reason


@dataclass(frozen=True)
class Facet:
    """A column of the table. `has` tells whether an op has it, `how` in which way; `reasons` are skips that another table keeps."""

    name: str
    summary: str
    has: Callable[[OpClass], bool]
    reasons: Mapping[OpClass, str] = field(default_factory=dict[OpClass, str])
    how: Callable[[OpClass], str] = lambda _: "yes"


@dataclass(frozen=True)
class Cell:
    """Whether an op has a facet, and how; if not, why (an empty reason is a hole)."""

    present: bool
    reason: str = ""
    how: str = ""

    @property
    def is_hole(self) -> bool:
        """Neither there nor skipped."""
        return not self.present and not self.reason


@cache
def samples_of(op: OpClass) -> Sequence[Sample]:
    """The op's samples, none if it has no such method."""
    samples = getattr(op, "samples", None)
    return () if samples is None else samples()


def _has_samples(op: OpClass) -> bool:
    return len(samples_of(op)) > 0


def _has_meaning(op: OpClass) -> bool:
    if not issubclass(op, NdOp):
        return hasattr(op, "evaluate")
    return op.evaluate is not NdOp.evaluate or op.has_meaning()


EVALUATE = Facet("evaluate", "its definition as a numpy function", _has_meaning)
SAMPLES = Facet("samples", "small valid inputs, from which tests are generated", _has_samples)

skip(creation.SymbolOp, "evaluate", "the size belongs to the run: the reference evaluator knows what a name is bound to")
skip(shape.DimOp, "evaluate", "a number of the shape alone: the reference evaluator reads it off the operand")
skip(creation.BindOp, "evaluate", "gives a size its name and has no result; the reference evaluator keeps the names")
skip(effects.AssertOp, "evaluate", "it has no result; the reference evaluator stops where the condition is false")
skip(effects.PrintOp, "evaluate", "it has no result; the reference evaluator writes the line")
skip(regions.YieldOp, "evaluate", "part of the op around it")
skip(regions.YieldOp, "samples", "part of the op around it")
skip(regions.YieldOp, "linalg", "part of the op around it")
skip(regions.YieldOp, "batch", "part of the op around it")
for _op in (creation.ConstantOp, creation.IotaOp, creation.SymbolOp):
    skip(_op, "batch", "the same in every lane")


def facet_table(ops: Sequence[OpClass], facets: Sequence[Facet]) -> dict[str, dict[str, Cell]]:
    """Op name -> facet name -> cell, in the order given."""

    def cell(op: OpClass, facet: Facet) -> Cell:
        if facet.has(op):
            return Cell(True, how=facet.how(op))
        return Cell(False, SKIPPED.get((op, facet.name)) or facet.reasons.get(op, ""))

    return {op.name: {facet.name: cell(op, facet) for facet in facets} for op in ops}


def holes(table: Mapping[str, Mapping[str, Cell]]) -> list[str]:
    """`op: facet` of every cell that is neither there nor skipped."""
    return [f"{op}: {facet}" for op, row in table.items() for facet, cell in row.items() if cell.is_hole]
