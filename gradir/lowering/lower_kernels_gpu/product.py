"""A contraction as a product of matrices: two sides, a batch, a depth. Each is one linear index over one or more dimensions.

So batches, several free dimensions and the windows of a convolution need no code of their own: an operand's address is its affine map at
the dimensions' values. What is read from memory side by side decides how the operand is copied.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import cast

from xdsl.dialects.builtin import MemRefType, NoneAttr, StridedLayoutAttr
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from gradir.dialects.upstream import arith
from gradir.lowering.groups import Group
from gradir.lowering.lower_kernels.binding import BoundOp
from gradir.lowering.lower_kernels.builder import number, strides_of
from gradir.lowering.lower_kernels.tiles import NotCovered, Operand, linear, stride_along
from gradir.lowering.lower_kernels_gpu.launch import Launch, static_size
from gradir.lowering.schedules.gpu_contraction import oriented

_CASTS = (arith.ExtFOp, arith.ExtSIOp, arith.ExtUIOp)


@dataclass(frozen=True)
class Side:
    """One factor: its free dimensions (those of rows or of columns), how far they go, and the casts of the body."""

    operand: Operand
    dims: tuple[int, ...]
    extent: int
    casts: tuple[Operation, ...]


@dataclass(frozen=True)
class Product:
    """`sums[row, column] = init + sum over depth of rows * columns`, for each element of the batch; then the ops of `stores`."""

    launch: Launch
    core: BoundOp
    stores: tuple[BoundOp, ...]
    batch: tuple[int, ...]
    batches: int
    rows: Side
    columns: Side
    k: tuple[int, ...]
    depth: int

    @property
    def sums(self) -> Attribute:
        """The element type of the sums."""
        return self.core.element

    @property
    def extents(self) -> tuple[int, ...]:
        return tuple(cast("int", e) for e in self.launch.space.extents)


def product_of(launch: Launch, group: Group) -> Product:
    """The product of a group of kind `contraction`. Raises `NotCovered` for sizes that are not static and bodies that are no product."""
    roles = group.contraction
    assert roles is not None
    space = launch.space
    rows, columns, swapped = oriented(group)
    batch, m, n, k = (tuple(space.place[d] for d in dims) for dims in (roles.batch, rows, columns, roles.k))
    counts = [static_size(dims, space.extents) for dims in (batch, m, n, k)]
    if any(c is None or c == 0 for c in counts):
        raise NotCovered("a contraction whose sizes are not known")
    batches, row_count, column_count, depth = (cast("int", c) for c in counts)
    core = space.ops[roles.index]
    factors = [Operand(i.memory, i.map) for i in core.used if i is not None]
    casts = list(_casts(core))
    if swapped:
        factors.reverse()
        casts.reverse()
    sides = (Side(factors[0], m, row_count, casts[0]), Side(factors[1], n, column_count, casts[1]))
    stores = tuple(op for op in space.ops if op.stored)
    return Product(launch, core, stores, batch, batches, *sides, k, depth)


def is_zero(value: SSAValue) -> bool:
    """The constant 0."""
    owner = value.owner
    return isinstance(owner, arith.ConstantOp) and owner.value == number(0, value.type)


def contiguous_along(product: Product, side: Side) -> str:
    """`depth` or `free`: the direction in which the factor's elements lie side by side; empty for neither."""
    if product.k and stride_along(side.operand, product.k[-1]) == 1:
        return "depth"
    return "free" if side.dims and stride_along(side.operand, side.dims[-1]) == 1 else ""


def copy_width(product: Product, side: Side, most: int) -> int:
    """Elements, a power of two up to `most`, that always lie side by side and start at a multiple of their number: 1 if nothing is known.

    Every operand of a kernel starts at a multiple of 16 bytes.
    """
    direction = contiguous_along(product, side)
    if not direction:
        return 1
    dims = product.k if direction == "depth" else side.dims
    last = list(dims)[-1]
    width = gcd(most, product.extents[last]) if len(dims) > 1 else most
    layout = cast("MemRefType", side.operand.memory.type).layout
    if isinstance(layout, StridedLayoutAttr):
        width = gcd(width, 1 if isinstance(layout.offset, NoneAttr) else layout.offset.data)
    for d in range(len(product.extents)):
        stride = stride_along(side.operand, d)
        if stride is None:
            return 1
        width = width if d == last else gcd(width, stride)
    strides = strides_of(cast("MemRefType", side.operand.memory.type))
    for expr, stride in zip(side.operand.map.results, strides):
        form = linear(expr)
        if form is None or stride is None:
            return 1
        width = gcd(width, form[1] * stride)
    return width


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
