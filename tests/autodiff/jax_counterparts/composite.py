"""Softmax and what is made of it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from tests.autodiff.jax_counterparts.registry import counterpart


@counterpart("softmax")
def softmax(run: Any, op: Any, x: Any) -> Any:
    return jax.nn.softmax(x, axis=op.number("dim"))


@counterpart("log_softmax")
def log_softmax(run: Any, op: Any, x: Any) -> Any:
    return jax.nn.log_softmax(x, axis=op.number("dim"))


@counterpart("logsumexp")
def logsumexp(run: Any, op: Any, x: Any) -> Any:
    return jax.nn.logsumexp(x, axis=op.number("dim"))


@counterpart("cross_entropy")
def cross_entropy(run: Any, op: Any, x: Any, labels: Any) -> Any:
    """Labels are clamped."""
    places = jnp.clip(labels, 0, x.shape[-1] - 1)[..., None]
    return -jnp.take_along_axis(jax.nn.log_softmax(x), places, axis=-1)[..., 0]
