"""Values of levels 1 and 2: numpy arrays in the dtype of their element type, and tensors with undefined elements.

Relies on `gradir.dialects.types.numpy_dtype`. `i1` is bool; signless integers are signed, unsigned ops reinterpret the bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IndexType, IntegerAttr, MemRefType, TensorType, VectorType
from xdsl.ir import Attribute, Operation

from gradir.dialects.types import numpy_dtype
from gradir.errors import GradirError
from gradir.reference.machine import Machine, Value


@dataclass(frozen=True)
class Partial:
    """A tensor of which only the elements with `defined` have a value."""

    array: np.ndarray[Any, Any]
    defined: np.ndarray[Any, Any]

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the tensor."""
        return self.array.shape


def undefined(shape: Sequence[int], dtype: np.dtype[Any]) -> Partial:
    """A tensor without any value."""
    return Partial(np.zeros(shape, dtype), np.zeros(shape, np.bool_))


def partial(array: np.ndarray[Any, Any], defined: np.ndarray[Any, Any]) -> Value:
    """The plain array when every element is defined."""
    return array if defined.all() else Partial(array, defined)


def parts(value: Value) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Elements and which of them are defined."""
    if isinstance(value, Partial):
        return value.array, value.defined
    array = np.asarray(value)
    return array, np.ones(array.shape, np.bool_)


def whole(machine: Machine, op: Operation, value: Value) -> Value:
    """The plain array; an error when an element is undefined."""
    if not isinstance(value, Partial):
        return value
    require_defined(machine, op, value.defined)
    return value.array


def require_defined(machine: Machine, op: Operation, defined: np.ndarray[Any, Any]) -> None:
    """An error that names the first undefined element."""
    if defined.all():
        return
    missing = np.argwhere(~np.asarray(defined))
    where = [int(i) for i in missing[0]] if missing.size else []
    machine.fail(op, "OP101", f"reads {len(missing) or 1} elements that were never written, the first at {where}")


def element_type_of(type_: Attribute) -> Attribute:
    """Element type of a shaped type, or the scalar type itself."""
    return type_.element_type if isinstance(type_, TensorType | VectorType | MemRefType) else type_


def dtype_of(type_: Attribute) -> np.dtype[Any]:
    """The numpy dtype of a scalar type or of a shaped type's elements; GradirError OP100 if there is none."""
    elem = element_type_of(type_)
    try:
        return numpy_dtype(elem)
    except (KeyError, TypeError):
        raise GradirError(
            "the reference evaluator has no values of this type",
            part="operator",
            code="OP100",
            expected="elements of type f64, f32, f16, bf16, i1, i8 to i64, ui8 to ui64, index",
            found=str(type_),
        ) from None


def is_index(type_: Attribute) -> bool:
    """Whether a value of this type is an index."""
    return isinstance(element_type_of(type_), IndexType)


def wrapped(number: int, dtype: np.dtype[Any]) -> Any:
    """`number` modulo two to the width, as a scalar of an integer dtype."""
    if dtype == np.bool_:
        return np.bool_(number & 1)
    bits = dtype.itemsize * 8
    number &= (1 << bits) - 1
    if dtype.kind == "i" and number >> (bits - 1):
        number -= 1 << bits
    return dtype.type(number)


def constant(attribute: Attribute) -> Value:
    """The value of a constant: a number, a dense literal, or a resource that holds an array."""
    array = getattr(attribute, "array", None)
    if isinstance(array, np.ndarray):
        return array
    if isinstance(attribute, IntegerAttr):
        return wrapped(attribute.value.data, numpy_dtype(attribute.type))
    if isinstance(attribute, FloatAttr):
        return np.asarray(attribute.value.data).astype(numpy_dtype(attribute.type))[()]
    if isinstance(attribute, DenseIntOrFPElementsAttr):
        dtype, shape = dtype_of(attribute.type), attribute.get_shape() or ()
        if dtype == np.bool_:
            return (np.frombuffer(attribute.data.data, np.uint8) != 0).reshape(shape)
        return np.frombuffer(attribute.data.data, dtype).reshape(shape)
    raise TypeError(f"no constant: {attribute}")
