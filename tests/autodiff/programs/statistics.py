"""Statistics and finance: least squares, Gaussian process, Kalman filter, CTC, optimal transport, option prices, power iteration."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.autodiff.programs.toolkit import Program, Toolkit


def least_squares(k: Toolkit) -> Any:
    """A robustly weighted cubic fit."""
    xp = k.xp

    def loss(w: Any, x: Any, y: Any) -> Any:
        features = xp.stack([x**p for p in range(4)], axis=-1)
        residual = features @ w - y
        return 0.5 * xp.sum(residual**2) + xp.sum(xp.sqrt(1 + residual**2) - 1)

    return loss


def gaussian_process(k: Toolkit) -> Any:
    """Marginal likelihood with a squared-exponential kernel by Cholesky: lengthscales, amplitude, noise."""
    xp = k.xp

    def loss(p: Any, x: Any, y: Any) -> Any:
        z = x / xp.exp(p["log_scale"])
        squares = xp.sum(z**2, axis=1)
        distance = xp.maximum(squares[:, None] + squares[None, :] - 2 * z @ z.T, 0.0)
        kernel = xp.exp(2 * p["log_amplitude"] - 0.5 * distance) + xp.exp(p["log_noise"]) * xp.eye(x.shape[0], dtype=x.dtype)
        factor = k.linalg.cholesky(kernel)
        alpha = k.linalg.solve_triangular(factor, y, lower=True)
        return 0.5 * alpha @ alpha + xp.sum(xp.log(xp.diagonal(factor))) + 0.5 * y.shape[0] * math.log(2 * math.pi)

    return loss


def gaussian_process_arguments(rng: np.random.RandomState) -> tuple[Any, ...]:
    p = {"log_scale": 0.2 * rng.randn(3), "log_amplitude": np.float64(0.1), "log_noise": np.float64(-2.0)}
    return p, rng.randn(12, 3), rng.randn(12)


def kalman(k: Toolkit) -> Any:
    """Log-likelihood of a linear state-space model by a Kalman filter in a scan."""
    xp, linalg = k.xp, k.linalg

    def loss(p: Any, ys: Any) -> Any:
        a, c = p["a"], p["c"]
        q = xp.diag(xp.exp(p["log_q"]))
        r = xp.diag(xp.exp(p["log_r"]))
        n = a.shape[0]

        def step(state: Any, y: Any) -> Any:
            m, cov = state
            m, cov = a @ m, a @ cov @ a.T + q
            s = c @ cov @ c.T + r
            gain = linalg.solve(s, c @ cov).T
            e = y - c @ m
            value = -0.5 * (e @ linalg.solve(s, e) + linalg.slogdet(s)[1] + y.shape[0] * math.log(2 * math.pi))
            return (m + gain @ e, (xp.eye(n, dtype=m.dtype) - gain @ c) @ cov), value

        _, values = k.lax.scan(step, (xp.zeros(n, ys.dtype), xp.eye(n, dtype=ys.dtype)), ys)
        return -xp.sum(values)

    return loss


def kalman_arguments(rng: np.random.RandomState) -> tuple[Any, ...]:
    n, m, t = 4, 2, 15
    p = {"a": 0.4 * rng.randn(n, n), "c": rng.randn(m, n), "log_q": 0.1 * rng.randn(n), "log_r": 0.1 * rng.randn(m)}
    return p, rng.randn(t, m)


def ctc(k: Toolkit) -> Any:
    """Connectionist temporal classification: log-probability of all alignments, a dynamic program over time with skips by mask."""
    xp, nn = k.xp, k.nn

    def loss(logits: Any, labels: Any) -> Any:
        logp = nn.log_softmax(logits, axis=-1)
        count = labels.shape[0]
        states = 2 * count + 1
        symbols = xp.zeros(states, labels.dtype).at[np.arange(count) * 2 + 1].set(labels)
        skips = xp.concatenate([xp.zeros(2, bool), (symbols[2:] != symbols[:-2]) & (symbols[2:] != 0)])
        low = -1e30

        def shift(alpha: Any, by: int) -> Any:
            return xp.concatenate([xp.full((by,), low, alpha.dtype), alpha[:-by]])

        def step(t: Any, alpha: Any) -> Any:
            two = xp.where(skips, shift(alpha, 2), low)
            return xp.logaddexp(xp.logaddexp(alpha, shift(alpha, 1)), two) + logp[t][symbols]

        start = xp.full((states,), low, logp.dtype).at[0].set(logp[0, 0]).at[1].set(logp[0, symbols[1]])
        alpha = k.lax.fori_loop(1, logits.shape[0], step, start)
        return -xp.logaddexp(alpha[-1], alpha[-2])

    return loss


def sinkhorn(k: Toolkit) -> Any:
    """Entropic optimal transport between weighted point clouds: 25 Sinkhorn iterations in the log domain."""
    xp, nn = k.xp, k.nn

    def logsumexp(x: Any, axis: int) -> Any:
        top = xp.max(x, axis=axis, keepdims=True)
        return xp.log(xp.sum(xp.exp(x - top), axis=axis)) + xp.squeeze(top, axis)

    def loss(p: Any, y: Any) -> Any:
        x, eps = p["x"], 0.3
        cost = xp.sum((x[:, None] - y[None, :]) ** 2, axis=-1)
        log_a = nn.log_softmax(p["weights"], axis=-1)
        log_b = xp.full((y.shape[0],), -math.log(y.shape[0]), y.dtype)

        def step(_: Any, duals: Any) -> Any:
            _, g = duals
            f = eps * (log_a - logsumexp((g[None, :] - cost) / eps, 1))
            return f, eps * (log_b - logsumexp((f[:, None] - cost) / eps, 0))

        f, g = k.lax.fori_loop(0, 25, step, (xp.zeros_like(log_a), xp.zeros_like(log_b)))
        plan = xp.exp((f[:, None] + g[None, :] - cost) / eps)
        return xp.sum(plan * cost)

    return loss


def black_scholes(k: Toolkit) -> Any:
    """Value of a book of European calls and puts; the gradient is the vector of Greeks."""
    xp = k.xp

    def normal_cdf(x: Any) -> Any:
        erf = k.xp.erf if hasattr(k.xp, "erf") else k.lax.erf
        return 0.5 * (1 + erf(x / math.sqrt(2.0)))

    def loss(market: Any, strike: Any, years: Any, is_call: Any) -> Any:
        spot, vol, rate = market["spot"], market["vol"], market["rate"]
        root = vol * xp.sqrt(years)
        d1 = (xp.log(spot / strike) + (rate + 0.5 * vol**2) * years) / root
        d2 = d1 - root
        discount = xp.exp(-rate * years)
        call = spot * normal_cdf(d1) - strike * discount * normal_cdf(d2)
        put = strike * discount * normal_cdf(-d2) - spot * normal_cdf(-d1)
        return xp.sum(xp.where(is_call, call, put))

    return loss


def black_scholes_arguments(rng: np.random.RandomState) -> tuple[Any, ...]:
    n = 9
    market = {"spot": np.float64(101.0), "vol": 0.15 + 0.2 * rng.rand(n), "rate": np.float64(0.02)}
    return market, 80 + 40 * rng.rand(n), 0.2 + 2 * rng.rand(n), rng.rand(n) < 0.5


def power_iteration(k: Toolkit) -> Any:
    """The largest eigenvalue of a symmetric matrix by iteration until the vector stands still."""
    xp = k.xp

    def loss(a: Any, start: Any) -> Any:
        m = a @ a.T

        def more(state: Any) -> Any:
            _, change, _ = state
            return change > 1e-13

        def step(state: Any) -> Any:
            v, _, count = state
            w = m @ v
            w = w / k.linalg.norm(w)
            return w, xp.max(xp.abs(w - v)), count + 1

        v, _, _ = k.while_loop(more, step, (start / k.linalg.norm(start), xp.ones((), a.dtype), xp.asarray(0, xp.int32)), 200)
        return v @ (m @ v)

    return loss


def power_iteration_arguments(rng: np.random.RandomState) -> tuple[Any, ...]:
    a = np.diag([3.0, 1.5, 1.0, 0.5, 0.2]) + 0.1 * rng.randn(5, 5)
    return a, np.ones(5) + 0.1 * rng.randn(5)


PROGRAMS = (
    Program("least_squares", least_squares, lambda rng: (rng.randn(4), rng.randn(25), rng.randn(25)), hvp=True, examples=True),
    Program("gaussian_process", gaussian_process, gaussian_process_arguments),
    Program("kalman", kalman, kalman_arguments),
    Program("ctc", ctc, lambda rng: (rng.randn(12, 5), np.array([2, 2, 4, 1], np.int32))),
    Program("sinkhorn", sinkhorn, lambda rng: ({"x": rng.randn(6, 2), "weights": rng.randn(6)}, rng.randn(7, 2))),
    Program("black_scholes", black_scholes, black_scholes_arguments, hvp=True),
    Program("power_iteration", power_iteration, power_iteration_arguments, trips=30),
)
