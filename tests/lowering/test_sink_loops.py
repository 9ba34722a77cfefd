"""Loops inside of nests compute what loops around nests do: on every road, with ends that differ from element to element."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradir as gd

RNG = np.random.default_rng(3)


def newton(a: Any) -> Any:
    return gd.fori_loop(0, 30, lambda i, x: x - (x * x * x - a) / (3.0 * x * x), gd.ones(a.shape, a.dtype))


def uses_its_index(a: Any) -> Any:
    return gd.fori_loop(2, 9, lambda i, x: x * 0.5 + gd.sin(a) * i, a)


def nested(a: Any) -> Any:
    return gd.fori_loop(0, 4, lambda i, x: gd.fori_loop(0, i, lambda j, y: gd.tanh(y + 0.1) * j, x) + a, a)


def carries_two(a: Any) -> Any:
    return gd.fori_loop(0, 20, lambda i, s: (s[0] + 0.1 * s[1], s[1] - 0.1 * s[0]), (a, a * 2))[0]


def integers(a: Any) -> Any:
    return gd.fori_loop(0, 9, lambda i, x: gd.where(x % 2 == 0, x // 2, 3 * x + 1), (a * 10).astype("int32"))


def until_accurate(a: Any) -> Any:
    def off(x: Any) -> Any:
        return gd.abs(x * x - a) > 1e-3

    return gd.while_loop(lambda x: gd.any(off(x)), lambda x: gd.where(off(x), 0.5 * (x + a / x), x), gd.ones(a.shape, a.dtype) * 3)


def until_all_are_done(a: Any) -> Any:
    def step(s: Any) -> Any:
        x, done = s
        return gd.where(done, x, x * 1.5 + 0.01), gd.logical_or(done, x > 10.0)

    return gd.while_loop(lambda s: gd.logical_not(gd.all(s[1])), step, (a, gd.zeros(a.shape, bool)))[0]


def mandelbrot(a: Any) -> Any:
    def step(s: Any) -> Any:
        x, y, n, live, i = s
        x, y = gd.where(live, x * x - y * y + a - 1.5, x), gd.where(live, 2.0 * x * y + 0.1, y)
        live = x * x + y * y <= 4.0
        return x, y, n + live.astype(a.dtype), live, i + 1

    zero = gd.zeros(a.shape, a.dtype)
    goes_on = lambda s: gd.logical_and(s[4] < 50, gd.any(s[3]))
    return gd.while_loop(goes_on, step, (zero, zero, zero, gd.ones(a.shape, bool), np.int32(0)))[2]


SUNK = [newton, uses_its_index, nested, carries_two, integers, until_accurate, until_all_are_done, mandelbrot]


def goes_on_together(a: Any) -> Any:
    return gd.while_loop(lambda x: gd.any(x < 5.0), lambda x: x + 1.0, a)


def goes_on_while_all_say_so(a: Any) -> Any:
    return gd.while_loop(lambda x: gd.all(x < 5.0), lambda x: x + 1.0, a)


def minus_zero(a: Any) -> Any:
    """-0 + 0 is +0: an element that has stopped changes its sign if the others go on."""

    def step(s: Any) -> Any:
        n, x, live = s
        return n + live.astype(a.dtype) * 0.0, gd.where(live, x + 1.0, x), gd.where(live, x < 5.0, False)

    return gd.while_loop(lambda s: gd.any(s[2]), step, (a * -0.0, a, a < 0.8))[0]


def counts_all_trips(a: Any) -> Any:
    """What is wanted depends on the number of trips, which elements do not have for themselves."""
    return gd.while_loop(lambda s: gd.any(s[0] < 5.0), lambda s: (gd.where(s[0] < 5.0, s[0] + 1.0, s[0]), s[1] + 1.0), (a, a))[1]


def flag_starts_false(a: Any) -> Any:
    """`live` starts as false where its formula would say true: the first step wakes such elements."""

    def step(s: Any) -> Any:
        x, live = s
        x = gd.where(live, x + 1.0, x)
        return x, x < 5.0

    return gd.while_loop(lambda s: gd.any(s[1]), step, (a, a < 1.0))[0]


KEPT = [goes_on_together, goes_on_while_all_say_so, minus_zero, counts_all_trips, flag_starts_false]


def is_sunk(function: Callable[..., Any], *args: Any) -> bool:
    """Whether no loop is left outside of nests."""
    text = str(gd.jit(function, cache=False).compile(*args, keep_ir=True).report.ir["2 structured"])
    entry = text[text.index("func.func @") :]
    return "scf.for" not in entry and "scf.while" not in entry


OTHER_SHAPES = [pytest.param(shape, np.float32, marks=pytest.mark.full) for shape in [(3,), (0, 4), (64,)]]


@pytest.mark.parametrize(("shape", "dtype"), [((13, 37), np.float32), ((13, 37), np.float64), *OTHER_SHAPES])
@pytest.mark.parametrize("function", SUNK + KEPT)
def test_same_results_as_loops_around_nests(function: Callable[..., Any], dtype: Any, shape: tuple[int, ...]) -> None:
    a = (np.abs(RNG.standard_normal(shape)) + 0.5).astype(dtype)
    expected = np.asarray(gd.jit(function, cache=False, optimize=0)(a))
    found = np.asarray(gd.jit(function, cache=False)(a))
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
    np.testing.assert_allclose(found, expected, rtol=1e-12 if dtype == np.float64 else 1e-5)


@pytest.mark.parametrize("function", SUNK)
def test_loops_of_elements_are_sunk(function: Callable[..., Any]) -> None:
    assert is_sunk(function, np.ones((13, 37), np.float32))


@pytest.mark.parametrize("function", KEPT)
def test_elements_that_go_on_changing_stay_together(function: Callable[..., Any]) -> None:
    assert not is_sunk(function, np.ones((13, 37), np.float32))


@pytest.mark.parametrize("function", [newton, until_accurate, mandelbrot])
def test_the_emulated_device_agrees(function: Callable[..., Any]) -> None:
    a = (np.abs(RNG.standard_normal((5, 7))) + 0.5).astype(np.float32)
    module = gd.jit(function).lower(a)
    (found,) = [gd.compile(module, target="cuda:emulated")[function.__name__](a)]
    np.testing.assert_allclose(np.asarray(found), np.asarray(gd.jit(function, cache=False, optimize=0)(a)), rtol=1e-5)


def test_an_array_of_run_time_size() -> None:
    b = gd.Dim("b")
    jitted = gd.jit(newton, cache=False, dynamic={0: (b,)})
    for n in (1, 5, 100):
        np.testing.assert_allclose(np.asarray(jitted(np.full(n, 8.0, np.float32))), np.full(n, 2.0), rtol=1e-6)
