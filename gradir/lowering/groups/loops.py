"""What one `linalg.generic` says about its loops: extents, kinds, how it reads and writes, how it combines.

Works on tensors and on memrefs. Level 3 keeps single assignment (each buffer is written by one generic, plus the `linalg.fill`
that initialises it), so there the written memref stands for the value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, AffineMapAttr, MemRefType, TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap

from gradir.dialects.types import shape_of
from gradir.dialects.upstream import arith, linalg

Extent: TypeAlias = int | str | None
"""Trip count of a loop: a number, the name of a size, or None where the text names nothing."""

Read: TypeAlias = tuple[int | None, ...]
"""The loop that indexes each dimension of an operand, None for a constant index."""

COMBINERS: frozenset[type[Operation]] = frozenset(
    {
        arith.AddfOp, arith.MulfOp, arith.MaximumfOp, arith.MinimumfOp, arith.AddiOp, arith.MuliOp,
        arith.MaxSIOp, arith.MinSIOp, arith.MaxUIOp, arith.MinUIOp, arith.OrIOp, arith.AndIOp,
    }
)  # fmt: skip
_ADDS = (arith.AddfOp, arith.AddiOp)
_PRODUCTS = (arith.MulfOp, arith.MuliOp)
_WIDENINGS = (arith.ExtFOp, arith.ExtSIOp, arith.ExtUIOp)


@dataclass(frozen=True, eq=False, slots=True)
class Loops:
    """Facts of one generic, in its own loop numbering.

    `inputs` are the operands that the body uses, with their maps; `reads` the same as loops, None for a map with sums or factors
    (windows, reversals); `captured` the values from outside that the body reads by name
    (scalars, gathered tensors). `output_loops[d]` is the loop that runs over dimension d of the output. `init` is the scalar that a
    `linalg.fill` put into the output first. `combiner` is the op that joins a reduction's accumulator and its next term.
    """

    op: linalg.GenericOp
    extents: tuple[Extent, ...]
    reduced: tuple[bool, ...]
    inputs: tuple[tuple[SSAValue, AffineMap], ...]
    reads: tuple[tuple[SSAValue, Read | None], ...]
    captured: tuple[SSAValue, ...]
    output: SSAValue
    output_loops: tuple[int, ...]
    init: SSAValue | None
    reads_output: bool
    combiner: type[Operation] | None
    multiplies: bool

    @property
    def is_reduction(self) -> bool:
        return any(self.reduced)

    @property
    def has_windows(self) -> bool:
        """True when some input is read at an index that is neither one loop nor a constant."""
        return any(loops is None for _, loops in self.reads)


def is_generic(op: Operation) -> bool:
    """True of a `linalg.generic` with one output that groups can describe."""
    return isinstance(op, linalg.GenericOp) and (len(op.results) == 1 or (not op.results and len(op.outputs) == 1))


def pure_dims(map: AffineMap) -> tuple[int, ...] | None:
    """The dimensions of a map whose results are dimensions and nothing else."""
    found = tuple([e.position for e in map.results if isinstance(e, AffineDimExpr)])
    return found if len(found) == len(map.results) else None


def _read_of(map: AffineMap) -> Read | None:
    if not all(isinstance(e, AffineDimExpr | AffineConstantExpr) for e in map.results):
        return None
    return tuple([e.position if isinstance(e, AffineDimExpr) else None for e in map.results])


_READ = "_gradir_read"


def _read(map: AffineMapAttr) -> Read | None:
    """How an operand with this map is read. Nests share their maps, which keep the answer beside their fields."""
    kept = map.__dict__
    if _READ not in kept:
        object.__setattr__(map, _READ, _read_of(map.data))
    return kept[_READ]


def extents_of(type_: Attribute) -> tuple[Extent, ...]:
    """Sizes of a tensor or memref type; a scalar has none."""
    if isinstance(type_, TensorType):
        return shape_of(type_)
    if not isinstance(type_, MemRefType):
        return ()
    return tuple(None if n == DYNAMIC_INDEX else n for n in cast("MemRefType[Any]", type_).get_shape())


def loops_of(op: Operation, fills: Mapping[SSAValue, SSAValue] | None = None) -> Loops:
    """The facts of `op`; `fills` maps a memref to the scalar that was filled into it (level 3 only)."""
    assert is_generic(op) and isinstance(op, linalg.GenericOp), f"{op.name} is not a linalg.generic with one output"
    attributes = op.indexing_maps.data
    maps = [m.data for m in attributes]
    block = op.body.block
    operands, destination = op.operands[:-1], op.operands[-1]
    output_loops = pure_dims(maps[-1])
    assert output_loops is not None and len(set(output_loops)) == len(output_loops), "the output map must be a projected permutation"
    used = [(v, m) for v, m, arg in zip(operands, attributes, block.args) if arg.first_use is not None]
    combiner, multiplies = _combination(block)
    return Loops(
        op=op,
        extents=_extents(op, maps),
        reduced=tuple([t.data is linalg.IteratorType.REDUCTION for t in op.iterator_types.data]),
        inputs=tuple([(v, m.data) for v, m in used]),
        reads=tuple([(v, _read(m)) for v, m in used]),
        captured=captured_by(block),
        output=op.results[0] if op.results else destination,
        output_loops=output_loops,
        init=_init(destination, fills),
        reads_output=block.args[-1].first_use is not None,
        combiner=combiner,
        multiplies=multiplies,
    )


def _extents(op: linalg.GenericOp, maps: list[AffineMap]) -> tuple[Extent, ...]:
    """Each loop's extent, from the operands that it indexes directly; a number or a name wins over an anonymous size."""
    extents: list[Extent] = [None] * maps[0].num_dims
    for value, map in zip(op.operands, maps):
        for size, expr in zip(extents_of(value.type), map.results):
            if isinstance(expr, AffineDimExpr) and not isinstance(extents[expr.position], int) and size is not None:
                extents[expr.position] = size
    return tuple(extents)


def _init(destination: SSAValue, fills: Mapping[SSAValue, SSAValue] | None) -> SSAValue | None:
    fill = destination.owner
    if isinstance(fill, linalg.FillOp) and fill.results:
        return fill.operands[0]
    return fills.get(destination) if fills else None


def captured_by(block: Block) -> tuple[SSAValue, ...]:
    """Values from outside that ops of `block` read by name."""
    inside: set[SSAValue] = set(block.args)
    found: dict[SSAValue, None] = {}
    for op in block.walk():
        for value in op.operands:
            if value not in inside:
                found[value] = None
        inside.update(op.results)
        for region in op.regions:
            inside.update(a for b in region.blocks for a in b.args)
    return tuple(found)


def _combination(block: Block) -> tuple[type[Operation] | None, bool]:
    """The op that yields `combine(accumulator, term)`, and whether it adds products of two different inputs."""
    accumulator = block.args[-1]
    yielded = block.last_op.operands[0].owner if block.last_op is not None else None
    if not isinstance(yielded, Operation) or type(yielded) not in COMBINERS or not accumulator.has_one_use():
        return None, False
    terms = [v for v in yielded.operands if v is not accumulator]
    if len(terms) != 1:
        return None, False
    product = terms[0].owner
    if not isinstance(yielded, _ADDS) or not isinstance(product, _PRODUCTS):
        return type(yielded), False
    factors = [_widened(v) for v in product.operands]
    distinct = factors[0] is not factors[1] and all(v.owner is block for v in factors)
    return type(yielded), distinct and len(block.args) == 3


def _widened(value: SSAValue) -> SSAValue:
    """The value before conversions to a wider type."""
    while isinstance(value.owner, _WIDENINGS):
        value = value.owner.operands[0]
    return value
