"""Special functions. The zeta function is its Euler-Maclaurin sum, since JAX's derivatives of it are NaN or missing."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import jax.scipy.special as special
from jax import lax

from tests.autodiff.jax_counterparts.registry import plain

BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)
TERMS = 30


def zeta(s: Any, q: Any) -> Any:
    """sum over k of (q + k)**-s, q > 0"""
    total = sum((q + k) ** -s for k in range(TERMS))
    end = q + TERMS
    total = total + end ** (1 - s) / (s - 1) + end**-s / 2
    rising = s
    for k, number in enumerate(BERNOULLI, 1):
        total = total + number / math.factorial(2 * k) * rising * end ** (-s - 2 * k + 1)
        rising = rising * (s + 2 * k - 1) * (s + 2 * k)
    return total


def polygamma(n: Any, x: Any) -> Any:
    """(-1)**(n + 1) n! zeta(n + 1, x); digamma for n = 0"""
    order = jnp.where(n == 0, 1.0, n)
    sign = jnp.where(order % 2 == 0, -1.0, 1.0)
    return jnp.where(n == 0, lax.digamma(x), sign * jnp.exp(lax.lgamma(order + 1)) * zeta(order + 1, x))


plain(
    {
        "lgamma": lax.lgamma,
        "digamma": lax.digamma,
        "trigamma": lambda x: special.polygamma(1, x),
        "bessel_i0e": lax.bessel_i0e,
        "bessel_i1e": lax.bessel_i1e,
        "zeta": zeta,
        "polygamma": polygamma,
    }
)
