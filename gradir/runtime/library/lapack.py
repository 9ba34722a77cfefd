"""`lapack.*`: factorisations by OpenBLAS where the package `scipy-openblas32` is installed (`gradir[lapack]`), else by numpy.

Each writer works on the matrices of a batch in place in its outputs. OpenBLAS is reached through LAPACKE and CBLAS; ctypes releases the GIL
while it runs. What LAPACK leaves open (signs of vectors, what stands in the other triangle) is made what `nd.cholesky` and its
neighbours say: see docs/library.md.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np

from gradir.runtime.library import Array, register

Config = Mapping[str, Any]

ROW_MAJOR, COLUMN_MAJOR = 101, 102
_NO_TRANS, _TRANS, _ADJOINT = 111, 112, 113
_UPPER, _LOWER, _NON_UNIT, _UNIT, _LEFT, _RIGHT = 121, 122, 131, 132, 141, 142
_LETTER = {"f": "s", "d": "d", "F": "c", "D": "z"}


@cache
def openblas() -> Any:
    """The library; None where the package is missing."""
    try:
        import scipy_openblas32
    except ImportError:
        return None
    names = (f"{scipy_openblas32.get_lib_dir()}/lib{scipy_openblas32.get_library()}{suffix}" for suffix in (".so", ".dylib", ".dll"))
    for name in names:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        library.scipy_LAPACKE_set_nancheck(0)
        return library
    return None


def _call(name: str, like: Array, *arguments: Any) -> int:
    """`LAPACKE_?name`, the letter by the element type; its info."""
    return _function(name, like.dtype.char)(*map(_argument, arguments))


@cache
def _function(name: str, kind: str) -> Any:
    return getattr(openblas(), f"scipy_LAPACKE_{_LETTER[kind]}{name}")


def _argument(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(value.ctypes.data)
    return ctypes.c_char(value.encode()) if isinstance(value, str) else ctypes.c_int(value)


def _matrices(*arrays: Array) -> Iterator[tuple[Array, ...]]:
    """Corresponding matrices (or rows, or vectors) of batches; each is a contiguous view."""
    batch = arrays[0].shape[:-2]
    if not batch:
        return iter((arrays,))
    return (tuple(array[index] for array in arrays) for index in np.ndindex(*batch))


def _triangle(a: Array, lower: bool) -> Array:
    """One triangle, zeros in the other."""
    if len(a) > 512:
        return np.tril(a) if lower else np.triu(a)
    return np.where(_places(len(a), lower), a, np.zeros((), a.dtype))


@lru_cache(maxsize=32)
def _places(n: int, lower: bool) -> Array:
    return np.tri(n, dtype=np.bool_) if lower else np.tri(n, dtype=np.bool_).T


def potrf(config: Config, outputs: Sequence[Array], a: Array) -> None:
    """Cholesky: the triangle `lower`, zeros in the other, NaN in the triangle where there is no factor."""
    (out,) = outputs
    lower = bool(config["lower"])
    for source, found in _matrices(a, out):
        found[...] = _triangle(source, lower)
        if not source.size:
            continue
        if openblas() is None:
            good = _numpy_cholesky(found, lower)
        else:  # a row-major lower triangle is a column-major upper one: no copies
            n = len(source)
            good = _call("potrf", found, COLUMN_MAJOR, "U" if lower else "L", n, found, n) == 0
        if not good or not np.isfinite(found).all():
            found[...] = _triangle(np.full_like(found, np.nan), lower)


def _numpy_cholesky(found: Array, lower: bool) -> bool:
    try:
        part = found if lower else np.conj(found.T)
        factor = np.linalg.cholesky(part + np.conj(np.tril(part, -1).T))
    except np.linalg.LinAlgError:
        return False
    found[...] = factor if lower else np.conj(factor.T)
    return True


def trsm(config: Config, outputs: Sequence[Array], a: Array, b: Array) -> None:
    """Solves op(a) x = b (right: x op(a) = b) for x by substitution."""
    (out,) = outputs
    lower, unit, left, transpose = bool(config["lower"]), bool(config["unit"]), bool(config["left"]), str(config["transpose"])
    for m, right, x in _matrices(a, b, out):
        x[...] = right
        if not x.size:
            continue
        if openblas() is None:
            _substitute(m, x, left, lower, unit, transpose)
            continue
        op = {"N": _NO_TRANS, "T": _TRANS, "C": _ADJOINT}[transpose]
        words = (ROW_MAJOR, _LEFT if left else _RIGHT, _LOWER if lower else _UPPER, op, _UNIT if unit else _NON_UNIT, *x.shape)
        one = np.ones(1, x.dtype)  # real ones go by value, complex ones by address
        alpha = {"f": ctypes.c_float(1.0), "d": ctypes.c_double(1.0)}.get(x.dtype.char, _argument(one))
        function = getattr(openblas(), f"scipy_cblas_{_LETTER[x.dtype.char]}trsm")
        function(*map(_argument, words), alpha, _argument(m), ctypes.c_int(len(m)), _argument(x), ctypes.c_int(x.shape[1]))


def _substitute(m: Array, x: Array, left: bool, lower: bool, unit: bool, transpose: str) -> None:
    """Row by row, in place; `x op(m) = b` is `op(m)^T x^T = b^T`."""
    t = {"N": m, "T": m.T, "C": np.conj(m.T)}[transpose]
    below = lower == (transpose == "N")
    if not left:
        t, x, below = t.T, x.T, not below
    n = len(t)
    with np.errstate(all="ignore"):
        for i in range(n) if below else reversed(range(n)):
            known = slice(0, i) if below else slice(i + 1, n)
            row = x[i] - t[i, known] @ x[known]
            x[i] = row if unit else row / t[i, i]


def getrf(_config: Config, outputs: Sequence[Array], a: Array) -> None:
    """LU with partial pivoting; pivots count from 0, the permutation is that of the rows."""
    factors, pivots, permutation = outputs
    for source, found, chosen, order in _matrices(a, factors, pivots[..., None], permutation[..., None]):
        found[...] = source
        rows, columns = source.shape
        if openblas() is None or not np.isfinite(source).all():  # LAPACK's pivot among NaNs is any
            _eliminate(found, chosen[:, 0])
        elif source.size:
            steps = np.empty(min(rows, columns), np.int32)
            _call("getrf", found, ROW_MAJOR, rows, columns, found, columns, steps)
            chosen[:, 0] = np.clip(steps - 1, 0, rows - 1)
        permutation_of = list(range(rows))
        for k, p in enumerate(chosen[:, 0].tolist()):
            permutation_of[k], permutation_of[p] = permutation_of[p], permutation_of[k]
        order[:, 0] = permutation_of


def _eliminate(m: Array, pivots: Array) -> None:
    rows, columns = m.shape
    with np.errstate(all="ignore"):
        for k in range(min(rows, columns)):
            size = np.nan_to_num(np.abs(np.real(m[k:, k])) + np.abs(np.imag(m[k:, k])), nan=-1.0, posinf=np.inf)
            p = k + int(np.argmax(size))
            pivots[k] = p
            m[[k, p]] = m[[p, k]]
            if m[k, k] != 0:
                m[k + 1 :, k] /= m[k, k]
            m[k + 1 :, k + 1 :] -= np.outer(m[k + 1 :, k], m[k, k + 1 :])


def qr(config: Config, outputs: Sequence[Array], a: Array) -> None:
    """Householder QR: geqrf, then orgqr."""
    full = bool(config["full"])
    for source, q, r in _matrices(a, *outputs):
        if not source.size:
            q[...] = np.eye(*q.shape, dtype=q.dtype)
            r[...] = 0
        elif not np.isfinite(source).all():
            q[...] = np.nan
            r[...] = np.triu(np.full_like(r, np.nan))
        elif openblas() is None:
            q[...], r[...] = np.linalg.qr(source, "complete" if full else "reduced")
        else:
            _householder(source, q, r)


def _householder(source: Array, q: Array, r: Array) -> None:
    rows, columns = source.shape
    steps = min(rows, columns)
    work = np.zeros((rows, max(columns, q.shape[1])), source.dtype)
    work[:, :columns] = source
    width = work.shape[1]
    tau = np.empty(steps, source.dtype)
    _call("geqrf", work, ROW_MAJOR, rows, columns, work, width, tau)
    r[...] = np.triu(work[: len(r), :columns])
    name = "ungqr" if source.dtype.kind == "c" else "orgqr"
    _call(name, work, ROW_MAJOR, rows, q.shape[1], steps, work, width, tau)
    q[...] = work[:, : q.shape[1]]


def geqrf(_config: Config, outputs: Sequence[Array], a: Array) -> None:
    """The reflections of a QR factorisation, packed as LAPACK packs them."""
    packed, factors = outputs
    for source, found, tau in _matrices(a, packed, factors[..., None]):
        found[...] = source
        if not source.size:
            continue
        rows, columns = source.shape
        if not np.isfinite(source).all():
            found[...], tau[...] = np.nan, np.nan
        elif openblas() is None:
            raw, numbers = np.linalg.qr(source, "raw")
            found[...], tau[:, 0] = raw.T, numbers
        else:
            numbers = np.empty(min(rows, columns), source.dtype)
            _call("geqrf", found, ROW_MAJOR, rows, columns, found, columns, numbers)
            tau[:, 0] = numbers


def orgqr(_config: Config, outputs: Sequence[Array], a: Array, factors: Array) -> None:
    """The first columns of the product of reflections."""
    (out,) = outputs
    for source, tau, q in _matrices(a, factors[..., None], out):
        rows, columns = source.shape
        if not source.size:
            continue
        if openblas() is not None:
            q[...] = source
            name = "ungqr" if source.dtype.kind == "c" else "orgqr"
            _call(name, q, ROW_MAJOR, rows, columns, len(tau), q, columns, tau[:, 0].copy())
            continue
        q[...] = np.eye(rows, columns, dtype=q.dtype)
        for k in reversed(range(len(tau))):
            v = source[:, k].copy()
            v[:k], v[k] = 0, 1
            q -= tau[k, 0] * np.outer(v, np.conj(v) @ q)


def syevd(config: Config, outputs: Sequence[Array], a: Array) -> None:
    """Eigenvalues, ascending, and eigenvectors of a Hermitian matrix."""
    values, vectors = outputs
    lower = bool(config["lower"])
    for source, w, v in _matrices(a, values[..., None], vectors):
        if not source.size:
            continue
        v[...] = source
        good = bool(np.isfinite(np.tril(source) if lower else np.triu(source)).all())
        if good and openblas() is None:
            good = _numpy_eigh(v, w, lower)
        elif good:
            n = len(source)
            name = "heevd" if v.dtype.kind == "c" else "syevd"
            numbers = np.empty(n, w.dtype)
            good = _call(name, v, ROW_MAJOR, "V", "L" if lower else "U", n, v, n, numbers) == 0
            w[:, 0] = numbers
        if good:
            v *= phase(v)
        else:
            v[...], w[...] = np.nan, np.nan


def _numpy_eigh(v: Array, w: Array, lower: bool) -> bool:
    try:
        w[:, 0], v[...] = np.linalg.eigh(v, "L" if lower else "U")
    except np.linalg.LinAlgError:
        return False
    return True


def gesdd(config: Config, outputs: Sequence[Array], a: Array) -> None:
    """Singular values, descending, and singular vectors."""
    left, values, right = outputs
    full = bool(config["full"])
    for source, u, s, vh in _matrices(a, left, values[..., None], right):
        if not source.size:
            u[...], vh[...] = np.eye(*u.shape, dtype=u.dtype), np.eye(*vh.shape, dtype=vh.dtype)
            continue
        good = bool(np.isfinite(source).all())
        if good and openblas() is None:
            good = _numpy_svd(source, u, s, vh, full)
        elif good:
            (rows, columns), k = source.shape, len(s)
            copy, numbers = source.copy(), np.empty(k, s.dtype)
            job = "A" if full else "S"
            good = _call("gesdd", copy, ROW_MAJOR, job, rows, columns, copy, columns, numbers, u, u.shape[1], vh, columns) == 0
            s[:, 0] = numbers
        if not good:
            u[...], s[...], vh[...] = np.nan, np.nan, np.nan
            continue
        k = len(s)
        factor = phase(u)
        u *= factor
        vh[:k] *= np.conj(factor[:k, None])
        vh[k:] *= np.conj(phase(np.conj(vh[k:].T))[:, None])


def _numpy_svd(source: Array, u: Array, s: Array, vh: Array, full: bool) -> bool:
    try:
        u[...], s[:, 0], vh[...] = np.linalg.svd(source, full_matrices=full)
    except np.linalg.LinAlgError:
        return False
    return True


def phase(vectors: Array) -> Array:
    """Factors that turn each column so that its first component of at least half the largest magnitude is positive."""
    if not vectors.size:
        return np.ones(vectors.shape[1], vectors.dtype)
    size = np.abs(vectors)
    first = np.argmax(size >= 0.5 * size.max(axis=0), axis=0)
    component = vectors[first, np.arange(vectors.shape[1])]
    magnitude = np.abs(component)
    return np.where(magnitude == 0, 1, np.conj(component) / np.where(magnitude == 0, 1, magnitude)).astype(vectors.dtype)


WRITERS: dict[str, Callable[..., None]] = {
    "potrf": potrf,
    "trsm": trsm,
    "getrf": getrf,
    "geqrf": geqrf,
    "orgqr": orgqr,
    "qr": qr,
    "syevd": syevd,
    "gesdd": gesdd,
}
for _name, _writer in WRITERS.items():
    register(f"lapack.{_name}", _writer, into=True)
