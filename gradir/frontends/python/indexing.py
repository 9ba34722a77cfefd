"""`x[...]` and its relatives: numpy's meaning for static indices; an index known at run time is clamped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, i64

from gradir.dialects import nd
from gradir.dialects.nd.indexing import RUN_TIME
from gradir.dialects.types import i64_array
from gradir.frontends.python.arrays import OPERATORS, Array
from gradir.frontends.python.dims import Dim
from gradir.frontends.python.elementwise import add, less, where
from gradir.frontends.python.operands import as_array, astype, broadcast_to, is_scalar, one_axis, with_shape
from gradir.frontends.python.run_time_slices import run_time_index, run_time_slice
from gradir.frontends.python.shape import flip, reshape, slice_, stack
from gradir.frontends.python.sizes import sizes as whole_sizes, whole
from gradir.frontends.python.trace import apply, user_error


def take(x: Any, indices: Any, axis: int = 0) -> Array:
    """Rows of `x` along `axis` (0 where numpy would flatten); indices are clamped, negative ones count from the end"""
    x, at = as_array(x), as_array(indices)
    dim = one_axis(x, axis)
    if at.dtype.kind not in "iu":
        raise user_error("take needs integer indices", code="GR002", op="nd.gather", expected="an integer array", found=str(at.dtype))
    if x.shape[dim] == 0 and at.size:
        raise user_error("take from an empty axis", code="GR104", op="nd.gather", expected="at least one element", found=str(x.shape))
    at = wrapped(at, x.shape[dim])
    shape = (*x.shape[:dim], *at.shape, *x.shape[dim + 1 :])
    return apply(nd.GatherOp, [x, at], with_shape(x, shape), dim=IntegerAttr(dim, i64))


def wrapped(at: Array, size: int) -> Array:
    """Negative indices count from the end."""
    if at.dtype.kind == "u":
        return at
    if at.dtype.itemsize < 4:
        at = astype(at, np.int32)
    return where(less(at, 0), add(at, size), at)


def _starts(x: Array, starts: Any) -> list[Array]:
    """One start per dimension; the verifier counts them."""
    if not isinstance(starts, Sequence) and np.ndim(starts) != 1:
        raise user_error("a window needs one start per dimension", code="GR104", expected=f"{x.ndim} starts", found=repr(starts)[:80])
    return [_start(s) for s in starts]


def dynamic_slice(x: Any, starts: Sequence[Any], sizes: Sequence[int]) -> Array:
    """A window of static size at a run-time start, clamped so that it fits"""
    x = as_array(x)
    at, shape = _starts(x, starts), whole_sizes("a size", sizes)
    numbers = i64_array(RUN_TIME if isinstance(n, Dim) else n for n in shape)
    return apply(nd.DynamicSliceOp, [x, *at], with_shape(x, shape), sizes=numbers)


def dynamic_update_slice(x: Any, update: Any, starts: Sequence[Any]) -> Array:
    """`x` with a window overwritten, its start clamped so that it fits"""
    x = as_array(x)
    return apply(nd.DynamicUpdateSliceOp, [x, as_array(update, x.dtype), *_starts(x, starts)], x.type)


def scatter_add(x: Any, indices: Any, updates: Any, axis: int = 0) -> Array:
    """`x` with rows of `updates` added at `indices`, in order; an index out of range is dropped"""
    x = as_array(x)
    dim = one_axis(x, axis)
    return apply(nd.ScatterAddOp, [x, as_array(indices), as_array(updates, x.dtype)], x.type, dim=IntegerAttr(dim, i64))


def _start(s: Any) -> Array:
    s = as_array(s)
    return s if s.dtype.kind in "iu" else astype(s, np.int32)


def getitem(x: Array, index: Any) -> Array:
    """numpy's basic indexing, integer arrays, and run-time integers"""
    items = expand_index(x, index if isinstance(index, tuple) else (index,))
    return _getitem(x, items)


def expand_index(x: Array, items: tuple[Any, ...]) -> list[Any]:
    """Ellipsis and missing trailing dimensions spelled out."""
    if sum(1 for i in items if i is Ellipsis) > 1:
        raise user_error("two ellipses in one index", code="GR104", expected="at most one '...'", found=str(len(items)) + " items")
    used = sum(1 for i in items if i is not None and i is not Ellipsis)
    if used > x.ndim:
        raise user_error("too many indices", code="GR104", expected=f"at most {x.ndim}", found=str(used))
    out: list[Any] = []
    for i in items:
        out += [slice(None)] * (x.ndim - used) if i is Ellipsis else [i]
    return out + [slice(None)] * (x.ndim - sum(1 for i in out if i is not None))


def _getitem(x: Array, items: list[Any]) -> Array:
    start, stride = [0] * x.ndim, [1] * x.ndim
    limit: list[Any] = list(x.shape)
    flipped: list[int] = []
    dynamic: dict[int, Array] = {}
    gathered: dict[int, Array] = {}
    shape: list[int | None] = []
    dim = 0
    for item in items:
        if item is None:
            shape.append(1)
            continue
        n = x.shape[dim]
        if isinstance(item, slice):
            if any(isinstance(part, Dim) for part in (n, item.start, item.stop)):
                x, lo, hi, st = run_time_slice(x, dim, item)
            else:
                lo, hi, st = slice_bounds(item, n)
            if st < 0:
                count = max(0, -(-(lo - hi) // -st))
                flipped.append(dim)
                lo, hi, st = lo + (count - 1) * st, lo + 1, -st
                lo, hi = (lo, hi) if count else (0, 0)
            start[dim], limit[dim], stride[dim] = lo, hi if isinstance(hi, Dim) else max(lo, hi), st
            shape.append(None)
        elif (is_scalar(item) and not isinstance(item, bool | float)) or isinstance(item, np.integer):
            if isinstance(n, Dim) or isinstance(item, Dim):
                x, start[dim], limit[dim] = run_time_index(x, dim, item), 0, 1
                dim += 1
                continue
            at = int(item)
            if not -n <= at < n:
                raise user_error(f"index {at} is out of range", code="GR104", expected=f"{-n} to {n - 1} in dimension {dim}", found=str(at))
            start[dim], limit[dim] = at % n, at % n + 1
        else:
            at = as_array(item)
            if at.dtype.kind not in "iu":
                raise user_error(
                    "an index must be an integer, a slice or an integer array",
                    code="GR002",
                    expected="integers",
                    found=str(at.dtype),
                    hint="a boolean mask has no static size: use gradir.where",
                )
            if at.ndim == 0:
                dynamic[dim] = wrapped(at, n)
            else:
                gathered[dim] = at
                shape.append(None)
        dim += 1
    return _assemble(x, items, start, limit, stride, flipped, dynamic, gathered)


def slice_bounds(item: slice, n: int) -> tuple[int, int, int]:
    """start, stop and step of a static slice of `n` elements."""
    if isinstance(n, Dim) and item == slice(None):
        return 0, n, 1
    start, stop, step = (None if part is None else whole("a bound of a slice", part) for part in (item.start, item.stop, item.step))
    if step == 0:
        raise user_error("the step of a slice is 0", code="GR112", expected="a step other than 0", found="0")
    return slice(start, stop, step).indices(n)


def _assemble(
    x: Array,
    items: list[Any],
    start: list[int],
    limit: list[int],
    stride: list[int],
    flipped: list[int],
    dynamic: dict[int, Array],
    gathered: dict[int, Array],
) -> Array:
    """Static slice, then run-time window, then gather, then the final shape."""
    x = slice_(x, start, limit, stride)
    if flipped:
        x = flip(x, tuple(flipped))
    if dynamic:
        sizes = [1 if k in dynamic else n for k, n in enumerate(x.shape)]
        x = dynamic_slice(x, [dynamic.get(k, 0) for k in range(x.ndim)], sizes)
    at_front = False
    index_shape: tuple[int, ...] = ()
    place = min(gathered, default=x.ndim)
    if gathered:
        at_front = not _adjacent([not isinstance(item, slice) and item is not None for item in items])
    if len(gathered) == 1 and not at_front:
        index_shape = gathered[place].shape
        x = take(x, gathered[place], place)
    elif gathered:
        place = 0 if at_front else place
        x, index_shape = _take_together(x, gathered, place)
    others = iter(n for k, n in enumerate(x.shape) if not place <= k < place + len(index_shape))
    shape: list[Any] = list(index_shape) if at_front else []
    written = at_front
    for item in items:
        if item is None:
            shape.append(1)
        elif not isinstance(item, slice) and _is_gather(item):
            shape += [] if written else index_shape
            written = True
        elif isinstance(item, slice):
            shape.append(next(others))
        else:
            next(others)  # one element, whose dimension goes
    return reshape(x, tuple(shape))


def _adjacent(flags: list[bool]) -> bool:
    """Whether all that is no slice stands side by side: then numpy puts the dimensions of index arrays there, else in front."""
    first, last = flags.index(True), len(flags) - 1 - flags[::-1].index(True)
    return all(flags[first : last + 1])


def _take_together(x: Array, gathered: dict[int, Array], place: int) -> tuple[Array, tuple[int, ...]]:
    """`x` at the elements that several index arrays, broadcast together, name; their dimensions at `place` of the result."""
    dims = tuple(gathered)
    common = np.broadcast_shapes(*(at.shape for at in gathered.values()))
    columns = [astype(broadcast_to(wrapped(at, x.shape[d]), common), np.int64) for d, at in gathered.items()]
    vectors = stack(columns, len(common))
    sizes = [1 if k in gathered else n for k, n in enumerate(x.shape)]
    rest = [k for k in range(x.ndim) if k not in gathered]
    offset = [k if k < place else k + len(common) for k in range(len(rest))]
    shape = [sizes[k] for k in rest]
    shape[place:place] = common
    numbers = {"offset": offset, "collapsed": dims, "operand_batch": (), "indices_batch": (), "map": dims, "sizes": sizes}
    properties = {name: i64_array(value) for name, value in numbers.items()}
    return apply(nd.GatherGeneralOp, [x, vectors], with_shape(x, tuple(shape)), **properties), common


def _is_gather(item: Any) -> bool:
    """An index with dimensions of its own."""
    return (item.ndim if isinstance(item, Array) else np.ndim(item)) > 0


OPERATORS.update(getitem=getitem, take=take)
