"""`gradir.fft` against numpy: names, sizes, axes, precision; derivatives by their definition; bad use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir import fft
from gradir.errors import GradirError

RNG = np.random.default_rng(3)
X = RNG.standard_normal((2, 4, 6))
Z = X + 1j * RNG.standard_normal(X.shape)
F = np.fft

CASES: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "fft": (lambda m, x: m.fft(x), Z),
    "fft of reals": (lambda m, x: m.fft(x), X),
    "fft cut": (lambda m, x: m.fft(x, 3, axis=1), Z),
    "fft padded": (lambda m, x: m.fft(x, 9, axis=0), Z),
    "ifft": (lambda m, x: m.ifft(x, axis=-2), Z),
    "fft2": (lambda m, x: m.fft2(x), Z),
    "ifft2": (lambda m, x: m.ifft2(x), Z),
    "fftn": (lambda m, x: m.fftn(x), Z),
    "ifftn sizes": (lambda m, x: m.ifftn(x, (3, 5), axes=(2, 0)), Z),
    "rfft": (lambda m, x: m.rfft(x), X),
    "rfft odd": (lambda m, x: m.rfft(x, 5, axis=2), X),
    "rfftn": (lambda m, x: m.rfftn(x, axes=(0, 1)), X),
    "irfft": (lambda m, x: m.irfft(x), Z),
    "irfft odd": (lambda m, x: m.irfft(x, 7), Z),
    "irfftn": (lambda m, x: m.irfftn(x, (2, 4, 9), axes=(0, 1, 2)), Z),
}


@pytest.mark.parametrize("single", [True, False], ids=["f32", "f64"])
@pytest.mark.parametrize("name", CASES)
def test_values(name: str, single: bool) -> None:
    function, x = CASES[name]
    given = x.astype((np.complex64 if x.dtype.kind == "c" else np.float32) if single else x.dtype)
    found, expected = gd.jit(lambda x: function(fft, x))(given), function(F, x)
    assert found.shape == expected.shape and found.dtype.itemsize * (2 if single else 1) == expected.dtype.itemsize
    np.testing.assert_allclose(found, expected, atol=1e-5 if single else 1e-12)


def test_frequencies_and_integers() -> None:
    np.testing.assert_allclose(gd.jit(lambda: (fft.fftfreq(5, 0.5), fft.rfftfreq(6)))()[0], F.fftfreq(5, 0.5), rtol=1e-6)
    np.testing.assert_allclose(gd.jit(fft.rfft)(np.arange(4, dtype=np.int32)), F.rfft(np.arange(4)), atol=1e-6)


def test_a_derivative_is_the_transposed_transform() -> None:
    w = RNG.standard_normal((2, 4, 4))
    g = gd.grad(lambda x: gd.sum(w * gd.abs(fft.rfft(x)) ** 2))(X)
    expected = 2 * np.real(F.ifft(np.concatenate([w * F.rfft(X), np.zeros((2, 4, 2))], -1))) * 6
    np.testing.assert_allclose(g, expected, atol=1e-10)
    kernel = RNG.standard_normal(6)
    convolve = lambda x: gd.sum(fft.irfft(fft.rfft(x) * fft.rfft(kernel)) * w[:, :, :1])
    expected = np.real(F.ifft(F.fft(np.broadcast_to(w[:, :, :1], X.shape)) * np.conj(F.fft(kernel))))
    np.testing.assert_allclose(gd.grad(convolve)(X), expected, atol=1e-10)


def test_the_imaginary_parts_that_irfft_ignores_have_derivative_zero() -> None:
    def f(im: Any) -> Any:
        return gd.sum(fft.irfft(gd.complex(gd.zeros_like(im), im)) ** 2)

    g = gd.grad(f)(np.ones(4))
    assert g[0] == 0 and g[3] == 0 and (g[1:3] != 0).all()


def test_bad_use() -> None:
    for function, code in (
        (lambda x: fft.rfft(gd.complex(x, x)), "GR002"),
        (lambda x: fft.fftn(x, (2,)), "GR104"),
        (lambda x: fft.fftn(x, axes=(0, 0)), "GR104"),
        (lambda x: fft.fft(x, 0), "GR112"),
        (lambda x: fft.fft(x, axis=3), "GR104"),
    ):
        with pytest.raises(GradirError) as caught:
            gd.jit(function)(X)
        assert caught.value.code == code
