"""Signatures of public functions as manifests state them: read off tensor types, or off a level-3 function's memrefs and marks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    BFloat16Type,
    DictionaryAttr,
    Float8E4M3FNType,
    Float8E5M2Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    Signedness,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from gradir.dialects.custom_calls import config_value
from gradir.dialects.kernel import (
    COMPLEX_ATTRIBUTE,
    CONFIG_ATTRIBUTE,
    DESTINATIONS_ATTRIBUTE,
    ELEMENTS_ATTRIBUTE,
    LIBRARY_ATTRIBUTE,
)
from gradir.dialects.nd import BindOp
from gradir.dialects.size_limits import limits_of
from gradir.dialects.types import ints, is_complex, shape_of
from gradir.dialects.upstream.func import FuncOp
from gradir.errors import GradirError
from gradir.ir.passes import error_at
from gradir.ir.structure import single_block
from gradir.runtime.manifest import Dim, FunctionSpec, LibrarySpec, SizeSpec, TensorSpec

_FLOATS: dict[type[Attribute], str] = {
    Float8E4M3FNType: "f8E4M3FN",
    Float8E5M2Type: "f8E5M2",
    Float64Type: "f64",
    Float32Type: "f32",
    Float16Type: "f16",
    BFloat16Type: "bf16",
}


def signature_of(function: FuncOp) -> FunctionSpec:
    """What a caller passes and gets, without the arena. At level 3 and 4 the marks `gradir.results` and `gradir.arena` split the arguments.

    Raises `GradirError` GR050 when those marks are missing, GR051 for a type that no caller can pass, GR053 for malformed limits of sizes.
    """
    name = function.sym_name.data
    body = single_block(function)
    inputs = list(body.args)
    hints = [value.name_hint for value in inputs]
    kinds = [value.type for value in inputs]
    results: Sequence[Attribute] = function.function_type.outputs.data
    if any(isinstance(kind, MemRefType) for kind in kinds):
        kinds, results = _marked(function, kinds)
    scalars = [kind for kind in results if not isinstance(kind, TensorType | MemRefType)]
    if scalars:
        raise error_at(
            function,
            "a public function returns a scalar",
            part="graph",
            code="GR051",
            expected="tensors as results",
            found=str(scalars[0]),
            hint="return a tensor of rank 0 (`tensor.from_elements`), or make the function private",
        )
    bound = {op.operands[0]: op.sym.data for op in body.ops if isinstance(op, BindOp)}
    binds = [bound.get(value, "") for value in inputs]
    return FunctionSpec(
        name,
        f"{name}.packed",
        tuple(
            _spec(function, hint or f"arg{index}", kind, size)
            for index, (hint, kind, size) in enumerate(zip(hints, kinds, binds, strict=False))
        ),
        tuple(_spec(function, f"result{index}", kind) for index, kind in enumerate(results)),
        sizes=tuple(SizeSpec(key, size.min, size.max, size.multiple) for key, size in limits_of(function).items()),
    )


def _marked(function: FuncOp, kinds: list[Attribute]) -> tuple[list[Attribute], list[Attribute]]:
    """The types of inputs and of results among those of the arguments of a function on memrefs. GradirError GR050 where marks are wrong."""
    given = function.function_type.outputs.data
    count = _mark(function, "gradir.results")
    if count is None or given:
        raise error_at(
            function,
            "a function on memrefs does not say which of its arguments are results",
            part="graph",
            code="GR050",
            expected="attributes {gradir.inputs = N : i64, gradir.results = M : i64} and no results of its own",
            found=f"{len(kinds)} arguments, {len(given)} results",
            hint="write the attributes, or compile from the tensor level",
        )
    arena = _mark(function, "gradir.arena") or 0
    end = len(kinds) - (1 if arena else 0)
    marked = _mark(function, "gradir.inputs")
    if arena < 0 or not 0 <= count <= end or marked not in (None, end - count):
        raise error_at(
            function,
            "the marks of a function on memrefs do not add up to its arguments",
            part="graph",
            code="GR050",
            expected=f"{len(kinds)} arguments: gradir.inputs + gradir.results + 1 if gradir.arena > 0",
            found=f"gradir.inputs = {marked}, gradir.results = {count}, gradir.arena = {arena}",
            hint="correct the attributes, or compile from the tensor level",
        )
    return kinds[: end - count], kinds[end - count : end]


def library_of(function: FuncOp) -> LibrarySpec:
    """What the runtime has to know of a declared kernel (level 3 or 4)."""
    attributes = function.attributes
    kinds = list(function.function_type.inputs.data)
    elements = list(cast("ArrayAttr[Attribute]", attributes[ELEMENTS_ATTRIBUTE]).data)
    first = len(kinds) - (_mark(function, DESTINATIONS_ATTRIBUTE) or 0)
    specs = [
        TensorSpec(
            f"arg{k}", tuple(None if n == DYNAMIC_INDEX else n for n in cast("Any", kind).get_shape()), element_name(elem) or str(elem)
        )
        for k, (kind, elem) in enumerate(zip(kinds, elements))
    ]
    config = config_value(cast("DictionaryAttr | None", attributes.get(CONFIG_ATTRIBUTE)))
    parts = attributes.get(COMPLEX_ATTRIBUTE)
    name = cast("StringAttr", attributes[LIBRARY_ATTRIBUTE]).data
    return LibrarySpec(name, config, tuple(specs[:first]), tuple(specs[first:]), () if parts is None else ints(parts))


def arena_bytes(function: FuncOp) -> int:
    """The arena that a level-3 or level-4 entry wants."""
    return _mark(function, "gradir.arena") or 0


def workspace_text(function: FuncOp) -> str:
    """The bytes of run-time size that a level-3 or level-4 entry takes, as a text of its inputs' sizes."""
    text = function.attributes.get("gradir.workspace")
    return text.data if isinstance(text, StringAttr) else ""


def element_name(elem: Attribute) -> str | None:
    """`f32`, `complex<f32>`, `i1`, `ui8`, `index`, ...; None for a type that arrays cannot have."""
    if type(elem) in _FLOATS:
        return _FLOATS[type(elem)]
    if is_complex(elem):
        return str(elem)
    if isinstance(elem, IndexType):
        return "index"
    if isinstance(elem, IntegerType) and elem.width.data in (1, 8, 16, 32, 64):
        return f"{'ui' if elem.signedness.data is Signedness.UNSIGNED else 'i'}{elem.width.data}"
    return None


def _spec(function: FuncOp, name: str, kind: Attribute, binds: str = "") -> TensorSpec:
    shape: tuple[Dim, ...] = ()
    elem = kind
    if isinstance(kind, TensorType):
        try:
            shape, elem = shape_of(cast("Any", kind)), kind.element_type
        except VerifyException as error:
            expected = "sizes of names, whole numbers, +, -, *, floordiv, mod and max"
            raise error_at(function, f"'{name}': {error}", part="graph", code="GR051", expected=expected, found=str(kind)) from None
    elif isinstance(kind, MemRefType):
        shape = tuple(None if size == DYNAMIC_INDEX else size for size in kind.get_shape())
        elem = kind.element_type
    dtype = element_name(cast("Attribute", elem))
    if dtype is None:
        raise _no_array(function, name, kind)
    return TensorSpec(name, shape, dtype, "scalar" if elem is kind else "tensor", binds)


def _no_array(function: FuncOp, name: str, kind: Attribute) -> GradirError:
    return error_at(
        function,
        f"'{name}' of a public function has a type that no array can have",
        part="graph",
        code="GR051",
        expected="tensors of f64, f32, f16, bf16, f8E4M3FN, f8E5M2, complex<f64>, complex<f32>, i1, i8 to i64, ui8 to ui64, index",
        found=str(kind),
        hint="make the function private, or convert at its boundary",
    )


def _mark(function: FuncOp, name: str) -> int | None:
    value = function.attributes.get(name)
    return value.value.data if isinstance(value, IntegerAttr) else None
