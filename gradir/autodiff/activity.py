"""Which values of a function lie on a differentiable path from the requested arguments to the requested results.

`Activity` holds both directions: a value is *varied* when it depends on an argument in `wrt`, *useful* when a wanted
result depends on it; only values that are both carry cotangents. One linear pass each way, loops to their fixed point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Block, Operation, SSAValue

from gradir.autodiff.registry import has_no_derivative
from gradir.autodiff.tensors import is_differentiable
from gradir.autodiff.untracked import untracked
from gradir.dialects import ad, nd
from gradir.dialects.upstream import func, linalg, scf
from gradir.ir.structure import single_block

TERMINATORS = (func.ReturnOp, scf.YieldOp, scf.ConditionOp, linalg.YieldOp)
BRANCHES = (scf.IfOp, scf.IndexSwitchOp)
"""Ops whose results are what one of their regions yields. Any other op with regions, loops left out, is looked at from outside: its
results depend on its operands and on what the regions capture, and it has a rule, or none (AD001)."""

Resolve = Callable[[func.CallOp], func.FuncOp]


def _stops(op: Operation) -> bool:
    """No derivative passes through `op`: a terminator, a request to stop, an op without one."""
    return isinstance(op, (*TERMINATORS, ad.StopGradientOp)) or has_no_derivative(op)


def blocks_flow(op: scf.ForOp | scf.WhileOp) -> list[tuple[Block, Sequence[SSAValue], Sequence[SSAValue]]]:
    """(block, its carried arguments, the values that enter them) for each region of a loop."""
    if isinstance(op, scf.ForOp):
        return [(op.body.block, op.body.block.args[1:], op.iter_args)]
    before, after = op.before_region.block, op.after_region.block
    condition = before.last_op
    assert isinstance(condition, scf.ConditionOp)
    return [(before, before.args, op.arguments), (after, after.args, condition.operands[1:])]


def carried_out(op: scf.ForOp | scf.WhileOp) -> Sequence[SSAValue]:
    """The values that leave the loop as its results, per iteration."""
    block = op.body.block if isinstance(op, scf.ForOp) else op.before_region.block
    last = block.last_op
    assert last is not None
    return last.operands if isinstance(op, scf.ForOp) else last.operands[1:]


@dataclass
class Activity:
    """`value in activity` when the value needs a cotangent."""

    resolve: Resolve
    varied: set[SSAValue] = field(default_factory=set[SSAValue])
    useful: set[SSAValue] = field(default_factory=set[SSAValue])

    def __contains__(self, value: SSAValue) -> bool:
        return value in self.varied and value in self.useful

    @classmethod
    def of(cls, function: func.FuncOp, arguments: Sequence[bool], results: Sequence[bool], resolve: Resolve) -> Activity:
        """Activity of `function` for the flagged arguments and results."""
        self = cls(resolve)
        block = single_block(function)
        self.varied.update(a for a, on in zip(block.args, arguments) if on and is_differentiable(a.type))
        self._forward(block)
        last = block.last_op
        assert last is not None
        self.useful.update(v for v, on in zip(last.operands, results) if on)
        self._backward(block)
        return self

    @classmethod
    def of_body(cls, block: Block, varied: Sequence[SSAValue], wanted: Sequence[bool], resolve: Resolve) -> Activity:
        """Activity of the scalar body of a loop nest, where the values in `varied` (arguments and captured ones) carry derivatives."""
        self = cls(resolve)
        self.varied.update(varied)
        self._forward(block)
        last = block.last_op
        assert last is not None
        self.useful.update(v for v, on in zip(last.operands, wanted) if on)
        self._backward(block)
        return self

    # forward: varied -----------------------------------------------------------------------------------------------

    def _mark(self, targets: Sequence[SSAValue], sources: Sequence[SSAValue]) -> None:
        self.varied.update(t for t, s in zip(targets, sources) if s in self.varied and is_differentiable(t.type))

    def _forward(self, block: Block) -> None:
        for op in block.ops:
            if _stops(op):
                continue
            if isinstance(op, nd.OptimizationBarrierOp):  # each result is its operand
                self._mark(op.results, op.operands)
                continue
            if isinstance(op, scf.ForOp | scf.WhileOp):
                self._forward_loop(op)
            elif isinstance(op, BRANCHES):
                for region in op.regions:
                    for inner in region.blocks:
                        self._forward(inner)
                        if inner.last_op is not None:
                            self._mark(op.results, inner.last_op.operands)
            elif any(v in self.varied for v in reads(op)):
                if (error := untracked(op)) is not None:
                    raise error
                self.varied.update(r for r in op.results if is_differentiable(r.type))

    def _forward_loop(self, op: scf.ForOp | scf.WhileOp) -> None:
        size = -1
        while size != len(self.varied):
            size = len(self.varied)
            for block, args, entering in blocks_flow(op):
                self._mark(args, entering)
                self._forward(block)
            first = blocks_flow(op)[0]
            last = blocks_flow(op)[-1][0].last_op
            assert last is not None
            self._mark(first[1], last.operands)
        self._mark(op.results, carried_out(op))
        if isinstance(op, scf.ForOp):  # without a trip, the initial values leave the loop
            self._mark(op.results, op.iter_args)

    # backward: useful ----------------------------------------------------------------------------------------------

    def _pull(self, sources: Sequence[SSAValue], targets: Sequence[SSAValue]) -> None:
        self.useful.update(s for s, t in zip(sources, targets) if t in self.useful)

    def _backward(self, block: Block) -> None:
        for op in reversed(list(block.ops)):
            if _stops(op):
                continue
            if isinstance(op, nd.OptimizationBarrierOp):
                self._pull([v for v in op.operands if v in self.varied], [r for v, r in zip(op.operands, op.results) if v in self.varied])
                continue
            if isinstance(op, scf.ForOp | scf.WhileOp):
                self._backward_loop(op)
            elif isinstance(op, BRANCHES):
                for region in op.regions:
                    for inner in region.blocks:
                        if inner.last_op is not None:
                            self._pull(inner.last_op.operands, op.results)
                        self._backward(inner)
            elif any(r in self.useful for r in op.results):
                self.useful.update(v for v in reads(op) if v in self.varied)

    def _backward_loop(self, op: scf.ForOp | scf.WhileOp) -> None:
        self._pull(carried_out(op), op.results)
        size = -1
        while size != len(self.useful):
            size = len(self.useful)
            for block, args, entering in reversed(blocks_flow(op)):
                self._backward(block)
                self._pull(entering, args)
            first = blocks_flow(op)[0]
            last = blocks_flow(op)[-1][0].last_op
            assert last is not None
            self._pull(last.operands, first[1])
            if isinstance(op, scf.ForOp):
                self._pull(last.operands, op.results)
                self._pull(op.iter_args, op.results)


def reads(op: Operation) -> Sequence[SSAValue]:
    """Operands, and what the regions capture."""
    return [*op.operands, *free_values(op)] if op.regions else op.operands


def free_values(op: Operation) -> list[SSAValue]:
    """Values that the regions of `op` read but do not define, in order of first use."""
    inside: set[SSAValue] = set()
    seen: dict[SSAValue, None] = {}
    for region in op.regions:
        for block in region.blocks:
            _free(block, inside, seen)
    return list(seen)


def free_in_block(block: Block) -> list[SSAValue]:
    """Values that `block` reads but does not define."""
    seen: dict[SSAValue, None] = {}
    _free(block, set(), seen)
    return list(seen)


def _free(block: Block, inside: set[SSAValue], seen: dict[SSAValue, None]) -> None:
    inside.update(block.args)
    for op in block.ops:
        for value in op.operands:
            if value not in inside:
                seen[value] = None
        for region in op.regions:
            for inner in region.blocks:
                _free(inner, inside, seen)
        inside.update(op.results)
