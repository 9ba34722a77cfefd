"""Control flow in buffer form: loops carry addresses or nothing, branches write one destination."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

from xdsl.dialects.builtin import MemRefType, TensorType, i8
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from gradir.dialects.upstream import scf
from gradir.ir.structure import block_of
from gradir.lowering.bufferize.buffers import Rotation, Slot
from gradir.lowering.bufferize.emission import RULES, TERMINATORS, Emitter
from gradir.lowering.bufferize.gaps import slice_type
from gradir.lowering.bufferize.layouts import MemRef, anywhere, join, type_of
from gradir.lowering.bufferize.loops import Carried
from gradir.lowering.bufferize.memory import Module
from gradir.lowering.bufferize.places import Place, Places
from gradir.lowering.bufferize.plan import Plan
from gradir.lowering.bufferize.views import Content


@dataclass(frozen=True, slots=True)
class Step:
    """What the end of a loop's body needs to know: the addresses that its block has, scalars, types of all carried values."""

    carried: Sequence[Carried]
    arguments: Sequence[Sequence[SSAValue]]
    plain: Sequence[int]
    types: Sequence[Attribute]


class FunctionEmitter(Emitter):
    """The emitter with rules for `scf`."""

    def __init__(self, plan: Plan, types: Sequence[Attribute], module: Module, *, consume: bool = True) -> None:
        super().__init__(plan, types, module, consume=consume)
        self._loop: Operation | None = None
        self._steps: list[Step] = []
        self._conditions: list[tuple[Sequence[Sequence[SSAValue]], Sequence[int]]] = []

    # -- carried addresses

    def _start(self, op: Operation, one: Carried) -> list[SSAValue]:
        """The addresses with which a loop begins to carry `one`; for a value in place, the value is put where the loop updates it."""
        content = one.content
        if one.mode == "in place":
            self.deliver(one.initial, content)
            return []
        pair = self.rotating.get(content)
        if one.copies_initial:
            assert pair is not None
            first = self.as_type(self.memory[pair[1]], content.type)
            if not self.contents.is_empty(one.initial):
                self.copy(self.at(one.initial), first)
        else:
            first = self.at(one.initial)
        if one.mode == "pointer":
            return [first]
        assert pair is not None
        return [first, self.memory[pair[0]], self.memory[pair[1]]]

    def _slot_type(self, one: Carried) -> MemRef | None:
        """Type of the slice of the stack in which a pointer's next values lie."""
        if one.slot is None:
            return None
        source = self.contents.content(one.again).buffer
        assert isinstance(source.storage, Slot)
        return slice_type(type_of(self.memory[source.storage.host]), one.slot)

    def _carried_types(self, op: Operation, carried: Sequence[Carried], starts: Sequence[Sequence[SSAValue]]) -> list[MemRef]:
        """One type per carried value for all addresses that take its place; pointers that may be swapped have one type together."""
        found = [[type_of(v) for v in start] for start in starts]
        groups: dict[Attribute, list[MemRef]] = {}
        for one, types in zip(carried, found):
            if one.mode == "pointer" and one.slot is None:
                outside = self.time.lift(op, block_of(one.again)) is not None
                types += [type_of(self.at(one.again))] if outside else []
                groups.setdefault(one.content.type, []).extend(types)
            elif (slot := self._slot_type(one)) is not None:
                types.append(slot)
        swapped = [one.mode == "pointer" and one.slot is None for one in carried]
        return [
            _moving(groups[one.content.type] if swap else types) if types else _NO_ADDRESS
            for one, swap, types in zip(carried, swapped, found)
        ]

    def _enter(self, one: Carried, arguments: Sequence[SSAValue], value: SSAValue) -> None:
        """In a region of the loop: `value` is where the first address points to, the step writes to the second."""
        if one.mode == "in place":
            self.memrefs[value] = self.target(one.content)
            return
        self.memrefs[value] = arguments[0]
        if arguments[0].name_hint is None:
            arguments[0].name_hint = value.name_hint
        if one.mode == "rotate" and len(arguments) > 1:
            again = self.contents.whole(one.again)
            if again is not None and isinstance(again.buffer and again.buffer.storage, Rotation):
                storage = cast("Rotation", again.buffer.storage)
                if self.contents.content(value) is one.content and storage.index == one.index and storage.loop is self._loop:
                    self.memory[again.buffer] = self.as_type(arguments[1], again.buffer.type)

    def _next(self, one: Carried, arguments: Sequence[SSAValue], types: Sequence[Attribute]) -> list[SSAValue]:
        """The addresses that the next step gets; `arguments` are those of this step."""
        if one.mode == "in place":
            self.deliver(one.again, one.content)
            return []
        if one.mode == "pointer":
            return [self.cast(self.at(one.again), cast("MemRef", types[0]))]
        _, following, other = arguments
        view = self.contents.view(one.again)
        storage = view.content.buffer.storage if view.content.buffer is not None else None
        there = view.kind != "part" and isinstance(storage, Rotation) and storage.index == one.index and storage.loop is self._loop
        if not there and not view.content.empty:
            self.copy(self.at(one.again), following)
        return [following, other, following]

    def _point(self, one: Carried, start: Sequence[SSAValue], arguments: Sequence[SSAValue], group: Sequence[Places]) -> None:
        """Where the addresses of a carried value may point to; the next buffer of a rotation is never the current one."""
        if not arguments:
            return
        places = set(self.places.get(start[0], frozenset[Place]()))
        if one.mode == "rotate":
            places.add(Place(one))
            for argument in arguments[1:]:
                self.places[argument] = frozenset((Place(argument),))
        elif one.slot is None:
            places = places.union(*group)
        else:
            host = self.contents.content(one.again).buffer.storage.host
            slice_ = self.contents.slices[one.slot]
            places |= {place.within(slice_, earlier=True) for place in self.places.get(self.memory[host], frozenset[Place]())}
        self.places[arguments[0]] = frozenset(places)

    # -- for

    def _for(self, op: scf.ForOp) -> None:
        carried = self.plan.loops.carried[op]
        starts = [self._start(op, one) for one in carried]
        types = self._carried_types(op, carried, starts)
        starts = [[self.cast(v, t) for v in start] for start, t in zip(starts, types)]
        body = op.body.block
        plain = [i for i, v in enumerate(op.iter_args) if not isinstance(v.type, TensorType)]
        initial = [v for start in starts for v in start] + [self.scalar(op.iter_args[i]) for i in plain]
        new = Block(arg_types=[op.lb.type, *(v.type for v in initial)])
        self._name(body.args[0], new.args[0])
        arguments = self._split(new.args[1:], starts)
        group = [p for one, s in zip(carried, starts) for p in self._group_places(op, one, s)]
        for one, args, start in zip(carried, arguments, starts):
            self._point(one, start, args, group)
        outer, self._loop = self._loop, op
        for one, args in zip(carried, arguments):
            self._enter(one, args, body.args[1 + one.index])
        self._alias_unchanged(op, body)
        for position, i in enumerate(plain):
            self._name(body.args[1 + i], new.args[1 + len(new.args[1:]) - len(plain) + position])
        self._steps.append(Step(carried, arguments, plain, [v.type for v in new.args[1:]]))
        self.nested(body, new)
        self._steps.pop()
        self._loop = outer
        bounds = [self.scalar(v) for v in (op.lb, op.ub, op.step)]
        made = self.builder.op(
            scf.ForOp, [*bounds, *initial], [v.type for v in initial], op.properties, regions=[Region(new)], attributes=op.attributes
        )
        self._leave(op, carried, starts, made, plain, arguments)

    def _group_places(self, op: Operation, one: Carried, start: Sequence[SSAValue]) -> list[Places]:
        if one.mode != "pointer" or one.slot is not None:
            return []
        outside = self.time.lift(op, block_of(one.again)) is not None
        return [self.places.get(v, frozenset()) for v in (*start, *([self.at(one.again)] if outside else []))]

    def _alias_unchanged(self, op: scf.ForOp, body: Block) -> None:
        last = cast("Operation", body.last_op)
        for initial, argument, result, again in zip(op.iter_args, body.args[1:], op.results, last.operands):
            if isinstance(argument.type, TensorType) and again is argument and not self._unwritten(initial):
                self.memrefs[argument] = self.memrefs[result] = self.at(initial)

    def _leave(
        self,
        op: Operation,
        carried: Sequence[Carried],
        starts: Sequence[Sequence[SSAValue]],
        made: Operation,
        plain: Sequence[int],
        arguments: Sequence[Sequence[SSAValue]],
    ) -> None:
        position = 0
        for one, start, args in zip(carried, starts, arguments):
            result = op.results[one.index]
            if one.mode == "in place":
                self.memrefs[result] = self.target(one.content)
            else:
                self.memrefs[result] = made.results[position]
                for k, arg in enumerate(args):
                    places = self.places.get(arg, frozenset[Place]())
                    self.places[made.results[position + k]] = frozenset(p.at_some_time() for p in places)
            position += len(start)
        for k, i in enumerate(plain):
            self._name(op.results[i], made.results[position + k])

    def _split(self, arguments: Sequence[SSAValue], starts: Sequence[Sequence[SSAValue]]) -> list[list[SSAValue]]:
        rest = iter(arguments)
        return [[next(rest) for _ in start] for start in starts]

    def _name(self, old: SSAValue, new: SSAValue) -> None:
        self.scalars[old] = new
        new.name_hint = old.name_hint

    # -- while

    def _while(self, op: scf.WhileOp) -> None:
        carried = self.plan.loops.carried[op]
        starts = [self._start(op, one) for one in carried]
        types = self._carried_types(op, carried, starts)
        starts = [[self.cast(v, t) for v in start] for start, t in zip(starts, types)]
        before, after = op.before_region.block, op.after_region.block
        plain = [i for i, v in enumerate(op.arguments) if not isinstance(v.type, TensorType)]
        initial = [v for start in starts for v in start] + [self.scalar(op.arguments[i]) for i in plain]
        condition = cast("scf.ConditionOp", before.last_op)
        addresses = [v.type for start in starts for v in start]
        forwarded = [i for i, v in enumerate(condition.args) if not isinstance(v.type, TensorType)]
        types_after = [*addresses, *(condition.args[i].type for i in forwarded)]
        first, second = Block(arg_types=[v.type for v in initial]), Block(arg_types=types_after)
        outer, self._loop = self._loop, op
        split_first, split_second = self._split(first.args, starts), self._split(second.args, starts)
        for one, start, *both in zip(carried, starts, split_first, split_second):
            for args in both:
                self._point(one, start, args, ())
        for one, args in zip(carried, split_first):
            self._enter(one, args, before.args[one.index])
        for k, i in enumerate(plain):
            self._name(before.args[i], first.args[len(addresses) + k])
        self._conditions.append((split_first, forwarded))
        self.nested(before, first)
        self._conditions.pop()
        by_content = {one.content: (one, args) for one, args in zip(carried, split_second)}
        for one, args in zip(carried, split_second):
            self._enter(one, args, before.args[one.index])
        for value, argument in zip(condition.args, after.args):
            self._forward(value, argument, by_content)
        for k, i in enumerate(forwarded):
            self._name(after.args[i], second.args[len(addresses) + k])
        self._steps.append(Step(carried, split_second, plain, [v.type for v in initial]))
        self.nested(after, second)
        self._steps.pop()
        self._loop = outer
        made = self.builder.op(
            scf.WhileOp, initial, types_after, op.properties, regions=[Region(first), Region(second)], attributes=op.attributes
        )
        results = self._split(made.results, starts)
        for args, start in zip(results, split_second):
            for arg, inner in zip(args, start):
                self.places[arg] = self.places.get(inner, frozenset())
        at_exit = {one.content: (one, args) for one, args in zip(carried, results)}
        for value, result in zip(condition.args, op.results):
            self._forward(value, result, at_exit)
        for k, i in enumerate(forwarded):
            self._name(op.results[i], made.results[len(addresses) + k])

    def _forward(self, value: SSAValue, target: SSAValue, addresses: Mapping[Content, tuple[Carried, Sequence[SSAValue]]]) -> None:
        """`target` is what `scf.condition` made of `value`: an address that it carried on, or memory that stays where it is."""
        if not isinstance(target.type, TensorType):
            return
        content = self.contents.content(target)
        one, carried = addresses.get(content, (None, ()))
        if one is not None:
            self.memrefs[target] = carried[0] if carried else self.target(content)
        elif content is self.contents.content(value):
            if not self._unwritten(value):
                self.memrefs[target] = self.at(value)
        else:
            self.memrefs[target] = self.target(content)

    def _condition(self, op: scf.ConditionOp) -> Callable[[], None]:
        arguments, forwarded = self._conditions[-1]
        loop = cast("scf.WhileOp", op.parent_op())
        for value, argument in zip(op.args, loop.after_region.block.args):
            if isinstance(argument.type, TensorType) and self.contents.content(argument).value is argument:
                self.deliver(value, self.contents.content(argument))
        operands = [self.scalar(op.condition), *(v for args in arguments for v in args), *(self.scalar(op.args[i]) for i in forwarded)]
        return lambda: self._end(scf.ConditionOp, operands)

    # -- branches

    def _branch(self, op: scf.IfOp | scf.IndexSwitchOp) -> None:
        plain = [i for i, r in enumerate(op.results) if not isinstance(r.type, TensorType)]
        regions: list[Region] = []
        for region in op.regions:
            if region.first_block is None:
                regions.append(Region())
                continue
            new = Block()
            self.nested(region.block, new)
            regions.append(Region(new))
        types = [op.results[i].type for i in plain]
        made = self.builder.op(type(op), [self.scalar(op.operands[0])], types, op.properties, regions=regions, attributes=op.attributes)
        for k, i in enumerate(plain):
            self._name(op.results[i], made.results[k])
        for result in op.results:
            if isinstance(result.type, TensorType):
                self.define(result)

    def _yield(self, op: scf.YieldOp) -> Callable[[], None]:
        parent = cast("Operation", op.parent_op())
        if isinstance(parent, scf.IfOp | scf.IndexSwitchOp):
            for value, result in zip(op.operands, parent.results):
                if isinstance(result.type, TensorType):
                    self.deliver(value, self.contents.content(result))
            operands = [self.scalar(v) for v in op.operands if not isinstance(v.type, TensorType)]
            return lambda: self._end(scf.YieldOp, operands)
        step = self._steps[-1]
        operands: list[SSAValue] = []
        for one, args in zip(step.carried, step.arguments):
            operands += self._next(one, args, step.types[len(operands) :])
        operands += [self.scalar(op.operands[i]) for i in step.plain]
        return lambda: self._end(scf.YieldOp, operands)

    rules: ClassVar = {
        **RULES,
        scf.ForOp: _for,
        scf.WhileOp: _while,
        scf.IfOp: _branch,
        scf.IndexSwitchOp: _branch,
    }
    terminators: ClassVar = {**TERMINATORS, scf.YieldOp: _yield, scf.ConditionOp: _condition}


_NO_ADDRESS = cast("MemRef", MemRefType(i8, []))
"""Stands for the type of what is carried in place; never used."""


def _moving(types: Sequence[MemRef]) -> MemRef:
    """One type for addresses that take each other's place."""
    joined = join(types)
    return joined if all(t == joined for t in types) else anywhere(joined)
