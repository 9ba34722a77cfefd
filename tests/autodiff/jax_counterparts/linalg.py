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


def _phases(found: Any, ours: Any) -> Any:
    """Of each column, what turns it to ours: eigenvectors and singular vectors are right with any sign or phase."""
    turn = lax.stop_gradient(jnp.sum(jnp.conj(found) * ours, axis=-2, keepdims=True))
    return turn / jnp.abs(turn)


@counterpart("eigh")
def eigh(run: Any, op: Any, a: Any) -> tuple[Any, ...]:
    values, vectors = jnp.linalg.eigh(_hermitian(a, op.flag("lower")))
    return values, vectors * _phases(vectors, run.returned.get(op.vectors, vectors))


@counterpart("svd")
def svd(run: Any, op: Any, a: Any) -> tuple[Any, ...]:
    u, s, vh = jnp.linalg.svd(a, full_matrices=op.flag("full"))
    turn = _phases(u, run.returned.get(op.u, u))
    return u * turn, s, vh * jnp.swapaxes(jnp.conj(turn), -1, -2)
