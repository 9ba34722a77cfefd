"""`gradir.linalg`: names and meaning of `numpy.linalg`, on batches of f32, f64 and complex matrices. NaN where there is no factor."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from gradir.dialects import nd
from gradir.dialects.text import flag_attr
from gradir.dialects.types import shape_of
from gradir.frontends.python import promotion
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.complex import conj
from gradir.frontends.python.contraction import matmul
from gradir.frontends.python.creation import iota
from gradir.frontends.python.elementwise import (
    abs as absolute,
    add,
    divide,
    equal,
    greater,
    isfinite,
    log,
    logical_and,
    multiply,
    not_equal,
    power,
    sqrt,
    stop_gradient,
    where,
)
from gradir.frontends.python.operands import as_array, astype, broadcast_shapes, broadcast_to, common_dtype, float_dtype
from gradir.frontends.python.rearrange import eye, moveaxis
from gradir.frontends.python.reduction import max as largest, min as least, prod, sum as total
from gradir.frontends.python.shape import expand_dims, swapaxes
from gradir.frontends.python.trace import apply, apply_several, user_error


def cholesky(a: Any, upper: bool = False) -> Array:
    """L with `L L* = a` (upper: U with `U* U = a`) of the Hermitian part of `a`; NaN if it is not positive definite"""
    x = _symmetric(_matrix("cholesky", a, square=True))
    return apply(nd.CholeskyOp, [x], x.type, lower=flag_attr(not upper))


def solve_triangular(
    a: Any, b: Any, lower: bool = True, trans: Literal["N", "T", "C"] = "N", unit_diagonal: bool = False, left: bool = True
) -> Array:
    """x with `op(a) x = b` (left=False: `x op(a) = b`), `a` triangular, op(a) its transpose or adjoint by `trans`"""
    x, y = _pair("solve_triangular", a, b)
    vector = y.ndim == x.ndim - 1
    y = expand_dims(y, -1 if left else -2) if vector else y
    x, y = _batched(x, y)
    flags = {"left": left, "lower": lower, "unit_diagonal": unit_diagonal, "transpose": trans == "T", "adjoint": trans == "C"}
    found = apply(nd.TriangularSolveOp, [x, y], y.type, **{name: flag_attr(value) for name, value in flags.items()})
    return _column(found, left) if vector else found


def lu(a: Any) -> tuple[Array, Array, Array]:
    """(lu, pivots, permutation) with `a[permutation] = L U`, L with a unit diagonal, both in one matrix"""
    x = _matrix("lu", a)
    factors, pivots, permutation = _several(nd.LuOp, x, nd.LuOp.infer(x.type))
    return factors, pivots, permutation


def qr(a: Any, mode: Literal["reduced", "complete", "r"] = "reduced") -> Any:
    """(q, r) with `a = q r`, q with orthonormal columns; mode "r" gives r alone"""
    x, full = _matrix("qr", a), mode == "complete"
    q, r = _several(nd.QrOp, x, nd.QrOp.infer(x.type, full), full=full)
    return r if mode == "r" else (q, r)


def eigh(a: Any) -> tuple[Array, Array]:
    """(values, vectors) of the Hermitian part of `a`, values ascending, vectors as columns"""
    x = _symmetric(_matrix("eigh", a, square=True))
    values, vectors = _several(nd.EighOp, x, nd.EighOp.infer(x.type), lower=True)
    return values, vectors


def eigvalsh(a: Any) -> Array:
    """The eigenvalues of the Hermitian part of `a`, ascending"""
    return eigh(a)[0]


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """(u, s, vh) with `a = u diag(s) vh`, s descending; `compute_uv=False` gives s alone"""
    x = _matrix("svd", a)
    full = full_matrices and compute_uv
    u, s, vh = _several(nd.SvdOp, x, nd.SvdOp.infer(x.type, full), full=full)
    return (u, s, vh) if compute_uv else s


def solve(a: Any, b: Any) -> Array:
    """x with `a x = b`, by LU; b a matrix or (one dimension less than `a`) a vector; a singular matrix gives inf or NaN"""
    x, y = _pair("solve", a, b)
    vector = y.ndim == x.ndim - 1
    y = expand_dims(y, -1) if vector else y
    x, y = _batched(x, y)
    factors, _, permutation = lu(x)
    found = solve_triangular(factors, matmul(_permutation(permutation, x), y), lower=True, unit_diagonal=True)
    found = solve_triangular(factors, found, lower=False)
    return _column(found, True) if vector else found


def inv(a: Any) -> Array:
    """The inverse, by LU"""
    x = _matrix("inv", a, square=True)
    return solve(x, broadcast_to(astype(eye(_size(x)), x.dtype), x.shape))


def det(a: Any) -> Array:
    """The determinant, by LU; its derivative needs a matrix that is not singular"""
    x = _matrix("det", a, square=True)
    factors, pivots, _ = lu(x)
    return multiply(_parity(pivots, factors), prod(_diagonal(factors), axis=-1))


def slogdet(a: Any) -> tuple[Array, Array]:
    """(sign, log|det|): sign 0 and -inf of a singular matrix"""
    x = _matrix("slogdet", a, square=True)
    factors, pivots, _ = lu(x)
    diagonal = _diagonal(factors)
    size = absolute(diagonal)
    sign = divide(diagonal, where(equal(size, 0), 1, size))
    return multiply(_parity(pivots, factors), prod(sign, axis=-1)), total(log(size), axis=-1)


def lstsq(a: Any, b: Any) -> Array:
    """x of least `|a x - b|` for a matrix `a` of full rank: by QR if it has no more columns than rows, else the shortest solution"""
    x, y = _pair("lstsq", a, b)
    vector = y.ndim == x.ndim - 1
    y = expand_dims(y, -1) if vector else y
    x, y = _batched(x, y)
    if x.shape[-2] >= x.shape[-1]:
        q, r = qr(x)
        found = solve_triangular(r, matmul(_adjoint(q), y), lower=False)
    else:
        q, r = qr(_adjoint(x))
        found = matmul(q, solve_triangular(r, y, lower=False, trans="C"))
    return _column(found, True) if vector else found


def pinv(a: Any, rcond: float | None = None) -> Array:
    """The pseudoinverse, by SVD; singular values up to `rcond` times the largest count as 0"""
    x = _matrix("pinv", a)
    u, s, vh = svd(x, full_matrices=False)
    limit = rcond if rcond is not None else 10 * max(x.shape[-2:]) * float(np.finfo(s.dtype).eps)
    kept = greater(s, multiply(largest(s, axis=-1, keepdims=True), limit))
    inverse = where(kept, divide(1, where(kept, s, 1)), 0)
    return matmul(multiply(_adjoint(vh), expand_dims(astype(inverse, x.dtype), -2)), _adjoint(u))


def matrix_power(a: Any, n: int) -> Array:
    """`a` times itself, n times; of a negative n the inverse"""
    x = _matrix("matrix_power", a, square=True)
    base = inv(x) if n < 0 else x
    result: Array | None = None
    for bit in bin(abs(n))[:1:-1]:
        if bit == "1":
            result = base if result is None else matmul(result, base)
        base = matmul(base, base)
    return broadcast_to(astype(eye(_size(x)), x.dtype), x.shape) if result is None else result


def norm(x: Any, ord: Any = None, axis: int | tuple[int, int] | None = None, keepdims: bool = False) -> Array:
    """As numpy: of vectors along one axis, of matrices along two; None is the root of the sum of squares, whose derivative at 0 is 0"""
    value = as_array(x)
    value = astype(value, float_dtype(value)) if not promotion.is_complex(value.dtype) else value
    axes = tuple(range(value.ndim)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    size = absolute(value)
    if ord is None or (ord in ("fro",) and len(axes) == 2) or (ord == 2 and len(axes) == 1):
        return _root(size, axes, keepdims)
    if len(axes) not in (1, 2):
        raise _bad_order(ord, "None for other arrays than vectors and matrices")
    if len(axes) == 1:
        return _vector_norm(size, ord, axes[0], keepdims)
    return _matrix_norm(value, size, ord, (axes[0], axes[1]), keepdims)


def _root(size: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    """The root of the sum of squares, scaled so that it neither overflows nor loses small numbers."""
    if 0 in shape_of(size.type):  # no largest one to scale by, and nothing to sum
        return total(size, axis=axes, keepdims=keepdims)
    limit = stop_gradient(largest(size, axis=axes, keepdims=True))
    scale = where(logical_and(greater(limit, 0), isfinite(limit)), limit, 1)
    scaled = divide(size, scale)
    root = multiply(sqrt(total(multiply(scaled, scaled), axis=axes, keepdims=True)), scale)
    return root if keepdims else total(root, axis=axes)


def _vector_norm(size: Array, ord: Any, axis: int, keepdims: bool) -> Array:
    if ord in (np.inf, float("inf")):
        return largest(size, axis=axis, keepdims=keepdims)
    if ord in (-np.inf, float("-inf")):
        return least(size, axis=axis, keepdims=keepdims)
    if ord == 0:
        return total(astype(not_equal(size, 0), size.dtype), axis=axis, keepdims=keepdims)
    if ord == 1:
        return total(size, axis=axis, keepdims=keepdims)
    if isinstance(ord, int | float):
        return power(total(power(size, ord), axis=axis, keepdims=keepdims), 1.0 / ord)
    raise _bad_order(ord, "a number, inf or -inf for vectors")


def _matrix_norm(value: Array, size: Array, ord: Any, axes: tuple[int, int], keepdims: bool) -> Array:
    row, column = axes[0] % value.ndim, axes[1] % value.ndim
    if ord in (1, -1, np.inf, -np.inf):
        along, other = (row, column) if abs(ord) == 1 else (column, row)
        sums = total(size, axis=along, keepdims=True)
        found = (largest if ord > 0 else least)(sums, axis=other, keepdims=True)
        return found if keepdims else total(found, axis=(row, column))
    if ord in (2, -2, "nuc"):
        values = svd(moveaxis(value, (row, column), (-2, -1)), compute_uv=False)
        found = total(values, axis=-1) if ord == "nuc" else (largest if ord == 2 else least)(values, axis=-1)
        if keepdims:
            for k in sorted((row, column)):
                found = expand_dims(found, k)
        return found
    raise _bad_order(ord, "'fro', 'nuc', 1, -1, 2, -2, inf or -inf for matrices")


def _bad_order(ord: Any, expected: str) -> Exception:
    return user_error("no norm of this order", code="GR104", op="gradir.linalg.norm", expected=expected, found=repr(ord))


# -- what the functions above share


def _several(kind: type[Any], x: Array, types: Any, **flags: bool) -> list[Array]:
    return apply_several(kind, [x], types, **{name: flag_attr(value) for name, value in flags.items()})


def _matrix(name: str, a: Any, *, square: bool = False) -> Array:
    """An operand in f32, f64 or complex, with at least two dimensions."""
    x = as_array(a)
    if not promotion.is_complex(x.dtype):
        dtype = float_dtype(x)
        x = astype(x, np.float32 if dtype.itemsize < 4 else dtype)
    if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
        raise user_error(
            f"{name} takes {'square ' if square else ''}matrices",
            code="GR001",
            op=f"gradir.linalg.{name}",
            expected="[.., n, n]" if square else "[.., m, n]",
            found=str(x.shape),
        )
    return x


def _pair(name: str, a: Any, b: Any) -> tuple[Array, Array]:
    """A matrix and a right-hand side of one element type."""
    dtype = common_dtype(as_array(a), as_array(b))
    x = _matrix(name, astype(as_array(a), dtype))
    return x, astype(as_array(b), x.dtype)


def _batched(x: Array, y: Array) -> tuple[Array, Array]:
    """Equal batch dimensions."""
    batch = broadcast_shapes("linalg", x.shape[:-2], y.shape[:-2])
    return broadcast_to(x, (*batch, *x.shape[-2:])), broadcast_to(y, (*batch, *y.shape[-2:]))


def _adjoint(x: Array) -> Array:
    return conj(swapaxes(x, -1, -2))


def _symmetric(x: Array) -> Array:
    """The Hermitian part: what is computed, and its derivative, do not depend on the triangle that an implementation reads."""
    return divide(add(x, _adjoint(x)), 2)


def _size(x: Array) -> int:
    return x.shape[-1]


def _column(x: Array, left: bool) -> Array:
    return x[..., 0] if left else x[..., 0, :]


def _diagonal(x: Array) -> Array:
    """[.., n] of [.., n, n]"""
    return total(where(_places(x, -2) == _places(x, -1), x, 0), axis=-1)


def _places(x: Array, axis: int) -> Array:
    return iota(x.shape[-2:], axis % 2)


def _parity(pivots: Array, like: Array) -> Array:
    """1 or -1: each row that was swapped turns the sign."""
    swapped = not_equal(pivots, iota(pivots.shape, pivots.ndim - 1))
    return prod(where(swapped, astype(as_array(-1), like.dtype), astype(as_array(1), like.dtype)), axis=-1)


def _permutation(order: Array, like: Array) -> Array:
    """The matrix P with `P x = x[order]`."""
    shape = like.shape
    return astype(equal(broadcast_to(expand_dims(order, -1), shape), iota(shape, len(shape) - 1)), like.dtype)


__all__ = [
    "cholesky", "det", "eigh", "eigvalsh", "inv", "lstsq", "lu", "matrix_power", "norm", "pinv", "qr", "slogdet", "solve",
    "solve_triangular", "svd",
]  # fmt: skip
