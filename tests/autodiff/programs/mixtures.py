"""Densities and clustering: Gaussian mixture (as in ADBench), k-means, log-sum-exp."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.autodiff.programs.toolkit import Program, Toolkit


def gmm(k: Toolkit) -> Any:
    """Log-likelihood of a Gaussian mixture with a Wishart prior; inverse covariances by their Cholesky factors, as ADBench writes it."""
    xp = k.xp

    def log_wishart_prior(factors: Any, log_diagonals: Any, gamma: float, m: int) -> Any:
        count, p = log_diagonals.shape
        n = p + m + 1
        squares = xp.sum(xp.exp(log_diagonals) ** 2) + xp.sum(factors**2)
        constant = n * p * (math.log(gamma) - 0.5 * math.log(2)) - sum(math.lgamma(0.5 * (n - j)) for j in range(p))
        return 0.5 * gamma**2 * squares - m * xp.sum(log_diagonals) - count * constant

    def loss(params: Any, x: Any) -> Any:
        alphas, means, icf = params["alphas"], params["means"], params["icf"]
        n, d = x.shape
        log_diagonals, strict = icf[:, :d], icf[:, d:]
        lower = xp.zeros((alphas.shape[0], d, d), x.dtype)
        rows, columns = np.tril_indices(d, -1)
        for place, (i, j) in enumerate(zip(rows, columns)):
            lower = lower.at[:, i, j].set(strict[:, place])
        centered = x[:, None, :] - means[None]
        q = xp.exp(log_diagonals) * centered + xp.einsum("kij,nkj->nki", lower, centered)
        inner = alphas + xp.sum(log_diagonals, axis=1) - 0.5 * xp.sum(q**2, axis=-1)
        top = xp.max(inner, axis=1, keepdims=True)
        likelihood = xp.sum(xp.log(xp.sum(xp.exp(inner - top), axis=1)) + top[:, 0])
        weights = xp.log(xp.sum(xp.exp(alphas - xp.max(alphas)))) + xp.max(alphas)
        return -n * d * 0.5 * math.log(2 * math.pi) + likelihood - n * weights + log_wishart_prior(strict, log_diagonals, 1.0, 0)

    return loss


def gmm_arguments(rng: np.random.RandomState) -> tuple[Any, ...]:
    k, d, n = 5, 4, 40
    params = {"alphas": rng.randn(k), "means": rng.randn(k, d), "icf": 0.3 * rng.randn(k, d * (d + 1) // 2)}
    return params, rng.randn(n, d)


def kmeans(k: Toolkit) -> Any:
    """Sum of squared distances of points to the nearest centre."""
    xp = k.xp

    def loss(centers: Any, points: Any) -> Any:
        distances = xp.sum((points[:, None, :] - centers[None]) ** 2, axis=-1)
        return xp.sum(xp.min(distances, axis=1))

    return loss


def logsumexp(k: Toolkit) -> Any:
    """log sum exp, written out, in each row, then of the rows."""
    xp = k.xp

    def lse(x: Any, axis: int) -> Any:
        top = xp.max(x, axis=axis, keepdims=True)
        return xp.squeeze(xp.log(xp.sum(xp.exp(x - top), axis=axis, keepdims=True)) + top, axis=axis)

    def loss(params: Any, x: Any) -> Any:
        w, b = params
        return lse(lse(x @ w + b, 1), 0)

    return loss


PROGRAMS = (
    Program("gmm", gmm, gmm_arguments, hvp=True),
    Program("kmeans", kmeans, lambda rng: (rng.randn(6, 3), rng.randn(50, 3)), hvp=True, examples=True),
    Program("logsumexp", logsumexp, lambda rng: ((rng.randn(5, 7), rng.randn(7)), 3 * rng.randn(11, 5)), hvp=True),
)
