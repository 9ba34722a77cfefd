"""Points where derivatives are a convention: ours, and what JAX gives there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np

import gradir as gd

INF = float("inf")


@dataclass(frozen=True)
class Kink:
    """The gradient of the sum of `f(xp, x)` at `at`: `expected` by the convention of that name; `text` is for readers."""

    convention: str
    op: str
    text: str
    f: Callable[[Any, Any], Any]
    at: Any
    expected: Any

    def ours(self) -> Any:
        """By the reference evaluator."""
        with gd.eager():
            return np.asarray(gd.grad(lambda x: gd.sum(self.f(gd, x)))(np.asarray(self.at)))

    def jax(self) -> Any:
        """JAX's; needs JAX."""
        jax = import_module("jax")
        jax.config.update("jax_enable_x64", True)
        return np.asarray(jax.grad(lambda x: jax.numpy.sum(self.f(jax.numpy, x)))(jax.numpy.asarray(np.asarray(self.at))))


def _rows(xp: Any, x: Any, name: str) -> Any:
    """Of JAX, a function of `jax.nn`."""
    functions = gd if xp is gd else import_module("jax.nn")
    return getattr(functions, name)(x)


def _gathered(xp: Any, x: Any) -> Any:
    return xp.take(x, np.zeros(512, np.int32), axis=0).astype(np.float32)


KINKS = (
    Kink("strong zero", "nd.select", "where(x < 1, x, sqrt(x)) at 0", lambda xp, x: xp.where(x < 1, x, xp.sqrt(x)), 0.0, 1.0),
    Kink("strong zero", "nd.mul", "0 sqrt(x) at 0", lambda xp, x: 0.0 * xp.sqrt(x), 0.0, 0.0),
    Kink("strong zero", "nd.sqrt", "sqrt(x x) at 0", lambda xp, x: xp.sqrt(x * x), 0.0, 0.0),
    Kink("strong zero", "nd.cbrt", "cbrt(x x x) at 0", lambda xp, x: xp.cbrt(x * x * x), 0.0, 0.0),
    Kink("kinks are flat", "nd.abs", "abs at 0", lambda xp, x: xp.abs(x), 0.0, 0.0),
    Kink("a bound belongs to the inside", "nd.clamp", "clip(x, 0, 1) at 0", lambda xp, x: xp.clip(x, 0.0, 1.0), 0.0, 1.0),
    Kink("a bound belongs to the inside", "nd.clamp", "clip(x, 0, 1) at 1", lambda xp, x: xp.clip(x, 0.0, 1.0), 1.0, 1.0),
    Kink("flat at the origin", "nd.norm", "norm at [0, 0]", lambda xp, x: xp.linalg.norm(x), [0.0, 0.0], [0.0, 0.0]),
    Kink("flat at the origin", "nd.variance", "std at [1, 1]", lambda xp, x: xp.std(x), [1.0, 1.0], [0.0, 0.0]),
    Kink("flat at the origin", "nd.atan2", "arctan2(x, 0) at 0", lambda xp, x: xp.arctan2(x, x * 0.0), 0.0, 0.0),
    Kink("rows of -inf", "nd.logsumexp", "logsumexp at [-inf, -inf]", lambda xp, x: _rows(xp, x, "logsumexp"), [-INF, -INF], [0.0, 0.0]),
    Kink("rows of -inf", "nd.softmax", "softmax at [-inf, -inf]", lambda xp, x: _rows(xp, x, "softmax"), [-INF, -INF], [0.0, 0.0]),
    Kink("complex sign", "nd.sign", "Im(sign(z)) at 3 + 4i", lambda xp, z: xp.imag(xp.sign(z)), 3 + 4j, -0.096 - 0.072j),
    Kink("sums in f32", "nd.gather", "one bf16 number read 512 times", _gathered, np.ones(1, ml_dtypes.bfloat16), [512.0]),
)
