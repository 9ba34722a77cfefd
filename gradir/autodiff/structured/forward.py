"""`linalg.generic` in forward mode: beside the nest, one nest for the tangents of each output, in which the body runs with tangents.

%y = generic ins(%x, %w) outs(%z) { .. yield %s }
%dy = generic ins(%x, %w, %dx, %dw) outs(%dz) { .. yield %ds }
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineMap

from gradir.autodiff.activity import Activity
from gradir.autodiff.forward.sweep import STRUCTURED, ForwardSweep
from gradir.autodiff.reverse.sweep import Unit, clone
from gradir.autodiff.structured.bodies import captured_floats, wins_over
from gradir.autodiff.structured.extrema import count_winners, elementwise, shares
from gradir.autodiff.structured.kinds import Extremum, Kind, Point, kinds_of
from gradir.autodiff.structured.reverse import refuse_complex
from gradir.autodiff.tensors import TensorBuilder, is_differentiable
from gradir.dialects.nests import Nest
from gradir.dialects.types import element_of, is_static
from gradir.dialects.upstream import linalg, tensor as tensors
from gradir.ir.builder import Builder


def forward_generic(sweep: ForwardSweep, op: linalg.GenericOp, builder: Builder) -> None:
    """The nest, and the nests of its tangents."""
    new = clone(op, sweep.values)
    assert isinstance(new, linalg.GenericOp)
    builder.block.add_op(new)
    refuse_complex(new)
    nest = Nest.of(new)
    moving = {v: t for v in (*nest.operands, *captured_floats(nest)) if (t := sweep.tangents.get(v)) is not None}
    if not moving:
        return
    for j, (kind, result, old) in enumerate(zip(kinds_of(nest), new.results, op.results)):
        assert kind is not None, "spelled out before"
        if old in sweep.activity:
            sweep.set_tangent(result, _Tangents(sweep, nest, moving, builder).of(j, kind, result))


STRUCTURED[linalg.GenericOp] = forward_generic


@dataclass
class _Tangents:
    """The nest whose tangents are asked for; `moving` maps operands and captured scalars to their tangents."""

    sweep: ForwardSweep
    nest: Nest
    moving: dict[SSAValue, SSAValue]
    builder: Builder

    def of(self, j: int, kind: Kind, result: SSAValue) -> SSAValue:
        """The tangent of output j."""
        nest, map_ = self.nest, self.nest.output_maps[j]
        argument = nest.body.args[len(nest.inputs) + j]
        initial = nest.outputs[j]
        more: list[tuple[SSAValue, AffineMap]] = []
        if isinstance(kind, Extremum):
            weights = self._weights(j, kind, result)
            more = [(result, map_), (weights[0], map_)]
            start = weights[1]
        elif isinstance(kind, Point):
            start = self._nothing(result)
        else:
            start = self.moving.get(initial)
            start = TensorBuilder(self.builder).zeros_as(result, result.type) if start is None else start
        block, tangents = self._body(more, result, argument if not isinstance(kind, Point | Extremum) else None)
        end = Builder(block, self.builder.loc)
        t = TensorBuilder(end)
        if isinstance(kind, Extremum):
            won = wins_over(t, tangents.value(kind.term), block.args[-3])
            moved = t.mul_strong(tangents.tangent(end, kind.term), block.args[-2])
            value = t.add(block.args[-1], t.where(won, moved))
        else:
            last = nest.body.last_op
            assert last is not None
            value = tangents.tangent(end, last.operands[j])
        end.op(linalg.YieldOp, [value])
        inputs = [*nest.operands, *(self.moving[v] for v in self._operands()), *(v for v, _ in more)]
        maps = [*nest.maps, *(m for v, m in zip(nest.operands, nest.maps) if v in self.moving), *(m for _, m in more), map_]
        (found,) = Nest(tuple(inputs), (start,), tuple(maps), nest.parallel, block).emit(self.builder)
        return found

    def _operands(self) -> list[SSAValue]:
        return [v for v in self.nest.operands if v in self.moving]

    def _nothing(self, like: SSAValue) -> SSAValue:
        """A destination that is written everywhere."""
        if is_static(like):
            return self.builder(tensors.EmptyOp, [], [like.type])
        return TensorBuilder(self.builder).zeros_as(like, like.type)

    def _body(self, more: list[tuple[SSAValue, AffineMap]], result: SSAValue, accumulator: SSAValue | None) -> tuple[Block, ForwardSweep]:
        """The body with tangents; its arguments: the nest's, tangents of those that move, `more`, the output's tangent so far."""
        nest, own = self.nest, list(self.nest.body.args)
        moved = [k for k, v in enumerate(nest.operands) if v in self.moving]
        kinds = [*(a.type for a in own), *(own[k].type for k in moved), *(element_of(v) for v, _ in more), element_of(result)]
        block = Block(arg_types=kinds)
        captured = [v for v in captured_floats(nest) if v in self.moving]
        outputs = own[len(nest.inputs) :]
        reads = [own[k] for k in moved if own[k] not in outputs or all(nest.parallel)]
        varied = [*captured, *(a for a in reads if is_differentiable(a.type)), *([accumulator] if accumulator is not None else [])]
        last = nest.body.last_op
        assert last is not None
        activity = Activity.of_body(nest.body, varied, [True] * len(last.operands), self.sweep.program.resolve)
        inner = ForwardSweep(self.sweep.program, activity, self.sweep.request)
        inner.bind(own, block.args[: len(own)])
        for k, tangent in zip(moved, block.args[len(own) :]):
            if own[k] in activity.varied and own[k] is not accumulator:
                inner.tangents[block.args[k]] = tangent
        if accumulator is not None:
            inner.tangents[inner.value(accumulator)] = block.args[-1]
        for v in captured:
            inner.tangents[v] = self.moving[v]
        for term in self._terms():
            activity.useful.add(term)
        inner.block(nest.body, block)
        return block, inner

    def _terms(self) -> list[SSAValue]:
        return [kind.term for kind in kinds_of(self.nest) if isinstance(kind, Extremum)]

    def _weights(self, j: int, kind: Extremum, result: SSAValue) -> tuple[SSAValue, SSAValue]:
        """1 / n for each winner; the tangent that the initial value brings."""
        builder, nest = self.builder, self.nest
        initial = nest.outputs[j]
        t = TensorBuilder(builder)
        unit = Unit(self.sweep.program, self.sweep.activity, self.sweep.request)
        count = count_winners(builder, unit, nest, j, kind, result)
        one = elementwise(builder, [result], result, lambda u, v: u.full(1.0, v[0].type))
        tangent = self.moving.get(initial)
        found = shares(builder, initial, kind, result, count, one, split=tangent is not None)
        if found.initial is None or tangent is None:
            return found.each, t.zeros_as(result, result.type)
        return found.each, elementwise(builder, [tangent, found.initial], result, lambda u, v: u.mul_strong(v[0], v[1]))
