"""The forward sweep: copies a block of the primal function with a tangent beside every active value.

Loops carry tangents beside their values, branches return them, calls go to forward-mode functions of the callee. No residual is saved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from gradir.autodiff.activity import TERMINATORS, Activity
from gradir.autodiff.forward import linear
from gradir.autodiff.forward.transposition import tangents_of
from gradir.autodiff.names import name_after
from gradir.autodiff.registry import JVP, VJP, has_no_derivative
from gradir.autodiff.reverse.functions import Program
from gradir.autodiff.reverse.ruled_calls import call, moving
from gradir.autodiff.reverse.sweep import clone, rule_of
from gradir.autodiff.spell_out import activity_with_nests
from gradir.autodiff.tensors import TensorBuilder, is_differentiable
from gradir.dialects import ad, nd
from gradir.dialects.upstream import func, scf
from gradir.ir.builder import Builder, new_function

REGISTERED = (linear,)
"""Importing these registers their rules."""


class ForwardSweep:
    """Copies ops; `values` maps old values to new ones, `tangents` new values to their tangents (none: zero)."""

    def __init__(self, program: Program, activity: Activity, request: str) -> None:
        self.program, self.activity, self.request = program, activity, request
        self.values: dict[SSAValue, SSAValue] = {}
        self.tangents: dict[SSAValue, SSAValue] = {}

    def value(self, old: SSAValue) -> SSAValue:
        return self.values.get(old, old)

    def bind(self, old: Sequence[SSAValue], new: Sequence[SSAValue]) -> None:
        for a, b in zip(old, new, strict=True):
            self.values[a] = b
            if b.name_hint is None:
                b.name_hint = a.name_hint

    def set_tangent(self, new: SSAValue, tangent: SSAValue) -> None:
        """The tangent of a new value; the tangent of `%x` is called `%dx`."""
        self.tangents[new] = tangent
        name_after(tangent, new)

    def tangent(self, builder: Builder, old: SSAValue) -> SSAValue:
        """The tangent of an old value, zeros where nothing contributes."""
        new = self.value(old)
        found = self.tangents.get(new)
        return TensorBuilder(builder).zeros_as(new, new.type) if found is None else found

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
        """Copy one op and append the tangents of its results."""
        on = any(r in self.activity for r in op.results)
        structured = STRUCTURED.get(type(op))
        if on and structured is not None:
            structured(self, op, builder)
            return
        if on and type(op) not in VJP and type(op) not in JVP and hasattr(op, "decompose"):
            self._composite(op, builder)
            return
        new = clone(op, self.values)
        builder.block.add_op(new)
        if not on or has_no_derivative(op) or isinstance(op, ad.StopGradientOp):
            return
        given = {k: t for k, v in enumerate(new.operands) if (t := self.tangents.get(v)) is not None}
        if not given:
            return
        rule = JVP.get(type(op))
        if rule is not None:
            found = rule(TensorBuilder(builder), new, given)
        else:
            own = new.callee.data if isinstance(new, nd.CustomCallOp) else ""
            found = tangents_of(self.program, builder, new, rule_of(op, self.request), given, self.request, own=own)
        for result, tangent in zip(new.results, found, strict=True):
            if tangent is not None:
                self.set_tangent(result, tangent)

    def _composite(self, op: Any, builder: Builder) -> None:
        """Expand, then carry tangents through what it is made of; every float in it counts as active."""
        primal = Block(arg_types=[v.type for v in op.operands])
        results = op.decompose(Builder(primal, op.location), list(primal.args))
        for inner in primal.walk():
            for value in (*inner.results, *(a for region in inner.regions for b in region.blocks for a in b.args)):
                if is_differentiable(value.type):
                    self.activity.varied.add(value)
                    self.activity.useful.add(value)
        self.bind(primal.args, [self.value(v) for v in op.operands])
        for inner in primal.ops:
            builder.loc = op.location
            self.op(inner, builder)
        self.bind(op.results, [self.value(v) for v in results])
        primal.drop_all_references()


Structured = Callable[[ForwardSweep, Any, Builder], None]


def _for(sweep: ForwardSweep, op: scf.ForOp, builder: Builder) -> None:
    """The loop carries the tangents of active values behind them."""
    source = op.body.block
    on = [k for k, (a, r) in enumerate(zip(source.args[1:], op.results)) if a in sweep.activity or r in sweep.activity]
    body = Block(arg_types=[*(a.type for a in source.args), *(source.args[1 + k].type for k in on)])
    starts = [sweep.tangent(builder, op.iter_args[k]) for k in on]
    operands = [sweep.value(v) for v in op.operands]
    count = len(source.args)
    sweep.bind(source.args, body.args[:count])
    for k, tangent in zip(on, body.args[count:]):
        sweep.set_tangent(body.args[1 + k], tangent)
    last = sweep.block(source, body)
    _hand_on(sweep, last, last.operands, [last.operands[k] for k in on], body)
    kinds = [*(r.type for r in op.results), *(v.type for v in starts)]
    new = builder.op(scf.ForOp, [*operands, *starts], kinds, regions=[Region(body)], attributes=op.attributes)
    _results(sweep, op, new, on)


def _while(sweep: ForwardSweep, op: scf.WhileOp, builder: Builder) -> None:
    """Both regions take and hand on the tangents of active values; the condition does not depend on them."""
    before, after = op.before_region.block, op.after_region.block
    condition = before.last_op
    assert condition is not None
    entering = [k for k, a in enumerate(before.args) if a in sweep.activity]
    forwarded = condition.operands[1:]
    leaving = [k for k, (a, r) in enumerate(zip(after.args, op.results)) if a in sweep.activity or r in sweep.activity]
    starts = [sweep.tangent(builder, op.operands[k]) for k in entering]
    operands = [sweep.value(v) for v in op.operands]

    first = Block(arg_types=[*(a.type for a in before.args), *(before.args[k].type for k in entering)])
    sweep.bind(before.args, first.args[: len(before.args)])
    for k, tangent in zip(entering, first.args[len(before.args) :]):
        sweep.set_tangent(first.args[k], tangent)
    sweep.block(before, first)
    _hand_on(sweep, condition, condition.operands, [forwarded[k] for k in leaving], first)

    second = Block(arg_types=[*(a.type for a in after.args), *(after.args[k].type for k in leaving)])
    sweep.bind(after.args, second.args[: len(after.args)])
    for k, tangent in zip(leaving, second.args[len(after.args) :]):
        sweep.set_tangent(second.args[k], tangent)
    last = sweep.block(after, second)
    _hand_on(sweep, last, last.operands, [last.operands[k] for k in entering], second)

    kinds = [*(r.type for r in op.results), *(op.results[k].type for k in leaving)]
    new = builder.op(scf.WhileOp, [*operands, *starts], kinds, op.properties, [Region(first), Region(second)], op.attributes)
    _results(sweep, op, new, leaving)


def _branches(sweep: ForwardSweep, op: scf.IfOp | scf.IndexSwitchOp, builder: Builder) -> None:
    """Every branch returns the tangents of active results behind them."""
    on = [k for k, r in enumerate(op.results) if r in sweep.activity]
    regions: list[Region] = []
    for region in op.regions:
        block = Block()
        last = sweep.block(region.block, block)
        _hand_on(sweep, last, last.operands, [last.operands[k] for k in on], block)
        regions.append(Region(block))
    kinds = [*(r.type for r in op.results), *(op.results[k].type for k in on)]
    new = builder.op(type(op), [sweep.value(op.operands[0])], kinds, op.properties, regions, op.attributes)
    _results(sweep, op, new, on)


def _call(sweep: ForwardSweep, op: func.CallOp, builder: Builder) -> None:
    """A call of the callee's forward-mode function; of the callee itself when no argument moves."""
    arguments = [sweep.value(v) for v in op.operands]
    wrt = tuple(v in sweep.tangents for v in arguments)
    wanted = tuple(r in sweep.activity for r in op.results)
    if not any(wrt):
        sweep.bind(op.results, builder.op(func.CallOp, arguments, [r.type for r in op.results], op.properties).results)
        return
    callee = sweep.program.function(op.callee.string_value(), op)
    name = forward_function(sweep.program, callee, wrt, wanted, sweep.request)
    on = [k for k, flag in enumerate(wanted) if flag]
    operands = [*arguments, *(sweep.tangents[v] for v in arguments if v in sweep.tangents)]
    kinds = [*(r.type for r in op.results), *(op.results[k].type for k in on)]
    _results(sweep, op, call(builder, name, operands, kinds), on)


def _checkpoint(sweep: ForwardSweep, op: ad.CheckpointOp, builder: Builder) -> None:
    """Forward mode saves nothing: a call."""
    plain = func.CallOp.create(
        operands=list(op.operands),
        result_types=[r.type for r in op.results],
        properties={"callee": SymbolRefAttr(op.rule("callee"))},
        location=op.location,
    )
    for old, new in zip(op.results, plain.results):
        for marks in (sweep.activity.varied, sweep.activity.useful):
            if old in marks:
                marks.add(new)
    _call(sweep, plain, builder)
    sweep.bind(op.results, [sweep.value(r) for r in plain.results])
    plain.drop_all_references()


def _custom_jvp(sweep: ForwardSweep, op: ad.CustomJvpOp, builder: Builder) -> None:
    """The caller's tangent function."""
    arguments = [sweep.value(v) for v in op.operands]
    operands = [*arguments, *(sweep.tangent(builder, v) for v in moving(op.operands))]
    on = [k for k, r in enumerate(op.results) if is_differentiable(r.type)]
    kinds = [*(r.type for r in op.results), *(op.results[k].type for k in on)]
    _results(sweep, op, call(builder, op.rule("tangents"), operands, kinds), on)


def _custom_vjp(sweep: ForwardSweep, op: ad.CustomVjpOp, builder: Builder) -> None:
    """The caller's backward function, transposed."""
    forward = sweep.program.function(op.rule("forward"), op)
    new = clone(op, sweep.values)
    builder.block.add_op(new)

    def rule(t: TensorBuilder, primal: Operation, ct: Any) -> list[SSAValue | None]:
        run = call(t.builder, op.rule("forward"), primal.operands, forward.function_type.outputs.data)
        given = [c for c in (ct if isinstance(ct, tuple) else (ct,)) if c is not None]
        residuals = run.results[len(primal.results) :]
        back = call(t.builder, op.rule("backward"), [*residuals, *given], [v.type for v in moving(primal.operands)])
        found = iter(back.results)
        return [next(found) if is_differentiable(v.type) else None for v in primal.operands]

    given = {k: t for k, v in enumerate(new.operands) if (t := sweep.tangents.get(v)) is not None}
    found = tangents_of(sweep.program, builder, new, rule, given, sweep.request, own=op.rule("backward"))
    for result, tangent in zip(new.results, found):
        if tangent is not None:
            sweep.set_tangent(result, tangent)


def _hand_on(sweep: ForwardSweep, last: Operation, values: Sequence[SSAValue], active: Sequence[SSAValue], block: Block) -> None:
    """The terminator with the tangents of the active values behind its operands."""
    builder = Builder(block, last.location)
    tangents = [sweep.tangent(builder, v) for v in active]
    builder.op(type(last), [*(sweep.value(v) for v in values), *tangents], (), last.properties)


def _results(sweep: ForwardSweep, op: Operation, new: Operation, on: Sequence[int]) -> None:
    """`new` gives the results of `op`, then the tangents of those in `on`."""
    count = len(op.results)
    sweep.bind(op.results, new.results[:count])
    for k, tangent in zip(on, new.results[count:]):
        sweep.set_tangent(new.results[k], tangent)


STRUCTURED: dict[type[Operation], Structured] = {
    scf.ForOp: _for,
    scf.WhileOp: _while,
    scf.IfOp: _branches,
    scf.IndexSwitchOp: _branches,
    func.CallOp: _call,
    ad.CheckpointOp: _checkpoint,
    ad.CustomJvpOp: _custom_jvp,
    ad.CustomVjpOp: _custom_vjp,
}


def forward_function(program: Program, primal: func.FuncOp, wrt: tuple[bool, ...], wanted: tuple[bool, ...], request: str) -> str:
    """`@f.jvp(arguments, tangents of the arguments in wrt) -> (results, tangents of the wanted results)`; equal ones are made once.

    Error AD006 for a function that calls itself.
    """
    stem = primal.sym_name.data
    key = (stem, wrt, wanted)
    if key in program.tangents:
        return program.tangents[key]
    with program.making(primal, "forward mode", wrt, wanted):
        block = _with_tangents(program, primal, wrt, wanted, request)
    returned = block.last_op
    assert returned is not None
    function = new_function(
        program.fresh_name(f"{stem}.jvp"), block, [v.type for v in returned.operands], private=True, loc=primal.location
    )
    program.tangents[key] = program.insert(function, primal)
    return program.tangents[key]


def _with_tangents(program: Program, primal: func.FuncOp, wrt: tuple[bool, ...], wanted: tuple[bool, ...], request: str) -> Block:
    """The body of the forward-mode function."""
    source = primal.body.block
    block = Block(arg_types=[*(a.type for a in source.args), *(a.type for a, on in zip(source.args, wrt) if on)])
    for old, new in zip(source.args, block.args):
        new.location = old.location
    sweep = ForwardSweep(program, activity_with_nests(primal, wrt, wanted, program.resolve), request)
    sweep.bind(source.args, block.args[: len(source.args)])
    active = [a for a, on in zip(block.args, wrt) if on]
    for argument, tangent in zip(active, block.args[len(source.args) :]):
        sweep.set_tangent(argument, tangent)
    last = sweep.block(source, block)
    _hand_on(sweep, last, last.operands, [v for v, on in zip(last.operands, wanted) if on], block)
    return block
