"""What each output of a loop nest is, as its derivative sees it: a value per point, a sum, an extremum, or something that runs in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue

from gradir.autodiff.activity import free_values
from gradir.autodiff.tensors import is_differentiable
from gradir.dialects.linear import dims_in, linear
from gradir.dialects.nests import Nest, is_slice, pure_dims
from gradir.dialects.upstream import arith, linalg, math, scf


@dataclass(frozen=True)
class Point:
    """`out[o(d)] = body(..)`, every element written once."""


@dataclass(frozen=True)
class Sum:
    """`out[o(d)] += term(d)`: d out'/d out = 1, and the term does not read it."""


@dataclass(frozen=True)
class Extremum:
    """`out[o(d)] = max(out[o(d)], term(d))`, or min. `identity`: the number that every term beats."""

    term: SSAValue
    identity: float


Kind = Point | Sum | Extremum

_EXTREMA: dict[type[Operation], float] = {
    arith.MaximumfOp: float("-inf"),
    arith.MaxnumfOp: float("-inf"),
    arith.MinimumfOp: float("inf"),
    arith.MinnumfOp: float("inf"),
}


def tainted_by(block: Block, sources: Sequence[SSAValue]) -> set[SSAValue]:
    """The values of a body that depend on one of `sources`."""
    found: set[SSAValue] = set(sources)
    for op in block.ops:
        if any(v in found for v in (*op.operands, *free_values(op))):
            found.update(op.results)
    return found


def kinds_of(nest: Nest) -> list[Kind | None]:
    """The kind of each output; None for one that only a loop in order computes."""
    last = nest.body.last_op
    assert last is not None
    accumulators = nest.body.args[len(nest.inputs) :]
    if all(nest.parallel):
        return [Point() if len(pure_dims(m) or ()) == nest.rank else None for m in nest.output_maps]
    taints = [tainted_by(nest.body, [a]) for a in accumulators]
    kinds: list[Kind | None] = []
    for j, (accumulator, map_, value) in enumerate(zip(accumulators, nest.output_maps, last.operands, strict=True)):
        dims = pure_dims(map_)
        others: set[SSAValue] = set().union(*(t for k, t in enumerate(taints) if k != j))
        if dims is None or value in others:
            kinds.append(None)
        elif value not in taints[j]:
            kinds.append(Point() if len(dims) == nest.rank else None)
        elif _adds_to(value, accumulator, taints[j] | others):
            kinds.append(Sum())
        else:
            kinds.append(_extremum(value, accumulator, taints[j] | others))
    return kinds


def _adds_to(value: SSAValue, accumulator: SSAValue, tainted: set[SSAValue]) -> bool:
    """Whether `value` is the accumulator plus what does not depend on any."""
    if value is accumulator:
        return True
    op = value.owner
    if isinstance(op, arith.AddfOp):
        return any(_adds_to(x, accumulator, tainted) and y not in tainted for x, y in (op.operands, reversed(op.operands)))
    if isinstance(op, arith.SubfOp):
        return op.rhs not in tainted and _adds_to(op.lhs, accumulator, tainted)
    if isinstance(op, math.FmaOp):
        return op.a not in tainted and op.b not in tainted and _adds_to(op.c, accumulator, tainted)
    if isinstance(op, arith.SelectOp):
        return op.cond not in tainted and all(_adds_to(v, accumulator, tainted) for v in (op.lhs, op.rhs))
    return False


def _extremum(value: SSAValue, accumulator: SSAValue, tainted: set[SSAValue]) -> Extremum | None:
    op = value.owner
    if not isinstance(op, Operation) or type(op) not in _EXTREMA or accumulator not in op.operands:
        return None
    term = op.operands[1 if op.operands[0] is accumulator else 0]
    return None if term in tainted else Extremum(term, _EXTREMA[type(op)])


def is_contraction(nest: Nest) -> bool:
    """Whether the body adds the product of two inputs: its derivative is a contraction too, and its products are plain."""
    last = nest.body.last_op
    if all(nest.parallel) or last is None or len(last.operands) != 1:
        return False
    total = last.operands[0].owner
    if not isinstance(total, arith.AddfOp):
        return False
    product = next((v.owner for v in total.operands if isinstance(v.owner, arith.MulfOp)), None)
    if product is None or nest.body.args[-1] not in total.operands:
        return False
    factors = [v.owner.operands[0] if isinstance(v.owner, arith.ExtFOp) else v for v in product.operands]
    return factors[0] is not factors[1] and all(v in nest.body.args for v in factors)


def dims_in_order(op: linalg.GenericOp, active: set[SSAValue]) -> list[int] | None:
    """The dimensions that have to become loops before the nest has a structured derivative; `active`: values that carry one.

    None where it has one; no dimensions where its outputs have to become slices.
    """
    nest = Nest.of(op)
    every = list(range(nest.rank))
    if any(pure_dims(m) is None for m in nest.output_maps) and all(map(is_slice, nest.output_maps)):
        return []
    for inner in op.body.block.walk():
        if isinstance(inner, scf.ForOp | scf.WhileOp) and any(is_differentiable(r.type) for r in inner.results):
            return every
    if any(isinstance(v.type, TensorType) and v in active for v in free_values(op)):
        return every
    found: set[int] = set()
    for value, map_ in zip(nest.operands, nest.maps):
        if value in active:
            for expr in map_.results:
                found |= dims_in(expr) if linear(expr) is None else set()
    kinds = kinds_of(nest)
    if all(kind is not None for kind in kinds):
        return sorted(found) or None
    found |= {d for d, flag in enumerate(nest.parallel) if not flag}
    for map_ in nest.output_maps:
        counts = [d for e in map_.results for d in dims_in(e)]
        for expr in map_.results:
            used = dims_in(expr) - found
            form = linear(expr)
            if form is None or len(used) > 1 or any(counts.count(d) > 1 or form.factors[d] < 0 for d in used):
                found |= used
        found |= set(every) - set(counts)
    return sorted(found)
