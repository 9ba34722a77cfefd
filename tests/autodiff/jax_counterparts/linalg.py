"""Linear algebra; an argument of which one triangle is read is made of that triangle first."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from tests.autodiff.jax_counterparts.registry import counterpart


def _adjoint(a: Any) -> Any:
    return jnp.conj(jnp.swapaxes(a, -1, -2))


def _hermitian(a: Any, lower: bool) -> Any:
    """From the triangle that is read; of the diagonal the real part."""
    half = jnp.tril(a, -1) if lower else jnp.triu(a, 1)
    diagonal = jnp.where(jnp.eye(a.shape[-1], dtype=bool), jnp.real(a), 0)
    return half + _adjoint(half) + diagonal


def _cholesky(a: Any, lower: bool) -> Any:
    factor = jnp.linalg.cholesky(_hermitian(a, lower))
    return factor if lower else _adjoint(factor)


@counterpart("cholesky")
def cholesky(run: Any, op: Any, a: Any) -> Any:
    return _cholesky(a, op.flag("lower"))


@counterpart("custom_call")
def custom_call(run: Any, op: Any, *xs: Any) -> Any:
    assert op.callee.data == "lapack.potrf"
    return _cholesky(xs[0], bool(op.settings["lower"]))


@counterpart("triangular_solve")
def triangular_solve(run: Any, op: Any, a: Any, b: Any) -> Any:
    return lax.linalg.triangular_solve(
        a,
        b,
        left_side=op.flag("left"),
        lower=op.flag("lower"),
        transpose_a=op.flag("transpose") or op.flag("adjoint"),
        conjugate_a=op.flag("adjoint"),
        unit_diagonal=op.flag("unit_diagonal"),
    )


@counterpart("lu")
def lu(run: Any, op: Any, a: Any) -> tuple[Any, ...]:
    return tuple(lax.linalg.lu(a))


@counterpart("qr")
def qr(run: Any, op: Any, a: Any) -> tuple[Any, ...]:
    return tuple(jnp.linalg.qr(a, mode="complete" if op.flag("full") else "reduced"))


def _phases(vectors: Any) -> Any:
    """What makes the first component of each column positive that has at least half the largest magnitude; any sign or phase would do."""
    size = lax.stop_gradient(jnp.abs(vectors))
    first = jnp.argmax(size >= 0.5 * jnp.max(size, axis=-2, keepdims=True), axis=-2, keepdims=True)
    component = jnp.take_along_axis(vectors, first, axis=-2)
    return jnp.conj(component) / jnp.abs(component)


@counterpart("eigh")
def eigh(run: Any, op: Any, a: Any) -> tuple[Any, ...]:
    values, vectors = jnp.linalg.eigh(_hermitian(a, op.flag("lower")))
    return values, vectors * _phases(vectors)


@counterpart("svd")
def svd(run: Any, op: Any, a: Any) -> tuple[Any, ...]:
    u, s, vh = jnp.linalg.svd(a, full_matrices=op.flag("full"))
    turn = _phases(u)
    return u * turn, s, vh * jnp.swapaxes(jnp.conj(turn), -1, -2)
