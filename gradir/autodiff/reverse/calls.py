"""`func.call` in reverse: the callee becomes a pair `@f.fwd` -> (results, residuals) and `@f.bwd`(residuals, cotangents).

One pair per callee and activity, so that a function called a thousand times is differentiated once. A callee that would hand over more
than `MANY` values, because it calls others that do, is run again instead: functions that call each other twice, n levels deep, have 2^n
residuals, but n pairs.
"""

from __future__ import annotations

from xdsl.dialects.builtin import SymbolRefAttr, TensorType
from xdsl.ir import Attribute

from gradir.autodiff.reverse.cotangents import Cotangents
from gradir.autodiff.reverse.report import place
from gradir.autodiff.reverse.ruled_calls import run_again
from gradir.autodiff.reverse.sweep import Sweep, structured
from gradir.dialects.residuals import policy_of
from gradir.dialects.types import shape_of
from gradir.dialects.upstream import func

MANY = 256
"""Residuals of one call; ordinary ones have a few dozen."""


@structured(func.CallOp)
def forward_call(sweep: Sweep, op: func.CallOp) -> None:
    """Call the forward half; record the call of the backward half. `gradir.residuals = "none"`: as `ad.checkpoint`."""
    if policy_of(op, "all") != "all":
        run_again(sweep, op, op.callee.string_value(), "call")
        return
    unit = sweep.unit
    arguments = [sweep.value(v) for v in op.operands]
    wrt = tuple(v in unit.active for v in arguments)
    wanted = tuple(r in unit.activity for r in op.results)
    callee = unit.program.function(op.callee.string_value(), op)
    pair = unit.program.split(callee, wrt, wanted, unit.request)
    if len(pair.residual_types) > MANY:
        run_again(sweep, op, op.callee.string_value(), "call")
        return
    call = sweep.builder.op(
        func.CallOp, arguments, [*(r.type for r in op.results), *pair.residual_types], {"callee": SymbolRefAttr(pair.forward)}
    )
    results, residuals = call.results[: len(op.results)], call.results[len(op.results) :]
    unit.bind(op.results, results)
    if unit.program.measured is not None:
        unit.program.measured.add(op, 1, pair.own, 0)
        unit.program.measured.counted.update(residuals)
    unit.program.ledger.keep_all(residuals, pair.residuals, where=place("call", op), again=sweep.again)
    known = {name for kind in (*op.operand_types, *op.result_types) for name in _names(kind)}
    for name in {name for kind in pair.residual_types for name in _names(kind)} - known:
        unit.bound[name] = sweep.builder.block  # a size that the callee found: each call has its own

    def reverse(cts: Cotangents) -> None:
        if all(cts.get(r) is None for r, on in zip(results, wanted) if on):
            return
        cts.builder.loc = op.location
        given = [cts.get_or_zeros(r) for r, on in zip(results, wanted) if on]
        active = [v for v, on in zip(arguments, wrt) if on]
        back = cts.builder.op(func.CallOp, [*residuals, *given], [v.type for v in active], {"callee": SymbolRefAttr(pair.backward)})
        for v, ct in zip(active, back.results):
            cts.add(v, ct)

    sweep.tape.append(reverse)


def _names(kind: Attribute) -> list[str]:
    """The run-time sizes in a type."""
    return [name for name in shape_of(kind) if isinstance(name, str)] if isinstance(kind, TensorType) else []
