"""Buffers whose sizes are known when an entry begins: one allocation, planned by the texts of their sizes (part of `plan-memory`).

A size that is computed from dimensions of arguments is a text over them (`x_0*4+8`), so buffers of equal bytes are known to be equal
without knowing the number. Each such class is a sub-arena of as many slots as buffers of the class are live at once; what the entry
computes first are the bytes of each class and, as sums of them, the offsets of all slots. `gradir.workspace` on the function is the
number of bytes as such a text. Sizes that only the run knows keep their allocations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    FixedBitwidthType,
    IndexType,
    IntegerAttr,
    MemRefType,
    StringAttr,
    i8,
    i32,
    i64,
)
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from gradir import size_algebra
from gradir.dialects.types import Dim
from gradir.dialects.upstream import arith, func, memref
from gradir.ir.builder import Builder
from gradir.ir.structure import move_to_start

WORKSPACE = "gradir.workspace"
ALIGNMENT = 64
"""Bytes of which the offset of every planned buffer is a multiple."""

_INDEX = IndexType()
_OPS: Mapping[str, type[Operation]] = {"+": arith.AddiOp, "*": arith.MuliOp, "floordiv": arith.FloorDivSIOp, "max": arith.MaxSIOp}


class Lifetime(Protocol):
    """A buffer and the moments between which it is live."""

    @property
    def alloc(self) -> memref.AllocOp: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...


class Texts:
    """Index values of an entry as texts of sizes; `atoms` are the dimensions and scalars of arguments that the texts name."""

    def __init__(self, function: func.FuncOp) -> None:
        self.block = function.body.block
        self.atoms: dict[str, tuple[BlockArgument, int | None]] = {}
        self._known: dict[SSAValue, Dim] = {}

    def of(self, value: SSAValue) -> Dim:
        """The size that an index value is, None where it is not computed from arguments alone."""
        if value not in self._known:
            self._known[value] = self._text(value)
        return self._known[value]

    def _text(self, value: SSAValue) -> Dim:
        if isinstance(value, BlockArgument):
            return self._atom(value, None) if value.block is self.block and isinstance(value.type, IndexType) else None
        op = cast("Operation", value.owner)
        if isinstance(op, arith.ConstantOp):
            return op.value.value.data if isinstance(op.value, IntegerAttr) else None
        if isinstance(op, memref.DimOp):
            dim = self.of(op.index)
            of_entry = isinstance(op.source, BlockArgument) and op.source.block is self.block
            return self._atom(cast("BlockArgument", op.source), dim) if of_entry and isinstance(dim, int) else None
        combine = _COMBINE.get(type(op))
        return combine(self.of(op.operands[0]), self.of(op.operands[1])) if combine is not None else None

    def _atom(self, argument: BlockArgument, dim: int | None) -> Dim:
        if isinstance(argument.type, MemRefType) and dim is not None:
            static = cast("MemRefType[Any]", argument.type).get_shape()[dim]
            if static != DYNAMIC_INDEX:
                return static
        stem = argument.name_hint if argument.name_hint and argument.name_hint.isidentifier() else f"arg{argument.index}"
        name = stem if dim is None else f"{stem}_{dim}"
        if self.atoms.setdefault(name, (argument, dim)) != (argument, dim):  # another argument is called so
            name = f"arg{argument.index}_{dim}"
            self.atoms[name] = (argument, dim)
        return name


def _quotient(a: Dim, b: Dim) -> Dim:
    """Only by numbers: at the entry, a divisor of a branch that is not taken may be 0."""
    return size_algebra.floordiv(a, b) if isinstance(b, int) and b > 0 else None


_COMBINE: Mapping[type[Operation], Callable[[Dim, Dim], Dim]] = {
    arith.AddiOp: size_algebra.plus,
    arith.SubiOp: size_algebra.minus,
    arith.MuliOp: size_algebra.times,
    arith.MaxSIOp: size_algebra.maximum,
    arith.FloorDivSIOp: _quotient,
}


Slots = Callable[[Sequence[Lifetime]], tuple[list[int], int]]


def plan_workspace(function: func.FuncOp, buffers: Sequence[Lifetime], slots_of: Slots) -> int:
    """Put the buffers whose bytes are texts into one allocation; how many there were. `slots_of` numbers slots of equal buffers."""
    texts = Texts(function)
    classes: dict[int | str, list[Lifetime]] = {}
    for buffer in buffers:
        size = _bytes(texts, buffer.alloc)
        if size is not None:
            classes.setdefault(size, []).append(buffer)
    count = sum(map(len, classes.values()))
    if count < 2:
        return 0
    layout = [(size, members, *slots_of(members)) for size, members in classes.items()]
    _rewrite(function, texts, layout)
    return count


def _bytes(texts: Texts, alloc: memref.AllocOp) -> Dim:
    """The bytes of a buffer, a multiple of the alignment; None where the entry cannot tell them or a size (0 times which is 0)."""
    kind = cast("MemRefType[Any]", alloc.memref.type)
    sizes = [texts.of(size) for size in alloc.dynamic_sizes]
    if None in sizes:
        return None
    left = iter(sizes)
    count = size_algebra.product(next(left) if n == DYNAMIC_INDEX else n for n in kind.get_shape())
    element = kind.element_type
    width = max(1, (element.bitwidth if isinstance(element, FixedBitwidthType) else 64) // 8)
    whole = size_algebra.maximum(size_algebra.times(count, width), 0)
    return size_algebra.times(size_algebra.ceildiv(whole, ALIGNMENT), ALIGNMENT)


def replace_alloc(alloc: memref.AllocOp, view: SSAValue) -> None:
    """`view` in place of a buffer, which is neither allocated nor freed any more."""
    view.name_hint = alloc.memref.name_hint
    for use in list(alloc.memref.uses):
        if isinstance(use.operation, memref.DeallocOp):
            use.operation.detach()
            use.operation.erase()
    alloc.memref.replace_all_uses_with(view)
    alloc.detach()
    alloc.erase()


def _rewrite(function: func.FuncOp, texts: Texts, layout: Sequence[tuple[int | str, list[Lifetime], list[int], int]]) -> None:
    """`layout`: per class of buffers its bytes, the buffers, their slots, and how many slots there are."""
    block, made = function.body.block, Block()
    entry = _Entry(Builder(made, function.location), texts)
    offsets: list[tuple[Lifetime, SSAValue]] = []
    base, total = entry.number(0), cast("Dim", 0)
    for size, members, places, slots in layout:
        bytes_ = entry.value(size)
        starts = [base]
        for _ in range(slots):
            starts.append(entry.builder(arith.AddiOp, [starts[-1], bytes_], [_INDEX]))
        offsets += [(member, starts[place]) for member, place in zip(members, places)]
        base = starts[-1]
        total = size_algebra.plus(total, size_algebra.times(size, slots))
    alignment = {"alignment": IntegerAttr(ALIGNMENT, i64), "operandSegmentSizes": DenseArrayBase.from_list(i32, [1, 0])}
    workspace = entry.builder(memref.AllocOp, [base], [MemRefType(i8, [DYNAMIC_INDEX])], alignment)
    workspace.name_hint = "workspace"
    for buffer, offset in offsets:
        alloc = buffer.alloc
        entry.builder.loc = alloc.location
        sizes = [entry.value(cast("int | str", texts.of(size))) for size in alloc.dynamic_sizes]
        replace_alloc(alloc, entry.builder(memref.ViewOp, [workspace, offset, *sizes], [alloc.memref.type]))
    last = cast("Operation", block.last_op)
    move_to_start(made, block)
    block.insert_op_before(memref.DeallocOp.create(operands=[workspace], location=last.location), last)
    function.attributes[WORKSPACE] = StringAttr(str(total))


class _Entry:
    """Sizes as index values at the beginning of the entry, each computed once."""

    def __init__(self, builder: Builder, texts: Texts) -> None:
        self.builder, self.texts = builder, texts
        self._made: dict[int | str, SSAValue] = {}
        self._operations = {name: partial(self._combine, kind) for name, kind in _OPS.items()}

    def _combine(self, kind: type[Operation], a: SSAValue, b: SSAValue) -> SSAValue:
        return self.builder(kind, [a, b], [_INDEX])

    def number(self, value: int) -> SSAValue:
        if value not in self._made:
            self._made[value] = self.builder(arith.ConstantOp, [], [_INDEX], {"value": IntegerAttr(value, _INDEX)})
        return self._made[value]

    def value(self, size: int | str) -> SSAValue:
        """The number that a size is."""
        if isinstance(size, int):
            return self.number(size)
        if size not in self._made:
            self._made[size] = size_algebra.build(size, self._atom, self._operations, self.number)
        return self._made[size]

    def _atom(self, name: str) -> SSAValue:
        argument, dim = self.texts.atoms[name]
        if name not in self._made:
            found: SSAValue = argument if dim is None else self.builder(memref.DimOp, [argument, self.number(dim)], [_INDEX])
            self._made[name] = found
        return self._made[name]
