"""Kind `loops`, and the way out for every other kind: one op after the other, each as a plain nest of loops.

Takes any affine maps, element types, ranks and sizes. Parallel loops are outside, reduced ones inside with the accumulator in a register.
The loop of the output's last dimension runs over vectors when that pays; f32 sums that are long add in f64 (docs/numerics.md: at most 32
additions in a row on an f32 accumulator). Temporaries become scratch memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, MemRefType, f32, i1
from xdsl.ir import Attribute, SSAValue

from gradir.dialects.upstream import arith, linalg
from gradir.lowering.lower_kernels.binding import BoundOp, Kernel, Space, bind_op, compute, starts_a_reduction
from gradir.lowering.lower_kernels.bodies import combine, is_plain, narrowed, widened
from gradir.lowering.lower_kernels.builder import Index, LoopBuilder
from gradir.lowering.lower_kernels.strips import nest, strips
from gradir.lowering.lower_kernels.tiles import NotCovered, Tile, read, stride_along, write
from gradir.lowering.schedules.machine import element_bytes

LONGEST_F32_SUM = 32


def lower_loops(kernel: Kernel, lanes: int) -> None:
    """All ops of `kernel` in order; `lanes` are those of f32 in one vector."""
    inits: dict[SSAValue, SSAValue] = {}
    scratch: list[SSAValue] = []
    for old, alloc in kernel.temporaries.items():
        if old.first_use is not None and any(old is op.operands[-1] for op in kernel.ops):
            shape = cast("MemRefType[Any]", old.type).get_shape()
            dynamic = iter(alloc.dynamic_sizes)
            sizes: list[Index] = [kernel.value(next(dynamic)) if n == DYNAMIC_INDEX else int(n) for n in shape]
            new = kernel.b.scratch(cast("MemRefType[Any]", old.type).element_type, sizes)
            kernel.values[old] = new
            scratch.append(new)
    for position, op in enumerate(kernel.ops):
        target = op.operands[-1]
        if isinstance(op, linalg.FillOp) and starts_a_reduction(kernel.ops[position + 1 :], target):
            inits[target] = op.operands[0]
            continue
        lower_nest(kernel, bind_op(kernel, op, inits.pop(target, None)), lanes)
    for memory in scratch:
        kernel.b.release(memory)


def lower_nest(kernel: Kernel, space: Space, lanes: int) -> None:
    """One op alone."""
    (op,) = space.ops
    axis = _vector_dim(space, op)
    if axis is not None:
        lanes = max(1, lanes * 4 // max(4, _widest(op)))
        try:
            _nest(kernel, space, axis, lanes)
            return
        except NotCovered:
            pass
    _nest(kernel, space, None, 1)


def _widest(op: BoundOp) -> int:
    return max(element_bytes(o.element) for o in (*(i for i in op.used if i is not None), op.output))


def _vector_dim(space: Space, op: BoundOp) -> int | None:
    """The loop of the output's last dimension, when its body runs on vectors and at least half of the operands lie well."""
    if not op.output.map.results or (isinstance(op.op, linalg.GenericOp) and not is_plain(op.op.body.block)):
        return None
    dim = next(iter(op.output.map.results[-1].used_dims()), None)
    if dim is None or space.extents[dim] in (0, 1) or op.output.element in (i1, IndexType()):
        return None
    if stride_along(op.output, dim) != 1:
        return None
    strides = [stride_along(i, dim) for i in op.used if i is not None]
    well = sum(1 for s in strides if s in (0, 1))
    return dim if 2 * well >= len(strides) else None


def _nest(kernel: Kernel, space: Space, axis: int | None, lanes: int) -> None:
    (op,) = space.ops
    parallel = [d for d in range(len(space.extents)) if d not in op.reduced and d != axis]
    body = _point(kernel, space, op)

    def inside(b: LoopBuilder, tile: Tile) -> None:
        if axis is None:
            body(b, tile)
        else:
            strips(b, tile, axis, 0, space.extents[axis], lanes, body)

    nest(kernel.b, parallel, space, space.origin, inside)


def _point(kernel: Kernel, space: Space, op: BoundOp) -> Callable[[LoopBuilder, Tile], None]:
    """What is done at one tile of the parallel loops: compute, reduce, store."""
    reduced = sorted(op.reduced)
    reads_output = isinstance(op.op, linalg.GenericOp) and op.op.body.block.args[-1].first_use is not None
    wide = adds_in_f64(op, space)

    def reduce(b: LoopBuilder, dims: list[int], tile: Tile, accumulator: SSAValue) -> SSAValue:
        if dims:
            return b.loop(0, space.extents[dims[0]], 1, [accumulator], lambda c, i, a: [reduce(c, dims[1:], tile.moved(dims[0], i), a[0])])[
                0
            ]
        if op.combination is None:
            return b.splat(compute(b, kernel, op, tile, {}, accumulator), tile.type(op.output.element))
        term = b.splat(compute(b, kernel, op, tile, {}, None, op.combination.term), tile.type(op.output.element))
        return combine(b, op.combination.combiner, accumulator, widened(b, term, wide))

    def at(b: LoopBuilder, tile: Tile) -> None:
        if not reads_output:
            write(b, reduce_free(b, tile), op.output, tile)
            return
        type_: Attribute = tile.type(op.output.element)
        start = b.splat(op.init, type_) if op.init is not None else read(b, op.output, tile, whole=True)
        total = reduce(b, reduced, tile, widened(b, start, wide))
        write(b, narrowed(b, total, wide), op.output, tile)

    def reduce_free(b: LoopBuilder, tile: Tile) -> SSAValue:
        return compute(b, kernel, op, tile, {})

    return at


def adds_in_f64(op: BoundOp, space: Space) -> bool:
    """Is `op` an f32 sum of single values that may be longer than 32? A sum of products keeps the order of the schedule."""
    joined = op.combination
    if joined is None or not joined.sums_floats or op.element != f32 or is_product(op):
        return False
    count: int | None = 1
    for d in op.reduced:
        extent = space.extents[d]
        count = count * extent if count is not None and isinstance(extent, int) else None
    return count is None or count > LONGEST_F32_SUM


def is_product(op: BoundOp) -> bool:
    """Does `op` add products of two operands (a contraction)?"""
    if op.combination is None:
        return False
    term = op.combination.term.owner
    return isinstance(term, arith.MulfOp) and sum(i is not None for i in op.used) == 2
