"""Sums of contributions into the cotangent of one operand: `cotangent[m(d)] += contribution(d)` for every point d of a loop nest.

The nest runs over the dimensions of the operand in parallel and reduces the others. A map that goes over a slice (`2*d + 1`) writes
into the slice of the cotangent. Where several points read one element (`d + k`, a diagonal) some dimensions become loops around a
nest that writes each element once; a dimension that counts down is run the other way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import TensorType, i8
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap

from gradir.autodiff.reverse.cotangents import Cotangents, accumulator_type
from gradir.autodiff.tensors import TensorBuilder
from gradir.dialects.linear import Linear, arithmetic, index, linear
from gradir.dialects.nests import Nest, pure_dims
from gradir.dialects.types import is_static, tensor
from gradir.dialects.upstream import arith, linalg, tensor as tensors
from gradir.ir.builder import Builder


@dataclass(frozen=True)
class Contribution:
    """`body` over the `inputs` (with their `maps`) computes `value`, the contribution of one point; it has no terminator yet."""

    inputs: tuple[SSAValue, ...]
    maps: tuple[AffineMap, ...]
    body: Block
    value: SSAValue
    rank: int


def accumulate(outer: Cotangents, operand: SSAValue, map_: AffineMap, given: Contribution) -> None:
    """Add the contributions to the cotangent of `operand`, which the nest reads through `map_`."""
    t, builder = outer.t, outer.builder
    if not isinstance(operand.type, TensorType):
        total = _sum(t, builder, given, operand)
        outer.add(operand, total)
        return
    whole = pure_dims(map_) is not None
    if whole and not outer.has(operand):
        kind = accumulator_type(operand.type)
        every = len(map_.results) == given.rank
        start = builder(tensors.EmptyOp, [], [kind]) if every and is_static(kind) else t.zeros_as(operand, kind)
        outer.set(operand, _run(builder, given, start, map_, adds=not every))
        return
    outer.set(operand, _run(builder, given, outer.accumulator(operand), map_, adds=True))


def _sum(t: TensorBuilder, builder: Builder, given: Contribution, operand: SSAValue) -> SSAValue:
    """The sum over all points, a scalar."""
    kind = accumulator_type(operand.type)
    zeros = t.zeros(tensor(kind))
    total = _run(builder, given, zeros, AffineMap(given.rank, 0, ()), adds=True)
    return builder(tensors.ExtractOp, [total], [kind])


def _run(builder: Builder, given: Contribution, start: SSAValue, map_: AffineMap, *, adds: bool) -> SSAValue:
    assert isinstance(start.type, TensorType)
    body = given.body
    accumulator = body.insert_arg(start.type.element_type, len(body.args))
    end = TensorBuilder(Builder(body, builder.loc))
    value = end.convert(given.value, start.type.element_type)
    end.builder.op(linalg.YieldOp, [end.add(accumulator, value) if adds else value])
    nest = Nest(given.inputs, (start,), (*given.maps, map_), (True,) * given.rank, body)
    looped = dims_to_loop(nest, map_)
    nest = _counting_up(builder, nest, looped)
    used = {d for e in nest.maps[-1].results for form in [linear(e)] if form is not None for d in form.factors}
    nest = replace(nest, parallel=tuple(d in used and d not in looped for d in range(given.rank)))
    (result,) = nest.peel(builder, sorted(looped)) if looped or pure_dims(nest.maps[-1]) is None else nest.emit(builder)
    return result


def dims_to_loop(nest: Nest, map_: AffineMap) -> set[int]:
    """Which dimensions become loops so that the others reach every element once: as few trips as possible."""
    forms = [form for e in map_.results if (form := linear(e)) is not None]
    assert len(forms) == len(map_.results), "an expression that is no sum was spelled out before"
    looped: set[int] = set()

    def trips(d: int) -> int:
        size = nest.sizes[d]
        return size if isinstance(size, int) else 1 << 40

    for form in forms:
        rest = sorted((d for d in form.factors if d not in looped), key=trips)
        looped.update(rest[:-1])
    for d in {d for form in forms for d in form.factors} - looped:
        occurrences = [form.factors[d] for form in forms if d in form.factors]
        if len(occurrences) > 1 or (occurrences[0] < 0 and not isinstance(nest.sizes[d], int)):
            looped.add(d)
    return looped


def _counting_up(builder: Builder, nest: Nest, looped: set[int]) -> Nest:
    """The same nest with `n - 1 - d` in place of every dimension d that the output's map counts down.

    An input that only tells the extent of d comes in: no other operand may be indexed by d itself any more.
    """
    turned = {
        d: size
        for e in nest.maps[-1].results
        if (form := linear(e)) is not None
        for d, c in form.factors.items()
        if c < 0 and d not in looped and isinstance(size := nest.sizes[d], int)
    }
    if not turned:
        return nest
    forms = [Linear({d: -1}, turned[d] - 1) if d in turned else Linear({d: 1}, 0) for d in range(nest.rank)]
    maps = tuple(_composed(m, forms) for m in nest.maps)
    for op in list(nest.body.walk()):
        if isinstance(op, linalg.IndexOp) and op.dim.value.data in turned:
            _turn_index(op, turned[op.dim.value.data])
    shapes = [builder(tensors.EmptyOp, [], [tensor(i8, (size,))]) for size in turned.values()]
    count = len(nest.inputs)
    for k in range(len(shapes)):
        nest.body.insert_arg(i8, count + k)
    told = tuple(AffineMap(nest.rank, 0, (AffineDimExpr(d),)) for d in turned)
    return replace(nest, inputs=(*nest.inputs, *shapes), maps=(*maps[:count], *told, *maps[count:]))


def _composed(map_: AffineMap, forms: Sequence[Linear]) -> AffineMap:
    """The map after the substitution `d -> forms[d]`."""
    results: list[AffineExpr] = []
    for expr in map_.results:
        form = linear(expr)
        if form is None:
            results.append(expr.replace_dims_and_symbols([f.expression() for f in forms], []))
            continue
        total = Linear({}, form.constant)
        for d, factor in form.factors.items():
            total = total.plus(forms[d], factor)
        results.append(total.expression())
    return AffineMap(map_.num_dims, 0, tuple(results))


def _turn_index(op: linalg.IndexOp, size: int) -> None:
    """`size - 1 - index` for the users of `index`."""
    block = op.parent
    assert block is not None
    uses = list(op.result.uses)
    parts = Block()
    builder = Builder(parts, op.location)
    turned = arithmetic(builder, arith.SubiOp, index(builder, size - 1), op.result)
    place: Operation = op
    for new in list(parts.ops):
        new.detach()
        block.insert_op_after(new, place)
        place = new
    for use in uses:
        use.operation.operands[use.index] = turned
