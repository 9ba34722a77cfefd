"""Reductions, cumulative ops and statistics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

from tests.autodiff.jax_counterparts.registry import COUNTERPARTS


def _over_dims(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda run, op, x: function(x, axis=op.numbers("dims"))


def _running(function: Callable[..., Any], start: float) -> Callable[..., Any]:
    """Exclusive: moved by one from the side where the fold begins, `start` coming in."""

    def scan(run: Any, op: Any, x: Any) -> Any:
        dim, reverse = op.number("dim"), op.is_reverse
        found = function(x, axis=dim, reverse=reverse)
        if not op.is_exclusive:
            return found
        edges = [(0, 0, 0)] * x.ndim
        edges[dim] = (-1, 1, 0) if reverse else (1, -1, 0)
        return lax.pad(found, jnp.asarray(start, x.dtype), edges)

    return scan


def _variance(run: Any, op: Any, x: Any) -> Any:
    return jnp.var(x, axis=op.numbers("dims"), ddof=op.number("correction"))


def _norm(x: Any, axis: tuple[int, ...]) -> Any:
    return jnp.sqrt(jnp.sum(x * x, axis=axis))


COUNTERPARTS.update(
    {
        "nd.reduce_sum": _over_dims(jnp.sum),
        "nd.reduce_prod": _over_dims(jnp.prod),
        "nd.reduce_max": _over_dims(jnp.max),
        "nd.reduce_min": _over_dims(jnp.min),
        "nd.cumsum": _running(lax.cumsum, 0),
        "nd.cumprod": _running(lax.cumprod, 1),
        "nd.cummax": _running(lax.cummax, -jnp.inf),
        "nd.cummin": _running(lax.cummin, jnp.inf),
        "nd.cumlogsumexp": _running(lax.cumlogsumexp, -jnp.inf),
        "nd.variance": _variance,
        "nd.norm": _over_dims(_norm),
    }
)
