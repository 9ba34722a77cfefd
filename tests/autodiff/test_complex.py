"""Derivatives of complex functions: against central differences along both axes, and against JAX where it is installed.

A cotangent w of a complex value z pairs with its change as Re(w dz), JAX's convention.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.dialects import nd
from gradir.driver.compile import compile_module
from gradir.ir.text import parse_module
from gradir.reference import run
from tests.autodiff.gradients import with_vjp

T, R = "tensor<4xcomplex<f64>>", "tensor<4xf64>"
UNARY = (
    *("neg", "sign", "exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "tanh", "logistic", "sin", "cos", "tan", "cbrt"),
    *("asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "conj"),
)
BINARY = ("add", "sub", "mul", "mul_strong", "div", "pow")

PROGRAMS: dict[str, tuple[str, str]] = {
    **{name: (f"%r = nd.{name} %a : {T}", T) for name in UNARY},
    **{name: (f"%r = nd.{name} %a, %b : {T}", T) for name in BINARY},
    **{name: (f"%r = nd.{name} %a : {T}", R) for name in ("abs", "real", "imag")},
    "complex": (f"%x = nd.real %a : {T}\n%y = nd.imag %b : {T}\n%r = nd.complex %y, %x : {R}", T),
    "convert": (f"%x = nd.convert %a : {T} -> {R}\n%r = nd.convert %x : {R} -> {T}", T),
    "reduce_sum": (f"%r = nd.reduce_sum %a dims [0] : {T} -> tensor<complex<f64>>", "tensor<complex<f64>>"),
    "reduce_prod": (f"%r = nd.reduce_prod %a dims [0] : {T} -> tensor<complex<f64>>", "tensor<complex<f64>>"),
    "cumsum": (f"%r = nd.cumsum %a dim 0 reverse : {T}", T),
    "cumprod": (f"%r = nd.cumprod %a dim 0 exclusive : {T}", T),
    "dot_general": (f"%r = nd.dot_general %a, %b contract [0] x [0] : {T}, {T} -> tensor<complex<f64>>", "tensor<complex<f64>>"),
    "select": (f"%x = nd.real %a : {T}\n%y = nd.imag %a : {T}\n%p = nd.compare lt, %x, %y : {R}\n%r = nd.select %p, %a, %b : {T}", T),
    "scatter_add": (
        "%i = nd.constant dense<[1, 1, 7, 0]> : tensor<4xi32>\n"
        f"%r = nd.scatter_add %a, %i, %b dim 0 : {T}, tensor<4xi32>, {T} -> {T}",
        T,
    ),
    "gather": (f"%i = nd.constant dense<[1, 1, 7]> : tensor<3xi32>\n%r = nd.gather %a, %i dim 0 : {T}, tensor<3xi32> -> "
               "tensor<3xcomplex<f64>>", "tensor<3xcomplex<f64>>"),
    "scatter mul": (
        "%i = nd.constant dense<[[1], [1], [7], [0]]> : tensor<4x1xi32>\n"
        f"%r = nd.scatter_general mul, %a, %i, %b inserted [0] map [0] : {T}, tensor<4x1xi32>, {T} -> {T}",
        T,
    ),
    "loop": (
        "%lo = arith.constant 0 : index\n%hi = arith.constant 3 : index\n%one = arith.constant 1 : index\n"
        f"%r = scf.for %k = %lo to %hi step %one iter_args(%w = %b) -> ({T}) {{\n  %v = nd.mul %w, %a : {T}\n"
        f"  %s = nd.sin %v : {T}\n  scf.yield %s : {T}\n}}",
        T,
    ),
}  # fmt: skip


def numbers(seed: int, *shape: int) -> Any:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)) * 0.8


@pytest.mark.parametrize("name", PROGRAMS)
def test_against_central_differences(name: str):
    body, result = PROGRAMS[name]
    wrt = [0, 1] if "%b" in body else [0]
    text = f"func.func @f(%a: {T}, %b: {T}) -> {result} {{\n{body}\nreturn %r : {result}\n}}"
    inputs = [numbers(1, 4), numbers(2, 4)]
    module = parse_module(text)
    value = run(module, "f", inputs)[0]
    ct = numbers(3, *value.shape).astype(value.dtype) if value.dtype.kind == "c" else numbers(3, *value.shape).real
    derived = with_vjp(text, wrt)
    _, *found = run(derived, "vjp", [*inputs, ct])
    for gradient, compiled in zip(found, compile_module(derived, cache=False)["vjp"](*inputs, ct)[1:]):
        np.testing.assert_allclose(compiled, gradient, rtol=1e-12, atol=1e-13)
    step = 1e-6
    for position, gradient in zip(wrt, found):
        for k in range(4):
            for direction in (1, 1j):
                moved = [[x.copy() for x in inputs] for _ in range(2)]
                moved[0][position][k] += step * direction
                moved[1][position][k] -= step * direction
                up, down = (run(module, "f", at)[0] for at in moved)
                change = np.sum(ct * (up - down)).real / (2 * step)
                assert change == pytest.approx((gradient[k] * direction).real, rel=1e-6, abs=1e-7)


def test_abs_at_three_plus_four_i():
    """docs/numerics.md: 0.6 - 0.8 i, and 0 at 0."""
    z = np.array([3 + 4j, 0], np.complex64)
    np.testing.assert_allclose(gd.grad(lambda z: gd.sum(gd.abs(z)))(z), [0.6 - 0.8j, 0], rtol=1e-6)


def test_a_zero_factor_wins_over_an_infinite_slope():
    """(0 z**(1/2))' at 0 is 0, also of complex z."""
    z = np.array([0], np.complex64)
    assert gd.grad(lambda z: gd.sum(gd.real(gd.sqrt(z) * 0.0)))(z).tolist() == [0]


def test_a_real_sign_is_still_flat():
    """The rule of the complex sign does not touch real numbers: no product with its slope is built."""
    text = f"func.func @f(%a: {R}) -> {R} {{\n%r = nd.sign %a : {R}\nreturn %r : {R}\n}}"
    assert not any(isinstance(op, nd.MulStrongOp | nd.MulOp) for op in with_vjp(text, [0]).walk())


def _hermitian(xp: Any, z: Any) -> Any:
    h = z @ z.conj().T + xp.sin(z) @ z
    return xp.sum(xp.abs(xp.exp(h * (0.1 - 0.2j))) ** 2) + xp.real(xp.prod(h))


def _mixed(xp: Any, z: Any) -> Any:
    x, y = z.real, z.imag
    w = xp.sqrt(x * x + 1j * y) / (z + 3.0)
    return xp.sum(xp.angle(w) * y) + xp.sum(xp.log(xp.abs(w + z)))


def _functions(xp: Any, z: Any) -> Any:
    """Without arccosh: JAX 0.10's derivative takes the other root where Re z < 0 (central differences agree with ours)."""
    total = 0.0
    for name in ("arcsin", "arccos", "arctan", "arcsinh", "arctanh", "tan", "tanh", "log1p", "expm1", "sinh", "cosh"):
        total = total + xp.sum(xp.real(getattr(xp, name)(z) * (1 - 2j)))
    return total + xp.sum(xp.abs(z ** (0.3 + 0.2j)))


@pytest.mark.parametrize("loss", [_hermitian, _mixed, _functions])
def test_against_jax(loss: Callable[..., Any]):
    jax = pytest.importorskip("jax", reason="jax is not installed")
    jax.config.update("jax_enable_x64", True)
    z = numbers(5, 3, 3) * 0.6
    value, gradient = jax.value_and_grad(lambda z: loss(jax.numpy, z))(z)
    found_value, found = gd.value_and_grad(lambda z: loss(gd, z))(z)
    np.testing.assert_allclose(found_value, value, rtol=1e-11)
    np.testing.assert_allclose(found, gradient, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("function", [_hermitian, _mixed, _functions, lambda xp, z: xp.cumprod(xp.conj(z) * z**2, 0) + xp.abs(z)])
def test_forward_mode_against_jax(function: Callable[..., Any]):
    jax = pytest.importorskip("jax", reason="jax is not installed")
    jax.config.update("jax_enable_x64", True)
    z, dz = numbers(5, 3, 3) * 0.6, numbers(6, 3, 3)
    found = gd.jvp(lambda z: function(gd, z), (z,), (dz,))
    for a, b in zip(found, jax.jvp(lambda z: function(jax.numpy, z), (z,), (dz,))):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)


def test_second_derivatives_against_jax():
    jax = pytest.importorskip("jax", reason="jax is not installed")
    jax.config.update("jax_enable_x64", True)
    z = numbers(5, 3) * 0.6

    def twice(xp: Any, grad: Any) -> Callable[..., Any]:
        inner = grad(lambda z: xp.sum(xp.abs(xp.sin(z) * z) ** 2))
        return grad(lambda z: xp.sum(xp.real(inner(z) * (1 + 2j))))

    np.testing.assert_allclose(twice(gd, gd.grad)(z), twice(jax.numpy, jax.grad)(z), rtol=1e-10)


def test_vjp_against_jax():
    jax = pytest.importorskip("jax", reason="jax is not installed")
    jax.config.update("jax_enable_x64", True)

    def f(xp: Any, z: Any, x: Any) -> Any:
        return xp.cumsum(z * x + xp.conj(z), 0), xp.imag(z) * x

    z, x, w, v = numbers(1, 4), numbers(2, 4).real, numbers(3, 4), numbers(4, 4).real
    _, pull = jax.vjp(lambda z, x: f(jax.numpy, z, x), z, x)

    def ours(z: Any, x: Any, w: Any, v: Any) -> Any:
        return gd.vjp(lambda z, x: f(gd, z, x), z, x)[1]((w, v))

    for found, want in zip(gd.jit(ours)(z, x, w, v), pull((w, v))):
        np.testing.assert_allclose(found, want, rtol=1e-12)
