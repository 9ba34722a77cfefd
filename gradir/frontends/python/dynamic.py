"""`jit(dynamic=...)`: which sizes of which arguments are known only at a call. One program then serves them all.

`{"x": ("b", 64)}` gives the argument `x` (by name or position) a shape of names, `Dim`s, numbers and None (the size of the array that is
passed first). For an argument that is a container, containers of the same kind hold the shapes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from gradir.frontends.python.arrays import Array
from gradir.frontends.python.dims import Dim
from gradir.frontends.python.operands import supported_dtype
from gradir.frontends.python.pytrees import flatten, unflatten
from gradir.frontends.python.sizes import sizes
from gradir.frontends.python.trace import user_error

Shapes = Mapping[int | str, Any]


class Spec:
    """The shape and element type of an argument, without a value: for compiling ahead of the first call.

    Sizes are numbers, or names of sizes (`"b"`, `gradir.Dim("b", min=1)`) that only a call knows. Not a dataclass: those are containers of
    arrays, and this stands for one array.
    """

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: int | str | Sequence[int | str], dtype: Any = np.float32) -> None:
        sequence = shape if isinstance(shape, Iterable) and not isinstance(shape, str) else (shape,)
        named = [Dim(n) if isinstance(n, str) and not isinstance(n, Dim) else n for n in sequence]
        self.shape, self.dtype = sizes("a size of a Spec", named), supported_dtype(dtype)

    def __repr__(self) -> str:
        return f"Spec({self.shape}, {self.dtype})"


def named_arguments(function: Callable[..., Any], dynamic: Shapes) -> dict[int | str, Any]:
    """Shapes by name and by position. GradirError GR104 for an argument that the function lacks."""
    if not dynamic:
        return {}
    names = list(inspect.signature(function).parameters)
    both: dict[int | str, Any] = {}
    for key, shape in dynamic.items():
        known = key in names if isinstance(key, str) else 0 <= key < len(names)
        if not known:
            name = getattr(function, "__name__", "f")
            raise user_error(
                f"dynamic names an argument that {name} lacks", code="GR104", expected=f"one of {', '.join(names)}", found=str(key)
            )
        place = names.index(key) if isinstance(key, str) else key
        both[place] = both[names[place]] = shape
    return both


def described(tree: tuple[tuple[Any, ...], dict[str, Any]], places: Sequence[int], dynamic: Shapes) -> Any:
    """The arguments with a `Spec` in place of every array whose shape `dynamic` names; `places` are the positions of `args`."""
    args, kwargs = tree
    return (
        tuple(_described(str(k), x, dynamic.get(k)) for k, x in zip(places, args)),
        {name: _described(name, x, dynamic.get(name)) for name, x in kwargs.items()},
    )


def _described(name: str, x: Any, shape: Any) -> Any:
    if shape is None:
        return x
    leaves, structure = flatten(x)
    if not structure.children and len(leaves) == 1:
        return _spec(name, x, shape)
    if isinstance(x, dict):
        keys = cast("dict[Any, Any]", x)
        rows = shape if isinstance(shape, Mapping) else {}
        return {key: _described(f"{name}[{key!r}]", value, rows.get(key)) for key, value in keys.items()}
    if (
        isinstance(x, list | tuple)
        and isinstance(shape, list | tuple)
        and len(cast("Sequence[Any]", x)) == len(cast("Sequence[Any]", shape))
    ):
        parts = [_described(f"{name}[{k}]", value, row) for k, (value, row) in enumerate(zip(cast("Any", x), cast("Any", shape)))]
        return unflatten(structure, [leaf for part in parts for leaf in flatten(part)[0]])
    raise user_error(
        f"dynamic: the shapes of argument {name} have another structure", code="GR107", expected=str(structure), found=repr(shape)[:80]
    )


def _spec(name: str, x: Any, shape: Any) -> Spec:
    if isinstance(x, Spec):
        return x
    have = x.shape if isinstance(x, Array) else np.shape(x)
    wanted = tuple(cast("Sequence[Any]", shape)) if isinstance(shape, list | tuple) else (shape,)
    if len(wanted) != len(have):
        raise user_error(f"dynamic: argument {name} has another rank", code="GR001", expected=str(wanted), found=f"shape {have}")
    return Spec([n if want is None else want for want, n in zip(wanted, have)], getattr(x, "dtype", None) or np.asarray(x).dtype)


__all__ = ["Spec", "described", "named_arguments"]
