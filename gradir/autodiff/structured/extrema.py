"""Extrema over a loop nest: how many terms equal the result, and the share of each.

The cotangent is split evenly over all terms that equal the result, the initial value included, unless that is the identity (-inf for a
maximum): `fill` starts from it, and nobody means it. A NaN wins over all. The same weights hold in forward mode.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType, f32, i64
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineMap

from gradir.autodiff.reverse.sweep import Unit
from gradir.autodiff.scalars import number_of
from gradir.autodiff.structured.bodies import More, run_again, wins
from gradir.autodiff.structured.kinds import Extremum
from gradir.autodiff.tensors import TensorBuilder
from gradir.dialects.nests import Nest
from gradir.dialects.types import NARROW_CLASSES, element_of, shape_of, tensor
from gradir.dialects.upstream import arith, linalg, tensor as tensors
from gradir.ir.builder import Builder


@dataclass(frozen=True)
class Shares:
    """Over the elements of an output: the share of one winner, and that of the initial value (None: it is the identity)."""

    each: SSAValue
    initial: SSAValue | None


def count_winners(builder: Builder, unit: Unit, nest: Nest, j: int, kind: Extremum, result: SSAValue) -> SSAValue:
    """For each element of output j, how many terms equal it, in i64."""
    output_map = nest.output_maps[j]
    copy = run_again(unit, nest, set(), [False] * len(nest.outputs), [More(result, output_map)], builder)
    t = TensorBuilder(copy.builder)
    won = wins(t, copy, kind, copy.given[0])
    accumulator = copy.block.insert_arg(i64, len(copy.block.args))
    one = copy.builder(arith.ExtUIOp, [won], [i64])
    flags = {"overflowFlags": arith.IntegerOverflowAttr("none")}
    copy.builder.op(linalg.YieldOp, [copy.builder(arith.AddiOp, [accumulator, one], [i64], flags)])
    start = TensorBuilder(builder).zeros_as(result, tensor(i64, shape_of(result)))
    inputs, maps = (*nest.operands, result), (*nest.maps, output_map, output_map)
    (found,) = Nest(inputs, (start,), maps, nest.parallel, copy.block).emit(builder)
    return found


def shares(
    builder: Builder, initial: SSAValue, kind: Extremum, result: SSAValue, count: SSAValue, given: SSAValue, *, split: bool
) -> Shares:
    """`given`, one number per element of the output, for each winner; with `split`, for the initial value too.

    `given / n` where n counts the winners, the initial value too if it is one; all of it for the initial value where nobody else wins.
    """
    from_identity = starts_from(initial, kind.identity)

    def body(t: TensorBuilder, value: SSAValue, n: SSAValue, r: SSAValue, first: SSAValue) -> tuple[SSAValue, SSAValue]:
        wide = f32 if isinstance(value.type, NARROW_CLASSES) else value.type
        total = t.builder(arith.SIToFPOp, [n], [wide])
        zero, one = t.full(0.0, wide), t.full(1.0, wide)
        none_won = t.compare("eq", total, zero)
        ct = t.convert(value, wide)
        if from_identity:
            return t.convert(t.div(ct, t.select(none_won, one, total)), value.type), value
        equal = t.logical_or(t.compare("eq", first, r), t.logical_and(t.is_nan(first), t.is_nan(r)))
        counts = t.logical_and(equal, t.compare("ne", first, t.full(kind.identity, first.type)))
        counts = t.logical_or(counts, none_won)
        total = t.select(counts, t.add(total, one), total)
        each = t.convert(t.div(ct, total), value.type)
        return each, t.select(counts, each, t.zeros(value.type))

    operands = [given, count, result, initial]
    each = elementwise(builder, operands, given, lambda t, v: body(t, *v)[0])
    if from_identity or not split:
        return Shares(each, None)
    return Shares(each, elementwise(builder, operands, given, lambda t, v: body(t, *v)[1]))


def starts_from(initial: SSAValue, number: float) -> bool:
    """Whether a tensor is filled with `number`."""
    fill = initial.owner
    return isinstance(fill, linalg.FillOp) and number_of(fill.operands[0]) == number


def elementwise(
    builder: Builder, operands: list[SSAValue], like: SSAValue, body: Callable[[TensorBuilder, Sequence[SSAValue]], SSAValue]
) -> SSAValue:
    """One nest over tensors of one shape; the result has the type of `like`."""
    rank = len(shape_of(like))
    block = Block(arg_types=[*(element_of(v) for v in operands), element_of(like)])
    t = TensorBuilder(Builder(block, builder.loc))
    t.builder.op(linalg.YieldOp, [body(t, block.args[:-1])])
    identity = AffineMap.identity(rank)
    assert isinstance(like.type, TensorType)
    if None in shape_of(like) or any(isinstance(n, str) for n in shape_of(like)):
        start = TensorBuilder(builder).zeros_as(like, like.type)
    else:
        start = builder(tensors.EmptyOp, [], [like.type])
    (found,) = Nest(tuple(operands), (start,), (identity,) * (len(operands) + 1), (True,) * rank, block).emit(builder)
    return found
