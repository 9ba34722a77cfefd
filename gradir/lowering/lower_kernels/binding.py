"""A level-3 kernel on its way to level 4: the group's ops with their operands bound to the new function and to shared dimensions.

`Kernel` owns the new function and the map of values. `BoundOp` is one linalg op whose operands are read through maps from the group's
dimensions. What an op of the group writes is known to its readers by the old buffer, the key: generators hold the value in registers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, DictionaryAttr, MemRefType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from gradir.dialects.kernel import KERNEL_ATTRIBUTE, LoopsAttr, Schedule
from gradir.dialects.upstream import func, linalg, memref
from gradir.ir.builder import new_function
from gradir.lowering.groups import Group, GroupOp
from gradir.lowering.lower_kernels.bodies import Combination, combination, evaluate
from gradir.lowering.lower_kernels.builder import Frame, Index, LoopBuilder
from gradir.lowering.lower_kernels.tiles import NotCovered, Operand, Tile, read

_SKIPPED = (linalg.GenericOp, linalg.FillOp, memref.AllocOp, memref.DeallocOp, func.ReturnOp)


class Kernel:
    """One kernel being lowered: `source` is the level-3 function, `b` builds the body of the new one.

    With `site`, ops of the function are replaced where they stand: `b` builds into the block `site`, values are what they are.
    """

    def __init__(self, source: func.FuncOp, site: Block | None = None) -> None:
        self.source = source
        old = source.body.block
        if site is not None:
            self.b = LoopBuilder(site, source.location, Frame(old), old)
            self.values: dict[SSAValue, SSAValue] = {}
            self.ops: list[linalg.GenericOp | linalg.FillOp] = []
            self.temporaries: dict[SSAValue, memref.AllocOp] = {}
            return
        block = Block(arg_types=[a.type for a in old.args])
        self.b = LoopBuilder(block, source.location, Frame(block))
        self.values = dict(zip(old.args, block.args))
        for before, after in zip(old.args, block.args):
            after.name_hint, after.location = before.name_hint, before.location
        self.ops = [op for op in old.ops if isinstance(op, linalg.GenericOp | linalg.FillOp)]
        self.temporaries = {op.memref: op for op in old.ops if isinstance(op, memref.AllocOp)}
        for op in old.ops:
            if not isinstance(op, _SKIPPED):
                self._copy(op)

    def _copy(self, op: Operation) -> None:
        if op.regions:
            raise NotCovered(f"{op.name} in a kernel that is no template")
        constant = op.attributes.get("value") or op.properties.get("value")
        if op.name == "arith.constant" and constant is not None:
            self.values[op.results[0]] = self.b.constant(constant)
            return
        new = op.clone(self.values)
        self.b.block.add_op(new)
        self.values.update(zip(op.results, new.results))

    @property
    def schedule(self) -> Schedule:
        found = self.source.attributes.get(KERNEL_ATTRIBUTE)
        return found if isinstance(found, Schedule) else LoopsAttr.of()

    def value(self, old: SSAValue) -> SSAValue:
        """The new function's value for an old one; a temporary is itself."""
        return self.values.get(old, old)

    def in_place(self, old: SSAValue) -> bool:
        """May this argument share memory with another operand of some call?"""
        attributes = self.source.arg_attrs
        if old not in self.source.body.block.args or not isinstance(attributes, ArrayAttr):
            return False
        own = attributes.data[cast("Any", old).index]
        alias = own.data.get("gradir.alias") if isinstance(own, DictionaryAttr) else None
        return isinstance(alias, ArrayAttr) and len(alias.data) > 0

    def finish(self) -> func.FuncOp:
        """The new function."""
        self.b.op(func.ReturnOp)
        attributes = self.source.attributes
        name = self.source.sym_name.data
        new = new_function(name, self.b.block, [], private=True, attributes=attributes, loc=self.source.location)
        for key, value in self.source.properties.items():
            new.properties.setdefault(key, value)
        return new


@dataclass(frozen=True, eq=False)
class BoundOp:
    """One linalg op of a kernel in the dimensions of a space.

    `inputs` belong to the arguments of the body; the memory of an input that the group produces is the producer's `key`. `dims[l]` is
    the dimension of loop l.
    """

    op: Operation
    dims: tuple[int, ...]
    reduced: frozenset[int]
    inputs: tuple[Operand, ...]
    output: Operand
    key: SSAValue
    init: SSAValue | None
    stored: bool
    combination: Combination | None
    in_place: bool = False

    @property
    def element(self) -> Attribute:
        return cast("MemRefType[Any]", self.key.type).element_type

    @property
    def used(self) -> tuple[Operand | None, ...]:
        """The inputs that the body reads (None: an operand that only gives a shape)."""
        if not isinstance(self.op, linalg.GenericOp):
            return self.inputs
        return tuple(i if a.first_use is not None else None for i, a in zip(self.inputs, self.op.body.block.args))


@dataclass(frozen=True)
class Space:
    """The dimensions that the ops of a kernel share, their extents, and the ops."""

    extents: tuple[Index, ...]
    ops: tuple[BoundOp, ...]
    place: Mapping[int, int] = field(default_factory=dict[int, int])
    """The dimension here of a dimension of the group."""

    @property
    def produced(self) -> dict[SSAValue, BoundOp]:
        """The op that produces a temporary or writes an argument."""
        return {o.key: o for o in self.ops}

    @property
    def origin(self) -> Tile:
        """The point at the origin."""
        return Tile((0,) * len(self.extents))


def bind(kernel: Kernel, group: Group) -> Space:
    """The ops of a group on the group's dimensions, renumbered: first those of `group.space` in its order, then the others.

    Dimensions of extent 1 stay at 0.
    """
    rank = len(group.extents)
    order = (*group.space, *(d for d in range(rank) if d not in group.space))
    place = {d: new for new, d in enumerate(order)}
    extents = _extents(kernel, group)
    keys = frozenset(o.op.outputs[0] for o in group.ops)
    ops = tuple(_bind_op(kernel, o, place, extents, keys) for o in group.ops)
    return Space(tuple(extents[d] for d in order), ops, place)


def starts_a_reduction(later: Sequence[Operation], target: SSAValue) -> bool:
    """Is a fill of `target` nothing but the initial value of the next op that touches it?"""
    for op in later:
        if target in op.operands:
            return isinstance(op, linalg.GenericOp) and op.operands[-1] is target and target not in list(op.operands)[:-1]
    return False


def bind_op(kernel: Kernel, op: Operation, init: SSAValue | None) -> Space:
    """One op (a generic or a fill) alone on its own loops."""
    maps = maps_of(op)
    rank = maps[-1].num_dims
    reduced = reduced_of(op)
    extents = [_extent(kernel, op, maps, loop) for loop in range(rank)]
    inputs = tuple(Operand(kernel.value(v), m) for v, m in zip(op.operands, maps[:-1]))
    target = op.operands[-1]
    output = Operand(kernel.value(target), maps[-1])
    scalar = kernel.value(init) if init is not None else None
    bound = BoundOp(op, tuple(range(rank)), reduced, inputs, output, target, scalar, True, combination(op), kernel.in_place(target))
    return Space(tuple(extents), (bound,))


def maps_of(op: Operation) -> list[AffineMap]:
    """Indexing maps of a generic, or of a fill seen as one."""
    if isinstance(op, linalg.GenericOp):
        return [m.data for m in op.indexing_maps.data]
    rank = len(cast("MemRefType[Any]", op.operands[-1].type).get_shape())
    return [AffineMap(rank, 0, ()), AffineMap.identity(rank)]


def reduced_of(op: Operation) -> frozenset[int]:
    """The loops that a generic reduces."""
    if not isinstance(op, linalg.GenericOp):
        return frozenset()
    return frozenset(l for l, t in enumerate(op.iterator_types.data) if t.data is linalg.IteratorType.REDUCTION)


def _extent(kernel: Kernel, op: Operation, maps: Sequence[AffineMap], loop: int) -> Index:
    dynamic: Index | None = None
    for value, map_ in zip(op.operands, maps):
        if not isinstance(value.type, MemRefType):
            continue
        for dim, expr in enumerate(map_.results):
            if isinstance(expr, AffineDimExpr) and expr.position == loop:
                size = value.type.get_shape()[dim]
                if size != DYNAMIC_INDEX:
                    return int(size)
                if dynamic is None:
                    dynamic = _dynamic_size(kernel, value, dim)
    if dynamic is None:
        raise AssertionError(f"{op.name}: loop {loop} has no operand that gives its extent")
    return dynamic


def _dynamic_size(kernel: Kernel, value: SSAValue, dim: int) -> Index:
    alloc = kernel.temporaries.get(value)
    if alloc is None or value in kernel.values:
        return kernel.b.size(kernel.value(value), dim)
    shape = cast("MemRefType[Any]", value.type).get_shape()
    position = sum(1 for n in shape[:dim] if n == DYNAMIC_INDEX)
    return kernel.value(alloc.dynamic_sizes[position])


def _extents(kernel: Kernel, group: Group) -> tuple[Index, ...]:
    found: list[Index | None] = [e if isinstance(e, int) else None for e in group.extents]
    for o in group.ops:
        maps = maps_of(o.op)
        for loop, dim in enumerate(o.dims):
            if found[dim] is None:
                found[dim] = _extent(kernel, o.op, maps, loop)
    return tuple(0 if e is None else e for e in found)


def _bind_op(kernel: Kernel, o: GroupOp, place: Mapping[int, int], extents: Sequence[Index], keys: frozenset[SSAValue]) -> BoundOp:
    replacement: list[AffineExpr] = [AffineConstantExpr(0) if extents[d] == 1 else AffineDimExpr(place[d]) for d in o.dims]

    def bound(map_: AffineMap) -> AffineMap:
        return map_.replace_dims_and_symbols(replacement, [], len(place), 0)

    maps = [bound(m) for m in maps_of(o.op)]
    inputs = tuple(Operand(v if v in keys else kernel.value(v), m) for v, m in zip(o.op.inputs, maps))
    target = o.op.outputs[0]
    init = kernel.value(o.init) if o.init is not None else None
    stored = target not in kernel.temporaries
    output = Operand(kernel.value(target), maps[-1])
    dims, reduced = tuple(place[d] for d in o.dims), frozenset(place[d] for d in o.reduced)
    return BoundOp(o.op, dims, reduced, inputs, output, target, init, stored, combination(o.op), kernel.in_place(target))


def arguments(b: LoopBuilder, op: BoundOp, tile: Tile, known: Mapping[SSAValue, SSAValue]) -> list[SSAValue | None]:
    """The values of an op's inputs at `tile`: known temporaries, or read from memory."""
    return [None if i is None else known[i.memory] if i.memory in known else read(b, i, tile) for i in op.used]


def compute(
    b: LoopBuilder,
    kernel: Kernel,
    op: BoundOp,
    tile: Tile,
    known: Mapping[SSAValue, SSAValue],
    accumulator: SSAValue | None = None,
    wanted: SSAValue | None = None,
) -> SSAValue:
    """What the body of `op` yields at `tile` (or its value of `wanted`), given the values of temporaries."""
    b.loc = op.op.location
    inputs = arguments(b, op, tile, known)
    if not isinstance(op.op, linalg.GenericOp):
        assert inputs[0] is not None
        return inputs[0]
    return evaluate(b, op.op, op.dims, [*inputs, accumulator], tile, kernel.values, wanted)
