"""Gather and scatter of windows by dimension numbers, elements along an axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradir.dialects import nd
from gradir.dialects.nd.gather_scatter import COMBINERS
from gradir.dialects.types import i64_array, i64_attr
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.indexing import wrapped
from gradir.frontends.python.operands import as_array, one_axis, with_shape
from gradir.frontends.python.regions import region_of
from gradir.frontends.python.trace import apply, apply_several, user_error


def take_along_axis(x: Any, indices: Any, axis: int) -> Array:
    """One element along `axis` per index; indices are clamped, negative ones count from the end. Other sizes must be equal"""
    x, at = as_array(x), as_array(indices)
    if x.ndim != at.ndim or at.dtype.kind not in "iu":
        raise user_error(
            "take_along_axis needs integer indices of the rank of x",
            code="GR001",
            op="nd.take_along_axis",
            expected=f"integers of rank {x.ndim}",
            found=f"{at.dtype}{list(at.shape)}",
        )
    dim = one_axis(x, axis)
    at = wrapped(at, x.shape[dim])
    return apply(nd.TakeAlongAxisOp, [x, at], with_shape(x, at.shape), dim=i64_attr(dim))


def gather(
    x: Any,
    indices: Any,
    sizes: Sequence[int],
    *,
    offset: Sequence[int] = (),
    collapsed: Sequence[int] = (),
    operand_batch: Sequence[int] = (),
    indices_batch: Sequence[int] = (),
    map: Sequence[int] = (),
) -> Array:
    """A window of `sizes` per index vector (last dimension of `indices`), its start clamped; dimension numbers as in StableHLO"""
    x, at = as_array(x), as_array(indices)
    numbers = {"offset": offset, "collapsed": collapsed, "operand_batch": operand_batch, "indices_batch": indices_batch, "map": map}
    walked = [n for d, n in enumerate(sizes) if d not in collapsed and d not in operand_batch]
    if len(walked) != len(offset) or not at.ndim:
        raise user_error(
            "gather: the dimension numbers do not fit",
            code="GR104",
            op="nd.gather_general",
            expected=f"{len(walked)} numbers in offset, indices of rank 1 or more",
            found=f"offset {tuple(offset)}, indices {at.shape}",
        )
    window, batch = dict(zip(offset, walked)), iter(at.shape[:-1])
    shape = tuple(window[d] if d in window else next(batch) for d in range(len(walked) + at.ndim - 1))
    arrays = {name: i64_array(tuple(value)) for name, value in {**numbers, "sizes": sizes}.items()}
    return apply(nd.GatherGeneralOp, [x, at], with_shape(x, shape), **arrays)


def scatter(
    x: Any,
    indices: Any,
    updates: Any,
    kind: str | Callable[[Any, Any], Any] = "set",
    *,
    window: Sequence[int] = (),
    inserted: Sequence[int] = (),
    operand_batch: Sequence[int] = (),
    indices_batch: Sequence[int] = (),
    map: Sequence[int] = (),
) -> Array:
    """`x` with updates combined (set, add, mul, min, max or a function of old and new), in row-major order; what lies outside is dropped"""
    x, at = as_array(x), as_array(indices)
    name = kind if isinstance(kind, str) else "region"
    if name not in COMBINERS or kind == "region":
        expected = "set, add, mul, min, max or a function"
        raise user_error("unknown kind of scatter", code="GR112", op="nd.scatter_general", expected=expected, found=repr(kind))
    numbers = {"window": window, "inserted": inserted, "operand_batch": operand_batch, "indices_batch": indices_batch, "map": map}
    (found,) = apply_several(
        nd.ScatterGeneralOp,
        [x, at, as_array(updates, x.dtype)],
        [x.type],
        [region_of(kind, [x.dtype, x.dtype])] if callable(kind) else [],
        kind=COMBINERS[name],
        **{key: i64_array(tuple(value)) for key, value in numbers.items()},
    )
    return found
