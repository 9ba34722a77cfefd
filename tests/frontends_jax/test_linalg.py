"""`gradir.frontends.jax.jit` of functions of jax.numpy.linalg and jax.numpy.fft, complex constants among them."""

from __future__ import annotations

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

from gradir.frontends import jax as gj  # noqa: E402

RNG = np.random.default_rng(1)
A = (RNG.standard_normal((5, 5)) + 4 * np.eye(5)).astype(np.float32)
Z = (A + 1j * RNG.standard_normal((5, 5))).astype(np.complex64)


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (jnp.linalg.inv, A),
        (jax.grad(lambda x: jnp.linalg.slogdet(x)[1]), A),
        (lambda x: jnp.linalg.eigvalsh(x @ x.T), A),
        (lambda z: jnp.fft.ifft(jnp.fft.fft(z) * (2 + 1j)), Z),
        (lambda z: z * np.arange(5000).astype(np.complex64)[:, None, None].sum() + 1j, Z),
        (lambda z: z[0, 0] + (np.arange(3000) * (1 - 2j)).astype(np.complex64), Z),
    ],
    ids=["inv", "slogdet", "eigvalsh", "fft", "complex splat", "large complex constant"],
)
def test_as_jax_computes_it(f, x) -> None:
    np.testing.assert_allclose(np.asarray(gj.jit(f)(x)), np.asarray(jax.jit(f)(x)), rtol=1e-3, atol=1e-3)
