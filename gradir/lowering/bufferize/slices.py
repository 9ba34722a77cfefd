"""Boxes of a tensor that `extract_slice` and `insert_slice` name, and when two of them cannot overlap.

An offset is `sign * base + constant` for one SSA value `base`, found through additions and subtractions. Induction variables with constant
bounds have a range, and a box that moves with its loop never meets its own position in another iteration.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr
from xdsl.ir import Block, SSAValue

from gradir.dialects.types import ints
from gradir.dialects.upstream import arith, scf, tensor

_MAX_TERMS = 16

SliceOp = tensor.ExtractSliceOp | tensor.InsertSliceOp


@dataclass(frozen=True, slots=True)
class Offset:
    """`sign * base + constant`; just the constant when there is no base."""

    base: SSAValue | None
    sign: int
    constant: int


@dataclass(frozen=True, eq=False, slots=True)
class Slice:
    """A box of a tensor: per dimension an offset and the number of elements it spans (None: not known)."""

    offsets: tuple[Offset, ...]
    spans: tuple[int | None, ...]


def slice_of(op: SliceOp) -> Slice:
    """The box that `op` reads or writes."""
    sizes, strides = ints(op.static_sizes), ints(op.static_strides)
    spans = tuple(None if DYNAMIC_INDEX in (n, s) or s < 1 else max(0, (n - 1) * s + 1) for n, s in zip(sizes, strides))
    dynamic = iter(op.offsets)
    offsets = tuple(offset_of(next(dynamic)) if n == DYNAMIC_INDEX else Offset(None, 1, n) for n in ints(op.static_offsets))
    return Slice(offsets, spans)


def constant_of(value: SSAValue) -> int | None:
    """The number that `value` is, if it is an integer constant."""
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return None


def offset_of(value: SSAValue) -> Offset:
    """`value` as `sign * base + constant`."""
    sign, constant = 1, 0
    for _ in range(_MAX_TERMS):
        known = constant_of(value)
        if known is not None:
            return Offset(None, 1, constant + sign * known)
        op = value.owner
        if not isinstance(op, arith.AddiOp | arith.SubiOp):
            break
        left, right = constant_of(op.lhs), constant_of(op.rhs)
        plus = 1 if isinstance(op, arith.AddiOp) else -1
        if right is not None:  # x + c, x - c
            constant += sign * plus * right
            value = op.lhs
        elif left is not None:  # c + x, c - x
            constant += sign * left
            sign *= plus
            value = op.rhs
        else:
            break
    return Offset(value, sign, constant)


def disjoint(a: Slice, b: Slice) -> bool:
    """True when the two boxes (of equally shaped tensors) are known to have no element in common."""
    return any(_apart(p, m, q, n) for p, m, q, n in zip(a.offsets, a.spans, b.offsets, b.spans))


def moves_with(box: Slice, loop: scf.ForOp) -> bool:
    """True when no two iterations of `loop` can have the same element in `box`."""
    variable = loop.body.block.args[0]
    step = constant_of(loop.step) or 1  # steps are positive
    return any(o.base is variable and n is not None and n <= step for o, n in zip(box.offsets, box.spans))


def _apart(p: Offset, m: int | None, q: Offset, n: int | None) -> bool:
    if m is None or n is None:
        return False
    if p.base is q.base and p.sign == q.sign:
        return p.constant + m <= q.constant or q.constant + n <= p.constant
    (p_low, p_high), (q_low, q_high) = _range(p), _range(q)
    below = p_high is not None and q_low is not None and p_high + m <= q_low
    return below or (q_high is not None and p_low is not None and q_high + n <= p_low)


def _range(offset: Offset) -> tuple[int | None, int | None]:
    """Least and greatest value of an offset, where an induction variable gives them."""
    base = offset.base
    if base is None:
        return offset.constant, offset.constant
    block = base.owner
    loop = block.parent_op() if isinstance(block, Block) else None
    if not isinstance(loop, scf.ForOp) or loop.body.block.args[0] is not base:
        return None, None
    low, bound = constant_of(loop.lb), constant_of(loop.ub)
    ends = (low, None if bound is None else bound - 1)
    if offset.sign < 0:
        ends = (None if ends[1] is None else -ends[1], None if ends[0] is None else -ends[0])
    return tuple(None if n is None else n + offset.constant for n in ends)  # pyright: ignore[reportReturnType]  two ends
