"""The scalar body of a linalg op, evaluated on a tile: the same ops on scalars or on vectors.

A value stays scalar while every lane would hold the same; a consumer that needs lanes splats it. `linalg.index` of a vector dimension and
loads from captured buffers (gathers) become vectors; a load whose last index alone walks the lanes is one contiguous load.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IndexType, IntegerType, MemRefType, VectorType, f32, f64, i1
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Block, Operation, SSAValue

from gradir.dialects.types import i64_array
from gradir.dialects.upstream import arith, linalg, memref, scf, vector
from gradir.lowering.lower_kernels.body_loops import run_for, run_while, runs_in_lanes
from gradir.lowering.lower_kernels.builder import Index, LoopBuilder, number, strides_of, vector_type
from gradir.lowering.lower_kernels.tiles import MOST_LANES, NotCovered, Tile
from gradir.lowering.schedules.streaming import has_polynomials

_KIND = vector.CombiningKindFlag
KINDS: Mapping[type[Operation], vector.CombiningKindAttr] = {
    op: vector.CombiningKindAttr(kind)
    for op, kind in {
        arith.AddfOp: _KIND.ADD,
        arith.AddiOp: _KIND.ADD,
        arith.MulfOp: _KIND.MUL,
        arith.MuliOp: _KIND.MUL,
        arith.MaximumfOp: _KIND.MAXIMUMF,
        arith.MinimumfOp: _KIND.MINIMUMF,
        arith.MaxSIOp: _KIND.MAXSI,
        arith.MinSIOp: _KIND.MINSI,
        arith.MaxUIOp: _KIND.MAXUI,
        arith.MinUIOp: _KIND.MINUI,
        arith.OrIOp: _KIND.OR,
        arith.AndIOp: _KIND.AND,
        arith.XOrIOp: _KIND.XOR,
    }.items()
}
"""How `vector.reduction` names what an accumulator's op does."""

_REASSOCIATE = arith.FastMathFlagsAttr([FastMathFlag.REASSOC])
_PLAIN_DIALECTS = ("arith", "math")


@dataclass(frozen=True)
class Combination:
    """A body that yields `combiner(accumulator, term)`."""

    combiner: Operation
    term: SSAValue

    @property
    def sums_floats(self) -> bool:
        return isinstance(self.combiner, arith.AddfOp)


def combination(op: Operation) -> Combination | None:
    """How the body of a reduction joins its accumulator with the next term; None when it does something else."""
    if not isinstance(op, linalg.GenericOp):
        return None
    block = op.body.block
    accumulator, last = block.args[-1], block.last_op
    combiner = last.operands[0].owner if last is not None else None
    if not isinstance(combiner, Operation) or type(combiner) not in KINDS or not accumulator.has_one_use():
        return None
    terms = [v for v in combiner.operands if v is not accumulator]
    return Combination(combiner, terms[0]) if len(terms) == 1 else None


def is_identity(value: SSAValue, combiner: Operation) -> bool:
    """Is the scalar `value` a constant that the combiner leaves every other value by? Not so +0 by a sum: it turns -0 into +0."""
    owner = value.owner
    return not isinstance(combiner, arith.AddfOp) and isinstance(owner, arith.ConstantOp) and owner.value == identity(combiner, value.type)


def identity(combiner: Operation, element: Attribute) -> Attribute:
    """The neutral element of a combiner, as an attribute."""
    if isinstance(combiner, arith.AddfOp | arith.AddiOp | arith.OrIOp | arith.XOrIOp | arith.MaxUIOp):
        return number(0, element)
    if isinstance(combiner, arith.MulfOp | arith.MuliOp):
        return number(1, element)
    if isinstance(combiner, arith.MaximumfOp | arith.MinimumfOp):
        return number(float("-inf") if isinstance(combiner, arith.MaximumfOp) else float("inf"), element)
    if isinstance(combiner, arith.AndIOp | arith.MinUIOp) or element == i1:
        # i1 as a signed number is 0 or -1: the largest is 0, the smallest all ones
        return number(0 if isinstance(combiner, arith.MaxSIOp) and element != i1 else -1 + isinstance(combiner, arith.MinSIOp), element)
    bits = 64 if isinstance(element, IndexType) else cast("IntegerType", element).bitwidth
    return number(-(1 << (bits - 1)) if isinstance(combiner, arith.MaxSIOp) else (1 << (bits - 1)) - 1, element)


def combine(b: LoopBuilder, combiner: Operation, a: SSAValue, c: SSAValue) -> SSAValue:
    """`combiner(a, c)` on whatever type the two share."""
    return b(type(combiner), [a, c], [a.type], combiner.properties)


def across_lanes(b: LoopBuilder, combiner: Operation, value: SSAValue) -> SSAValue:
    """All lanes of a vector joined in a tree; a scalar is itself."""
    if not isinstance(value.type, VectorType):
        return value
    properties = {"kind": KINDS[type(combiner)], "fastmath": _REASSOCIATE}
    return b(vector.ReductionOp, [value], [value.type.element_type], properties)


def widened(b: LoopBuilder, value: SSAValue, wide: bool) -> SSAValue:
    """An f32 value (or vector) as f64 when `wide`: long sums add in f64."""
    if not wide:
        return value
    type_ = vector_type(f64, *value.type.get_shape()) if isinstance(value.type, VectorType) else f64
    return b(arith.ExtFOp, [value], [type_])


def narrowed(b: LoopBuilder, value: SSAValue, wide: bool) -> SSAValue:
    """The inverse of `widened`."""
    if not wide:
        return value
    type_ = vector_type(f32, *value.type.get_shape()) if isinstance(value.type, VectorType) else f32
    return b(arith.TruncFOp, [value], [type_])


def is_plain(block: Block) -> bool:
    """Can the body run on vectors: arith, math, indices, gathers and loops around arith and math?"""
    return all(
        op.name.split(".")[0] in _PLAIN_DIALECTS
        or isinstance(op, linalg.IndexOp | linalg.YieldOp | memref.LoadOp)
        or (isinstance(op, scf.ForOp | scf.WhileOp) and all(runs_in_lanes(region.block) for region in op.regions))
        for op in block.ops
    )


def _element(type_: Attribute) -> Attribute:
    return type_.element_type if isinstance(type_, VectorType) else type_


class Lanes:
    """State of one evaluation: values of the body's SSA values, and which of them are `base + lane` along the innermost axis."""

    def __init__(self, b: LoopBuilder, tile: Tile, outer: Mapping[SSAValue, SSAValue]) -> None:
        self.b, self.tile, self.outer = b, tile, outer
        self.shape = tuple(a.size for a in tile.axes)
        self.values: dict[SSAValue, SSAValue] = {}
        self.walking: dict[SSAValue, Index] = {}

    def get(self, value: SSAValue) -> SSAValue:
        found = self.values.get(value)
        return found if found is not None else self.outer.get(value, value)

    def type(self, element: Attribute) -> Attribute:
        return vector_type(element, *self.shape) if self.shape else element

    def index(self, op: linalg.IndexOp, dims: Sequence[int]) -> None:
        dim = dims[op.dim.value.data]
        base = self.tile.at[dim]
        axis = next((k for k, a in enumerate(self.tile.axes) if a.dim == dim), None)
        if axis is None:
            self.values[op.result] = self.b.value(base)
            return
        if axis == len(self.shape) - 1:
            self.walking[op.result] = base
        b, type_ = self.b, cast("VectorType[IndexType]", self.type(IndexType()))
        lanes = [lane[axis] for lane in product(*(range(n) for n in self.shape))]
        offsets = b.constant(DenseIntOrFPElementsAttr.from_list(type_, lanes))
        if base != 0:
            offsets = b(arith.AddiOp, [b.splat(b.value(base), type_), offsets], [type_], {"overflowFlags": _NO_FLAGS})
        self.values[op.result] = offsets

    def load(self, op: memref.LoadOp) -> None:
        """A gather: one scalar when no index varies, one vector when only the last walks, else lane by lane."""
        b, memory, element = self.b, self.get(op.memref), op.res.type
        indices = [self.get(i) for i in op.indices]
        varies = [isinstance(i.type, VectorType) for i in indices]
        if not any(varies):
            self.values[op.res] = b(memref.LoadOp, [memory, *indices], [element])
            return
        unit = isinstance(memory.type, MemRefType) and strides_of(memory.type)[-1] == 1 and element != i1
        start = self.walking.get(op.indices[-1])
        if unit and start is not None and sum(varies) == 1 and len(self.shape) == 1 and not self.tile.axes[0].masked:
            self.values[op.res] = b(vector.LoadOp, [memory, *indices[:-1], b.value(start)], [self.type(element)])
            return
        if prod(self.shape) > MOST_LANES or any(a.masked for a in self.tile.axes):
            raise NotCovered("a gather in a tile that is large or masked")
        lanes: list[SSAValue] = []
        for lane in product(*(range(n) for n in self.shape)):
            place = {"static_position": i64_array(lane)}
            at = [b(vector.ExtractOp, [i], [IndexType()], place) if v else i for i, v in zip(indices, varies)]
            lanes.append(b(memref.LoadOp, [memory, *at], [element]))
        self.values[op.res] = b(vector.FromElementsOp, lanes, [self.type(element)])

    def plain(self, op: Operation) -> None:
        """An elementwise op, on vectors as soon as one operand is a vector."""
        operands = [self.get(v) for v in op.operands]
        types = [r.type for r in op.results]
        if any(isinstance(v.type, VectorType) for v in operands):
            operands = [self.b.splat(v, self.type(_element(v.type))) for v in operands]
            types = [self.type(t) for t in types]
        new = self.b.op(type(op), operands, types, op.properties, attributes=op.attributes)
        self.values.update(zip(op.results, new.results))

    def run(self, op: Operation) -> None:
        """Evaluate one op of the body, or of a loop in it."""
        self.b.loc = op.location
        if op.regions:
            self.clone(op)
        else:
            _HANDLERS.get(type(op), Lanes.plain)(self, op)

    def constant(self, op: arith.ConstantOp) -> None:
        self.values[op.result] = self.b.constant(op.value)

    def clone(self, op: Operation) -> None:
        """An op with regions, on scalars."""
        if self.shape:
            if isinstance(op, scf.ForOp):
                results = run_for(self, op)
            elif isinstance(op, scf.WhileOp):
                results = run_while(self, op)
            else:
                raise NotCovered(f"{op.name} on vectors")
            self.values.update(zip(op.results, results))
            return
        mapping: dict[SSAValue, SSAValue] = dict(self.outer)
        mapping.update(self.values)
        new = op.clone(mapping)
        self.b.block.add_op(new)
        self.values.update(zip(op.results, new.results))


_NO_FLAGS = arith.IntegerOverflowAttr("none")
_HANDLERS: dict[type[Operation], Any] = {
    memref.LoadOp: Lanes.load,
    arith.ConstantOp: Lanes.constant,
}


def evaluate(
    b: LoopBuilder,
    op: linalg.GenericOp,
    dims: Sequence[int],
    arguments: Sequence[SSAValue | None],
    tile: Tile,
    outer: Mapping[SSAValue, SSAValue],
    wanted: SSAValue | None = None,
) -> SSAValue:
    """The value that the body yields at `tile` (or that of `wanted`, whose users are then left out).

    `dims[l]` is the dimension of the tile's space that loop l runs along, `arguments` the body's arguments (None: not used), `outer` maps
    values from outside the body, and those of the body that are known already. The result is a scalar when it is the same in all lanes.
    """
    block = op.body.block
    lanes = Lanes(b, tile, outer)
    lanes.values.update((a, v) for a, v in zip(block.args, arguments) if v is not None)
    stop = wanted.owner if wanted is not None else None
    if wanted is not None and stop is block:
        return lanes.get(wanted)
    for inner in block.ops:
        if isinstance(inner, linalg.YieldOp):
            return lanes.get(inner.operands[0])
        if inner.results and all(r in outer for r in inner.results):  # computed before, for many tiles
            pass
        elif isinstance(inner, linalg.IndexOp):
            lanes.index(inner, dims)
        else:
            lanes.run(inner)
        if inner is stop and wanted is not None:
            return lanes.get(wanted)
    raise AssertionError("a linalg body ends with linalg.yield")


def is_polynomial(op: Operation) -> bool:
    """Does the body of this op call functions that become polynomials of many instructions?"""
    return isinstance(op, linalg.GenericOp) and has_polynomials(op)


def is_costly(op: Operation) -> bool:
    """Is it better to keep the values of this op's body than to compute them again?"""
    return is_polynomial(op) or (isinstance(op, linalg.GenericOp) and any(isinstance(o, arith.DivfOp) for o in op.body.block.ops))
