"""Loops in the body of a nest, on vectors: each lane runs the loop for itself.

A `scf.for` has the same trips in all lanes. A `scf.while` goes on as long as any lane does; lanes that are done keep what they had.
Conditions that are carried around the loop are integers as wide as the lanes, which is how the machine compares: 0 or -1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import IndexType, IntegerType, VectorType, i1, i32, i64
from xdsl.ir import Attribute, Block, Region, SSAValue

from gradir.dialects.upstream import arith, scf, vector
from gradir.lowering.lower_kernels.builder import LoopBuilder, number
from gradir.lowering.lower_kernels.tiles import NotCovered
from gradir.lowering.schedules.machine import element_bytes

if TYPE_CHECKING:
    from gradir.lowering.lower_kernels.bodies import Lanes

_OR = vector.CombiningKindAttr(vector.CombiningKindFlag.OR)


def runs_in_lanes(block: Block) -> bool:
    """Is the block of a loop arithmetic, in loops again perhaps?"""
    return all(
        op.name.split(".")[0] in ("arith", "math")
        or isinstance(op, scf.YieldOp | scf.ConditionOp)
        or (isinstance(op, scf.ForOp) and runs_in_lanes(op.body.block))
        for op in block.ops
    )


class _Carried:
    """How values of the loop travel from one iteration to the next."""

    def __init__(self, lanes: Lanes, kinds: Sequence[Attribute]) -> None:
        if len(lanes.shape) != 1:
            raise NotCovered("a loop in a body on a tile of several dimensions")
        self.lanes = lanes
        self.kinds = [lanes.type(kind) for kind in kinds]
        self.mask = lanes.type(i1)
        wide = any(element_bytes(kind) == 8 for kind in kinds if not isinstance(kind, IndexType))
        self.wide_mask = lanes.type(i64 if wide else i32)

    @property
    def types(self) -> list[Attribute]:
        return [self.wide_mask if kind == self.mask else kind for kind in self.kinds]

    def pack(self, b: LoopBuilder, value: SSAValue, kind: Attribute) -> SSAValue:
        value = b.splat(value, kind)
        return b(arith.ExtSIOp, [value], [self.wide_mask]) if kind == self.mask else value

    def unpack(self, b: LoopBuilder, value: SSAValue, kind: Attribute) -> SSAValue:
        return self.is_set(b, value) if kind == self.mask else value

    def is_set(self, b: LoopBuilder, wide: SSAValue) -> SSAValue:
        element = cast("VectorType[IntegerType]", self.wide_mask).element_type
        zero = b.splat(b.constant(number(0, element)), self.wide_mask)
        return b(arith.CmpiOp, [wide, zero], [self.mask], {"predicate": arith.integer_predicate("slt")})

    def all_of(self, b: LoopBuilder, values: Sequence[SSAValue]) -> list[SSAValue]:
        return [self.pack(b, v, kind) for v, kind in zip(values, self.kinds, strict=True)]

    def enter(self, block: Block, source: Block, packed: Sequence[SSAValue], old: Sequence[SSAValue]) -> LoopBuilder:
        """Run the ops of `source` but its terminator in `block`; `packed` stand for the arguments `old`."""
        lanes = self.lanes
        inner = lanes.b.nested(block)
        lanes.b = inner
        lanes.values.update((a, self.unpack(inner, v, kind)) for a, v, kind in zip(old, packed, self.kinds, strict=True))
        for op in list(source.ops)[:-1]:
            lanes.run(op)
        return inner


def _handed(lanes: Lanes, block: Block) -> list[SSAValue]:
    last = block.last_op
    assert last is not None
    return [lanes.get(v) for v in last.operands]


def run_for(lanes: Lanes, op: scf.ForOp) -> list[SSAValue]:
    """The results of a counted loop in all lanes."""
    bounds = [lanes.get(v) for v in (op.lb, op.ub, op.step)]
    if any(isinstance(v.type, VectorType) for v in bounds):
        raise NotCovered("a loop whose trips differ from lane to lane")
    outer, source = lanes.b, op.body.block
    carried = _Carried(lanes, [v.type for v in op.iter_args])
    inits = carried.all_of(outer, [lanes.get(v) for v in op.iter_args])
    block = Block(arg_types=[bounds[0].type, *carried.types])
    lanes.values[source.args[0]] = block.args[0]
    inner = carried.enter(block, source, block.args[1:], source.args[1:])
    inner.op(scf.YieldOp, carried.all_of(inner, _handed(lanes, source)))
    lanes.b = outer
    results = outer.op(scf.ForOp, [*bounds, *inits], carried.types, regions=[Region(block)]).results
    return [carried.unpack(outer, r, kind) for r, kind in zip(results, carried.kinds, strict=True)]


def run_while(lanes: Lanes, op: scf.WhileOp) -> list[SSAValue]:
    """The results of a loop with a condition: each lane's from where its own condition was false."""
    outer, before, after = lanes.b, op.before_region.block, op.after_region.block
    state, handed = _Carried(lanes, [v.type for v in op.arguments]), _Carried(lanes, [r.type for r in op.results])
    inits = state.all_of(outer, [lanes.get(v) for v in op.arguments])
    going = outer.splat(outer.constant(number(-1, cast("VectorType[IntegerType]", state.wide_mask).element_type)), state.wide_mask)

    first = Block(arg_types=[state.wide_mask, *state.types])
    inner = state.enter(first, before, first.args[1:], before.args)
    condition, *values = _handed(lanes, before)
    goes_on = inner(arith.AndIOp, [state.is_set(inner, first.args[0]), inner.splat(condition, state.mask)], [state.mask])
    any_lane = inner(vector.ReductionOp, [goes_on], [i1], {"kind": _OR})
    packed = [inner(arith.ExtSIOp, [goes_on], [state.wide_mask]), *first.args[1:], *handed.all_of(inner, values)]
    inner.op(scf.ConditionOp, [any_lane, *packed])

    second = Block(arg_types=[v.type for v in packed])
    kept, given = second.args[1 : 1 + len(inits)], second.args[1 + len(inits) :]
    inner = handed.enter(second, after, given, after.args)
    next_ = state.all_of(inner, _handed(lanes, after))
    active = state.is_set(inner, second.args[0])
    chosen = [inner(arith.SelectOp, [active, n, k], [n.type]) for n, k in zip(next_, kept, strict=True)]
    inner.op(scf.YieldOp, [second.args[0], *chosen])
    lanes.b = outer
    loop = outer.op(scf.WhileOp, [going, *inits], [v.type for v in packed], regions=[Region(first), Region(second)])
    results = loop.results[1 + len(inits) :]
    return [handed.unpack(outer, r, kind) for r, kind in zip(results, handed.kinds, strict=True)]
