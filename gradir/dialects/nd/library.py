"""`nd.custom_call`: a function that the compiler calls by name and does not look into.

    %l = nd.custom_call @lapack.potrf(%a) {config = {lower = true}} : (tensor<3x3xf32>) -> tensor<3x3xf32>

The name stands for a row of `gradir.dialects.custom_calls`; below level 1 it is a declared kernel, whose call becomes a callback of the
runtime. What a vendor library computes in place of a generated kernel is written with this op too: see
`gradir.dialects.target.implementations`.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, ClassVar, NoReturn, Self, cast

from xdsl.dialects.builtin import DictionaryAttr, FunctionType, StringAttr, TensorType, UnitAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, opt_prop_def, prop_def, var_operand_def, var_result_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from gradir.dialects import custom_calls
from gradir.dialects.nd.base import I64_ARRAY, TENSOR, Sample
from gradir.dialects.types import element_of, ints, numpy_dtype, shape_of, sizes_agree
from gradir.errors import GradirError
from gradir.ir.passes import error_at

_PROPERTIES = ("config", "effects", "complex_operands", "complex_results")


@irdl_op_definition
class CustomCallOp(IRDLOperation):
    """`results = f(inputs, config)` for the registered function `f` of that name; the operands are not changed.

    With `effects` the call keeps its place among other effects and is never removed. `complex_operands`, `complex_results`: positions of
    tensors `[..]x2` whose last dimension is a real and an imaginary part; the function sees complex arrays `[..]`. A name that nobody has
    registered is an error of `convert-nd-to-linalg`. StableHLO: custom_call. JAX: jax.ffi.ffi_call, pure_callback. torch: custom_op.
    """

    FAMILY: ClassVar[str] = "library"
    name = "nd.custom_call"

    inputs = var_operand_def(TENSOR)
    callee = prop_def(StringAttr)
    config = opt_prop_def(DictionaryAttr)
    effects = opt_prop_def(UnitAttr)
    complex_operands = opt_prop_def(I64_ARRAY)
    complex_results = opt_prop_def(I64_ARRAY)
    outputs = var_result_def(TENSOR)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        callee = StringAttr(parser.parse_symbol_name().data)
        operands = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        properties: dict[str, Attribute] = {"callee": callee}
        properties |= {key: attributes.pop(key) for key in _PROPERTIES if key in attributes}
        parser.parse_punctuation(":")
        position = parser.pos
        kind = parser.parse_type()
        if not isinstance(kind, FunctionType):
            parser.raise_error(f"expected (operand types) -> result types, found {kind}", position, parser.pos)
        values = parser.resolve_operands(operands, kind.inputs.data, position)
        # irdl's two variadic groups need no segment sizes: one of operands, one of results
        return cls.create(operands=values, result_types=list(kind.outputs.data), properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.callee.data)
        printer.print_string("(")
        printer.print_list(self.operands, printer.print_operand)
        printer.print_string(")")
        shown = {key: self.properties[key] for key in _PROPERTIES if key in self.properties}
        printer.print_op_attributes({**shown, **self.attributes})
        printer.print_string(" : ")
        printer.print_attribute(FunctionType.from_lists([v.type for v in self.operands], [v.type for v in self.results]))

    def fail(self, message: str) -> NoReturn:
        """Refuse this op."""
        raise VerifyException(f"{self.name} @{self.callee.data}: {message}")

    def verify_(self) -> None:
        if not self.callee.data:
            raise VerifyException(f'{self.name}: expected the name of a function, found ""')
        for what, values in (("complex_operands", self.operands), ("complex_results", self.results)):
            for position in self._positions(what):
                if not 0 <= position < len(values):
                    self.fail(f"{what} names position {position} of {len(values)}")
                shape = shape_of(values[position])
                if not shape or shape[-1] != 2:
                    self.fail(f"{what} names position {position}, which must have a last dimension of 2, found {values[position].type}")
        self._verify_results()

    def _verify_results(self) -> None:
        """The types that the function's own rule gives, where it has one and no complex number was split."""
        row = custom_calls.find(self.callee.data)
        if row is None or row.infer is None or self._positions("complex_operands") or self._positions("complex_results"):
            return
        found = [v.type for v in self.results]
        try:
            expected = list(row.infer([v.type for v in self.operands], self.settings))
        except ValueError as error:
            self.fail(str(error))
        if len(expected) != len(found):
            self.fail(f"its shape rule gives {len(expected)} results, found {len(found)}")
        for k, (want, have) in enumerate(zip(expected, found)):
            if not _agree(want, have):
                self.fail(f"result {k} must have type {want}, found {have}")

    def _positions(self, what: str) -> tuple[int, ...]:
        attribute = self.properties.get(what)
        return () if attribute is None else ints(attribute)

    @property
    def settings(self) -> dict[str, Any]:
        """The configuration as Python values."""
        return custom_calls.config_value(self.config)

    @classmethod
    def make(
        cls,
        callee: str,
        operands: Sequence[SSAValue],
        results: Sequence[Attribute],
        config: custom_calls.Config | None = None,
        *,
        effects: bool = False,
    ) -> Self:
        """The call of `callee` with results of these types."""
        properties: dict[str, Attribute] = {"callee": StringAttr(callee)}
        if config:
            properties["config"] = custom_calls.config_attribute(config)
        if effects:
            properties["effects"] = UnitAttr()
        return cls.create(operands=tuple(operands), result_types=tuple(results), properties=properties)

    @classmethod
    def infer(cls, callee: str, operands: Sequence[Attribute], config: custom_calls.Config) -> list[Attribute] | None:
        """The result types by the function's shape rule; None when it has none."""
        row = custom_calls.find(callee)
        return None if row is None or row.infer is None else list(row.infer(operands, config))

    def evaluate(self, *arrays: Any) -> Any:
        """What the registered function gives; a tuple unless there is one result."""
        row = custom_calls.find(self.callee.data)
        if row is None:
            raise unknown_call(self)
        kinds = [v.type for v in self.results]
        split = self._positions("complex_operands"), self._positions("complex_results")
        results = call_meaning(row, self, self.settings, arrays, kinds, *split)
        return results[0] if len(results) == 1 else results

    @classmethod
    def samples(cls) -> tuple[Sample, ...]:
        """Small valid uses."""
        return import_module("gradir.dialects.nd.samples.library").samples_of(cls)


def call_meaning(
    row: custom_calls.CustomCall,
    op: Any,
    config: custom_calls.Config,
    arrays: Sequence[Any],
    kinds: Sequence[Attribute],
    complex_operands: Sequence[int],
    complex_results: Sequence[int],
) -> tuple[Any, ...]:
    """The results, of the types `kinds`, that the function gives on arrays; every mistake of the function is named."""
    import numpy as np

    taken = [_joined(array) if k in complex_operands else np.asarray(array) for k, array in enumerate(arrays)]
    shapes: list[tuple[tuple[int | None, ...], Any]] = []
    for k, kind in enumerate(kinds):
        shape = tuple(n if isinstance(n, int) else None for n in shape_of(kind))
        dtype = np.dtype(numpy_dtype(element_of(kind)))
        joined = k in complex_results
        shapes.append((shape[:-1], np.result_type(dtype, np.complex64)) if joined else (shape, dtype))
    try:
        given = row.evaluate(config, shapes, *taken)
    except GradirError:
        raise
    except Exception as error:
        raise _failed(op, row.name, error) from error
    if len(given) != len(shapes):
        raise _bad_results(op, row.name, f"{len(shapes)} results", str(len(given)))
    out: list[Any] = []
    for k, (array, (shape, dtype)) in enumerate(zip(given, shapes)):
        made = np.asarray(array)
        fits = made.ndim == len(shape) and all(n in (None, m) for n, m in zip(shape, made.shape))
        if not fits or made.dtype != dtype:
            raise _bad_results(op, row.name, f"result {k}: {shape} {dtype}", f"{made.shape} {made.dtype}")
        out.append(_split(made) if k in complex_results else made)
    return tuple(out)


def _joined(array: Any) -> Any:
    import numpy as np

    array = np.ascontiguousarray(array)
    return array.view(np.result_type(array.dtype, np.complex64))[..., 0]


def _split(array: Any) -> Any:
    import numpy as np

    return np.stack([array.real, array.imag], -1)


def _agree(want: Attribute, have: Attribute) -> bool:
    if want == have:
        return True
    if not isinstance(want, TensorType) or not isinstance(have, TensorType) or want.element_type != have.element_type:
        return False
    one, two = shape_of(cast("Attribute", want)), shape_of(cast("Attribute", have))
    return len(one) == len(two) and all(map(sizes_agree, one, two))


def _failed(op: Any, name: str, error: Exception) -> GradirError:
    return error_at(
        op,
        f"@{name} failed: {type(error).__name__}: {error}",
        part="runtime",
        code="RT032",
        expected="a function that returns",
        found=type(error).__name__,
        hint="the cause is chained to this error",
    )


def _bad_results(op: Any, name: str, expected: str, found: str) -> Exception:
    return error_at(
        op,
        f"@{name} gives other results than the call declares",
        part="operator",
        code="OP051",
        expected=expected,
        found=found,
        hint="make the function and its shape rule agree with the call",
    )


def unknown_call(op: Any, name: str = "") -> Exception:
    """The error for a name that nobody has registered."""
    return error_at(
        op,
        f"no function is registered as @{name or op.callee.data}",
        part="operator",
        code="OP050",
        expected=f"one of {custom_calls.known()}",
        found=f"@{name or op.callee.data}",
        hint="register it before: gradir.register_custom_call(name, function), or --load the file that does",
    )


OPS = (CustomCallOp,)
