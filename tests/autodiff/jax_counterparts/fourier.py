"""Fourier transforms over the last dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from tests.autodiff.jax_counterparts.registry import COUNTERPARTS


def _over_last(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda run, op, x: function(x, axes=range(-op.number("dims"), 0))


def _irfft(run: Any, op: Any, x: Any) -> Any:
    dims = op.number("dims")
    return jnp.fft.irfftn(x, run.shape(op.result)[-dims:], axes=range(-dims, 0))


COUNTERPARTS.update(
    {
        "nd.fft": _over_last(jnp.fft.fftn),
        "nd.ifft": _over_last(jnp.fft.ifftn),
        "nd.rfft": _over_last(jnp.fft.rfftn),
        "nd.irfft": _irfft,
    }
)
