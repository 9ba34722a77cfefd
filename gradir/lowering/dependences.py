"""Which ops of a block must, or had better, come before which: the graph that fusion, outlining and ordering share.

Data edges go from a producer to every op of the block that uses its result, in itself or in its regions. Anti-dependences go from a
reader of a tensor (or of a slice of it) to the op that overwrites that tensor in place later (`tensor.insert_slice`, or a loop that
carries it): the order of the text is right without them, but bufferization then has to copy. Effects keep the order of the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from gradir.dialects.kernel import EFFECTS_ATTRIBUTE
from gradir.dialects.upstream import linalg, scf, tensor

ALIASES = (tensor.ExtractSliceOp, tensor.CollapseShapeOp, tensor.ExpandShapeOp, tensor.CastOp)
"""Ops whose result lies in the memory of their first operand."""


BARRIER = "gradir.barrier"
"""Attribute of the casts that an `nd.optimization_barrier` became: its number. They stay, and come after what all of them read."""


@dataclass
class Dependences:
    """The graph over the ops of one block, in the order of the text. `place` numbers them."""

    ops: list[Operation]
    place: dict[Operation, int]
    users: dict[Operation, list[Operation]] = field(default_factory=dict[Operation, list[Operation]])
    overwriters: dict[Operation, list[Operation]] = field(default_factory=dict[Operation, list[Operation]])

    def after(self, op: Operation) -> Iterator[Operation]:
        """Everything that comes after `op`, by data or because it overwrites what `op` reads."""
        yield from self.users.get(op, ())
        yield from self.overwriters.get(op, ())


def dependences(block: Block) -> Dependences:
    """The graph of a block."""
    ops = list(block.ops)
    found = Dependences(ops, {op: i for i, op in enumerate(ops)})
    for op in ops:
        owners: set[Operation | Block] = {v.owner for v in op.operands}
        for region in op.regions:
            for inner in region.walk():
                owners.update([v.owner for v in inner.operands])
        for producer in owners:
            if isinstance(producer, Operation) and producer in found.place:
                found.users.setdefault(producer, []).append(op)
    _wait_at_barriers(found)
    effect: Operation | None = None
    for op in ops:
        if keeps_order(op):
            if effect is not None:
                found.users.setdefault(effect, []).append(op)
            effect = op
    for writer in ops:
        for value in overwritten(writer):
            for reader in readers(value, block, writer):
                if found.place[reader] < found.place[writer]:
                    found.overwriters.setdefault(reader, []).append(writer)
    return found


def _wait_at_barriers(found: Dependences) -> None:
    """The first part of each barrier comes after what all of its parts read, the others after the first."""
    first: dict[Attribute, Operation] = {}
    for op in found.ops:
        if BARRIER not in op.attributes:
            continue
        head = first.setdefault(op.attributes[BARRIER], op)
        if head is not op:
            found.users.setdefault(head, []).append(op)
            for value in op.operands:
                if isinstance(value.owner, Operation) and found.place.get(value.owner, len(found.ops)) < found.place[head]:
                    found.users.setdefault(value.owner, []).append(head)


def keeps_order(op: Operation) -> bool:
    """Is there an effect in `op`, or in the ops in its regions: an assertion, a call that says so?"""
    if isinstance(op, linalg.GenericOp):
        return False
    return any(inner.name == "cf.assert" or EFFECTS_ATTRIBUTE in inner.attributes for inner in (op.walk() if op.regions else (op,)))


def used_values(op: Operation) -> Iterator[SSAValue]:
    """Operands of an op and of all ops in its regions."""
    yield from op.operands
    for region in op.regions:
        for inner in region.walk():
            yield from inner.operands


def overwritten(op: Operation) -> tuple[SSAValue, ...]:
    """The tensors that an op writes over when bufferization lets it."""
    if isinstance(op, tensor.InsertSliceOp):
        return (op.dest,)
    if isinstance(op, scf.ForOp):
        return tuple(v for v in op.iter_args if isinstance(v.type, TensorType))
    if isinstance(op, scf.WhileOp):
        return tuple(v for v in op.arguments if isinstance(v.type, TensorType))
    return ()


def readers(value: SSAValue, block: Block, writer: Operation) -> list[Operation]:
    """The ops of `block`, other than `writer`, that read the memory of `value`."""
    found: dict[Operation, None] = {}
    seen = [value]
    for v in seen:
        for use in v.uses:
            op = anchor(use.operation, block)
            if op is None or op is writer:
                continue
            if isinstance(use.operation, ALIASES) and use.index == 0:
                seen.append(use.operation.results[0])
            else:
                found[op] = None
    return list(found)


def anchor(op: Operation | None, block: Block) -> Operation | None:
    """The op of `block` that is `op` or holds it in a region; None when `op` is elsewhere."""
    while op is not None and op.parent is not block:
        op = op.parent_op()
    return op
