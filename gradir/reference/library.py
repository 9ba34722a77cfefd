"""Calls of declared kernels (`gradir.library`): the meaning that is registered for the name, on tensors or on buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Operation

from gradir.dialects import custom_calls
from gradir.dialects.kernel import (
    COMPLEX_ATTRIBUTE,
    CONFIG_ATTRIBUTE,
    DESTINATIONS_ATTRIBUTE,
    ELEMENTS_ATTRIBUTE,
    LIBRARY_ATTRIBUTE,
)
from gradir.dialects.nd.library import call_meaning, unknown_call
from gradir.dialects.types import ints, numpy_dtype, tensor
from gradir.dialects.upstream.func import FuncOp
from gradir.reference.buffers import View, read, write
from gradir.reference.machine import Machine, Value
from gradir.reference.values import Partial, whole


def call_library(machine: Machine, op: Operation, function: FuncOp, arguments: Sequence[Value]) -> Value:
    """The results; on buffers they are written to the last arguments."""
    name = cast("StringAttr", function.attributes[LIBRARY_ATTRIBUTE]).data
    row = custom_calls.find(name)
    if row is None:
        raise unknown_call(op, name)
    count = cast("IntegerAttr[Any]", function.attributes[DESTINATIONS_ATTRIBUTE]).value.data
    first = len(arguments) - count
    elements = list(cast("ArrayAttr[Attribute]", function.attributes[ELEMENTS_ATTRIBUTE]).data)
    marks = function.attributes.get(COMPLEX_ATTRIBUTE)
    joined = () if marks is None else ints(marks)
    inputs: list[Any] = []
    for value, element in zip(arguments[:first], elements):
        array = read(machine, op, value, value.everywhere()) if isinstance(value, View) else whole(machine, op, value)
        inputs.append(_as_level1(np.asarray(array), element))
    shapes = [_shape(value) for value in arguments[first:]]
    kinds = [tensor(element, shape) for element, shape in zip(elements[first:], shapes)]
    config = custom_calls.config_value(cast("DictionaryAttr | None", function.attributes.get(CONFIG_ATTRIBUTE)))
    split = [k for k in joined if k < first], [k - first for k in joined if k >= first]
    results = call_meaning(row, op, config, inputs, kinds, *split)
    lowered = [_as_level2(array) for array in results]
    if not any(isinstance(value, View) for value in arguments):
        return tuple(lowered)
    for view, array in zip(arguments[first:], lowered):
        write(machine, op, view, view.everywhere(), array)
    return ()


def _shape(value: Value) -> tuple[int, ...]:
    return tuple(value.shape) if isinstance(value, Partial | View) else np.shape(value)


def _as_level1(array: np.ndarray[Any, Any], element: Attribute) -> np.ndarray[Any, Any]:
    """Unsigned integers get their sign back."""
    dtype = np.dtype(numpy_dtype(element))
    return array.view(dtype) if dtype.kind == "u" and array.dtype.kind == "i" else array


def _as_level2(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array.view(np.dtype(f"int{8 * array.dtype.itemsize}")) if array.dtype.kind == "u" else array
