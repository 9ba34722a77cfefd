"""Ops without tensor operands: constants, counters, uninitialised tensors, and the names of run-time sizes."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from xdsl.dialects.builtin import AnyFloat, DenseIntOrFPElementsAttr, FloatAttr, IndexType, IntegerAttr, IntegerType, StringAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, base, irdl_op_definition, operand_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import ConstantLike
from xdsl.utils.exceptions import VerifyException

from gradir.dialects.nd.base import I64, TENSOR, NdOp, Sample, new
from gradir.dialects.nd.checks import check_dims, check_element
from gradir.dialects.nd.complex import ComplexAttr, parse_optional_number, print_number
from gradir.dialects.nd.resource import ResourceAttr, print_resource, read_resource
from gradir.dialects.nd.shape import check_sizes, parse_sizes, print_sizes
from gradir.dialects.text import INDEX, Clause, parse_clauses, parse_tensor, print_clauses
from gradir.dialects.types import (
    element_of,
    element_type,
    i64_attr,
    is_complex,
    is_float,
    is_static,
    is_unsigned,
    rank_of,
    shape_of,
    tensor,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

DENSE_LIMIT = 16


def splat_attr(value: complex | bool, element: Attribute) -> FloatAttr[Any] | IntegerAttr[Any] | ComplexAttr:
    """The scalar attribute of that element type; integers wrap into it."""
    if is_complex(element):
        return ComplexAttr.of(complex(value), element)
    assert not isinstance(value, complex), f"a complex number for {element}"
    if is_float(element):
        return FloatAttr(float(value), cast("AnyFloat", element))
    kind = cast("IntegerType", element)
    width = kind.width.data
    number = int(value) % (1 << width)
    if width > 1 and not is_unsigned(element) and number >= 1 << (width - 1):
        number -= 1 << width
    return IntegerAttr(number, kind)


@irdl_op_definition
class ConstantOp(NdOp):
    """`result[i] = value[i]`: one number for all elements, a short list, or a resource (a numpy array that the text names by key).

    `nd.constant splat(0.0 : f32) : tensor<2xf32>`, `nd.constant dense<[1, 2]> : tensor<2xi32>`, `nd.constant resource(w_1f2e) :
    tensor<784x512xf32>`. Shapes are static: a tensor of run-time size is `nd.broadcast` of a rank-0 constant. StableHLO: constant.
    ONNX: Constant.
    """

    name = "nd.constant"
    FAMILY: ClassVar[str] = "creation"

    value = prop_def(base(FloatAttr) | base(IntegerAttr) | base(ComplexAttr) | base(DenseIntOrFPElementsAttr) | base(ResourceAttr))
    result = result_def(TENSOR)

    traits = traits_def(ConstantLike())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        value: Attribute
        if parser.parse_optional_keyword("splat"):
            with parser.in_parens():
                value = parse_optional_number(parser) or parser.parse_attribute()
        elif parser.parse_optional_keyword("resource"):
            with parser.in_parens():
                value = ResourceAttr(read_resource(parser))
        else:
            value = parser.parse_attribute()
        attributes = parser.parse_optional_attr_dict()
        if isinstance(value, DenseIntOrFPElementsAttr):
            kind: Attribute = cast("DenseIntOrFPElementsAttr[Any]", value).type
        else:
            parser.parse_punctuation(":")
            kind = parse_tensor(parser)
        return cls.create(result_types=(kind,), properties={"value": value}, attributes=attributes)

    def print(self, printer: Printer) -> None:
        value = self.value
        printer.print_string(" ")
        if isinstance(value, ResourceAttr):
            printer.print_string("resource")
            with printer.in_parens():
                print_resource(printer, value.data)
        elif isinstance(value, DenseIntOrFPElementsAttr):
            printer.print_attribute(value)
            printer.print_op_attributes(self.attributes)
            return
        else:
            printer.print_string("splat")
            with printer.in_parens():
                print_number(printer, value) if isinstance(value, ComplexAttr) else printer.print_attribute(value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    def verify_(self) -> None:
        check_element(self, "result", self.result, "any")
        if not is_static(self.result):
            self.fail(f"shape must be static, found {self.result.type}; use nd.broadcast with sizes for a run-time size")
        value, kind = self.value, self.result.type
        if isinstance(value, FloatAttr | IntegerAttr | ComplexAttr):
            found: Attribute = cast("Attribute", value.type)
            if found != element_of(self.result):
                self.fail(f"element types differ: value has {found}, result has {element_of(self.result)}")
        elif isinstance(value, DenseIntOrFPElementsAttr):
            if value.type != kind:
                self.fail(f"types differ: value has {value.type}, result has {kind}")
        elif value.data.array is None:
            self.fail(f"resource {value.data.key} has no data; it belongs under dialect_resources at the end of the text")
        elif value.kind != kind:
            self.fail(f"types differ: resource {value.data.key} has {value.kind}, result has {kind}")

    @property
    def is_splat(self) -> bool:
        """True when one number fills the tensor."""
        return isinstance(self.value, FloatAttr | IntegerAttr | ComplexAttr)

    @property
    def splat_value(self) -> float | int | None:
        """The real number that fills the tensor, None of complex, dense and resource constants."""
        value = self.value
        return value.value.data if isinstance(value, FloatAttr | IntegerAttr) else None

    @classmethod
    def splat(cls, value: complex | bool, kind: Attribute) -> Self:
        """A tensor type filled with one number."""
        return new(cls, (), kind, {"value": splat_attr(value, element_of(kind))})

    @classmethod
    def make(cls, array: ArrayLike, name: str = "c", *, copy: bool = True) -> Self:
        """The constant that holds a copy of `array`: a splat where all elements have the same bits, a list if short, else a resource.

        Without `copy` the resource is `array` itself, which nobody may change any more.
        """
        import numpy as np  # lazy: text-only tools never build constants from arrays

        data = np.asarray(array)
        kind = tensor(element_type(data.dtype), data.shape)
        return new(cls, (), kind, {"value": value_attr(data, kind, name, copy=copy)})


def value_attr(data: NDArray[Any], kind: TensorType[Any], name: str = "c", *, copy: bool = True) -> Attribute:
    """The cheapest attribute that holds these elements exactly."""
    flat = data.reshape(-1)
    if flat.size and _is_splat(flat):
        return splat_attr(flat[0].item(), kind.element_type)
    if 0 < flat.size <= DENSE_LIMIT and not _has_nan(flat):
        if is_complex(kind.element_type):
            return DenseIntOrFPElementsAttr.from_list(cast("Any", kind), [(x.real, x.imag) for x in map(complex, flat)])
        items = [float(x) for x in flat] if is_float(kind.element_type) else [int(x) for x in flat]
        return DenseIntOrFPElementsAttr.from_list(cast("Any", kind), items)
    return ResourceAttr.of(data, name, copy=copy)


def _is_splat(flat: NDArray[Any]) -> bool:
    """Whether all elements have the same bits; looks at pieces, the first one small, and never at a copy of all."""
    step, start = 16, 0
    first = flat[:1].tobytes()
    while start < flat.size:
        piece = flat[start : start + step].tobytes()
        if piece != first * (len(piece) // len(first)):
            return False
        start, step = start + step, 1 << 18
    return True


def _has_nan(flat: NDArray[Any]) -> bool:
    return bool((flat != flat).any())


@irdl_op_definition
class IotaOp(NdOp):
    """`result[i] = i[dim]`, wrapping into integer types. `sizes` as in `nd.broadcast`. StableHLO: iota. ONNX: Range."""

    name = "nd.iota"
    FAMILY: ClassVar[str] = "creation"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (Clause("dim", "dim", "int"),)

    sizes = var_operand_def(IndexType)
    dim = prop_def(I64)
    result = result_def(TENSOR)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return _parse_created(cls, parser)

    def print(self, printer: Printer) -> None:
        _print_created(self, printer)

    def verify_(self) -> None:
        check_element(self, "result", self.result, "number or complex")
        check_dims(self, "dim", (self.number("dim"),), rank_of(self.result), "the result")
        check_sizes(self, self.sizes, shape_of(self.result))

    @classmethod
    def make(cls, kind: TensorType[Any], dim: int, sizes: Sequence[SSAValue] = ()) -> Self:
        """Positions along `dim`, as a tensor of type `kind`."""
        return new(cls, sizes, kind, {"dim": i64_attr(dim)})


@irdl_op_definition
class EmptyOp(NdOp):
    """A tensor whose elements must be written before they are read. `sizes` as in `nd.broadcast`."""

    name = "nd.empty"
    FAMILY: ClassVar[str] = "creation"

    sizes = var_operand_def(IndexType)
    result = result_def(TENSOR)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return _parse_created(cls, parser)

    def print(self, printer: Printer) -> None:
        _print_created(self, printer)

    def verify_(self) -> None:
        check_element(self, "result", self.result, "any")
        check_sizes(self, self.sizes, shape_of(self.result))

    @classmethod
    def make(cls, kind: TensorType[Any], sizes: Sequence[SSAValue] = ()) -> Self:
        """A tensor of type `kind`."""
        return new(cls, sizes, kind)


def _parse_created(kind: type[Any], parser: Parser) -> Any:
    properties = parse_clauses(parser, kind.CLAUSES)
    sizes = parse_sizes(parser)
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    return kind.create(operands=sizes, result_types=(parse_tensor(parser),), properties=properties, attributes=attributes)


def _print_created(op: IotaOp | EmptyOp, printer: Printer) -> None:
    print_clauses(op, printer, op.CLAUSES, 0)
    print_sizes(printer, op.sizes)
    printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    printer.print_attribute(op.result.type)


@irdl_op_definition
class SymbolOp(NdOp):
    """`result = the run-time size that the name stands for`, an index. Names come from the types of arguments and from `nd.bind`."""

    name = "nd.symbol"
    FAMILY: ClassVar[str] = "creation"

    sym = prop_def(StringAttr)
    result = result_def(IndexType)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = StringAttr(parser.parse_str_literal())
        return cls.create(result_types=(INDEX,), properties={"sym": name}, attributes=parser.parse_optional_attr_dict())

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.sym.data)
        printer.print_op_attributes(self.attributes)

    def verify_(self) -> None:
        if not self.sym.data:
            self.fail('expected the name of a size, found ""')

    @classmethod
    def make(cls, sym: str) -> Self:
        """The size named `sym`."""
        return new(cls, (), INDEX, {"sym": StringAttr(sym)})


@irdl_op_definition
class BindOp(IRDLOperation):
    """From here on the name `sym` stands for `value`: introduces a size that is known only during the run.

    Not pure: it defines the name.
    """

    name = "nd.bind"

    value = operand_def(IndexType)
    sym = prop_def(StringAttr)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operand = parser.resolve_operand(parser.parse_unresolved_operand(), INDEX)
        parser.parse_keyword("as")
        name = StringAttr(parser.parse_str_literal())
        return cls.create(operands=(operand,), properties={"sym": name}, attributes=parser.parse_optional_attr_dict())

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.value)
        printer.print_string(" as ")
        printer.print_string_literal(self.sym.data)
        printer.print_op_attributes(self.attributes)

    @classmethod
    def samples(cls) -> tuple[Sample, ...]:
        """Small valid uses."""
        return import_module("gradir.dialects.nd.samples.creation").samples_of(cls)

    def verify_(self) -> None:
        if not self.sym.data:
            raise VerifyException('nd.bind: expected the name of a size, found ""')

    @classmethod
    def make(cls, value: SSAValue, sym: str) -> Self:
        """`sym` names the size `value`."""
        return cls.create(operands=(value,), properties={"sym": StringAttr(sym)})


OPS = (ConstantOp, IotaOp, EmptyOp, SymbolOp, BindOp)
