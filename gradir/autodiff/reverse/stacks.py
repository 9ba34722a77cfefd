"""Stacks: what a loop saves, one entry per iteration."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import IndexType, TensorType, i64
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.ir.core import OpResult

from gradir.autodiff.reverse.indices import Indices, Trips, bind_size
from gradir.autodiff.reverse.report import Ledger
from gradir.autodiff.reverse.residuals import why_kept
from gradir.autodiff.reverse.sweep import Sweep, Unit
from gradir.autodiff.tensors import TensorBuilder
from gradir.dialects import nd
from gradir.dialects.types import shape_of, tensor
from gradir.dialects.upstream import arith, tensor as upstream_tensor
from gradir.ir.builder import Builder


@dataclass
class Stack:
    """`length` entries of type `element`, one per iteration; `value` is the tensor, `arg` what it is called inside of the loop.

    `carried`: the number of the carried value that is stored before and after every iteration, at t and at t + 1 of T + 1 entries.
    """

    element: Attribute
    length: int | str
    length_value: SSAValue
    carried: int | None = None
    arg: SSAValue | None = None
    value: SSAValue | None = None
    keeps: SSAValue | None = None
    """What of the body is pushed, for the residual report."""


def stackable(kind: Attribute) -> TensorType:
    """The tensor type under which a residual of type `kind` is stacked."""
    if isinstance(kind, TensorType):
        return kind
    return tensor(i64 if isinstance(kind, IndexType) else kind, ())


def to_stackable(builder: Builder, value: SSAValue) -> SSAValue:
    """A residual as a tensor of that type."""
    if isinstance(value.type, TensorType):
        return value
    if isinstance(value.type, IndexType):
        value = builder(arith.IndexCastOp, [value], [i64])
    return builder(upstream_tensor.FromElementsOp, [value], [tensor(value.type, ())])


def from_stackable(builder: Builder, value: SSAValue, kind: Attribute) -> SSAValue:
    """The residual of type `kind` that was stacked as `value`."""
    if isinstance(kind, TensorType):
        return value
    assert isinstance(value.type, TensorType)
    scalar = builder(upstream_tensor.ExtractOp, [value], [value.type.element_type])
    return builder(arith.IndexCastOp, [scalar], [kind]) if isinstance(kind, IndexType) else scalar


def shared_stack(sweep: Sweep, kind: TensorType, trips: Trips, init: SSAValue, carried: int) -> Stack:
    """A stack of T+1 entries that starts with the initial value."""
    at = Indices(sweep.builder)
    if isinstance(trips.size, int):
        length, value = trips.size + 1, at.constant(trips.size + 1)
    else:  # known as far out as the number of trips is
        further_out = Indices(trips.builder)
        value = further_out.add(trips.entries, further_out.constant(1))
        length = bind_size(sweep.unit, trips.builder, value)
    stack = Stack(kind, length, value, carried)
    t = TensorBuilder(sweep.builder)
    stack.value = t.update_at(to_stackable(sweep.builder, init), empty_stack(sweep.builder, stack), at.constant(0))
    return stack


def empty_stack(builder: Builder, stack: Stack) -> SSAValue:
    """The tensor for its entries, of which none is written yet."""
    kind = stack.element
    assert isinstance(kind, TensorType)
    sizes: list[SSAValue] = [] if isinstance(stack.length, int) else [stack.length_value]
    sizes += TensorBuilder(builder).sizes(shape_of(kind))
    return builder(nd.EmptyOp, sizes, [tensor(kind.element_type, (stack.length, *shape_of(kind)))])


def note_stack(ledger: Ledger, stack: Stack, backward: Block, where: str, *, again: bool = False) -> None:
    """Record a finished stack, which `backward` reads."""
    if ledger.on and stack.value is not None and stack.keeps is not None:
        kept = stack.keeps
        carried = f"carried value of a loop, {stack.length} entries"
        why = carried if not isinstance(kept, OpResult) else why_kept(kept, ledger.reader(kept, backward))
        ledger.keep(stack.value, kept, where=where, why=why, entries=stack.length, again=again)


def changes_size(unit: Unit, value: SSAValue, inside: Block) -> bool:
    """Whether the size of `value` is known only inside the block: it may differ from one run of the block to the next, so nothing
    outside can hold a value of each run."""
    if not isinstance(value.type, TensorType):
        return False
    for name in shape_of(value.type):
        block = unit.bound.get(name) if isinstance(name, str) else None
        while block is not None:
            if block is inside:
                return True
            block = block.parent_block()
    return False
