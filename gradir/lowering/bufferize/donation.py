"""Arguments whose memory the caller gives away: a result lies there, if the argument is not read any more when the result is written.

`gradir.donated` on an entry lists such arguments. `bufferize` pairs each with a result of its type: first with one that is computed from it
(a parameter and its update, a cache and the cache with a row written), then with any. `gradir.aliases` lists the pairs, argument and result
by turns: the caller passes the memory of the argument for that result. `gradir.donation` says in words what became of each argument.
"""

from __future__ import annotations

from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, DenseArrayBase, StringAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue

from gradir.dialects.donation import ALIASES, DONATION
from gradir.dialects.types import type_text
from gradir.dialects.upstream import func
from gradir.ir.passes import location_text
from gradir.lowering.bufferize.contents import Contents
from gradir.lowering.bufferize.ownership import Ownership
from gradir.lowering.bufferize.views import Content

LOOK_BACK = 8
"""Ops that the search for an argument goes back from a result."""


class Donation:
    """Pairs of one function: `pairs` maps arguments to results, `notes` says why the others have none."""

    def __init__(self, contents: Contents, ownership: Ownership) -> None:
        self.contents, self.ownership = contents, ownership
        self.pairs: dict[int, int] = {}
        self.notes: dict[int, str] = {}
        self._given = sorted(contents.donated)

    def decide(self) -> None:
        """Pair what can be paired; the others are arguments like any, which nobody writes. After updates and joins."""
        for argument in self._given:
            storage = self.ownership.buffer(self._content(argument)).storage
            if isinstance(storage, int):
                self.pairs[argument] = storage
        for computed in (True, False):
            for argument in self._given:
                if argument not in self.pairs:
                    self._pair(argument, computed_from_it=computed)
        for argument in self._given:
            if argument not in self.pairs:
                self.notes[argument] = self._reason(argument)
                self.ownership.release(self._content(argument))

    def attributes(self) -> dict[str, Attribute]:
        """What the function says about it."""
        if not self._given:
            return {}
        flat = [n for pair in sorted(self.pairs.items()) for n in pair]
        names = {k: self.contents.body.args[k].name_hint or f"arg{k}" for k in self._given}
        texts = [f"{names[k]}: " + (f"result {self.pairs[k]}" if k in self.pairs else self.notes[k]) for k in self._given]
        return {ALIASES: DenseArrayBase.from_list(i64, flat), DONATION: ArrayAttr(map(StringAttr, texts))}

    def _content(self, argument: int) -> Content:
        return self.contents.content(self.contents.body.args[argument])

    def _pair(self, argument: int, *, computed_from_it: bool) -> None:
        content = self._content(argument)
        for number in self._results_like(content):
            if computed_from_it and not self._reads(self.contents.returned[number], self.contents.body.args[argument]):
                continue
            if number not in self.pairs.values() and self.ownership.share(content, self.contents.outputs[number]):
                self.pairs[argument] = number
                return

    def _results_like(self, content: Content) -> list[int]:
        if DYNAMIC_INDEX in content.type.get_shape():
            return []
        return [n for n, output in enumerate(self.contents.outputs) if output.type == content.type]

    def _reads(self, result: SSAValue, argument: SSAValue) -> bool:
        """Does the op that makes `result`, through a few ops that pass values on, read `argument`?"""
        value = result
        for _ in range(LOOK_BACK):
            op = value.owner
            if not isinstance(op, Operation):
                return value is argument
            if argument in op.operands:
                return True
            if not op.operands or isinstance(op, func.CallOp):
                return False
            value = op.operands[0]
        return False

    def _reason(self, argument: int) -> str:
        content = self._content(argument)
        like = self._results_like(content)
        if not like:
            return f"kept, no result is {type_text(content.type)}"
        free = [n for n in like if n not in self.pairs.values()]
        if not free:
            return "kept, each result of its type has the memory of another argument"
        last = max(content.reads, key=lambda read: read.position, default=None)
        where = f" (by {_name(last.op)} at {location_text(last.op.location)})" if last is not None else ""
        return f"kept, it is read{where} when result {free[0]} is already written"


def _name(op: Operation) -> str:
    return f"@{op.callee.string_value()}" if isinstance(op, func.CallOp) else op.name


__all__ = ["Donation"]
