"""Reverse mode where the number of trips is known only during the run: while loops, inner bounds that change, and nests of these.

Every program: compiled gradient against the derivative of the unrolled record that eager mode makes, and the second derivative against
central differences of the first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.autodiff.differentiate import Differentiate
from gradir.driver.compile import compile_module
from gradir.ir.passes import PassContext
from gradir.ir.text import parse_module, print_module, verify_module
from gradir.reference import run

X, N, M = np.float64(0.7), np.int32(3), np.int32(5)


def newton(x: Any, n: Any, m: Any) -> Any:
    return gd.while_loop(lambda s: gd.abs(s * s - x) > 1e-9, lambda s: 0.5 * (s + x / s), x)


def no_trips(x: Any, n: Any, m: Any) -> Any:
    return gd.sin(gd.while_loop(lambda s: s > 5.0, lambda s: s * x, x))


def several_values(x: Any, n: Any, m: Any) -> Any:
    state = (x, x * 0.0, n)
    total = gd.while_loop(lambda s: s[0] < 4.0, lambda s: (s[0] * 1.5 + x, s[1] + s[0] * x, s[2] + 1), state)
    return total[1] * total[2].astype(np.float64)


@gd.jit
def power(x: Any, n: Any) -> Any:
    return gd.fori_loop(0, n, lambda i, s: gd.sin(s) * x, x)


def two_calls(x: Any, n: Any, m: Any) -> Any:
    return power(x, n) * 3.0 + power(x * 2.0, m)


def calls_in_a_loop(x: Any, n: Any, m: Any) -> Any:
    return gd.fori_loop(0, 4, lambda i, s: s + power(s, i + n), x)


def triangle(x: Any, n: Any, m: Any) -> Any:
    return gd.fori_loop(0, 4, lambda i, s: gd.fori_loop(0, i + n, lambda j, t: gd.sin(t) * x + s, s), x)


def in_a_branch(x: Any, n: Any, m: Any) -> Any:
    loop = lambda s: gd.fori_loop(0, n, lambda j, t: gd.sin(t) * x + s, s)
    return gd.cond(x < m.astype(np.float64), loop, lambda s: s * s, x)


def branch_in_a_loop(x: Any, n: Any, m: Any) -> Any:
    loop = lambda i: lambda s: gd.fori_loop(0, i + n, lambda j, t: gd.sin(t) * x + s, s)
    return gd.fori_loop(0, 4, lambda i, s: gd.cond(i % 2 == 0, loop(i), lambda s: s * s, s), x)


def while_in_a_branch_in_a_loop(x: Any, n: Any, m: Any) -> Any:
    climb = lambda s: gd.while_loop(lambda t: t < 3.0, lambda t: t + gd.abs(gd.sin(t)) * x + 0.1, s)
    return gd.fori_loop(0, 5, lambda i, s: gd.cond(i % 2 == 0, climb, lambda s: gd.sin(s * s), s), x)


def while_in_while(x: Any, n: Any, m: Any) -> Any:
    def outer(state: Any) -> Any:
        a, k = state
        return gd.while_loop(lambda t: t < 3.0 + k, lambda t: t + gd.abs(gd.sin(t)) * x + 0.1, gd.sin(a)), k + 1.0

    return gd.while_loop(lambda s: s[1] < 4.5, outer, (x, x))[0]


PROGRAMS = [
    newton,
    no_trips,
    several_values,
    two_calls,
    calls_in_a_loop,
    triangle,
    in_a_branch,
    branch_in_a_loop,
    while_in_a_branch_in_a_loop,
    while_in_while,
]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_first_and_second_derivative(f: Callable[..., Any]) -> None:
    compiled = gd.jit(gd.grad(f), cache=False)
    with gd.eager():
        expected = np.asarray(gd.grad(f)(X, N, M))
    np.testing.assert_allclose(compiled(X, N, M), expected, rtol=1e-12)
    h = 1e-6
    slope = (compiled(X + h, N, M) - compiled(X - h, N, M)) / (2 * h)
    np.testing.assert_allclose(gd.jit(gd.grad(gd.grad(f)), cache=False)(X, N, M), slope, rtol=1e-6, atol=1e-6)


def test_numerics_while_in_reverse() -> None:
    """A square root by Newton's method, converged for every element of a tensor: the derivative of the square root."""

    def roots(a: Any) -> Any:
        return gd.sum(gd.while_loop(lambda s: gd.max(gd.abs(s * s - a)) > 1e-9, lambda s: 0.5 * (s + a / s), a))

    a = np.array([0.25, 2.0, 9.0, 100.0])
    np.testing.assert_allclose(gd.jit(gd.grad(roots))(a), 0.5 / np.sqrt(a), rtol=1e-9)


CALLS = """
func.func private @g(%x: tensor<f64>, %n: index) -> tensor<f64> {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %r = scf.for %i = %0 to %n step %1 iter_args(%s = %x) -> (tensor<f64>) {
    %a = nd.sin %s : tensor<f64>
    %b = nd.mul %a, %x : tensor<f64>
    scf.yield %b : tensor<f64>
  }
  return %r : tensor<f64>
}
func.func private @f(%x: tensor<f64>) -> tensor<f64> {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %4 = arith.constant 4 : index
  %r = scf.for %i = %0 to %4 step %1 iter_args(%s = %x) -> (tensor<f64>) {
    %a = func.call @g(%s, %i) : (tensor<f64>, index) -> tensor<f64>
    %b = nd.add %a, %x : tensor<f64>
    scf.yield %b : tensor<f64>
  }
  return %r : tensor<f64>
}
func.func @main(%x: tensor<f64>) -> (tensor<f64>, tensor<f64>) {
  %v, %g = ad.value_and_grad @f(%x) wrt [0] : (tensor<f64>) -> (tensor<f64>, tensor<f64>)
  return %v, %g : tensor<f64>, tensor<f64>
}
"""


def test_a_callee_whose_residuals_change_size_from_call_to_call() -> None:
    """Not inlined: each call of the forward half gives stacks of another length, which the caller's loop cannot keep."""
    module = parse_module(CALLS)
    Differentiate().apply(module, PassContext())
    verify_module(module)
    h = 1e-6
    value = lambda x: run(module, "main", [np.float64(x)])[0]
    expected = (value(0.7 + h) - value(0.7 - h)) / (2 * h)
    np.testing.assert_allclose(run(module, "main", [X])[1], expected, rtol=1e-7)
    np.testing.assert_allclose(compile_module(module, cache=False)["main"](X)[1], expected, rtol=1e-7)


ASSERTING = """
func.func private @f(%x: tensor<f64>) -> tensor<f64> {
  %r = scf.while (%a = %x) : (tensor<f64>) -> tensor<f64> {
    %c = nd.constant splat(9.0 : f64) : tensor<f64>
    %p = nd.compare lt, %a, %c : tensor<f64>
    nd.assert %q, "in the condition" : tensor<i1>
    %b = tensor.extract %p[] : tensor<i1>
    scf.condition(%b) %a : tensor<f64>
  } do {
  ^bb0(%a: tensor<f64>):
    %d = nd.mul %a, %x : tensor<f64>
    nd.assert %q, "in the body" : tensor<i1>
    scf.yield %d : tensor<f64>
  }
  return %r : tensor<f64>
}
func.func @g(%x: tensor<f64>) -> tensor<f64> {
  %0 = ad.grad @f(%x) wrt [0] : (tensor<f64>) -> tensor<f64>
  return %0 : tensor<f64>
}
""".replace("    nd.assert %q", "    %q = nd.is_finite %a : tensor<f64> -> tensor<i1>\n    nd.assert %q")


def test_numerics_effects_of_a_differentiated_loop_happen_once() -> None:
    """The second run of the loop, in reverse, leaves its assertions out."""
    module = parse_module(ASSERTING)
    Differentiate().apply(module, PassContext())
    verify_module(module)
    text = print_module(module)
    derivative = text[text.index("@f.grad_0") :]
    assert derivative.count("nd.assert") == 2
    assert derivative.index('"in the body"') < derivative.index("scf.for")
    np.testing.assert_allclose(run(module, "g", [np.float64(2.0)]), [4 * 2.0**3])
