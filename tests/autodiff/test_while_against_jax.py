"""Reverse mode of loops whose trips depend on data: Newton's square root, escape of z**2 + c, bisection with an implicit rule.

JAX has no reverse mode of `lax.while_loop`; it differentiates the same loop written in Python, trip by trip, or the implicit function. The
closed forms beside them need no JAX.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradir as gd
from tests.autodiff.table.differences import slope

RTOL = 1e-10


class Jax:
    """JAX's functions under our names; a while loop is Python's, so that reverse mode has what to unroll."""

    def __init__(self) -> None:
        self.jax = pytest.importorskip("jax", reason="jax is not installed")
        self.jax.config.update("jax_enable_x64", True)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.jax.numpy, name)

    def while_loop(self, condition: Callable[..., Any], body: Callable[..., Any], state: Any) -> Any:
        while bool(condition(state)):
            state = body(state)
        return state


@pytest.fixture
def jx() -> Jax:
    return Jax()


def newton(xp: Any, a: Any) -> Any:
    """Square roots of all elements: as many steps as the slowest needs."""
    return xp.sum(xp.while_loop(lambda s: xp.max(xp.abs(s * s - a)) > 1e-3, lambda s: 0.5 * (s + a / s), a) * xp.cos(a))


def newton_in_a_loop(xp: Any, a: Any) -> Any:
    """Each turn starts from the last result: other trips every time."""
    total = xp.sum(a * 0.0)
    for k in range(3):
        a = xp.while_loop(lambda s, a=a, k=k: xp.max(xp.abs(s * s - a)) > 10.0 ** (-2 - k), lambda s, a=a: 0.5 * (s + a / s), a + 1.0)
        total = total + xp.sum(a * a * a)
    return total


def escape(xp: Any, c: Any) -> Any:
    """n + 1 - log2(log |z|) of the first z of z**2 + c outside of radius 100, at most 60 trips; points that stay inside count 60.

    All points run until the last one is out; those outside keep what they have.
    """
    inside = lambda z: xp.abs(z) < 100.0

    def step(state: Any) -> Any:
        z, count, k = state
        alive = inside(z)
        return xp.where(alive, z * z + c, z), xp.where(alive, count + 1.0, count), k + 1.0

    z0 = c * 0.0
    z, count, _ = xp.while_loop(lambda s: xp.any(inside(s[0])) & (s[2] < 60.0), step, (z0, xp.abs(z0) * 0.0, 0.0))
    size = xp.where(inside(z), 100.0, xp.abs(z))
    return xp.sum(xp.where(inside(z), 60.0, count + 1.0 - xp.log(xp.log(size)) / np.log(2.0)))


def escape_of_one(xp: Any, c: Any) -> Any:
    """The trips of one number, carried along as complex numbers."""
    z, n = xp.while_loop(lambda s: xp.abs(s[0]) < 2.0, lambda s: (s[0] * s[0] + c, s[1] + 1.0), (c, xp.abs(c) * 0.0))
    return n + xp.log(xp.abs(z))


def collatz_like(xp: Any, x: Any) -> Any:
    """The path, not only the number of trips, depends on the data."""

    def step(state: Any) -> Any:
        s, total = state
        s = xp.where(s > 2.0, s * 0.5, s * 3.1 + x)
        return s, total + s * s

    return xp.while_loop(lambda s: s[1] < 400.0, step, (x, x * 0.0))[1]


def converged(xp: Any, a: Any) -> Any:
    """Cube roots to the last bit."""
    return xp.sum(xp.while_loop(lambda s: xp.max(xp.abs(s * s * s - a)) > 1e-13 * 30, lambda s: (2.0 * s + a / (s * s)) / 3.0, a))


A = np.array([0.25, 2.0, 9.0, 30.0])
C = np.array([0.4 + 0.5j, -0.8 + 0.3j, 0.1 + 0.1j, 1.5 - 0.2j, -0.75 + 0.12j])
PROGRAMS: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "newton": (newton, A),
    "newton in a loop": (newton_in_a_loop, A),
    "escape": (escape, C),
    "escape of one": (escape_of_one, np.complex128(-0.7 + 0.3j)),
    "path": (collatz_like, np.float64(0.37)),
    "converged": (converged, A),
}


def along(f: Callable[[Any], Any], x: Any, direction: Any) -> Any:
    """The slope of `f` by differences."""
    return slope(lambda s: [np.asarray(f(x + 1e-2 * s * direction))])[0] / 1e-2


@pytest.mark.parametrize("name", PROGRAMS)
def test_reverse_against_jax(name: str, jx: Jax) -> None:
    f, x = PROGRAMS[name]
    value, gradient = gd.jit(gd.value_and_grad(lambda x: f(gd, x)), cache=False)(x)
    expected_value, expected = jx.jax.value_and_grad(lambda x: f(jx, x))(x)
    np.testing.assert_allclose(value, expected_value, rtol=RTOL)
    np.testing.assert_allclose(gradient, expected, rtol=RTOL, atol=RTOL * np.max(np.abs(expected)))


@pytest.mark.parametrize("name", PROGRAMS)
def test_second_derivative_against_jax(name: str, jx: Jax) -> None:
    """Reverse over reverse along the gradient's own direction."""
    f, x = PROGRAMS[name]
    twice = lambda xp, grad: grad(lambda x: xp.sum(xp.abs(grad(lambda x: f(xp, x))(x)) ** 2))
    found = gd.jit(twice(gd, gd.grad), cache=False)(x)
    expected = twice(jx, jx.jax.grad)(x)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.max(np.abs(expected)))


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("optimize", [pytest.param(0, marks=pytest.mark.full), 1, pytest.param(2, marks=pytest.mark.full)])
def test_both_modes_against_differences(name: str, optimize: int) -> None:
    """Compiled; the number of trips does not change within the steps."""
    f, x = PROGRAMS[name]
    direction = np.exp(0.5j) if np.iscomplexobj(x) else 1.0
    whole = np.asarray(direction * np.ones_like(x))
    gradient = gd.jit(gd.grad(lambda x: f(gd, x)), optimize=optimize, cache=False)(x)
    tangent = gd.jit(lambda x: gd.jvp(lambda x: f(gd, x), (x,), (whole,))[1], optimize=optimize, cache=False)(x)
    value = gd.jit(lambda x: f(gd, x), optimize=optimize, cache=False)
    expected = along(value, x, whole)
    np.testing.assert_allclose(np.sum((gradient * whole).real), expected, rtol=1e-8)
    np.testing.assert_allclose(tangent, expected, rtol=1e-8)


def test_forward_mode_against_the_while_loop_of_jax(jx: Jax) -> None:
    """Which has one."""
    lax = jx.jax.lax
    root = lambda xp, loop, a: loop(lambda s: xp.max(xp.abs(s * s - a)) > 1e-3, lambda s: 0.5 * (s + a / s), a)
    t = np.array([1.0, -2.0, 0.5, 3.0])
    found = gd.jit(lambda a, t: gd.jvp(lambda a: root(gd, gd.while_loop, a), (a,), (t,)), cache=False)(A, t)
    for a, b in zip(found, jx.jax.jvp(lambda a: root(jx, lax.while_loop, a), (A,), (t,))):
        np.testing.assert_allclose(a, b, rtol=RTOL)


def test_closed_form_of_newton() -> None:
    """Converged, the loop has the derivative of the root: 1/3 a**(-2/3), and its second one, -2/9 a**(-5/3)."""
    np.testing.assert_allclose(gd.jit(gd.grad(lambda a: converged(gd, a)), cache=False)(A), A ** (-2 / 3) / 3, rtol=1e-12)
    second = gd.grad(lambda a: gd.sum(gd.grad(lambda a: converged(gd, a))(a)))
    np.testing.assert_allclose(gd.jit(second, cache=False)(A), -2 / 9 * A ** (-5 / 3), rtol=1e-9)


def test_closed_form_of_the_escape() -> None:
    """One trip after the other by hand: dz/dc = 2 z dz/dc + 1, and the log of |z| has the gradient dz/z (without conjugation: JAX's)."""
    c = complex(PROGRAMS["escape of one"][1])
    z, dz, trips = c, 1.0 + 0.0j, 0
    while abs(z) < 2:
        z, dz, trips = z * z + c, 2 * z * dz + 1, trips + 1
    assert trips > 4
    value, gradient = gd.jit(gd.value_and_grad(lambda c: escape_of_one(gd, c)), cache=False)(np.complex128(c))
    np.testing.assert_allclose(value, trips + np.log(abs(z)), rtol=1e-13)
    np.testing.assert_allclose(gradient, dz / z, rtol=1e-12)


def test_jacobians_of_a_checkpointed_loop() -> None:
    """Both modes on many tangents at once: lanes whose trips differ, and the loop runs again in the backward part."""
    root = lambda a: gd.while_loop(lambda s: gd.max(gd.abs(s * s * s - a)) > 1e-13 * 30, lambda s: (2.0 * s + a / (s * s)) / 3.0, a)
    expected = np.diag(A ** (-2 / 3) / 3)
    for jacobian in (gd.jacfwd, gd.jacrev):
        np.testing.assert_allclose(gd.jit(jacobian(gd.checkpoint(root)), cache=False)(A), expected, rtol=1e-12, atol=1e-15)


def test_points_that_stay_inside_have_no_derivative() -> None:
    gradient = gd.jit(gd.grad(lambda c: escape(gd, c)), cache=False)(C)
    assert gradient[2] == 0 and (np.abs(gradient[[0, 1, 3, 4]]) > 0).all()


def kepler(xp: Any, e: Any, m: Any, x: Any) -> Any:
    """x - e sin x - m: Kepler's equation"""
    return x - e * xp.sin(x) - m


def bisected(xp: Any, e: Any, m: Any) -> Any:
    """The root of Kepler's equation in [m - e, m + e], to the last bit or so."""

    def halve(state: Any) -> Any:
        low, high = state
        middle = 0.5 * (low + high)
        left = kepler(xp, e, m, middle) > 0
        return xp.where(left, low, middle), xp.where(left, middle, high)

    low, high = xp.while_loop(lambda s: xp.max(s[1] - s[0]) > 1e-14, halve, (m - e, m + e))
    return 0.5 * (low + high)


def implicit(xp: Any, custom_vjp: Any) -> Callable[[Any, Any], Any]:
    """`bisected` with the rule of the implicit function: dx = (sin x de + dm) / (1 - e cos x)."""

    @custom_vjp
    def root(e: Any, m: Any) -> Any:
        return bisected(xp, e, m)

    def forward(e: Any, m: Any) -> Any:
        x = root(e, m)
        return x, (e, x)

    def backward(residuals: Any, ct: Any) -> Any:
        e, x = residuals
        u = ct / (1.0 - e * xp.cos(x))
        return u * xp.sin(x), u

    root.defvjp(forward, backward)
    return root


E, M = np.array([0.1, 0.5, 0.83]), np.array([1.0, 2.0, 0.4])


def orbit(xp: Any, root: Any, e: Any, m: Any) -> Any:
    x = root(e, m)
    return xp.sum((xp.cos(x) - e) ** 2 * m)


def test_bisection_with_an_implicit_rule_against_jax(jx: Jax) -> None:
    """First and second derivatives; JAX's while loop stands in its forward function, where nothing differentiates it."""

    class Lax(Jax):
        def while_loop(self, condition: Callable[..., Any], body: Callable[..., Any], state: Any) -> Any:
            return self.jax.lax.while_loop(condition, body, state)

    theirs, ours = implicit(Lax(), jx.jax.custom_vjp), implicit(gd, gd.custom_vjp)
    found = gd.jit(gd.grad(lambda e, m: orbit(gd, ours, e, m), (0, 1)), cache=False)(E, M)
    for a, b in zip(found, jx.jax.grad(lambda e, m: orbit(jx, theirs, e, m), (0, 1))(E, M)):
        np.testing.assert_allclose(a, b, rtol=RTOL)
    twice = lambda xp, root, grad: grad(lambda e: xp.sum(grad(lambda e: orbit(xp, root, e, M))(e) ** 2))
    np.testing.assert_allclose(gd.jit(twice(gd, ours, gd.grad), cache=False)(E), twice(jx, theirs, jx.jax.grad)(E), rtol=1e-9)


def test_bisection_with_an_implicit_rule_is_the_implicit_function() -> None:
    """The closed form; and that bisection itself only knows where its ends came from."""
    root = implicit(gd, gd.custom_vjp)
    e, m = (np.asarray(gd.jit(lambda e, m: gd.grad(lambda e, m: gd.sum(root(e, m)), (0, 1))(e, m), cache=False)(E, M)[k]) for k in range(2))
    x = np.asarray(gd.jit(lambda e, m: root(e, m), cache=False)(E, M))
    np.testing.assert_allclose(kepler(np, E, M, x), 0, atol=1e-14)
    np.testing.assert_allclose(m, 1 / (1 - E * np.cos(x)), rtol=1e-12)
    np.testing.assert_allclose(e, np.sin(x) / (1 - E * np.cos(x)), rtol=1e-12)
    plain = gd.jit(gd.grad(lambda m: gd.sum(bisected(gd, E, m))), cache=False)(M)
    np.testing.assert_array_equal(plain, np.ones(3))
