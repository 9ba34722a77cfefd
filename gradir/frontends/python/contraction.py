"""Matrix products, and what convolutions and windows share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradir.dialects import nd
from gradir.dialects.types import i64_array
from gradir.frontends.python.arrays import OPERATORS, Array
from gradir.frontends.python.dims import Dim
from gradir.frontends.python.operands import as_array, broadcast_shapes, broadcast_to, common_dtype, supported_dtype, with_shape
from gradir.frontends.python.shape import reshape
from gradir.frontends.python.sizes import axis_of, pairs, sizes, whole
from gradir.frontends.python.trace import apply, user_error


def factors(name: str, x: Any, y: Any, preferred: Any) -> tuple[Array, Array, np.dtype[Any]]:
    """Both factors, and the dtype in which their products are summed: `preferred`, or the factors' common one.

    With a preferred dtype integers keep their own types: int8 times uint8 is summed in int32 without a conversion in memory.
    """
    common = common_dtype(x, y)
    if preferred is None:
        return as_array(x, common), as_array(y, common), common
    dtype = supported_dtype(preferred)
    if dtype.kind not in "iu" and common.kind in "iu":
        common = dtype
    if (dtype.kind in "iu") != (common.kind in "iu"):
        raise user_error(
            f"{name}: preferred_element_type does not fit",
            code="GR103",
            expected="an integer dtype for integers, a floating-point one for floats",
            found=f"{dtype} for factors of {common}",
        )
    a, b = as_array(x), as_array(y)
    if all(v.dtype.kind in "iu" for v in (a, b)) and dtype.kind in "iu":
        return a, b, dtype
    return as_array(a, common), as_array(b, common), dtype


def dot_general(
    lhs: Any,
    rhs: Any,
    contract: tuple[Sequence[int], Sequence[int]],
    batch: tuple[Sequence[int], Sequence[int]] = ((), ()),
    preferred_element_type: Any = None,
) -> Array:
    """Sum of products over the contracted dimensions, in `preferred_element_type`; result dims: batch, free of lhs, free of rhs"""
    a, b, dtype = factors("dot_general", lhs, rhs, preferred_element_type)
    (lc, rc), (lb, rb) = ((tuple(axis_of(k, x.ndim) for k in axes) for x, axes in zip((a, b), pair)) for pair in (contract, batch))
    if len(lc) != len(rc) or len(lb) != len(rb):
        raise user_error(
            "dot_general: axes do not pair",
            code="GR001",
            op="nd.dot_general",
            expected="as many of lhs as of rhs",
            found=f"{contract}, {batch}",
        )
    for x, y in (*zip(lc, rc), *zip(lb, rb)):
        if a.shape[x] != b.shape[y]:
            raise user_error(
                f"dot_general: sizes differ: lhs dim {x} has {a.shape[x]}, rhs dim {y} has {b.shape[y]}",
                code="GR001",
                op="nd.dot_general",
                expected="equal sizes of contracted and batch dimensions",
                found=f"{a.shape} and {b.shape}",
            )
    shape = (
        *(a.shape[k] for k in lb),
        *(n for k, n in enumerate(a.shape) if k not in lc and k not in lb),
        *(n for k, n in enumerate(b.shape) if k not in rc and k not in rb),
    )
    arrays = {"lhs_batch": lb, "rhs_batch": rb, "lhs_contract": lc, "rhs_contract": rc}
    return apply(nd.DotGeneralOp, [a, b], with_shape(a, shape, dtype), **{k: i64_array(tuple(v)) for k, v in arrays.items()})


def matmul(x: Any, y: Any, preferred_element_type: Any = None) -> Array:
    """numpy's `@`: vectors, matrices, and stacks of matrices with broadcast batch dimensions; sums in `preferred_element_type`"""
    a, b, dtype = factors("matmul", x, y, preferred_element_type)
    if a.ndim == 0 or b.ndim == 0:
        raise user_error(
            "matmul of a rank-0 array",
            code="GR001",
            op="nd.dot_general",
            expected="rank >= 1",
            found=f"{a.shape} and {b.shape}",
            hint="use *",
        )
    left, right = a.ndim - 1, max(0, b.ndim - 2)
    if a.shape[left] != b.shape[right]:
        raise user_error(
            f"matmul: contracting sizes differ: lhs dim {left} has {a.shape[left]}, rhs dim {right} has {b.shape[right]}",
            code="GR001",
            op="nd.dot_general",
            expected=f"rhs dim {right} of size {a.shape[left]}",
            found=f"{a.shape} @ {b.shape}",
        )
    if b.ndim <= 2:
        return dot_general(a, b, ((left,), (right,)), preferred_element_type=dtype)
    if a.ndim == 1:
        return matmul(reshape(a, (1, -1)), b, dtype)[..., 0, :]
    outer = broadcast_shapes("matmul", a.shape[:-2], b.shape[:-2])
    a, b = broadcast_to(a, (*outer, *a.shape[-2:])), broadcast_to(b, (*outer, *b.shape[-2:]))
    n = len(outer)
    return dot_general(a, b, ((n + 1,), (n,)), (tuple(range(n)), tuple(range(n))), dtype)


def dot(x: Any, y: Any, preferred_element_type: Any = None) -> Array:
    """`matmul` of vectors and matrices"""
    return matmul(x, y, preferred_element_type)


def tensordot(x: Any, y: Any, axes: int | tuple[Sequence[int], Sequence[int]] = 2, preferred_element_type: Any = None) -> Array:
    """Contract the named axes (or the last and first `axes`)"""
    a, b = as_array(x), as_array(y)
    pair = (tuple(range(a.ndim - axes, a.ndim)), tuple(range(axes))) if isinstance(axes, int) else axes
    contract = (tuple(axis_of(k, a.ndim) for k in pair[0]), tuple(axis_of(k, b.ndim) for k in pair[1]))
    return dot_general(a, b, contract, preferred_element_type=preferred_element_type)


def per_dim(name: str, value: int | Sequence[int], rank: int) -> tuple[int, ...]:
    out = (whole(name, value, 1),) * rank if not isinstance(value, Sequence) else sizes(name, value, 1)
    if len(out) != rank:
        raise user_error(f"{name} needs one number per spatial dimension", code="GR001", expected=str(rank), found=str(value))
    return out


def padding_of(
    padding: str | Sequence[Any], sizes: Sequence[int], window: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> tuple[int, ...]:
    """Flat (low, high) per dimension. SAME: ceil(size / stride) outputs, the extra element at the high end."""
    if not isinstance(padding, str):
        return tuple(k for pair in pairs("padding", padding, len(window), "GR105") for k in pair)
    if padding.upper() == "VALID":
        return (0, 0) * len(sizes)
    if padding.upper() != "SAME":
        raise user_error("unknown padding", code="GR105", expected="'SAME', 'VALID' or (low, high) pairs", found=repr(padding))
    out: list[int] = []
    for n, w, s, d in zip(sizes, window, strides, dilations):
        if isinstance(n, Dim) and s == 1:  # the same for every size
            n = 1
        total = max(0, (-(-n // s) - 1) * s + (w - 1) * d + 1 - n)
        out += [total // 2, total - total // 2]
    return tuple(out)


OPERATORS.update(matmul=matmul, dot=dot)
