"""Scaled dot product attention. It keeps its identity until `nd-expand`, so that a target may take it whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, f64, i1
from xdsl.ir import SSAValue
from xdsl.irdl import AttrSizedOperandSegments, irdl_op_definition, operand_def, opt_operand_def, prop_def, result_def
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from gradir.dialects.nd.base import TENSOR
from gradir.dialects.nd.checks import check_element, check_same_element, check_shape
from gradir.dialects.nd.composite import Composite, SoftmaxOp
from gradir.dialects.nd.expansion import Expansion
from gradir.dialects.text import flag_attr, parse_operands, parse_tensors, resolve
from gradir.dialects.types import Dim, element_of, rank_of, segments, shape_of, tensor

if TYPE_CHECKING:
    from gradir.ir.builder import Builder


@irdl_op_definition
class AttentionOp(Composite):
    """`result[b, i, h, :] = sum over j of p[b, h, i, j] v[b, j, h / r, :]`, `p = softmax over j of s`.

    `s[b, h, i, j] = scale (q[b, i, h, :] . k[b, j, h / r, :]) + bias[b, h, i, j]`, -inf where `mask` is false, and where `causal` and
    j > i. q [B, T, H, D], k [B, S, K, D], v [B, S, K, E], result [B, T, H, E]; mask (i1) and bias (of q's type) [B, H, T, S].
    Grouped queries: H = r K. A row without a key that it may see gives 0, and its gradients are 0. All in f32 at least, rounded once.
    JAX: nn.dot_product_attention. torch (heads second): scaled_dot_product_attention. ONNX: Attention.
    """

    name = "nd.attention"
    FAMILY: ClassVar[str] = "attention"

    q = operand_def(TENSOR)
    k = operand_def(TENSOR)
    v = operand_def(TENSOR)
    mask = opt_operand_def(TENSOR)
    bias = opt_operand_def(TENSOR)
    causal = prop_def(IntegerAttr.constr(type=i1))
    scale = prop_def(FloatAttr)
    result = result_def(TENSOR)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        names: list[UnresolvedOperand] = parse_operands(parser)
        counts = [1, 1, 1, 0, 0]
        for place, word in ((3, "mask"), (4, "bias")):
            if parser.parse_optional_keyword(word) is not None:
                names.append(parser.parse_unresolved_operand())
                counts[place] = 1
        causal = parser.parse_optional_keyword("causal") is not None
        parser.parse_keyword("scale")
        scale = FloatAttr(float(parser.parse_number()), f64)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        types = parse_tensors(parser)
        values = resolve(parser, names, types, position)
        parser.parse_punctuation("->")
        (result,) = parse_tensors(parser)
        properties = {"causal": flag_attr(causal), "scale": scale, "operandSegmentSizes": segments(*counts)}
        return cls.create(operands=values, result_types=(result,), properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list((self.q, self.k, self.v), printer.print_operand)
        for word, value in (("mask", self.mask), ("bias", self.bias)):
            if value is not None:
                printer.print_string(f" {word} ")
                printer.print_operand(value)
        printer.print_string(" causal scale " if self.is_causal else " scale ")
        printer.print_float(self.factor, f64)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_list(self.value_types, printer.print_attribute)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)

    @property
    def is_causal(self) -> bool:
        """Row i sees the keys 0 to i only."""
        return bool(self.number("causal"))

    @property
    def factor(self) -> float:
        """What the dot products are multiplied by."""
        return self.scale.value.data

    def verify_(self) -> None:
        check_element(self, "q", self.q, "float")
        for name, value in (("q", self.q), ("k", self.k), ("v", self.v)):
            check_same_element(self, name, value, "q", self.q)
            if len(shape_of(value)) != 4:
                self.fail(f"{name} must have rank 4, [B, T, H, D], found {value.type}")
        batch, rows, heads, depth = shape_of(self.q)
        _, keys, shared, _ = shape_of(self.k)
        check_shape(self, (batch, keys, shared, depth), self.k, "k")
        check_shape(self, (batch, keys, shared, shape_of(self.v)[3]), self.v, "v")
        if not (isinstance(heads, int) and isinstance(shared, int)):
            self.fail(f"the numbers of heads must be static, found {self.q.type} and {self.k.type}")
        if heads and (not shared or heads % shared):
            self.fail(f"the {heads} heads of q must be a multiple of the {shared} heads of k and v")
        if not isinstance(depth, int):
            self.fail(f"the size of a head must be static, found {self.q.type}")
        scores = (batch, heads, rows, keys)
        if self.mask is not None:
            check_element(self, "mask", self.mask, "bool")
            check_shape(self, scores, self.mask, "mask")
        if self.bias is not None:
            check_same_element(self, "bias", self.bias, "q", self.q)
            check_shape(self, scores, self.bias, "bias")
        check_same_element(self, "result", self.result, "q", self.q)
        check_shape(self, (batch, rows, heads, shape_of(self.v)[3]), self.result)

    @classmethod
    def make(
        cls,
        q: SSAValue,
        k: SSAValue,
        v: SSAValue,
        *,
        mask: SSAValue | None = None,
        bias: SSAValue | None = None,
        causal: bool = False,
        scale: float | None = None,
    ) -> Self:
        """`scale` is 1 / sqrt(D) unless given."""
        return cls.create(
            operands=[q, k, v, *(x for x in (mask, bias) if x is not None)],
            result_types=(cls.infer(q, v),),
            properties=cls.options(q, mask is not None, bias is not None, causal, scale),
        )

    @staticmethod
    def infer(q: SSAValue, v: SSAValue) -> Any:
        """[B, T, H, E]"""
        return tensor(element_of(q), (*shape_of(q)[:3], shape_of(v)[3]))

    @staticmethod
    def options(q: Any, mask: bool, bias: bool, causal: bool, scale: float | None) -> dict[str, Any]:
        """The properties; `q` is a value or a type."""
        depth = shape_of(q)[3]
        factor = scale if scale is not None else depth**-0.5 if isinstance(depth, int) and depth else 1.0
        counts = segments(1, 1, 1, int(mask), int(bias))
        return {"causal": flag_attr(causal), "scale": FloatAttr(factor, f64), "operandSegmentSizes": counts}

    def decompose(self, builder: Builder, operands: Sequence[SSAValue]) -> list[SSAValue]:
        e = Expansion(builder)
        given = iter(operands)
        q, k, v = (e.widen(next(given)) for _ in range(3))
        mask = next(given) if self.mask is not None else None
        bias = e.widen(next(given)) if self.bias is not None else None
        batch, rows, heads, depth = shape_of(q)
        shared = shape_of(k)[2]
        assert isinstance(heads, int) and isinstance(shared, int), "verified"
        group = heads // shared if shared else 0
        if group == 1:
            scores = e.dot(q, k, batch=((0, 2), (0, 2)), contract=((3,), (3,)))  # [B, H, T, S]
        else:  # heads of one group share k and v, and stay apart from other groups up to the end: [B, T, K, r, D]
            apart = e.transpose(e.reshape(q, (batch, rows, shared, group, depth)), (0, 2, 3, 1, 4))
            scores = e.dot(apart, k, batch=((0, 1), (0, 2)), contract=((4,), (3,)))  # [B, K, r, T, S]
        shape, last = shape_of(scores), rank_of(scores) - 1
        scores = e.mul(scores, self.factor)
        if bias is not None:
            scores = e.add(scores, bias if group == 1 else e.reshape(bias, shape))
        if self.is_causal:
            scores = e.select(e.not_after(scores, last, last - 1), scores, float("-inf"))
        if mask is not None:
            scores = e.select(mask if group == 1 else e.reshape(mask, shape), scores, float("-inf"))
        weights = e.emit(SoftmaxOp.make(scores, last))
        around = ((0, 1), (0, 2))
        mixed = e.dot(weights, v, batch=around, contract=((last,), (1,)))  # [B, H, T, E] or [B, K, r, T, E]
        if group == 1:
            return [e.narrow(e.transpose(mixed, (0, 2, 1, 3)), self.result.type)]
        moved = e.transpose(mixed, (0, 3, 1, 2, 4))
        return [e.narrow(e.reshape(moved, _result(moved, heads)), self.result.type)]


def _result(moved: SSAValue, heads: int) -> tuple[Dim, ...]:
    batch, rows, _, _, width = shape_of(moved)
    return (batch, rows, heads, width)


OPS = (AttentionOp,)
