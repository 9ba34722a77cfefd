"""dot_general and convolution. The precision is the highest: our products and sums never have fewer bits than f32."""

from __future__ import annotations

from gradir.dialects import nd
from gradir.frontends.stablehlo.export.writer import ExportRule, Values, Writer, i64s, kind_of

PRECISION = "precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]"


def dot_general(w: Writer, op: nd.DotGeneralOp, operands: Values) -> Values:
    """Sums of products over the contracting dimensions."""
    named = (
        ("lhs_batching_dimensions", "lhs_batch"),
        ("rhs_batching_dimensions", "rhs_batch"),
        ("lhs_contracting_dimensions", "lhs_contract"),
        ("rhs_contracting_dimensions", "rhs_contract"),
    )
    dims = ", ".join(f"{name} = {list(op.numbers(prop))}" for name, prop in named)
    return [
        w.one(
            "stablehlo.dot_general",
            operands,
            kind_of(op.result.type),
            f"dot_dimension_numbers = #stablehlo.dot<{dims}>, {PRECISION}",
        )
    ]


def conv_general(w: Writer, op: nd.ConvGeneralOp, operands: Values) -> Values:
    """The same windows; channels are last."""
    spatial = range(operands[0].rank - 2)
    places = ", ".join(map(str, spatial))
    layouts = f"[b, {places}, f]x[{places}, i, o]->[b, {places}, f]"
    padding = op.numbers("padding")
    rows = ", ".join(f"[{padding[2 * d]}, {padding[2 * d + 1]}]" for d in spatial)
    attributes = [
        f"window_strides = {i64s(op.numbers('strides'))}",
        f"padding = dense<[{rows}]> : tensor<{len(spatial)}x2xi64>",
        f"lhs_dilation = {i64s(op.numbers('lhs_dilation'))}",
        f"rhs_dilation = {i64s(op.numbers('rhs_dilation'))}",
        f"dimension_numbers = #stablehlo.conv<{layouts}>",
        f"feature_group_count = {op.number('feature_groups')} : i64",
        f"batch_group_count = {op.number('batch_groups')} : i64",
        PRECISION,
    ]
    return [w.one("stablehlo.convolution", operands, kind_of(op.result.type), ", ".join(attributes))]


RULES: dict[str, ExportRule] = {"nd.dot_general": dot_general, "nd.conv_general": conv_general}
