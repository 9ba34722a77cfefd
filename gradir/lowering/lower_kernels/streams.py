"""Results that are stored past the caches (`stream` of the schedule): whole vectors, where the memory turns out to be aligned.

A non-temporal store needs an address that is a multiple of its size. Whether the result begins at a multiple of 64 is asked once, at the
start of the kernel; every store then has two forms, and a branch that always goes the same way picks one.

```mlir
%p = memref.extract_aligned_pointer_as_index %y : memref<4096xf32> -> index
%aligned = arith.cmpi eq, (%p rem 64), 0
...
scf.if %aligned { vector.store %v, %y[%i] {nontemporal = true, alignment = 64} } else { vector.store %v, %y[%i] }
```
"""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, MemRefType, StridedLayoutAttr, i1, i64
from xdsl.ir import Block, Region, SSAValue

from gradir.dialects.upstream import arith, memref, scf, vector
from gradir.lowering.lower_kernels.binding import Kernel, Space
from gradir.lowering.lower_kernels.builder import INDEX, LoopBuilder, strides_of
from gradir.lowering.lower_kernels.tiles import Operand, Tile, linear, write
from gradir.lowering.schedules.machine import LINE_BYTES, element_bytes

LEAST_VECTOR = 16
"""Bytes of a store that is worth the way past the caches."""
_STREAM = BoolAttr.from_bool(True)


class Streams:
    """Which results are streamed: by their memory, whether it is aligned."""

    def __init__(self, kernel: Kernel, space: Space) -> None:
        wanted = kernel.schedule.field("stream")
        self.aligned: dict[SSAValue, SSAValue] = {}
        if not wanted:
            return
        results = sorted((o for o in space.ops if o.stored), key=lambda o: cast("Any", o.key).index)
        b = kernel.b
        for position, op in enumerate(results):
            kind = cast("MemRefType[Any]", op.output.memory.type)
            if position not in wanted or op.in_place or op.element == i1 or isinstance(kind.layout, StridedLayoutAttr):
                continue
            address = b(memref.ExtractAlignedPointerAsIndexOp, [op.output.memory], [INDEX])
            rest = b(arith.RemUIOp, [address, b.value(LINE_BYTES)], [INDEX])
            self.aligned[op.output.memory] = b(arith.CmpiOp, [rest, b.value(0)], [i1], {"predicate": arith.integer_predicate("eq")})

    def write(self, b: LoopBuilder, value: SSAValue, operand: Operand, tile: Tile, whole: int) -> None:
        """Store like `tiles.write`; past the caches when the tile has `whole` lanes and starts at multiples of them."""
        aligned = self.aligned.get(operand.memory)
        promised = min(LINE_BYTES, whole * element_bytes(operand.element))
        if aligned is None or promised < LEAST_VECTOR or not _starts_at_multiples(operand, tile, whole, promised):
            write(b, value, operand, tile)
            return
        blocks = Block(), Block()
        streaming, plain = (b.nested(block) for block in blocks)
        value = b.splat(value, tile.type(operand.element))
        write(streaming, value, operand, tile)
        write(plain, value, operand, tile)
        store = blocks[0].last_op
        assert isinstance(store, vector.StoreOp), "whole lanes side by side are one store"
        store.properties["nontemporal"] = _STREAM
        store.attributes["alignment"] = IntegerAttr(promised, i64)
        for inner in (streaming, plain):
            inner.op(scf.YieldOp)
        b.op(scf.IfOp, [aligned], [], regions=[Region(block) for block in blocks])


def _starts_at_multiples(operand: Operand, tile: Tile, whole: int, promised: int) -> bool:
    """One unmasked axis of `whole` lanes along the innermost dimension, and rows that are multiples of `promised` bytes apart."""
    if len(tile.axes) != 1 or tile.axes[0].masked or tile.axes[0].size != whole or whole & (whole - 1):
        return False
    dim, size = tile.axes[0].dim, element_bytes(operand.element)
    strides = strides_of(cast("MemRefType[Any]", operand.memory.type))
    for position, (expression, stride) in enumerate(zip(operand.map.results, strides)):
        last = position == len(strides) - 1
        form = linear(expression)
        if stride is None or form is None or form[1]:
            return False
        terms = dict(form[0])
        if terms.pop(dim, 0) != (1 if last else 0) or (last and stride != 1):
            return False
        if any(factor * stride * size % promised for factor in terms.values()):
            return False
    return True
