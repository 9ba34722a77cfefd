"""The residual report: what reverse mode keeps of the forward part, where, how large, and why.

A residual is recorded under the value that *holds* it in the new function: itself in straight-line code, the stack that leaves a loop,
an extra result of a branch or of a call. When an enclosing region saves that holder in turn, its record moves along (`keep`), so that
nothing is counted twice; what was built and dropped again is in no function and therefore in no report.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.core import OpResult

from gradir.dialects.types import element_of, numpy_dtype, shape_of
from gradir.ir.passes import location_text
from gradir.ir.structure import block_of
from gradir.size_algebra import Dim, plus, product, times

FACT = "residuals"
"""Key of the `ResidualReport` that `differentiate{report-residuals}` leaves in its context's facts."""
NESTED = " > "
"""Between the places of `Residual.where`, outermost first."""


@dataclass(frozen=True)
class Residual:
    """One residual. `bytes` are all of its entries: a number, a formula in the run-time sizes, or None where a size has no name.

    `where` names the regions that it leaves, outermost first. `again`: it lives in the backward part alone, while a region runs again.
    """

    name: str
    op: str
    type: str
    location: str
    bytes: Dim
    where: str
    why: str
    again: bool = False


@dataclass(frozen=True)
class FunctionResiduals:
    """What one generated function keeps."""

    function: str
    residuals: tuple[Residual, ...]

    def total(self, *, again: bool) -> Dim:
        """Bytes kept from the forward part, or (`again`) made anew in the backward part."""
        return sum_of(r.bytes for r in self.residuals if r.again == again)


@dataclass(frozen=True)
class ResidualReport:
    """What all generated functions keep. `str(report)` is a table."""

    functions: tuple[FunctionResiduals, ...] = ()

    def __str__(self) -> str:
        return "\n".join(table(function) for function in self.functions) or "no residuals\n"


def table(kept: FunctionResiduals) -> str:
    """One residual a line, then the totals."""
    head = ("bytes", "value", "op", "type", "at", "leaves", "why")
    rows = [head, *(_cells(r) for r in kept.residuals)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(head))]
    lines = [f"residuals of @{kept.function}"]
    for row in rows:
        cells = [row[0].rjust(widths[0]), *(cell.ljust(width) for cell, width in zip(row[1:], widths[1:]))]
        lines.append("  " + "  ".join(cells).rstrip())
    lines.append(f"  {_bytes_text(kept.total(again=False))} bytes from the forward part")
    if any(r.again for r in kept.residuals):
        lines.append(f"  {_bytes_text(kept.total(again=True))} bytes made anew in the backward part")
    return "\n".join(lines) + "\n"


def _cells(r: Residual) -> tuple[str, ...]:
    again = " (made anew in reverse)" if r.again else ""
    return _bytes_text(r.bytes), f"%{r.name}" if r.name else "", r.op, r.type, r.location, r.where, r.why + again


def _bytes_text(size: Dim) -> str:
    return "?" if size is None else str(size)


@dataclass
class Ledger:
    """The records of a program under differentiation; nothing is recorded unless it is `on`."""

    on: bool = False
    functions: list[FunctionResiduals] = field(default_factory=list[FunctionResiduals])
    _held: dict[SSAValue, Residual] = field(default_factory=dict[SSAValue, Residual])
    _reversals: dict[Operation, str] = field(default_factory=dict[Operation, str])
    """First op of each reversal in the backward part -> the op that it reverses."""

    def keep(self, holder: SSAValue, value: SSAValue, *, where: str, why: str, entries: Dim = 1, again: bool = False) -> None:
        """`holder` keeps `entries` values like `value`. What `value` itself holds for a region inside is recorded there no more."""
        if not self.on:
            return
        inside = self._held.pop(value, None)
        if inside is None:
            name, op = value.name_hint or "", value.op.name if isinstance(value, OpResult) else "block argument"
            self._held[holder] = Residual(name, op, str(value.type), _place(value), times(bytes_of(value.type), entries), where, why, again)
        else:
            places = where + NESTED + inside.where if inside.where != where else where
            self._held[holder] = replace(inside, bytes=times(inside.bytes, entries), where=places, again=again or inside.again)

    def keep_all(self, holders: Sequence[SSAValue], records: Sequence[Residual], *, where: str, again: bool = False) -> None:
        """`holders` keep what a callee's forward half returned: one record each."""
        if self.on:
            for holder, record in zip(holders, records):  # sizes, which come last, have no record
                self._held[holder] = replace(record, where=where + NESTED + record.where, again=again or record.again)

    def moved(self, old: SSAValue, new: SSAValue) -> None:
        """`new` is what `old` was."""
        if old in self._held:
            self._held[new] = self._held.pop(old)

    def runs_again(self, block: Block) -> None:
        """What is held in `block` lives in the backward part alone, where the block runs again."""
        for holder, record in self._held.items():
            if _outermost(block_of(holder)) is block:
                self._held[holder] = replace(record, again=True)

    def records(self, holders: Iterable[SSAValue]) -> tuple[Residual, ...]:
        """The records of these holders, which must have been kept; nothing when the ledger is off."""
        return tuple(self._held[holder] for holder in holders) if self.on else ()

    def reverses(self, before: Operation | None, block: Block, op: Operation) -> None:
        """The ops of `block` after `before` reverse `op`."""
        first = before.next_op if before is not None else block.first_op
        if self.on and first is not None:
            self._reversals[first] = op.name

    def reader(self, value: SSAValue, backward: Block) -> str:
        """The op of the primal program whose reversal in `backward` reads `value` first; empty if that is not known."""
        if not self.on:
            return ""
        found = {op for use in value.uses if (op := _in_block(use.operation, backward)) is not None}
        at = next((op for op in backward.ops if op in found), None)
        while at is not None and at not in self._reversals:
            at = at.prev_op
        return self._reversals[at] if at is not None else ""

    def report(self) -> ResidualReport:
        """The complete functions so far."""
        return ResidualReport(tuple(self.functions))

    def finish(self, function: str, *blocks: Block) -> None:
        """The function made of `blocks` is complete: report what it keeps."""
        if not self.on:
            return
        rows = [record for holder, record in self._held.items() if holder.uses and _outermost(block_of(holder)) in blocks]
        if rows:
            self.functions.append(FunctionResiduals(function, tuple(rows)))


def place(what: str, op: Operation, trips: Dim = None) -> str:
    """`loop at file:line:column, 64 trips`: a part of `Residual.where`."""
    at = location_text(op.location)
    return what + (f" at {at}" if at else "") + (f", {trips} trips" if trips is not None else "")


def bytes_of(kind: Attribute) -> Dim:
    """Size of a value: a number, a formula in the run-time sizes, None when one has no name. Scalars and indices are stacked as 8 bytes
    at most."""
    if not isinstance(kind, TensorType):
        return getattr(kind, "size", 8)
    return times(numpy_dtype(element_of(kind)).itemsize, product(shape_of(kind)))


def sum_of(sizes: Iterable[Dim]) -> Dim:
    """The sum of all sizes; None if one is not known."""
    total: Dim = 0
    for size in sizes:
        total = plus(total, size)
    return total


def _place(value: SSAValue) -> str:
    if isinstance(value, OpResult):
        return location_text(value.op.location)
    block = block_of(value)
    around = block.parent_op() if block is not None else None
    return location_text(around.location) if around is not None else ""


def _in_block(op: Operation, block: Block) -> Operation | None:
    """The op of `block` that is or contains `op`."""
    at: Operation | None = op
    while at is not None and at.parent is not block:
        at = at.parent_op()
    return at


def _outermost(block: Block | None) -> Block | None:
    while block is not None and (parent := block.parent_block()) is not None:
        block = parent
    return block


__all__ = ["FACT", "FunctionResiduals", "Ledger", "Residual", "ResidualReport", "bytes_of", "place", "sum_of", "table"]
