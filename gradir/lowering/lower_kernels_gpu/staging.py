"""Tiles of a product's operands on their way to workgroup memory: a ring of stages, filled while earlier ones are multiplied.

A tile lies along the depth (`[free][depth]`) or across it (`[depth][free]`). For `ldmatrix` its pieces of 16 bytes are exchanged within
each row (an exclusive or with the number of the row), so that eight rows of one column meet all banks; for threads that read vectors of
four rows are padded instead. Copies are asynchronous where elements of 4, 8 or 16 bytes lie side by side and need no cast; what is outside
of the operand becomes zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import gcd
from typing import Any, Protocol, cast

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Operation, SSAValue

from gradir.dialects.upstream import arith, gpu, memref, nvgpu
from gradir.lowering.lower_kernels.builder import INDEX, Index, LoopBuilder, number
from gradir.lowering.lower_kernels.tiles import Tile, read
from gradir.lowering.lower_kernels_gpu.launch import both, branch, compare, divide, loop_between, place
from gradir.lowering.lower_kernels_gpu.product import Product, Side, contiguous_along, copy_width
from gradir.lowering.schedules.gpu_contraction import PAD
from gradir.lowering.schedules.machine import element_bytes

BANKS_ROW = 8
"""Pieces of 16 bytes that meet all banks once."""
UNROLLED = 16
"""Copies of a thread that are written out; more are a loop."""


def exclusive_or(b: LoopBuilder, a: Index, c: Index) -> Index:
    """`a xor c` of indices."""
    if isinstance(a, int) and isinstance(c, int):
        return a ^ c
    if a == 0:
        return c
    return a if c == 0 else b(arith.XOrIOp, b.values([a, c]), [INDEX])


def exchanged(b: LoopBuilder, piece: Index, row: Index, pieces: int) -> Index:
    """Where piece number `piece` of a row of `pieces` (a power of two) lies: rows of fewer than 128 bytes share a number."""
    if pieces == 1:
        return piece
    shared, _ = divide(b, row, max(1, BANKS_ROW // pieces))
    _, turn = divide(b, shared, min(pieces, BANKS_ROW))
    return exclusive_or(b, piece, turn)


def append(b: LoopBuilder, op: Operation) -> SSAValue | None:
    """`op` where `b` builds; its result, if it has one."""
    op.location = b.loc
    b.block.add_op(op)
    return op.results[0] if op.results else None


@dataclass(frozen=True)
class Staged:
    """The tiles of one side: `free` by `depth` elements a stage, in `memory` of type `memref<stages x outer x inner>`."""

    product: Product
    side: Side
    memory: SSAValue
    free: int
    depth: int
    along: bool
    """Do the rows of the tile run along the depth?"""
    exchanges: bool
    width: int
    """Elements of an asynchronous copy; 0: element by element."""

    @property
    def element(self) -> Attribute:
        return cast("MemRefType[Any]", self.memory.type).element_type

    @property
    def of_piece(self) -> int:
        """Elements of 16 bytes."""
        return 16 // element_bytes(self.element)

    @property
    def inner(self) -> int:
        """Elements of a row of the tile, without padding."""
        return self.depth if self.along else self.free

    def at(self, b: LoopBuilder, free: Index, deep: Index) -> tuple[Index, Index]:
        """Row and column in memory of an element of the tile."""
        row, column = (free, deep) if self.along else (deep, free)
        if not self.exchanges:
            return row, column
        piece, rest = divide(b, column, self.of_piece)
        piece = exchanged(b, piece, row, self.inner // self.of_piece)
        return row, b.add(b.mul(piece, self.of_piece), rest)


@dataclass(frozen=True)
class _Copy:
    """One copy of a thread: where its elements start, what of their place is the same for all steps."""

    free: Index
    deep: Index
    place: Tile
    inside: SSAValue | bool
    target: tuple[Index, Index]
    guard: SSAValue | bool


def staged_type(product: Product, side: Side, element: Attribute, free: int, depth: int, stages: int, *, mma: bool) -> MemRefType:
    """The memory of one side's ring."""
    if mma and (contiguous_along(product, side) != "free" or element_bytes(element) != 2):
        return gpu.shared(element, stages, free, depth)
    return gpu.shared(element, stages, depth, free if mma else free + PAD)


def stage(product: Product, side: Side, memory: SSAValue, free: int, depth: int, *, mma: bool, asynchronous: bool) -> Staged:
    """How the tiles of a side are copied."""
    element = cast("MemRefType[Any]", memory.type).element_type
    size = element_bytes(element)
    direction = contiguous_along(product, side)
    along = mma and (direction != "free" or size != 2)
    width = 0
    if asynchronous and side.operand.element == element and direction:
        rows = (direction == "depth") == along  # what lies side by side in memory does so in the tile
        pitch = cast("MemRefType[Any]", memory.type).get_shape()[
            -1
        ]  # with its padding: rows of narrow elements start at any multiple of it
        width = copy_width(product, side, gcd(16 // size, pitch) if rows else 1)
        width = width if width * size in (4, 8, 16) else 0
    return Staged(product, side, memory, free, depth, along, mma, width)


class Copies:
    """The copies of one side by one thread of a block: `issue` starts those of a step.

    `first` is where the tile begins along the free dimensions; it may lie behind their end with `overruns`.
    """

    def __init__(
        self, staged: Staged, b: LoopBuilder, origin: Tile, first: Index, thread: Index, threads: int, *, overruns: bool = False
    ) -> None:
        self.whole = staged.side.extent % staged.free == 0 and not overruns
        self._staged, self.origin, self.first, self.thread, self.threads = staged, origin, first, thread, threads
        self.by_depth = contiguous_along(staged.product, staged.side) == "depth"
        self.unit = max(1, staged.width)
        self.per_line = (staged.depth if self.by_depth else staged.free) // self.unit
        self.total = self.per_line * (staged.free if self.by_depth else staged.depth)
        count = -(-self.total // threads)
        self.known = [self._copy(b, i) for i in range(count)] if staged.width and count <= UNROLLED else []

    @property
    def staged(self) -> Staged:
        return self._staged

    def _copy(self, b: LoopBuilder, i: int) -> _Copy:
        """Number i of this thread; neighbouring threads follow the memory's own order."""
        if self.threads % self.per_line == 0:
            line, unit = divide(b, self.thread, self.per_line)
            line = b.add(line, i * (self.threads // self.per_line))
        else:
            line, unit = divide(b, b.add(self.thread, i * self.threads), self.per_line)
        return self._at(b, line, unit, b.add(self.thread, i * self.threads))

    def _at(self, b: LoopBuilder, line: Index, unit: Index, q: Index) -> _Copy:
        staged, side = self.staged, self.staged.side
        along = b.mul(unit, self.unit)
        free, deep = (line, along) if self.by_depth else (along, line)
        at_free = b.add(self.first, free)
        inside = True if self.whole else compare(b, "slt", at_free, side.extent)
        tile = place(b, self.origin, side.dims, staged.product.extents, at_free)
        guard = True if self.total % self.threads == 0 else compare(b, "slt", q, self.total)
        return _Copy(at_free, deep, tile, inside, staged.at(b, free, deep), guard)

    def issue(self, b: LoopBuilder, stage: Index, step: Index) -> list[SSAValue]:
        """Start the copies of the tile whose depth begins at `step`; the tokens of asynchronous ones that are not in a loop."""
        staged = self.staged
        if not staged.width:
            self._elements(b, stage, step)
            return []
        if self.known and all(c.guard is True for c in self.known):
            return [self._start(b, c, stage, step) for c in self.known]

        def start(c: LoopBuilder, copy: _Copy) -> None:
            self._start(c, copy, stage, step)

        def copy(c: LoopBuilder, q: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            start(c, self._at(c, *divide(c, q, self.per_line), q))
            return []

        for known in self.known:
            branch(b, known.guard, partial(start, copy=known))
        if not self.known:
            loop_between(b, self.thread, self.total, self.threads, [], copy)
        return []

    def _start(self, b: LoopBuilder, copy: _Copy, stage: Index, step: Index) -> SSAValue:
        staged, side, product = self.staged, self.staged.side, self.staged.product
        deep = b.add(step, copy.deep)
        tile = place(b, copy.place, product.k, product.extents, deep)
        source = [b.affine(e, tile.at) for e in side.operand.map.results]
        count = self._count(b, copy, deep)
        op = nvgpu.DeviceAsyncCopyOp.make(
            side.operand.memory,
            b.values(source),
            staged.memory,
            b.values([stage, *copy.target]),
            staged.width,
            None if isinstance(count, int) else count,
            bypass=staged.width * element_bytes(staged.element) == 16,
        )
        return cast("SSAValue", append(b, op))

    def _count(self, b: LoopBuilder, copy: _Copy, deep: Index) -> Index:
        """How many of the copy's elements are inside of the operand."""
        product, width = self.staged.product, self.staged.width
        extent, at = (product.depth, deep) if self.by_depth else (self.staged.side.extent, copy.free)
        sure = compare(b, "slt", deep, product.depth)
        count: Index = width
        conditions = [copy.inside, sure]
        if extent % width:
            count = b(arith.MaxSIOp, b.values([b.minimum(b.sub(extent, at), width), 0]), [INDEX])
            conditions = [copy.inside if self.by_depth else sure]
        inside = both(b, conditions)
        return count if isinstance(inside, bool) else b(arith.SelectOp, [inside, *b.values([count, 0])], [INDEX])

    def _elements(self, b: LoopBuilder, stage: Index, step: Index) -> None:
        """Element by element: read, cast, stored; for what a copy cannot do."""
        staged, side, product = self.staged, self.staged.side, self.staged.product
        element = staged.element

        def copy(c: LoopBuilder, q: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            free, deep = divide(c, q, staged.depth) if self.by_depth else reversed(divide(c, q, staged.free))
            at_free, at_deep = c.add(self.first, free), c.add(step, deep)
            checks = [
                True if self.whole else compare(c, "slt", at_free, side.extent),
                compare(c, "slt", at_deep, product.depth),
            ]
            inside = both(c, checks)
            assert not isinstance(inside, bool)
            at_free, at_deep = (c(arith.SelectOp, [inside, *c.values([i, 0])], [INDEX]) for i in (at_free, at_deep))
            tile = place(c, place(c, self.origin, side.dims, product.extents, at_free), product.k, product.extents, at_deep)
            value = read(c, side.operand, tile)
            if value.type != element:
                for op in side.casts:
                    value = c(type(op), [value], [op.results[0].type])
            value = c(arith.SelectOp, [inside, value, c.constant(number(0, element))], [element])
            c.op(memref.StoreOp, [value, staged.memory, *c.values([stage, *staged.at(c, free, deep)])])
            return []

        loop_between(b, self.thread, staged.free * staged.depth, self.threads, [], copy)


class Issues(Protocol):
    """Copies of a step into a stage of a ring."""

    @property
    def staged(self) -> Staged: ...

    def issue(self, b: LoopBuilder, stage: Index, step: Index) -> list[SSAValue]: ...


Multiply = Callable[[LoopBuilder, Index, list[SSAValue]], list[SSAValue]]
"""The accumulators after the tile in a stage of the ring."""


def pipelined(
    b: LoopBuilder, copies: Sequence[Issues], first: Index, last: Index, stages: int, inits: Sequence[SSAValue], multiply: Multiply
) -> list[SSAValue]:
    """Multiply the tiles from number `first` up to `last`, with `stages - 1` tiles on their way; all is over when it returns."""
    depth = copies[0].staged.depth
    asynchronous = any(c.staged.width for c in copies)

    def issue(c: LoopBuilder, stage: Index, step: Index) -> SSAValue | None:
        tokens = [t for copy in copies for t in copy.issue(c, stage, c.mul(step, depth))]
        return append(c, nvgpu.DeviceAsyncCreateGroupOp.make(tokens)) if asynchronous else None

    def wait(c: LoopBuilder, token: SSAValue | None, groups: int) -> None:
        if token is not None:
            append(c, nvgpu.DeviceAsyncWaitOp.make(token, groups))
        c.op(gpu.BarrierOp)

    token: SSAValue | None = None
    for k in range(stages - 1):
        token = issue(b, k, b.add(first, k))
    wait(b, token, stages - 2)

    def step(c: LoopBuilder, t: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
        *accs, full, free = carried
        token = issue(c, free, c.add(t, stages - 1))
        results = multiply(c, full, accs)
        wait(c, token, stages - 2)
        after = c.add(full, 1)
        return [*results, c(arith.SelectOp, [compare(c, "eq", after, stages), *c.values([0, after])], [INDEX]), full]

    *accs, _, _ = b.loop(first, last, 1, [*inits, *b.values([0, stages - 1])], step)
    if token is not None and stages > 2:
        wait(b, append(b, nvgpu.DeviceAsyncCreateGroupOp.make()), 0)
    return accs
