"""Control flow around steps, nested as deep as the program allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import DenseArrayBase, StringAttr, i1, i64
from xdsl.ir import Attribute, Operation, Region, SSAValue

from gradir.dialects import nd
from gradir.dialects.residuals import POLICIES, POLICY
from gradir.dialects.upstream import arith, scf
from gradir.tools.fuzz.gradients.scope import INDEX, Scope

Grow = Callable[[Scope], None]
"""Adds a few steps to a block."""


def _yield(scope: Scope, kinds: Sequence[Attribute]) -> list[SSAValue]:
    """Values of these types for the terminator: now and then two change places, one stays as it was, or comes from outside."""
    program = scope.program
    values = [scope.of_type(kind) for kind in kinds]
    for k, kind in enumerate(kinds):
        draw = program.rng.random()
        if draw < 0.08:
            same = [v for v in scope.values if v.type == kind]
            values[k] = program.one_of(same) if same else values[k]
        elif draw < 0.16:
            j = program.below(len(kinds))
            if kinds[j] == kind:
                values[k], values[j] = values[j], values[k]
    return values


def branch(scope: Scope, grow: Grow) -> None:
    """`scf.if`"""
    regions, kinds = [], list[Attribute]()
    condition = scope.truth()
    for k in range(2):
        inner = scope.inside()
        grow(inner)
        kinds = kinds if k else [v.type for v in inner.some(3)]
        inner.builder.op(scf.YieldOp, _yield(inner, kinds))
        regions.append(Region(inner.block))
    scope.add(*scope.builder.op(scf.IfOp, [condition], kinds, regions=regions).results)


def switch(scope: Scope, grow: Grow) -> None:
    """`scf.index_switch` of one to three cases, whose numbers have gaps."""
    program = scope.program
    cases = sorted({program.below(5) for _ in range(1 + program.below(3))})
    selector = scope.index()
    regions, kinds = [], list[Attribute]()
    for k in range(len(cases) + 1):
        inner = scope.inside()
        grow(inner)
        kinds = kinds if k else [v.type for v in inner.some(3)]
        inner.builder.op(scf.YieldOp, _yield(inner, kinds))
        regions.append(Region(inner.block))
    properties = {"cases": DenseArrayBase.from_list(i64, cases)}
    scope.add(*scope.builder.op(scf.IndexSwitchOp, [selector], kinds, properties, regions=regions).results)


def loop(scope: Scope, grow: Grow) -> None:
    """`scf.for` of 0 to 5 trips, known or not, with steps of 1 to 3."""
    program = scope.program
    carried = scope.some(4)
    lower = scope.index_constant(program.below(3)) if program.chance(0.7) else scope.index(2)
    upper = scope.index_constant(program.below(7) - 1) if program.chance(0.5) else scope.index(4)
    if isinstance(program.rows, str) and program.chance(0.4):
        upper = scope.emit(nd.SymbolOp.make(program.rows))
    step = scope.index_constant(1 + program.below(3)) if program.chance(0.85) else _positive(scope)
    kinds = [v.type for v in carried]
    inner = scope.inside([INDEX, *kinds])
    grow(inner)
    inner.builder.op(scf.YieldOp, _yield(inner, kinds))
    operands = [lower, upper, step, *carried]
    new = scope.builder.op(scf.ForOp, operands, kinds, regions=[Region(inner.block)], attributes=_policy(scope))
    scope.add(*new.results)


def _policy(scope: Scope) -> dict[str, Attribute]:
    """What the loop keeps for its derivative, where it says so itself."""
    return {POLICY: StringAttr(scope.program.one_of(POLICIES))} if scope.program.chance(0.25) else {}


def _positive(scope: Scope) -> SSAValue:
    return scope.builder(arith.MaxSIOp, [scope.index(2), scope.index_constant(1)], [INDEX])


def while_loop(scope: Scope, grow: Grow) -> None:
    """`scf.while` that counts to at most 4 and may stop earlier; what it hands to its body may differ from what it carries."""
    program = scope.program
    carried = scope.some(3)
    kinds: list[Attribute] = [INDEX, *(v.type for v in carried)]
    before = scope.inside(kinds)
    add = before.builder
    count = before.block.args[0]
    more = add(arith.CmpiOp, [count, before.index_constant(program.below(5))], [i1], {"predicate": arith.integer_predicate("slt")})
    if program.chance(0.5):
        grow(before)
    if program.chance(0.6):
        more = add(arith.AndIOp, [more, before.truth()], [i1])
    handed_on = list(before.block.args) if program.chance(0.5) else [count, *before.some(3)]
    add.op(scf.ConditionOp, [more, *handed_on])
    after = scope.inside([v.type for v in handed_on])
    grow(after)
    following = _next(after, after.block.args[0])
    after.builder.op(scf.YieldOp, [following, *_yield(after, kinds[1:])])
    new: Operation = scope.builder.op(
        scf.WhileOp,
        [scope.index_constant(0), *carried],
        [v.type for v in handed_on],
        regions=[Region(before.block), Region(after.block)],
        attributes=_policy(scope),
    )
    scope.add(*new.results)


def _next(scope: Scope, count: SSAValue) -> SSAValue:
    one = scope.index_constant(1)
    return scope.builder(arith.AddiOp, [count, one], [INDEX], {"overflowFlags": arith.IntegerOverflowAttr("none")})


CONTROL: tuple[Callable[[Scope, Grow], None], ...] = (branch, switch, loop, loop, while_loop)
