"""`x.at[i].set(v)`: functional updates, in place where nothing else reads `x`. numpy's basic indexing, index arrays, masks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradir.frontends.python.arrays import OPERATORS, Array
from gradir.frontends.python.dims import Dim, at_least
from gradir.frontends.python.elementwise import add, divide, maximum, minimum, multiply, where
from gradir.frontends.python.gather_scatter import scatter
from gradir.frontends.python.indexing import dynamic_slice, dynamic_update_slice, expand_index, scatter_add, slice_bounds, wrapped
from gradir.frontends.python.operands import as_array, astype, broadcast_shapes, broadcast_to, is_scalar
from gradir.frontends.python.rearrange import moveaxis
from gradir.frontends.python.run_time_slices import place_of
from gradir.frontends.python.shape import expand_dims, reshape, stack
from gradir.frontends.python.trace import user_error


class At:
    """A place in `x` that `set`, `add`, `multiply`, `divide`, `max` or `min` updates; `x` itself never changes."""

    def __init__(self, x: Array, index: Any = None) -> None:
        self.x, self.index = x, index

    def __getitem__(self, index: Any) -> At:
        return At(self.x, index)

    def set(self, value: Any) -> Array:
        """x with x[i] replaced; of an array of indices with duplicates the last one wins"""
        return self._either("set", None, value)

    def add(self, value: Any) -> Array:
        """x with `value` added to x[i]; an array of indices adds to the row of each, in order"""
        return self._either("add", add, value)

    def multiply(self, value: Any) -> Array:
        """x with x[i] multiplied"""
        return self._either("mul", multiply, value)

    def max(self, value: Any) -> Array:
        """x with the larger of x[i] and `value`"""
        return self._either("max", maximum, value)

    def min(self, value: Any) -> Array:
        """x with the smaller of x[i] and `value`"""
        return self._either("min", minimum, value)

    def divide(self, value: Any) -> Array:
        """x with x[i] divided"""
        return self._either("mul", multiply, divide(1, value))

    def get(self) -> Array:
        """x[i]"""
        return self.x[self.index]

    def _either(self, kind: str, combine: Callable[[Array, Array], Array] | None, value: Any) -> Array:
        mask = _mask(self.index)
        if mask is not None:
            return where(mask, value if combine is None else combine(self.x, as_array(value)), self.x)
        along = self._one_axis()
        if along is not None:
            return self._along(*along, kind, value)
        found = self._rows(kind, value)
        return self._update(combine, value) if found is None else found

    def _one_axis(self) -> tuple[int, Any] | None:
        """The axis behind others, or with steps, along which the index alone selects, and the places there."""
        items = expand_index(self.x, self.index if isinstance(self.index, tuple) else (self.index,))
        chosen = [k for k, item in enumerate(items) if not (isinstance(item, slice) and item == slice(None))]
        if len(chosen) != 1 or any(item is None for item in items):
            return None
        (axis,), item, n = chosen, items[chosen[0]], self.x.shape[chosen[0]]
        if isinstance(item, slice):
            steps = not isinstance(n, Dim) and item.step not in (None, 1)
            return (axis, np.arange(*item.indices(n))) if steps else None
        return (axis, item) if axis and _is_indices(item) else None

    def _along(self, axis: int, places: Any, kind: str, value: Any) -> Array:
        """The same update with `axis` in front."""
        at = as_array(places)
        shape = (*self.x.shape[:axis], *at.shape, *self.x.shape[axis + 1 :])
        new = broadcast_to(as_array(value, self.x.dtype), shape)
        span = tuple(range(at.ndim))
        found = At(moveaxis(self.x, axis, 0), places)._rows(kind, moveaxis(new, tuple(axis + k for k in span), span))
        assert found is not None, "an index array in front"
        return moveaxis(found, 0, axis)

    def _indices(self) -> list[Array] | None:
        """The index arrays that stand in front, broadcast together, where the index has any."""
        items = expand_index(self.x, self.index if isinstance(self.index, tuple) else (self.index,))
        count = next((k for k, item in enumerate(items) if isinstance(item, slice) or item is None), len(items))
        front = items[:count]
        if not any(_is_indices(item) for item in front):
            return None
        if any(item != slice(None) for item in items[count:]):
            raise _unsupported("index arrays behind or beside slices")
        arrays = [as_array(item) for item in front]
        for at in arrays:
            if at.dtype.kind not in "iu":
                raise _unsupported(f"an index of type {at.type}")
        common = broadcast_shapes("at", *(at.shape for at in arrays))
        return [broadcast_to(wrapped(at, n), common) for at, n in zip(arrays, self.x.shape)]

    def _rows(self, kind: str, value: Any) -> Array | None:
        """Every place that the index arrays name, one after the other; those out of range are dropped."""
        arrays = self._indices()
        if arrays is None:
            return None
        count, common = len(arrays), arrays[0].shape
        new = broadcast_to(as_array(value, self.x.dtype), (*common, *self.x.shape[count:]))
        if kind == "add" and count == 1:
            return scatter_add(self.x, arrays[0], new)
        vectors = stack([astype(at, np.int64) for at in arrays], len(common)) if count > 1 else expand_dims(arrays[0], len(common))
        window = range(len(common), len(common) + self.x.ndim - count)
        places = tuple(range(count))
        return scatter(self.x, vectors, new, kind, window=tuple(window), inserted=places, map=places)

    def _update(self, combine: Callable[[Array, Array], Array] | None, value: Any) -> Array:
        x = self.x
        starts, window, shape = _window(x, self.index if isinstance(self.index, tuple) else (self.index,))
        new = reshape(broadcast_to(as_array(value, x.dtype), shape), window)
        if 0 in window:
            return x
        if combine is not None:
            new = combine(dynamic_slice(x, starts, window), new)
        return dynamic_update_slice(x, new, starts)


def _mask(index: Any) -> Array | None:
    """The index as a mask over all of x, where it is one."""
    if isinstance(index, Array | np.ndarray) and index.dtype == np.bool_ and index.ndim > 0:
        return as_array(index)
    return None


def _is_indices(item: Any) -> bool:
    """An index with dimensions of its own."""
    return not isinstance(item, slice) and item is not None and (item.ndim if isinstance(item, Array) else np.ndim(item)) > 0


def _window(x: Array, index: tuple[Any, ...]) -> tuple[list[Any], tuple[int, ...], tuple[int, ...]]:
    """First positions, sizes in `x`, and the shape that `x[index]` has."""
    starts: list[Any] = []
    window: list[Any] = []
    shape: list[Any] = []
    items = expand_index(x, index)
    if any(item is None for item in items):
        raise _unsupported("None")
    for item, n in zip(items, x.shape):
        if isinstance(item, slice):
            low, high, step = slice_bounds(item, n)
            if step != 1:
                raise _unsupported("a slice with a step")
            starts.append(low)
            window.append(at_least(high - low, 0))
            shape.append(window[-1])
            continue
        if _is_indices(item) or as_array(item).dtype.kind not in "iu":
            raise _unsupported(f"an index of type {as_array(item).type}")
        if is_scalar(item) or isinstance(item, np.integer):
            if isinstance(n, Dim) or isinstance(item, Dim):
                starts.append(place_of(item, n, len(starts)))
                window.append(1)
                continue
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
        "x.at[...] takes integers, slices without a step, a mask, index arrays in front or along one axis",
        code="GR104",
        expected="integers, slices, run-time integers; index arrays in front or a slice with a step, then whole dimensions; a mask alone",
        found=found,
        hint="use gradir.scatter for other places, or gradir.where with a mask",
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
