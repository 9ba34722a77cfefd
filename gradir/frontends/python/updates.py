"""`x.at[i].set(v)`: functional updates, in place where nothing else reads `x`. numpy's basic indexing without steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradir.frontends.python.arrays import OPERATORS, Array
from gradir.frontends.python.elementwise import add, maximum, minimum, multiply
from gradir.frontends.python.indexing import dynamic_slice, dynamic_update_slice, expand_index, scatter_add, slice_bounds, wrapped
from gradir.frontends.python.operands import as_array, broadcast_to, is_scalar
from gradir.frontends.python.shape import reshape
from gradir.frontends.python.trace import user_error


class At:
    """A place in `x` that `set`, `add`, `multiply`, `max` or `min` updates; `x` itself never changes."""

    def __init__(self, x: Array, index: Any = None) -> None:
        self.x, self.index = x, index

    def __getitem__(self, index: Any) -> At:
        return At(self.x, index)

    def set(self, value: Any) -> Array:
        """x with x[i] replaced"""
        return self._update(None, value)

    def add(self, value: Any) -> Array:
        """x with `value` added to x[i]; an array of indices adds to the row of each, in order"""
        items = expand_index(self.x, self.index if isinstance(self.index, tuple) else (self.index,))
        if items and _is_indices(items[0]) and all(item == slice(None) for item in items[1:]):
            at = as_array(items[0])
            return scatter_add(self.x, wrapped(at, self.x.shape[0]), broadcast_to(as_array(value), (*at.shape, *self.x.shape[1:])))
        return self._update(add, value)

    def multiply(self, value: Any) -> Array:
        """x with x[i] multiplied"""
        return self._update(multiply, value)

    def max(self, value: Any) -> Array:
        """x with the larger of x[i] and `value`"""
        return self._update(maximum, value)

    def min(self, value: Any) -> Array:
        """x with the smaller of x[i] and `value`"""
        return self._update(minimum, value)

    def _update(self, combine: Callable[[Array, Array], Array] | None, value: Any) -> Array:
        x = self.x
        starts, window, shape = _window(x, self.index if isinstance(self.index, tuple) else (self.index,))
        new = reshape(broadcast_to(as_array(value, x.dtype), shape), window)
        if 0 in window:
            return x
        if combine is not None:
            new = combine(dynamic_slice(x, starts, window), new)
        return dynamic_update_slice(x, new, starts)


def _is_indices(item: Any) -> bool:
    """An index with dimensions of its own."""
    return not isinstance(item, slice) and item is not None and (item.ndim if isinstance(item, Array) else np.ndim(item)) > 0


def _window(x: Array, index: tuple[Any, ...]) -> tuple[list[Any], tuple[int, ...], tuple[int, ...]]:
    """First positions, sizes in `x`, and the shape that `x[index]` has."""
    starts: list[Any] = []
    window: list[int] = []
    shape: list[int] = []
    items = expand_index(x, index)
    if any(item is None for item in items):
        raise _unsupported("None")
    for item, n in zip(items, x.shape):
        if isinstance(item, slice):
            low, high, step = slice_bounds(item, n)
            if step != 1:
                raise _unsupported("a slice with a step")
            starts.append(low)
            window.append(max(0, high - low))
            shape.append(window[-1])
            continue
        if _is_indices(item) or as_array(item).dtype.kind not in "iu":
            raise _unsupported(f"an index of type {as_array(item).type}")
        if is_scalar(item) or isinstance(item, np.integer):
            at = int(item)
            if not -n <= at < n:
                raise user_error(f"index {at} is out of range", code="GR104", expected=f"{-n} to {n - 1}", found=str(at))
            starts.append(at % n)
        else:
            starts.append(wrapped(as_array(item), n))
        window.append(1)
    return starts, tuple(window), tuple(shape)


def _unsupported(found: str) -> Exception:
    return user_error(
        "x.at[...] takes integers and slices without a step",
        code="GR104",
        expected="integers, slices, run-time integers; one array of indices in front with `add`",
        found=found,
        hint="use gradir.scatter_add for many rows, or gradir.where with a mask",
    )


def setitem(_x: Array, _index: Any, _value: Any) -> Exception:
    """The error for `x[i] = v`."""
    return user_error(
        "arrays do not change: item assignment",
        code="GR113",
        expected="a new array",
        found="x[...] = v",
        hint="write x = x.at[...].set(v), or x.at[...].add(v)",
    )


OPERATORS.update(at=At, assignment_error=setitem)
