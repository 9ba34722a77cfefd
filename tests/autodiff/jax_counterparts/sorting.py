"""Sorting: the order comes from values that carry no derivative, the elements are taken in it."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from tests.autodiff.jax_counterparts.registry import counterpart


@counterpart("sort")
def sort(run: Any, op: Any, *xs: Any) -> tuple[Any, ...]:
    dim = op.number("dim")
    if op.comparator is not None:
        order = _order_by(run.region(op.comparator.block), [jnp.moveaxis(lax.stop_gradient(x), dim, -1) for x in xs])
        order = jnp.moveaxis(order, -1, dim)
    else:
        assert op.number("keys") == 1
        order = jnp.argsort(lax.stop_gradient(xs[0]), axis=dim, stable=True, descending=op.is_descending)
    return tuple(jnp.take_along_axis(x, order, axis=dim) for x in xs)


def _order_by(before: Any, xs: list[Any]) -> Any:
    """Along the last dimension: how many come before each element, the earlier one of two that are equal."""
    pairs = [side for x in xs for side in (x[..., :, None], x[..., None, :])]
    first = before(*pairs)[0]  # [.., i, j]: i goes before j
    equal = ~first & ~jnp.swapaxes(first, -1, -2)
    n = xs[0].shape[-1]
    earlier = jnp.arange(n)[:, None] < jnp.arange(n)[None, :]
    return jnp.argsort(jnp.sum(first | (equal & earlier), axis=-2), axis=-1)


@counterpart("top_k")
def top_k(run: Any, op: Any, x: Any) -> tuple[Any, ...]:
    dim = op.number("dim")
    values, places = lax.top_k(jnp.moveaxis(x, dim, -1), op.number("k"))
    return jnp.moveaxis(values, -1, dim), jnp.moveaxis(places, -1, dim)
