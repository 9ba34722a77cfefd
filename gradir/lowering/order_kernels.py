"""`order-kernels`: readers before writers, then the order that keeps the fewest bytes alive.

First every reader of a tensor (or of a slice of it) moves before the op that overwrites that tensor, where data allows: otherwise
bufferization copies the whole tensor. The resulting order is a witness that these edges agree with the data, so they become edges like
any other. Then the ops are scheduled greedily: at each step the ready op that frees most, or allocates least. The text's order wins
ties, and wins altogether when its own peak is as low.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from gradir.dialects.donation import donated_arguments
from gradir.dialects.kernel import EFFECTS_ATTRIBUTE, KERNEL_ATTRIBUTE
from gradir.dialects.upstream import arith, func, linalg, tensor
from gradir.ir.passes import Pass, PassContext
from gradir.lowering.dependences import BARRIER, overwritten, readers, used_values
from gradir.lowering.live_bytes import LiveBytes, peak_bytes

WINDOW = 2000
"""Ops between a writer and a reader behind it that are searched for what the reader needs."""
BESIDE_USER = (tensor.EmptyOp, arith.ConstantOp)
"""Ops that cost nothing until they are used: they stand right before their first user."""
PURE_DIALECTS = frozenset({"tensor", "arith", "math", "linalg", "scf", "affine"})


@dataclass(frozen=True)
class OrderKernels(Pass):
    """Before: level 2 with kernels outlined. After: the same ops in every block, in a legal order with a lower peak of live bytes.

    Example: a call that reads `%S` stands before the `tensor.insert_slice .. into %S` that it followed.
    """

    NAME: ClassVar[str] = "order-kernels"

    def apply(self, op: Operation, context: PassContext) -> None:
        functions = [f for f in op.regions[0].block.ops if isinstance(f, func.FuncOp)]
        kernels = frozenset(
            f.sym_name.data for f in functions if KERNEL_ATTRIBUTE in f.attributes and EFFECTS_ATTRIBUTE not in f.attributes
        )
        for function in functions:
            if KERNEL_ATTRIBUTE not in function.attributes:
                for block in function.body.blocks:
                    order_block(block, kernels)


def order_block(block: Block, kernels: frozenset[str]) -> None:
    """Reorder one block and those inside its ops; terminators stay last. `kernels` are the functions without effects."""
    for op in block.ops:
        if not isinstance(op, linalg.GenericOp):
            for region in op.regions:
                for inner in region.blocks:
                    order_block(inner, kernels)
    ops = [op for op in block.ops if not op.has_trait(IsTerminator)]
    if len(ops) < 2:
        return
    graph = _Graph(block, ops, kernels)
    for writer in ops:
        graph.move_readers_before(writer)
    for argument, writer in _updates_of_donated(block):
        graph.move_before(argument, writer)
    scheduled = graph.schedule()
    end = block.last_op
    _arrange(block, scheduled if peak_bytes(scheduled, end) < peak_bytes(graph.order, end) else graph.order)


class _Graph:
    """The ops of a block in a legal order, with the edges that any other order has to keep.

    `needs[op]` is what must come before it: its producers, the readers of what it overwrites, the effect before it.
    """

    def __init__(self, block: Block, order: list[Operation], kernels: frozenset[str]) -> None:
        self.block = block
        self.order = order
        self.needs: dict[Operation, dict[Operation, None]] = {}
        self._place = {op: i for i, op in enumerate(order)}
        effect: Operation | None = None
        barriers = _barriers(order)
        for op in order:
            owners = {v.owner: None for v in used_values(op)}
            self.needs[op] = {owner: None for owner in owners if isinstance(owner, Operation) and owner in self._place}
            for owner in barriers.get(op, ()):
                if owner in self._place and self._place[owner] < self._place[op]:
                    self.needs[op][owner] = None
            if has_effects(op, kernels):
                if effect is not None:
                    self.needs[op][effect] = None
                effect = op

    def move_readers_before(self, writer: Operation) -> None:
        """Readers of what `writer` overwrites come before it, and before the producer of what it writes, where data allows."""
        for value in overwritten(writer):
            self.move_before(value, writer)

    def move_before(self, value: SSAValue, writer: Operation) -> None:
        """Readers of `value` come before `writer`, which writes over it, and before the producer of what it inserts, where data allows."""
        found = [op for op in readers(value, self.block, writer) if op in self.needs]
        writers = [writer]
        if isinstance(writer, tensor.InsertSliceOp) and isinstance(writer.source.owner, Operation):
            writers.append(writer.source.owner)
        for op in writers:
            for reader in found:
                if op in self.needs and reader is not op and self._comes_before(reader, op):
                    self.needs[op][reader] = None

    def _comes_before(self, reader: Operation, writer: Operation) -> bool:
        """True when `reader` stands before `writer`, after moving it and what it needs if it stood behind."""
        place = self._place
        start, end = place[writer], place[reader] + 1
        if end <= start:
            return True
        if end - start > WINDOW:
            return False
        moving: set[Operation] = {reader}
        todo = [reader]
        while todo:
            for op in self.needs[todo.pop()]:
                if op is writer:
                    return False
                if place[op] > start and op not in moving:
                    moving.add(op)
                    todo.append(op)
        window = self.order[start:end]
        self.order[start:end] = [op for op in window if op in moving] + [op for op in window if op not in moving]
        for i in range(start, end):
            place[self.order[i]] = i
        return True

    def schedule(self) -> list[Operation]:
        """A greedy order by what each op allocates and frees; ties in the current order."""
        lives = LiveBytes(self.order, self.block.last_op)
        waiting = {op: len(needs) for op, needs in self.needs.items()}
        after = self._after()
        heap: list[tuple[bool, int, int, int]] = []
        for op in self.order:
            if not waiting[op]:
                heappush(heap, (*lives.rank(op), self._place[op]))
        result: list[Operation] = []
        done: set[Operation] = set()
        while heap:
            op = self.order[heappop(heap)[-1]]
            if op in done:
                continue
            done.add(op)
            result.append(op)
            changed = [last for last in lives.run(op) if last not in done and waiting.get(last) == 0]  # their deltas have fallen
            for later in after[op]:
                waiting[later] -= 1
                if not waiting[later]:
                    changed.append(later)
            for ready in changed:
                heappush(heap, (*lives.rank(ready), self._place[ready]))
        return self._as_late_as_possible(result, after)

    def _after(self) -> dict[Operation, list[Operation]]:
        """What must come after each op."""
        after: dict[Operation, list[Operation]] = {op: [] for op in self.order}
        for op, needs in self.needs.items():
            for earlier in needs:
                after[earlier].append(op)
        return after

    def _as_late_as_possible(self, order: list[Operation], after: Mapping[Operation, Sequence[Operation]]) -> list[Operation]:
        """What takes memory and frees none waits for the first op that needs it: the greedy choice looks one op ahead only."""
        place = {op: i for i, op in enumerate(order)}
        at = dict(place)
        last = LiveBytes(order, self.block.last_op).last_reads(at)
        waits: set[Operation] = set()
        for op in reversed(order):
            first = min((at[later] for later in after[op]), default=None)
            if first is not None and (last[op] > first or _is_edge(op)):
                at[op] = first
                waits.add(op)
        result: list[Operation] = []
        done: set[Operation] = set()
        for op in order:
            todo = [] if op in waits else [op]
            while todo:
                missing = [one for one in self.needs[todo[-1]] if one not in done]
                todo += sorted(missing, key=place.__getitem__, reverse=True)
                if not missing and (ready := todo.pop()) not in done:
                    done.add(ready)
                    result.append(ready)
        return result


def _is_edge(op: Operation) -> bool:
    """Does `op` write a constant around what a frame will hold: the first such takes the memory of all of it?"""
    if not isinstance(op, tensor.InsertSliceOp) or not isinstance(op.source.owner, func.CallOp):
        return False
    return not any(isinstance(v.type, TensorType) and not isinstance(v.owner, tensor.EmptyOp) for v in op.source.owner.operands)


def _updates_of_donated(block: Block) -> list[tuple[SSAValue, Operation]]:
    """Arguments that the caller gives away, each with the op that computes a result of its type from it."""
    entry = block.parent_op()
    if not isinstance(entry, func.FuncOp) or block.last_op is None:
        return []
    found: list[tuple[SSAValue, Operation]] = []
    taken: set[int] = set()
    for position in sorted(donated_arguments(entry)):
        argument = block.args[position]
        for number, value in enumerate(block.last_op.operands):
            owner = value.owner
            if isinstance(owner, Operation) and value.type == argument.type and argument in owner.operands and number not in taken:
                taken.add(number)
                found.append((argument, owner))
                break
    return found


def _barriers(order: Sequence[Operation]) -> dict[Operation, list[Any]]:
    """Each part of a barrier, and what all parts of it read."""
    groups: dict[Any, list[Operation]] = {}
    for op in order:
        if BARRIER in op.attributes:
            groups.setdefault(op.attributes[BARRIER], []).append(op)
    return {op: [value.owner for part in group for value in part.operands] for group in groups.values() for op in group}


def has_effects(op: Operation, kernels: frozenset[str]) -> bool:
    """True of ops that keep their order among themselves: neither tensor code nor calls of kernels."""
    if op.dialect_name() in PURE_DIALECTS:
        return any(has_effects(inner, kernels) for region in op.regions for block in region.blocks for inner in block.ops)
    if isinstance(op, func.CallOp):
        return op.callee.string_value() not in kernels
    return not op.has_trait(IsTerminator)


def _arrange(block: Block, order: Sequence[Operation]) -> None:
    """Put the ops of a block in this order, what costs nothing right before its first user."""
    terminator = block.last_op
    used: set[Operation] = set()
    for op in order:
        used.update(v.owner for v in used_values(op) if isinstance(v.owner, BESIDE_USER))
    final: dict[Operation, None] = {}

    def place(op: Operation) -> None:
        for value in used_values(op):
            owner = value.owner
            if isinstance(owner, BESIDE_USER) and owner.parent is block and owner not in final:
                place(owner)
        final[op] = None

    for op in order:
        if not (isinstance(op, BESIDE_USER) and op in used):
            place(op)
    for op in list(block.ops):
        op.detach()
    for op in final:
        block.add_op(op)
    if terminator is not None and terminator.parent is None:
        block.add_op(terminator)
