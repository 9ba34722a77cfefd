"""reduce_window and select_and_scatter: the poolings that level 1 has, and any other window as a fold over its elements."""

from __future__ import annotations

from itertools import product

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import Operation, SSAValue

from gradir.dialects import nd
from gradir.dialects.types import element_of, is_bool, rank_of, static_shape, tensor
from gradir.frontends.stablehlo.attributes import word_of
from gradir.frontends.stablehlo.contractions import padding
from gradir.frontends.stablehlo.conversion import Conversion, Rule, UnsupportedError, Values, splat
from gradir.frontends.stablehlo.dialect import attribute, numbers
from gradir.frontends.stablehlo.elementwise import lifted
from gradir.frontends.stablehlo.reductions import counted_loop, is_identity, known_op, with_start

KINDS = {"stablehlo.add": "sum", "stablehlo.maximum": "max", "stablehlo.minimum": "min"}
UNROLL_LIMIT = 64
"""Elements of a window that is folded one by one."""


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
    plain, edged = spread == ones, any(edges) or spread != ones
    known = name in KINDS and not is_bool(element_of(inputs[0]))
    if known and edged and name == "stablehlo.add":
        known = is_identity(op.operands[1], name)  # what is outside of the operand is the initial value, and counts each time
    if known and plain:
        made = nd.ReduceWindowOp.make(KINDS[name], inputs[0], window, strides=strides, padding=edges, dilations=dilations)
        return [with_start(conversion, op.operands[1], body, starts[0], conversion.emit(made))]
    low, high, interior = edges[0::2], edges[1::2], [n - 1 for n in spread]
    padded = [_pad(conversion, x, start, (low, high, interior)) for x, start in zip(inputs, starts)]
    if known:
        made = nd.ReduceWindowOp.make(KINDS[name], padded[0], window, strides=strides, dilations=dilations)
        return [with_start(conversion, op.operands[1], body, starts[0], conversion.emit(made))]
    return _fold(conversion, op, padded, starts, (window, strides, dilations))


Numbers = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""Window, strides, dilations."""


def _fold(conversion: Conversion, op: Operation, padded: Values, starts: Values, numbers: Numbers) -> Values:
    """`state = body(state, element w of every window)` for w in index order, for all windows at once."""
    window, strides, dilations = numbers
    body, shape = op.regions[0].block, static_shape(op.results[0])
    state: Values = [splat(conversion, start, shape) for start in starts]
    size, long = int(np.prod(window, dtype=np.int64)), [d for d, n in enumerate(window) if n > 1]
    if size <= UNROLL_LIMIT:
        for at in product(*map(range, window)):
            first = [n * d for n, d in zip(at, dilations)]
            limit = [f + (n - 1) * s + 1 if n else f for f, n, s in zip(first, shape, strides)]
            items = [conversion.emit(nd.SliceOp.make(x, first, limit, strides)) for x in padded]
            state = lifted(conversion, body, [*state, *items], shape)
        return state
    if len(long) != 1 or any(n != 1 for n in strides):
        raise UnsupportedError(f"a window of {size} elements with a body that is not add, maximum or minimum from their identity")
    (dim,) = long
    places = conversion.emit(nd.ConstantOp.make(np.arange(size, dtype=np.int64) * dilations[dim]))
    zero = conversion.constant(0, tensor(i64))

    def step(k: SSAValue, state: list[SSAValue]) -> list[SSAValue]:
        at = [zero] * len(shape)
        at[dim] = conversion.emit(nd.IndexAtOp.make(places, k, 0))
        items = [conversion.emit(nd.DynamicSliceOp.make(x, at, shape)) for x in padded]
        return lifted(conversion, body, [*state, *items], shape)

    return counted_loop(conversion, size, state, step)


def _pad(conversion: Conversion, value: SSAValue, fill: SSAValue, edges: tuple[tuple[int, ...], tuple[int, ...], list[int]]) -> SSAValue:
    low, high, interior = edges
    return conversion.emit(nd.PadOp.make(value, fill, low, high, interior)) if any((*low, *high, *interior)) else value


def select_and_scatter(conversion: Conversion, op: Operation) -> Values:
    """`init + sum of source[w] at the first greatest element of window w`; with LE the first least."""
    operand, source, start = conversion.operands(op)
    if known_op(op.regions[1].block) != "stablehlo.add":
        raise UnsupportedError("a scatter body that is not add")
    choice = known_op(op.regions[0].block)
    compare = op.regions[0].block.first_op
    assert compare is not None or not choice
    direction = word_of(attribute(compare, "comparison_direction")) if compare is not None and choice == "stablehlo.compare" else ""
    if direction not in ("GE", "LE") or compare is None or list(compare.operands) != list(op.regions[0].block.args):
        raise UnsupportedError("a select body that is not compare GE or LE of its arguments")
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
    return [conversion.emit(nd.AddOp.make(splat(conversion, start, static_shape(added)), added))]


RULES: dict[str, Rule] = {
    "stablehlo.reduce_window": reduce_window,
    "stablehlo.select_and_scatter": select_and_scatter,
}
