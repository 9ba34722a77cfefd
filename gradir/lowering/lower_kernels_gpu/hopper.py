"""Products on sm_90a: a producer warpgroup fills a ring by tensor copies, two warpgroups multiply what has come (`wgmma`).

For plain matrices of f16 or bf16 whose rows are multiples of 16 bytes, sums in f32: what a tensor map can describe. A stage has two
mbarriers: `full` counts the bytes that have come, `empty` the warps that have read them. Sizes need not be those of tiles: copies bring
zeros from outside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    BFloat16Type,
    Float16Type,
    Float32Type,
    IntAttr,
    IntegerAttr,
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
    StringAttr,
    VectorType,
    i1,
    i32,
)
from xdsl.ir import Attribute, Block, BlockArgument, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr

from gradir.dialects.target import CudaTargetAttr
from gradir.dialects.target.cuda_facts import WARP, architecture
from gradir.dialects.types import i64_array
from gradir.dialects.upstream import arith, gpu, memref, nvgpu_hopper as hopper, nvgpu_warpgroup as warpgroup, nvvm, scf
from gradir.dialects.upstream.nvgpu_types import (
    MBARRIER_TOKEN,
    MbarrierGroupType,
    TensorMapType,
    WarpgroupAccumulatorType,
    WarpgroupDescriptorType,
)
from gradir.lowering.lower_kernels.builder import INDEX, Index, LoopBuilder, i32_array
from gradir.lowering.lower_kernels.tiles import NotCovered
from gradir.lowering.lower_kernels_gpu.epilogue import tile_results
from gradir.lowering.lower_kernels_gpu.launch import Launch, branch, compare, divide
from gradir.lowering.lower_kernels_gpu.product import Product, Side
from gradir.lowering.lower_kernels_gpu.staging import append
from gradir.lowering.lower_kernels_gpu.tile_order import place_of_block
from gradir.lowering.schedules.gpu_contraction import RESULT_PAD

ROWS, COLUMNS, DEPTH, STAGES = 128, 128, 64, 4
CONSUMERS = 2
THREADS = warpgroup.WARPGROUP * (CONSUMERS + 1)
HEIGHT = ROWS // CONSUMERS
_GIVE, _TAKE = 40, 232
"""Registers of a thread that copies, of one that multiplies: 65536 for all, of which each has 168 at first."""
_STAGE = ROWS * DEPTH * 2
_TICKS = 10_000_000


def along_depth(product: Product, side: Side) -> bool | None:
    """Does a plain matrix lie along the depth? None where the factor is no plain matrix of f16 or bf16."""
    operand = side.operand
    t = operand.memory.type
    if (
        not isinstance(t, MemRefType)
        or not isinstance(operand.memory, BlockArgument)
        or not all(isinstance(c, arith.ExtFOp) for c in side.casts)
    ):
        return None
    if len(side.dims) != 1 or len(product.k) != 1 or t.layout != NoneAttr() or len(t.get_shape()) != 2:
        return None
    if not isinstance(t.element_type, Float16Type | BFloat16Type) or DYNAMIC_INDEX in t.get_shape() or t.get_shape()[1] % 8:
        return None
    dims = tuple(e.position if isinstance(e, AffineDimExpr) else -1 for e in operand.map.results)
    extents = product.extents
    if t.get_shape() != tuple(extents[d] if d >= 0 else -1 for d in dims):
        return None
    free, deep = side.dims[0], product.k[0]
    return True if dims == (free, deep) else False if dims == (deep, free) else None


def covers(product: Product, target: CudaTargetAttr) -> bool:
    """Can warpgroups multiply these factors?"""
    sides = (product.rows, product.columns)
    elements = {side.operand.element for side in sides}
    fits = not product.batch and len(elements) == 1 and isinstance(product.sums, Float32Type)
    return architecture(target.arch).wgmma and fits and all(along_depth(product, side) is not None for side in sides)


@dataclass(frozen=True)
class _Factor:
    """One side: its tensor map, the ring as copies fill it (boxes) and as products read it."""

    tensor_map: SSAValue
    along: bool
    boxes: SSAValue
    read: SSAValue
    element: Attribute


def lower_warpgroups(launch: Launch, product: Product, target: CudaTargetAttr) -> None:
    """The launch that multiplies and finishes a tile of 128 x 128 results a block. Raises `NotCovered` for other factors and GPUs."""
    if not covers(product, target):
        raise NotCovered("factors that warpgroups cannot multiply")
    down, across = -(-product.rows.extent // ROWS), -(-product.columns.extent // COLUMNS)
    launch.threads, launch.blocks = (THREADS, 1), down * across
    b = launch.b
    memory = launch.workgroup_bytes(2 * STAGES * _STAGE + ROWS * (COLUMNS + RESULT_PAD) * 4)
    left = _factor(launch, product, product.rows, memory, 0)
    right = _factor(launch, product, product.columns, memory, STAGES * _STAGE)
    sums = b(memref.ViewOp, [memory, b.value(2 * STAGES * _STAGE)], [gpu.shared(product.sums, ROWS, COLUMNS + RESULT_PAD)])
    thread = launch.thread()
    where = place_of_block(b, launch.block(), 1, down, across)
    start = (b.mul(where.row, ROWS), b.mul(where.column, COLUMNS))
    full, empty = (_mbarriers(b) for _ in range(2))
    first = compare(b, "eq", thread, 0)

    def initialise(c: LoopBuilder) -> None:
        for stage in range(STAGES):
            append(c, hopper.MbarrierInitOp.create(operands=[full, *c.values([1, stage])]))
            append(c, hopper.MbarrierInitOp.create(operands=[empty, *c.values([4 * CONSUMERS, stage])]))
        append(c, nvvm.FenceMbarrierInitOp.create())

    branch(b, first, initialise)
    b.op(gpu.BarrierOp)
    steps = -(-product.depth // DEPTH)
    group, _ = divide(b, thread, warpgroup.WARPGROUP)
    blocks = [Block(), Block()]
    produce, consume = (b.nested(block) for block in blocks)
    _registers(produce, "decrease", _GIVE)
    branch(produce, first, lambda c: _produce(c, steps, (left, right), start, full, empty))
    _registers(consume, "increase", _TAKE)
    _consume(consume, steps, (left, right), thread, group, full, empty, sums)
    number, count = (consume.constant(IntegerAttr(n, i32)) for n in (1, CONSUMERS * warpgroup.WARPGROUP))
    append(consume, nvvm.BarrierOp.create(operands=[number, count], properties={"operandSegmentSizes": i32_array(1, 1, 0)}))
    own = consume.sub(thread, warpgroup.WARPGROUP)
    workers = CONSUMERS * warpgroup.WARPGROUP
    tile_results(product, consume, sums, (ROWS, COLUMNS), start, own, workers, launch.space.origin, None)
    for inner in (produce, consume):
        inner.op(scf.YieldOp)
    b.op(scf.IfOp, [compare(b, "eq", group, 0)], [], regions=[Region(block) for block in blocks])


def _factor(launch: Launch, product: Product, side: Side, memory: SSAValue, at: int) -> _Factor:
    b = launch.b
    element = side.operand.element
    along = bool(along_depth(product, side))
    box = gpu.shared(element, ROWS if along else DEPTH, DEPTH)
    argument = cast(BlockArgument, side.operand.memory)
    tensor_map = launch.tensor_map(argument, TensorMapType.of(box, "swizzle_128b"))
    boxes = gpu.shared(element, STAGES, *((ROWS,) if along else (2, DEPTH)), DEPTH)
    view = b(memref.ViewOp, [memory, b.value(at)], [boxes])
    read = view if along else b(memref.ViewOp, [memory, b.value(at)], [gpu.shared(element, STAGES, DEPTH, ROWS)])
    return _Factor(tensor_map, along, view, read, element)


def _mbarriers(b: LoopBuilder) -> SSAValue:
    found = append(b, hopper.MbarrierCreateOp.create(result_types=[MbarrierGroupType(gpu.WORKGROUP, IntAttr(STAGES))]))
    assert found is not None
    return found


def _registers(b: LoopBuilder, action: str, count: int) -> None:
    append(b, nvvm.SetMaxRegisterOp.create(properties={"action": StringAttr(action), "regCount": IntegerAttr(count, i32)}))


def _part(b: LoopBuilder, memory: SSAValue, offsets: list[Index], shape: tuple[int, int]) -> SSAValue:
    """A matrix of this shape inside `memory`, in its last two dimensions."""
    t = cast("MemRefType[Any]", memory.type)
    rank = len(t.get_shape())
    dynamic = [o for o in offsets if not isinstance(o, int)]
    pitch = t.get_shape()[-1]
    kind = MemRefType(t.element_type, list(shape), StridedLayoutAttr([pitch, 1], None), gpu.WORKGROUP)
    properties: dict[str, Attribute] = {
        "static_offsets": i64_array(tuple(o if isinstance(o, int) else DYNAMIC_INDEX for o in offsets)),
        "static_sizes": i64_array((*(1 for _ in range(rank - 2)), *shape)),
        "static_strides": i64_array((1,) * rank),
        "operandSegmentSizes": i32_array(1, len(dynamic), 0, 0),
    }
    return b(memref.SubviewOp, [memory, *dynamic], [kind], properties)


def _turn(b: LoopBuilder, stage: SSAValue, parity: SSAValue) -> list[SSAValue]:
    """The next stage, and the parity of its phase."""
    after = b.add(stage, 1)
    last = compare(b, "eq", after, STAGES)
    return [b(arith.SelectOp, [last, *b.values([0, after])], [INDEX]), b(arith.XOrIOp, [parity, last], [i1])]


def _wait(b: LoopBuilder, group: SSAValue, stage: SSAValue, parity: SSAValue) -> None:
    append(b, hopper.MbarrierTryWaitParityOp.create(operands=[group, parity, b.value(_TICKS), stage]))


def _produce(
    b: LoopBuilder, steps: int, factors: tuple[_Factor, _Factor], start: tuple[Index, Index], full: SSAValue, empty: SSAValue
) -> None:
    """One thread: copies into every stage that is free."""

    def step(c: LoopBuilder, number: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
        stage, parity = carried
        _wait(c, empty, stage, parity)
        append(c, hopper.MbarrierArriveExpectTxOp.create(operands=[full, c.value(2 * _STAGE), stage]))
        deep = c.mul(number, DEPTH)
        for factor, free in zip(factors, start):
            if factor.along:
                _load(c, factor, _part(c, factor.boxes, [stage, 0, 0], (ROWS, DEPTH)), (deep, free), full, stage)
                continue
            for box in range(2):
                target = _part(c, factor.boxes, [stage, box, 0, 0], (DEPTH, DEPTH))
                _load(c, factor, target, (c.add(free, box * DEPTH), deep), full, stage)
        return _turn(c, stage, parity)

    b.loop(0, steps, 1, [b.value(0), b.constant(IntegerAttr(1, i1))], step)


def _load(b: LoopBuilder, factor: _Factor, target: SSAValue, at: tuple[Index, Index], full: SSAValue, stage: SSAValue) -> None:
    operands = [target, full, factor.tensor_map, *b.values(at), stage]
    append(b, hopper.TmaAsyncLoadOp.create(operands=operands, properties={"operandSegmentSizes": i32_array(1, 1, 1, 2, 1, 0, 0)}))


def _consume(
    b: LoopBuilder,
    steps: int,
    factors: tuple[_Factor, _Factor],
    thread: Index,
    group: Index,
    full: SSAValue,
    empty: SSAValue,
    sums: SSAValue,
) -> None:
    """A warpgroup: its rows of every stage that has come, then of the tile of sums."""
    left, right = factors
    consumer = b.sub(group, 1)
    own = b.mul(consumer, HEIGHT)
    _, lane = divide(b, thread, WARP)
    elected = compare(b, "eq", lane, 0)
    kind = WarpgroupAccumulatorType(VectorType(Float32Type(), [HEIGHT, COLUMNS]))
    zero = append(b, warpgroup.WarpgroupMmaInitAccumulatorOp.create(result_types=[kind]))
    assert zero is not None

    def step(c: LoopBuilder, _: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
        acc, stage, parity = carried
        _wait(c, full, stage, parity)
        if left.along:
            rows = _part(c, left.boxes, [stage, own, 0], (HEIGHT, DEPTH))
        else:
            rows = _part(c, left.boxes, [stage, consumer, 0, 0], (DEPTH, HEIGHT))
        columns = _part(c, right.read, [stage, 0, 0], (COLUMNS, DEPTH) if right.along else (DEPTH, COLUMNS))
        first = _describe(c, rows, left, (HEIGHT, DEPTH))
        second = _describe(c, columns, right, (DEPTH, COLUMNS))
        found = append(c, warpgroup.WarpgroupMmaOp.make(first, second, acc, turned=(not left.along, not right.along)))
        assert found is not None
        branch(c, elected, lambda d: _arrive(d, empty, stage))
        return [found, *_turn(c, stage, parity)]

    found, *_ = b.loop(0, steps, 1, [zero, b.value(0), b.constant(IntegerAttr(0, i1))], step)
    append(b, warpgroup.WarpgroupMmaStoreOp.create(operands=[found, _part(b, sums, [own, 0], (HEIGHT, COLUMNS))]))


def _describe(b: LoopBuilder, memory: SSAValue, factor: _Factor, shape: tuple[int, int]) -> SSAValue:
    """The descriptor of a factor of this shape."""
    t = WarpgroupDescriptorType(gpu.shared(factor.element, *shape))
    found = append(b, warpgroup.WarpgroupGenerateDescriptorOp.create(operands=[memory, factor.tensor_map], result_types=[t]))
    assert found is not None
    return found


def _arrive(b: LoopBuilder, group: SSAValue, stage: SSAValue) -> None:
    append(b, hopper.MbarrierArriveOp.create(operands=[group, stage], result_types=[MBARRIER_TOKEN]))
