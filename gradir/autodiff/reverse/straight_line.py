"""What a straight line of ops keeps for its backward part: forward and backward meet in one block, and cse and fusion see both.

Nothing is pushed anywhere here; a value is kept by being read late. Three things would keep more than the derivative needs:

1. a cheap function of something that is kept, such as the terms of a GELU: it is computed again where it is read (`costs`);
2. a term of the backward part that depends on forward values alone, `1 - y * y`: it is ready early, so that fusion would compute it in
   the forward kernel and store it until the cotangent comes;
3. two equal ops, early and late: cse would make them one, and its result live in between.

Hence large values reach such ops through an `nd.optimization_barrier`, which nothing merges or fuses across. It waits for the cotangent
that entered the last contraction, loop or call before, so that it stands outside of the kernel that the late ops become. Without one
before (nets of elementwise ops alone) forward and backward become one kernel, which stores nothing: everything stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.core import OpResult

from gradir.autodiff.activity import free_values
from gradir.autodiff.reverse.costs import LARGE, VIEWS, share_of, weight
from gradir.dialects import nd
from gradir.dialects.upstream import func, scf

LONGEST = 16
"""Ops that may be redone for one value."""
WITHOUT_KERNEL = "read where forward and backward may be one kernel"
_SEPARATE = ("contraction", "convolution", "linalg", "fourier", "library")
SEPARATE: tuple[type[Operation], ...] = (
    *(kind for family in _SEPARATE for kind in nd.FAMILIES[family]),
    *(func.CallOp, scf.ForOp, scf.WhileOp, scf.IfOp, scf.IndexSwitchOp),
)
"""Ops whose operands are in memory and that no kernel of elementwise ops can hold two of: what comes after is another kernel."""


class StraightLine:
    """The two parts of one function before they are joined. `seeds`: its cotangents; `returned`: forward values that live on anyway."""

    def __init__(self, forward: Block, backward: Block, seeds: Iterable[SSAValue], returned: Iterable[SSAValue]) -> None:
        self.forward, self.backward = forward, backward
        self.arguments = set(forward.args)
        self.inside = {r for op in forward.ops for r in op.results}
        self.returned = self.inside.intersection(returned)
        self.late = set(seeds)
        """What depends on a cotangent."""
        for op in backward.ops:
            if any(v in self.late for v in reads(op)):
                self.late.update(op.results)
        self.anchors = dict(self._anchors())
        """Backward ops behind a separate one, each with the cotangent that entered the last of these."""
        self.kept: dict[SSAValue, str] = {}
        """Forward values that the backward part reads, in program order, and why; empty where redoing costs more."""
        self.redone: set[SSAValue] = set()
        """Those that it computes again instead."""
        self._select()

    def _select(self) -> None:
        needed = self._needed()
        for op in self.forward.ops:
            for value in op.results:
                if value not in needed or value in self.returned or not isinstance(value.type, TensorType):
                    continue
                reason = needed[value] or ("small" if weight(value.type) < LARGE else "")
                chain = None if reason else self._chain(value)
                if chain is None:
                    self.kept[value] = "" if reason == WITHOUT_KERNEL else reason
                    continue
                self.redone.add(value)
                for leaf in self._leaves(chain):
                    if leaf not in self.returned:
                        self.kept.setdefault(leaf, "small")

    def _needed(self) -> dict[SSAValue, str]:
        """The forward values behind what the backward part reads, each with a reason to keep it whatever it costs to redo, or "".

        Such feed, through views, an op that is not elementwise, or are read before the first separate op.
        """
        needed: dict[SSAValue, str] = {}
        shown: dict[SSAValue, str] = {}
        for op in reversed(self.backward.ops):
            reason = shown.get(op.results[0], "") if type(op) in VIEWS else ""
            if share_of(op) is None:
                reason = f"{op.name.removeprefix('nd.')} reads it from memory"
            elif op not in self.anchors:
                reason = _stronger(reason, WITHOUT_KERNEL)
            for value in reads(op):
                base = base_of(value)
                shown[value] = _stronger(shown.get(value, ""), reason)
                if base in self.inside and not is_constant(base):
                    needed[base] = _stronger(needed.get(base, ""), reason)
        return needed

    def _anchors(self) -> Iterator[tuple[Operation, SSAValue]]:
        """Each backward op behind a separate one, with the cotangent that entered that one."""
        anchor: SSAValue | None = None
        for op in self.backward.ops:
            if anchor is not None:
                yield op, anchor
            if isinstance(op, SEPARATE):
                entered = next((v for v in op.operands if v in self.late and isinstance(v.type, TensorType)), None)
                anchor = base_of(entered) if entered is not None else anchor

    def _chain(self, value: SSAValue) -> list[Operation] | None:
        """The ops that redo a forward value from what is kept, or lives on anyway; None if that costs more than keeping it."""
        chain: dict[Operation, None] = {}
        stack, cost = [value], 0.0
        while stack:
            v = stack.pop()
            if self.is_there(v) and v is not value:
                continue
            op = v.owner
            if not isinstance(op, Operation) or op in chain:
                continue
            share = share_of(op)
            cost += (share or 0.0) * weight(v.type)
            if share is None or cost > weight(value.type) or len(chain) == LONGEST:
                return None
            chain[op] = None
            stack.extend(op.operands)
        return list(chain)

    def _leaves(self, chain: Sequence[Operation]) -> list[SSAValue]:
        """The small values that a chain starts from; large ones are kept already."""
        made = {r for op in chain for r in op.results}
        return [v for op in chain for v in op.operands if v in self.inside and v not in made]

    def is_there(self, value: SSAValue) -> bool:
        """Whether the backward part has a forward value without computing it."""
        if value not in self.inside or value in self.kept or value in self.returned:
            return True
        return weight(value.type) < LARGE and not is_constant(base_of(value))


def _stronger(a: str, b: str) -> str:
    """The reason that counts of two: to be read from memory, to be read early, none."""
    return (b or a) if a in ("", WITHOUT_KERNEL) else a


def reads(op: Operation) -> list[SSAValue]:
    """What an op and its regions read from outside."""
    return [*op.operands, *free_values(op)] if op.regions else list(op.operands)


def base_of(value: SSAValue) -> SSAValue:
    """The value that a chain of views shows."""
    while isinstance(value, OpResult) and type(value.op) in VIEWS:
        value = value.op.operands[0]
    return value


def is_constant(value: SSAValue) -> bool:
    """A value that comes from nothing: copies of it cost nothing."""
    return isinstance(value, OpResult) and not value.op.operands and share_of(value.op) == 0.0
