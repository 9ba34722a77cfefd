"""Reading and writing at indices. Indices are clamped by reads and dropped by writes; JAX would wrap negative ones."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from tests.autodiff.jax_counterparts.registry import counterpart


@counterpart("gather")
def gather(run: Any, op: Any, x: Any, indices: Any) -> Any:
    dim = op.number("dim")
    return jnp.take(x, jnp.clip(indices, 0, x.shape[dim] - 1), axis=dim)


@counterpart("take_along_axis")
def take_along_axis(run: Any, op: Any, x: Any, indices: Any) -> Any:
    dim = op.number("dim")
    return jnp.take_along_axis(x, jnp.clip(indices, 0, x.shape[dim] - 1), axis=dim)


@counterpart("scatter_add")
def scatter_add(run: Any, op: Any, x: Any, indices: Any, updates: Any) -> Any:
    dim, rank = op.number("dim"), jnp.ndim(indices)
    rows = jnp.moveaxis(updates, range(dim, dim + rank), range(rank))
    places = jnp.where(indices < 0, x.shape[dim], indices)
    return jnp.moveaxis(jnp.moveaxis(x, dim, 0).at[places].add(rows, mode="drop"), 0, dim)


@counterpart("dynamic_slice")
def dynamic_slice(run: Any, op: Any, x: Any, *starts: Any) -> Any:
    sizes = run.shape(op.result)
    places = [jnp.clip(at, 0, n - size) for at, n, size in zip(starts, x.shape, sizes)]
    return lax.dynamic_slice(x, places, sizes)


@counterpart("dynamic_update_slice")
def dynamic_update_slice(run: Any, op: Any, x: Any, update: Any, *starts: Any) -> Any:
    places = [jnp.clip(at, 0, n - size) for at, n, size in zip(starts, x.shape, update.shape)]
    return lax.dynamic_update_slice(x, update, places)


@counterpart("index_at")
def index_at(run: Any, op: Any, x: Any, at: Any) -> Any:
    return lax.dynamic_index_in_dim(x, at, op.number("dim"), keepdims=False)


@counterpart("update_at")
def update_at(run: Any, op: Any, value: Any, into: Any, at: Any) -> Any:
    return lax.dynamic_update_index_in_dim(into, value, at, op.number("dim"))
