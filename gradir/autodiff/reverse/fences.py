"""Redoing in a straight line: the early terms of the backward part, and what is not kept, move to their first reader, behind barriers.

%h = dot_general ..                                 // forward, kept
%t = tanh %h                                        // forward, redone
..
%hb, %_ = nd.optimization_barrier %h, %ct           // %ct entered the contraction that gave %c
%tb = tanh %hb
%s = sub %one, (mul %tb, %tb)
%dh = mul_strong %c, %s                             // one kernel with the contraction: %s and %tb never reach memory
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.ir.core import OpResult

from gradir.autodiff.reverse.costs import LARGE, VIEWS, share_of, weight
from gradir.autodiff.reverse.straight_line import StraightLine, base_of, is_constant, reads
from gradir.dialects import nd
from gradir.ir.builder import Builder


def fence(line: StraightLine) -> None:
    """Rearrange the backward part of `line` for what was selected."""
    early = {op: k for k, op in enumerate(line.backward.ops) if _is_early(line, op)}
    if early or line.redone:
        _Fences(line, early).run()


def _is_early(line: StraightLine, op: Operation) -> bool:
    """Ready before any cotangent, elementwise, and behind a separate op."""
    return op in line.anchors and share_of(op) is not None and not any(r in line.late for r in op.results)


class _Fences:
    def __init__(self, line: StraightLine, early: dict[Operation, int]) -> None:
        self.line, self.block, self.waiting = line, line.backward, early
        self.place = {op: k for k, op in enumerate(line.forward.ops)}
        self.copies: dict[tuple[SSAValue, SSAValue, bool], SSAValue] = {}
        """(anchor, forward value, small ones too) -> what stands for the value behind the barrier of that anchor."""
        self.behind: set[SSAValue] = set()

    def run(self) -> None:
        for op in list(self.block.ops):
            op.detach()
            if op in self.waiting:
                continue
            anchor = self.line.anchors.get(op)
            if anchor is not None:
                self._place([v.owner for v in reads(op)], anchor, Builder(self.block, op.location))
                for k, value in enumerate(op.operands):
                    if base_of(value) in self.line.redone:
                        op.operands[k] = self._copy(value, anchor, Builder(self.block, op.location))
            self.block.add_op(op)

    def _place(self, owners: Iterable[object], anchor: SSAValue, builder: Builder) -> None:
        """Put the waiting ops among `owners`, and those that they read, at the end of the block, in their order."""
        todo = [op for op in owners if isinstance(op, Operation) and op in self.waiting]
        found: dict[Operation, int] = {}
        while todo:
            op = todo.pop()
            if op not in found:
                found[op] = self.waiting[op]
                todo += [v.owner for v in op.operands if isinstance(v.owner, Operation) and v.owner in self.waiting]
        for op in sorted(found, key=found.__getitem__):
            del self.waiting[op]
            for k, new in enumerate(self._operands(op, anchor, builder)):
                op.operands[k] = new
            self.block.add_op(op)
            self.behind.update(op.results)

    def _copy(self, value: SSAValue, anchor: SSAValue, builder: Builder, *, small: bool = False) -> SSAValue:
        """What stands for a forward value late: a barrier's result, or what is redone from such; without `small`, small values stay."""
        path: dict[Operation, int] = {}
        todo = [value]
        while todo:
            v = todo.pop()
            if (anchor, v, small) not in self.copies and not self._is_leaf(v):
                assert isinstance(v, OpResult)
                path[v.op] = self.place[v.op]
                todo += [w for w in v.op.operands if w.owner not in path]
        for op in sorted(path, key=path.__getitem__):
            kinds = [r.type for r in op.results]
            operands = self._operands(op, anchor, builder, small=small)
            copy = type(op).create(
                operands=operands, result_types=kinds, properties=dict(op.properties), attributes=dict(op.attributes), location=op.location
            )
            builder.block.add_op(copy)
            for old, new in zip(op.results, copy.results):
                new.name_hint = old.name_hint
                self.copies[anchor, old, small] = new
                self.behind.add(new)
        return self._leaf(value, anchor, builder, small=small)

    def _operands(self, op: Operation, anchor: SSAValue, builder: Builder, *, small: bool = False) -> list[SSAValue]:
        """The operands of an op that runs late. One that has a large result and reads nothing large gets its small operands from a barrier:
        it would be ready early all the same."""
        large = [base_of(v) for v in op.operands if weight(base_of(v).type) >= LARGE or v in self.behind]
        small = small or (weight(op.results[0].type) >= LARGE and type(op) not in VIEWS and all(is_constant(v) for v in large))
        return [self._late(v, anchor, builder, small=small) for v in op.operands]

    def _late(self, value: SSAValue, anchor: SSAValue, builder: Builder, *, small: bool) -> SSAValue:
        known = value in self.line.inside or value in self.line.arguments
        return self._copy(value, anchor, builder, small=small) if known and not is_constant(base_of(value)) else value

    def _is_leaf(self, value: SSAValue) -> bool:
        return value not in self.line.inside or (value is base_of(value) and self.line.is_there(value))

    def _leaf(self, value: SSAValue, anchor: SSAValue, builder: Builder, *, small: bool) -> SSAValue:
        """The copy of a value; of one that is there, the barrier's result."""
        large = weight(value.type) >= LARGE
        key = anchor, value, small and not large
        found = self.copies.get((anchor, value, small)) or self.copies.get(key)
        if found is None and (small or large) and value is not anchor and isinstance(value.type, TensorType):
            found, _ = builder.op(nd.OptimizationBarrierOp, [value, anchor], [value.type, anchor.type]).results
            found.name_hint = value.name_hint
            self.copies[key] = found
            self.behind.add(found)
        return value if found is None else found
