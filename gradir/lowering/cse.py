"""Common subexpression elimination: an op that computes what an earlier, dominating op computed is replaced by it.

Linear: each op is hashed once per level of nesting. Works on ops with regions (`linalg.generic`, `scf.if`), which are equal
when their bodies are, up to the names of the values defined inside.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import UnregisteredOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.traits import Commutative, IsolatedFromAbove

from gradir.ir.dominance import dominator_tree
from gradir.ir.passes import Pass, PassContext
from gradir.lowering.purity import Purity

DESTINATIONS = frozenset({"tensor.empty", "nd.empty", "linalg.fill"})
"""Ops that only provide memory to write into. Two of them are the same operand of an op, so that equal ops on different
destinations merge; but they are not merged themselves: each use would otherwise need a copy."""

Key = Hashable


@dataclass(frozen=True)
class Cse(Pass):
    """Before and after: any level. Of equal pure ops only the dominating one is left.

    ```mlir
    %0 = nd.mul %x, %y : tensor<4xf32>
    %1 = nd.mul %x, %y : tensor<4xf32>   // replaced by %0
    ```
    """

    NAME: ClassVar[str] = "cse"
    ANCHOR: ClassVar[str | None] = None

    def apply(self, op: Operation, context: PassContext) -> None:
        merge_equal_ops(op)


def merge_equal_ops(op: Operation) -> int:
    """Merge equal ops in the regions of `op`; how many went."""
    walk = _Walk(Purity(op))
    for region in op.regions:
        walk.region(region, isolated=True)
    return walk.merged


class _Walk:
    """State of one run: `available` is a scoped table, undone on leaving a region or the subtree of a block."""

    def __init__(self, purity: Purity) -> None:
        self.purity = purity
        self.available: dict[Key, Operation] = {}
        self.merged = 0
        self._attributes: dict[Attribute, int] = {}
        self._attribute_ids: dict[int, tuple[int, Attribute]] = {}
        self._classes: dict[SSAValue, int] = {}  # destinations: number of their class
        self._class_numbers: dict[Key, int] = {}

    # -- walking in dominance order

    def region(self, region: Region, *, isolated: bool) -> None:
        entry = region.first_block
        if entry is None:
            return
        outer = self.available
        if isolated:
            self.available = {}
        undo: list[Key] = []
        if entry.next_block is None:
            self.block(entry, undo)
            self._undo(undo)
        else:
            self._blocks(entry)
        self.available = outer

    def _blocks(self, entry: Block) -> None:
        tree = dominator_tree(entry)
        stack: list[tuple[Block, list[Key] | None]] = [(entry, None)]
        while stack:
            block, undo = stack.pop()
            if undo is not None:
                self._undo(undo)
                continue
            added: list[Key] = []
            self.block(block, added)
            stack.append((block, added))
            stack += [(child, None) for child in tree.children.get(id(block), ())]

    def _undo(self, keys: list[Key]) -> None:
        for key in keys:
            del self.available[key]

    def block(self, block: Block, undo: list[Key]) -> None:
        op = block.first_op
        while op is not None:
            following = op.next_op
            for region in op.regions:
                self.region(region, isolated=op.has_trait(IsolatedFromAbove))
            if op.results and self.purity.is_pure(op):
                self.op(op, undo)
            op = following

    def op(self, op: Operation, undo: list[Key]) -> None:
        key = self.key(op, {})
        if op.name in DESTINATIONS:
            for i, result in enumerate(op.results):
                self._classes[result] = self._class_numbers.setdefault((key, i), len(self._class_numbers))
            return
        first = self.available.get(key)
        if first is None:
            self.available[key] = op
            undo.append(key)
            return
        for old, new in zip(op.results, first.results):
            if new.name_hint is None:
                new.name_hint = old.name_hint
            old.replace_all_uses_with(new)
        op.detach()
        op.erase()
        self.merged += 1

    # -- what makes two ops equal

    def key(self, op: Operation, inner: dict[SSAValue, int]) -> Key:
        """`inner` numbers the values defined in the op whose key is being made."""
        operands = [self._operand(value, inner) for value in op.operands]
        if len(operands) == 2 and op.has_trait(Commutative):
            operands.sort()
        kind = op.op_name.data if isinstance(op, UnregisteredOp) else type(op)
        types = tuple(self._attribute(result.type) for result in op.results)
        attributes = (self._dictionary(op.properties), self._dictionary(op.attributes))
        regions = tuple(self._region_key(region, inner) for region in op.regions)
        return (kind, tuple(operands), types, attributes, regions)

    def _operand(self, value: SSAValue, inner: dict[SSAValue, int]) -> tuple[int, int]:
        if (number := inner.get(value)) is not None:
            return (0, number)
        if (number := self._classes.get(value)) is not None:
            return (1, number)
        return (2, id(value))

    def _region_key(self, region: Region, inner: dict[SSAValue, int]) -> Key:
        blocks = list(region.blocks)
        positions = {id(block): i for i, block in enumerate(blocks)}
        for block in blocks:
            for value in (*block.args, *(result for op in block.ops for result in op.results)):
                inner[value] = len(inner)
        return tuple(
            (
                tuple(self._attribute(arg.type) for arg in block.args),
                tuple((self.key(op, inner), tuple(positions[id(b)] for b in op.successors)) for op in block.ops),
            )
            for block in blocks
        )

    def _dictionary(self, attributes: dict[str, Attribute]) -> Key:
        if not attributes:
            return ()
        return frozenset((name, self._attribute(value)) for name, value in attributes.items())

    def _attribute(self, attribute: Attribute) -> int:
        """A number for `attribute`; equal attributes share it. xDSL hashes the whole attribute each time: do it once an object."""
        known = self._attribute_ids.get(id(attribute))
        if known is not None:
            return known[0]
        number = self._attributes.setdefault(attribute, len(self._attributes))
        self._attribute_ids[id(attribute)] = (number, attribute)  # the object is kept, so that its id stays its own
        return number
