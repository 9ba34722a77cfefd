"""Products of vectors beside `matmul`: `cross`, `inner`, `vdot`, `kron`; numpy's names and meaning."""

from __future__ import annotations

from typing import Any

from gradir.frontends.python.arrays import Array
from gradir.frontends.python.complex import conj
from gradir.frontends.python.contraction import dot, tensordot
from gradir.frontends.python.elementwise import multiply, subtract
from gradir.frontends.python.operands import as_array, one_axis
from gradir.frontends.python.rearrange import moveaxis
from gradir.frontends.python.shape import expand_dims, flatten, reshape, stack
from gradir.frontends.python.trace import user_error


def cross(x: Any, y: Any, axis: int = -1) -> Array:
    """x cross y of vectors with three elements along `axis`; the other dimensions broadcast"""
    a, b = (moveaxis(v, one_axis(v, axis), -1) for v in map(as_array, (x, y)))
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise user_error(
            "cross: not vectors of three elements",
            code="GR001",
            op="gradir.cross",
            expected=f"size 3 along axis {axis}",
            found=f"shapes {a.shape} and {b.shape}",
        )
    pairs = ((1, 2), (2, 0), (0, 1))
    parts = [subtract(multiply(a[..., i], b[..., j]), multiply(a[..., j], b[..., i])) for i, j in pairs]
    return moveaxis(stack(parts, -1), -1, axis)


def inner(x: Any, y: Any) -> Array:
    """Sum of products along the last dimension of both"""
    a, b = as_array(x), as_array(y)
    return multiply(a, b) if a.ndim == 0 or b.ndim == 0 else tensordot(a, b, ((-1,), (-1,)))


def vdot(x: Any, y: Any) -> Array:
    """Sum of conj(x) * y over all elements"""
    return dot(flatten(conj(as_array(x))), flatten(as_array(y)))


def kron(x: Any, y: Any) -> Array:
    """Kronecker's product: every element of x times all of y"""
    a, b = as_array(x), as_array(y)
    rank = max(a.ndim, b.ndim)
    a, b = (reshape(v, (1,) * (rank - v.ndim) + v.shape) for v in (a, b))
    shape = tuple(m * n for m, n in zip(a.shape, b.shape))
    for k in range(rank):
        a, b = expand_dims(a, 2 * k + 1), expand_dims(b, 2 * k)
    return reshape(multiply(a, b), shape)


__all__ = ["cross", "inner", "kron", "vdot"]
