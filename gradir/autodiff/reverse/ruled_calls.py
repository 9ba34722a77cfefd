"""Calls with rules of their own in reverse: `ad.custom_vjp`, `ad.custom_jvp`, and `ad.checkpoint`, which runs its callee again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import SymbolRefAttr, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from gradir.autodiff.linearity import require_linear
from gradir.autodiff.reverse.cotangents import Cotangents
from gradir.autodiff.reverse.report import place
from gradir.autodiff.reverse.sweep import Sweep, structured
from gradir.autodiff.tensors import TensorBuilder, is_differentiable
from gradir.dialects import ad, nd
from gradir.dialects.types import shape_of
from gradir.dialects.upstream import func
from gradir.ir.builder import Builder

if TYPE_CHECKING:
    from gradir.autodiff.reverse.functions import Program


def call(builder: Builder, name: str, operands: Sequence[SSAValue], kinds: Sequence[Attribute]) -> Operation:
    """`func.call @name(operands)`."""
    return builder.op(func.CallOp, list(operands), list(kinds), {"callee": SymbolRefAttr(name)})


def moving(values: Sequence[SSAValue]) -> list[SSAValue]:
    """The values that have tangents and cotangents."""
    return [v for v in values if is_differentiable(v.type)]


@structured(ad.CustomVjpOp)
def forward_custom_vjp(sweep: Sweep, op: ad.CustomVjpOp) -> None:
    """Run the caller's forward function; record its backward function."""
    unit = sweep.unit
    arguments = [sweep.value(v) for v in op.operands]
    forward = unit.program.function(op.rule("forward"), op)
    run = call(sweep.builder, op.rule("forward"), arguments, forward.function_type.outputs.data)
    results, residuals = run.results[: len(op.results)], run.results[len(op.results) :]
    unit.bind(op.results, results)
    for value in residuals:
        where, why = place(f"call of @{op.rule('forward')}", op), f"the rule @{op.rule('forward')} returns it for @{op.rule('backward')}"
        unit.program.ledger.keep(value, value, where=where, why=why, again=sweep.again)

    def reverse(cts: Cotangents) -> None:
        if all(cts.get(r) is None for r in results):
            return
        cts.builder.loc = op.location
        given = [cts.get_or_zeros(r) for r in moving(results)]
        targets = moving(arguments)
        for value, ct in zip(targets, call(cts.builder, op.rule("backward"), [*residuals, *given], [v.type for v in targets]).results):
            cts.add(value, ct)

    sweep.tape.append(reverse)


@structured(ad.CustomJvpOp)
def forward_custom_jvp(sweep: Sweep, op: ad.CustomJvpOp) -> None:
    """The results are those of the caller's tangent function, as in forward mode, without tangents; in reverse, its transpose."""
    unit = sweep.unit
    arguments = [sweep.value(v) for v in op.operands]
    rule = unit.program.function(op.rule("tangents"), op)
    still = [TensorBuilder(sweep.builder).zeros(v.type) for v in moving(arguments)]
    run = call(sweep.builder, op.rule("tangents"), [*arguments, *still], rule.function_type.outputs.data)
    results = run.results[: len(op.results)]
    unit.bind(op.results, results)
    name = transposed(unit.program, op, unit.request)

    def reverse(cts: Cotangents) -> None:
        if all(cts.get(r) is None for r in results):
            return
        cts.builder.loc = op.location
        targets = moving(arguments)
        zeros = [cts.t.zeros(v.type) for v in targets]
        given = [cts.get_or_zeros(r) for r in moving(results)]
        operands = [*arguments, *zeros, *(_unused(cts, r) for r in results), *given]
        for value, ct in zip(targets, call(cts.builder, name, operands, [v.type for v in targets]).results):
            cts.add(value, ct)

    sweep.tape.append(reverse)


def _unused(cts: Cotangents, result: SSAValue) -> SSAValue:
    """The cotangent of a primal result of the tangent function: none, whatever its type."""
    return cts.t.emit(nd.EmptyOp, cts.t.sizes(shape_of(result)), result.type)


def transposed(program: Program, op: ad.CustomJvpOp, request: str) -> str:
    """`@rule.vjp(arguments, tangents, cotangents of all results) -> cotangents of the tangents`; made once."""
    rule = program.function(op.rule("tangents"), op)
    count, first = len(op.operands), len(op.results)
    inputs, outputs = rule.function_type.inputs.data, rule.function_type.outputs.data
    name = f"{rule.sym_name.data}.transposed"
    if name not in program.functions:
        seeds = range(first, len(outputs))
        program.combined(rule, range(count, len(inputs)), seeds=seeds, given=True, name=name, request=request, keep_results=False)
        block = program.functions[name].body.block
        require_linear(op, rule.sym_name.data, block, block.args[count : len(inputs)], program.resolve)
    return name


@structured(ad.CheckpointOp)
def forward_checkpoint(sweep: Sweep, op: ad.CheckpointOp) -> None:
    """Run the callee as it is; in reverse, its forward half behind a barrier that waits for the cotangents, then its backward half."""
    run_again(sweep, op, op.rule("callee"), "checkpoint")


def run_again(sweep: Sweep, op: ad.CheckpointOp | func.CallOp, name: str, what: str) -> None:
    """A call of `@name` in place of `op` of which the arguments alone are kept; `what` it is called in the residual report."""
    unit = sweep.unit
    arguments = [sweep.value(v) for v in op.operands]
    results = call(sweep.builder, name, arguments, [r.type for r in op.results]).results
    unit.bind(op.results, results)
    wrt = tuple(v in unit.active for v in arguments)
    wanted = tuple(r in unit.activity for r in op.results)
    callee = unit.program.function(name, op)

    def reverse(cts: Cotangents) -> None:
        seeds = [r for r, on in zip(results, wanted) if on]
        if all(cts.get(r) is None for r in seeds):
            return
        cts.builder.loc = op.location
        pair = unit.program.split(callee, wrt, wanted, unit.request)
        if unit.program.measured is not None:
            unit.program.measured.add(op, 1, pair.own, 0)
        given = [cts.get_or_zeros(r) for r in seeds]
        tensors = [v for v in arguments if isinstance(v.type, TensorType)]
        held = cts.builder.op(nd.OptimizationBarrierOp, [*tensors, *given], [v.type for v in (*tensors, *given)]).results
        kept = dict(zip(tensors, held))
        again = call(cts.builder, pair.forward, [kept.get(v, v) for v in arguments], [*(r.type for r in results), *pair.residual_types])
        unit.program.ledger.keep_all(again.results[len(results) :], pair.residuals, where=place(what, op), again=True)
        active = [v for v, on in zip(arguments, wrt) if on]
        back = [*again.results[len(results) :], *held[len(tensors) :]]
        for value, ct in zip(active, call(cts.builder, pair.backward, back, [v.type for v in active]).results):
            cts.add(value, ct)

    sweep.tape.append(reverse)
