"""Complex arrays in Python: types, functions, gradients, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.driver.compile import compile_module

Z = np.array([1 + 2j, 3 - 1j, -0.5 + 0j, 0 - 2j], np.complex64)

NUMPY: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "abs": (gd.abs, np.abs),
    "exp": (gd.exp, np.exp),
    "log": (gd.log, np.log),
    "sqrt": (gd.sqrt, np.sqrt),
    "tanh": (gd.tanh, np.tanh),
    "arcsin": (gd.arcsin, np.arcsin),
    "conj": (gd.conj, np.conj),
    "angle": (gd.angle, np.angle),
    "real": (gd.real, np.real),
    "imag": (gd.imag, np.imag),
    "sum": (gd.sum, np.sum),
    "prod": (gd.prod, np.prod),
    "mean": (gd.mean, np.mean),
    "var": (gd.var, np.var),
    "cumsum": (lambda z: gd.cumsum(z, 0), np.cumsum),
    "cumprod": (lambda z: gd.cumprod(z, 0), np.cumprod),
    "square": (gd.square, np.square),
    "power": (lambda z: z**0.3, lambda z: z ** np.complex64(0.3)),
    "cube": (lambda z: z**3, lambda z: z**3),
    "dot": (lambda z: z @ z, lambda z: z @ z),
    "equal": (lambda z: z == z[::-1], lambda z: z == z[::-1]),
    "isfinite": (gd.isfinite, np.isfinite),
    "isnan": (gd.isnan, np.isnan),
    "isinf": (gd.isinf, np.isinf),
    "to bool": (lambda z: z.astype(bool), lambda z: z.astype(bool)),
    "any": (gd.any, np.any),
    "where": (lambda z: gd.where(z.real > 0, z, 1j), lambda z: np.where(z.real > 0, z, np.complex64(1j))),
    "attributes": (lambda z: z.conj() * z.imag + z.real, lambda z: z.conj() * z.imag + z.real),
    "numpy": (np.conjugate, np.conjugate),
}


@pytest.mark.parametrize("name", NUMPY)
def test_functions_are_numpys(name: str):
    ours, theirs = NUMPY[name]
    with np.errstate(all="ignore"):
        want = theirs(Z)
    for found in (gd.jit(ours)(Z), _eager(ours)):
        assert np.asarray(found).dtype == np.asarray(want).dtype
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)


def _eager(function: Callable[..., Any]) -> Any:
    with gd.eager():
        return np.asarray(function(gd.asarray(Z)))


def test_not_finite_in_either_part():
    z = np.array([complex(np.nan, 0), complex(0, np.inf), 1j], np.complex64)
    assert gd.jit(gd.isnan)(z).tolist() == [True, False, False]
    assert gd.jit(gd.isinf)(z).tolist() == [False, True, False]
    assert gd.jit(gd.isfinite)(z).tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("x", "y", "dtype"),
    [
        (np.float32(2), 1j, np.complex64),
        (np.float64(2), 1j, np.complex128),
        (np.int32(2), 1j, np.complex64),
        (np.complex64(2), 1.5, np.complex64),
        (np.complex64(2), np.float64(1), np.complex128),
        (np.float16(2), np.complex64(1j), np.complex64),
        (2j, 1, np.complex64),
        (2j, 1j, np.complex64),
    ],
)
def test_promotion(x: Any, y: Any, dtype: Any):
    found = gd.jit(lambda a: a * y)(x)
    assert found.dtype == dtype
    assert complex(found) == complex(x) * complex(y)


def test_made_of_parts():
    found = gd.jit(lambda x: gd.complex(x, 2.0))(np.array([1.0, np.inf], np.float32))
    assert found.dtype == np.complex64
    assert found.tolist() == [1 + 2j, complex(np.inf, 2)]
    assert gd.jit(lambda x: gd.complex(x, x))(np.float64(1)).dtype == np.complex128


def test_imaginary_part_of_real_numbers_is_zero():
    x = np.array([1.0, np.nan, np.inf], np.float32)
    assert gd.jit(gd.imag)(x).tolist() == [0, 0, 0]
    assert gd.jit(gd.angle)(np.array([1, -1], np.int32)).tolist() == [0, np.float32(np.pi)]


def test_gradient_of_a_real_loss():
    """Re(g dz) is the change of the loss: g of |z|**2 is 2 conj(z)."""
    loss = lambda z: gd.sum(gd.abs(z) ** 2)
    np.testing.assert_allclose(gd.grad(loss)(Z), 2 * Z.conj(), rtol=1e-6)
    with gd.eager():
        np.testing.assert_allclose(np.asarray(gd.grad(loss)(gd.asarray(Z))), 2 * Z.conj(), rtol=1e-6)


def test_gradient_through_complex_numbers_inside():
    """|1 + i x|**2 = 1 + x**2"""
    x = np.array([0.5, -2.0], np.float32)
    found = gd.grad(lambda x: gd.sum(gd.square(gd.abs(1.0 + 1j * x))))(x)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, 2 * x, rtol=1e-6)


def test_vjp_pairs_without_conjugation():
    z, w = np.complex64(3 + 4j), np.complex64(2 - 1j)
    (result,), (cotangent,) = (tuple(np.asarray(v) for v in found) for found in _vjp(z, w))
    assert result == (1 + 2j) * z
    np.testing.assert_allclose(cotangent, (1 + 2j) * w)


def _vjp(z: Any, w: Any) -> Any:
    def both(z: Any, w: Any) -> Any:
        result, pullback = gd.vjp(lambda z: z * (1 + 2j), z)
        return (result,), pullback(w)

    return gd.jit(both)(z, w)


def test_a_loop_over_complex_numbers():
    found = gd.jit(lambda z: gd.fori_loop(0, 5, lambda i, w: w * z + 1j, z))(Z)
    want = Z
    for _ in range(5):
        want = want * Z + np.complex64(1j)
    np.testing.assert_allclose(found, want, rtol=1e-5)


REFUSED: dict[str, Callable[[Any], Any]] = {
    "nd.reduce_max": gd.max,
    "nd.compare": lambda z: z < z,
    "nd.floor": gd.floor,
    "nd.max": lambda z: gd.maximum(z, z),
    "nd.softmax": gd.softmax,
    "nd.rem": lambda z: gd.fmod(z, z),
    "nd.argmax": gd.argmax,
    "nd.sort": gd.sort,
    "nd.erf": gd.erf,
    "nd.complex": lambda z: gd.complex(z, z),
    "nd.clamp": lambda z: gd.clip(z, 0, 1),
}


@pytest.mark.parametrize("op", REFUSED)
def test_what_has_no_meaning_is_refused(op: str):
    with pytest.raises(gd.GradirError, match="complex") as raised:
        gd.jit(REFUSED[op])(Z)
    assert raised.value.op == op


def test_a_complex_loss_is_refused():
    with pytest.raises(gd.GradirError, match="scalar"):
        gd.grad(gd.sum)(Z)


def test_a_complex_number_for_a_real_input_is_refused():
    compiled = gd.jit(lambda x: x + 1)
    module = compile_module("func.func @f(%x: tensor<f32>) -> tensor<f32> {\n  return %x : tensor<f32>\n}")
    assert compiled(1j) == 1 + 1j
    with pytest.raises(gd.GradirError, match="cannot hold") as raised:
        module["f"](1j)
    assert raised.value.code == "RT003"
