"""The batching sweep: copies ops so that values that differ from lane to lane have the lanes in front, and no others.

Ordinary ops go through the rule table; ops that more than their operands decide about register with `structured`: `loops`, `branches`,
`calls`, and, in `sizes_and_effects`, ops without lanes of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from gradir.autodiff.activity import TERMINATORS, free_values
from gradir.autodiff.batching.lanes import Lanes, Size
from gradir.autodiff.batching.rules import BATCH, spread
from gradir.autodiff.batching.scalars import is_scalar_op, scalar_op
from gradir.autodiff.reverse.functions import Program
from gradir.autodiff.reverse.indices import Indices
from gradir.autodiff.reverse.sweep import clone
from gradir.autodiff.tensors import INDEX
from gradir.dialects import nd
from gradir.dialects.types import shape_of
from gradir.dialects.upstream import arith, scf, tensor as upstream_tensor
from gradir.ir.builder import Builder
from gradir.ir.passes import error_at

Structured: TypeAlias = "Callable[[BatchSweep, Any, Builder], None]"
STRUCTURED: dict[type[Operation], Structured] = {}
"""Op -> how it is copied where something in it differs, or where only some lanes come."""


def structured(*kinds: type[Operation]) -> Callable[[Structured], Structured]:
    """Register how ops are copied that the rule table does not cover."""

    def register(copy: Structured) -> Structured:
        STRUCTURED.update(dict.fromkeys(kinds, copy))
        return copy

    return register


class BatchSweep:
    """`values` maps old values to new ones; those in `on` have lanes. `mask`: which lanes are on the way that is being copied."""

    def __init__(self, program: Program, n: Size) -> None:
        self.program, self.n = program, n
        self.values: dict[SSAValue, SSAValue] = {}
        self.on: set[SSAValue] = set()
        self.mask: SSAValue | None = None

    def value(self, old: SSAValue) -> SSAValue:
        return self.values.get(old, old)

    def has(self, old: SSAValue) -> bool:
        """Whether the old value differs from lane to lane."""
        return self.value(old) in self.on

    def bind(self, old: Sequence[SSAValue], new: Sequence[SSAValue], flags: Sequence[bool]) -> None:
        for a, b, flag in zip(old, new, flags, strict=True):
            self.values[a] = b
            if b.name_hint is None:
                b.name_hint = a.name_hint
            if flag:
                self.on.add(b)

    def lanes(self, builder: Builder) -> Lanes:
        return Lanes(builder, self.n)

    def with_lanes(self, builder: Builder, old: SSAValue) -> SSAValue:
        """The value with lanes."""
        new = self.value(old)
        return new if new in self.on else self.lanes(builder).spread(new)

    def handed_on(self, builder: Builder, olds: Sequence[SSAValue], flags: Sequence[bool]) -> list[SSAValue]:
        """Values with lanes where the flags say so."""
        return [self.with_lanes(builder, v) if flag else self.value(v) for v, flag in zip(olds, flags, strict=True)]

    def block(self, source: Block, into: Block) -> Operation:
        """Copy every op of `source` but its terminator, which is returned."""
        builder = Builder(into)
        for op in source.ops:
            builder.loc = op.location
            if isinstance(op, TERMINATORS):
                return op
            self.op(op, builder)
        raise AssertionError("a block without a terminator passed the verifier")

    def op(self, op: Operation, builder: Builder) -> None:
        """Copy one op, for all lanes if it reads anything that differs."""
        structured = STRUCTURED.get(type(op))
        differs = any(self.has(v) for v in op.operands) or (bool(op.regions) and any(self.has(v) for v in free_values(op)))
        if structured is not None and (differs or self.mask is not None or isinstance(op, nd.EmptyOp)):
            structured(self, op, builder)
            return
        if not differs:
            new = clone(op, self.values)
            builder.block.add_op(new)
            return
        on = [self.has(v) for v in op.operands]
        operands = [self.value(v) for v in op.operands]
        lanes = self.lanes(builder)
        if is_scalar_op(op):
            self.bind(op.results, [scalar_op(lanes, op, spread(lanes, operands, on))], [True])
            return
        rule = BATCH.get(type(op))
        found = None if rule is None else rule(lanes, op, operands, on)
        if found is not None:
            self.bind(op.results, found, [True] * len(found))
        elif hasattr(op, "decompose"):
            self._composite(op, builder)
        else:
            self._lane_by_lane(op, builder)

    def _composite(self, op: Any, builder: Builder) -> None:
        """Expand, then batch what it is made of."""
        primal = Block(arg_types=[v.type for v in op.operands])
        results = op.decompose(Builder(primal, op.location), list(primal.args))
        self.bind(primal.args, [self.value(v) for v in op.operands], [self.has(v) for v in op.operands])
        for inner in primal.ops:
            builder.loc = op.location
            self.op(inner, builder)
        self.bind(op.results, [self.value(v) for v in results], [self.has(v) for v in results])
        primal.drop_all_references()

    def _lane_by_lane(self, op: Operation, builder: Builder) -> None:
        """A loop over the lanes: for an op that has no way to do all at once."""
        lanes, at = self.lanes(builder), Indices(builder)
        if not all(isinstance(r.type, TensorType) for r in op.results):
            raise error_at(
                op,
                "this op has no meaning for many lanes",
                part="autodiff",
                code="AD013",
                expected="a batching rule (gradir.autodiff.batching.rules.batches), or results that are tensors",
                found=", ".join(str(r.type) for r in op.results) or "no results",
            )
        kinds = [lanes.lanes(r.type) for r in op.results]
        starts = [builder(nd.EmptyOp, lanes.t.sizes(shape_of(kind)), [kind]) for kind in kinds]
        body = Block(arg_types=[INDEX, *kinds])
        inner = Lanes(Builder(body, op.location), self.n)
        values = dict(self.values)
        for old in (*op.operands, *free_values(op)):
            if self.has(old):
                values[old] = self._one_lane(inner, old, body.args[0])
        copy = clone(op, values)
        body.add_op(copy)
        updated = [inner.t.update_at(r, whole, body.args[0]) for r, whole in zip(copy.results, body.args[1:])]
        inner.builder.op(scf.YieldOp, updated)
        loop = builder.op(scf.ForOp, [at.constant(0), self.count(builder), at.constant(1), *starts], kinds, regions=[Region(body)])
        self.bind(op.results, loop.results, [True] * len(loop.results))

    def _one_lane(self, lanes: Lanes, old: SSAValue, at: SSAValue) -> SSAValue:
        found = lanes.t.index_at(self.value(old), at)
        if isinstance(old.type, TensorType):
            return found
        scalar = lanes.builder(upstream_tensor.ExtractOp, [found], [found.type.element_type])  # pyright: ignore[reportAttributeAccessIssue]
        return lanes.builder(arith.IndexCastOp, [scalar], [INDEX]) if old.type == INDEX else scalar

    def count(self, builder: Builder) -> SSAValue:
        """The number of lanes."""
        if isinstance(self.n, int):
            return Indices(builder).constant(self.n)
        return self.lanes(builder).t.sizes((self.n,))[0]


def lane_kinds(sweep: BatchSweep, builder: Builder, olds: Sequence[SSAValue], flags: Sequence[bool]) -> list[Attribute]:
    """The types of these values, with lanes where the flags say so."""
    lanes = sweep.lanes(builder)
    return [lanes.lanes(v.type) if flag else v.type for v, flag in zip(olds, flags)]


def under(sweep: BatchSweep, pred: SSAValue, builder: Builder, run: Callable[[], Any]) -> Any:
    """`run`, for the lanes where `pred` holds."""
    outer = sweep.mask
    sweep.mask = pred if outer is None else sweep.lanes(builder).t.logical_and(outer, pred)
    try:
        return run()
    finally:
        sweep.mask = outer
