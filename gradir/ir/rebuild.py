"""Rebuilding a region op by op: the skeleton of a lowering.

Walks once, dispatches by `dict[type(op)]`, maps values, builds with `create`; the location is set once per source op, so
no rule has to think of it. Ops without a rule are rebuilt as they are, their regions by the same rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from gradir.ir.builder import Builder
from gradir.ir.locations import fuse

Rule = Callable[["Rebuilder", Any], None]
"""Emits the replacement of one op and maps its results with `Rebuilder.map`."""


class Rebuilder:
    """State of one run: `values` maps source values to rebuilt ones, `builder` appends to the block being built."""

    __slots__ = ("_blocks", "builder", "convert_type", "rules", "values")

    def __init__(self, rules: Mapping[type[Operation], Rule], convert_type: Callable[[Attribute], Attribute] | None = None) -> None:
        self.rules = rules
        self.convert_type = convert_type
        self.values: dict[SSAValue, SSAValue] = {}
        self.builder = Builder(Block())
        self._blocks: dict[Block, Block] = {}

    def value(self, source: SSAValue) -> SSAValue:
        """The rebuilt form of `source`; a value from outside of the rebuilt regions stands for itself."""
        return self.values.get(source, source)

    def operands(self, op: Operation) -> list[SSAValue]:
        """The rebuilt operands of `op`."""
        values = self.values
        return [values.get(v, v) for v in op._operands]

    def map(self, op: Operation, results: Sequence[SSAValue]) -> None:
        """`results` stand for the results of `op` from here on; names carry over."""
        for old, new in zip(op.results, results, strict=True):
            self.values[old] = new
            if new.name_hint is None:
                new.name_hint = old.name_hint

    def stands_for(self, *ops: Operation) -> None:
        """What the current rule emits now is made from all of `ops`: their locations are fused."""
        self.builder.loc = fuse(*(op.location for op in ops))

    def op(self, op: Operation) -> None:
        """Rebuild one op, by its rule or as it is."""
        outer = self.builder.loc
        self.builder.loc = op.location
        rule = self.rules.get(type(op))
        if rule is not None:
            rule(self, op)
        else:
            self.copy(op)
        self.builder.loc = outer

    def copy(self, op: Operation) -> Operation:
        """Rebuild `op` itself on the rebuilt operands, with its regions rebuilt; types go through `convert_type`."""
        regions = [self.region(region) for region in op.regions]
        convert = self.convert_type
        new = type(op).create(
            operands=self.operands(op),
            result_types=[r.type for r in op.results] if convert is None else [convert(r.type) for r in op.results],
            properties=dict(op.properties),
            attributes=dict(op.attributes),
            successors=[self._blocks.get(b, b) for b in op.successors],
            regions=regions,
            location=op.location,
        )
        self.builder.block.add_op(new)
        self.map(op, new.results)
        return new

    def region(self, region: Region) -> Region:
        """A new region with everything of `region` rebuilt."""
        outer, new = self.builder.block, Region()
        for block in region.blocks:
            new.add_block(self.block_header(block))
        for block in region.blocks:
            self.body(block, self._blocks[block])
        self.builder.block = outer
        return new

    def block_header(self, block: Block) -> Block:
        """An empty block with the arguments of `block`, mapped."""
        convert = self.convert_type
        new = Block(arg_types=[a.type if convert is None else convert(a.type) for a in block.args])
        for old, arg in zip(block.args, new.args):
            arg.location, arg.name_hint = old.location, old.name_hint
            self.values[old] = arg
        self._blocks[block] = new
        return new

    def body(self, block: Block, into: Block) -> None:
        """Rebuild the ops of `block` at the end of `into`."""
        self.builder.block = into
        for op in block.ops:
            self.op(op)
            self.builder.block = into


def rebuild_region(
    region: Region,
    rules: Mapping[type[Operation], Rule],
    convert_type: Callable[[Attribute], Attribute] | None = None,
) -> None:
    """Replace the content of `region` by its rebuilt form, in place."""
    parent = region.parent
    if parent is None:
        raise ValueError("a region without an op has no place to rebuild into")
    new = Rebuilder(rules, convert_type).region(region)
    old = [region.detach_block(block) for block in list(region.blocks)]
    for block in old:
        for op in block.ops:
            op.drop_all_references()
    for block in list(new.blocks):
        region.add_block(new.detach_block(block))
