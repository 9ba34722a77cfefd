"""Checks that several families of `nd` verifiers share. Each refuses with the values it expected and found."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Attribute, SSAValue

from gradir.dialects.nd.base import NdOp
from gradir.dialects.types import (
    F8,
    Dim,
    element_of,
    is_bool,
    is_complex,
    is_float,
    is_integer,
    is_number,
    is_unsigned,
    shape_of,
    shape_text,
    sizes_agree,
)

_KINDS: dict[str, tuple[str, Callable[[Attribute], bool]]] = {
    "float": ("a float type (f64, f32, f16, bf16, f8E4M3FN, f8E5M2)", is_float),
    "wide float": ("a float type of 16 bits or more (f64, f32, f16, bf16)", lambda e: is_float(e) and e not in F8),
    "number": ("a float type or an integer wider than i1", is_number),
    "signed": ("a float type or a signed integer wider than i1", lambda e: is_number(e) and not is_unsigned(e)),
    "integer": ("an integer wider than i1", is_integer),
    "bits": ("an integer type or i1", lambda e: is_integer(e) or is_bool(e)),
    "bool": ("i1", is_bool),
    "any": ("a float, complex or integer type", lambda e: is_number(e) or is_bool(e) or is_complex(e)),
    "complex": ("a complex type (complex<f32>, complex<f64>)", is_complex),
    "part": ("f32 or f64", lambda e: e in (f32, f64)),
    "float or complex": ("a float type (f64, f32, f16, bf16, f8E4M3FN, f8E5M2) or a complex type", lambda e: is_float(e) or is_complex(e)),
    "signed or complex": (
        "a float or complex type or a signed integer wider than i1",
        lambda e: (is_number(e) and not is_unsigned(e)) or is_complex(e),
    ),
    "number or complex": ("a float or complex type or an integer wider than i1", lambda e: is_number(e) or is_complex(e)),
    "ordered": ("a float or integer type", lambda e: is_number(e) or is_bool(e)),
}


def check_element(op: NdOp, what: str, value: SSAValue | Attribute, kind: str) -> None:
    """The element type of `value` is of that kind (a key of the table above)."""
    text, accepts = _KINDS[kind]
    if not accepts(element_of(value)):
        op.fail(f"{what} must have {text}, found {element_of(value)}")


def check_same_element(op: NdOp, what: str, value: SSAValue, other: str, reference: SSAValue) -> None:
    """Both have one element type."""
    if element_of(value) != element_of(reference):
        op.fail(f"element types differ: {what} has {element_of(value)}, {other} has {element_of(reference)}")


def check_same_types(op: NdOp, names: Sequence[str], values: Sequence[SSAValue]) -> None:
    """All values have the type of the first: first shapes, then element types are compared."""
    first = values[0]
    for name, value in zip(names[1:], values[1:]):
        if value.type == first.type:
            continue
        if shape_of(value) != shape_of(first):
            hint = "; broadcasting is explicit, see nd.broadcast" if name != "result" else ""
            op.fail(f"shapes differ: {names[0]} has {shape_text(shape_of(first))}, {name} has {shape_text(shape_of(value))}{hint}")
        check_same_element(op, name, value, names[0], first)
        op.fail(f"types differ: {names[0]} has {first.type}, {name} has {value.type}")


def check_shape(op: NdOp, expected: Sequence[Dim], value: SSAValue, what: str = "result") -> None:
    """`value` has the expected shape (anonymous sizes agree with anything)."""
    found = shape_of(value)
    if len(found) != len(expected) or not all(map(sizes_agree, expected, found)):
        op.fail(f"{what} must have shape {shape_text(tuple(expected))}, found {shape_text(found)}")


def check_dims(op: NdOp, prop: str, dims: Sequence[int], rank: int, of: str = "operand") -> None:
    """`dims` are distinct dimensions of a value of that rank."""
    for dim in dims:
        if not 0 <= dim < rank:
            op.fail(f"{prop} names dimension {dim}, {of} has rank {rank}")
    if len(set(dims)) != len(dims):
        op.fail(f"{prop} names a dimension twice: {list(dims)}")


def check_length(op: NdOp, prop: str, values: Sequence[int], expected: int, per: str) -> None:
    """One number per dimension."""
    if len(values) != expected:
        op.fail(f"{prop} has {len(values)} numbers, expected {expected}, {per}")


def check_at_least(op: NdOp, prop: str, values: Sequence[int], least: int) -> None:
    """No number below `least`."""
    for position, value in enumerate(values):
        if value < least:
            op.fail(f"{prop}[{position}] must be at least {least}, found {value}")
