"""What complex numbers mean below `split-complex`: the rows of docs/numerics.md, and the accuracy of every function.

Errors are measured in units of the last place of |result|; the reference evaluator computes in twice the digits.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from gradir.driver.compile import compile_module
from gradir.ir.text import parse_module
from gradir.reference import run
from gradir.runtime.module import load

FUNCTIONS = (
    *("abs", "sign", "exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "tanh", "logistic", "sin", "cos", "cbrt", "tan"),
    *("asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh"),
)
ELEMENTS = {"f32": np.complex64, "f64": np.complex128}
ULPS = 5.0
"""Most that was measured in 3e5 numbers per function: 4.3 (rsqrt), else 4.0 or less."""


def numbers(count: int, dtype: Any) -> Any:
    """All sizes and quadrants, around the unit circle, around 1, -1, i and -i."""
    rng = np.random.default_rng(11)
    parts = [10.0 ** rng.uniform(low, high, (2, count)) * rng.choice([-1, 1], (2, count)) for low, high in RANGES]
    angle, off = np.exp(1j * rng.uniform(-np.pi, np.pi, count)), 10.0 ** rng.uniform(-7, -1, count)
    unit = rng.choice([1, -1, 1j, -1j], count)
    return np.concatenate([*(x + 1j * y for x, y in parts), (1 + off) * angle, unit + off * angle, np.log(-angle)]).astype(dtype)


RANGES = ((-1, 0.5), (-3, 1.9), (-37, 37), (-8, 1))


@cache
def programs(element: str) -> Any:
    z = numbers(400, ELEMENTS[element])
    kind = f"tensor<{z.size}xcomplex<{element}>>"
    result = {"abs": f"tensor<{z.size}x{element}>"}
    text = "\n".join(
        f"func.func @{name}(%z: {kind}) -> {result.get(name, kind)} {{\n%r = nd.{name} %z : {kind}\nreturn %r : {result.get(name, kind)}\n}}"
        for name in FUNCTIONS
    )
    return z, parse_module(text), compile_module(text)


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_accurate(name: str, element: str):
    z, module, compiled = programs(element)
    want, found = run(module, name, [z])[0], compiled[name](z)
    for part in ("real", "imag"):
        a, b = getattr(found, part), getattr(want, part)
        assert (np.isnan(a) == np.isnan(b)).all()
        assert (np.isinf(a) == np.isinf(b)).all()
    usable = np.isfinite(want)
    error = np.abs(found.astype(np.clongdouble)[usable] - want[usable])
    limits = np.finfo(want.real.dtype)
    scale = np.maximum(np.abs(want.astype(np.clongdouble))[usable] * limits.eps, limits.smallest_subnormal)
    worst = int(np.argmax(error / scale))
    assert error[worst] <= ULPS * scale[worst], z[usable][worst]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_infinities_and_nan(name: str):
    """Which parts are NaN and which infinite, at every pair of corners."""
    corners = [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan]
    z = np.array([complex(a, b) for a in corners for b in corners], np.complex64)
    kind = f"tensor<{z.size}xcomplex<f32>>"
    result = f"tensor<{z.size}xf32>" if name == "abs" else kind
    text = f"func.func @f(%z: {kind}) -> {result} {{\n%r = nd.{name} %z : {kind}\nreturn %r : {result}\n}}"
    want, found = run(parse_module(text), "f", [z])[0], compile_module(text)["f"](z)
    for part in (np.real, np.imag):
        a, b = part(want), part(found)
        np.testing.assert_array_equal(np.where(np.isfinite(a), 0, a), np.where(np.isfinite(b), 0, b))


def both(body: str, result: str, *inputs: Any) -> Any:
    """The value in the evaluator, compiled, without any optimisation, and from a saved artefact, which all agree."""
    arguments = ", ".join(f"%{k}: tensor<{'x'.join([*map(str, x.shape), _element(x)])}>" for k, x in enumerate(inputs))
    module = parse_module(f"func.func @f({arguments}) -> {result} {{\n{body}\nreturn %r : {result}\n}}")
    value = run(module, "f", inputs)[0]
    for optimize in (0, 1, 2):
        found = compile_module(module, cache=False, optimize=optimize)["f"](*inputs)
        assert found.dtype == value.dtype
        np.testing.assert_allclose(found, value, rtol=1e-6)
        for part in ("real", "imag"):
            zero = getattr(value, part) == 0
            assert (np.signbit(getattr(found, part)) == np.signbit(getattr(value, part)))[zero].all()
    return value


def _element(x: Any) -> str:
    return {"complex64": "complex<f32>", "complex128": "complex<f64>", "float32": "f32"}[x.dtype.name]


def z64(*values: complex) -> Any:
    return np.array(values, np.complex64)


C4 = "tensor<4xcomplex<f32>>"


def test_absolute_value_is_hypot():
    found = both(f"%r = nd.abs %0 : {C4}", "tensor<4xf32>", z64(3e30 + 4e30j, 3e-30 + 4e-30j, complex(np.nan, np.inf), -0.0))
    np.testing.assert_allclose(found, [5e30, 5e-30, np.inf, 0], rtol=1e-6)


def test_division_is_scaled():
    z = z64(1e38 + 1e38j, 3e38 - 2e38j, 1e-38 + 2e-38j, 2)
    np.testing.assert_allclose(both(f"%r = nd.div %0, %0 : {C4}", C4, z), np.ones(4), rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "point", "above", "below"),
    [
        ("sqrt", -1, 1j, -1j),
        ("log", -1, np.pi * 1j, -np.pi * 1j),
        ("asin", 2, np.pi / 2 + 1.3169579j, np.pi / 2 - 1.3169579j),
        ("acos", -2, np.pi - 1.3169579j, np.pi + 1.3169579j),
        ("acosh", 0.5, 1.0471976j, -1.0471976j),
        ("atanh", 2, 0.5493061 + np.pi / 2 * 1j, 0.5493061 - np.pi / 2 * 1j),
        ("log1p", -2, np.pi * 1j, -np.pi * 1j),
    ],
)
def test_branch_cuts_follow_the_sign_of_zero(name: str, point: float, above: complex, below: complex):
    z = np.array([complex(point, 0.0), complex(point, -0.0)], np.complex64)
    kind = "tensor<2xcomplex<f32>>"
    np.testing.assert_allclose(both(f"%r = nd.{name} %0 : {kind}", kind, z), [above, below], rtol=1e-6)


def test_conversions_take_the_real_part():
    z = z64(1.5 + 2j, -300 - 1j, 1j, complex(np.nan, 0))
    assert both(f"%r = nd.convert %0 : {C4} -> tensor<4xi1>", "tensor<4xi1>", z).tolist() == [True, True, False, True]
    assert both(f"%r = nd.convert %0 : {C4} -> tensor<4xi8>", "tensor<4xi8>", z).tolist() == [1, -128, 0, 0]
    assert both(f"%r = nd.convert %0 : {C4} -> tensor<4xf64>", "tensor<4xf64>", z).tolist()[:3] == [1.5, -300, 0]


def test_equality_needs_both_parts():
    a, b = z64(1 + 2j, 0, complex(np.nan, 1), 1 + 2j), z64(1 + 2j, -0.0, complex(np.nan, 1), 1 - 2j)
    assert both(f"%r = nd.compare eq, %0, %1 : {C4}", "tensor<4xi1>", a, b).tolist() == [True, True, False, False]
    assert both(f"%r = nd.compare ne, %0, %1 : {C4}", "tensor<4xi1>", a, b).tolist() == [False, False, True, True]


def test_powers():
    a, b = z64(1 + 2j, -2, 0, 0.5j), z64(2, 0.5, 3, 1 - 1j)
    np.testing.assert_allclose(both(f"%r = nd.pow %0, %1 : {C4}", C4, a, b), a.astype(complex) ** b, rtol=1e-6, atol=1e-7)
    zero = z64(0, 0, 0, 0)
    assert both(f"%r = nd.pow %0, %1 : {C4}", C4, zero, z64(0, 2, 1 + 1j, 0)).tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 8, 33])
def test_products_of_any_number(size: int):
    z = numbers(100, np.complex128)[:size]
    kind = f"tensor<{size}xcomplex<f64>>"
    found = both(f"%r = nd.reduce_prod %0 dims [0] : {kind} -> tensor<complex<f64>>", "tensor<complex<f64>>", z)
    np.testing.assert_allclose(found, np.prod(z), rtol=1e-12)
    for flags in ("", " reverse", " exclusive", " reverse exclusive"):
        both(f"%r = nd.cumprod %0 dim 0{flags} : {kind}", kind, z)


def test_contraction_of_large_matrices():
    rng = np.random.default_rng(0)
    a, b = ((rng.standard_normal((70, 70)) + 1j * rng.standard_normal((70, 70))).astype(np.complex64) for _ in range(2))
    kind = "tensor<70x70xcomplex<f32>>"
    text = f"%r = nd.dot_general %0, %1 contract [1] x [0] : {kind}, {kind} -> {kind}"
    module = parse_module(f"func.func @f(%0: {kind}, %1: {kind}) -> {kind} {{\n{text}\nreturn %r : {kind}\n}}")
    found, exact = compile_module(module)["f"](a, b), a.astype(complex) @ b
    assert np.abs(found - exact).max() < 70 * 2.0**-23 * (np.abs(a) @ np.abs(b)).max()


def test_artefacts_keep_the_complex_type(tmp_path: Any):
    kind = 'tensor<?xcomplex<f64>, ["n"]>'
    text = f"func.func @f(%z: {kind}) -> {kind} {{\n%r = nd.exp %z : {kind}\nreturn %r : {kind}\n}}"
    compile_module(text).save(tmp_path / "f.gradir")
    loaded = load(tmp_path / "f.gradir")["f"]
    assert [str(spec) for spec in (*loaded.spec.inputs, *loaded.spec.outputs)] == ["nxcomplex<f64>", "nxcomplex<f64>"]
    for size in (0, 1, 5):
        z = numbers(10, np.complex128)[:size]
        np.testing.assert_allclose(loaded(z), np.exp(z), rtol=1e-12)
        np.testing.assert_allclose(loaded(z[::-1]), np.exp(z[::-1]), rtol=1e-12)
