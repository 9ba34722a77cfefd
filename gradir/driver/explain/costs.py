"""What one call of a kernel costs: floating-point operations and bytes, as far as its text tells, the rest by the sizes of a run.

Operations are counted as in `gradir.lowering.flops`. Bytes are those that the call has to move at least: every operand once for each of
reading and writing, and no more of it than the loops touch (of a table that is gathered from, the rows that are asked for).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, DictionaryAttr, Float64Type, MemRefType, StringAttr
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr

from gradir.dialects.kernel import DESTINATIONS_ATTRIBUTE, LIBRARY_ATTRIBUTE
from gradir.dialects.kernel_invariants import ACCESS
from gradir.dialects.upstream import linalg, memref
from gradir.dialects.upstream.func import FuncOp
from gradir.errors import GradirError
from gradir.lowering.flops import FACTORISATIONS, Counter
from gradir.lowering.schedules.machine import element_bytes

Shape = tuple[int | None, ...]
Extent: TypeAlias = "int | tuple[int, int] | None"
"""A number, (argument, dimension of it), or unknown."""


@dataclass(frozen=True)
class Nest:
    """One loop nest: operations per point, and its extents."""

    flops: int | None
    extents: tuple[Extent, ...]

    def points(self, shapes: Sequence[Shape | None]) -> int | None:
        """How often the body runs on operands of these shapes."""
        total = 1
        for extent in self.extents:
            size = extent if isinstance(extent, int) or extent is None else _dim(shapes, *extent)
            if size is None:
                return None
            total *= size
        return total


@dataclass(frozen=True)
class Traffic:
    """One operand: bytes of an element, how often all of it is touched (read, written), and the nests that bound what they touch of it."""

    argument: int
    element: int
    touches: int
    bounds: tuple[int, ...] | None


@dataclass(frozen=True)
class KernelCost:
    """Costs of a kernel as a function of the shapes of its operands."""

    nests: tuple[Nest, ...] = ()
    traffic: tuple[Traffic, ...] = ()
    fixed: int | None = 0
    dtype: str = "f32"
    library: str = ""
    inputs: int = 0
    notes: tuple[str, ...] = field(default=())

    def flops(self, shapes: Sequence[Shape | None]) -> int | None:
        """Of one call; None where only the run knows."""
        if self.library:
            return library_flops(self.library, shapes[: self.inputs])
        total = self.fixed
        for nest in self.nests:
            if nest.flops == 0:
                continue
            points = nest.points(shapes)
            if total is None or nest.flops is None or points is None:
                return None
            total += nest.flops * points
        return total

    def bytes(self, shapes: Sequence[Shape | None]) -> tuple[int, int] | None:
        """(read, written) by one call."""
        read = written = 0
        for row in self.traffic:
            shape = shapes[row.argument]
            if shape is None or None in shape:
                return None
            touched = math.prod(cast("tuple[int, ...]", shape))
            if row.bounds is not None:
                points = [self.nests[k].points(shapes) for k in row.bounds]
                if None not in points:
                    touched = min(touched, sum(cast("list[int]", points)))
            if row.touches & 1:
                read += touched * row.element
            if row.touches & 2:
                written += touched * row.element
        return read, written


READ, WRITE = 1, 2
_ACCESS = {"read": READ, "write": WRITE, "readwrite": READ | WRITE}

COPY = KernelCost(traffic=(Traffic(0, 1, READ, None), Traffic(1, 1, WRITE, None)))
"""A copy, per byte of an element: see `cost_of_op`."""


def cost_of_kernel(function: FuncOp, free: tuple[type[Operation], ...] = ()) -> KernelCost:
    """The cost of a level-3 kernel, or of a declared one; ops of the classes `free` cost nothing where it will run."""
    kinds = list(function.function_type.inputs.data)
    dtype = "f64" if any(isinstance(k, MemRefType) and isinstance(k.element_type, Float64Type) for k in kinds) else "f32"
    if not function.body.blocks:
        name = cast("StringAttr", function.attributes[LIBRARY_ATTRIBUTE]).data
        first = len(kinds) - cast("Any", function.attributes[DESTINATIONS_ATTRIBUTE]).value.data
        rows = tuple(
            Traffic(k, element_bytes(kind.element_type), READ if k < first else WRITE, None)
            for k, kind in enumerate(kinds)
            if isinstance(kind, MemRefType)
        )
        return KernelCost(traffic=rows, dtype=dtype, library=name, inputs=first)
    return _cost(function.body.block, _touches(function, len(kinds)), dtype, free)


def cost_of_op(op: Operation) -> KernelCost:
    """The cost of a copy, or of a loop nest outside of kernels; operands are those of the op."""
    if isinstance(op, memref.CopyOp):
        size = element_bytes(cast("MemRefType[Any]", op.operands[0].type).element_type)
        return KernelCost(traffic=tuple(Traffic(row.argument, size, row.touches, None) for row in COPY.traffic))
    outputs = len(getattr(op, "outputs", ()))
    arguments = {value: k for k, value in enumerate(op.operands)}
    nest = _nest(op, arguments)
    first = len(op.operands) - outputs
    rows = tuple(
        Traffic(k, element_bytes(value.type.element_type), READ if k < first else WRITE, None)
        for k, value in enumerate(op.operands)
        if isinstance(value.type, MemRefType)
    )
    return KernelCost((nest,), rows)


def library_flops(name: str, shapes: Sequence[Shape | None]) -> int | None:
    """The textbook count of a factorisation; None for another function."""
    if name not in FACTORISATIONS or not shapes or any(shape is None or None in shape for shape in shapes):
        return None
    known = cast("Sequence[tuple[int, ...]]", shapes)
    *batch, m, n = known[-1] if name == "lapack.trsm" else known[0]
    if name == "lapack.trsm":
        return math.prod(batch) * known[0][-1] * m * n
    return math.ceil(FACTORISATIONS[name] * math.prod(batch) * min(m, n) ** 2 * max(m, n))


def _touches(function: FuncOp, count: int) -> list[int]:
    rows = function.arg_attrs.data if isinstance(function.arg_attrs, ArrayAttr) else [DictionaryAttr({})] * count
    words = [row.data.get(ACCESS) for row in rows]
    return [_ACCESS.get(word.data, READ | WRITE) if isinstance(word, StringAttr) else READ | WRITE for word in words]


def _cost(block: Block, touches: Sequence[int], dtype: str, free: tuple[type[Operation], ...]) -> KernelCost:
    arguments: dict[SSAValue, int] = {value: k for k, value in enumerate(block.args)}
    nests: list[Nest] = []
    place: dict[Operation, int] = {}
    rest: int | None = 0
    for op in block.ops:
        if isinstance(op, linalg.GenericOp | linalg.FillOp):
            place[op] = len(nests)
            nests.append(_nest(op, arguments, free))
        elif rest is not None:
            rest = _counted([op], rest, free)
    rows: list[Traffic] = []
    for value in block.args:
        kind = value.type
        if isinstance(kind, MemRefType):
            rows.append(Traffic(value.index, element_bytes(kind.element_type), touches[value.index], _bounds(value, place)))
    return KernelCost(tuple(nests), tuple(rows), rest, dtype)


def _bounds(value: BlockArgument, place: dict[Operation, int]) -> tuple[int, ...] | None:
    """The nests that use an argument, when nests are all that use it: each touches an element a point at most."""
    found: list[int] = []
    for use in value.uses:
        op: Operation | None = use.operation
        while op is not None and op not in place and op.parent is not value.owner:
            op = op.parent_op()
        if op is None or op not in place:
            return None
        if not isinstance(op, linalg.FillOp):
            found.append(place[op])
    return tuple(found)


def _nest(op: Operation, arguments: dict[SSAValue, int], free: tuple[type[Operation], ...] = ()) -> Nest:
    if isinstance(op, linalg.FillOp):
        shape = cast("MemRefType[Any]", op.outputs[0].type).get_shape()
        return Nest(0, tuple(_extent(op.outputs[0], k, n, arguments) for k, n in enumerate(shape)))
    assert isinstance(op, linalg.GenericOp)
    extents: list[Extent] = [None] * len(op.iterator_types.data)
    for value, map_ in zip(op.operands, op.indexing_maps.data):
        if not isinstance(value.type, MemRefType):
            continue
        for k, (size, expr) in enumerate(zip(value.type.get_shape(), map_.data.results)):
            if isinstance(expr, AffineDimExpr) and not isinstance(extents[expr.position], int):
                extents[expr.position] = _extent(value, k, size, arguments) or extents[expr.position]
    return Nest(_counted(list(op.body.block.ops), 0, free), tuple(extents))


def _extent(value: SSAValue, dim: int, size: int, arguments: dict[SSAValue, int]) -> Extent:
    if size != DYNAMIC_INDEX:
        return size
    return (arguments[value], dim) if value in arguments else None


def _counted(ops: Sequence[Operation], so_far: int, free: tuple[type[Operation], ...] = ()) -> int | None:
    """Operations of `ops` on top of `so_far`; None where their number depends on the run."""
    counter = Counter({}, None)
    try:
        return so_far + sum(counter.op(op) for op in ops if not isinstance(op, free))
    except GradirError:
        return None


def _dim(shapes: Sequence[Shape | None], argument: int, dim: int) -> int | None:
    shape = shapes[argument]
    return None if shape is None else shape[dim]


__all__ = ["KernelCost", "Shape", "cost_of_kernel", "cost_of_op", "library_flops"]
