"""Linear algebra on the last two dimensions, on numpy's LAPACK in f64 (complex128), rounded once to the result's type.

What LAPACK leaves open is decided here, so that every implementation gives the same: the sign of eigenvectors and singular vectors
(`phased`), NaN for a matrix that cannot be factored, and what is written where nothing was read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

PIVOT = 0.5
"""Share of its largest component that a component of a vector must have to fix the vector's sign: robust where components tie."""


def wide(x: Array) -> Array:
    """f64 or complex128."""
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def narrow(x: Array, like: Array) -> Array:
    """Rounded to the precision of `like`; a real result of complex input stays real."""
    dtype = like.dtype if like.dtype.kind == "c" or x.dtype.kind != "c" else np.result_type(like.dtype, np.complex64)
    if x.dtype.kind != "c" and dtype.kind == "c":
        dtype = np.real(np.empty(0, dtype)).dtype
    return x.astype(dtype)


def matrices(function: Callable[..., Any], *operands: Array) -> Any:
    """`function` on each matrix of a batch; its results stacked."""
    batch = operands[0].shape[:-2]
    rows = [function(*(x[index].copy() for x in operands)) for index in np.ndindex(*batch)]
    if not rows:  # an empty batch: the shapes come from one matrix of ones
        probe = function(*(np.eye(*x.shape[-2:], dtype=x.dtype) for x in operands))
        empty = [np.zeros((*batch, *np.shape(part)), np.asarray(part).dtype) for part in _several(probe)]
        return tuple(empty) if isinstance(probe, tuple) else empty[0]
    columns = [np.stack(column).reshape(*batch, *np.shape(column[0])) for column in zip(*map(_several, rows))]
    return tuple(columns) if isinstance(rows[0], tuple) else columns[0]


def _several(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def adjoint(a: Array) -> Array:
    """The conjugate transpose of each matrix."""
    return np.conj(np.swapaxes(a, -1, -2))


def triangle(a: Array, lower: bool) -> Array:
    """One triangle, zeros in the other."""
    return np.tril(a) if lower else np.triu(a)


def mirrored(a: Array, lower: bool) -> Array:
    """The Hermitian matrix of which one triangle was read; the diagonal is real."""
    part = triangle(a, lower)
    diagonal = np.einsum("...ii->...i", part).real
    full = part + adjoint(part)
    np.einsum("...ii->...i", full)[...] = diagonal
    return full


def phased(vectors: Array) -> tuple[Array, Array]:
    """Columns turned so that their first component of at least half the largest magnitude is positive; the factors."""
    size = np.abs(vectors)
    if not vectors.size:
        return vectors, np.ones(vectors.shape[-1:], vectors.dtype)
    with np.errstate(all="ignore"):
        first = np.argmax(size >= PIVOT * np.max(size, axis=-2, keepdims=True), axis=-2)
        component = np.take_along_axis(vectors, first[..., None, :], axis=-2)[..., 0, :]
        factor = np.where(component == 0, 1, np.conj(component) / np.where(component == 0, 1, np.abs(component)))
    return vectors * factor[..., None, :], factor


def cholesky(a: Array, lower: bool) -> Array:
    """L with L L* = a (upper: U with U* U = a); NaN in the triangle where there is none."""

    def one(m: Array) -> Array:
        full = mirrored(m, lower)
        try:
            found = np.linalg.cholesky(full) if np.isfinite(full).all() else None
        except np.linalg.LinAlgError:
            found = None
        if found is None:
            found = np.tril(np.full(m.shape, np.nan, m.dtype))
        return found if lower else adjoint(found)

    return narrow(matrices(one, wide(a)), a)


def triangular_solve(a: Array, b: Array, left: bool, lower: bool, unit: bool, transpose: str) -> Array:
    """x with op(a) x = b (right: x op(a) = b); a zero on the diagonal divides: inf or NaN."""

    def one(m: Array, right: Array) -> Array:
        t = triangle(m, lower)
        if unit:
            np.fill_diagonal(t, 1)
        t = {"N": t, "T": t.T, "C": np.conj(t.T)}[transpose]
        is_lower = lower == (transpose == "N")
        if not left:  # x t = b  <=>  t^T x^T = b^T
            return _substitute(t.T, right.T, not is_lower).T
        return _substitute(t, right, is_lower)

    return narrow(matrices(one, wide(a), wide(b)), b)


def _substitute(t: Array, b: Array, lower: bool) -> Array:
    """Rows of x, one after the other."""
    x = b.copy()
    n = t.shape[0]
    with np.errstate(all="ignore"):
        for i in range(n) if lower else reversed(range(n)):
            known = slice(0, i) if lower else slice(i + 1, n)
            x[i] = (x[i] - t[i, known] @ x[known]) / t[i, i]
    return x


def lu(a: Array) -> tuple[Array, Array, Array]:
    """(lu, pivots, permutation) with a[permutation] = l u: partial pivoting, the first of the largest; pivots count from 0."""

    def one(m: Array) -> tuple[Array, Array, Array]:
        m = m.copy()
        rows, columns = m.shape
        pivots = np.zeros(min(rows, columns), np.int32)
        order = np.arange(rows, dtype=np.int32)
        with np.errstate(all="ignore"):
            for k in range(min(rows, columns)):
                p = k + int(np.argmax(_pivot_size(m[k:, k])))
                pivots[k] = p
                m[[k, p]], order[[k, p]] = m[[p, k]], order[[p, k]]
                if m[k, k] != 0:
                    m[k + 1 :, k] /= m[k, k]
                m[k + 1 :, k + 1 :] -= np.outer(m[k + 1 :, k], m[k, k + 1 :])
        return m, pivots, order

    factors, pivots, order = matrices(one, wide(a))
    return narrow(factors, a), pivots, order


def _pivot_size(column: Array) -> Array:
    """|re| + |im|, as LAPACK compares; NaN counts as the least."""
    return np.nan_to_num(np.abs(np.real(column)) + np.abs(np.imag(column)), nan=-1.0, posinf=np.inf)


def qr(a: Array, full: bool) -> tuple[Array, Array]:
    """(q, r) by Householder reflections, as LAPACK signs them."""

    def one(m: Array) -> tuple[Array, Array]:
        if not np.isfinite(m).all():
            k = m.shape[0] if full else min(m.shape)
            return np.full((m.shape[0], k), np.nan, m.dtype), np.triu(np.full((k, m.shape[1]), np.nan, m.dtype))
        q, r = np.linalg.qr(m, "complete" if full else "reduced")
        return q, r

    q, r = matrices(one, wide(a))
    return narrow(q, a), narrow(r, a)


def eigh(a: Array, lower: bool) -> tuple[Array, Array]:
    """(w, v): ascending eigenvalues, eigenvectors as columns, their signs fixed by `phased`."""

    def one(m: Array) -> tuple[Array, Array]:
        full = mirrored(m, lower)
        try:
            if np.isfinite(full).all():
                w, v = np.linalg.eigh(full)
                return w, phased(v)[0]
        except np.linalg.LinAlgError:
            pass
        return np.full(m.shape[0], np.nan), np.full(m.shape, np.nan, m.dtype)

    w, v = matrices(one, wide(a))
    return narrow(w, a), narrow(v, a)


def svd(a: Array, full: bool) -> tuple[Array, Array, Array]:
    """(u, s, vh) with a = u diag(s) vh, s descending; the signs of u's columns fixed by `phased`, vh's rows turned along."""

    def one(m: Array) -> tuple[Array, Array, Array]:
        k = min(m.shape)
        try:
            if np.isfinite(m).all():
                u, s, vh = np.linalg.svd(m, full_matrices=full)
                u, factor = phased(u)
                vh = vh.copy()
                vh[:k] *= np.conj(factor[:k, None])
                vh[k:] = adjoint(phased(adjoint(vh[k:]))[0])
                return u, s, vh
        except np.linalg.LinAlgError:
            pass
        rows, columns = (m.shape[0], m.shape[1]) if full else (k, k)
        return np.full((m.shape[0], rows), np.nan, m.dtype), np.full(k, np.nan), np.full((columns, m.shape[1]), np.nan, m.dtype)

    u, s, vh = matrices(one, wide(a))
    return narrow(u, a), narrow(s, a), narrow(vh, a)


def geqrf(a: Array) -> tuple[Array, Array]:
    """(packed, tau): r on and above the diagonal, below it the reflections `I - tau v v*` that make it, v[k] = 1 not stored."""

    def one(m: Array) -> tuple[Array, Array]:
        if not np.isfinite(m).all():
            return np.full(m.shape, np.nan, m.dtype), np.full(min(m.shape), np.nan, m.dtype)
        packed, tau = np.linalg.qr(m, "raw")
        return packed.T.copy(), tau

    packed, tau = matrices(one, wide(a))
    return narrow(packed, a), narrow(tau, a)


def orgqr(a: Array, tau: Array) -> Array:
    """The first columns of the product of the reflections in `a` and `tau`."""

    def one(m: Array, factors: Array) -> Array:
        q = np.eye(*m.shape, dtype=m.dtype)
        for k in reversed(range(factors.shape[-1])):
            v = np.concatenate([np.zeros(k), [1], m[k + 1 :, k]]).astype(m.dtype)
            q -= factors[0, k] * np.outer(v, np.conj(v) @ q)
        return q

    return narrow(matrices(one, wide(a), wide(tau)[..., None, :]), a)


def _cholesky(op: Any, a: Array) -> Array:
    return cholesky(a, op.flag("lower"))


def _triangular_solve(op: Any, a: Array, b: Array) -> Array:
    return triangular_solve(a, b, op.flag("left"), op.flag("lower"), op.flag("unit_diagonal"), op.transposition)


def _lu(_op: Any, a: Array) -> tuple[Array, Array, Array]:
    return lu(a)


def _qr(op: Any, a: Array) -> tuple[Array, Array]:
    return qr(a, op.flag("full"))


def _eigh(op: Any, a: Array) -> tuple[Array, Array]:
    return eigh(a, op.flag("lower"))


def _svd(op: Any, a: Array) -> tuple[Array, Array, Array]:
    return svd(a, op.flag("full"))


EVALUATE: Mapping[str, Callable[..., Any]] = {
    "nd.cholesky": _cholesky,
    "nd.triangular_solve": _triangular_solve,
    "nd.lu": _lu,
    "nd.qr": _qr,
    "nd.eigh": _eigh,
    "nd.svd": _svd,
}
