"""What the backward part of a region reads from its forward part: redo what is cheap, save the rest.

Policy: a value is *redone* when its op is cheap and everything it reads is available to the backward part without saving
(defined outside, the loop index, or redone itself), or is saved anyway. Everything else is a residual.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.core import OpResult

from gradir.autodiff.activity import free_in_block
from gradir.autodiff.reverse.costs import FAST, FREE, LARGE, SLOW, share_of, weight
from gradir.dialects import nd
from gradir.dialects.upstream import arith, linalg, tensor as upstream_tensor
from gradir.ir.builder import Builder

LIGHT: frozenset[type[Operation]] = FREE | {
    nd.IndexAtOp, upstream_tensor.ExtractOp, upstream_tensor.FromElementsOp, arith.ConstantOp, arith.AddiOp, arith.SubiOp, arith.MuliOp,
    arith.IndexCastOp, arith.CmpiOp, arith.SelectOp, arith.MaxSIOp, arith.CeilDivSIOp, arith.DivSIOp, arith.RemSIOp, arith.FloorDivSIOp,
    upstream_tensor.ExtractSliceOp, upstream_tensor.CastOp, upstream_tensor.DimOp, upstream_tensor.EmptyOp,
    upstream_tensor.CollapseShapeOp, upstream_tensor.ExpandShapeOp, linalg.FillOp,
}  # fmt: skip
"""Ops that cost nothing next to a load: views, constants and index arithmetic, of level 2 too."""

CHEAP: frozenset[type[Operation]] = LIGHT | {
    nd.CompareOp, nd.NegOp, nd.AbsOp, nd.ConvertOp, nd.NotOp, nd.AndOp, nd.OrOp, nd.SelectOp, arith.AddfOp, arith.SubfOp, arith.MulfOp,
    arith.NegfOp, arith.CmpfOp, arith.ExtFOp, arith.TruncFOp, arith.OrIOp, arith.AndIOp,
}  # fmt: skip
"""Ops worth redoing from values that are there anyway."""

CHEAP_OF_LARGE: frozenset[type[Operation]] = CHEAP | FAST
"""Those for values that do not fit a cache: one pass of arithmetic takes less time than to store and load them."""


@dataclass
class Residuals:
    """`saved` in order of first use; `redo` ops in program order."""

    saved: list[SSAValue]
    redo: list[Operation]


def plan(forward: Block, backward: Block, available: Callable[[SSAValue], bool]) -> Residuals:
    """What `backward` needs of `forward`. `available(v)`: an argument of `forward` that the backward part has anyway (a loop index)."""
    inside: set[SSAValue] = set(forward.args)
    for op in forward.ops:
        inside.update(op.results)
    needed = [v for v in free_in_block(backward) if v in inside and not available(v)]
    must = {v: None for v in needed if not _redoable(v, inside, available, {}, LIGHT)}
    redo: dict[Operation, None] = {}
    for value in needed:
        if value not in must:
            _collect(value, inside, available, must, redo)
    for value in list(must):
        kinds = CHEAP_OF_LARGE if weight(value.type) >= LARGE else CHEAP
        if _redoable(value, inside, available, must, kinds) and _depth(value, inside, must) <= 4:
            del must[value]
            _collect(value, inside, available, must, redo)
    order = {op: k for k, op in enumerate(forward.ops)}
    return Residuals(list(must), sorted(redo, key=order.__getitem__))


def why_kept(value: SSAValue, reader: str, reason: str = "") -> str:
    """The reason in the residual report, where none is given; `reader` is the op whose derivative reads the value, if that is known."""
    reason = reason or _why_not_redone(value)
    return f"{reason}; read by the backward part of {reader.removeprefix('nd.')}" if reader else reason


def _why_not_redone(value: SSAValue) -> str:
    if not isinstance(value, OpResult):
        return "enters the region"
    if type(value.op) in CHEAP or (share_of(value.op) or SLOW) < SLOW:
        return "cheap, but what it is made of is not kept"
    return f"expensive: {value.op.name.removeprefix('nd.')}"


def _redoable(
    value: SSAValue,
    inside: set[SSAValue],
    available: Callable[[SSAValue], bool],
    saved: dict[SSAValue, None],
    kinds: frozenset[type[Operation]],
) -> bool:
    """Whether `value` can be computed again from what the backward part has (`saved` but for `value` itself), with ops of `kinds` only."""
    stack = [value]
    seen: set[SSAValue] = set()
    while stack:
        v = stack.pop()
        if v in seen or v not in inside or available(v) or (v in saved and v is not value):
            continue
        seen.add(v)
        if len(seen) > 32 or not isinstance(v, OpResult) or type(v.op) not in kinds or v.op.regions:
            return False
        stack.extend(v.op.operands)
    return True


def _depth(value: SSAValue, inside: set[SSAValue], saved: dict[SSAValue, None]) -> int:
    """Number of ops that redoing `value` takes, itself included."""
    stack, seen = [value], set[SSAValue]()
    while stack:
        v = stack.pop()
        if v in seen or v not in inside or (v in saved and v is not value) or not isinstance(v, OpResult):
            continue
        seen.add(v)
        stack.extend(v.op.operands)
    return len(seen)


def _collect(
    value: SSAValue, inside: set[SSAValue], available: Callable[[SSAValue], bool], saved: dict[SSAValue, None], redo: dict[Operation, None]
) -> None:
    stack = [value]
    while stack:
        v = stack.pop()
        if v not in inside or available(v) or v in saved or not isinstance(v, OpResult) or v.op in redo:
            continue
        redo[v.op] = None
        stack.extend(v.op.operands)


def redo(builder: Builder, ops: list[Operation], values: dict[SSAValue, SSAValue]) -> None:
    """Emit copies of `ops` and extend `values` by their results."""
    for op in ops:
        new = type(op).create(
            operands=[values.get(v, v) for v in op.operands],
            result_types=[r.type for r in op.results],
            properties=dict(op.properties),
            attributes=dict(op.attributes),
            location=op.location,
        )
        builder.block.add_op(new)
        values.update(zip(op.results, new.results))


def substitute(block: Block, values: dict[SSAValue, SSAValue]) -> None:
    """Replace operands in `block` and everything nested in it."""
    for op in block.walk():
        if any(v in values for v in op.operands):
            op.operands = [values.get(v, v) for v in op.operands]
