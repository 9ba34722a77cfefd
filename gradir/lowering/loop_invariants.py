"""Loop-invariant code motion: what every iteration would compute again is computed once, before the loop.

Moving pays when computing is dearer than reading the result, which then lives as long as the loop. Views, fills and broadcasts stay: a
kernel reads through them. Cheap elementwise ops move when the result is no larger than what they read; functions, contractions, reductions
and all other ops move always, with the views that they need. A loop without a trip computes them for nothing, without harm.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from gradir.dialects import nd
from gradir.dialects.types import element_of, is_static, numpy_dtype, static_shape
from gradir.dialects.upstream import arith, scf, tensor
from gradir.ir.passes import Pass, PassContext
from gradir.ir.structure import is_inside
from gradir.lowering.purity import Purity

STAYING: tuple[type[Operation], ...] = (
    nd.ConstantOp, nd.IotaOp, nd.EmptyOp, nd.BroadcastOp, nd.TransposeOp, nd.ReshapeOp, nd.SliceOp, nd.ReverseOp, nd.IndexAtOp, nd.SymbolOp,
    nd.BindOp, tensor.ExtractOp, tensor.FromElementsOp, arith.ConstantOp,
)  # fmt: skip
"""Views, fills and numbers: they move only with an op that needs them."""

CHEAP: tuple[type[Operation], ...] = (
    nd.NegOp, nd.AbsOp, nd.SignOp, nd.ReluOp, nd.NotOp, nd.AddOp, nd.SubOp, nd.MulOp, nd.MulStrongOp, nd.MaxOp, nd.MinOp, nd.AndOp, nd.OrOp,
    nd.XorOp, nd.CompareOp, nd.SelectOp, nd.ClampOp, nd.ConvertOp, nd.IsFiniteOp, nd.PadOp, nd.ConcatenateOp,
)  # fmt: skip
"""Ops that are done by the time their operands have come from memory."""


@dataclass(frozen=True)
class LoopInvariantCodeMotion(Pass):
    """Before and after: level 1. No `scf.for` or `scf.while` computes in each iteration what is the same in all of them.

    ```mlir
    scf.for .. { %0 = nd.exp %w : tensor<4xf32>; .. }
    // becomes
    %0 = nd.exp %w : tensor<4xf32>
    scf.for .. { .. }
    ```
    """

    NAME: ClassVar[str] = "loop-invariant-code-motion"

    def apply(self, op: Operation, context: PassContext) -> None:
        purity = Purity(op)
        for loop in list(_innermost_first(op)):
            hoist(loop, purity)


def _innermost_first(op: Operation) -> Iterator[scf.ForOp | scf.WhileOp]:
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                yield from _innermost_first(inner)
    if isinstance(op, scf.ForOp | scf.WhileOp):
        yield op


def hoist(loop: scf.ForOp | scf.WhileOp, purity: Purity) -> int:
    """Move what does not change before `loop`; the number of ops that moved."""
    around = loop.parent
    assert around is not None
    fixed: dict[Operation, None] = {}
    chosen: dict[Operation, None] = {}
    for region in loop.regions:
        for op in region.block.ops:
            if op.regions or not op.results or not _is_fixed(op, loop, fixed) or not purity.is_pure(op):
                continue
            fixed[op] = None
            if not isinstance(op, STAYING) and (not isinstance(op, CHEAP) or _shrinks(op)):
                _choose(op, fixed, chosen)
    for op in [op for op in fixed if op in chosen]:
        op.detach()
        around.insert_op_before(op, loop)
    return len(chosen)


def _is_fixed(op: Operation, loop: Operation, fixed: dict[Operation, None]) -> bool:
    """Whether every operand comes from outside of the loop or from an op that does not change either."""
    return all(v.owner in fixed or not is_inside(v, loop) for v in op.operands) and op.name.split(".")[0] in ("nd", "arith", "tensor")


def _choose(op: Operation, fixed: dict[Operation, None], chosen: dict[Operation, None]) -> None:
    """Take `op` and what it needs out of the loop."""
    todo = [op]
    while todo:
        op = todo.pop()
        if op not in chosen:
            chosen[op] = None
            todo += [v.owner for v in op.operands if isinstance(v.owner, Operation) and v.owner in fixed]


def _shrinks(op: Operation) -> bool:
    """Whether the results of a cheap op take no more memory than what it reads."""
    read = [v for v in map(_source, op.operands) if not isinstance(v.owner, nd.ConstantOp | nd.IotaOp)]
    if any(v.type == r.type for v in read for r in op.results):
        return True
    sizes = [_bytes(v.type) for v in read], [_bytes(r.type) for r in op.results]
    return None not in sizes[0] and None not in sizes[1] and sum(n or 0 for n in sizes[1]) <= sum(n or 0 for n in sizes[0])


def _source(value: SSAValue) -> SSAValue:
    """What is in memory for `value`: a broadcast reads its operand."""
    while isinstance(value.owner, nd.BroadcastOp):
        value = value.owner.operand
    return value


def _bytes(kind: Attribute) -> int | None:
    """The size of a tensor, where it is known; a number takes none."""
    if not isinstance(kind, TensorType):
        return 0
    return prod(static_shape(kind)) * numpy_dtype(element_of(kind)).itemsize if is_static(kind) else None
