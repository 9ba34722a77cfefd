"""What follows a product: the group's elementwise ops on a tile of sums in workgroup memory, or parts of sums added up first.

Neighbouring threads take neighbouring vectors of a row, so that results are written whole lines at a time. Parts of a sum go to a
workspace, and a launch of its own adds them in their order: every run gives the same bits.
"""

from __future__ import annotations

from math import gcd

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Attribute, SSAValue

from gradir.dialects.upstream import linalg, memref, vector
from gradir.lowering.lower_kernels.bodies import combine, is_plain
from gradir.lowering.lower_kernels.builder import Index, LoopBuilder, vector_type
from gradir.lowering.lower_kernels.tiles import Axis, Tile, stride_along, write
from gradir.lowering.lower_kernels_gpu.launch import both, branch, compare, divide, loop_between, place
from gradir.lowering.lower_kernels_gpu.product import Product, is_zero
from gradir.lowering.schedules.machine import element_bytes

THREADS = 256


def lanes_of_results(product: Product) -> int:
    """Neighbouring columns that a thread finishes together, where all results have them side by side and bodies run on vectors: 16 bytes
    of the widest result, 4 columns at least."""
    last = product.columns.dims[-1] if product.columns.dims else None
    if last is None or product.extents[last] % 4:
        return 1
    launch = product.launch
    for op in launch.space.ops:
        if op is product.core:
            continue
        generic = op.op
        if not isinstance(generic, linalg.GenericOp) or not is_plain(generic.body.block) or op.in_place:
            return 1
        if any(isinstance(o, memref.LoadOp | linalg.IndexOp) or o.regions for o in generic.body.block.ops):
            return 1
    if not all(stride_along(launch.operand(op), last) == 1 for op in product.stores):
        return 1
    widest = max(element_bytes(op.element) for op in product.stores)
    return gcd(max(4, min(8, 16 // widest)), product.extents[last])


def finish(product: Product, b: LoopBuilder, origin: Tile, row: Index, column: Index, value: SSAValue, lanes: int) -> None:
    """The epilogue at `lanes` columns from `column` on, of which `value` is the sum of products."""
    launch, core = product.launch, product.core
    tile = place(b, place(b, origin, product.rows.dims, product.extents, row), product.columns.dims, product.extents, column)
    if lanes > 1:
        tile = tile.with_axes(Axis(product.columns.dims[-1], lanes))
    joined = core.combination
    if core.init is not None and joined is not None and not is_zero(core.init):
        value = combine(b, joined.combiner, b.splat(core.init, value.type), value)
    known = {core.key: value}
    values = [launch.pull(b, op.key, tile, known, frozenset()) for op in product.stores]
    for op, result in zip(product.stores, values):
        write(b, result, launch.operand(op), tile)


def tile_results(
    product: Product,
    b: LoopBuilder,
    sums: SSAValue,
    shape: tuple[int, int],
    start: tuple[Index, Index],
    thread: Index,
    threads: int,
    origin: Tile,
    workspace: tuple[SSAValue, Index, Index] | None,
) -> None:
    """The tile of sums in workgroup memory to the results, or to `workspace` (memory, number of the part, of the batch)."""
    rows, columns = shape
    lanes = gcd(columns, lanes_of_results(product) if workspace is None else gcd(4, product.columns.extent))

    def step(c: LoopBuilder, q: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
        row, number = divide(c, q, columns // lanes)
        column = c.mul(number, lanes)
        at_row, at_column = c.add(start[0], row), c.add(start[1], column)
        checks = [
            True if product.rows.extent % rows == 0 else compare(c, "slt", at_row, product.rows.extent),
            True if product.columns.extent % columns == 0 else compare(c, "slt", at_column, product.columns.extent),
        ]

        def inside(d: LoopBuilder) -> None:
            value = load(d, sums, [row, column], product.sums, lanes)
            if workspace is None:
                finish(product, d, origin, at_row, at_column, value, lanes)
            else:
                memory, part, batch = workspace
                save(d, value, memory, [part, batch, at_row, at_column], lanes)

        branch(c, both(c, checks), inside)
        return []

    loop_between(b, thread, rows * columns // lanes, threads, [], step)


def load(b: LoopBuilder, memory: SSAValue, at: list[Index], element: Attribute, lanes: int) -> SSAValue:
    """A scalar, or a vector that starts at a multiple of its length."""
    if lanes == 1:
        return b(memref.LoadOp, [memory, *b.values(at)], [element])
    return b(vector.LoadOp, [memory, *b.values(at)], [vector_type(element, lanes)], attributes=_aligned(element, lanes))


def save(b: LoopBuilder, value: SSAValue, memory: SSAValue, at: list[Index], lanes: int) -> None:
    """The inverse of `load`."""
    if lanes == 1:
        b.op(memref.StoreOp, [value, memory, *b.values(at)])
    else:
        element = value.type.element_type  # type: ignore[attr-defined]
        b.op(vector.StoreOp, [value, memory, *b.values(at)], attributes=_aligned(element, lanes))


def _aligned(element: Attribute, lanes: int) -> dict[str, Attribute]:
    return {"alignment": IntegerAttr(min(16, lanes * element_bytes(element)), i64)}


def add_parts(product: Product, workspace: SSAValue, parts: int) -> None:
    """The launch that adds the parts of all sums, in their order, and goes on with the epilogue."""
    launch = product.launch
    lanes = lanes_of_results(product)
    per_row = product.columns.extent // lanes
    total = product.batches * product.rows.extent * per_row
    launch.threads, launch.blocks = (THREADS, 1), max(1, min(-(-total // THREADS), 1 << 16))
    joined = product.core.combination
    assert joined is not None

    def at(b: LoopBuilder, i: Index) -> None:
        rest, number = divide(b, i, per_row)
        batch, row = divide(b, rest, product.rows.extent)
        column = b.mul(number, lanes)
        value = load(b, workspace, [0, batch, row, column], product.sums, lanes)
        for part in range(1, parts):
            value = combine(b, joined.combiner, value, load(b, workspace, [part, batch, row, column], product.sums, lanes))
        origin = place(b, launch.space.origin, product.batch, product.extents, batch)
        finish(product, b, origin, row, column, value, lanes)

    launch.grid_loop(total, at)
