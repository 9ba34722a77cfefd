"""One device function being written: thread coordinates, loops over a grid, branches, workgroup memory, lane exchange.

Uses the CPU generators' `Kernel` (a level-3 function with its operands bound) and their scalar evaluation of linalg bodies; only the map
from dimensions to blocks and threads differs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod

from xdsl.dialects.builtin import DYNAMIC_INDEX, DictionaryAttr, IndexType, IntegerAttr, StringAttr, i1, i8, i16, i32, i64
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from gradir.dialects.target.cuda_facts import STATIC_SHARED, WARP
from gradir.dialects.upstream import arith, func, gpu, scf
from gradir.dialects.upstream.nvgpu_types import TensorMapType
from gradir.lowering.groups import Group
from gradir.lowering.lower_kernels.binding import BoundOp, Kernel, Space, bind, bind_op, compute
from gradir.lowering.lower_kernels.bodies import combine, widened
from gradir.lowering.lower_kernels.builder import INDEX, Index, LoopBuilder
from gradir.lowering.lower_kernels.tiles import Operand, Tile, read
from gradir.lowering.lower_kernels_gpu.alignment import align_accesses

MOST_BLOCKS = (1 << 31) - 1
"""Of a launch, on every GPU."""
BLOCKS_OF_UNKNOWN_SIZE = 1024
"""Of a launch over a space whose size only the run knows: its threads loop."""
_DIMENSIONS = {"x": gpu.DimensionEnum.X, "y": gpu.DimensionEnum.Y}


@dataclass
class Launch:
    """A device function: `kernel.b` builds its body, `temporaries` are operands that the level-3 kernel does not have.

    `space` holds the ops of the whole level-3 kernel in shared dimensions, or one op in its own.
    """

    kernel: Kernel
    space: Space
    threads: tuple[int, int]
    blocks: int = 1
    temporaries: list[SSAValue] = field(default_factory=list[SSAValue])
    """Level-3 temporaries that live in device memory during this launch, in the order of the extra operands."""
    maps: list[tuple[int, TensorMapType]] = field(default_factory=list[tuple[int, TensorMapType]])
    """Tensor maps that the host makes: of which operand, of which type; the last operands."""
    _shared: int = 0
    dynamic_bytes: int = 0
    """Workgroup memory that the launch has to ask for: more than a function may declare."""

    @classmethod
    def of_group(cls, source: func.FuncOp, group: Group, kept: Sequence[SSAValue], threads: tuple[int, int]) -> Launch:
        """A launch over the dimensions of a group; the temporaries `kept` are in memory."""
        kernel = Kernel(source)
        cls._operands(kernel, kept)
        return cls(kernel, bind(kernel, group), threads, temporaries=list(kept))

    @classmethod
    def of_op(cls, source: func.FuncOp, op: Operation, init: SSAValue | None, kept: Sequence[SSAValue], threads: tuple[int, int]) -> Launch:
        """A launch of one op on its own loops."""
        kernel = Kernel(source)
        cls._operands(kernel, kept)
        return cls(kernel, bind_op(kernel, op, init), threads, temporaries=list(kept))

    @staticmethod
    def _operands(kernel: Kernel, kept: Sequence[SSAValue]) -> None:
        block = kernel.b.block
        for value in kept:
            kernel.values[value] = block.insert_arg(value.type, len(block.args))

    @property
    def b(self) -> LoopBuilder:
        return self.kernel.b

    # Coordinates

    def thread(self, dimension: str = "x") -> Index:
        if self.threads["xy".index(dimension)] == 1:
            return 0
        return self._id(gpu.ThreadIdOp, dimension)

    def block(self) -> Index:
        return 0 if self.blocks == 1 else self._id(gpu.BlockIdOp, "x")

    def _id(self, kind: type[Operation], dimension: str) -> SSAValue:
        return self.b(kind, [], [INDEX], {"dimension": gpu.DimensionAttr(_DIMENSIONS[dimension])})

    # Pieces of code

    def grid_loop(self, total: Index, body: Callable[[LoopBuilder, Index], None]) -> None:
        """`body` at every i < total, one thread each; the grid walks on where there are more."""
        per_block = self.threads[0]
        if not self.blocks:
            return
        first = self.b.add(self.b.mul(self.block(), per_block), self.thread())
        if isinstance(total, int) and total <= self.blocks * per_block:  # the grid covers all points
            inside = True if total == self.blocks * per_block else compare(self.b, "slt", first, total)
            branch(self.b, inside, lambda b: body(b, first))
            return

        def step(b: LoopBuilder, i: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            body(b, i)
            return []

        loop_between(self.b, first, total, self.blocks * per_block, [], step)

    def tensor_map(self, operand: BlockArgument, t: TensorMapType) -> SSAValue:
        """The tensor map of a whole operand, made by the host."""
        block = self.b.block
        assert operand.block is block and not self._shared
        self.maps.append((operand.index, t))
        return block.insert_arg(t, len(block.args))

    def workgroup(self, element: Attribute, *shape: int) -> SSAValue:
        """Memory that the threads of a block share."""
        block = self.b.block
        self._shared += 1
        return block.insert_arg(gpu.shared(element, *shape), len(block.args))

    def workgroup_bytes(self, size: int) -> SSAValue:
        """`size` bytes that the threads of a block share, once per launch; what is laid over them is a `memref.view`."""
        if size <= STATIC_SHARED:
            return self.workgroup(i8, size)
        assert not self.dynamic_bytes
        self.dynamic_bytes = size
        return self.b(gpu.DynamicSharedMemoryOp, [], [gpu.shared(i8, DYNAMIC_INDEX)])

    def finish(self, name: str) -> gpu.FuncOp:
        """The device function."""
        self.b.op(gpu.ReturnOp)
        block = self.b.block
        operands = len(block.args) - self._shared
        given = self.kernel.source.arg_attrs
        own = list(given.data) if given is not None else [DictionaryAttr({}) for _ in self.kernel.source.body.block.args]
        own += [DictionaryAttr({"gradir.access": StringAttr("readwrite")}) for _ in self.temporaries]
        own += [DictionaryAttr({"gradir.access": StringAttr("read")}) for _ in self.maps]
        function = gpu.kernel_function(name, Region(block), operands, (*self.threads, 1), own)
        align_accesses(function)
        return function

    # Values of the group's ops

    def operand(self, op: BoundOp) -> Operand:
        """Where the value of `op` lies in memory."""
        return op.output

    def pull(self, b: LoopBuilder, key: SSAValue, tile: Tile, known: dict[SSAValue, SSAValue], memory: frozenset[SSAValue]) -> SSAValue:
        """The value of the op that produces `key` at `tile`: known, read from `memory`, or computed from what it reads."""
        if key in known:
            return known[key]
        op = self.space.produced[key]
        if key in memory:
            known[key] = read(b, self.operand(op), tile)
        else:
            self.inputs(b, op, tile, known, memory)
            known[key] = compute(b, self.kernel, op, tile, known)
        return known[key]

    def inputs(self, b: LoopBuilder, op: BoundOp, tile: Tile, known: dict[SSAValue, SSAValue], memory: frozenset[SSAValue]) -> None:
        """Make all values of the group that `op` reads known at `tile`."""
        produced = self.space.produced
        for operand in op.used:
            if operand is not None and operand.memory in produced and operand.memory is not op.key:
                self.pull(b, operand.memory, tile, known, memory)

    def term(
        self,
        b: LoopBuilder,
        op: BoundOp,
        tile: Tile,
        known: dict[SSAValue, SSAValue],
        memory: frozenset[SSAValue],
        acc: SSAValue,
        wide: bool,
    ) -> SSAValue:
        """The accumulator of a reduction after one more point."""
        joined = op.combination
        assert joined is not None
        self.inputs(b, op, tile, known, memory)
        value = compute(b, self.kernel, op, tile, known, None, joined.term)
        return combine(b, joined.combiner, acc, widened(b, value, wide))


def loop_between(
    b: LoopBuilder,
    low: Index,
    high: Index,
    step: int,
    inits: Sequence[SSAValue],
    body: Callable[[LoopBuilder, SSAValue, list[SSAValue]], Sequence[SSAValue]],
) -> list[SSAValue]:
    """`scf.for` from a thread's own start; always a loop, as the start is known to the thread only."""
    if isinstance(low, int):
        return b.loop(low, high, step, inits, body)
    block = Block(arg_types=[INDEX, *(v.type for v in inits)])
    inner = b.nested(block)
    inner.op(scf.YieldOp, list(body(inner, block.args[0], list(block.args[1:]))))
    operands = [*b.values([low, high, step]), *inits]
    return list(b.op(scf.ForOp, operands, [v.type for v in inits], regions=[Region(block)]).results)


def branch(b: LoopBuilder, condition: SSAValue | bool, body: Callable[[LoopBuilder], None]) -> None:
    """`scf.if` without results; nothing where the condition is known."""
    if isinstance(condition, bool):
        if condition:
            body(b)
        return
    block = Block()
    inner = b.nested(block)
    body(inner)
    inner.op(scf.YieldOp)
    b.op(scf.IfOp, [condition], [], regions=[Region(block), Region()])


def compare(b: LoopBuilder, predicate: str, a: Index, c: Index) -> SSAValue:
    """`a predicate c` on indices."""
    return b(arith.CmpiOp, b.values([a, c]), [i1], {"predicate": arith.integer_predicate(predicate)})


def both(b: LoopBuilder, conditions: Sequence[SSAValue | bool]) -> SSAValue | bool:
    """All of the conditions."""
    dynamic = [c for c in conditions if not isinstance(c, bool)]
    if any(c is False for c in conditions):
        return False
    if not dynamic:
        return True
    found = dynamic[0]
    for other in dynamic[1:]:
        found = b(arith.AndIOp, [found, other], [i1])
    return found


def divide(b: LoopBuilder, a: Index, by: Index, *, small: bool = False) -> tuple[Index, Index]:
    """Quotient and remainder of indices that are not negative; `small` ones, below 2^31, in 32 bits: a 64-bit division is a long one."""
    if by == 1:
        return a, 0
    if isinstance(a, int) and isinstance(by, int):
        return divmod(a, by)
    operands = b.values([a, by])
    if not small:
        return b(arith.DivUIOp, operands, [INDEX]), b(arith.RemUIOp, operands, [INDEX])
    narrow = b(arith.IndexCastOp, [operands[0]], [i32])
    divisor = b.constant(IntegerAttr(by, i32)) if isinstance(by, int) else b(arith.IndexCastOp, [operands[1]], [i32])
    quotient = b(arith.DivUIOp, [narrow, divisor], [i32])
    rest = b(arith.RemUIOp, [narrow, divisor], [i32])
    return b(arith.IndexCastUIOp, [quotient], [INDEX]), b(arith.IndexCastUIOp, [rest], [INDEX])


def place(b: LoopBuilder, tile: Tile, dims: Sequence[int], extents: Sequence[Index], linear: Index, lanes: int = 1) -> Tile:
    """`tile` at the point number `linear` of the row-major space of `dims`; with `lanes`, at the vector of that number."""
    count = static_size(dims, extents)
    small = count is not None and count < 1 << 31
    for dim in reversed(dims[1:]):
        extent = extents[dim]
        if lanes > 1:
            assert isinstance(extent, int)
            extent //= lanes
        linear, at = divide(b, linear, extent, small=small)
        tile = tile.moved(dim, b.mul(at, lanes))
        lanes = 1
    return tile.moved(dims[0], b.mul(linear, lanes)) if dims else tile


def size_of(b: LoopBuilder, dims: Sequence[int], extents: Sequence[Index]) -> Index:
    """Points of the space of `dims`."""
    total: Index = 1
    for d in dims:
        total = b.mul(total, extents[d])
    return total


def static_size(dims: Sequence[int], extents: Sequence[Index]) -> int | None:
    """Points of the space of `dims` when all extents are known."""
    known = [e for d in dims if isinstance(e := extents[d], int)]
    return prod(known) if len(known) == len(dims) else None


def across_warp(b: LoopBuilder, combiner: Operation, value: SSAValue, width: int) -> SSAValue:
    """`value` of `width` neighbouring lanes combined, in every lane: a butterfly of shuffles."""
    offset = width // 2
    while offset:
        value = combine(b, combiner, value, _shuffled(b, value, offset))
        offset //= 2
    return value


def _shuffled(b: LoopBuilder, value: SSAValue, offset: int) -> SSAValue:
    """The value of the lane whose number differs in `offset`; narrow types travel as i32."""
    t = value.type
    carried = value
    if isinstance(t, IndexType):
        carried = b(arith.IndexCastOp, [value], [i64])
    elif getattr(t, "bitwidth", 32) < 32:
        if not hasattr(t, "width"):  # f16, bf16
            carried = b(arith.BitcastOp, [value], [i16])
        carried = b(arith.ExtUIOp, [carried], [i32])
    numbers = [b.constant(IntegerAttr(n, i32)) for n in (offset, WARP)]
    moved, _ = b(gpu.ShuffleOp, [carried, *numbers], [carried.type, i1], {"mode": StringAttr("xor")})
    if isinstance(t, IndexType):
        return b(arith.IndexCastOp, [moved], [t])
    if getattr(t, "bitwidth", 32) < 32:
        if not hasattr(t, "width"):
            return b(arith.BitcastOp, [b(arith.TruncIOp, [moved], [i16])], [t])
        return b(arith.TruncIOp, [moved], [t])
    return moved
