"""sort and top_k. The comparators that JAX writes are recognised and become attributes; any other one stays as it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Block, Operation, OpResult, SSAValue

from gradir.dialects import nd
from gradir.dialects.types import element_of, is_float, numpy_dtype, rank_of
from gradir.frontends.stablehlo.attributes import word_of
from gradir.frontends.stablehlo.conversion import Conversion, Rule, Values, is_return
from gradir.frontends.stablehlo.dialect import attribute, number
from gradir.frontends.stablehlo.regions import converted


def sort(conversion: Conversion, op: Operation) -> Values:
    """All operands by one comparator; a known one becomes keys and a direction."""
    operands = conversion.operands(op)
    rank = rank_of(operands[0])
    if rank == 0:
        return operands
    dim = number(op, "dimension", rank - 1)
    dim += rank if dim < 0 else 0
    known = known_order(op.regions[0].block)
    if known is None:
        made = nd.SortOp.make(operands, dim, comparator=converted(conversion, op.regions[0].block))
    else:
        made = nd.SortOp.make(operands, dim, keys=known.keys, descending=known.descending, total_order=known.total)
    conversion.emit(made)
    return made.results


def top_k(conversion: Conversion, op: Operation) -> Values:
    """The k greatest of the last dimension."""
    (operand,) = conversion.operands(op)
    made = nd.TopKOp.make(operand, number(op, "k"), rank_of(operand) - 1, element_of(op.results[1]))
    conversion.emit(made)
    return made.results


# -- comparators


@dataclass(frozen=True)
class Order:
    """What the attributes of `nd.sort` say."""

    keys: int
    descending: bool
    total: bool


@dataclass(frozen=True)
class _Comparison:
    """`argument 2 k  DIRECTION  argument 2 k + 1`; `mode`: plain (integers), default (NaN and zeros made equal) or total."""

    key: int
    direction: str
    mode: str


def known_order(body: Block) -> Order | None:
    """The order of a comparator that compares its first pairs of arguments lexicographically; None of any other."""
    end = body.last_op
    if end is None or not is_return(end) or len(end.operands) != 1:
        return None
    chain = _lexicographic(body, end.operands[0])
    if chain is None or [c.key for c in chain] != list(range(len(chain))):
        return None
    directions, modes = {c.direction for c in chain}, {c.mode for c in chain} - {"plain"}
    if len(directions) != 1 or len(modes) > 1 or not directions <= {"LT", "GT"}:
        return None
    return Order(len(chain), directions == {"GT"}, modes == {"total"})


def _lexicographic(body: Block, value: SSAValue) -> list[_Comparison] | None:
    """`k0 < l0 or (k0 = l0 and (k1 < l1 or ..))`"""
    first = _comparison(body, value)
    if first is not None:
        return [first]
    for less, both in _pairs(value, "stablehlo.or"):
        first = _comparison(body, less)
        if first is None:
            continue
        for equal, rest in _pairs(both, "stablehlo.and"):
            same, more = _comparison(body, equal), _lexicographic(body, rest)
            if same is not None and more is not None and (same.key, same.direction, same.mode) == (first.key, "EQ", first.mode):
                return [first, *more]
    return None


def _pairs(value: SSAValue, name: str) -> list[tuple[SSAValue, SSAValue]]:
    """Both orders of the operands of the op `name` that gives `value`."""
    if not isinstance(value, OpResult) or value.op.name != name:
        return []
    x, y = value.op.operands
    return [(x, y), (y, x)]


_TURNED = {"LT": "GT", "GT": "LT", "EQ": "EQ"}


def _comparison(body: Block, value: SSAValue) -> _Comparison | None:
    if not isinstance(value, OpResult) or value.op.name != "stablehlo.compare":
        return None
    op = value.op
    direction = word_of(attribute(op, "comparison_direction"))
    total = word_of(attribute(op, "compare_type")) == "TOTALORDER"
    sides = [_argument(body, side) for side in op.operands]
    (x, plain_x), (y, plain_y) = sides
    if direction not in _TURNED or x < 0 or y < 0 or plain_x != plain_y or x // 2 != y // 2 or x == y:
        return None
    mode = "plain"
    if is_float(element_of(op.operands[0])):
        if not total and not (plain_x and direction == "EQ"):
            return None  # IEEE's order leaves NaN out
        mode = "total" if plain_x else "default"
    elif not plain_x:
        return None
    return _Comparison(x // 2, direction if x < y else _TURNED[direction], mode)


def _argument(body: Block, value: SSAValue) -> tuple[int, bool]:
    """(which argument, whether as it is); -1 of anything else. Not as it is: all NaNs made one, -0 made +0."""
    if value in body.args:
        return body.args.index(value), True
    for chosen, x in _selects(value, "NE"):  # select(x != x, nan, ..)
        if not np.isnan(chosen) or x not in body.args:
            continue
        assert isinstance(value, OpResult)
        rest = value.op.operands[2]
        for zero, y in _selects(rest, "EQ"):  # select(x == 0, 0, x)
            if y is x and zero == 0 and not np.signbit(zero) and isinstance(rest, OpResult) and rest.op.operands[2] is x:
                return body.args.index(x), False
    return -1, True


def _selects(value: SSAValue, direction: str) -> list[tuple[float, SSAValue]]:
    """Of `select(compare DIRECTION x, y), constant, ..)`: the constant and x; y is x, or a constant equal to the chosen one."""
    if not isinstance(value, OpResult) or value.op.name != "stablehlo.select":
        return []
    test, chosen, _ = value.op.operands
    number_ = _number(chosen)
    if number_ is None or not isinstance(test, OpResult) or test.op.name != "stablehlo.compare":
        return []
    if word_of(attribute(test.op, "comparison_direction")) != direction or word_of(attribute(test.op, "compare_type")) == "TOTALORDER":
        return []
    x, y = test.op.operands
    return [(number_, x)] if (y is x if direction == "NE" else _number(y) == 0) else []


def _number(value: SSAValue) -> float | None:
    """The number of a rank-0 constant."""
    if not isinstance(value, OpResult) or value.op.name != "stablehlo.constant":
        return None
    found = attribute(value.op, "value")
    if not isinstance(found, DenseIntOrFPElementsAttr) or not is_float(element_of(value)):
        return None
    return float(np.frombuffer(found.data.data, numpy_dtype(element_of(value)), count=1)[0])


RULES: dict[str, Rule] = {"stablehlo.sort": sort, "chlo.top_k": top_k}
