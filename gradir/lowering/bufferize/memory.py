"""Memory of a function in buffer form while it is written: which buffers exist where, and the memrefs that show its tensors.

Buffers come into being right before the first op that needs them, in the innermost block that contains all such ops, and go right
behind the last: a buffer inside a loop body is a new one in each iteration, which `plan-memory` relies on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    LocationAttr,
    MemRefType,
    StridedLayoutAttr,
    TensorType,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from gradir.dialects.types import i64_array, reassociation
from gradir.dialects.upstream import arith, func, memref, tensor
from gradir.ir.builder import Builder
from gradir.lowering.bufferize.buffers import Buffer, Rotation, Slot
from gradir.lowering.bufferize.gaps import exact_type, slice_type
from gradir.lowering.bufferize.layouts import (
    MemRef,
    collapsed_type,
    contiguous_strides,
    expanded_type,
    layout_of,
    memref_of,
    strided,
    type_of,
)
from gradir.lowering.bufferize.loops import Carried
from gradir.lowering.bufferize.places import Place, Places
from gradir.lowering.bufferize.plan import Plan
from gradir.lowering.bufferize.sizes import Sizes
from gradir.lowering.bufferize.views import Content

INDEX = IndexType()
_ALIGNMENT = IntegerAttr(64, i64)


def index_attr(number: int) -> IntegerAttr[IndexType]:
    """`number : index`."""
    return IntegerAttr(number, INDEX)


@dataclass(frozen=True, eq=False, slots=True)
class CallSite:
    """A call of a kernel in buffer form, and where its operands may point (nothing for scalars)."""

    call: func.CallOp
    kernel: str
    places: tuple[Places, ...]


@dataclass(eq=False, slots=True)
class Module:
    """What the functions of one module share: constants, calls to be resolved, copies that remain."""

    symbols: set[str]
    globals: dict[Attribute, memref.GlobalOp] = field(default_factory=dict[Attribute, memref.GlobalOp])
    calls: list[CallSite] = field(default_factory=list[CallSite])
    copies: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def constant(self, value: Attribute, type_: MemRef, loc: LocationAttr) -> memref.GlobalOp:
        """The global that holds a tensor constant; equal constants share one, which keeps the location of the first."""
        if value not in self.globals:
            number = len(self.globals)
            while f"constant_{number}" in self.symbols:
                number += 1
            name = f"constant_{number}"
            self.symbols.add(name)
            self.globals[value] = memref.GlobalOp(name, type_, value, constant=True)
            self.globals[value].location = loc
        return self.globals[value]


class Memory:
    """State of one run over one function; `types` are the memref types of its arguments."""

    def __init__(self, plan: Plan, types: Sequence[Attribute], module: Module, *, consume: bool = True) -> None:
        self.plan = plan
        self.contents = plan.contents
        self.time = plan.contents.timeline
        self.module = module
        self.consume = consume
        self.block = Block(arg_types=types)
        self.builder = Builder(self.block)
        self.memrefs: dict[SSAValue, SSAValue] = {}
        self.scalars: dict[SSAValue, SSAValue] = {}
        self.memory: dict[object, SSAValue] = {}
        self.places: dict[SSAValue, Places] = {}
        self.rotating: dict[Content, tuple[object, object]] = {}
        self.copied: list[str] = []
        self.born: dict[Operation, list[Buffer]] = {}
        self.dies: dict[Operation, list[Buffer]] = {}
        self.passing: list[SSAValue] = []
        arguments = self.contents.body.args
        for new in self.block.args:
            self.places[new] = frozenset((Place(new),))
            new.location = self.contents.function.location
        for old, new in zip(arguments, self.block.args):
            new.name_hint, new.location = old.name_hint, old.location
            (self.memrefs if isinstance(old.type, TensorType) else self.scalars)[old] = new
        outputs = len(self.contents.outputs)
        self.outputs = self.block.args[len(self.block.args) - outputs :]
        for argument, result in plan.donation.pairs.items():
            self.places[self.block.args[argument]] = self.places[self.outputs[result]]
        self.sizes = Sizes(self)
        self._schedule()

    # -- when memory comes and goes

    def _schedule(self) -> None:
        """Find the block and the ops between which each buffer exists."""
        seen: set[Buffer] = set()
        for content in self.contents.all:
            if content.owned and (content.reads or not content.empty):
                self.plan.ownership.buffer(content)
            buffer: Buffer | None = content.buffer
            if buffer is None or buffer in seen or (content.empty and not content.reads):
                continue
            seen.add(buffer)
            if not isinstance(buffer.storage, Rotation):
                self.exists(buffer, buffer.events())
        for op, carried in self.plan.loops.carried.items():
            for one in carried:
                self._schedule_loop(op, one)

    def _schedule_loop(self, op: Operation, one: Carried) -> None:
        if one.mode == "in place" or (one.mode == "pointer" and not one.copies_initial):
            return
        events = [op, *(read.op for read in one.content.reads if self.time.lift(self.time.anchor(read.op), cast("Block", op.parent)))]
        pair = tuple(Buffer(one.content.type, [one.content], []) for _ in range(2 if one.mode == "rotate" else 1))
        self.rotating[one.content] = (pair[0], pair[-1])
        for buffer in pair:
            self.exists(buffer, events)

    def exists(self, buffer: Buffer, events: Sequence[Operation]) -> None:
        """Let `buffer` exist from the first to the last of `events`."""
        if not events:
            return
        anchored = [self.time.anchor(op) for op in events]
        block = self.time.common_block(anchored)
        lifted = [op for event in anchored if (op := self.time.lift(event, block)) is not None]
        self.born.setdefault(min(lifted, key=self.time.start.__getitem__), []).append(buffer)
        if buffer.storage is None:
            self.dies.setdefault(max(lifted, key=self.time.start.__getitem__), []).append(buffer)

    def create(self, buffer: Buffer) -> None:
        storage = buffer.storage
        if buffer in self.memory:
            return
        if isinstance(storage, int):
            self.memory[buffer] = self.shaped(self.outputs[storage], buffer.type)
        elif isinstance(storage, Slot):
            self.create(storage.host)
            insert = storage.insert
            host = self.as_type(self.memory[storage.host], cast("TensorType[Any]", insert.dest.type))
            self.memory[buffer] = self.subview(host, insert)
        elif storage is None:
            type_ = cast("MemRef", memref_of(buffer.type))
            new = self.allocate(type_, self.sizes.of_type_of(next(c.value for c in buffer.members if c.value is not None)))
            self.places[new] = frozenset((Place(buffer),))
            self.memory[buffer] = new

    def allocate(self, type_: MemRef, sizes: Sequence[SSAValue]) -> SSAValue:
        """A new buffer of `type_`."""
        segments = DenseArrayBase.from_list(i32, [len(sizes), 0])
        return self.builder(memref.AllocOp, sizes, [type_], {"operandSegmentSizes": segments, "alignment": _ALIGNMENT})

    # -- memrefs of values

    def at(self, value: SSAValue) -> SSAValue:
        """The memref that shows a tensor value."""
        found = self.memrefs.get(value)
        if found is None:
            content = self.contents.content(value)
            assert content.empty, f"no memory for {value}"
            found = self.memrefs[value] = self.target(content)
        return found

    def target(self, content: Content) -> SSAValue:
        """The memref that `content` is to be written to."""
        return self.as_type(self.memory[content.buffer], content.type)

    def define(self, value: SSAValue) -> SSAValue:
        """The memref of the result of an op that writes it; from here on it shows `value`."""
        memory = self.memrefs[value] = self.target(self.contents.content(value))
        if memory.name_hint is None:
            memory.name_hint = value.name_hint
        return memory

    def deliver(self, value: SSAValue, content: Content) -> None:
        """Make the memory of `content` hold `value`; nothing to do where it does already."""
        view = self.contents.view(value)
        if view.content.empty or (view.kind != "part" and view.content.buffer is not None and view.content.buffer is content.buffer):
            return
        self.copy(self.at(value), self.target(content))

    def copy(self, source: SSAValue, destination: SSAValue) -> None:
        """Copy all elements, and count it."""
        if source is destination:
            return
        self.copied.append(str(type_of(destination)))
        self.builder(memref.CopyOp, [source, destination])

    def view_of(self, memory: SSAValue, new: SSAValue, slice_: Any = None) -> SSAValue:
        """`new`, a view of `memory`, points where that points."""
        self.places[new] = frozenset(p.within(slice_) for p in self.places.get(memory, ()))
        return new

    def cast(self, memory: SSAValue, type_: MemRef) -> SSAValue:
        """`memory` under a less exact type."""
        if memory.type == type_:
            return memory
        return self.view_of(memory, self.builder(memref.CastOp, [memory], [type_]))

    def subview(self, memory: SSAValue, op: tensor.ExtractSliceOp | tensor.InsertSliceOp) -> SSAValue:
        """The slice of `op`."""
        type_ = exact_type(type_of(memory), op)
        groups = [[self.scalar(v) for v in group] for group in (op.offsets, op.sizes, op.strides)]
        properties = {
            "static_offsets": op.static_offsets,
            "static_sizes": op.static_sizes,
            "static_strides": op.static_strides,
            "operandSegmentSizes": DenseArrayBase.from_list(i32, [1, *map(len, groups)]),
        }
        new = self.builder(memref.SubviewOp, [memory, *(v for group in groups for v in group)], [type_], properties)
        return self.cast(self.view_of(memory, new, self.plan.slice_of(op)), slice_type(type_of(memory), op))

    def as_type(self, memory: SSAValue, type_: TensorType[Any]) -> SSAValue:
        """Static memory under the shape of another tensor type with equally many elements."""
        return memory if type_of(memory).get_shape() == type_.get_shape() else self.shaped(memory, type_)

    def shaped(self, memory: SSAValue, type_: TensorType[Any]) -> SSAValue:
        """All of `memory`, contiguous and static, in the shape of `type_`: through one dimension."""
        old, shape = type_of(memory).get_shape(), type_.get_shape()
        if old == shape:
            return memory
        if len(old) > 1:
            flat = [tuple(range(len(old)))] if shape else []
            memory = self.collapse(memory, flat)
        if len(shape) > 1 or not old:
            memory = self.expand(memory, [tuple(range(len(shape)))] if type_of(memory).get_shape() else [], shape, [])
        elif not shape and type_of(memory).get_shape():
            memory = self.collapse(memory, [])
        return memory

    def collapse(self, memory: SSAValue, groups: Sequence[Sequence[int]]) -> SSAValue:
        """Each group of dimensions as one; a copy where the memory is not evenly spaced."""
        type_ = collapsed_type(type_of(memory), groups)
        if type_ is None:
            memory = self._compact(memory)
            type_ = collapsed_type(type_of(memory), groups)
            assert type_ is not None
        new = self.builder(memref.CollapseShapeOp, [memory], [type_], {"reassociation": reassociation(groups)})
        return self.view_of(memory, new)

    def expand(self, memory: SSAValue, groups: Sequence[Sequence[int]], shape: Sequence[int], sizes: Sequence[SSAValue]) -> SSAValue:
        """Each dimension as a group of dimensions of `shape`."""
        type_ = expanded_type(type_of(memory), groups, shape)
        properties = {"reassociation": reassociation(groups), "static_output_shape": i64_array(shape)}
        return self.view_of(memory, self.builder(memref.ExpandShapeOp, [memory, *sizes], [type_], properties))

    def without_gaps(self, memory: SSAValue) -> SSAValue:
        """`memory`, or a contiguous copy where it is not known to be so; scalars as they are."""
        if not isinstance(memory.type, MemRefType):
            return memory
        type_ = type_of(memory)
        strides = layout_of(type_)[0]
        known = not isinstance(type_.layout, StridedLayoutAttr) or None not in strides
        return memory if known and strides == contiguous_strides(type_.get_shape()) else self._compact(memory)

    def _compact(self, memory: SSAValue) -> SSAValue:
        """A contiguous copy that lasts as long as the current block."""
        old = type_of(memory)
        sizes = [self.sizes.dim(memory, d) for d, n in enumerate(old.get_shape()) if n == DYNAMIC_INDEX]
        new = self.allocate(strided(old.element_type, old.get_shape(), (), 0) if not old.get_shape() else _plain(old), sizes)
        self.places[new] = frozenset((Place(new),))
        self.copy(memory, new)
        self.passing.append(new)
        return new

    # -- scalars

    def scalar(self, value: SSAValue) -> SSAValue:
        """The rebuilt form of a scalar; index arithmetic that comes later in the program is computed here once more."""
        found = self.scalars.get(value)
        if found is not None:
            return found
        op = value.owner
        assert isinstance(op, Operation), f"{value} is not known here"
        if isinstance(op, tensor.DimOp):
            return self.sizes.of_dim(op)
        operands = [self.scalar(v) for v in op.operands]
        new = self.builder.op(type(op), operands, [r.type for r in op.results], op.properties, attributes=op.attributes)
        return new.results[next(k for k, r in enumerate(op.results) if r is value)]

    def index(self, number: int) -> SSAValue:
        """A constant of type index."""
        return self.builder(arith.ConstantOp, (), [INDEX], {"value": index_attr(number)})


def _plain(type_: MemRef) -> MemRef:
    return cast("MemRef", memref_of(TensorType(type_.element_type, type_.get_shape())))


def with_shape(type_: MemRef, shape: Sequence[int]) -> MemRef:
    strides, offset = layout_of(type_)
    return strided(type_.element_type, tuple(shape), strides, offset)
