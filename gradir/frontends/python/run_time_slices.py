"""`x[i]` and `x[i:j:k]` where a size or a bound is known only at run time: numpy's meaning, bounds clipped to what is there."""

from __future__ import annotations

from typing import Any

from gradir import size_algebra
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.dims import Dim, at_least, at_most, bounds, sized
from gradir.frontends.python.run_time_sizes import require_at_least
from gradir.frontends.python.shape import flip, part_of
from gradir.frontends.python.sizes import size, whole
from gradir.frontends.python.trace import user_error


def run_time_slice(x: Array, dim: int, item: slice) -> tuple[Array, Any, Any, int]:
    """`x` and the start, limit and step of a static slice of it that together are the slice `item` of dimension `dim`."""
    n = x.shape[dim]
    step = 1 if item.step is None else whole("the step of a slice", item.step)
    if step == 0:
        raise user_error("the step of a slice is 0", code="GR112", expected="a step other than 0", found="0")
    if step < 0:
        if item.start is not None or item.stop is not None:
            raise user_error(
                "a backward slice with bounds of a run-time size",
                code="GR114",
                expected="x[::-1], or bounds and a step above 0",
                found=f"{item.start}:{item.stop}:{step} of {n}",
                hint="turn it around first: x[::-1][..]",
            )
        x, step = flip(x, dim), -step
    low = 0 if item.start is None else _from_front(item.start, n, clipped=False)
    high = n if item.stop is None else _from_front(item.stop, n, clipped=True)
    if isinstance(low, int) and (isinstance(high, int) or isinstance(_minus(n, high), int)) and (isinstance(n, Dim) or low <= n):
        return x, low, high, step
    low = at_most(low, n)
    count = at_least(_minus(high, low), 0)
    return part_of(x, dim, low, count), 0, count, step


def run_time_index(x: Array, dim: int, item: Any) -> Array:
    """The element `item` of a dimension, which keeps size 1."""
    return part_of(x, dim, place_of(item, x.shape[dim], dim), 1)


def place_of(item: Any, n: Any, dim: int) -> Any:
    """Where the element `item` of `n` is, counted from the front; the program checks that there is one."""
    at = size("an index", item, None)
    at = at if bounds(at)[0] >= 0 else _plus(n, at) if bounds(at)[1] < 0 else _undecided(at, n)
    for room in (_minus(_minus(n, at), 1), at):
        require_at_least(room, 0, f"index {item} is out of range in dimension {dim} of size {n}")
    return at


def _from_front(bound: Any, n: Any, *, clipped: bool) -> Any:
    """A bound counted from the front, at least 0, and (`clipped`) at most `n`."""
    bound = size("a bound of a slice", bound, None)
    low, high = bounds(bound)
    if low >= 0:
        return at_most(bound, n) if clipped else bound
    return at_least(_plus(n, bound), 0) if high < 0 else _undecided(bound, n)


def _undecided(bound: Any, n: Any) -> Any:
    raise user_error(
        f"whether the bound {bound} counts from the front is known only when the compiled program runs",
        code="GR114",
        expected="a bound that is never negative, or always",
        found=f"{bound} in a dimension of size {n}",
        hint="state the limits: gradir.Dim(name, min=..)",
    )


def _plus(a: Any, b: Any) -> Any:
    return sized(size_algebra.plus(a, b))


def _minus(a: Any, b: Any) -> Any:
    return sized(size_algebra.minus(a, b))
