"""reduce: with a body of one known op a reduction of level 1, as JAX's argmax or argmin these; any other body is kept: `nd.reduce`.

The initial value is combined exactly once, first (docs/numerics.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from gradir.dialects import nd
from gradir.dialects.types import element_of, is_bool, is_float, numpy_dtype, rank_of, shape_of
from gradir.frontends.stablehlo.conversion import Conversion, Rule, Values, is_return, splat
from gradir.frontends.stablehlo.dialect import attribute, numbers
from gradir.frontends.stablehlo.elementwise import BINARY
from gradir.frontends.stablehlo.regions import converted

REDUCTIONS: dict[str, type[nd.Reduce]] = {
    "stablehlo.add": nd.ReduceSumOp,
    "stablehlo.multiply": nd.ReduceProdOp,
    "stablehlo.maximum": nd.ReduceMaxOp,
    "stablehlo.minimum": nd.ReduceMinOp,
}
BOOLEAN: dict[str, type[nd.Reduce]] = {
    **dict.fromkeys(("stablehlo.add", "stablehlo.maximum", "stablehlo.or"), nd.ReduceAnyOp),
    **dict.fromkeys(("stablehlo.multiply", "stablehlo.minimum", "stablehlo.and"), nd.ReduceAllOp),
}


def reduce(conversion: Conversion, op: Operation) -> Values:
    """One value per position of the dimensions that stay."""
    operands = conversion.operands(op)
    inputs, starts = operands[: len(operands) // 2], operands[len(operands) // 2 :]
    dims = list(numbers(op, "dimensions") or ())
    body = op.regions[0].block
    kind = known_reduction(body, element_of(inputs[0])) if dims else None
    if kind is not None:
        reduced = conversion.emit(kind.make(inputs[0], dims))
        return [with_start(conversion, op.operands[1], body, starts[0], reduced)]
    direction = arg_reduction(op, dims)
    if direction:
        values, index = _arg_reduce(conversion, direction, inputs, dims[0])
        return [values, index]
    made = nd.ReduceOp.make(inputs, starts, dims, converted(conversion, body))
    conversion.emit(made)
    return made.results


def known_op(body: Block) -> str:
    """The name of the only op of a body that applies it to its two arguments in any order; empty if it is not one."""
    ops = list(body.ops)
    if len(body.args) != 2 or len(ops) != 2 or not is_return(ops[1]) or list(ops[1].operands) != list(ops[0].results):
        return ""
    return ops[0].name if set(ops[0].operands) == set(body.args) else ""


def known_reduction(body: Block, element: Attribute) -> type[nd.Reduce] | None:
    """The reduction of level 1 that repeats this body."""
    return (BOOLEAN if is_bool(element) else REDUCTIONS).get(known_op(body))


def is_identity(start: SSAValue, name: str) -> bool:
    """Whether an initial value is known and combining it changes nothing: +0 of add, 1 of multiply, the least or greatest number."""
    source = constant_under(start)
    if source is None:
        return False
    element = element_of(start)
    value = np.frombuffer(source.data.data, numpy_dtype(element), count=1)[0]
    if name in ("stablehlo.add", "stablehlo.or"):
        return not value and not (is_float(element) and bool(np.signbit(value)))
    if name in ("stablehlo.multiply", "stablehlo.and"):
        return bool(value == 1) and (name == "stablehlo.multiply" or is_bool(element))
    return bool(value == _extreme(numpy_dtype(element), least=name == "stablehlo.maximum"))


def _extreme(dtype: np.dtype[Any], *, least: bool) -> Any:
    if dtype == np.bool_:
        return not least
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if least else np.iinfo(dtype).max
    return -np.inf if least else np.inf


def constant_under(value: SSAValue) -> DenseIntOrFPElementsAttr | None:
    """The constant that a rank-0 value is, looking through broadcasts to rank 0."""
    while isinstance(value, OpResult) and value.op.name in ("stablehlo.broadcast_in_dim", "stablehlo.reshape") and rank_of(value) == 0:
        value = value.op.operands[0]
    if not isinstance(value, OpResult) or value.op.name != "stablehlo.constant":
        return None
    found = attribute(value.op, "value")
    return found if isinstance(found, DenseIntOrFPElementsAttr) else None


def with_start(conversion: Conversion, source: SSAValue, body: Block, start: SSAValue, reduced: SSAValue) -> SSAValue:
    """`start op reduced`; `reduced` itself where the initial value is the identity."""
    name = known_op(body)
    if is_identity(source, name):
        return reduced
    return conversion.emit(BINARY[name].make(splat(conversion, start, shape_of(reduced)), reduced))


# -- argmax and argmin, as JAX spells them

_ARG_BODY = ("compare", "compare", "or", "compare", "compare", "and", "or", "select", "select", "return")


def arg_reduction(op: Operation, dims: Sequence[int]) -> str:
    """`GT` or `LT` of JAX's argmax or argmin: over (values, their positions), the better value or a NaN wins, then the lower position."""
    body = op.regions[0].block
    ops = list(body.ops)
    names = tuple(o.name.removeprefix("stablehlo.") for o in ops)
    if names != _ARG_BODY or len(op.operands) != 4 or len(dims) != 1 or is_bool(element_of(op.operands[0])):
        return ""
    x, i, y, j = body.args
    better, nan, wins, same, lower, first, chosen, value, index, end = ops
    wiring = [
        (better, (x, y)),
        (nan, (x, x)),
        (wins, (better, nan)),
        (same, (x, y)),
        (lower, (i, j)),
        (first, (same, lower)),
        (chosen, (wins, first)),
        (value, (wins, x, y)),
        (index, (chosen, i, j)),
        (end, (value, index)),
    ]
    if any(list(o.operands) != [s.results[0] if isinstance(s, Operation) else s for s in sources] for o, sources in wiring):
        return ""
    directions = [str(getattr(attribute(o, "comparison_direction"), "data", "")) for o in (better, nan, same, lower)]
    positions = op.operands[1]
    is_positions = isinstance(positions, OpResult) and positions.op.name == "stablehlo.iota" and numbers_of_iota(positions.op) == dims[0]
    starts = is_identity(op.operands[2], "stablehlo.maximum" if directions[0] == "GT" else "stablehlo.minimum")
    known = directions[0] in ("GT", "LT") and directions[1:] == ["NE", "EQ", "LT"]
    size = shape_of(op.operands[0])[dims[0]]
    return directions[0] if known and is_positions and starts and is_identity(op.operands[3], "stablehlo.add") and size else ""


def numbers_of_iota(op: Operation) -> int:
    """The dimension that an iota counts along."""
    found = attribute(op, "iota_dimension")
    return found.value.data if isinstance(found, IntegerAttr) else -1


def _arg_reduce(conversion: Conversion, direction: str, inputs: Values, dim: int) -> tuple[SSAValue, SSAValue]:
    values, position = (nd.ReduceMaxOp, nd.ArgmaxOp) if direction == "GT" else (nd.ReduceMinOp, nd.ArgminOp)
    return conversion.emit(values.make(inputs[0], [dim])), conversion.emit(position.make(inputs[0], dim, element_of(inputs[1])))


RULES: dict[str, Rule] = {"stablehlo.reduce": reduce}
