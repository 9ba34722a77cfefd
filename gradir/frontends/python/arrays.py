"""`Array`: what a traced or eagerly run function computes with. numpy's operators, numpy's broadcasting."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from gradir.dialects.types import is_static, numpy_dtype, shape_of

if TYPE_CHECKING:
    from gradir.frontends.python.trace import FunctionTrace

OPERATORS: dict[str, Callable[..., Any]] = {}
"""Filled by the family files: operator and method name -> implementation."""

_FAMILIES = (
    "elementwise", "mathematics", "complex", "reduction", "shape", "rearrange", "contraction", "creation", "indexing", "updates",
    "composite", "operands", "dims", "cumulative", "sorting",
)  # fmt: skip
_UFUNCS = {"remainder": "mod", "absolute": "abs", "fabs": "abs", "conjugate": "conj"}
"""numpy's functions of elements that have another name here."""


def operator(name: str) -> Callable[..., Any]:
    """The implementation of an operator; the family files load when the first one is used."""
    if name not in OPERATORS:
        for family in _FAMILIES:
            import_module(f"gradir.frontends.python.{family}")
    return OPERATORS[name]


@functools.cache
def elementwise(name: str) -> Callable[..., Any] | None:
    """The function that numpy's `name` stands for, if there is one of elements or a product here."""
    modules = (import_module(f"gradir.frontends.python.{family}") for family in ("elementwise", "mathematics", "complex", "contraction"))
    return next((found for module in modules if callable(found := getattr(module, _UFUNCS.get(name, name), None))), None)


class Array:
    """A tensor value: an SSA value while tracing, a numpy array in eager mode, both while recording."""

    __slots__ = ("concrete", "function", "type", "value")
    __array_priority__ = 1000.0

    def __init__(
        self, kind: TensorType, value: SSAValue | None = None, function: FunctionTrace | None = None, concrete: Any = None
    ) -> None:
        self.type, self.value, self.function, self.concrete = kind, value, function, concrete

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers, and a `Dim` where a size is known only at run time."""
        sizes = shape_of(self.type)
        return sizes if is_static(self.type) else tuple(map(operator("sized"), sizes))  # pyright: ignore[reportReturnType]  (numbers)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(numpy_dtype(self.type.element_type))

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def T(self) -> Array:
        return operator("transpose")(self)

    @property
    def real(self) -> Array:
        return operator("real")(self)

    @property
    def imag(self) -> Array:
        return operator("imag")(self)

    @property
    def at(self) -> Any:
        return operator("at")(self)

    if TYPE_CHECKING:  # the operators are attached below, from the table

        def __add__(self, other: Any) -> Array: ...
        def __radd__(self, other: Any) -> Array: ...
        def __sub__(self, other: Any) -> Array: ...
        def __rsub__(self, other: Any) -> Array: ...
        def __mul__(self, other: Any) -> Array: ...
        def __rmul__(self, other: Any) -> Array: ...
        def __truediv__(self, other: Any) -> Array: ...
        def __rtruediv__(self, other: Any) -> Array: ...
        def __matmul__(self, other: Any) -> Array: ...
        def __neg__(self) -> Array: ...
        def __getitem__(self, index: Any) -> Array: ...

    def __repr__(self) -> str:
        return f"Array<{self.type}>" if self.concrete is None else "A" + repr(np.asarray(self.concrete))[1:]  # numpy's, with our name

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a rank-0 array")
        return self.shape[0]

    def __iter__(self) -> Any:
        return (self[k] for k in range(len(self)))

    def __hash__(self) -> int:
        return id(self)

    # Values: only where there is one. ------------------------------------------------------------------------------

    def _known(self, what: str) -> Any:
        if self.concrete is None:
            raise operator("unknown_value")(self, what)
        return self.concrete

    def __bool__(self) -> bool:
        return bool(self._known("bool()"))

    def __int__(self) -> int:
        return int(self._known("int()"))

    def __float__(self) -> float:
        return float(self._known("float()"))

    def __complex__(self) -> complex:
        return complex(self._known("complex()"))

    def __index__(self) -> int:
        return int(self._known("use as a Python index").__index__())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.asarray(self._known("conversion to numpy"), dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """`numpy.tanh(x)` and `a * x` with a numpy array `a` are our functions of that name."""
        function = elementwise(ufunc.__name__) if method == "__call__" and not options else None
        name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        return function(*inputs) if function is not None else _on_values(name, getattr(ufunc, method), inputs, options)

    def __array_function__(self, function: Any, _types: Any, args: Any, kwargs: Any) -> Any:
        """numpy's other functions take values, and have none while tracing."""
        if function in (np.shape, np.ndim, np.size) and len(args) == 1 and not kwargs:
            return getattr(args[0], function.__name__)
        return _on_values(f"{function.__module__}.{function.__name__}".removeprefix("numpy."), function, args, kwargs)

    def __setitem__(self, index: Any, value: Any) -> None:
        raise operator("assignment_error")(self, index, value)

    def transpose(self, *axes: Any) -> Any:
        """`x.transpose()`, `x.transpose(1, 0)` and `x.transpose((1, 0))`, as numpy."""
        return operator("transpose")(self, axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None)

    def item(self) -> Any:
        return self._known("item()").item()

    def tolist(self) -> Any:
        return self._known("tolist()").tolist()

    def __format__(self, spec: str) -> str:
        return format(
            self.concrete.item() if self.concrete is not None and self.ndim == 0 else str(self), spec if self.concrete is not None else ""
        )


def _on_values(name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """A function of numpy on the values of arrays; GradirError GR111 where one has none, or is being recorded for its gradient."""

    def value(x: Any) -> Any:
        if isinstance(x, list | tuple):
            return type(x)(value(k) for k in cast("list[Any]", x))
        if isinstance(x, Array):
            if x.value is not None:
                raise operator("foreign_function")(x, name, "out" in kwargs)
            return x.concrete
        return x

    return function(*(value(x) for x in args), **{key: value(x) for key, x in kwargs.items()})


def _forward(name: str) -> Callable[..., Any]:
    def method(self: Array, *args: Any, **kwargs: Any) -> Any:
        return operator(name)(self, *args, **kwargs)

    method.__name__ = name
    return method


def _reflected(name: str) -> Callable[[Array, Any], Any]:
    def method(self: Array, other: Any) -> Any:
        return operator(name)(other, self)

    return method


_BINARY = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide", "mod": "mod", "pow": "power",
    "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift",
}  # fmt: skip
for _operator, _function in _BINARY.items():
    setattr(Array, f"__{_operator}__", _forward(_function))
    setattr(Array, f"__r{_operator}__", _reflected(_function))
for _operator, _function in {
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "eq": "equal",
    "ne": "not_equal",
}.items():
    setattr(Array, f"__{_operator}__", _forward(_function))
for _operator, _function in {"neg": "negative", "abs": "abs", "invert": "invert", "getitem": "getitem"}.items():
    setattr(Array, f"__{_operator}__", _forward(_function))
for _name in (
    "sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "argmax", "argmin", "reshape", "astype", "flatten",
    "ravel", "squeeze", "swapaxes", "repeat", "clip", "dot", "take", "conj", "trace", "diagonal", "round", "cumsum", "cumprod", "argsort",
):  # fmt: skip
    setattr(Array, _name, _forward(_name))
