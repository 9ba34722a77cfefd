"""`vjp` and `linearize`: one run of the function, maps that read what it saved, compiled once for a function; integers, aux, mistakes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.errors import GradirError
from gradir.frontends.python import halves

X, V = np.array([0.1, 0.2, 0.3]), np.array([1.0, -2.0, 0.5])


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the functions that halves were compiled of."""
    names: list[str] = []
    original = halves.compile_module

    def counted(module: Any, **options: Any) -> Any:
        names.append(options["entry"])
        return original(module, **options)

    monkeypatch.setattr(halves, "compile_module", counted)
    return names


def test_each_half_is_compiled_once(compiled: list[str]) -> None:
    def f(x: Any) -> Any:
        return gd.sin(x) * x

    slope = np.cos(X) * X + np.sin(X)
    for scale in (1.0, 2.0):
        y, pullback = gd.vjp(f, scale * X)
        np.testing.assert_allclose(y, np.sin(scale * X) * scale * X)
        if scale == 1.0:
            for ct in (V, 3 * V):
                np.testing.assert_allclose(pullback(ct)[0], slope * ct)
        _, along = gd.linearize(f, X)
        np.testing.assert_allclose(along(V), slope * V)
    assert compiled == ["f.fwd", "f.bwd", "f.along"]
    gd.vjp(f, X.astype(np.float32))
    assert compiled[3:] == ["f.fwd"]


def test_the_function_runs_once() -> None:
    printed: list[str] = []

    def f(x: Any) -> Any:
        gd.print("run {}", gd.sum(x))
        return gd.exp(x)

    before = gd.set_print_sink(lambda *texts: printed.append(str(texts)))
    try:
        _, pullback = gd.vjp(f, X)
        pullback(V)
        pullback(X)
        _, along = gd.linearize(f, X)
        along(V)
    finally:
        gd.set_print_sink(before)
    assert len(printed) == 2


def test_what_wraps_a_function_has_programs_of_its_own() -> None:
    def f(x: Any) -> Any:
        return x * 2

    np.testing.assert_array_equal(gd.vjp(f, X)[1](V)[0], 2 * V)

    @functools.wraps(f)
    def g(x: Any) -> Any:
        return f(x) * 3

    np.testing.assert_array_equal(gd.vjp(g, X)[1](V)[0], 6 * V)
    np.testing.assert_array_equal(gd.jvp(g, (X,), (V,))[1], 6 * V)


def test_a_rule_that_changes_is_seen() -> None:
    @gd.custom_vjp
    def f(x: Any) -> Any:
        return x * 2

    f.defvjp(lambda x: (x * 2, ()), lambda r, ct: (ct * 2,))
    np.testing.assert_array_equal(gd.vjp(f, X)[1](V)[0], 2 * V)
    f.defvjp(lambda x: (x * 2, ()), lambda r, ct: (ct * 5,))
    np.testing.assert_array_equal(gd.vjp(f, X)[1](V)[0], 5 * V)


class Model:
    """Methods: no program is kept with an object that is new at each access."""

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def __call__(self, x: Any) -> Any:
        return x * self.scale

    def method(self, x: Any) -> Any:
        return x * self.scale


def test_objects_and_methods() -> None:
    for scale in (2.0, 3.0):
        np.testing.assert_array_equal(gd.vjp(Model(scale), X)[1](V)[0], scale * V)
        np.testing.assert_array_equal(gd.vjp(Model(scale).method, X)[1](V)[0], scale * V)


@pytest.mark.parametrize("mode", ["outside", "jit", "eager"])
def test_integers_and_aux(mode: str) -> None:
    def f(p: Any, n: Any) -> Any:
        y = p["x"] * n * p["k"]
        return {"y": y, "m": n + 1}, (gd.sum(y), n)

    def derived(x: Any, v: Any) -> Any:
        results, pullback, aux = gd.vjp(f, {"x": x, "k": np.int32(2)}, np.int32(3), has_aux=True)
        _, along, _ = gd.linearize(f, {"x": x, "k": np.int32(2)}, np.int32(3), has_aux=True)
        return results, pullback({"y": v, "m": 0}), aux, along({"x": v, "k": 0}, 0)

    if mode == "eager":
        with gd.eager():
            found = gd.tree_map(np.asarray, gd.tree_map(lambda x: x.concrete if isinstance(x, gd.Array) else x, derived(X, V)))
    else:
        found = (gd.jit(derived) if mode == "jit" else derived)(X, V)
    results, (ct, of_n), (total, n), tangents = found
    np.testing.assert_allclose(results["y"], 6 * X)
    np.testing.assert_allclose(ct["x"], 6 * V)
    assert ct["k"] == 0 and np.asarray(ct["k"]).dtype == np.int32 and of_n == 0 and results["m"] == 4 and n == 3
    np.testing.assert_allclose(total, np.sum(6 * X))
    np.testing.assert_allclose(tangents["y"], 6 * V)
    assert tangents["m"] == 0


def test_aux_of_forward_mode() -> None:
    for wrap in (lambda f: f, gd.jit):
        y, tangent, aux = wrap(lambda x, v: gd.jvp(lambda x: (gd.sin(x), {"n": gd.argmax(x), "x": x}), (x,), (v,), has_aux=True))(X, V)
        np.testing.assert_allclose(y, np.sin(X))
        np.testing.assert_allclose(tangent, np.cos(X) * V)
        assert aux["n"] == 2
        np.testing.assert_array_equal(aux["x"], X)


def test_run_time_sizes_and_derivatives_of_the_maps() -> None:
    def f(x: Any) -> Any:
        y, pullback = gd.vjp(lambda x: (gd.tanh(x), gd.argmax(x)), x)
        _, along = gd.linearize(gd.sin, x)
        return pullback((x, y[1]))[0] + along(x)

    expected = X * (1 - np.tanh(X) ** 2) + X * np.cos(X)
    np.testing.assert_allclose(gd.jit(f, dynamic={"x": ("b",)})(X), expected)
    np.testing.assert_allclose(f(X), expected)
    slope = gd.grad(lambda x: gd.sum(gd.vjp(gd.sin, x)[1](x)[0]))(X)
    np.testing.assert_allclose(slope, np.cos(X) - X * np.sin(X))


@pytest.mark.parametrize("residuals", ["all", "none", "sqrt"])
def test_loops_whose_trips_are_saved(residuals: str) -> None:
    """What passes from one half to the other outside of a trace are arrays: so is a number of trips."""

    def halved(a: Any, n: Any) -> Any:
        a = gd.while_loop(lambda s: gd.sum(s) > 0.05, lambda s: gd.sin(s) * 0.5, a, residuals=residuals)
        return gd.fori_loop(0, n, lambda i, s: gd.cos(s) * a, a, residuals=residuals)

    for n in (0, 3):
        x, n = np.array([0.9, 0.4]), np.int32(n)
        _, expected = gd.jit(lambda x, v, n=n: gd.jvp(lambda x: halved(x, n), (x,), (v,)))(x, np.ones(2))
        _, pullback = gd.vjp(halved, x, n)
        _, along = gd.linearize(halved, x, n)
        np.testing.assert_allclose(along(np.ones(2), n), expected, rtol=1e-12)
        weights = np.array([1.0, -2.0])
        np.testing.assert_allclose(np.sum(pullback(weights)[0]), np.sum(weights * np.asarray(expected)), rtol=1e-12)


MISTAKES: dict[str, tuple[str, Callable[[], Any]]] = {
    "only integers": ("GR109", lambda: gd.vjp(lambda n: n * 2.0, np.int32(3))),
    "only integers come out": ("GR109", lambda: gd.linearize(lambda x: gd.argmax(x), X)),
    "another structure": ("GR107", lambda: gd.vjp(lambda x: (x, x), X)[1](X)),
    "another shape": ("GR107", lambda: gd.vjp(lambda x: x, X)[1](X[:2])),
    "another type": ("GR107", lambda: gd.linearize(lambda x: x, X)[1](X.astype(np.float32))),
    "too few tangents": ("GR107", lambda: gd.linearize(lambda x, y: x * y, X, X)[1](X)),
    "two cotangents for one result": ("GR119", lambda: gd.vjp(lambda x: x, X)[1](X, X)),
    "no cotangent": ("GR119", lambda: gd.vjp(lambda x: x, X)[1]()),
    "no pair": ("GR108", lambda: gd.vjp(lambda x: x, X, has_aux=True)),
    "no pair forward": ("GR108", lambda: gd.jvp(lambda x: x, (X,), (X,), has_aux=True)),
    "no function": ("GR119", lambda: gd.linearize(X, X)),  # pyright: ignore[reportArgumentType]
    "too few arguments": ("GR119", lambda: gd.linearize(lambda x, y: x * y, X)),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_explained(name: str) -> None:
    code, call = MISTAKES[name]
    with pytest.raises(GradirError) as caught:
        call()
    assert caught.value.code == code and caught.value.expected and caught.value.found
    assert "test_linear_maps.py" in caught.value.location
