"""Meaning of `nd.dot_general`: one batched matrix product, in f64 for floats, in the result's type for integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from gradir.dialects.nd.meaning.rounding import Array, accumulator, from_f64, is_inexact
from gradir.dialects.types import element_of, numpy_dtype


def product_dtypes(op: Any) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """In what products run, and the result's dtype."""
    result = numpy_dtype(element_of(op.result))
    return accumulator(result), result


def _grouped(x: Array, *groups: Sequence[int]) -> Array:
    """`x` transposed to the order of the groups of dimensions, each group flattened to one."""
    order = [d for group in groups for d in group]
    return x.transpose(order).reshape([prod(x.shape[d] for d in group) for group in groups])


def dot_general(op: Any, lhs: Array, rhs: Array) -> Array:
    wide, dtype = product_dtypes(op)
    lhs_batch, rhs_batch = op.numbers("lhs_batch"), op.numbers("rhs_batch")
    lhs_contract, rhs_contract = op.numbers("lhs_contract"), op.numbers("rhs_contract")
    lhs_free, rhs_free = op.free_dims()
    a = _grouped(lhs.astype(wide), lhs_batch, lhs_free, lhs_contract)
    b = _grouped(rhs.astype(wide), rhs_batch, rhs_contract, rhs_free)
    shape = [lhs.shape[d] for d in lhs_batch] + [lhs.shape[d] for d in lhs_free] + [rhs.shape[d] for d in rhs_free]
    result = np.matmul(a, b).reshape(shape)
    return from_f64(result, dtype) if is_inexact(dtype) else result


EVALUATE: dict[str, Callable[..., Any]] = {"nd.dot_general": dot_general}
