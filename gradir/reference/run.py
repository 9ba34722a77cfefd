"""Running one function of a module on numpy arrays, at any of the levels 1 to 4.

At levels 1 and 2 a function takes and returns tensors. At levels 3 and 4 an entry takes its inputs, then its outputs, then its arena; the
attributes `gradir.inputs`, `gradir.results`, `gradir.arena` of the function say which is which, and the evaluator allocates the last two.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr, MemRefType, ModuleOp, TensorType
from xdsl.ir import Attribute

from gradir.dialects.donation import aliases_of
from gradir.dialects.size_limits import limits_of
from gradir.dialects.upstream.func import FuncOp
from gradir.errors import GradirError
from gradir.ir.passes import error_at
from gradir.ir.structure import single_block
from gradir.reference.buffers import View, allocate, check_type, holding, read
from gradir.reference.machine import Launcher, Machine, Value, Watcher
from gradir.reference.sizes import named_sizes
from gradir.reference.values import dtype_of, whole

Array = np.ndarray[Any, Any]

DYNAMIC_ARENA = 1 << 24
"""Bytes of an arena whose size only the program's size function knows."""


def run(
    module: ModuleOp,
    entry: str,
    inputs: Sequence[Array | None],
    *,
    result_shapes: Sequence[Sequence[int]] | None = None,
    seed: int = 0,
    watch: Watcher | None = None,
    launcher: Launcher | None = None,
) -> list[Array]:
    """The results of `@entry` on `inputs`.

    At level 3 and 4, without attributes that name outputs, `None` stands for a buffer that the function fills; those are the results. If
    there is none, every buffer may be updated, and the results are the final contents of all.
    `result_shapes` gives the sizes of outputs whose types have `?`. `seed` orders parallel loops. `launcher` runs kernels
    of a GPU that the program launches (else the evaluator does, thread by thread). Raises `GradirError` OP1xx where the
    program has no meaning.
    """
    machine = Machine(module, seed=seed, watch=watch)
    machine.launcher = launcher
    function = machine.function(entry)
    if function is None or not function.body.blocks:
        message = f"no function @{entry} with a body in the module"
        raise GradirError(message, part="operator", code="OP114", function=f"@{entry}")
    on_buffers = any(isinstance(argument.type, MemRefType) for argument in single_block(function).args)
    try:
        with np.errstate(all="ignore"):
            return _run_buffers(machine, function, inputs, result_shapes) if on_buffers else _run_values(machine, function, inputs)
    except RecursionError:
        raise error_at(
            function,
            "calls or regions nest too deeply",
            part="operator",
            code="OP112",
            expected="functions that do not call themselves for ever",
            found=f"a depth that Python's recursion limit of {sys.getrecursionlimit()} does not allow",
        ) from None


def input_types(function: FuncOp) -> list[Attribute]:
    """Types of the arguments that `run` takes: at levels 3 and 4 outputs and the arena come from the evaluator."""
    types = [argument.type for argument in single_block(function).args]
    if _attribute(function, "gradir.results") is None:
        return types
    return types[: _attribute(function, "gradir.inputs") or 0]


def _refuse(function: FuncOp, message: str, expected: str, found: str) -> GradirError:
    return error_at(function, message, part="operator", code="OP114", expected=expected, found=found)


def coerced(function: FuncOp, position: int, array: Any, type_: Any) -> Array:
    """`array` in the dtype of `type_`; unsigned and signed integers of one width are the same bits."""
    array, dtype = np.asarray(array), dtype_of(type_)
    if array.dtype.kind == "c" and dtype == array.real.dtype and _rank(type_) == array.ndim + 1:
        array = interleaved(array)  # `split-complex` changed the function's type
    if array.dtype.itemsize == dtype.itemsize == 1 and array.dtype.kind not in "iub" and dtype.kind == "i":
        array = array.view(dtype)  # `f8-to-bits` changed it
    if array.dtype != dtype:
        if {array.dtype.kind, dtype.kind} <= {"i", "u"} and array.dtype.itemsize == dtype.itemsize:
            return array.view(dtype)
        raise _refuse(function, f"input {position} has another element type", str(dtype), str(array.dtype))
    shape = type_.get_shape() if hasattr(type_, "get_shape") else ()
    if len(shape) != array.ndim or any(size not in (DYNAMIC_INDEX, found) for size, found in zip(shape, array.shape)):
        raise _refuse(function, f"input {position} has another shape", str(type_), str(list(array.shape)))
    return array


def interleaved(array: Array) -> Array:
    """Complex numbers as pairs of real ones along a new last axis: the same bytes."""
    return np.ascontiguousarray(array).view(array.real.dtype).reshape(*array.shape, 2)


def _rank(type_: Any) -> int:
    return len(type_.get_shape()) if hasattr(type_, "get_shape") else 0


def _run_values(machine: Machine, function: FuncOp, inputs: Sequence[Array | None]) -> list[Array]:
    arguments = function.body.block.args
    if len(inputs) != len(arguments):
        raise _refuse(function, "wrong number of inputs", str(len(arguments)), str(len(inputs)))
    values: list[Value] = []
    for k, (array, argument) in enumerate(zip(inputs, arguments)):
        value = coerced(function, k, array, argument.type)
        values.append(value if isinstance(argument.type, TensorType) else value[()])
    sizes = named_sizes(function, function, values)
    for name, limits in limits_of(function).items():
        if name in sizes and limits.nearest(sizes[name]) != sizes[name]:
            raise _refuse(function, f"the size '{name}' is not allowed", str(limits), str(sizes[name]))
    results = machine.invoke(function, values, sizes)
    return [np.asarray(whole(machine, function.body.block.last_op or function, value)) for value in results]


def _attribute(function: FuncOp, name: str) -> int | None:
    value = function.attributes.get(name)
    return int(value.value.data) if isinstance(value, IntegerAttr) else None


def _run_buffers(
    machine: Machine, function: FuncOp, inputs: Sequence[Array | None], result_shapes: Sequence[Sequence[int]] | None
) -> list[Array]:
    arguments = function.body.block.args
    declared = _attribute(function, "gradir.results")
    expected = len(arguments) if declared is None else _attribute(function, "gradir.inputs") or 0
    if len(inputs) != expected:
        raise _refuse(function, "wrong number of inputs", str(expected), str(len(inputs)))
    shared = aliases_of(function)
    views: list[Value] = []
    outputs: list[View] = []
    for k, argument in enumerate(arguments):
        type_ = argument.type
        array = inputs[k] if k < len(inputs) else None
        if array is not None and not isinstance(type_, MemRefType):
            views.append(coerced(function, k, array, type_)[()])
        elif array is not None:
            # an input is never written where outputs are declared; a bare kernel may update what it is given
            given = np.array(array) if k in shared.values() else array  # the caller of the evaluator keeps its array
            view = holding(coerced(function, k, given, type_), f"input {k}", writable=declared is None or k in shared.values())
            views.append(check_type(machine, function, view, type_) if isinstance(type_, MemRefType) else view)
        elif declared is not None and k >= expected + declared:
            assert isinstance(type_, MemRefType)
            size = type_.get_shape()[0]
            views.append(allocate([DYNAMIC_ARENA if size == DYNAMIC_INDEX else size], dtype_of(type_), "the arena"))
        elif len(outputs) in shared:
            outputs.append(cast("View", views[shared[len(outputs)]]))
            views.append(outputs[-1])
        else:
            outputs.append(_output(function, k, type_, len(outputs), result_shapes))
            views.append(outputs[-1])
    machine.values = {}
    machine.enter(function.body, views)
    if declared is None and not outputs:
        outputs = [view for view in views if isinstance(view, View)]
    last = function.body.block.last_op or function
    return [np.asarray(read(machine, last, view, view.everywhere())) for view in outputs]


def _output(function: FuncOp, position: int, type_: Any, number: int, shapes: Sequence[Sequence[int]] | None) -> View:
    if not isinstance(type_, MemRefType):
        raise _refuse(function, f"argument {position} needs a value", str(type_), "None")
    shape = list(type_.get_shape())
    if DYNAMIC_INDEX in shape:
        if shapes is None:
            raise _refuse(function, f"output {number} has sizes that only the caller knows", "result_shapes", "None")
        shape = [*shapes[number], 2] if len(shapes[number]) == len(shape) - 1 else list(shapes[number])  # complex, as pairs
    return allocate(shape, dtype_of(type_), f"output {number}")
