"""Kind `contraction` on a GPU: a tile of the output a block, staged through shared memory, a register tile a thread.

The accumulator is the CPU's `vector<4x4>` with one `vector.outerproduct`; the epilogue runs on its elements. Dimensions of each role are
one linear index, so that batches, several free dimensions and windows of a convolution need no code of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr, i64
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from gradir.dialects.types import i64_array
from gradir.dialects.upstream import arith, gpu, memref, vector
from gradir.lowering.groups import Group
from gradir.lowering.lower_kernels.binding import BoundOp
from gradir.lowering.lower_kernels.bodies import combine
from gradir.lowering.lower_kernels.builder import Index, LoopBuilder, number, vector_type
from gradir.lowering.lower_kernels.tiles import NotCovered, Operand, Tile, read, stride_along, write
from gradir.lowering.lower_kernels_gpu.launch import Launch, both, branch, compare, divide, loop_between, place, static_size
from gradir.lowering.schedules.machine import element_bytes

REGISTERS = 4
"""Rows and columns of a thread's tile."""
STEP = 16
"""Depth of a staged tile."""
_PAD = 4
_ALIGNED: dict[str, Attribute] = {"alignment": IntegerAttr(16, i64)}
_ADD = vector.CombiningKindAttr(vector.CombiningKindFlag.ADD)
_CASTS = (arith.ExtFOp, arith.ExtSIOp, arith.ExtUIOp)


@dataclass(frozen=True)
class _Sizes:
    m: int
    n: int
    k: int
    rows: int
    columns: int

    @property
    def threads(self) -> int:
        return self.rows * self.columns // (REGISTERS * REGISTERS)


@dataclass(frozen=True)
class _Side:
    """One input: its free dimensions (m or n), how far they go, the tile's size along them, and the casts of the body."""

    operand: Operand
    dims: tuple[int, ...]
    extent: int
    tile: int
    casts: tuple[Operation, ...]


def lower_contraction(launch: Launch, group: Group, stores: Sequence[BoundOp]) -> None:
    """The whole launch. Raises `NotCovered` for sizes that are not static and for bodies that are no plain product."""
    roles = group.contraction
    assert roles is not None
    space = launch.space
    extents = space.extents
    batch, m, n, k = (tuple(space.place[d] for d in dims) for dims in (roles.batch, roles.m, roles.n, roles.k))
    counts = [static_size(dims, extents) for dims in (batch, m, n, k)]
    if any(c is None or c == 0 for c in counts):
        raise NotCovered("a contraction whose sizes are not known")
    batches, rows, columns, depth = (cast("int", c) for c in counts)
    core = space.ops[roles.index]
    large = rows >= 128 and columns >= 64 and element_bytes(core.element) <= 4  # an f64 tile of 64x64 exceeds 48 KB with its stages
    sizes = _Sizes(rows, columns, depth, 64 if large else 32, 64 if large else 32)
    left, right = (Operand(i.memory, i.map) for i in core.used if i is not None)
    casts = _casts(core)
    sides = (_Side(left, m, rows, sizes.rows, casts[0]), _Side(right, n, columns, sizes.columns, casts[1]))
    element = core.element
    tiles_m, tiles_n = -(-rows // sizes.rows), -(-columns // sizes.columns)
    launch.threads, launch.blocks = (sizes.threads, 1), batches * tiles_m * tiles_n
    b = launch.b
    thread = launch.thread()
    rest, tile_n = divide(b, launch.block(), tiles_n)
    number_of_batch, tile_m = divide(b, rest, tiles_m)
    origin = place(b, space.origin, batch, extents, number_of_batch)
    first_m, first_n = b.mul(tile_m, sizes.rows), b.mul(tile_n, sizes.columns)
    own_m, own_n = (b.mul(i, REGISTERS) for i in divide(b, thread, sizes.columns // REGISTERS))
    memories = [launch.workgroup(element, STEP, side.tile + _PAD) for side in sides]
    zero = b.constant(DenseIntOrFPElementsAttr.from_list(vector_type(element, REGISTERS, REGISTERS), [0]))

    def stage(c: LoopBuilder, step: SSAValue, accs: list[SSAValue]) -> list[SSAValue]:
        for side, memory, first in zip(sides, memories, (first_m, first_n)):
            _stage(launch, c, side, memory, origin, k, depth, first, step, thread, sizes.threads, element)
        c.op(gpu.BarrierOp)

        def multiply(d: LoopBuilder, p: SSAValue, inner: list[SSAValue]) -> list[SSAValue]:
            row_type = vector_type(element, REGISTERS)
            column, row = (
                d(vector.LoadOp, [memory, *d.values([p, own])], [row_type], attributes=_ALIGNED)
                for memory, own in zip(memories, (own_m, own_n))
            )
            return [d(vector.OuterProductOp, [column, row, inner[0]], [zero.type], {"kind": _ADD})]

        (acc,) = loop_between(c, 0, STEP, 1, accs, multiply)
        c.op(gpu.BarrierOp)
        return [acc]

    (acc,) = b.loop(0, depth, STEP, [zero], stage)
    # the tile goes through shared memory once more: neighbouring threads then write neighbouring elements, and the epilogue is one loop
    tile = launch.workgroup(element, sizes.rows, sizes.columns + _PAD)
    for r in range(REGISTERS):
        row = b(vector.ExtractOp, [acc], [vector_type(element, REGISTERS)], {"static_position": i64_array((r,))})
        b.op(vector.StoreOp, [row, tile, *b.values([b.add(own_m, r), own_n])], attributes=_ALIGNED)
    b.op(gpu.BarrierOp)

    def element_of_tile(c: LoopBuilder, q: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
        place_in_tile = divide(c, q, sizes.columns)
        at = (c.add(first_m, place_in_tile[0]), c.add(first_n, place_in_tile[1]))
        checks = [_inside(c, at[0], rows, sizes.rows), _inside(c, at[1], columns, sizes.columns)]

        def finish(d: LoopBuilder) -> None:
            value = d(memref.LoadOp, [tile, *d.values(place_in_tile)], [element])
            _finish(launch, core, stores, origin, (m, n), at, value, d)

        branch(c, both(c, checks), finish)
        return []

    loop_between(b, thread, sizes.rows * sizes.columns, sizes.threads, [], element_of_tile)


def _inside(b: LoopBuilder, index: Index, extent: int, tile: int) -> SSAValue | bool:
    return True if extent % tile == 0 else compare(b, "slt", index, extent)


def _finish(
    launch: Launch,
    core: BoundOp,
    stores: Sequence[BoundOp],
    origin: Tile,
    dims: tuple[tuple[int, ...], tuple[int, ...]],
    at: tuple[Index, Index],
    value: SSAValue,
    b: LoopBuilder,
) -> None:
    """The epilogue at one element."""
    tile = origin
    for role, index in zip(dims, at):
        tile = place(b, tile, role, launch.space.extents, index)
    joined = core.combination
    if core.init is not None and joined is not None and not _is_zero(core.init):
        value = combine(b, joined.combiner, core.init, value)
    known = {core.key: value}
    values = [launch.pull(b, op.key, tile, known, frozenset()) for op in stores]
    for op, result in zip(stores, values):
        write(b, result, launch.operand(op), tile)


def _is_zero(value: SSAValue) -> bool:
    owner = value.owner
    return isinstance(owner, arith.ConstantOp) and owner.value == number(0, value.type)


def _stage(
    launch: Launch,
    b: LoopBuilder,
    side: _Side,
    memory: SSAValue,
    origin: Tile,
    k: tuple[int, ...],
    depth: int,
    first: Index,
    step: Index,
    thread: Index,
    threads: int,
    element: Attribute,
) -> None:
    """Copy a tile of one input to shared memory, depth outermost; neighbouring threads follow the input's own layout."""
    extents = launch.space.extents
    along_k = bool(k) and stride_along(side.operand, k[-1]) == 1

    def copy(c: LoopBuilder, q: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
        free, deep = divide(c, q, STEP) if along_k else reversed(divide(c, q, side.tile))
        at_free, at_deep = c.add(first, free), c.add(step, deep)
        inside = both(c, [_inside(c, at_free, side.extent, side.tile), _inside(c, at_deep, depth, STEP)])
        if inside is not True:
            assert not isinstance(inside, bool)
            at_free, at_deep = (c(arith.SelectOp, [inside, *c.values([i, 0])], [c.value(0).type]) for i in (at_free, at_deep))
        tile = place(c, place(c, origin, side.dims, extents, at_free), k, extents, at_deep)
        value = read(c, side.operand, tile)
        for op in side.casts:
            value = c(type(op), [value], [op.results[0].type])
        if inside is not True:
            value = c(arith.SelectOp, [inside, value, c.constant(number(0, element))], [element])
        c.op(memref.StoreOp, [value, memory, *c.values([deep, free])])
        return []

    loop_between(b, thread, STEP * side.tile, threads, [], copy)


def _casts(core: BoundOp) -> tuple[tuple[Operation, ...], tuple[Operation, ...]]:
    """The casts of the two factors, from the input on. Raises `NotCovered` for any other body."""
    joined = core.combination
    product = joined.term.owner if joined is not None else None
    if not isinstance(product, arith.MulfOp | arith.MuliOp) or core.init is None:
        raise NotCovered("a contraction whose term is no product")
    block = core.op.regions[0].blocks[0]
    found: dict[int, tuple[Operation, ...]] = {}
    for factor in product.operands:
        chain: list[Operation] = []
        value = factor
        while isinstance(value.owner, _CASTS):
            chain.append(value.owner)
            value = value.owner.operands[0]
        if value.owner is not block:
            raise NotCovered("a factor that is no input")
        found[cast("BlockArgument", value).index] = tuple(reversed(chain))
    if len(found) != 2 or sum(i is not None for i in core.used) != 2:
        raise NotCovered("a square, not a product of two inputs")
    first, second = sorted(found)
    return found[first], found[second]
