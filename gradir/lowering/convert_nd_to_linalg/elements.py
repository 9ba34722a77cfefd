"""Element types from level 2 on: `uiN` becomes `iN` (ops know the sign), f16 and bf16 are computed in f32."""

from __future__ import annotations

from functools import lru_cache
from math import copysign
from typing import Any, cast

from xdsl.dialects.builtin import BFloat16Type, Float16Type, FloatAttr, IntegerAttr, IntegerType, Signedness, TensorType, f32
from xdsl.ir import Attribute

from gradir.dialects.types import shape_of, tensor


@lru_cache(1 << 12)
def lowered(type_: Attribute) -> Attribute:
    """A type of level 1 as level 2 writes it."""
    if isinstance(type_, TensorType):
        return tensor(lowered(type_.element_type), shape_of(type_))
    if isinstance(type_, IntegerType) and type_.signedness.data is not Signedness.SIGNLESS:
        return IntegerType(type_.width.data)
    return type_


def compute_type(element: Attribute) -> Attribute:
    """The type in which elements are computed and accumulated."""
    return f32 if isinstance(element, Float16Type | BFloat16Type) else lowered(element)


def width(element: Attribute) -> int:
    """Bits of an integer type."""
    assert isinstance(element, IntegerType)
    return element.width.data


def number(value: float, type_: Attribute) -> FloatAttr[Any] | IntegerAttr[Any]:
    """A constant of a float or signless integer type; integers wrap."""
    return _number(value, copysign(1.0, value), type_)


@lru_cache(1 << 12)
def _number(value: float, sign: float, type_: Attribute) -> FloatAttr[Any] | IntegerAttr[Any]:
    """`sign` tells -0.0 from 0.0, which are equal as keys."""
    if isinstance(type_, IntegerType):
        bits = type_.width.data
        wrapped = int(value) & ((1 << bits) - 1)
        return IntegerAttr(wrapped - (1 << bits) if bits > 1 and wrapped >> (bits - 1) else wrapped, type_)
    return FloatAttr(float(value), cast("Any", type_))  # the callers pass float types


def number_of(attribute: Attribute) -> float:
    """The number in a float or integer attribute."""
    return cast("FloatAttr[Any] | IntegerAttr[Any]", attribute).value.data


def least(element: Attribute, unsigned: bool) -> float:
    """The identity of max."""
    if not isinstance(element, IntegerType):
        return float("-inf")
    return 0 if unsigned or width(element) == 1 else -(1 << (width(element) - 1))


def greatest(element: Attribute, unsigned: bool) -> float:
    """The identity of min."""
    if not isinstance(element, IntegerType):
        return float("inf")
    return (1 << width(element)) - 1 if unsigned or width(element) == 1 else (1 << (width(element) - 1)) - 1
