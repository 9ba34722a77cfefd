"""128-bit accesses: which vector loads and stores of a device function begin at a multiple of their size.

The base of an operand with the identity layout is aligned to 16 bytes: plans place buffers at multiples of 64, and the runtime copies
arguments that lie otherwise. The offset is aligned where a divisibility analysis of its indices says so; `nvptx` splits other accesses.
"""

from __future__ import annotations

from math import gcd
from typing import Any, cast

from xdsl.dialects.builtin import IntegerAttr, MemRefType, NoneAttr, VectorType, i64
from xdsl.ir import BlockArgument, Operation, SSAValue

from gradir.dialects.upstream import arith, gpu, memref, scf, vector
from gradir.lowering.lower_kernels.builder import strides_of
from gradir.lowering.schedules.machine import element_bytes

WIDEST = 16
"""Bytes of one access of a thread."""
_CASTS = (arith.IndexCastOp, arith.IndexCastUIOp, arith.ExtUIOp, arith.ExtSIOp)
_FAR = 1 << 20
"""The divisor of 0: more than any access asks for."""


def align_accesses(function: gpu.FuncOp) -> None:
    """Write `alignment` on the vector accesses that have it."""
    divisors: dict[SSAValue, int] = {}
    for op in function.walk():
        if isinstance(op, vector.LoadOp):
            _align(op, op.operands[0], op.operands[1:], op.results[0].type, divisors)
        elif isinstance(op, vector.StoreOp):
            _align(op, op.operands[1], op.operands[2:], op.operands[0].type, divisors)


def _align(op: Operation, memory: SSAValue, indices: Any, t: Any, divisors: dict[SSAValue, int]) -> None:
    vectors = cast("VectorType[Any]", t)
    kind = cast("MemRefType[Any]", memory.type)
    if "alignment" in op.attributes or "alignment" in op.properties or not isinstance(kind.layout, NoneAttr) or not is_base(memory):
        return
    if len(vectors.get_shape()) != 1:
        return
    size = element_bytes(vectors.element_type)
    wanted = min(WIDEST, vectors.get_shape()[0] * size)
    offset = 0
    for index, stride in zip(indices, strides_of(kind)):
        if stride is None:
            return
        offset = gcd(offset, divisor(index, divisors) * stride)
    if offset * size % wanted == 0:
        op.attributes["alignment"] = IntegerAttr(wanted, i64)


def is_base(memory: SSAValue) -> bool:
    """Is it an operand or a workgroup buffer, seen whole?"""
    while isinstance(memory.owner, memref.CollapseShapeOp | memref.ExpandShapeOp):
        memory = memory.owner.operands[0]
    return isinstance(memory, BlockArgument) and isinstance(memory.owner.parent_op(), gpu.FuncOp)


def divisor(value: SSAValue, known: dict[SSAValue, int]) -> int:
    """A number that divides the index whatever the thread; `_FAR` for 0."""
    if value not in known:
        known[value] = 1  # a loop that carries the index
        known[value] = _divisor(value, known)
    return known[value]


def _divisor(value: SSAValue, known: dict[SSAValue, int]) -> int:
    owner = value.owner
    if isinstance(value, BlockArgument):
        loop = value.owner.parent_op()
        if isinstance(loop, scf.ForOp) and value.index == 0:
            return gcd(divisor(loop.lb, known), divisor(loop.step, known))
        return 1
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return abs(owner.value.value.data) or _FAR
    if isinstance(owner, arith.MuliOp):
        return min(_FAR, divisor(owner.operands[0], known) * divisor(owner.operands[1], known))
    if isinstance(owner, arith.AddiOp | arith.SubiOp):
        return gcd(*(divisor(v, known) for v in owner.operands))
    if isinstance(owner, arith.SelectOp):
        return gcd(*(divisor(v, known) for v in owner.operands[1:]))
    if isinstance(owner, _CASTS):
        return divisor(owner.operands[0], known)
    return 1
