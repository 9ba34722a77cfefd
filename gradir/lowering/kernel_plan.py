"""What a group needs as a function of its own: arguments, repeated constants, results; its key; the function itself.

Arguments: tensors read, in order of first use; scalars; lifted float constants; one destination per result. Integer constants from
outside are repeated inside. Temporaries of run-time size take it from an argument that has the size, else as a scalar argument.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isinf, isnan
from typing import Any, cast

from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from gradir.dialects.kernel import KERNEL_ATTRIBUTE, KINDS
from gradir.dialects.types import shape_of
from gradir.dialects.upstream import arith, func, linalg, tensor
from gradir.ir.builder import Builder, new_function
from gradir.lowering.groups import Group, captured_by
from gradir.lowering.kernel_key import Interner, Key, KeyWriter

PLAIN_FLOATS = (0.0, 1.0, -1.0)
INDEX = IndexType()


@dataclass
class KernelPlan:
    """A group on its way to become a kernel. Values are those of the caller."""

    group: Group
    tensors: dict[SSAValue, None] = field(default_factory=dict[SSAValue, None])
    scalars: dict[SSAValue, None] = field(default_factory=dict[SSAValue, None])
    repeated: dict[SSAValue, Attribute] = field(default_factory=dict[SSAValue, Attribute])
    lifted: dict[SSAValue, FloatAttr[Any]] = field(default_factory=dict[SSAValue, FloatAttr[Any]])
    outputs: list[SSAValue] = field(default_factory=list[SSAValue])

    @property
    def ops(self) -> list[linalg.GenericOp]:
        return [member.op for member in self.group.ops]

    def lifted_numbers(self) -> list[FloatAttr[Any]]:
        """The distinct lifted constants, in order of first use."""
        return list(dict.fromkeys(self.lifted.values()))

    def read(self, value: SSAValue) -> None:
        """Note a value from outside."""
        if isinstance(value.type, TensorType):
            self.tensors[value] = None
        elif isinstance(value.owner, arith.ConstantOp):
            if is_lifted(value.owner.value):
                self.lifted[value] = cast("FloatAttr[Any]", value.owner.value)
            else:
                self.repeated[value] = value.owner.value
        else:
            self.scalars[value] = None


def is_lifted(constant: Attribute) -> bool:
    """True of float constants that would keep kernels apart for no reason."""
    if not isinstance(constant, FloatAttr):
        return False
    number = cast("FloatAttr[Any]", constant).value.data
    return number not in PLAIN_FLOATS and not isinf(number) and not isnan(number)


def plan_kernel(group: Group) -> KernelPlan:
    """Arguments and results of a group."""
    plan = KernelPlan(group)
    members: set[Operation] = {member.op for member in group.ops}
    for member in group.ops:
        op = member.op
        for operand in op.operands[:-1]:
            if operand not in group.produced and not is_shape_only(operand, op):
                plan.read(operand)
        fill = fill_of(op)
        if fill is not None:
            plan.read(fill.operands[0])
        for value in captured_by(op.body.block):  # not the group's own record: earlier kernels have replaced values since
            plan.read(value)
        for inner in op.body.block.walk():
            if isinstance(inner, arith.ConstantOp) and is_lifted(inner.value):
                plan.lifted[inner.result] = cast("FloatAttr[Any]", inner.value)
        if any(use.operation not in members for use in op.results[0].uses):
            plan.outputs.append(op.results[0])
    for size, _ in _sizes_to_pass(plan):
        plan.scalars[size] = None
    return plan


def is_shape_only(operand: SSAValue, op: linalg.GenericOp) -> bool:
    """True of an empty tensor that only tells extents of windows."""
    if not isinstance(operand.owner, tensor.EmptyOp):
        return False
    position = list(op.operands).index(operand)
    return op.body.block.args[position].first_use is None


def fill_of(op: linalg.GenericOp) -> linalg.FillOp | None:
    """The op that fills the accumulators of a reduction."""
    owner = op.operands[-1].owner
    return owner if isinstance(owner, linalg.FillOp) else None


def empty_of(op: linalg.GenericOp) -> tensor.EmptyOp | None:
    """The op that makes the destination; None when the nest writes over a tensor that holds something."""
    fill = fill_of(op)
    owner = (fill.operands[1] if fill is not None else op.operands[-1]).owner
    return owner if isinstance(owner, tensor.EmptyOp) else None


def _sizes_to_pass(plan: KernelPlan) -> Iterator[tuple[SSAValue, str | None]]:
    """Run-time sizes of temporaries that no argument has."""
    named = {n for v in (*plan.tensors, *plan.outputs) for n in shape_of(v) if isinstance(n, str)}
    for op in plan.ops:
        empty = empty_of(op)
        if op.results[0] in plan.outputs or empty is None:
            continue
        unknown = [n for n in shape_of(op.results[0]) if not isinstance(n, int)]
        for name, size in zip(unknown, empty.operands):
            if name not in named:
                yield size, name


def kernel_key(plan: KernelPlan, intern: Interner) -> Key:
    """The structure of the kernel."""
    writer = KeyWriter(intern)
    chain = plan.group.chain
    writer.note(plan.group.kind, *(map(len, chain.stages) if chain is not None else ()))
    for value in (*plan.tensors, *plan.scalars):
        writer.argument(value)
    numbers = {number: place for place, number in enumerate(plan.lifted_numbers())}
    for value, number in plan.lifted.items():
        writer.number(value)
        writer.note("lifted", numbers[number], intern(number.type))
    for value, constant in plan.repeated.items():
        writer.number(value)
        writer.note("constant", intern(constant))
    for op in plan.ops:
        fill = fill_of(op)
        inputs = [v for v in op.operands[:-1] if not is_shape_only(v, op)]
        init = [fill.operands[0]] if fill is not None else [] if empty_of(op) is not None else [op.operands[-1]]
        writer.note(fill is not None, *(writer.shape(v) for v in op.operands[:-1] if is_shape_only(v, op)))
        writer.op(op, [*inputs, *init], plan.lifted)
    writer.note("outputs", *(writer.number(v) for v in plan.outputs))
    return writer.key()


def build_kernel(plan: KernelPlan, name: str) -> func.FuncOp:
    """The function; moves the group's ops into it."""
    outside = [*plan.tensors, *plan.scalars]
    numbers = plan.lifted_numbers()
    types = [*(v.type for v in outside), *(n.type for n in numbers), *(v.type for v in plan.outputs)]
    block = Block(arg_types=types)
    builder = Builder(block, plan.ops[-1].location)
    inner: dict[SSAValue, SSAValue] = dict(zip(outside, block.args))
    for value, argument in inner.items():
        argument.name_hint = value.name_hint
    by_number = dict(zip(numbers, block.args[len(outside) :]))
    destinations: dict[SSAValue, SSAValue] = dict(zip(plan.outputs, block.args[len(outside) + len(numbers) :]))
    for value, constant in plan.repeated.items():
        inner[value] = builder(arith.ConstantOp, (), (value.type,), {"value": constant})
    for value, number in plan.lifted.items():
        inner[value] = by_number[number]
    body = _Body(builder, inner, destinations)
    for op in plan.ops:
        body.move(op)
    builder(func.ReturnOp, plan.outputs)
    attributes = {KERNEL_ATTRIBUTE: KINDS[plan.group.kind].of()}
    results = [v.type for v in plan.outputs]
    return new_function(name, block, results, private=True, attributes=attributes, loc=plan.ops[-1].location)


@dataclass
class _Body:
    """The kernel's body while ops move in. `inner` maps values of the caller to values of the kernel."""

    builder: Builder
    inner: dict[SSAValue, SSAValue]
    destinations: dict[SSAValue, SSAValue]

    def move(self, op: linalg.GenericOp) -> None:
        self.builder.loc = op.location
        destination = self._destination(op)
        fill = fill_of(op)
        if fill is not None:
            scalar = self.inner[fill.operands[0]]
            destination = self.builder(linalg.FillOp, (scalar, destination), (destination.type,), fill.properties)
        inputs = [self.shape_only(v) if is_shape_only(v, op) else self.inner.get(v, v) for v in op.operands[:-1]]
        op.operands = [*inputs, destination]
        for nested in list(op.body.block.walk()):
            if nested.results and nested.results[0] in self.inner:  # a lifted constant
                nested.results[0].replace_all_uses_with(self.inner[nested.results[0]])
                nested.detach()
                nested.erase()
                continue
            for place, value in enumerate(nested.operands):
                if value in self.inner:
                    nested.operands[place] = self.inner[value]
        self.builder.block.add_op(op)

    def _destination(self, op: linalg.GenericOp) -> SSAValue:
        result = op.results[0]
        if empty_of(op) is None:
            return self.inner[op.operands[-1]]
        if result in self.destinations:
            return self.destinations[result]
        empty = empty_of(op)
        sizes = [self._size(n, v) for n, v in zip(_unknown(result), empty.operands if empty is not None else ())]
        return self.builder(tensor.EmptyOp, sizes, (result.type,))

    def shape_only(self, operand: SSAValue) -> SSAValue:
        """An empty tensor of the same static shape."""
        return self.builder(tensor.EmptyOp, (), (operand.type,))

    def _size(self, name: str | None, value: SSAValue) -> SSAValue:
        """The run-time size called `name`, which is `value` in the caller."""
        if value in self.inner:
            return self.inner[value]
        for argument in self.builder.block.args:
            if isinstance(argument.type, TensorType) and name in shape_of(argument):
                place = shape_of(argument).index(name)
                at = self.builder(arith.ConstantOp, (), (INDEX,), {"value": IntegerAttr(place, INDEX)})
                found = self.inner[value] = self.builder(tensor.DimOp, (argument, at), (INDEX,))
                return found
        raise KeyError(name)


def _unknown(value: SSAValue) -> list[str | None]:
    return [n for n in shape_of(value) if not isinstance(n, int)]
