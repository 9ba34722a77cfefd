"""Building loops: index arithmetic that folds, constants made once, loops with carried values, scratch memory.

An index is a Python int while it is known and an SSA value otherwise, so that index arithmetic costs ops only where it has to. Constants
and what is made of them and of the function's arguments alone sit at the top of the function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from math import prod
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    AnyFloat,
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    MemRefType,
    StridedLayoutAttr,
    VectorType,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)

from gradir.dialects.upstream import arith, memref, scf, vector
from gradir.ir.builder import Builder
from gradir.lowering.schedules.machine import element_bytes

Index: TypeAlias = int | SSAValue
"""An index that is known (a Python int) or computed."""

INDEX = IndexType()
STACK_BYTES = 128 << 10
"""Scratch up to this size is on the stack, larger scratch comes from the context's allocator."""
_ALIGN = IntegerAttr(64, i64)
_NO_OVERFLOW: dict[str, Attribute] = {"overflowFlags": arith.IntegerOverflowAttr("none")}
_TO_READ, _TO_WRITE = (
    {"isWrite": BoolAttr.from_bool(written), "localityHint": IntegerAttr(3, i32), "isDataCache": BoolAttr.from_bool(True)}
    for written in (False, True)
)


@lru_cache(maxsize=1 << 12)
def vector_type(element: Attribute, *shape: int) -> VectorType[Any]:
    """`vector<shape x element>`, interned."""
    return VectorType(element, list(shape))


@cache
def i32_array(*values: int) -> DenseArrayBase[Any]:
    """`array<i32: ...>`, interned (operand segment sizes)."""
    return DenseArrayBase.from_list(i32, list(values))


@cache
def flags(*values: bool) -> ArrayAttr[BoolAttr]:
    """An array of booleans (`in_bounds`), interned."""
    return ArrayAttr([BoolAttr.from_bool(v) for v in values])


@cache
def projection(rank: int, results: tuple[int | None, ...]) -> AffineMapAttr:
    """The map of `rank` dims to those of `results`; None is the constant 0 (a broadcast dimension of a transfer)."""
    return AffineMapAttr(AffineMap(rank, 0, tuple(AffineConstantExpr(0) if d is None else AffineDimExpr(d) for d in results)))


@lru_cache(maxsize=1 << 12)
def number(value: float, element: Attribute) -> Attribute:
    """`value : element`, interned."""
    if isinstance(element, IntegerType | IndexType):
        return IntegerAttr(int(value), element)
    return FloatAttr(float(value), cast("AnyFloat", element))


@lru_cache(maxsize=1 << 10)
def strides_of(kind: MemRefType[Any]) -> tuple[int | None, ...]:
    """Elements between neighbours along each dimension; None where only the run knows."""
    if isinstance(kind.layout, StridedLayoutAttr):
        return tuple(kind.layout.get_strides())
    strides: list[int | None] = []
    step: int | None = 1
    for size in reversed(kind.get_shape()):
        strides.append(step)
        step = None if step is None or size == DYNAMIC_INDEX else step * size
    return tuple(reversed(strides))


Carry: TypeAlias = Callable[["LoopBuilder", SSAValue, list[SSAValue]], Sequence[SSAValue]]


class Frame:
    """Where constants and scratch memory of one function go, and which exist already."""

    __slots__ = ("constants", "deferred_frees", "entry")

    def __init__(self, entry: Block) -> None:
        self.entry = entry
        self.constants: dict[Any, SSAValue] = {}
        self.deferred_frees: list[SSAValue] = []


class LoopBuilder(Builder):
    """Appends level-4 ops to a block. `frame` is shared by all builders of one function, `stack` is the block that holds its scratch."""

    __slots__ = ("_hoist", "frame", "stack")

    def __init__(self, block: Block, loc: LocationAttr, frame: Frame, stack: Block | None = None) -> None:
        super().__init__(block, loc)
        self.frame = frame
        self.stack = stack or block
        self._hoist = Builder(frame.entry, loc)

    def nested(self, block: Block) -> LoopBuilder:
        return LoopBuilder(block, self.loc, self.frame, self.stack)

    # constants and what is made of them

    def _hoisted(
        self, key: Any, kind: type[Operation], operands: Sequence[SSAValue], type_: Attribute, properties: Mapping[str, Attribute]
    ) -> Any:
        """An op at the top of the function, once per `key`."""
        found = self.frame.constants.get(key)
        if found is None:
            found = self.frame.constants[key] = kind.create(operands=operands, result_types=[type_], properties=dict(properties)).results[0]
            entry, last = self.frame.entry, self.frame.constants.get("last")
            assert isinstance(found.owner, Operation)
            if last is not None and isinstance(last.owner, Operation):
                entry.insert_op_after(found.owner, last.owner)
            elif entry.first_op is not None:
                entry.insert_op_before(found.owner, entry.first_op)
            else:
                entry.add_op(found.owner)
            self.frame.constants["last"] = found
        return found

    def constant(self, value: Attribute) -> SSAValue:
        """`arith.constant value`, once per function."""
        type_ = value.get_type() if isinstance(value, DenseIntOrFPElementsAttr) else cast("IntegerAttr[Any] | FloatAttr[Any]", value).type
        return self._hoisted(value, arith.ConstantOp, [], type_, {"value": value})

    def value(self, index: Index) -> SSAValue:
        """The SSA form of an index."""
        return self.constant(number(index, INDEX)) if isinstance(index, int) else index

    def values(self, indices: Sequence[Index]) -> list[SSAValue]:
        return [self.value(i) for i in indices]

    def is_global(self, value: SSAValue) -> bool:
        """Does `value` exist at the top of the function: an argument or a constant?"""
        owner = value.owner
        return owner is self.frame.entry or (isinstance(owner, arith.ConstantOp) and owner.parent is self.frame.entry)

    def splat(self, value: SSAValue, type_: Attribute) -> SSAValue:
        """`value` in every lane of `type_`; itself when it has that type."""
        if value.type == type_:
            return value
        assert isinstance(type_, VectorType)
        owner = value.owner
        if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr | FloatAttr):
            return self.constant(DenseIntOrFPElementsAttr.from_list(type_, [owner.value.value.data]))
        if self.is_global(value):
            return self._hoisted((value, type_), vector.BroadcastOp, [value], type_, {})
        return self(vector.BroadcastOp, [value], [type_])

    def size(self, memory: SSAValue, dim: int) -> Index:
        """Extent of one dimension of a memref."""
        static = cast("MemRefType[Any]", memory.type).get_shape()[dim]
        if static != DYNAMIC_INDEX:
            return int(static)
        if not self.is_global(memory):
            return self(memref.DimOp, [memory, self.value(dim)], [INDEX])
        return self._hoisted(("size", memory, dim), memref.DimOp, [memory, self.value(dim)], INDEX, {})

    # index arithmetic

    def add(self, a: Index, b: Index) -> Index:
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if a == 0:
            return b
        return a if b == 0 else self(arith.AddiOp, self.values([a, b]), [INDEX], _NO_OVERFLOW)

    def sub(self, a: Index, b: Index) -> Index:
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        return a if b == 0 else self(arith.SubiOp, self.values([a, b]), [INDEX], _NO_OVERFLOW)

    def mul(self, a: Index, b: Index) -> Index:
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if a == 1:
            return b
        if a == 0 or b == 0:
            return 0
        return a if b == 1 else self(arith.MuliOp, self.values([a, b]), [INDEX], _NO_OVERFLOW)

    def minimum(self, a: Index, b: Index) -> Index:
        if isinstance(a, int) and isinstance(b, int):
            return min(a, b)
        return self(arith.MinSIOp, self.values([a, b]), [INDEX])

    def round_down(self, a: Index, step: int) -> Index:
        """`a` without its remainder modulo `step`; `a` is not negative."""
        if isinstance(a, int):
            return a - a % step
        return a if step == 1 else self.sub(a, self(arith.RemUIOp, [a, self.value(step)], [INDEX]))

    def quotient(self, a: Index, step: int) -> Index:
        """`a / step`; `a` is not negative."""
        if isinstance(a, int):
            return a // step
        return a if step == 1 else self(arith.DivUIOp, [a, self.value(step)], [INDEX])

    def affine(self, expr: AffineExpr, dims: Sequence[Index]) -> Index:
        """The value of an affine expression (no symbols) at `dims`."""
        if isinstance(expr, AffineConstantExpr):
            return expr.value
        if isinstance(expr, AffineDimExpr):
            return dims[expr.position]
        assert isinstance(expr, AffineBinaryOpExpr)
        a, b = self.affine(expr.lhs, dims), self.affine(expr.rhs, dims)
        if expr.kind is AffineBinaryOpKind.Add:
            return self.add(a, b)
        if expr.kind is AffineBinaryOpKind.Mul:
            return self.mul(a, b)
        if isinstance(a, int) and isinstance(b, int):
            table = {AffineBinaryOpKind.Mod: a % b, AffineBinaryOpKind.FloorDiv: a // b, AffineBinaryOpKind.CeilDiv: -(-a // b)}
            return table[expr.kind]
        if expr.kind is AffineBinaryOpKind.Mod:
            # a mod b == a - floordiv(a, b) * b, which is right for negative a as well
            quotient = self(arith.FloorDivSIOp, self.values([a, b]), [INDEX])
            return self.sub(a, self.mul(quotient, b))
        division = arith.FloorDivSIOp if expr.kind is AffineBinaryOpKind.FloorDiv else arith.CeilDivSIOp
        return self(division, self.values([a, b]), [INDEX])

    # loops

    def loop(self, low: Index, high: Index, step: int, inits: Sequence[SSAValue], body: Carry) -> list[SSAValue]:
        """`scf.for` that carries `inits`; `body(builder, index, carried)` returns the next ones. No loop for no or one step."""
        if isinstance(low, int) and isinstance(high, int):
            if low >= high:
                return list(inits)
            if low + step >= high:
                return list(body(self, self.value(low), list(inits)))
        block = Block(arg_types=[INDEX, *(v.type for v in inits)])
        inner = self.nested(block)
        results = body(inner, block.args[0], list(block.args[1:]))
        inner.op(scf.YieldOp, list(results))
        operands = [*self.values([low, high, step]), *inits]
        return list(self.op(scf.ForOp, operands, [v.type for v in inits], regions=[Region(block)]).results)

    def parallel(self, low: Index, high: Index, step: int, body: Callable[[LoopBuilder, SSAValue], None]) -> None:
        """`scf.parallel` over one index; scratch made inside belongs to one iteration."""
        block = Block(arg_types=[INDEX])
        inner = LoopBuilder(block, self.loc, self.frame, block)
        body(inner, block.args[0])
        inner.op(scf.ReduceOp)
        bounds = self.values([low, high, step])
        self.op(scf.ParallelOp, bounds, [], {"operandSegmentSizes": i32_array(1, 1, 1, 0)}, regions=[Region(block)])

    # scratch

    def scratch(self, element: Attribute, shape: Sequence[Index]) -> SSAValue:
        """Uninitialised memory of this function's (or this parallel iteration's) own: on the stack if small and of known size."""
        sizes = [n if isinstance(n, int) else DYNAMIC_INDEX for n in shape]
        type_ = MemRefType(element, sizes)
        if DYNAMIC_INDEX not in sizes and prod(sizes) * element_bytes(element) <= STACK_BYTES:
            new = memref.AllocaOp.create(result_types=[type_], properties={"operandSegmentSizes": i32_array(0, 0), "alignment": _ALIGN})
            if self.stack.first_op is None:
                self.stack.add_op(new)
            else:
                self.stack.insert_op_before(new, self.stack.first_op)
            return new.results[0]
        dynamic = [n for n in shape if not isinstance(n, int)]
        return self(memref.AllocOp, dynamic, [type_], {"operandSegmentSizes": i32_array(len(dynamic), 0), "alignment": _ALIGN})

    def prefetch(self, memory: SSAValue, indices: Sequence[SSAValue], *, write: bool = False) -> None:
        """Ask for the line that holds `memory[indices]`."""
        self.op(memref.PrefetchOp, [memory, *indices], [], _TO_WRITE if write else _TO_READ)

    def release(self, scratch: SSAValue) -> None:
        """The end of the life of what `scratch` returned."""
        if isinstance(scratch.owner, memref.AllocOp):
            self.op(memref.DeallocOp, [scratch])
