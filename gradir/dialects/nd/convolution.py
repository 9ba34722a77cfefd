"""Windows that slide over space: convolution, pooling, and the scatter that max-pooling's derivative needs.

Layout is fixed: channels last. Other layouts are `nd.transpose` around these ops, which lowering folds into index maps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from xdsl.dialects.builtin import TensorType
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import irdl_attr_definition, irdl_op_definition, operand_def, prop_def, result_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.str_enum import StrEnum

from gradir import size_algebra
from gradir.dialects.nd.base import I64, I64_ARRAY, TENSOR, NdOp, new
from gradir.dialects.nd.checks import check_at_least, check_element, check_length, check_same_types, check_shape
from gradir.dialects.nd.contraction import check_product_elements
from gradir.dialects.text import Clause, finish, parse_clauses, parse_operands, parse_tensor, parse_tensors, print_op, resolve
from gradir.dialects.types import Dim, element_of, i64_array, i64_attr, rank_of, shape_of, sizes_agree, tensor


def window_count(size: Dim, window: Dim, stride: int, low: int, high: int, dilation: int = 1, base_dilation: int = 1) -> Dim:
    """How many windows fit: `(padded - dilated window) // stride + 1`, 0 if none."""
    if not isinstance(size, int) or not isinstance(window, int):
        gaps = size_algebra.times(size_algebra.maximum(size_algebra.minus(size, 1), 0), base_dilation - 1)
        reach = size_algebra.plus(size_algebra.times(size_algebra.minus(window, 1), dilation), 1)
        spare = size_algebra.minus(size_algebra.plus(size_algebra.plus(size, gaps), low + high), reach)
        return size_algebra.maximum(size_algebra.plus(size_algebra.floordiv(spare, stride), 1), 0)
    padded = (max(size, 1) - 1) * base_dilation + (1 if size else 0) + low + high
    reach = (window - 1) * dilation + 1 if window else 0
    return 0 if padded < reach else (padded - reach) // stride + 1


@irdl_op_definition
class ConvGeneralOp(NdOp):
    """`result[n, s, o] = sum over k, c of lhs[n, s * strides - low + k * rhs_dilation, c] * rhs[k, c, o]`.

    lhs [N, spatial.., C], rhs [kernel.., C / feature_groups, O], result [N / batch_groups, spatial'.., O]. The positions of lhs are
    those of the input after `lhs_dilation` put (d - 1) zeros between neighbours; outside it reads 0; `padding` holds low and high per
    spatial dimension and may be negative. With feature groups, output channel o reads input channels of group `o // (O / groups)`; with
    batch groups, output channel o reads the images of group `o // (O / groups)`. Any spatial rank >= 1; products and sums in f32 at
    least. StableHLO: convolution. ONNX: Conv.
    """

    name = "nd.conv_general"
    FAMILY: ClassVar[str] = "convolution"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (
        Clause("strides", "strides", optional=True, fill=1, count="spatial"),
        Clause("padding", "padding", optional=True, count="spatial_padding"),
        Clause("lhs_dilation", "lhs_dilation", optional=True, fill=1, count="spatial"),
        Clause("rhs_dilation", "rhs_dilation", optional=True, fill=1, count="spatial"),
        Clause("feature_groups", "feature_groups", "int", optional=True, fill=1),
        Clause("batch_groups", "batch_groups", "int", optional=True, fill=1),
    )
    TYPES: ClassVar[str] = "map"

    lhs = operand_def(TENSOR)
    rhs = operand_def(TENSOR)
    strides = prop_def(I64_ARRAY)
    padding = prop_def(I64_ARRAY)
    lhs_dilation = prop_def(I64_ARRAY)
    rhs_dilation = prop_def(I64_ARRAY)
    feature_groups = prop_def(I64)
    batch_groups = prop_def(I64)
    result = result_def(TENSOR)

    def verify_(self) -> None:
        check_product_elements(self, self.lhs, self.rhs, self.result)
        lhs, rhs = shape_of(self.lhs), shape_of(self.rhs)
        spatial = len(lhs) - 2
        if spatial < 1:
            self.fail(f"lhs must have rank 3 or more (batch, spatial dimensions, channels), found {len(lhs)}")
        if len(rhs) != len(lhs):
            self.fail(f"ranks differ: lhs has {len(lhs)}, rhs has {len(rhs)}")
        for prop in ("strides", "lhs_dilation", "rhs_dilation"):
            check_length(self, prop, self.numbers(prop), spatial, "one per spatial dimension")
            check_at_least(self, prop, self.numbers(prop), 1)
        check_length(self, "padding", self.numbers("padding"), 2 * spatial, "low and high per spatial dimension")
        self._verify_groups(lhs, rhs)
        check_shape(self, self.result_shape(), self.result)

    def _verify_groups(self, lhs: Sequence[Dim], rhs: Sequence[Dim]) -> None:
        features, batches = self.number("feature_groups"), self.number("batch_groups")
        if features < 1 or batches < 1:
            self.fail(f"feature_groups and batch_groups must be at least 1, found {features} and {batches}")
        if features > 1 and batches > 1:
            self.fail(f"only one of feature_groups and batch_groups may exceed 1, found {features} and {batches}")
        channels, kernel_channels, outputs = lhs[-1], rhs[-2], rhs[-1]
        for what, size, groups in (
            ("lhs channels", channels, features),
            ("rhs output channels", outputs, features),
            ("rhs output channels", outputs, batches),
            ("lhs batch", lhs[0], batches),
        ):
            if groups > 1 and size is not None and size_algebra.quotient(size, groups) is None:
                self.fail(f"{what} must be a multiple of {groups} groups, found {size}")
        per_group = size_algebra.quotient(channels, features)
        if not sizes_agree(per_group, kernel_channels):
            self.fail(f"channels differ: lhs has {channels} in {features} feature groups, rhs expects {kernel_channels} per group")

    def result_shape(self) -> tuple[Dim, ...]:
        """[N / batch_groups, spatial'.., O]."""
        return self._result_shape(
            shape_of(self.lhs),
            shape_of(self.rhs),
            self.numbers("strides"),
            self.numbers("padding"),
            self.numbers("lhs_dilation"),
            self.numbers("rhs_dilation"),
            self.number("batch_groups"),
        )

    @staticmethod
    def _result_shape(
        lhs: Sequence[Dim],
        rhs: Sequence[Dim],
        strides: Sequence[int],
        padding: Sequence[int],
        lhs_dilation: Sequence[int],
        rhs_dilation: Sequence[int],
        batch_groups: int,
    ) -> tuple[Dim, ...]:
        spatial = [
            window_count(lhs[1 + d], rhs[d], strides[d], padding[2 * d], padding[2 * d + 1], rhs_dilation[d], lhs_dilation[d])
            for d in range(len(lhs) - 2)
        ]
        batch = size_algebra.floordiv(lhs[0], batch_groups)
        return (batch, *spatial, rhs[-1])

    @classmethod
    def make(
        cls,
        lhs: SSAValue,
        rhs: SSAValue,
        *,
        strides: Sequence[int] | None = None,
        padding: Sequence[int] | None = None,
        lhs_dilation: Sequence[int] | None = None,
        rhs_dilation: Sequence[int] | None = None,
        feature_groups: int = 1,
        batch_groups: int = 1,
        element: Attribute | None = None,
    ) -> Self:
        """Strides and dilations default to 1, padding to 0, the element type to that of `lhs`."""
        ones = (1,) * (rank_of(lhs) - 2)
        strides, lhs_dilation, rhs_dilation = strides or ones, lhs_dilation or ones, rhs_dilation or ones
        padding = padding or (0,) * (2 * len(ones))
        shape = cls._result_shape(shape_of(lhs), shape_of(rhs), strides, padding, lhs_dilation, rhs_dilation, batch_groups)
        properties: dict[str, Attribute] = {
            "strides": i64_array(strides),
            "padding": i64_array(padding),
            "lhs_dilation": i64_array(lhs_dilation),
            "rhs_dilation": i64_array(rhs_dilation),
            "feature_groups": i64_attr(feature_groups),
            "batch_groups": i64_attr(batch_groups),
        }
        return new(cls, (lhs, rhs), tensor(element or element_of(lhs), shape), properties)


class WindowKind(StrEnum):
    """How `nd.reduce_window` combines the elements of a window."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"
    PROD = "prod"
    AND = "and"
    OR = "or"


@irdl_attr_definition
class WindowKindAttr(EnumAttribute[WindowKind], SpacedOpaqueSyntaxAttribute):
    """`#nd<window_kind max>`"""

    name = "nd.window_kind"


WINDOW_KINDS: dict[str, WindowKindAttr] = {kind.value: WindowKindAttr(kind) for kind in WindowKind}


@irdl_op_definition
class ReduceWindowOp(NdOp):
    """`result[i] = sum, prod, max or min over w of operand[i * strides - low + w * dilations]`; of truth values `and` and `or`.

    Outside the operand: the identity of the kind. window, strides, dilations have one number per dimension of the operand, padding low and
    high. NaN wins in max and min. StableHLO: reduce_window. ONNX: MaxPool, AveragePool (a sum window divided by its count).
    """

    name = "nd.reduce_window"
    FAMILY: ClassVar[str] = "convolution"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (
        Clause("window", "window"),
        Clause("strides", "strides", optional=True, fill=1, count="rank"),
        Clause("padding", "padding", optional=True, count="padding"),
        Clause("dilations", "dilations", optional=True, fill=1, count="rank"),
    )

    operand = operand_def(TENSOR)
    kind = prop_def(WindowKindAttr)
    window = prop_def(I64_ARRAY)
    strides = prop_def(I64_ARRAY)
    padding = prop_def(I64_ARRAY)
    dilations = prop_def(I64_ARRAY)
    result = result_def(TENSOR)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        kind = WINDOW_KINDS[parser.parse_str_enum(WindowKind).value]
        parser.parse_punctuation(",")
        operands = parse_operands(parser)
        properties = {"kind": kind, **parse_clauses(parser, cls.CLAUSES)}
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        values = resolve(parser, operands, parse_tensors(parser), position)
        parser.parse_punctuation("->")
        op = finish(cls, values, parse_tensor(parser), properties, attributes, cls.CLAUSES)
        assert isinstance(op, cls)
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.kind.data.value},")
        print_op(self, printer, self.CLAUSES, "map")

    def verify_(self) -> None:
        kinds = {WindowKind.SUM: "number or complex", WindowKind.AND: "bool", WindowKind.OR: "bool"}
        check_element(self, "operand", self.operand, kinds.get(self.kind.data, "number"))
        verify_window(self, rank_of(self.operand), ("window", "strides", "dilations"))
        check_shape(self, self.result_shape(), self.result)
        if element_of(self.result) != element_of(self.operand):
            self.fail(f"element types differ: result has {element_of(self.result)}, operand has {element_of(self.operand)}")

    def result_shape(self) -> tuple[Dim, ...]:
        """One element per window."""
        return window_shape(shape_of(self.operand), *(self.numbers(p) for p in ("window", "strides", "padding", "dilations")))

    @staticmethod
    def infer(
        operand: SSAValue, window: Sequence[int], strides: Sequence[int], padding: Sequence[int], dilations: Sequence[int]
    ) -> TensorType[Any]:
        """One element per window."""
        return tensor(element_of(operand), window_shape(shape_of(operand), window, strides, padding, dilations))

    @classmethod
    def make(
        cls,
        kind: str,
        operand: SSAValue,
        window: Sequence[int],
        *,
        strides: Sequence[int] | None = None,
        padding: Sequence[int] | None = None,
        dilations: Sequence[int] | None = None,
    ) -> Self:
        """`kind` is sum, prod, max, min, and, or; every sequence has one number per dimension (padding: two)."""
        ones = (1,) * rank_of(operand)
        strides, dilations, padding = strides or ones, dilations or ones, padding or (0,) * (2 * len(ones))
        properties: dict[str, Attribute] = {
            "kind": WINDOW_KINDS[kind],
            "window": i64_array(window),
            "strides": i64_array(strides),
            "padding": i64_array(padding),
            "dilations": i64_array(dilations),
        }
        return new(cls, (operand,), cls.infer(operand, window, strides, padding, dilations), properties)


@irdl_op_definition
class SelectAndScatterOp(NdOp):
    """`result[p] = sum of source[w] over the windows w whose first maximal element is operand[p]`: the derivative of max-pooling.

    "First" is row-major within the window; NaN counts as maximal; a window that sees no element of the operand adds nothing. The result
    has the operand's type; sums run in f32 at least. StableHLO: select_and_scatter with GE and add. ONNX: MaxUnpool of MaxPool's
    indices.
    """

    name = "nd.select_and_scatter"
    FAMILY: ClassVar[str] = "convolution"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (
        Clause("window", "window"),
        Clause("strides", "strides", optional=True, fill=1, count="rank"),
        Clause("padding", "padding", optional=True, count="padding"),
    )
    TYPES: ClassVar[str] = "map"

    operand = operand_def(TENSOR)
    source = operand_def(TENSOR)
    window = prop_def(I64_ARRAY)
    strides = prop_def(I64_ARRAY)
    padding = prop_def(I64_ARRAY)
    result = result_def(TENSOR)

    def verify_(self) -> None:
        check_element(self, "operand", self.operand, "number")
        verify_window(self, rank_of(self.operand), ("window", "strides"))
        check_same_types(self, ("operand", "result"), (self.operand, self.result))
        ones = (1,) * rank_of(self.operand)
        windows = window_shape(shape_of(self.operand), self.numbers("window"), self.numbers("strides"), self.numbers("padding"), ones)
        check_shape(self, windows, self.source, "source")
        if element_of(self.source) != element_of(self.operand):
            self.fail(f"element types differ: source has {element_of(self.source)}, operand has {element_of(self.operand)}")

    @classmethod
    def make(
        cls,
        operand: SSAValue,
        source: SSAValue,
        window: Sequence[int],
        *,
        strides: Sequence[int] | None = None,
        padding: Sequence[int] | None = None,
    ) -> Self:
        """`source` has one element per window of the max-pooling with these numbers."""
        rank = rank_of(operand)
        properties: dict[str, Attribute] = {
            "window": i64_array(window),
            "strides": i64_array(strides or (1,) * rank),
            "padding": i64_array(padding or (0,) * (2 * rank)),
        }
        return new(cls, (operand, source), operand.type, properties)


def window_shape(
    shape: Sequence[Dim], window: Sequence[int], strides: Sequence[int], padding: Sequence[int], dilations: Sequence[int]
) -> tuple[Dim, ...]:
    """Number of windows along each dimension."""
    return tuple(
        window_count(size, window[d], strides[d], padding[2 * d], padding[2 * d + 1], dilations[d]) for d, size in enumerate(shape)
    )


def verify_window(op: NdOp, rank: int, props: Sequence[str]) -> None:
    """Each property has one positive number per dimension, `padding` two numbers."""
    for prop in props:
        check_length(op, prop, op.numbers(prop), rank, "one per dimension of the operand")
        check_at_least(op, prop, op.numbers(prop), 1)
    check_length(op, "padding", op.numbers("padding"), 2 * rank, "low and high per dimension of the operand")


OPS = (ConvGeneralOp, ReduceWindowOp, SelectAndScatterOp)
