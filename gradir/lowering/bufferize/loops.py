"""How a loop carries a tensor from one iteration to the next.

- `in place`: one buffer; every step overwrites its own dead predecessor.
- `pointer`: the loop carries an address. Either every new value is one that existed before the loop or another carried pointer (a swap),
  or it lies in the slice of a stack in which the loop saves it (an insert whose position moves with the loop, so that the slice stays).
- `rotate`: three addresses (current, next, other) that become (next, other, next). The initial value is read where it is and never written;
  the third address takes its place from the second iteration on.

A value behind a pointer is not owned: nothing may be written over it. The initial value is then read for as long as the loop runs; when
that is not possible (its memory is needed), the loop starts from a copy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue

from gradir.dialects.upstream import scf, tensor
from gradir.ir.structure import block_of
from gradir.lowering.bufferize.buffers import Buffer, Rotation, Slot
from gradir.lowering.bufferize.contents import Contents
from gradir.lowering.bufferize.ownership import Ownership
from gradir.lowering.bufferize.slices import constant_of, moves_with
from gradir.lowering.bufferize.views import Content, Origin, Read

_DEPTH = 4
"""Loops in a row that hand on an initial value by address; beyond, one starts from a copy. Keeps chains of loops linear."""


@dataclass(eq=False, slots=True)
class Pointer:
    """What an address may still point to behind its loop, besides buffers of its own: contents, each as seen from one of its origins.

    `depth`: how many loops in a row may have handed on an initial value.
    """

    depth: int = 0
    targets: list[tuple[Content, Origin]] = field(default_factory=list[tuple[Content, Origin]])


@dataclass(eq=False, slots=True)
class Carried:
    """One tensor that a loop carries: `content` in the body, from `initial`, then `again` at the end of each step."""

    index: int
    content: Content
    initial: SSAValue
    again: SSAValue
    mode: Literal["in place", "pointer", "rotate"] = "in place"
    slot: tensor.InsertSliceOp | None = None
    copies_initial: bool = False
    """The loop starts from a copy of the initial value, since its memory is needed."""


class Loops:
    """Decides for every loop of a function; `carried` holds the decisions."""

    def __init__(self, contents: Contents, ownership: Ownership) -> None:
        self.contents = contents
        self.ownership = ownership
        self.carried: dict[scf.ForOp | scf.WhileOp, list[Carried]] = {}

    # -- for

    def enter_for(self, op: scf.ForOp) -> None:
        """Decide what can be known before the body."""
        body = op.body.block
        last = cast("Operation", body.last_op)
        found = [
            Carried(i, self.contents.content(argument), op.iter_args[i], _settled(op, last.operands[i]))
            for i, argument in enumerate(body.args[1:])
            if isinstance(argument.type, TensorType) and last.operands[i] is not argument
        ]
        self.carried[op] = found
        permuted = self._permuted(op, found)
        for one in found:
            one.slot = None if one in permuted else self._slot(op, one, found)
            if one in permuted:
                one.mode = "pointer"
            elif one.slot is not None or not self._in_place(one):
                one.mode = "pointer" if one.slot is not None else "rotate"
        for one in found:
            if one.mode != "in place":
                self._point(op, one)
        if not self._keep_permuted(op, permuted):
            for one in permuted:
                one.mode, one.copies_initial = "rotate", True

    def _in_place(self, one: Carried) -> bool:
        again = self.contents.whole(one.again)
        if again is not None and not self.ownership.share(one.content, again):
            return False
        if again is None and not self.contents.is_empty(one.again):
            return False
        initial = self.contents.whole(one.initial)
        if initial is not None:
            self.ownership.share(one.content, initial)
        return True

    def _permuted(self, op: scf.ForOp, found: list[Carried]) -> list[Carried]:
        """The carried values that each step only exchanges among themselves or replaces by values from before the loop."""
        by_content = {one.content: one for one in found}
        chosen = dict.fromkeys(found)
        changed = True
        while changed:
            changed = False
            for one in list(chosen):
                view = self.contents.view(one.again)
                partner = by_content.get(view.content)
                outside = self.contents.timeline.lift(op, block_of(one.again)) is not None
                swapped = view.kind == "whole" and partner in chosen and not self.contents.is_empty(one.initial)
                if not swapped and not (outside and not view.content.empty and not self.contents.is_empty(one.initial)):
                    del chosen[one]
                    changed = True
        return list(chosen)

    def _keep_permuted(self, op: scf.ForOp, permuted: list[Carried]) -> bool:
        """Let everything that the group may point to live as long as the group is read; False leaves it to copies."""
        if not permuted:
            return True
        reads = [read for one in permuted for read in self.ownership.exit_reads(one.content)]
        values = {one.initial for one in permuted}
        values |= {one.again for one in permuted if self.contents.timeline.lift(op, block_of(one.again)) is not None}
        for value in values:
            view = self.contents.view(value)
            longer = [self.ownership.whole_loop(op, view.origin), *(Read(r.op, r.position, view.origin) for r in reads)]
            if not self.ownership.extend(view.content, longer):
                return False
        targets = [(v.content, v.origin) for v in map(self.contents.view, values)]
        for one in permuted:
            one.content.pointer.targets = targets
        return True

    def _slot(self, op: scf.ForOp, one: Carried, found: list[Carried]) -> tensor.InsertSliceOp | None:
        """The insert that saves the new value of `one` in a stack which the same loop carries."""
        view = self.contents.view(one.again)
        if view.kind != "whole" or view.content.empty or self.contents.timeline.lift(_owner(one.again, op), op.body.block) is None:
            return None
        if isinstance(one.again.owner, Block):
            return None
        stacks = {other.content: other for other in found if other is not one}
        for use in one.again.uses:
            insert = use.operation
            if not isinstance(insert, tensor.InsertSliceOp) or use.index != 0 or insert.parent is not op.body.block:
                continue
            stack = stacks.get(self.contents.content(insert.dest))
            saved = stack is not None and self.contents.view(insert.dest).kind == "whole" and stack.again is insert.result
            if saved and moves_with(self.contents.slices[insert], op):
                return insert
        return None

    def _stays_in_slot(self, one: Carried) -> bool:
        insert = one.slot
        assert insert is not None
        source = self.contents.content(one.again).buffer
        stack = self.contents.content(insert.dest)
        if not isinstance(source, Buffer) or not isinstance(source.storage, Slot) or source.storage.insert is not insert:
            return False
        if stack.buffer is not source.storage.host or stack.exit is None:
            return False
        after = [Read(r.op, r.position, stack.exit) for r in self.ownership.exit_reads(one.content)]
        if not self.ownership.extend(stack, after):
            return False
        one.content.pointer.targets.append((stack, stack.exit))
        return True

    # -- while

    def enter_while(self, op: scf.WhileOp) -> None:
        """Decide before the regions."""
        last = cast("Operation", op.after_region.block.last_op)
        found = [
            Carried(i, self.contents.content(argument), op.arguments[i], last.operands[i])
            for i, argument in enumerate(op.before_region.block.args)
            if isinstance(argument.type, TensorType)
        ]
        self.carried[op] = found
        for one in found:
            if not self._in_place(one):
                one.mode = "rotate"
                self._point(op, one)
        condition = cast("scf.ConditionOp", op.before_region.block.last_op)
        for value, argument in zip(condition.args, op.after_region.block.args):
            if isinstance(argument.type, TensorType) and self.contents.content(argument).value is argument:
                source = self.contents.whole(value)
                if source is not None:
                    self.ownership.share(self.contents.content(argument), source)

    # -- both

    def leave(self, op: scf.ForOp | scf.WhileOp) -> None:
        """Decide what depends on the body: was the source of the insert forwarded into its slice? Else the step writes the next buffer."""
        body = op.body.block if isinstance(op, scf.ForOp) else op.after_region.block
        for one in self.carried[op]:
            if one.slot is not None and not self._stays_in_slot(one):
                one.mode, one.slot = "rotate", None
            if one.mode == "rotate":
                self._write_next(op, one, body)

    def _point(self, op: Operation, one: Carried) -> None:
        """From here on the content is what an address points to."""
        self.ownership.release(one.content)
        one.content.pointer = Pointer()
        if one.mode == "pointer" and one.slot is None:
            return  # as a group, in `_keep_permuted`
        view = self.contents.view(one.initial)
        depth = view.content.pointer.depth + 1 if view.content.pointer is not None else 0
        if view.content.empty or depth > _DEPTH:
            one.copies_initial = True
            return
        longer = [self.ownership.whole_loop(op, view.origin)]
        handed_on = not (isinstance(op, scf.ForOp) and _runs(op))
        if handed_on:
            longer += [Read(r.op, r.position, view.origin) for r in one.content.reads if r.origin.block is not one.content.origin.block]
        if not self.ownership.extend(view.content, longer):
            one.copies_initial = True
        elif handed_on:
            one.content.pointer.depth = depth
            one.content.pointer.targets.append((view.content, view.origin))

    def _write_next(self, op: Operation, one: Carried, body: Block) -> None:
        """Let the new value be made in the next buffer of the rotation, if it is made in the body and has no other place."""
        again = self.contents.whole(one.again)
        if again is None or not again.owned:
            return
        buffer = self.ownership.buffer(again)
        if buffer.storage is None and all(self.contents.timeline.lift(d, body) is not None for d in buffer.definitions()):
            buffer.storage = Rotation(op, one.index)


def _settled(op: scf.ForOp, value: SSAValue) -> SSAValue:
    """The initial value that `value` is, where it is a carried value of `op` that no step changes."""
    last = cast("Operation", op.body.block.last_op)
    while value.owner is op.body.block and (index := op.body.block.args.index(value)) > 0:
        if last.operands[index - 1] is not value:
            break
        value = op.iter_args[index - 1]
    return value


def _runs(op: scf.ForOp) -> bool:
    """Is there at least one iteration for certain?"""
    low, high = constant_of(op.lb), constant_of(op.ub)
    return low is not None and high is not None and low < high


def _owner(value: SSAValue, default: Operation) -> Operation:
    return default if isinstance(value.owner, Block) else value.owner
