"""Normalisations: values shifted by their mean and divided by their spread, without overflow and without cancellation.

All keep their identity until `nd-expand`. They compute in f32 at least inside and round once; values are scaled before they are squared,
so that no intermediate overflows, and shifted by one of them, so that a constant group gives exactly 0. `nd.layer_norm` is in `composite`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from xdsl.dialects.builtin import FloatAttr, f64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def
from xdsl.parser import Parser
from xdsl.printer import Printer

from gradir.dialects.nd.base import I64, TENSOR
from gradir.dialects.nd.checks import check_dims, check_element, check_same_element, check_same_types, check_shape
from gradir.dialects.nd.composite import Composite
from gradir.dialects.nd.expansion import Expansion
from gradir.dialects.text import Clause, parse_clauses, parse_operands, parse_tensors, print_clauses, resolve
from gradir.dialects.types import i64_attr, rank_of, shape_of

if TYPE_CHECKING:
    from gradir.ir.builder import Builder


class Normalization(Composite):
    """`op %x, %vectors.. clauses eps 1.0e-05 : types of the operands`; the first result is like x, others like the first vector."""

    FAMILY: ClassVar[str] = "normalization"
    RESULTS: ClassVar[int] = 1

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operands = parse_operands(parser)
        properties = parse_clauses(parser, cls.CLAUSES)
        parser.parse_keyword("eps")
        properties["eps"] = FloatAttr(float(parser.parse_number()), f64)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        types = parse_tensors(parser)
        values = resolve(parser, operands, types, position)
        results = [types[0], *[types[1]] * (cls.RESULTS - 1)]
        return cls.create(operands=values, result_types=results, properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_operand)
        print_clauses(self, printer, self.CLAUSES, 0)
        printer.print_string(" eps ")
        printer.print_float(self.epsilon, f64)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_list(self.value_types, printer.print_attribute)

    @property
    def epsilon(self) -> float:
        """What is added to the variance."""
        value: Any = self.properties["eps"]
        return value.value.data

    def check(self, dim: int, vectors: Sequence[tuple[str, SSAValue]]) -> None:
        """The operand is of floats, `vectors` lie along its dimension `dim`, the first result is like the operand."""
        x = self.operands[0]
        check_element(self, "operand", x, "float")
        check_dims(self, "dim", (dim,), rank_of(x))
        check_same_types(self, ("operand", "result"), (x, self.results[0]))
        for name, value in vectors:
            check_same_element(self, name, value, "operand", x)
            check_shape(self, (shape_of(x)[dim],), value, name)
        if not self.epsilon >= 0:
            self.fail(f"eps must be at least 0, found {self.epsilon}")

    @classmethod
    def of(cls, operands: Sequence[SSAValue], eps: float, **numbers: int) -> Self:
        """The op on these operands."""
        properties: dict[str, Attribute] = {name: i64_attr(value) for name, value in numbers.items()}
        results = [operands[0].type, *[operands[1].type] * (cls.RESULTS - 1)]
        return cls.create(operands=tuple(operands), result_types=results, properties={**properties, "eps": FloatAttr(eps, f64)})


@irdl_op_definition
class BatchNormTrainOp(Normalization):
    """`result = (x - mean[c]) / sqrt(var[c] + eps) * scale[c] + bias[c]`; mean and var are results too.

    operand [R.., C, S..], scale, bias, mean, var [C], C the dimension `dim`; mean and (biased) variance are over all other dimensions.
    A constant channel gives exactly `bias`. StableHLO: batch_norm_training. ONNX: BatchNormalization(training_mode=1).
    """

    name = "nd.batch_norm_train"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (Clause("dim", "dim", "int"),)
    RESULTS: ClassVar[int] = 3

    operand = operand_def(TENSOR)
    scale = operand_def(TENSOR)
    bias = operand_def(TENSOR)
    dim = prop_def(I64)
    eps = prop_def(FloatAttr)
    result = result_def(TENSOR)
    mean = result_def(TENSOR)
    var = result_def(TENSOR)

    def verify_(self) -> None:
        vectors = [("scale", self.scale), ("bias", self.bias), ("mean", self.mean), ("var", self.var)]
        self.check(self.number("dim"), vectors)

    @classmethod
    def make(cls, operand: SSAValue, scale: SSAValue, bias: SSAValue, dim: int, eps: float = 1e-5) -> Self:
        """Over all dimensions but `dim`."""
        return cls.of((operand, scale, bias), eps, dim=dim)

    def decompose(self, builder: Builder, operands: Sequence[SSAValue]) -> list[SSAValue]:
        e = Expansion(builder)
        x, scale, bias = (e.widen(value) for value in operands)
        dim = self.number("dim")
        normal, mean, var = e.standardized(x, [d for d in range(rank_of(x)) if d != dim], self.epsilon)
        result = e.add(e.mul(normal, e.along(scale, x, dim)), e.along(bias, x, dim))
        return [e.narrow(value, old.type) for value, old in zip((result, mean, var), self.results)]


@irdl_op_definition
class BatchNormInferOp(Normalization):
    """`result = (x - mean[c]) / sqrt(var[c] + eps) * scale[c] + bias[c]`, with mean and var given.

    operand [R.., C, S..], scale, bias, mean, var [C], C the dimension `dim`. StableHLO: batch_norm_inference. ONNX: BatchNormalization.
    """

    name = "nd.batch_norm_infer"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (Clause("dim", "dim", "int"),)

    operand = operand_def(TENSOR)
    scale = operand_def(TENSOR)
    bias = operand_def(TENSOR)
    mean = operand_def(TENSOR)
    var = operand_def(TENSOR)
    dim = prop_def(I64)
    eps = prop_def(FloatAttr)
    result = result_def(TENSOR)

    def verify_(self) -> None:
        vectors = [("scale", self.scale), ("bias", self.bias), ("mean", self.mean), ("var", self.var)]
        self.check(self.number("dim"), vectors)

    @classmethod
    def make(cls, operand: SSAValue, scale: SSAValue, bias: SSAValue, mean: SSAValue, var: SSAValue, dim: int, eps: float = 1e-5) -> Self:
        """Along dimension `dim`."""
        return cls.of((operand, scale, bias, mean, var), eps, dim=dim)

    def decompose(self, builder: Builder, operands: Sequence[SSAValue]) -> list[SSAValue]:
        e = Expansion(builder)
        x, scale, bias, mean, var = (e.widen(value) for value in operands)
        dim = self.number("dim")
        normal = e.div(e.sub(x, e.along(mean, x, dim)), e.along(e.sqrt(e.add(var, self.epsilon)), x, dim))
        result = e.add(e.mul(normal, e.along(scale, x, dim)), e.along(bias, x, dim))
        return [e.narrow(result, self.result.type)]


@irdl_op_definition
class GroupNormOp(Normalization):
    """`result = (x - mean[n, g]) / sqrt(var[n, g] + eps) * scale[c] + bias[c]`, channels last.

    operand [N, S.., C], scale, bias [C]. The C channels are `groups` groups of neighbours; mean and (biased) variance of each are over
    its channels and S... groups = C is instance norm. ONNX (channels second): GroupNormalization.
    """

    name = "nd.group_norm"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (Clause("groups", "groups", "int"),)

    operand = operand_def(TENSOR)
    scale = operand_def(TENSOR)
    bias = operand_def(TENSOR)
    groups = prop_def(I64)
    eps = prop_def(FloatAttr)
    result = result_def(TENSOR)

    def verify_(self) -> None:
        shape, groups = shape_of(self.operand), self.number("groups")
        if len(shape) < 2:
            self.fail(f"the operand must have rank 2 at least, [N, S.., C], found {self.operand.type}")
        self.check(len(shape) - 1, [("scale", self.scale), ("bias", self.bias)])
        channels = shape[-1]
        if not isinstance(channels, int):
            self.fail(f"the number of channels must be static, found {self.operand.type}")
        if groups < 1 or channels % groups:
            self.fail(f"groups must divide the {channels} channels, found {groups}")

    @classmethod
    def make(cls, operand: SSAValue, scale: SSAValue, bias: SSAValue, groups: int, eps: float = 1e-5) -> Self:
        """`groups` groups of the last dimension."""
        return cls.of((operand, scale, bias), eps, groups=groups)

    def decompose(self, builder: Builder, operands: Sequence[SSAValue]) -> list[SSAValue]:
        e = Expansion(builder)
        x, scale, bias = (e.widen(value) for value in operands)
        shape, groups, last = shape_of(x), self.number("groups"), rank_of(x) - 1
        channels = shape[-1]
        assert isinstance(channels, int), "verified"
        grouped = e.reshape(x, (*shape[:-1], groups, channels // groups))
        normal, _, _ = e.standardized(grouped, [*range(1, last), last + 1], self.epsilon)
        result = e.add(e.mul(e.reshape(normal, shape), e.along(scale, x, last)), e.along(bias, x, last))
        return [e.narrow(result, self.result.type)]


@irdl_op_definition
class RmsNormOp(Normalization):
    """`result[r, d] = x[r, d] / sqrt(mean over d of x[r, d]**2 + eps) * scale[d]` over the last dimension.

    operand [R.., D], scale [D]. Scaled before squaring; a row of zeros gives 0. ONNX: RMSNormalization.
    """

    name = "nd.rms_norm"

    operand = operand_def(TENSOR)
    scale = operand_def(TENSOR)
    eps = prop_def(FloatAttr)
    result = result_def(TENSOR)

    def verify_(self) -> None:
        if not shape_of(self.operand):
            self.fail("the operand must have a dimension, found rank 0")
        self.check(rank_of(self.operand) - 1, [("scale", self.scale)])

    @classmethod
    def make(cls, operand: SSAValue, scale: SSAValue, eps: float = 1e-5) -> Self:
        """Over the last dimension."""
        return cls.of((operand, scale), eps)

    def decompose(self, builder: Builder, operands: Sequence[SSAValue]) -> list[SSAValue]:
        e = Expansion(builder)
        x, scale = (e.widen(value) for value in operands)
        last = rank_of(x) - 1
        dims = (last,)
        # z = x / s lies in [-1, 1]; the result does not depend on s, so no derivative runs through it
        s = e.constant_in_ad(e.max(e.reduce_max(e.abs(x), dims), max(self.epsilon**0.5, e.tiny(x))))
        z = e.div(x, e.spread(s, x, dims))
        square = e.div(e.sum(e.mul(z, z), dims), e.count(x, dims, s))
        # x / sqrt(mean x**2 + eps) == z / sqrt(mean z**2 + eps / s**2)
        root = e.sqrt(e.max(e.add(square, e.div(e.div(e.fill(self.epsilon, s), s), s)), e.tiny(x)))
        return [e.narrow(e.mul(e.div(z, e.spread(root, x, dims)), e.along(scale, x, last)), self.result.type)]


OPS = (BatchNormTrainOp, BatchNormInferOp, GroupNormOp, RmsNormOp)
