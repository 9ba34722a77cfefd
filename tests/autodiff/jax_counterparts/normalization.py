"""Normalizations as their formulas."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from tests.autodiff.jax_counterparts.registry import counterpart


def _along(values: Any, x: Any, dim: int) -> Any:
    shape = [1] * x.ndim
    shape[dim] = -1
    return jnp.reshape(values, shape)


def _normal(x: Any, mean: Any, var: Any, eps: float) -> Any:
    return (x - mean) / jnp.sqrt(var + eps)


@counterpart("layer_norm")
def layer_norm(run: Any, op: Any, x: Any, scale: Any, bias: Any) -> Any:
    mean, var = jnp.mean(x, -1, keepdims=True), jnp.var(x, -1, keepdims=True)
    return _normal(x, mean, var, op.eps.value.data) * scale + bias


@counterpart("rms_norm")
def rms_norm(run: Any, op: Any, x: Any, scale: Any) -> Any:
    return x / jnp.sqrt(jnp.mean(x * x, -1, keepdims=True) + op.eps.value.data) * scale


@counterpart("batch_norm_train")
def batch_norm_train(run: Any, op: Any, x: Any, scale: Any, bias: Any) -> Any:
    dim = op.number("dim")
    others = tuple(d for d in range(x.ndim) if d != dim)
    mean, var = jnp.mean(x, others), jnp.var(x, others)
    normal = _normal(x, _along(mean, x, dim), _along(var, x, dim), op.eps.value.data)
    return normal * _along(scale, x, dim) + _along(bias, x, dim), mean, var


@counterpart("batch_norm_infer")
def batch_norm_infer(run: Any, op: Any, x: Any, *parameters: Any) -> Any:
    scale, bias, mean, var = (_along(p, x, op.number("dim")) for p in parameters)
    return _normal(x, mean, var, op.eps.value.data) * scale + bias


@counterpart("group_norm")
def group_norm(run: Any, op: Any, x: Any, scale: Any, bias: Any) -> Any:
    """x [N, S.., C]; each group of neighbouring channels on its own."""
    n, *space, channels = x.shape
    groups = op.number("groups")
    parts = jnp.reshape(x, (n, *space, groups, channels // groups))
    others = (*range(1, 1 + len(space)), parts.ndim - 1)
    mean, var = jnp.mean(parts, others, keepdims=True), jnp.var(parts, others, keepdims=True)
    return jnp.reshape(_normal(parts, mean, var, op.eps.value.data), x.shape) * scale + bias
