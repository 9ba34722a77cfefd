"""reduce_window and select_and_scatter: the poolings that level 1 has; with any other body the ops that keep it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation, SSAValue

from gradir.dialects import nd
from gradir.dialects.types import element_of, is_bool, is_complex, rank_of, shape_of
from gradir.frontends.stablehlo.attributes import word_of
from gradir.frontends.stablehlo.contractions import padding
from gradir.frontends.stablehlo.conversion import Conversion, Rule, Values, splat
from gradir.frontends.stablehlo.dialect import attribute, numbers
from gradir.frontends.stablehlo.reductions import is_identity, known_op, with_start
from gradir.frontends.stablehlo.regions import converted

KINDS = {"stablehlo.add": "sum", "stablehlo.multiply": "prod", "stablehlo.maximum": "max", "stablehlo.minimum": "min"}
BOOLEAN = {
    **dict.fromkeys(("stablehlo.add", "stablehlo.maximum", "stablehlo.or"), "or"),
    **dict.fromkeys(("stablehlo.multiply", "stablehlo.minimum", "stablehlo.and"), "and"),
}
"""Bodies that level 1 knows, for numbers and for truth values."""


CUMULATIVE: dict[str, type[nd.Cumulative]] = {
    "stablehlo.add": nd.CumsumOp,
    "stablehlo.multiply": nd.CumprodOp,
    "stablehlo.maximum": nd.CummaxOp,
    "stablehlo.minimum": nd.CumminOp,
}
"""Bodies whose windows over all elements before, or behind, are a cumulative op: n steps instead of n * n."""


def _prefixes(
    shape: Sequence[int | str | None], window: Sequence[int], strides: Sequence[int], edges: Sequence[int], dilations: Sequence[int]
) -> tuple[int, bool] | None:
    """(dimension, whether from the end) of windows that hold everything up to their place, or from it on."""
    long = [d for d, n in enumerate(window) if n != 1]
    if len(long) != 1 or set(strides) != {1} or set(dilations) != {1}:
        return None
    (d,) = long
    n = window[d]
    around = [edge for k, edge in enumerate(edges) if k // 2 != d]
    if shape[d] != n or any(around) or (edges[2 * d], edges[2 * d + 1]) not in ((n - 1, 0), (0, n - 1)):
        return None
    return d, edges[2 * d] == 0


def reduce_window(conversion: Conversion, op: Operation) -> Values:
    """`result[i] = fold of operand[i * strides + w * dilations]`, from the initial value."""
    operands = conversion.operands(op)
    inputs, starts = operands[: len(operands) // 2], operands[len(operands) // 2 :]
    rank = rank_of(inputs[0])
    ones = (1,) * rank
    window = numbers(op, "window_dimensions") or ()
    strides, dilations = numbers(op, "window_strides") or ones, numbers(op, "window_dilations") or ones
    spread = numbers(op, "base_dilations") or ones
    edges = padding(op) or (0,) * (2 * rank)
    body = op.regions[0].block
    name = known_op(body)
    bits = is_bool(element_of(inputs[0]))
    kinds = BOOLEAN if bits else KINDS
    known = name in kinds and spread == ones and (name == "stablehlo.add" or not is_complex(element_of(inputs[0])))
    if known and any(edges) and name in ("stablehlo.add", "stablehlo.multiply") and not bits:
        known = is_identity(op.operands[1], name)  # what is outside of the operand is the initial value, and counts each time
    if known and name in CUMULATIVE and not bits:
        along = _prefixes(shape_of(inputs[0]), window, strides, edges, dilations)
        if along is not None:
            cumulative = conversion.emit(CUMULATIVE[name].make(inputs[0], *along))
            return [with_start(conversion, op.operands[1], body, starts[0], cumulative)]
    if known:
        plain = nd.ReduceWindowOp.make(kinds[name], inputs[0], window, strides=strides, padding=edges, dilations=dilations)
        return [with_start(conversion, op.operands[1], body, starts[0], conversion.emit(plain))]
    made = nd.ReduceWindowGeneralOp.make(
        inputs,
        starts,
        converted(conversion, body),
        window,
        strides=strides,
        padding=edges,
        dilations=dilations,
        base_dilations=spread,
    )
    conversion.emit(made)
    return made.results


def select_and_scatter(conversion: Conversion, op: Operation) -> Values:
    """`init + sum of source[w] at the first greatest element of window w`; with LE the first least."""
    operand, source, start = conversion.operands(op)
    direction = _direction(op.regions[0].block)
    if known_op(op.regions[1].block) != "stablehlo.add" or direction not in ("GE", "LE") or is_bool(element_of(operand)):
        return [_by_regions(conversion, op)]
    if direction == "LE":
        operand = conversion.emit(nd.NegOp.make(operand))
    rank = rank_of(operand)
    made = nd.SelectAndScatterOp.make(
        operand,
        source,
        numbers(op, "window_dimensions") or (1,) * rank,
        strides=numbers(op, "window_strides"),
        padding=padding(op),
    )
    added = conversion.emit(made)
    if is_identity(op.operands[2], "stablehlo.add"):
        return [added]
    return [conversion.emit(nd.AddOp.make(splat(conversion, start, shape_of(added)), added))]


def _direction(select: Block) -> str:
    """The direction of a body that compares its arguments, in their order."""
    compare = select.first_op
    if compare is None or known_op(select) != "stablehlo.compare" or list(compare.operands) != list(select.args):
        return ""
    total = word_of(attribute(compare, "compare_type")) == "TOTALORDER"
    return "" if total else word_of(attribute(compare, "comparison_direction"))


def _by_regions(conversion: Conversion, op: Operation) -> SSAValue:
    operand, source, start = conversion.operands(op)
    made = nd.SelectAndScatterGeneralOp.make(
        operand,
        source,
        start,
        converted(conversion, op.regions[0].block),
        converted(conversion, op.regions[1].block),
        numbers(op, "window_dimensions") or (1,) * rank_of(operand),
        strides=numbers(op, "window_strides"),
        padding=padding(op),
    )
    return conversion.emit(made)


RULES: dict[str, Rule] = {
    "stablehlo.reduce_window": reduce_window,
    "stablehlo.select_and_scatter": select_and_scatter,
}
