"""Apply the local identities of every op until none applies; see `gradir.lowering.folds`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import Operation, SSAValue

from gradir.ir.passes import Pass, PassContext
from gradir.lowering.folds.table import Folder, Rule, load_rules
from gradir.lowering.purity import Purity


@dataclass(frozen=True)
class Canonicalize(Pass):
    """Before and after: any level. Constants are folded, identities applied, branches with a known condition taken, loops of
    no or one trip gone, values that loops carry for nobody dropped, unused pure ops removed.

    ```mlir
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %0 = arith.addi %c1, %c2 : index      // becomes arith.constant 3 : index
    ```
    """

    NAME: ClassVar[str] = "canonicalize"
    ANCHOR: ClassVar[str | None] = None

    def apply(self, op: Operation, context: PassContext) -> None:
        canonicalize(op)


def canonicalize(op: Operation, dialects: Sequence[str] | None = None) -> int:
    """Fold everything in the regions of `op`, or only the ops of some dialects; how many rules applied."""
    return _Driver(op, dialects).run()


class _Driver:
    """A worklist of ops: what a change may have made foldable comes back on it."""

    def __init__(self, root: Operation, dialects: Sequence[str] | None) -> None:
        self.root = root
        self.dialects = dialects
        self.folder = Folder(Purity(root))
        self.rules: dict[str, dict[type[Operation], Sequence[Rule]]] = {}
        self.work: list[Operation] = []
        self.later: dict[Operation, None] = {}  # loops and branches, once their bodies have come to rest: keeps this linear
        self.waiting: set[Operation] = set()
        self.erased: set[Operation] = set()

    def run(self) -> int:
        for op in reversed(list(self.root.walk())):  # popped in program order: operands before their users
            self.push(op)
        changes = 0
        while self.work or self.later:
            if not self.work:
                for op in self.later:
                    self.push(op)
                self.later.clear()
            op = self.work.pop()
            self.waiting.discard(op)
            if op is not self.root and op not in self.erased:
                changes += self.visit(op)
        return changes

    def push(self, op: Operation) -> None:
        if op not in self.waiting and op is not self.root:
            self.waiting.add(op)
            self.work.append(op)

    def visit(self, op: Operation) -> int:
        if all(result.first_use is None for result in op.results) and self.folder.purity.is_removable(op):
            self.erase(op)
            return 1
        for rule in self._rules(op):
            if self._apply(rule, op):
                return 1
        return 0

    def _apply(self, rule: Rule, op: Operation) -> bool:
        folder = self.folder
        folder.op, folder.built, folder.released, folder.in_place = op, [], [], False
        values = rule(op, folder)
        for new in reversed(folder.built):
            self.push(new)
        for value in folder.released:
            self._push_definition(value)
        if values is None:
            if folder.in_place:
                self._push_users(op.results)
                self.push(op)
            return folder.in_place
        self.replace(op, values)
        return True

    def replace(self, op: Operation, values: Sequence[SSAValue]) -> None:
        self._push_users(op.results)
        for old, new in zip(op.results, values, strict=True):
            if new.name_hint is None:
                new.name_hint = old.name_hint
            old.replace_all_uses_with(new)
        self.erase(op)

    def erase(self, op: Operation) -> None:
        operands = {value for inner in op.walk() for value in inner.operands}
        self.erased.update(op.walk())
        parent = op.parent_op()
        op.detach()
        op.erase()
        for value in operands:
            self._push_definition(value)
        if parent is not None:
            self.later[parent] = None

    def _push_definition(self, value: SSAValue) -> None:
        if isinstance(value.owner, Operation) and value.owner not in self.erased:
            self.push(value.owner)

    def _push_users(self, values: Sequence[SSAValue]) -> None:
        for value in values:
            for use in value.uses:
                self.push(use.operation)
                if not use.operation.results and (parent := use.operation.parent_op()) is not None:
                    self.later[parent] = None  # a terminator: what the op around it yields has changed

    def _rules(self, op: Operation) -> Sequence[Rule]:
        dialect = op.name.partition(".")[0]
        table = self.rules.get(dialect)
        if table is None:
            chosen = self.dialects is None or dialect in self.dialects
            table = self.rules[dialect] = dict(load_rules(dialect)) if chosen else {}
        return table.get(type(op), ())
