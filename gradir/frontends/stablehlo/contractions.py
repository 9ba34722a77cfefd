"""dot, dot_general and convolution. Level 1's convolution is channels last: other layouts are transposes around it."""

from __future__ import annotations

from xdsl.ir import Operation

from gradir.dialects import nd
from gradir.dialects.types import element_of, ints, rank_of
from gradir.frontends.stablehlo.attributes import ConvNumbers, Layout, Numbers
from gradir.frontends.stablehlo.conversion import Conversion, Rule, UnsupportedError, Values, transpose
from gradir.frontends.stablehlo.dialect import attribute, number, numbers


def dot_general(conversion: Conversion, op: Operation) -> Values:
    """Sums of products over the contracting dimensions, in f32 at least whatever `precision` says."""
    lhs, rhs = conversion.operands(op)
    dims = attribute(op, "dot_dimension_numbers")
    if not isinstance(dims, Numbers):
        raise UnsupportedError("dot_dimension_numbers are not #stablehlo.dot<..>")
    lhs_contract, rhs_contract, lhs_batch, rhs_batch = (
        dims.numbers(f"{side}_{what}_dimensions") for what in ("contracting", "batching") for side in ("lhs", "rhs")
    )
    element = element_of(op.results[0])
    return [conversion.emit(nd.DotGeneralOp.make(lhs, rhs, lhs_contract, rhs_contract, lhs_batch, rhs_batch, element))]


def dot(conversion: Conversion, op: Operation) -> Values:
    """The last dimension of lhs with the first of rhs."""
    lhs, rhs = conversion.operands(op)
    return [conversion.emit(nd.DotGeneralOp.make(lhs, rhs, [rank_of(lhs) - 1], [0], element=element_of(op.results[0])))]


def convolution(conversion: Conversion, op: Operation) -> Values:
    """Transposes to [b, 0, 1, f] and [0, 1, i, o], `nd.conv_general`, a transpose back."""
    lhs, rhs = conversion.operands(op)
    layouts = attribute(op, "dimension_numbers")
    if not isinstance(layouts, ConvNumbers):
        raise UnsupportedError("dimension_numbers are not #stablehlo.conv<..>")
    of_lhs, of_rhs, of_result = layouts.data
    spatial = range(rank_of(lhs) - 2)
    lhs = transpose(conversion, lhs, _places(of_lhs, ("b", *spatial, "f")))
    rhs = transpose(conversion, rhs, _places(of_rhs, (*spatial, "i", "o")))
    reversal = numbers(op, "window_reversal") or ()
    reversed_dims = [d for d in spatial if reversal and reversal[d]]
    if reversed_dims:
        rhs = conversion.emit(nd.ReverseOp.make(rhs, reversed_dims))
    made = nd.ConvGeneralOp.make(
        lhs,
        rhs,
        strides=numbers(op, "window_strides"),
        padding=padding(op),
        lhs_dilation=numbers(op, "lhs_dilation"),
        rhs_dilation=numbers(op, "rhs_dilation"),
        feature_groups=number(op, "feature_group_count", 1),
        batch_groups=number(op, "batch_group_count", 1),
        element=element_of(op.results[0]),
    )
    return [transpose(conversion, conversion.emit(made), _places(("b", *spatial, "f"), of_result))]


def padding(op: Operation) -> tuple[int, ...] | None:
    """Low and high of every dimension, flat: `dense<[[1, 1], [0, 0]]>` in the generic form."""
    found = attribute(op, "padding")
    if found is None:
        return None
    get_values = getattr(found, "get_values", None)
    values = tuple(int(n) for n in get_values()) if get_values is not None else ints(found)
    return values


def _places(source: Layout, wanted: Layout) -> list[int]:
    """The permutation that brings a value laid out as `source` into the order `wanted`."""
    return [source.index(name) for name in wanted]


RULES: dict[str, Rule] = {
    "stablehlo.dot_general": dot_general,
    "stablehlo.dot": dot,
    "stablehlo.convolution": convolution,
}
