"""The pass: which loops are sunk, and the nest that takes their place.

A loop qualifies when one of its results is used, that result is a tensor, and every op in the loop computes each element of its result
from the same element of tensors of that shape (or from numbers). All elements may then run through the loop on their own: nothing goes
to memory between iterations, and threads share the elements instead of meeting after each op. A `scf.while` ends when no element goes on;
it qualifies when elements that would stop earlier do not change any more (`at_rest`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, TensorType
from xdsl.ir import Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.ir.core import OpResult

from gradir.dialects.types import segments, shape_of
from gradir.dialects.upstream import func, linalg, scf, tensor as upstream_tensor
from gradir.ir.passes import Pass, PassContext
from gradir.lowering.sink_loops.at_rest import stays_at_rest
from gradir.lowering.sink_loops.elements import Elements, NotElementwise

MOST_CARRIED = 12
"""Values that an element carries around the loop: beyond, they leave the registers anyway."""


@dataclass(frozen=True)
class SinkLoops(Pass):
    """Before: level 2 without kernels. After: the same, with loops inside of elementwise nests where that is possible.

    ```mlir
    %r = scf.for %i = %0 to %n step %1 iter_args(%x = %a) -> tensor<4096xf32> { %y = linalg.generic .. ins(%x) ..; scf.yield %y }
    // becomes
    %r = linalg.generic .. ins(%a) .. { ^bb0(%e: f32, %o: f32):
      %s = scf.for %i = %0 to %n step %1 iter_args(%x = %e) -> f32 { ..; scf.yield %y }
      linalg.yield %s }
    ```
    """

    NAME: ClassVar[str] = "sink-loops"

    def apply(self, op: Operation, context: PassContext) -> None:
        for function in op.regions[0].block.ops:
            if isinstance(function, func.FuncOp) and function.body.blocks:
                for loop in list(_outermost_loops(function)):
                    _sink_in(loop)


def _outermost_loops(op: Operation) -> Iterator[scf.ForOp | scf.WhileOp]:
    """Loops over whole tensors that no other such loop holds."""
    if isinstance(op, linalg.GenericOp):
        return
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                if isinstance(inner, scf.ForOp | scf.WhileOp):
                    yield inner
                else:
                    yield from _outermost_loops(inner)


def _sink_in(loop: scf.ForOp | scf.WhileOp) -> None:
    """Sink `loop`, or else the loops in it."""
    try:
        new = sunk(loop)
    except NotElementwise:
        for inner in list(_outermost_loops(loop)):
            _sink_in(inner)
        return
    used = _wanted(loop)
    used.replace_all_uses_with(new)
    new.name_hint = used.name_hint
    loop.detach()
    loop.erase()


def _wanted(loop: Operation) -> OpResult:
    """The one result that somebody reads."""
    used = [r for r in loop.results if r.uses]
    if len(used) != 1 or not isinstance(used[0].type, TensorType) or not shape_of(used[0].type) or None in shape_of(used[0].type):
        raise NotElementwise("one tensor is wanted of the loop, whose sizes have names")
    return used[0]


def sunk(loop: scf.ForOp | scf.WhileOp) -> SSAValue:
    """The nest that computes what is wanted of `loop`, before it. `NotElementwise`, with nothing changed, where there is none."""
    wanted = _wanted(loop)
    assert isinstance(wanted.type, TensorType)
    elements = Elements(wanted.type, loop)
    result = elements.loop(loop, wanted.index)
    if elements.carried > MOST_CARRIED:
        raise NotElementwise("too much to carry")
    done = result.owner
    if elements.own is not None and not (isinstance(done, scf.WhileOp) and stays_at_rest(done, elements.own, wanted.index)):
        raise NotElementwise("elements that have stopped would go on changing")
    elements.body.add_op(linalg.YieldOp.create(operands=[result], location=loop.location))
    return _nest(loop, wanted.type, elements)


def _nest(loop: Operation, kind: TensorType, elements: Elements) -> SSAValue:
    """A `linalg.generic` with the body of `elements`, before `loop`."""
    block = loop.parent
    assert block is not None
    target = upstream_tensor.EmptyOp.create(operands=elements.sizes(), result_types=[kind], location=loop.location)
    rank = len(shape_of(kind))
    nest = linalg.GenericOp.create(
        operands=[*elements.inputs, target.results[0]],
        result_types=[kind],
        properties={
            "indexing_maps": ArrayAttr([*elements.maps, AffineMapAttr(AffineMap.identity(rank))]),
            "iterator_types": ArrayAttr([linalg.IteratorTypeAttr.parallel()] * rank),
            "operandSegmentSizes": segments(len(elements.inputs), 1),
        },
        regions=[Region(elements.body)],
        location=loop.location,
    )
    block.insert_ops_before([target, nest], loop)
    return nest.results[0]
