"""Requests for derivatives: each names a function and is replaced by `differentiate` with a call of a generated function at level 1.

`wrt` are positions in the callee's arguments. The first result of a function in `ad.grad` and `ad.value_and_grad` is the scalar that is
differentiated; its other results are passed through. `ad.stop_gradient` is the identity with derivative 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from xdsl.dialects.builtin import DenseArrayBase, FunctionType, SymbolRefAttr, TensorType, UnitAttr, i64
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure, SymbolTable, SymbolUserOpInterface
from xdsl.utils.exceptions import VerifyException

from gradir.dialects.ad_calls import (
    CheckpointOp as CheckpointOp,
    CustomJvpOp as CustomJvpOp,
    CustomVjpOp as CustomVjpOp,
    RuledCall as RuledCall,
)
from gradir.dialects.text import parse_ints, print_ints
from gradir.dialects.types import element_of, has_derivative, i64_array, ints, is_float, shape_of, tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray


class CalleeTypes(SymbolUserOpInterface):
    """The callee exists and has the argument and result types that the request implies."""

    def verify(self, op: Operation) -> None:
        request = cast("Request", op)
        callee = SymbolTable.lookup_symbol(op, request.callee)
        if callee is None:
            raise VerifyException(f"{op.name}: no function {request.callee} in this module")
        kind = callee.properties.get("function_type")
        if not isinstance(kind, FunctionType):
            raise VerifyException(f"{op.name}: {request.callee} is not a function but {callee.name}")
        request.verify_callee(list(kind.inputs.data), list(kind.outputs.data))


class Request(IRDLOperation):
    """A call of a function derived from `callee`."""

    POSITIONS: ClassVar[str] = "wrt"

    callee = prop_def(SymbolRefAttr)
    args = var_operand_def(TensorType)
    wrt = prop_def(DenseArrayBase.constr(i64))
    res = var_result_def(TensorType)

    traits = traits_def(Pure(), CalleeTypes())

    @property
    def wrt_positions(self) -> tuple[int, ...]:
        """Positions of the arguments that are differentiated."""
        return ints(self.properties["wrt"])

    @property
    def callee_name(self) -> str:
        """Name of the function, without `@`."""
        return self.callee.string_value()

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        callee = parser.parse_attribute()
        names = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        parser.parse_keyword(cls.POSITIONS)
        properties: dict[str, Attribute] = {"callee": callee, "wrt": i64_array(parse_ints(parser))}
        if cls is VjpOp and parser.parse_optional_keyword("split"):
            properties["split"] = UnitAttr()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        kind = parser.parse_function_type()
        operands = parser.resolve_operands(names, kind.inputs.data, position)
        return cls.create(operands=operands, result_types=kind.outputs.data, properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.callee)
        with printer.in_parens():
            printer.print_list(self.args, printer.print_operand)
        printer.print_string(f" {self.POSITIONS} ")
        print_ints(printer, self.wrt_positions)
        if "split" in self.properties:
            printer.print_string(" split")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_function_type([arg.type for arg in self.args], [result.type for result in self.results])

    def verify_(self) -> None:
        if not self.wrt_positions:
            raise VerifyException(f"{self.name}: {self.POSITIONS} is empty; name at least one argument of {self.callee}")
        if len(set(self.wrt_positions)) != len(self.wrt_positions):
            raise VerifyException(f"{self.name}: {self.POSITIONS} names an argument twice: {list(self.wrt_positions)}")

    def verify_callee(self, inputs: Sequence[Attribute], outputs: Sequence[Attribute]) -> None:
        """Refuse argument and result types that do not fit a callee of these types."""
        for position in self.wrt_positions:
            if not 0 <= position < len(inputs):
                raise VerifyException(
                    f"{self.name}: {self.POSITIONS} names argument {position}, {self.callee} has {len(inputs)}: "
                    f"expected 0 to {len(inputs) - 1}"
                )
            kind = inputs[position]
            if self.POSITIONS == "wrt" and not has_derivative(kind):
                raise VerifyException(f"{self.name}: wrt names argument {position} of type {kind}, expected a tensor of floats")
        expected = self.expected_args(inputs, outputs)
        self._verify_types("argument", expected, [arg.type for arg in self.args])
        self._verify_types("result", self.expected_results(inputs, outputs), [result.type for result in self.results])

    def expected_args(self, inputs: Sequence[Attribute], outputs: Sequence[Attribute]) -> list[Attribute]:
        """Types of the request's operands."""
        return list(inputs)

    def expected_results(self, inputs: Sequence[Attribute], outputs: Sequence[Attribute]) -> list[Attribute]:
        """Types of the request's results."""
        raise NotImplementedError(self.name)  # abstract: each request defines its own

    def _verify_types(self, what: str, expected: Sequence[Attribute], found: Sequence[Attribute]) -> None:
        if len(expected) != len(found):
            raise VerifyException(f"{self.name}: expected {len(expected)} {what}s for {self.callee}, found {len(found)}")
        for k, (want, have) in enumerate(zip(expected, found)):
            if want != have:
                raise VerifyException(f"{self.name}: {what} {k} must have type {want}, found {have}")

    def _verify_loss(self, outputs: Sequence[Attribute]) -> None:
        first = outputs[0] if outputs else None
        if not (isinstance(first, TensorType) and is_float(element_of(first)) and shape_of(first) == ()):
            raise VerifyException(
                f"{self.name}: the first result of {self.callee} must be a scalar float tensor, found {first or 'no result'}"
            )

    @classmethod
    def make(cls, callee: str, args: Sequence[SSAValue], wrt: Sequence[int], outputs: Sequence[Attribute]) -> Self:
        """The request for the function `callee`, whose result types are `outputs`."""
        properties: dict[str, Attribute] = {"callee": SymbolRefAttr(callee), "wrt": i64_array(wrt)}
        op = cls.create(operands=tuple(args), properties=properties)
        inputs = [arg.type for arg in args]
        return cls.create(operands=tuple(args), result_types=op.expected_results(inputs, outputs), properties=properties)


@irdl_op_definition
class GradOp(Request):
    """`results = d f(args)[0] / d args[w] for w in wrt`. f's first result is a scalar; the others are dropped."""

    name = "ad.grad"

    def expected_results(self, inputs: Sequence[Attribute], outputs: Sequence[Attribute]) -> list[Attribute]:
        self._verify_loss(outputs)
        return [inputs[w] for w in self.wrt_positions]


@irdl_op_definition
class ValueAndGradOp(Request):
    """`results = f(args)..., d f(args)[0] / d args[w] for w in wrt`. f's first result is a scalar, the others are passed through."""

    name = "ad.value_and_grad"

    def expected_results(self, inputs: Sequence[Attribute], outputs: Sequence[Attribute]) -> list[Attribute]:
        self._verify_loss(outputs)
        return [*outputs, *(inputs[w] for w in self.wrt_positions)]


@irdl_op_definition
class VjpOp(Request):
    """`results = f(primals)..., sum over results r of ct[r] * d f[r] / d primals[w] for w in wrt`.

    args are the primals, then one cotangent per result of f.
    With `split` the pass also leaves `@f.fwd(primals) -> (results, residuals)` and `@f.bwd(residuals, cotangents) -> cotangents of wrt`.
    """

    name = "ad.vjp"

    split = opt_prop_def(UnitAttr)

    def expected_args(self, inputs: Sequence[Attribute], outputs: Sequence[Attribute]) -> list[Attribute]:
        return [*inputs, *outputs]

    def expected_results(self, inputs: Sequence[Attribute], outputs: Sequence[Attribute]) -> list[Attribute]:
        return [*outputs, *(inputs[w] for w in self.wrt_positions)]


@irdl_op_definition
class JvpOp(Request):
    """`results = f(primals)..., sum over w in wrt of d f[r] / d primals[w] * tangent[w] for every float result r`.

    args are the primals, then one tangent per position in `wrt`, in its order.
    """

    name = "ad.jvp"

    def expected_args(self, inputs: Sequence[Attribute], outputs: Sequence[Attribute]) -> list[Attribute]:
        return [*inputs, *(inputs[w] for w in self.wrt_positions)]

    def expected_results(self, inputs: Sequence[Attribute], outputs: Sequence[Attribute]) -> list[Attribute]:
        return [*outputs, *(kind for kind in outputs if has_derivative(kind))]


@irdl_op_definition
class BatchOp(Request):
    """`results[r][i] = f(args[a][i] for a in over, the others as they are)[r]` for every i: f on many arguments at once. JAX: vmap.

    The arguments named by `over` have one dimension more in front than those of f, of one size; so have all results.
    """

    name = "ad.batch"
    POSITIONS: ClassVar[str] = "over"

    @property
    def lanes(self) -> int | str | None:
        """The number of lanes."""
        shape = shape_of(self.args[self.wrt_positions[0]]) if self.wrt_positions else ()
        return shape[0] if shape else None

    def _batched(self, kind: Attribute) -> Attribute:
        return tensor(element_of(kind), (self.lanes, *shape_of(kind)))

    def expected_args(self, inputs: Sequence[Attribute], outputs: Sequence[Attribute]) -> list[Attribute]:
        return [self._batched(kind) if k in self.wrt_positions else kind for k, kind in enumerate(inputs)]

    def expected_results(self, inputs: Sequence[Attribute], outputs: Sequence[Attribute]) -> list[Attribute]:
        return [self._batched(kind) for kind in outputs]


@irdl_op_definition
class StopGradientOp(IRDLOperation):
    """`result = operand`, with derivative 0. JAX: lax.stop_gradient. torch: detach."""

    name = "ad.stop_gradient"

    operand = operand_def(TensorType)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        kind = parser.parse_type()
        return cls.create(operands=(parser.resolve_operand(name, kind),), result_types=(kind,), attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.operand)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    def verify_(self) -> None:
        if self.operand.type != self.result.type:
            raise VerifyException(f"ad.stop_gradient: types differ: operand has {self.operand.type}, result has {self.result.type}")

    @classmethod
    def make(cls, operand: SSAValue) -> Self:
        """The operand, through which no derivative runs."""
        return cls.create(operands=(operand,), result_types=(operand.type,))

    def evaluate(self, operand: NDArray[Any]) -> NDArray[Any]:
        """The identity."""
        return operand


Ad = Dialect("ad", [GradOp, ValueAndGradOp, VjpOp, JvpOp, BatchOp, StopGradientOp, CustomVjpOp, CustomJvpOp, CheckpointOp], [])
