"""Recording: the current trace, the function or region that it fills, and the Python line that each op came from.

Three modes share one entry, `apply`: *tracing* appends an op; *eager* evaluates it at once through the op's own `evaluate`;
*recording* does both, so that a gradient can be taken of code whose Python branches need values.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr, TensorType
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from gradir.dialects.types import element_type, is_static, numpy_dtype, shape_of, tensor
from gradir.errors import GradirError, Part
from gradir.frontends.python import arrays as array_module
from gradir.ir.builder import Builder

if TYPE_CHECKING:
    from gradir.frontends.python.arrays import Array
    from gradir.frontends.python.dims import Dim

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_LOCATIONS: dict[tuple[CodeType, int], FileLineColLoc] = {}


@dataclass(eq=False)
class FunctionTrace:
    """One `func.func` being built; arrays of outer functions that it reads become extra arguments."""

    module: ModuleTrace
    block: Block
    parent: FunctionTrace | None
    recording: bool = False
    bound: set[str] = field(default_factory=set[str])
    """Names of sizes that an extra argument gives."""
    captured: dict[int, tuple[Array, BlockArgument]] = field(default_factory=dict[int, "tuple[Array, BlockArgument]"])

    def capture(self, array: Array) -> SSAValue:
        """The argument that stands for `array` in here."""
        found = self.captured.get(id(array))
        if found is None:
            found = self.captured[id(array)] = (array, self.block.insert_arg(array.type, len(self.block.args)))
        return found[1]


@dataclass
class ModuleTrace:
    """The module under construction and the names in it."""

    module: ModuleOp = field(default_factory=lambda: ModuleOp([]))
    names: set[str] = field(default_factory=set[str])
    sizes: dict[str, Dim] = field(default_factory=dict[str, "Dim"])
    """Limits of named sizes."""
    calls: dict[Any, Any] = field(default_factory=dict[Any, Any])

    def fresh(self, stem: str) -> str:
        """A symbol name made from a Python name."""
        stem = "".join(c if c.isalnum() or c == "_" else "_" for c in stem) or "f"
        name, n = stem, 0
        while name in self.names:
            n += 1
            name = f"{stem}_{n}"
        self.names.add(name)
        return name


class _State(threading.local):
    function: FunctionTrace | None = None
    builder: Builder | None = None
    eager: int = 0
    depth: int = 0
    """How many of them are open in this thread (see `MODES`)."""


STATE = _State()


class _Modes:
    """How many traces and eager blocks are open in all threads: while there are any, native code leaves calls to Python, which tells
    a call inside of them from one outside."""

    def __init__(self) -> None:
        self.word = ctypes.c_int64(0)
        self._lock = threading.Lock()

    def count(self, change: int) -> None:
        with self._lock:
            STATE.depth += change
            self.word.value += change

    def in_child(self) -> None:
        """After a fork only this thread is left."""
        self._lock = threading.Lock()
        self.word.value = STATE.depth


MODES = _Modes()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=MODES.in_child)


def tracing() -> bool:
    """Whether ops are being appended to a function."""
    return STATE.function is not None


def eager_mode() -> bool:
    return STATE.eager > 0


@contextmanager
def into(function: FunctionTrace | None, block: Block | None) -> Generator[None]:
    """Record into `block` of `function` for the duration."""
    saved = STATE.function, STATE.builder
    MODES.count(1)
    STATE.function, STATE.builder = function, None if block is None else Builder(block)
    try:
        yield
    finally:
        STATE.function, STATE.builder = saved
        MODES.count(-1)


def current() -> tuple[FunctionTrace, Builder]:
    """The function and the builder in use."""
    assert STATE.function is not None and STATE.builder is not None
    return STATE.function, STATE.builder


def python_location() -> FileLineColLoc:
    """File, line and column of the innermost frame outside this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    key = (frame.f_code, frame.f_lasti)
    found = _LOCATIONS.get(key)
    if found is None:
        positions = list(frame.f_code.co_positions())[frame.f_lasti // 2]
        found = FileLineColLoc(StringAttr(_relative(frame.f_code.co_filename)), IntAttr(frame.f_lineno), IntAttr((positions[2] or 0) + 1))
        _LOCATIONS[key] = found
    return found


def code_location(code: CodeType) -> FileLineColLoc:
    """The first line of a function."""
    return FileLineColLoc(StringAttr(_relative(code.co_filename)), IntAttr(code.co_firstlineno), IntAttr(1))


def _relative(name: str) -> str:
    return os.path.relpath(name) if name.startswith(os.getcwd() + os.sep) else name


def location_string() -> str:
    """`python_location` as text for error messages."""
    at = python_location()
    return f"{at.filename.data}:{at.line.data}:{at.column.data}"


def user_error(
    message: str, *, code: str, expected: str = "", found: str = "", hint: str = "", op: str = "", part: Part = "graph"
) -> GradirError:
    """An error at the user's own line; the caller raises it."""
    return GradirError(message, part=part, code=code, op=op, location=location_string(), expected=expected, found=found, hint=hint)


def ssa(array: Array) -> SSAValue:
    """The value of `array` as seen from the current function."""
    function, _ = current()
    if array.value is None:
        array = constant(array.concrete)
        assert array.value is not None
        return array.value
    if array.function is function:
        return array.value
    if _encloses(array.function, function):
        return function.capture(array)
    raise _finished(array)


def _finished(array: Array) -> GradirError:
    """The error for an array that outlived the function in which it was traced."""
    return user_error(
        "an array of a finished trace was used",
        code="GR110",
        expected="values of the function being traced",
        found=f"an array of type {array.type} kept from another call",
        hint="return it from the traced function, or pass it in as an argument",
    )


def _encloses(outer: FunctionTrace | None, inner: FunctionTrace | None) -> bool:
    while inner is not None:
        if inner is outer:
            return True
        inner = inner.parent
    return False


def apply(kind: type[Operation], operands: Sequence[Array], result: TensorType, /, **properties: Attribute) -> Array:
    """One op of one tensor result in the current mode."""
    return apply_several(kind, operands, [result], **properties)[0]


def apply_several(
    kind: type[Operation],
    operands: Sequence[Array],
    results: Sequence[TensorType],
    regions: Sequence[Region] = (),
    /,
    **properties: Attribute,
) -> list[Array]:
    """One op in the current mode, with these regions; its results."""
    if STATE.function is None:
        values = evaluate(kind, operands, results, properties, regions)
        return [array_module.Array(result, concrete=value) for result, value in zip(results, values)]
    function, builder = current()
    builder.loc = python_location()
    inputs = [ssa(x) for x in operands]
    if not all(map(is_static, results)):
        from gradir.frontends.python.run_time_sizes import size_operands

        inputs += size_operands(kind, results[0])
    made = builder.op(kind, inputs, results, properties, regions)
    concrete: Sequence[Any] = [None] * len(results)
    if function.recording and all(x.concrete is not None for x in operands):
        concrete = evaluate(kind, operands, results, properties, [region.clone() for region in regions])
    return [array_module.Array(result, value, function, known) for result, value, known in zip(results, made.results, concrete)]


def evaluate(
    kind: type[Operation],
    operands: Sequence[Array],
    results: Sequence[TensorType],
    properties: dict[str, Attribute],
    regions: Sequence[Region] = (),
) -> list[np.ndarray[Any, Any]]:
    """The op's own meaning on concrete values."""
    for x in operands:
        if x.concrete is None:
            raise _finished(x)
    block = Block(arg_types=[x.type for x in operands])
    op: Any = kind.create(operands=list(block.args), result_types=results, properties=properties, regions=regions)
    try:
        op.verify_()
    except VerifyException as error:
        raise user_error(str(error), code="GR011", op=op.name, found=", ".join(str(x.type) for x in operands)) from None
    found = op.evaluate(*(x.concrete for x in operands))
    values = found if len(results) > 1 else (found,)
    return [np.asarray(value, numpy_dtype(result.element_type)) for result, value in zip(results, values)]


def constant(value: Any, dtype: np.dtype[Any] | None = None) -> Array:
    """A concrete array as a value of the current mode: splats stay splats, large arrays become resources."""
    from gradir.dialects import nd

    data = np.asarray(value, dtype)
    kind = tensor(element_type(data.dtype), data.shape)
    if STATE.function is None:
        return array_module.Array(kind, concrete=data)
    function, builder = current()
    builder.loc = python_location()
    made: Any = nd.ConstantOp.make(data)
    made.location = builder.loc
    builder.block.add_op(made)
    return array_module.Array(kind, made.results[0], function, data if function.recording else None)


def argument(function: FunctionTrace, value: SSAValue, concrete: Any = None) -> Array:
    """A block argument as an array."""
    assert isinstance(value.type, TensorType)
    return array_module.Array(value.type, value, function, concrete)


__all__ = [
    "STATE",
    "FunctionTrace",
    "ModuleTrace",
    "apply",
    "apply_several",
    "argument",
    "constant",
    "current",
    "eager_mode",
    "into",
    "shape_of",
    "ssa",
    "tracing",
]
