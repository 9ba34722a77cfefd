"""Gradients of whole models against JAX (f32: 1e-5, x64: 1e-10) and central differences (f64: 1e-6), relative to the largest entry."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradir as gd

jax = pytest.importorskip("jax", reason="jax is not installed")
jnp = jax.numpy
lax = jax.lax
jax.config.update("jax_enable_x64", True)

RNG = np.random.default_rng(7)


def array(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape) * 0.5


def mlp(xp: Any) -> Callable[..., Any]:
    def loss(p: Any, x: Any, y: Any) -> Any:
        relu = gd.relu if xp is gd else jax.nn.relu
        h = relu(x @ p["w0"] + p["b0"])
        z = xp.tanh(h @ p["w1"] + p["b1"]) @ p["w2"]
        if xp is gd:
            return gd.mean(gd.cross_entropy(z, y))
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(z), y[:, None], 1))

    return loss


def cnn(xp: Any) -> Callable[..., Any]:
    def loss(p: Any, x: Any, y: Any) -> Any:
        if xp is gd:
            h = gd.relu(gd.conv(x, p["k0"], padding="SAME") + p["b0"])
            h = gd.max_pool(gd.tanh(gd.conv(h, p["k1"], strides=2)), 2)
            return gd.mean(gd.cross_entropy(gd.reshape(h, (h.shape[0], -1)) @ p["w"], y))
        numbers = ("NHWC", "HWIO", "NHWC")
        h = jax.nn.relu(lax.conv_general_dilated(x, p["k0"], (1, 1), "SAME", dimension_numbers=numbers) + p["b0"])
        h = jnp.tanh(lax.conv_general_dilated(h, p["k1"], (2, 2), "VALID", dimension_numbers=numbers))
        h = lax.reduce_window(h, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        z = h.reshape(h.shape[0], -1) @ p["w"]
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(z), y[:, None], 1))

    return loss


def rnn(xp: Any) -> Callable[..., Any]:
    fori = gd.fori_loop if xp is gd else lax.fori_loop

    def loss(p: Any, x: Any, _: Any) -> Any:
        x = xp.asarray(x)
        step = lambda t, h: xp.tanh(x[t] @ p["w"] + h @ p["u"] + p["b"])
        h = fori(0, 7, step, xp.zeros((5, 6), x.dtype))
        return xp.sum(h * h)

    return loss


def branching(xp: Any) -> Callable[..., Any]:
    fori, cond = (gd.fori_loop, gd.cond) if xp is gd else (lax.fori_loop, lax.cond)

    def loss(p: Any, x: Any, _: Any) -> Any:
        def step(i: Any, s: Any) -> Any:
            return cond(xp.sum(s) > 0, lambda s: xp.sin(s) * p["w"], lambda s: s + p["u"] * p["w"], s)

        return xp.sum(fori(0, 9, step, x))

    return loss


MODELS: dict[str, tuple[Callable[[Any], Callable[..., Any]], Any, Any, Any]] = {
    "mlp": (
        mlp,
        {"w0": array(12, 16), "b0": array(16), "w1": array(16, 9), "b1": array(9), "w2": array(9, 4)},
        array(8, 12),
        RNG.integers(0, 4, 8).astype(np.int32),
    ),
    "cnn": (
        cnn,
        {"k0": array(3, 3, 2, 5), "b0": array(5), "k1": array(3, 3, 5, 6), "w": array(24, 3)},
        array(4, 10, 10, 2),
        RNG.integers(0, 3, 4).astype(np.int32),
    ),
    "rnn": (rnn, {"w": array(3, 6), "u": array(6, 6), "b": array(6)}, array(7, 5, 3), np.int32(0)),
    "if in a loop": (branching, {"w": array(5), "u": array(5)}, array(5), np.int32(0)),
}


def relative(found: Any, expected: Any) -> float:
    pairs = zip(jax.tree_util.tree_leaves(found), jax.tree_util.tree_leaves(expected), strict=True)
    return max(float(np.max(np.abs(np.asarray(a) - np.asarray(b))) / np.max(np.abs(np.asarray(b)))) for a, b in pairs)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("dtype", "bound"), [(np.float32, 1e-5), (np.float64, 1e-10)], ids=["f32", "f64"])
def test_gradients_agree_with_jax(name: str, dtype: Any, bound: float) -> None:
    model, params, x, y = MODELS[name]
    p, x = gd.tree_map(lambda v: v.astype(dtype), params), x.astype(dtype)
    value, gradients = gd.value_and_grad(model(gd))(p, x, y)
    expected_value, expected = jax.value_and_grad(model(jnp))(p, x, y)
    assert relative(value, expected_value) < bound
    assert relative(gradients, expected) < bound


@pytest.mark.parametrize("name", MODELS)
def test_gradients_agree_with_central_differences(name: str) -> None:
    model, params, x, y = MODELS[name]
    f = gd.jit(model(gd))
    gradients = gd.grad(model(gd))(params, x, y)
    for key, gradient in gradients.items():
        expected = np.zeros_like(params[key])
        for index in np.ndindex(expected.shape):
            h = 1e-5
            shifted = {sign: {**params, key: params[key].copy()} for sign in (-1, 1)}
            for sign, p in shifted.items():
                p[key][index] += sign * h
            expected[index] = (float(f(shifted[1], x, y)) - float(f(shifted[-1], x, y))) / (2 * h)
        assert np.max(np.abs(gradient - expected)) < 1e-6 * np.max(np.abs(expected))
