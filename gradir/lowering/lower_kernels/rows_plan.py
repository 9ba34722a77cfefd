"""What the generators of `rows` kernels share: the ops with their sections, the roles of dimensions, terms and accumulators."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from gradir.dialects.upstream import linalg
from gradir.lowering.groups import Group, Section
from gradir.lowering.lower_kernels.binding import BoundOp, Kernel, Space, bind, compute
from gradir.lowering.lower_kernels.bodies import Combination, combine, identity, is_identity, is_plain, narrowed, widened
from gradir.lowering.lower_kernels.builder import LoopBuilder
from gradir.lowering.lower_kernels.collapse import collapse
from gradir.lowering.lower_kernels.loops import adds_in_f64
from gradir.lowering.lower_kernels.tiles import MOST_LANES, NotCovered, Tile, stride_along
from gradir.lowering.schedules.machine import Machine, element_bytes


@dataclass(frozen=True)
class RowsPlan:
    """The ops of a rows kernel with their sections, and the roles of its dimensions."""

    kernel: Kernel
    space: Space
    sections: tuple[Section, ...]
    outer: tuple[int, ...]
    inner: tuple[int, ...]
    vector: int
    lanes: int
    accumulators: int
    parallel: bool

    @property
    def ops(self) -> list[tuple[BoundOp, Section]]:
        return list(zip(self.space.ops, self.sections))

    def has(self, *forms: str) -> bool:
        return any(s.form in forms for s in self.sections)

    def keeps_inner(self, op: BoundOp) -> bool:
        """Does a reduction over rows leave one value per position in the row?"""
        return not op.reduced & set(self.inner) and bool(set(op.dims) & set(self.inner))

    def wide(self, op: BoundOp) -> bool:
        """Is the accumulator of this sum f64?"""
        return adds_in_f64(op, self.space)

    def term(self, b: LoopBuilder, op: BoundOp, tile: Tile, known: dict[SSAValue, SSAValue]) -> SSAValue:
        """What one element (or vector) adds to a reduction, before it is widened."""
        return compute(b, self.kernel, op, tile, known, None, joined(op).term)

    def start(self, b: LoopBuilder, op: BoundOp, tile: Tile, wide: bool) -> SSAValue:
        """An accumulator that holds nothing yet."""
        scalar = b.constant(identity(joined(op).combiner, op.element))
        return widened(b, b.splat(scalar, tile.type(op.element)), wide)

    def finish(self, b: LoopBuilder, op: BoundOp, total: SSAValue, wide: bool) -> SSAValue:
        """The result of a reduction: narrowed, joined with the initial value."""
        total = narrowed(b, total, wide)
        if op.init is None or is_identity(op.init, joined(op).combiner):
            return total
        return combine(b, joined(op).combiner, b.splat(op.init, total.type), total)


def joined(op: BoundOp) -> Combination:
    """How a reduction combines."""
    if op.combination is None:
        raise NotCovered("a reduction that is no combination of terms")
    return op.combination


def make_plan(kernel: Kernel, group: Group, machine: Machine) -> RowsPlan:
    """Bind the group, join neighbouring dimensions, find the vector dimension."""
    roles = group.rows
    assert roles is not None
    space = bind(kernel, group)
    if not all(is_plain(op.op.body.block) for op in space.ops if isinstance(op.op, linalg.GenericOp)):
        raise NotCovered("a body with regions")
    for dims in (roles.inner, roles.outer):
        places = sorted({space.place[d] for d in dims})
        if places and places[-1] - places[0] == len(places) - 1:
            space = collapse(kernel, space, places)
    outer = tuple(sorted({space.place[d] for d in roles.outer}))
    inner = tuple(sorted({space.place[d] for d in roles.inner}))
    vector = _vector_dim(space)
    tile = kernel.schedule.field("tile")
    size = max(_bytes(op) for op in space.ops)
    lanes = tile[1] if len(tile) == 2 else machine.lanes_of(size)
    accumulators = tile[0] if len(tile) == 2 else 4
    if any(i is not None and i.element == i1 for op in space.ops for i in op.used):  # booleans in memory are read one by one
        lanes = min(lanes, MOST_LANES // accumulators)
    parallel = bool(kernel.schedule.field("parallel")) and bool(outer)
    return RowsPlan(kernel, space, roles.sections, outer, inner, vector, lanes, accumulators, parallel)


def _bytes(op: BoundOp) -> int:
    return element_bytes(op.element)


def _vector_dim(space: Space) -> int:
    """The dimension along which most operands in memory lie side by side; the last one of equals."""
    produced = space.produced
    operands = [i for op in space.ops for i in op.used if i is not None and i.memory not in produced]
    operands += [op.output for op in space.ops if op.stored]

    def score(dim: int) -> tuple[bool, int, int]:
        return space.extents[dim] != 1, sum(stride_along(o, dim) == 1 for o in operands), dim

    return max(range(len(space.extents)), key=score)
