"""Composites: ops with a name of their own that primitives can express.

They keep their identity until `nd-expand`, so that a target may take them whole; `decompose` is their expansion, which autodiff uses
too. They compute in f32 at least inside and round once at the end. Meaning: docs/numerics.md, "Reductions and composites".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, TensorType, f64, i1
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def
from xdsl.parser import Parser
from xdsl.printer import Printer

from gradir.dialects.nd.base import I64, TENSOR, NdOp, new
from gradir.dialects.nd.checks import check_dims, check_element, check_same_element, check_same_types, check_shape
from gradir.dialects.nd.expansion import Expansion
from gradir.dialects.text import Clause, flag_attr, parse_operands, parse_tensors, resolve
from gradir.dialects.types import element_of, i64_attr, rank_of, shape_of, tensor

if TYPE_CHECKING:
    from gradir.ir.builder import Builder


class Composite(NdOp):
    """An op that expands into primitives."""

    FAMILY: ClassVar[str] = "composite"

    def decompose(self, builder: Builder, operands: Sequence[SSAValue]) -> list[SSAValue]:
        """Append primitives that compute this op's results from `operands`; the results."""
        raise NotImplementedError(self.name)  # abstract: every composite defines its own


class AlongDim(Composite):
    """A composite over one dimension of its operand."""

    CLAUSES: ClassVar[tuple[Clause, ...]] = (Clause("dim", "dim", "int"),)

    operand = operand_def(TENSOR)
    dim = prop_def(I64)
    result = result_def(TENSOR)

    def verify_(self) -> None:
        check_element(self, "operand", self.operand, "float")
        check_dims(self, "dim", (self.number("dim"),), rank_of(self.operand))
        check_same_types(self, ("operand", "result"), (self.operand, self.result))

    @classmethod
    def make(cls, operand: SSAValue, dim: int) -> Self:
        """Along `dim` (not negative)."""
        return new(cls, (operand,), operand.type, {"dim": i64_attr(dim)})


@irdl_op_definition
class SoftmaxOp(AlongDim):
    """`result[r, d] = e**(x[r, d] - m[r]) / sum over d of e**(x[r, d] - m[r])`, m the maximum.

    A row of -inf gives 0, a row with +inf or NaN gives NaN. ONNX: Softmax.
    """

    name = "nd.softmax"

    def decompose(self, builder: Builder, operands: Sequence[SSAValue]) -> list[SSAValue]:
        e = Expansion(builder)
        dims = (self.number("dim"),)
        x = e.widen(operands[0])
        powers = e.exp(e.sub(x, e.spread(e.finite_max(x, dims), x, dims)))
        # the largest power is 1, so a sum below 1/2 means a row of -inf
        total = e.max(e.sum(powers, dims), 0.5)
        # a / t == a * (1 / t) up to one more rounding, when t is in [1/2, 2**127): one division a row
        return [e.narrow(e.mul(powers, e.spread(e.div(1.0, total), x, dims)), self.result.type)]


@irdl_op_definition
class LogSoftmaxOp(AlongDim):
    """`result[r, d] = (x[r, d] - m[r]) - ln sum over d of e**(x[r, d] - m[r])`, m the maximum; a row of -inf gives -inf.

    ONNX: LogSoftmax.
    """

    name = "nd.log_softmax"

    def decompose(self, builder: Builder, operands: Sequence[SSAValue]) -> list[SSAValue]:
        e = Expansion(builder)
        dims = (self.number("dim"),)
        x = e.widen(operands[0])
        shifted = e.sub(x, e.spread(e.finite_max(x, dims), x, dims))
        total = e.max(e.sum(e.exp(shifted), dims), 0.5)
        return [e.narrow(e.sub(shifted, e.spread(e.log(total), x, dims)), self.result.type)]


@irdl_op_definition
class LogsumexpOp(AlongDim):
    """`result[r] = m[r] + ln sum over d of e**(x[r, d] - m[r])`, m the maximum; -inf for a row of -inf or an empty one.

    ONNX: ReduceLogSumExp.
    """

    name = "nd.logsumexp"
    TYPES: ClassVar[str] = "map"

    def verify_(self) -> None:
        dim, shape = self.number("dim"), shape_of(self.operand)
        check_element(self, "operand", self.operand, "float")
        check_dims(self, "dim", (dim,), len(shape))
        check_same_element(self, "result", self.result, "operand", self.operand)
        check_shape(self, shape[:dim] + shape[dim + 1 :], self.result)

    @staticmethod
    def infer(operand: SSAValue, dim: int) -> TensorType[Any]:
        """The operand's type without `dim`."""
        shape = shape_of(operand)
        return tensor(element_of(operand), shape[:dim] + shape[dim + 1 :])

    @classmethod
    def make(cls, operand: SSAValue, dim: int) -> Self:
        """Along `dim` (not negative), which the result drops."""
        return new(cls, (operand,), cls.infer(operand, dim), {"dim": i64_attr(dim)})

    def decompose(self, builder: Builder, operands: Sequence[SSAValue]) -> list[SSAValue]:
        e = Expansion(builder)
        dims = (self.number("dim"),)
        x = e.widen(operands[0])
        top = e.finite_max(x, dims, also_above=True)
        total = e.sum(e.exp(e.sub(x, e.spread(top, x, dims))), dims)
        return [e.narrow(e.add(e.log(total), top), self.result.type)]


@irdl_op_definition
class LayerNormOp(Composite):
    """`result[r, d] = (x[r, d] - mean[r]) / sqrt(var[r] + eps) * scale[d] + bias[d]` over the last dimension, var biased.

    operand [R.., D], scale [D], bias [D]. Two passes, shifted and scaled before squaring: no overflow, a constant row gives exactly `bias`.
    ONNX: LayerNormalization(axis=-1).
    """

    name = "nd.layer_norm"

    operand = operand_def(TENSOR)
    scale = operand_def(TENSOR)
    bias = operand_def(TENSOR)
    eps = prop_def(FloatAttr)
    result = result_def(TENSOR)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operands = parse_operands(parser)
        parser.parse_keyword("eps")
        eps = FloatAttr(float(parser.parse_number()), f64)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        types = parse_tensors(parser)
        values = resolve(parser, operands, types, position)
        return cls.create(operands=values, result_types=(types[0],), properties={"eps": eps}, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_operand)
        printer.print_string(" eps ")
        printer.print_float(self.epsilon, f64)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_list(self.value_types, printer.print_attribute)

    @property
    def epsilon(self) -> float:
        """What is added to the variance."""
        return self.eps.value.data

    def verify_(self) -> None:
        check_element(self, "operand", self.operand, "float")
        check_same_types(self, ("operand", "result"), (self.operand, self.result))
        shape = shape_of(self.operand)
        if not shape or not isinstance(shape[-1], int):
            self.fail(f"the last dimension must have a static size, found {self.operand.type}")
        for name, value in (("scale", self.scale), ("bias", self.bias)):
            check_same_element(self, name, value, "operand", self.operand)
            check_shape(self, shape[-1:], value, name)
        if self.epsilon < 0:
            self.fail(f"eps must be at least 0, found {self.epsilon}")

    @classmethod
    def make(cls, operand: SSAValue, scale: SSAValue, bias: SSAValue, eps: float = 1e-5) -> Self:
        """Over the last dimension."""
        return new(cls, (operand, scale, bias), operand.type, {"eps": FloatAttr(eps, f64)})

    def decompose(self, builder: Builder, operands: Sequence[SSAValue]) -> list[SSAValue]:
        e = Expansion(builder)
        x, scale, bias = (e.widen(value) for value in operands)
        last = rank_of(x) - 1
        normal, _, _ = e.standardized(x, (last,), self.epsilon)
        result = e.add(e.mul(normal, e.along(scale, x, last)), e.along(bias, x, last))
        return [e.narrow(result, self.result.type)]


@irdl_op_definition
class GeluOp(Composite):
    """`result = x * P(X <= x)`, X standard normal: `x/2 (1 + erf(x / sqrt 2))`.

    Approximate: `x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x**3)))`. ONNX: Gelu.
    """

    name = "nd.gelu"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (Clause("approximate", "approximate", "flag", optional=True),)

    operand = operand_def(TENSOR)
    approximate = prop_def(IntegerAttr.constr(type=i1))
    result = result_def(TENSOR)

    def verify_(self) -> None:
        check_element(self, "operand", self.operand, "float")
        check_same_types(self, ("operand", "result"), (self.operand, self.result))

    @property
    def is_approximate(self) -> bool:
        """True of the tanh form."""
        return bool(self.number("approximate"))

    @classmethod
    def make(cls, operand: SSAValue, approximate: bool = False) -> Self:
        """`approximate` chooses the tanh form."""
        return new(cls, (operand,), operand.type, {"approximate": flag_attr(approximate)})

    def decompose(self, builder: Builder, operands: Sequence[SSAValue]) -> list[SSAValue]:
        e = Expansion(builder)
        x = e.widen(operands[0])
        if self.is_approximate:
            cube = e.mul(e.mul(x, x), x)
            inner = e.tanh(e.mul(e.add(x, e.mul(cube, 0.044715)), 0.7978845608028654))
        else:
            inner = e.erf(e.mul(x, 0.7071067811865476))
        return [e.narrow(e.mul(e.mul(x, 0.5), e.add(inner, 1.0)), self.result.type)]


@irdl_op_definition
class CrossEntropyOp(Composite):
    """`result[n] = ln(sum over c of e**logits[n, c]) - logits[n, labels[n]]`, max-shifted.

    logits [N, C], labels [N] integers, clamped to 0 .. C-1 as `nd.gather` does. ONNX: SoftmaxCrossEntropyLoss(reduction=none).
    """

    name = "nd.cross_entropy"
    TYPES: ClassVar[str] = "map"

    logits = operand_def(TENSOR)
    labels = operand_def(TENSOR)
    result = result_def(TENSOR)

    def verify_(self) -> None:
        shape = shape_of(self.logits)
        check_element(self, "logits", self.logits, "float")
        check_element(self, "labels", self.labels, "integer")
        if len(shape) != 2:
            self.fail(f"logits must have rank 2, found {self.logits.type}")
        if not isinstance(shape[1], int):
            self.fail(f"the number of classes must be static, found {self.logits.type}")
        if shape[1] == 0:
            self.fail("logits have 0 classes: no label can name one")
        check_shape(self, shape[:1], self.labels, "labels")
        check_shape(self, shape[:1], self.result)
        check_same_element(self, "result", self.result, "logits", self.logits)

    @classmethod
    def make(cls, logits: SSAValue, labels: SSAValue) -> Self:
        """One loss per row of `logits`."""
        return new(cls, (logits, labels), tensor(element_of(logits), shape_of(logits)[:1]))

    def decompose(self, builder: Builder, operands: Sequence[SSAValue]) -> list[SSAValue]:
        e = Expansion(builder)
        x = e.widen(operands[0])
        classes = shape_of(x)[1]
        assert isinstance(classes, int), "verified"
        shifted = e.sub(x, e.spread(e.finite_max(x, (1,)), x, (1,)))
        total = e.max(e.sum(e.exp(shifted), (1,)), 0.5)
        chosen = e.one_hot(operands[1], x, classes)
        picked = e.sum(e.select(chosen, shifted, 0.0), (1,))
        return [e.narrow(e.sub(e.log(total), picked), self.result.type)]


OPS = (SoftmaxOp, LogSoftmaxOp, LogsumexpOp, LayerNormOp, GeluOp, CrossEntropyOp)
