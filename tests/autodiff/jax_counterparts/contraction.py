"""Contractions, and attention as its formula."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from gradir.dialects.types import element_of, numpy_dtype
from tests.autodiff.jax_counterparts.registry import counterpart


@counterpart("dot_general")
def dot_general(run: Any, op: Any, lhs: Any, rhs: Any) -> Any:
    lb, rb, lc, rc = (op.numbers(a) for a in ("lhs_batch", "rhs_batch", "lhs_contract", "rhs_contract"))
    dtype = numpy_dtype(element_of(op.result))
    return lax.dot_general(lhs, rhs, ((lc, rc), (lb, rb)), precision="highest", preferred_element_type=dtype)


@counterpart("attention")
def attention(run: Any, op: Any, q: Any, k: Any, v: Any, *more: Any) -> Any:
    """A row of nothing has weights 0 and gradients 0: its scores are replaced before any function that is infinite there."""
    given = iter(more)
    mask = next(given) if op.mask is not None else None
    bias = next(given) if op.bias is not None else None
    times = q.shape[2] // k.shape[2]
    k, v = jnp.repeat(k, times, axis=2), jnp.repeat(v, times, axis=2)
    scores = jnp.einsum("bihd,bjhd->bhij", q, k) * op.factor
    scores = scores if bias is None else scores + bias
    seen = jnp.ones(scores.shape, bool)
    if op.is_causal:
        seen &= jnp.tri(q.shape[1], k.shape[1], dtype=bool)
    if mask is not None:
        seen &= mask
    top = lax.stop_gradient(jnp.max(jnp.where(seen, scores, -1e300), axis=3, keepdims=True))
    powers = jnp.where(seen, jnp.exp(jnp.where(seen, scores - top, 0)), 0)
    total = jnp.sum(powers, axis=3, keepdims=True)
    return jnp.einsum("bhij,bjhe->bihe", powers / jnp.where(total == 0, 1, total), v)
