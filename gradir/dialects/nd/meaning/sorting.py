"""Meaning of the ops that order elements (docs/numerics.md, "Shape, indexing, order")."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradir.dialects.nd.meaning import regions
from gradir.dialects.nd.meaning.rounding import F64, Array, is_float
from gradir.dialects.types import element_of, numpy_dtype


def ranks(key: Array, *, descending: bool, total: bool) -> Array:
    """An integer per element, equal where the elements are, in the order asked for."""
    if is_float(key.dtype):
        bits = key.view(np.dtype(f"i{key.dtype.itemsize}")).astype(np.int64)
        if total:
            numbers = np.where(bits < 0, ~(bits & np.int64((1 << (8 * key.dtype.itemsize - 1)) - 1)), bits)
        else:
            wide = key.astype(F64)
            _, numbers = np.unique(np.where(wide == 0, 0.0, wide), return_inverse=True, equal_nan=True)  # NaN is the last
    else:
        _, numbers = np.unique(key, return_inverse=True)
    numbers = np.asarray(numbers).reshape(key.shape)
    return ~numbers if descending else numbers


def merge_sort(before: Callable[[int, int], bool], n: int) -> list[int]:
    """0 .. n-1 sorted, bottom-up: the right element goes first only where `before(right, left)`."""
    order, width = list(range(n)), 1
    while width < n:
        merged: list[int] = []
        for low in range(0, n, 2 * width):
            left, right = order[low : low + width], order[low + width : low + 2 * width]
            while left and right:
                merged.append((right if before(right[0], left[0]) else left).pop(0))
            merged += left + right
        order, width = merged, 2 * width
    return order


def permutation(op: Any, operands: Sequence[Array]) -> Array:
    """For each row along the last dimension: the old position of each element."""
    shape = operands[0].shape
    if op.comparator is None:
        keys = [ranks(x, descending=op.is_descending, total=op.is_total) for x in operands[: op.number("keys")]]
        return np.lexsort(keys[::-1], axis=-1) if operands[0].size else np.zeros(shape, np.int64)
    result = np.zeros(shape, np.int64)
    for row in np.ndindex(*shape[:-1]):
        values = [x[row] for x in operands]
        later, earlier = np.meshgrid(np.arange(shape[-1]), np.arange(shape[-1]), indexing="ij")
        pairs = [side for x in values for side in (x[later], x[earlier])]
        (found,) = regions.run(op.comparator.block, pairs)
        table = np.broadcast_to(found, later.shape)
        result[row] = merge_sort(lambda i, j, table=table: bool(table[i, j]), shape[-1])
    return result


def sort(op: Any, *operands: Array) -> Any:
    dim = op.number("dim")
    moved = [np.ascontiguousarray(np.moveaxis(x, dim, -1)) for x in operands]
    order = permutation(op, moved)
    results = [np.ascontiguousarray(np.moveaxis(np.take_along_axis(x, order, -1), -1, dim)) for x in moved]
    return tuple(results) if len(results) > 1 else results[0]


def top_k(op: Any, x: Array) -> Any:
    dim, k = op.number("dim"), op.number("k")
    moved = np.ascontiguousarray(np.moveaxis(x, dim, -1))
    order = np.argsort(ranks(moved, descending=True, total=False), axis=-1, kind="stable")[..., :k]
    values = np.take_along_axis(moved, order, -1)
    indices = order.astype(numpy_dtype(element_of(op.indices)))
    return tuple(np.ascontiguousarray(np.moveaxis(a, -1, dim)) for a in (values, indices))


EVALUATE: dict[str, Callable[..., Any]] = {"nd.sort": sort, "nd.top_k": top_k}
