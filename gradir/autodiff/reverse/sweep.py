"""The forward sweep: copies a block of the primal function and records how each active op is reversed.

Ordinary ops go through the rule table; `loops`, `while_loops`, `branches` and `calls` handle structured control flow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from xdsl.ir import Block, Operation, SSAValue

from gradir.autodiff.activity import TERMINATORS, Activity
from gradir.autodiff.registry import VJP, VjpRule, has_no_derivative
from gradir.autodiff.reverse.cotangents import Cotangents, Entry
from gradir.autodiff.tensors import is_differentiable
from gradir.dialects import ad, nd
from gradir.dialects.upstream import func
from gradir.dialects.upstream.effects import Effects, effects as effects_of
from gradir.dialects.upstream.named import generic_form
from gradir.ir.builder import Builder
from gradir.ir.copying import copy_op
from gradir.ir.passes import error_at

if TYPE_CHECKING:
    from gradir.autodiff.reverse.functions import Program


@dataclass
class Unit:
    """What one primal function's sweeps share."""

    program: Program
    activity: Activity
    request: str
    values: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    active: set[SSAValue] = field(default_factory=set[SSAValue])
    """Values of the *new* function that carry cotangents."""
    bound: dict[str, Block] = field(default_factory=dict[str, Block])
    """Run-time size symbols introduced here, and the block that binds each."""

    def bind(self, old: Iterable[SSAValue], new: Iterable[SSAValue]) -> None:
        """`new` stands for `old` from here on."""
        for a, b in zip(old, new):
            self.values[a] = b
            if b.name_hint is None:
                b.name_hint = a.name_hint
            if a in self.activity:
                self.active.add(b)

    def same_activity(self, pairs: Iterable[tuple[SSAValue, SSAValue]]) -> None:
        """New primal values are as active as those that they stand for."""
        for old, new in pairs:
            for marks in (self.activity.varied, self.activity.useful):
                if old in marks:
                    marks.add(new)


class Sweep:
    """Copies ops into `block`; `tape` collects the reversals. `again`: the ops run a second time, so their effects are left out."""

    def __init__(self, unit: Unit, block: Block, parent: Sweep | None = None, *, again: bool = False) -> None:
        self.unit, self.block, self.parent, self.again = unit, block, parent, again
        self.builder = Builder(block)
        self.tape: list[Entry] = []

    def child(self, block: Block) -> Sweep:
        return Sweep(self.unit, block, self, again=self.again)

    def value(self, old: SSAValue) -> SSAValue:
        return self.unit.values.get(old, old)

    def forward(self, block: Block) -> list[SSAValue]:
        """Copy every op of `block`; the new operands of its terminator."""
        for op in block.ops:
            self.builder.loc = op.location
            if isinstance(op, TERMINATORS):
                return [self.value(v) for v in op.operands]
            self._op(op)
        raise AssertionError("a block without a terminator passed the verifier")

    def _op(self, op: Operation) -> None:
        if self.again and is_effect(op):
            return
        on = any(r in self.unit.activity for r in op.results)
        structured = STRUCTURED.get(type(op))
        if on and structured is not None:
            structured(self, op)
            return
        if on and type(op) not in VJP and hasattr(op, "decompose"):
            self._composite(op)
            return
        new = self.copy(op)
        if on and not has_no_derivative(op) and not isinstance(op, ad.StopGradientOp):
            self.record(new, self.rule(op))

    def rule(self, op: Operation) -> VjpRule:
        """The rule of an active op; a missing one is an error, never a zero."""
        return rule_of(op, self.unit.request)

    def copy(self, op: Operation) -> Operation:
        """Clone `op` with its regions under the value map."""
        new = clone(op, self.unit.values, effects=not self.again)
        self.builder.block.add_op(new)
        self.unit.bind(op.results, new.results)
        if isinstance(new, nd.BindOp):  # the primal program binds sizes too: that of a derivative does
            self.unit.bound[new.sym.data] = self.builder.block
        return new

    def record(self, op: Operation, rule: VjpRule) -> None:
        """Reverse `op`, already in place, by `rule`."""
        results = op.results

        def reverse(cts: Cotangents) -> None:
            found = tuple(cts.get(result) for result in results)
            if all(ct is None for ct in found):
                return
            ct: Any = found[0] if len(found) == 1 else found
            cts.builder.loc = op.location
            block = cts.builder.block
            before = block.last_op
            if isinstance(op, nd.SliceOp) and cts.add_slice(op, ct):
                return
            if isinstance(op, nd.IndexAtOp):
                cts.add_at(op.operand, op.at, op.number("dim"), ct)
            else:
                for operand, contribution in zip(op.operands, rule(cts.t, op, ct)):
                    if contribution is not None and operand in cts.active:
                        cts.add(operand, contribution() if callable(contribution) else contribution)
            self.unit.program.ledger.reverses(before, block, op)

        self.tape.append(reverse)

    def _composite(self, op: Any) -> None:
        """Expand in place; every float inside counts as active."""
        before = self.block.last_op
        results = op.decompose(self.builder, [self.value(v) for v in op.operands])
        self.unit.bind(op.results, results)
        new = before.next_op if before is not None else self.block.first_op
        while new is not None:
            flows = not has_no_derivative(new) and not isinstance(new, ad.StopGradientOp)
            if flows and any(is_differentiable(r.type) for r in new.results):
                reached = any(v in self.unit.active for v in new.operands)
                if reached:
                    self.unit.active.update(r for r in new.results if is_differentiable(r.type))
                    self.record(new, self.rule(new))
            new = new.next_op


def rule_of(op: Operation, request: str) -> VjpRule:
    """The reverse rule of an op on an active path. Error AD001 if it has none."""
    found = VJP.get(type(op))
    if found is None and isinstance(op, ad.Request):
        raise error_at(
            op,
            f"{op.callee} is differentiated here, and its own derivative needs this one",
            part="autodiff",
            code="AD006",
            expected="requests without cycles",
            found=f"a cycle through {request}",
            hint="take the derivative in a function that nothing in it calls",
        )
    if found is None:
        raise error_at(
            op,
            "no derivative rule for this op, and it lies on an active path",
            part="autodiff",
            code="AD001",
            expected="a rule registered with gradir.autodiff.registry.vjp, or skip(op, reason)",
            found=f"none, while resolving {request}",
            hint=generic_form(
                op,
                "write one, `@vjp(Op)` on `def rule(t, op, ct)`, which returns a cotangent (or None) per operand; declare a derivative "
                "that is 0 with skip(Op, reason); or cut the path with ad.stop_gradient",
            ),
        )
    return found


def is_effect(op: Operation) -> bool:
    """Prints and assertions: what happens in program order and gives nothing."""
    return not op.results and not op.regions and Effects.ORDER in effects_of(op) and Effects.WRITE not in effects_of(op)


def clone(op: Operation, values: dict[SSAValue, SSAValue], *, effects: bool = True) -> Operation:
    """A copy of `op` and its regions; `values` maps operands and learns the new results and block arguments.

    Without `effects`, the prints and assertions in its regions are left out.
    """
    return copy_op(op, values, without=None if effects else is_effect)


STRUCTURED: dict[type[Operation], Callable[[Sweep, Any], None]] = {}
"""Filled by `loops`, `while_loops`, `branches` and `calls`; `func.CallOp` included."""


def structured(kind: type[Operation]) -> Callable[[Callable[[Sweep, Any], None]], Callable[[Sweep, Any], None]]:
    """Register how an active op with regions (or a call) is copied and recorded."""

    def register(handler: Callable[[Sweep, Any], None]) -> Callable[[Sweep, Any], None]:
        STRUCTURED[kind] = handler
        return handler

    return register


__all__ = ["STRUCTURED", "Sweep", "Unit", "clone", "func", "structured"]
