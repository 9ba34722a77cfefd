"""Control flow around expressions: a branch that most inputs skip, a loop over lanes, a loop until no lane is left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, IndexType, i64
from xdsl.ir import Attribute, Block, Region, SSAValue

from gradir.dialects.upstream import scf, vector
from gradir.lowering.expand_math.algebra import Expression, Site, shaped

_INDEX = IndexType()
_DYNAMIC = DenseArrayBase.from_list(i64, [DYNAMIC_INDEX])


def rarely(condition: Expression, usual: Sequence[Expression], otherwise: Callable[[Site], Sequence[Expression]]) -> list[Expression]:
    """`usual`, or what `otherwise` gives where the scalar `condition` holds."""
    site = condition.site
    then = Block()
    found = otherwise(site.inside(then))
    then.add_op(scf.YieldOp.create(operands=[e.value for e in found], location=site.loc))
    other = Block([scf.YieldOp.create(operands=[e.value for e in usual], location=site.loc)])
    types = [e.value.type for e in usual]
    op = scf.IfOp.create(operands=[condition.value], result_types=types, regions=[Region(then), Region(other)], location=site.loc)
    site.insert(op)
    return [Expression(site, r) for r in op.results]


def each_lane(
    site: Site,
    inputs: Sequence[Expression],
    results: Sequence[Expression],
    scalar: Callable[[Site, Sequence[Expression], Sequence[Expression]], Sequence[Expression]],
) -> list[Expression]:
    """Run `scalar` on every lane of `inputs`, replacing the lanes of `results`, in a loop: code size does not depend on the shape."""
    shape = inputs[0].shape
    if shape is None:
        return list(scalar(site, inputs, results))
    lanes = prod(shape)

    def reshaped(at: Site, e: Expression, to: tuple[int, ...]) -> Expression:
        if e.shape == to:
            return Expression(at, e.value)
        op = at.emit(vector.ShapeCastOp, [e.value], [shaped(e.element, to)])
        return Expression(at, op.results[0])

    flat_in = [reshaped(site, e, (lanes,)) for e in inputs]
    flat_out = [reshaped(site, e, (lanes,)) for e in results]
    body = Block(arg_types=[_INDEX, *(e.value.type for e in flat_out)])
    inner = site.inside(body)
    lane = body.args[0]

    def extract(value: SSAValue, element: Attribute) -> Expression:
        op = inner.emit(vector.ExtractOp, [value, lane], [element], properties={"static_position": _DYNAMIC})
        return Expression(inner, op.results[0])

    scalars = scalar(
        inner, [extract(e.value, e.element) for e in flat_in], [extract(v, e.element) for v, e in zip(body.args[1:], flat_out)]
    )
    inserted = [
        inner.emit(vector.InsertOp, [s.value, v, lane], [v.type], properties={"static_position": _DYNAMIC}).results[0]
        for s, v in zip(scalars, body.args[1:])
    ]
    body.add_op(scf.YieldOp.create(operands=inserted, location=site.loc))
    bounds = [site.constant(n, _INDEX, None) for n in (0, lanes, 1)]
    op = scf.ForOp.create(
        operands=[*bounds, *(e.value for e in flat_out)],
        result_types=[e.value.type for e in flat_out],
        regions=[Region(body)],
        location=site.loc,
    )
    site.insert(op)
    return [reshaped(site, Expression(site, r), shape) for r in op.results]


def while_any(
    start: Sequence[Expression],
    active: Callable[[Sequence[Expression]], Expression],
    step: Callable[[Sequence[Expression]], Sequence[Expression]],
) -> list[Expression]:
    """Repeat `step` on all lanes while `active` holds in any of them; `step` must leave the lanes alone that are done."""
    site = start[0].site
    types = [e.value.type for e in start]
    before, after = Block(arg_types=types), Block(arg_types=types)
    test = site.inside(before)
    condition = active([Expression(test, a) for a in before.args]).any()
    before.add_op(scf.ConditionOp.create(operands=[condition.value, *before.args], location=site.loc))
    inner = site.inside(after)
    after.add_op(scf.YieldOp.create(operands=[e.value for e in step([Expression(inner, a) for a in after.args])], location=site.loc))
    op = scf.WhileOp.create(
        operands=[e.value for e in start], result_types=types, regions=[Region(before), Region(after)], location=site.loc
    )
    site.insert(op)
    return [Expression(site, r) for r in op.results]
