"""`gradir.linalg` against numpy, in f32, f64 and complex, and its derivatives: rules of docs/numerics.md, and JAX where it is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir import linalg
from gradir.errors import GradirError
from tests.frontends_stablehlo.jax_reference import needs_jax

RNG = np.random.default_rng(7)
A = RNG.standard_normal((2, 4, 4)) + 3 * np.eye(4)
B = RNG.standard_normal((2, 4, 3))
SPD = A @ A.transpose(0, 2, 1)
Z = A + 1j * RNG.standard_normal((2, 4, 4))
N = np.linalg

CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]] = {
    "cholesky": (linalg.cholesky, N.cholesky, (SPD,)),
    "cholesky upper": (
        lambda x: linalg.cholesky(x, upper=True),
        lambda x: N.cholesky(x).swapaxes(-1, -2).conj(),
        (Z @ Z.conj().swapaxes(-1, -2),),
    ),
    "solve": (linalg.solve, N.solve, (A, B)),
    "solve vector": (linalg.solve, N.solve, (A[0], B[0, :, 0])),
    "solve broadcast": (linalg.solve, N.solve, (A[0], B)),
    "solve complex": (linalg.solve, N.solve, (Z, B)),
    "inv": (linalg.inv, N.inv, (Z,)),
    "det": (linalg.det, N.det, (-A,)),
    "det complex": (linalg.det, N.det, (Z,)),
    "slogdet": (linalg.slogdet, lambda x: tuple(N.slogdet(x)), (-A,)),
    "qr": (linalg.qr, lambda x: tuple(N.qr(x)), (B,)),
    "qr complete": (lambda x: linalg.qr(x, "complete"), lambda x: tuple(N.qr(x, "complete")), (B,)),
    "eigvalsh": (linalg.eigvalsh, N.eigvalsh, (Z @ Z.conj().swapaxes(-1, -2),)),
    "svd values": (lambda x: linalg.svd(x, compute_uv=False), lambda x: N.svd(x, compute_uv=False), (B,)),
    "lstsq": (linalg.lstsq, lambda a, b: N.lstsq(a, b, rcond=None)[0], (B[0], B[1])),
    "lstsq wide": (linalg.lstsq, lambda a, b: N.lstsq(a, b, rcond=None)[0], (B[0].T, B[1, :3, 0])),
    "pinv": (linalg.pinv, N.pinv, (B,)),
    "power": (lambda x: linalg.matrix_power(x, 3), lambda x: N.matrix_power(x, 3), (A,)),
    "power -2": (lambda x: linalg.matrix_power(x, -2), lambda x: N.matrix_power(x, -2), (A,)),
    "power 0": (lambda x: linalg.matrix_power(x, 0), lambda x: N.matrix_power(x, 0), (A,)),
    **{
        f"norm {o}": (lambda x, o=o: linalg.norm(x, o, axis=1), lambda x, o=o: N.norm(x, o, axis=1), (A,))
        for o in (None, 0, 1, 2, 3, np.inf, -np.inf)
    },
    **{
        f"matrix norm {o}": (lambda x, o=o: linalg.norm(x, o, axis=(0, 2)), lambda x, o=o: N.norm(x, o, axis=(0, 2)), (A,))
        for o in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)
    },
}


@pytest.mark.parametrize("single", [True, False], ids=["f32", "f64"])
@pytest.mark.parametrize("name", CASES)
def test_values(name: str, single: bool) -> None:
    ours, theirs, args = CASES[name]
    given = [x.astype((np.complex64 if x.dtype.kind == "c" else np.float32) if single else x.dtype) for x in args]
    found, expected = gd.jit(ours)(*given), theirs(*args)
    pairs = list(zip(found, expected)) if isinstance(expected, tuple) else [(found, expected)]
    for x, y in pairs:
        y = np.asarray(y)
        assert x.shape == y.shape and x.dtype.itemsize * (2 if single else 1) == y.dtype.itemsize
        np.testing.assert_allclose(x, y, rtol=2e-4 if single else 1e-10, atol=(2e-4 if single else 1e-10) * np.abs(y).max())


def test_vectors_of_eigh_and_svd() -> None:
    for x in (SPD, Z @ Z.conj().swapaxes(-1, -2)):
        w, v = gd.jit(linalg.eigh)(x)
        np.testing.assert_allclose(x @ v, v * w[:, None, :], atol=1e-10)
        first = np.take_along_axis(v, np.argmax(np.abs(v) >= 0.5 * np.abs(v).max(-2, keepdims=True), -2)[:, None, :], -2)
        assert (first.real > 0).all() and (abs(first.imag) < 1e-12).all()
    for x in (B, B.swapaxes(-1, -2), Z):
        u, s, vh = gd.jit(lambda x: linalg.svd(x, full_matrices=False))(x)
        np.testing.assert_allclose((u * s[:, None, :]) @ vh, x, atol=1e-10)
        u, _, vh = gd.jit(linalg.svd)(x)
        np.testing.assert_allclose(u @ u.conj().swapaxes(-1, -2), np.broadcast_to(np.eye(u.shape[-1]), u.shape), atol=1e-10)
        np.testing.assert_allclose(vh @ vh.conj().swapaxes(-1, -2), np.broadcast_to(np.eye(vh.shape[-1]), vh.shape), atol=1e-10)


def test_solve_triangular_reads_one_triangle() -> None:
    for lower in (True, False):
        for trans in ("N", "T", "C"):
            for left in (True, False):
                t = (np.tril if lower else np.triu)(Z[0])
                op = {"N": t, "T": t.T, "C": t.conj().T}[trans]
                b = B[0].astype(complex) if left else B[0].T.astype(complex)
                expected = N.solve(op, b) if left else N.solve(op.T, b.T).T
                found = gd.jit(lambda a, b, k=(lower, trans, left): linalg.solve_triangular(a, b, lower=k[0], trans=k[1], left=k[2]))(
                    Z[0], b
                )
                np.testing.assert_allclose(found, expected, atol=1e-10)


def test_what_has_no_factor_is_nan() -> None:
    bad = gd.jit(linalg.cholesky)(np.array([[1, 2], [2, 1]], np.float32))
    np.testing.assert_array_equal(np.isnan(bad), [[True, False], [True, True]])
    assert bad[0, 1] == 0
    assert np.isnan(gd.jit(linalg.eigvalsh)(np.array([[np.nan, 0], [0, 1]], np.float32))).all()
    sign, size = gd.jit(linalg.slogdet)(np.zeros((2, 2), np.float32))
    assert sign == 0 and size == -np.inf


def test_derivatives_at_equal_values() -> None:
    """docs/numerics.md: values fine, vectors NaN unless their cotangent is 0."""
    x = np.eye(3)
    np.testing.assert_allclose(gd.grad(lambda x: gd.sum(linalg.eigvalsh(x) ** 2))(x), 2 * x)
    np.testing.assert_allclose(gd.grad(lambda x: gd.sum(linalg.svd(x, compute_uv=False)))(x), x)
    assert np.isnan(gd.grad(lambda x: gd.sum(gd.sin(linalg.eigh(x)[1])))(x)).any()


def test_norm_at_zero() -> None:
    zero = np.zeros(3, np.float32)
    np.testing.assert_array_equal(gd.grad(linalg.norm)(zero), zero)
    np.testing.assert_array_equal(gd.grad(lambda x: linalg.norm(x) ** 2)(zero), zero)
    assert gd.jit(linalg.norm)(np.array([3e30, 4e30], np.float32)) == np.float32(5e30)


def test_the_cotangent_of_cholesky_is_symmetric_in_python() -> None:
    g = gd.grad(lambda x: gd.sum(gd.sin(linalg.cholesky(x))))(SPD)
    np.testing.assert_allclose(g, g.swapaxes(-1, -2))


def test_operands_that_are_no_matrices() -> None:
    for function in (linalg.cholesky, linalg.inv, linalg.det, linalg.eigh):
        with pytest.raises(GradirError) as caught:
            gd.jit(function)(B)
        assert caught.value.code == "GR001" and "square" in caught.value.message
    with pytest.raises(GradirError) as caught:
        gd.jit(linalg.qr)(np.ones(3, np.float32))
    assert caught.value.code == "GR001"
    with pytest.raises(GradirError) as caught:
        gd.jit(lambda x: linalg.norm(x, "max"))(np.ones(3, np.float32))
    assert caught.value.code == "GR104"


def test_factorisations_without_a_derivative() -> None:
    def failing(function: Callable[..., Any], x: Any) -> GradirError:
        with pytest.raises(GradirError) as caught:
            gd.grad(function)(x)
        assert caught.value.code == "AD010"
        return caught.value

    assert "reduced" in failing(lambda x: gd.sum(linalg.qr(x, "complete")[0]), B).expected
    assert "square" in failing(lambda x: gd.sum(linalg.svd(x)[0]), B).expected


@needs_jax
def test_derivatives_are_those_of_jax() -> None:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    try:
        pairs: list[tuple[Callable[..., Any], Callable[..., Any], Any]] = [
            (lambda x: gd.sum(gd.sin(linalg.cholesky(x))), lambda x: jnp.sum(jnp.sin(jnp.linalg.cholesky(x))), SPD),
            (lambda x: gd.sum(gd.sin(linalg.inv(x))), lambda x: jnp.sum(jnp.sin(jnp.linalg.inv(x))), A),
            (lambda x: gd.sum(linalg.det(x)), lambda x: jnp.sum(jnp.linalg.det(x)), A),
            (lambda x: gd.sum(linalg.slogdet(x)[1]), lambda x: jnp.sum(jnp.linalg.slogdet(x)[1]), A),
            (lambda x: gd.sum(gd.sin(linalg.qr(x)[0])), lambda x: jnp.sum(jnp.sin(jnp.linalg.qr(x)[0])), B),
            (lambda x: gd.sum(gd.sin(linalg.eigvalsh(x))), lambda x: jnp.sum(jnp.sin(jnp.linalg.eigvalsh(x))), SPD),
            (lambda x: gd.sum(linalg.eigh(x)[1][..., 0] ** 4), lambda x: jnp.sum(jnp.linalg.eigh(x)[1][..., 0] ** 4), SPD),
            (lambda x: linalg.norm(x, "nuc", axis=(1, 2))[0], lambda x: jnp.linalg.norm(x[0], "nuc"), B),
            (lambda x: gd.sum(linalg.pinv(x) ** 2), lambda x: jnp.sum(jnp.linalg.pinv(x) ** 2), B),
            (
                lambda x: gd.sum(
                    gd.abs(linalg.cholesky(gd.complex(x, gd.triu(x, 1) - gd.swapaxes(gd.triu(x, 1), -1, -2)) + 20 * gd.eye(4)))
                ),
                lambda x: jnp.sum(
                    jnp.abs(jnp.linalg.cholesky(x + 1j * (jnp.triu(x, 1) - jnp.swapaxes(jnp.triu(x, 1), -1, -2)) + 20 * jnp.eye(4)))
                ),
                SPD,
            ),
        ]
        y = RNG.standard_normal(A.shape)
        for name in ("eigvalsh", "det", "inv", "svd"):  # of complex matrices, by real and imaginary part

            def f(module: Any, linear: Any, x: Any, name: str = name) -> Any:
                z = module.add(x, 1j * (x * y + 1))
                options = {"compute_uv": False} if name == "svd" else {}
                return module.sum(module.abs(getattr(linear, name)(z, **options)) ** 2)

            pairs.append((lambda x, f=f: f(gd, linalg, x), lambda x, f=f: f(jnp, jnp.linalg, x), A))
        for ours, theirs, x in pairs:
            np.testing.assert_allclose(gd.grad(ours)(x), jax.grad(theirs)(x), rtol=1e-7, atol=1e-9)
    finally:
        jax.config.update("jax_enable_x64", False)


@pytest.mark.parametrize(("shape", "axis"), [((0,), None), ((0, 3), 0), ((3, 0), 1), ((0, 0), None)], ids=str)
def test_norm_of_nothing_is_0(shape: tuple[int, ...], axis: int | None) -> None:
    x = np.zeros(shape, np.float32)
    for keepdims in (False, True):
        wanted = np.linalg.norm(x, axis=axis, keepdims=keepdims)
        np.testing.assert_array_equal(gd.linalg.norm(x, axis=axis, keepdims=keepdims), wanted)
        np.testing.assert_array_equal(gd.jit(lambda x: gd.linalg.norm(x, axis=axis, keepdims=keepdims))(x), wanted)  # noqa: B023


@pytest.mark.parametrize("shape", [(), (2, 2, 2)], ids=str)
def test_norms_of_other_arrays_have_no_order(shape: tuple[int, ...]) -> None:
    with pytest.raises(GradirError) as caught:
        gd.linalg.norm(np.ones(shape, np.float32), ord=1)
    assert caught.value.expected == "None for other arrays than vectors and matrices"
