"""Rules of one's own: `custom_vjp`, `custom_jvp`, and `checkpoint`. Every rule is wrong on purpose, so that its use shows."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir import GradirError

X = np.float64(0.7)


@gd.custom_vjp
def threefold(x: Any, k: Any) -> Any:
    """x, whose derivative is said to be 3"""
    return {"y": x * 1.0, "k": k + 1}


def forward(x: Any, k: Any) -> Any:
    return {"y": x * 1.0, "k": k + 1}, (x, k)


def backward(residuals: Any, ct: Any) -> Any:
    x, _ = residuals
    return ct["y"] * 3.0 + 0.0 * x, None


threefold.defvjp(forward, backward)


@gd.custom_jvp
def twofold(x: Any, y: Any) -> Any:
    """x * y, whose tangent is said to be twice as large"""
    return x * y


@twofold.defjvp
def twofold_tangents(primals: Any, tangents: Any) -> Any:
    (x, y), (dx, dy) = primals, tangents
    return x * y, 2.0 * (dx * y + x * dy)


def through_both(x: Any) -> Any:
    inner = threefold(gd.sin(x), np.int32(4))
    return twofold(inner["y"], x) * inner["k"].astype(np.float64)


EXPECTED = 5 * 2 * (3 * np.cos(X) * X + np.sin(X))


def slope(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: gd.jvp(f, (x,), (np.float64(1),))[1]


@pytest.mark.parametrize("derivative", [gd.grad(through_both), slope(through_both)], ids=["reverse", "forward"])
def test_both_modes_use_the_rule(derivative: Callable[..., Any]) -> None:
    np.testing.assert_allclose(gd.jit(derivative, cache=False)(X), EXPECTED)
    with gd.eager():
        np.testing.assert_allclose(np.asarray(derivative(X)), EXPECTED)


def test_without_a_derivative_the_function_runs() -> None:
    assert threefold(X, np.int32(1))["k"] == 2
    assert gd.jit(through_both)(X) == pytest.approx(np.sin(X) * X * 5)
    with gd.eager():
        assert float(np.asarray(through_both(X))) == pytest.approx(np.sin(X) * X * 5)


def test_rules_are_differentiated_in_turn() -> None:
    """d(3 cos x) of the rule, not of the function; in every order of the modes."""
    f = lambda x: threefold(gd.sin(x), np.int32(0))["y"]
    for second in (gd.grad(gd.grad(f)), slope(gd.grad(f)), gd.grad(slope(f)), slope(slope(f))):
        np.testing.assert_allclose(gd.jit(second, cache=False)(X), -3 * np.sin(X))


def test_in_loops_and_branches() -> None:
    f = lambda x: gd.fori_loop(0, 3, lambda i, s: gd.cond(i < 2, lambda s: threefold(s, i)["y"], lambda s: twofold(s, x), s), x)
    np.testing.assert_allclose(gd.jit(gd.grad(f), cache=False)(X), 2 * (9 * X + X))
    np.testing.assert_allclose(gd.jit(slope(f), cache=False)(X), 2 * (9 * X + X))


def test_static_arguments() -> None:
    @gd.custom_vjp(nondiff_argnums=(0, 2))
    def scaled(factor: float, x: Any, name: str) -> Any:
        return x * factor

    scaled.defvjp(lambda factor, x, name: (x * factor, x), lambda factor, name, saved, ct: (ct * factor * len(name),))
    assert scaled(2.0, X, "abc") == 2 * X
    np.testing.assert_allclose(gd.grad(lambda x: scaled(2.0, x, "abc"))(X), 6)

    @gd.custom_jvp(nondiff_argnums=(1,))
    def shifted(x: Any, by: float) -> Any:
        return x + by

    shifted.defjvp(lambda by, primals, tangents: (primals[0] + by, tangents[0] * by))
    np.testing.assert_allclose(gd.grad(lambda x: shifted(x, 7.0))(X), 7)


def broken(forward: Any, backward: Any) -> Callable[..., Any]:
    f = gd.custom_vjp(lambda x, k: x * 2.0)
    f.defvjp(forward, backward)
    return gd.grad(lambda x: gd.sum(f(x, np.int32(1))))


GOOD = (lambda x, k: (x * 2.0, x), lambda saved, ct: (ct, None))
A = np.ones((2, 3))
CAPTURED = np.ones((2, 3))


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ((lambda x, k: x * 2.0, GOOD[1]), "a pair"),
        ((lambda x, k: (gd.sum(x), x), GOOD[1]), "result of the forward function 0"),
        ((GOOD[0], lambda saved, ct: ct), "2 cotangents"),
        ((GOOD[0], lambda saved, ct: (ct,)), "1 of them"),
        ((GOOD[0], lambda saved, ct: (gd.sum(ct), None)), "cotangent 0"),
        ((GOOD[0], lambda saved, ct: (ct.astype(np.float32), None)), "xf32"),
        ((GOOD[0], lambda saved, ct: ((ct, ct), None)), "another structure"),
    ],
)
def test_a_rule_that_does_not_fit(rules: Any, message: str) -> None:
    with pytest.raises(GradirError, match=r"AD012") as caught:
        broken(*rules)(A)
    assert message in str(caught.value) and caught.value.part == "autodiff"
    assert "test_custom_rules.py" in caught.value.location


def test_a_rule_is_missing_or_captures() -> None:
    with pytest.raises(GradirError, match=r"AD012.*no rule yet"):
        gd.grad(gd.custom_vjp(lambda x: x))(X)
    with pytest.raises(GradirError, match=r"AD012.*no rule yet"):
        gd.grad(gd.custom_jvp(lambda x: x))(X)

    def outer(x: Any) -> Any:
        f = gd.custom_jvp(lambda y: y * x)
        f.defjvp(lambda primals, tangents: (primals[0] * x, tangents[0] * x))
        return f(x)

    with pytest.raises(GradirError, match=r"AD012.*captures an array"):
        gd.jit(gd.grad(outer))(X)


def test_checkpoint_gives_the_same_bits() -> None:
    w = np.random.default_rng(0).standard_normal((8, 8))
    layer = lambda h, w: gd.tanh(h @ w)

    def loss(wrap: Callable[..., Any]) -> Callable[..., Any]:
        return lambda w, x: gd.sum(wrap(layer)(wrap(layer)(x, w), w) ** 2)

    x = np.ones((4, 8))
    plain, checked = gd.jit(gd.grad(loss(lambda f: f)), cache=False)(w, x), gd.jit(gd.grad(loss(gd.checkpoint)), cache=False)(w, x)
    assert plain.tobytes() == checked.tobytes()
    with gd.eager():
        np.testing.assert_allclose(np.asarray(gd.grad(loss(gd.checkpoint))(w, x)), plain, rtol=1e-12)
    np.testing.assert_allclose(gd.jvp(lambda w: loss(gd.checkpoint)(w, x), (w,), (w,))[1], np.sum(plain * w), rtol=1e-12)


def test_checkpoint_lowers_the_planned_memory() -> None:
    """A chain of blocks: with checkpoints the arena of the whole program, after all passes, holds one block at a time."""
    n, depth = 4096, 12

    def block(x: Any) -> Any:
        for _ in range(6):
            x = gd.sin(x) * gd.exp(-x * x)
        return x

    def loss(wrap: Callable[..., Any]) -> Callable[..., Any]:
        def f(x: Any) -> Any:
            for _ in range(depth):
                x = wrap(block)(x)
            return gd.sum(x)

        return f

    x = np.linspace(-1, 1, n, dtype=np.float32)
    arenas = [
        max(gd.compile(gd.grad(loss(wrap)), x, cache=False, optimize=optimize).report.arena_bytes.values())
        for optimize, wrap in ((1, lambda f: f), (1, gd.checkpoint))
    ]
    assert arenas[1] < arenas[0] / 2


def test_checkpoint_captures_and_runs_effects_once() -> None:
    def f(x: Any) -> Any:
        scale = gd.exp(x)
        return gd.checkpoint(lambda y: gd.sin(y) * scale)(x)

    np.testing.assert_allclose(gd.jit(gd.grad(f))(X), np.exp(X) * (np.sin(X) + np.cos(X)))


@functools.partial(gd.custom_vjp, nondiff_argnums=(0,))
def scaled(n: int, x: Any) -> Any:
    """n x, whose derivative is said to be 3 (n x)**2: its rule calls it again"""
    return n * x


scaled.defvjp(lambda n, x: (scaled(n + 0, x), x), lambda n, x, ct: (3.0 * ct * scaled(n + 0, x) ** 2,))
recalled = functools.partial(scaled, 1000)  # n + 0 is another object


@gd.custom_jvp
def recalled_forward(x: Any) -> Any:
    """1000 x, whose derivative is said to be 3 (1000 x)**2"""
    return 1000 * x


@recalled_forward.defjvp
def _(primals: Any, tangents: Any) -> Any:
    y = recalled_forward(primals[0])
    return y, 3.0 * tangents[0] * y**2


@pytest.mark.parametrize("f", [recalled, recalled_forward], ids=["vjp", "jvp"])
def test_a_rule_may_call_its_function(f: Callable[[Any], Any]) -> None:
    """As JAX's manual writes rules, `return f(x), residuals`: in the rule the call has the same rule, so y'' = 6 y y' = 18 y**3."""
    y = 1000 * X
    xs = np.stack([X, 2 * X])
    for wrap in (gd.jit, lambda g: g):
        np.testing.assert_allclose(wrap(f)(X), y)
        np.testing.assert_allclose(wrap(gd.grad(f))(X), 3 * y**2)
        np.testing.assert_allclose(wrap(gd.grad(gd.grad(f)))(X), 18 * y**3)
        np.testing.assert_allclose(wrap(gd.vmap(f))(xs), 1000 * xs)
        np.testing.assert_allclose(wrap(gd.vmap(gd.grad(gd.grad(f))))(xs), 18 * (1000 * xs) ** 3)
        np.testing.assert_allclose(wrap(gd.grad(lambda xs: gd.sum(gd.vmap(gd.grad(f))(xs))))(xs), 18 * (1000 * xs) ** 3)
        np.testing.assert_allclose(wrap(lambda x: gd.jvp(gd.grad(f), (x,), (x,))[1])(X), 18 * y**3 * X)
