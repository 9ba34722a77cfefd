"""Layers and losses from Python: what docs/numerics.md says of normalisations and attention, activations at infinities, losses."""

from __future__ import annotations

from collections.abc import Callable
from math import erf
from typing import Any

import numpy as np
import pytest

import gradir as gd

INF, NAN = np.inf, np.nan
RNG = np.random.default_rng(5)


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def close(found: Any, expected: Any, rtol: float = 2e-5) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=rtol, atol=rtol)


# -- attention


def attended(q: np.ndarray, k: np.ndarray, v: np.ndarray, scores: Callable[[np.ndarray], np.ndarray] = lambda s: s) -> np.ndarray:
    times = q.shape[2] // k.shape[2]
    k, v = (np.repeat(x, times, axis=2).astype(np.float64) for x in (k, v))
    s = scores(np.einsum("bihd,bjhd->bhij", q, k) / np.sqrt(q.shape[3]))
    p = np.exp(s - s.max(-1, keepdims=True))
    return np.einsum("bhij,bjhe->bihe", p / p.sum(-1, keepdims=True), v)


@pytest.mark.parametrize("heads", [2, 4])
def test_attention_with_grouped_queries(heads: int) -> None:
    q, k, v = normal(2, 5, heads, 8), normal(2, 6, 2, 8), normal(2, 6, 2, 3)
    close(gd.jit(gd.attention)(q, k, v), attended(q, k, v))


def test_attention_of_one_element_of_a_batch() -> None:
    q, k, v, bias = normal(5, 4, 8), normal(6, 2, 8), normal(6, 2, 3), normal(4, 5, 6)
    close(gd.jit(gd.attention)(q, k, v), attended(q[None], k[None], v[None])[0])
    biased = gd.jit(lambda q, k, v: gd.attention(q, k, v, bias=bias))
    close(biased(q, k, v), attended(q[None], k[None], v[None], lambda s: s + bias)[0])


def test_attention_with_mask_bias_and_order() -> None:
    q, k, v, bias = normal(1, 4, 2, 8), normal(1, 4, 2, 8), normal(1, 4, 2, 8), normal(2, 4, 4)
    mask = np.array([True, True, False, True])
    f = gd.jit(lambda q, k, v: gd.attention(q, k, v, mask=mask, bias=bias, causal=True))
    seen = np.tril(np.ones((4, 4), bool)) & mask
    close(f(q, k, v), attended(q, k, v, lambda s: np.where(seen, s + bias, -INF)))


def test_a_row_that_sees_nothing_is_0_and_so_are_its_gradients() -> None:
    q, k, v = normal(1, 2, 1, 4), normal(1, 3, 1, 4), normal(1, 3, 1, 4)
    mask = np.array([[True, False, True], [False, False, False]])

    def f(q, k, v):
        return gd.attention(q, k, v, mask=mask)

    found = gd.jit(f)(q, k, v)
    assert not np.asarray(found)[0, 1].any()
    assert np.asarray(found)[0, 0].any()
    weights = normal(1, 2, 1, 4)
    dq, dk, dv = gd.jit(gd.grad(lambda q, k, v: gd.sum(f(q, k, v) * weights), argnums=(0, 1, 2)))(q, k, v)
    assert not dq[0, 1].any()
    assert not dk[0, 1].any()
    assert not dv[0, 1].any()
    assert all(np.isfinite(g).all() and g.any() for g in (dq, dk, dv))


def test_attention_agrees_with_jax() -> None:
    jax = pytest.importorskip("jax")
    q, k, v = normal(2, 5, 4, 8), normal(2, 5, 2, 8), normal(2, 5, 2, 8)
    expected = jax.nn.dot_product_attention(q, k, v, is_causal=True)
    close(gd.jit(lambda q, k, v: gd.attention(q, k, v, causal=True))(q, k, v), expected)


def test_attention_of_bf16_rounds_once() -> None:
    q, k, v = (normal(1, 8, 1, 16) for _ in range(3))
    narrow = [gd.astype(x, gd.bfloat16) if hasattr(gd, "astype") else gd.asarray(x).astype(gd.bfloat16) for x in (q, k, v)]
    with gd.eager():
        found = np.asarray(gd.attention(*narrow).concrete)
    exact = attended(*(np.asarray(x.concrete).astype(np.float32) for x in narrow))
    np.testing.assert_array_equal(found, exact.astype(found.dtype))


# -- normalisations


def test_batch_norm_gives_statistics_and_normalises() -> None:
    x, scale, bias = normal(6, 4, 3) * 3 + 100, normal(3), normal(3)
    y, mean, var = gd.jit(gd.batch_norm)(x, scale, bias)
    wide = x.astype(np.float64)
    m, s = wide.mean((0, 1)), wide.var((0, 1))
    close(mean, m, 1e-6)
    close(var, s, 1e-5)
    close(y, (wide - m) / np.sqrt(s + 1e-5) * scale + bias, 1e-4)
    close(gd.jit(gd.batch_norm_inference)(x, scale, bias, m.astype("f"), s.astype("f")), y, 1e-4)


def test_a_constant_channel_is_exactly_bias_with_derivative_0() -> None:
    x = np.full((7, 2), 0.1, np.float32)
    scale, bias = np.array([3, 4], np.float32), np.array([0.5, -1], np.float32)
    y, mean, var = gd.jit(gd.batch_norm)(x, scale, bias)
    assert (np.asarray(y) == bias).all()
    assert np.asarray(mean).tolist() == x[0].tolist()
    assert not np.asarray(var).any()
    assert (np.asarray(gd.jit(lambda x: gd.group_norm(x, scale, bias, 1))(x[:, None, :])) == bias).all()


def test_scaled_before_squaring() -> None:
    x, one = np.array([[8e37, -8e37, 4e37]], np.float32), np.ones(3, np.float32)
    expected = [[0.980581, -1.372813, 0.392232]]
    close(gd.jit(lambda x: gd.layer_norm(x, one, 0 * one))(x), expected, 1e-5)
    close(gd.jit(lambda x: gd.group_norm(x, one, 0 * one, 1))(x), expected, 1e-5)
    y, mean, var = gd.jit(lambda x: gd.batch_norm(x, np.ones(1, np.float32), np.zeros(1, np.float32)))(x.T.copy())
    close(np.asarray(y).T, expected, 1e-5)
    close(mean, [4e37 / 3], 1e-5)
    assert np.asarray(var)[0] == INF
    rows = np.array([[3e38, -3e38, 1e38], [1e-30, 2e-30, 0], [0, 0, 0]], np.float32)
    found = gd.jit(lambda x: gd.rms_norm(x, one, eps=0.0))(rows)
    close(found[0], rows[0].astype(float) / np.sqrt(np.mean(rows[0].astype(float) ** 2)), 1e-5)
    close(found[1], rows[1].astype(float) / np.sqrt(np.mean(rows[1].astype(float) ** 2)), 1e-5)
    assert not found[2].any()


def test_close_together_has_the_variance_of_the_difference() -> None:
    x = np.array([[1e4], [1e4 + 1]], np.float32)
    _, mean, var = gd.jit(lambda x: gd.batch_norm(x, np.ones(1, np.float32), np.zeros(1, np.float32)))(x)
    assert np.asarray(var).tolist() == [0.25]
    assert np.asarray(mean).tolist() == [10000.5]


# -- activations


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


X = np.array([-30, -4, -2.5, -1.5, -1e-3, 1e-3, 0.5, 2.75, 5, 40], np.float32)
ACTIVATIONS: dict[str, tuple[Callable[..., Any], Callable[[np.ndarray], np.ndarray], list[float]]] = {
    "silu": (gd.silu, lambda x: x * sigmoid(x), [-0.0, INF]),
    "softplus": (gd.softplus, lambda x: np.log1p(np.exp(x)), [0, INF]),
    "log_sigmoid": (gd.log_sigmoid, lambda x: -np.log1p(np.exp(-x)), [-INF, 0]),
    "mish": (gd.mish, lambda x: x * np.tanh(np.log1p(np.exp(x))), [0, INF]),
    "elu": (gd.elu, lambda x: np.where(x > 0, x, np.expm1(x)), [-1, INF]),
    "celu": (lambda x: gd.celu(x, 2.0), lambda x: np.where(x > 0, x, 2 * np.expm1(x / 2)), [-2, INF]),
    "selu": (gd.selu, lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)), [-1.7580993, INF]),
    "leaky_relu": (gd.leaky_relu, lambda x: np.where(x > 0, x, 0.01 * x), [-INF, INF]),
    "relu6": (gd.relu6, lambda x: np.clip(x, 0, 6), [0, 6]),
    "hard_tanh": (gd.hard_tanh, lambda x: np.clip(x, -1, 1), [-1, 1]),
    "hard_sigmoid": (gd.hard_sigmoid, lambda x: np.clip(x + 3, 0, 6) / 6, [0, 1]),
    "hard_silu": (gd.hard_silu, lambda x: x * np.clip(x + 3, 0, 6) / 6, [0, INF]),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_and_their_slopes(name: str) -> None:
    f, formula, ends = ACTIVATIONS[name]
    wide = X.astype(np.float64)
    close(gd.jit(lambda x: f(x))(X), formula(wide), 1e-6)
    assert np.isnan(np.asarray(gd.jit(lambda x: f(x))(np.array([NAN], np.float32)))).all()
    close(gd.jit(lambda x: f(x))(np.array([-INF, INF], np.float32)), ends, 1e-6)
    slope = gd.jit(gd.grad(lambda x: gd.sum(f(x))))
    step = 1e-6
    close(slope(X), (formula(wide + step) - formula(wide - step)) / (2 * step), 1e-4)
    assert np.isfinite(slope(np.array([-INF, INF, -3e38, 3e38, -90, 90], np.float32))).all()


def test_one_sided_slopes_at_the_kink() -> None:
    zero = np.zeros(1, np.float32)
    assert gd.jit(gd.grad(lambda x: gd.sum(gd.elu(x, 0.5))))(zero).tolist() == [0.5]
    assert gd.jit(gd.grad(lambda x: gd.sum(gd.leaky_relu(x, 0.5))))(zero).tolist() == [1]


def test_silu_of_large_negative_numbers_is_not_flushed() -> None:
    x = np.array([-88, -90, -95], np.float32)
    close(gd.jit(gd.silu)(x) / (x * np.exp(x.astype(float))), [1, 1, 1], 1e-4)


def test_glu() -> None:
    x = normal(3, 8)
    close(gd.jit(gd.glu)(x), x[:, :4] * sigmoid(x[:, 4:]))


# -- losses


P, T = normal(4, 3), normal(4, 3)
Y = np.array([0.0, 1.0, 0.25, 1.0], np.float32)
Z = np.array([-INF, INF, 0.5, 200.0], np.float32)


def test_mean_square_absolute_and_huber() -> None:
    d = np.abs(P.astype(float) - T)
    close(gd.jit(gd.mse_loss)(P, T), np.mean(d**2))
    close(gd.jit(lambda p, t: gd.l1_loss(p, t, reduction="sum"))(P, T), np.sum(d))
    found = gd.jit(lambda p, t: gd.huber_loss(p, t, delta=0.7, reduction="none"))(P, T)
    close(found, np.where(d <= 0.7, d**2 / 2, 0.7 * (d - 0.35)))
    far = gd.jit(gd.grad(lambda p: gd.huber_loss(p, np.zeros(2, np.float32), reduction="sum")))(np.array([3e38, -0.5], np.float32))
    assert far.tolist() == [1, -0.5]


def test_binary_cross_entropy_is_right_at_infinite_logits() -> None:
    f = gd.jit(lambda z, y: gd.binary_cross_entropy_with_logits(z, y, reduction="none"))
    close(f(Z, Y), [0, 0, np.log1p(np.exp(0.5)) - 0.125, 0])
    slope = gd.jit(gd.grad(lambda z, y: gd.binary_cross_entropy_with_logits(z, y, reduction="sum")))(Z, Y)
    close(slope, [0, 0, sigmoid(np.float64(0.5)) - 0.25, 0])


def test_kl_divergence_of_nothing_is_0() -> None:
    q, p = np.log(np.array([0.25, 0.25, 0.5], np.float32)), np.array([0.5, 0.5, 0], np.float32)
    close(gd.jit(lambda q, p: gd.kl_div(q, p, reduction="sum"))(q, p), np.log(2))
    logs = np.array([np.log(0.5), np.log(0.5), -INF], np.float32)
    close(gd.jit(lambda q, p: gd.kl_div(q, p, log_target=True, reduction="sum"))(q, logs), np.log(2))
    assert np.isfinite(gd.jit(gd.grad(lambda q, p: gd.kl_div(q, p)))(q, p)).all()


def test_cross_entropy_with_smoothing_and_nll() -> None:
    labels = np.array([2, 0, 1, 1], np.int32)
    logs = P - np.log(np.exp(P.astype(float)).sum(1, keepdims=True))
    mixed = 0.9 * np.eye(3)[labels] + 0.1 / 3
    close(gd.jit(lambda x, y: gd.cross_entropy(x, y, label_smoothing=0.1))(P, labels), -(mixed * logs).sum(1))
    close(gd.jit(gd.nll_loss)(logs.astype("f"), labels), -logs[np.arange(4), labels].mean())
    close(gd.jit(gd.grad(lambda x: gd.nll_loss(x, labels, reduction="sum")))(P), -np.eye(3)[labels])


def test_bad_arguments() -> None:
    with pytest.raises(gd.GradirError) as caught:
        gd.mse_loss(P, T, reduction="average")
    assert caught.value.code == "GR118"
    with pytest.raises(gd.GradirError, match="nll_loss"):
        gd.nll_loss(P, T)
    with pytest.raises(gd.GradirError, match="attention"):
        gd.attention(P, P, P)
    with pytest.raises(gd.GradirError, match="groups"):
        gd.group_norm(P, np.ones(3), np.ones(3), 2)


def test_gelu_is_the_normal_distribution() -> None:
    close(gd.jit(lambda x: gd.gelu(x, approximate=False))(X), [x * (1 + erf(x / 2**0.5)) / 2 for x in X.astype(float)], 1e-6)
