"""Linear algebra and transforms in StableHLO: its own ops, LAPACK as JAX calls it, registered names; with jax, whole functions of jax.numpy."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.dialects import custom_calls
from gradir.driver.compile import compile_module
from gradir.errors import GradirError
from gradir.frontends.stablehlo import import_text
from gradir.ir.text import print_module
from gradir.reference import run
from gradir.runtime import library

needs_jax = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="no jax")
RNG = np.random.default_rng(5)
A = (RNG.standard_normal((4, 4)) + 3 * np.eye(4)).astype(np.float32)
SPD = (A @ A.T).astype(np.float32)
B = RNG.standard_normal((4, 2)).astype(np.float32)


def function(body: str, arguments: str, results: str) -> str:
    return f"func.func @main({arguments}) -> {results} {{\n  {body}\n}}\n"


def both(text: str, *inputs: Any) -> Any:
    """What the evaluator gives, and compiled code alike."""
    module = import_text(text)
    expected = run(module, "main", list(inputs))
    for found, value in zip(compile_module(module, cache=False)["main"].flat(*inputs), expected, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-4, atol=1e-5)
    return expected


def test_cholesky_and_triangular_solve() -> None:
    body = '%0 = "stablehlo.cholesky"(%a) <{lower = true}> : (tensor<4x4xf32>) -> tensor<4x4xf32>\n'
    body += "%1 = stablehlo.cholesky %a, lower = false : tensor<4x4xf32>\n"
    body += '%2 = "stablehlo.triangular_solve"(%0, %b) <{left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose TRANSPOSE>}> : (tensor<4x4xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>\n'
    body += "return %0, %1, %2 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x2xf32>"
    types = "(tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x2xf32>)"
    lower, upper, x = both(function(body, "%a: tensor<4x4xf32>, %b: tensor<4x2xf32>", types), SPD, B)
    np.testing.assert_allclose(lower, np.linalg.cholesky(SPD), rtol=1e-4)
    np.testing.assert_allclose(upper, lower.T, rtol=1e-5)
    np.testing.assert_allclose(lower.T @ x, B, atol=1e-4)


@pytest.mark.parametrize(
    ("kind", "length", "takes", "gives", "numpy"),
    [
        ("FFT", "3", "2x3xcomplex<f32>", "2x3xcomplex<f32>", np.fft.fft),
        ("IFFT", "2, 3", "2x3xcomplex<f32>", "2x3xcomplex<f32>", np.fft.ifft2),
        ("RFFT", "5", "2x5xf32", "2x3xcomplex<f32>", np.fft.rfft),
        ("IRFFT", "5", "2x3xcomplex<f32>", "2x5xf32", lambda z: np.fft.irfft(z, 5)),
    ],
)
def test_fft(kind: str, length: str, takes: str, gives: str, numpy: Callable[..., Any]) -> None:
    x = RNG.standard_normal((2, 5 if kind == "RFFT" else 3)).astype(np.float32)
    x = x if kind == "RFFT" else (x + 1j * x[::-1]).astype(np.complex64)
    types = f"(tensor<{takes}>) -> tensor<{gives}>"
    for line in (
        f"%0 = stablehlo.fft %x, type = {kind}, length = [{length}] : {types}",
        f'%0 = "stablehlo.fft"(%x) <{{fft_type = #stablehlo<fft_type {kind}>, fft_length = array<i64: {length}>}}> : {types}',
    ):
        (found,) = both(function(f"{line}\n  return %0 : tensor<{gives}>", f"%x: tensor<{takes}>", f"tensor<{gives}>"), x)
        np.testing.assert_allclose(found, numpy(x), atol=1e-5)


def test_halves_are_computed_in_f32() -> None:
    line = '%0 = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, unit_diagonal = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> : (tensor<2x2xbf16>, tensor<2x1xbf16>) -> tensor<2x1xbf16>'
    text = print_module(
        import_text(function(line + "\n  return %0 : tensor<2x1xbf16>", "%a: tensor<2x2xbf16>, %b: tensor<2x1xbf16>", "tensor<2x1xbf16>"))
    )
    assert "nd.triangular_solve %1, %2" in text or "tensor<2x2xf32>, tensor<2x1xf32> -> tensor<2x1xf32>" in text


def lapack(name: str, config: str, operand: str, results: str, extra: str = "") -> str:
    return f"stablehlo.custom_call @lapack_{name}_ffi(%a{extra}) {{mhlo.backend_config = {{{config}}}}} : ({operand}) -> ({results})"


def test_lapack_of_jax() -> None:
    """(factor, info) and the like: info is 0, or says what failed."""
    m, i = "tensor<4x4xf32>", "tensor<i32>"
    body = f"%0:2 = {lapack('spotrf', 'uplo = 76 : ui8', m, f'{m}, {i}')}\n  return %0#0, %0#1 : {m}, {i}"
    factor, info = both(function(body, f"%a: {m}", f"({m}, {i})"), SPD)
    assert info == 0 and np.allclose(factor, np.linalg.cholesky(SPD), rtol=1e-4)
    assert both(function(body, f"%a: {m}", f"({m}, {i})"), -SPD)[1] == 1
    p = "tensor<4xi32>"
    body = f"%0:3 = {lapack('sgetrf', '', m, f'{m}, {p}, {i}')}\n  return %0#0, %0#1, %0#2 : {m}, {p}, {i}"
    _factors, pivots, info = both(function(body, f"%a: {m}", f"({m}, {p}, {i})"), A)
    assert info == 0 and pivots.min() >= 1
    singular = A.copy()
    singular[:, 2] = 0
    assert both(function(body, f"%a: {m}", f"({m}, {p}, {i})"), singular)[2] == 3
    v = "tensor<4xf32>"
    body = f"%0:3 = {lapack('ssyevd', 'mode = 86 : ui8, uplo = 76 : ui8', m, f'{m}, {v}, {i}')}\n  return %0#0, %0#1, %0#2 : {m}, {v}, {i}"
    vectors, values, info = both(function(body, f"%a: {m}", f"({m}, {v}, {i})"), SPD)
    assert info == 0
    np.testing.assert_allclose(SPD @ vectors, vectors * values, atol=1e-3)


def test_placement_is_the_operand_and_a_registered_name_is_called() -> None:
    gd.register_custom_call("my_target", lambda x, scale: (scale * x).astype(x.dtype), shape=lambda x, scale: x)
    try:
        kind = "tensor<4x2xf32>"
        body = f"%0 = stablehlo.custom_call @Sharding(%x) : ({kind}) -> {kind}\n"
        body += f"  %1 = stablehlo.custom_call @my_target(%0) {{mhlo.backend_config = {{scale = 3.0 : f64}}}} : ({kind}) -> {kind}\n  return %1 : {kind}"
        np.testing.assert_array_equal(both(function(body, f"%x: {kind}", kind), B)[0], 3 * B)
    finally:
        custom_calls.CALLS.pop("my_target")
        library.ROWS.pop("my_target")


def test_an_unknown_name_is_not_supported() -> None:
    body = "%0 = stablehlo.custom_call @lapack_sgeev_ffi(%x) : (tensor<2xf32>) -> tensor<2xf32>\n"
    body += "  %1 = stablehlo.custom_call @mystery(%0) : (tensor<2xf32>) -> tensor<2xf32>\n  return %1 : tensor<2xf32>"
    with pytest.raises(GradirError) as caught:
        import_text(function(body, "%x: tensor<2xf32>", "tensor<2xf32>"))
    assert caught.value.code == "GR120"
    assert "@lapack_sgeev_ffi" in caught.value.found and "@mystery, which is not registered" in caught.value.found


@needs_jax
def test_programs_of_jax() -> None:
    import jax
    import jax.numpy as jnp
    import jax.scipy.linalg as jsl

    z = (A + 1j * RNG.standard_normal((4, 4))).astype(np.complex64)
    h = (z @ z.conj().T).astype(np.complex64)
    t = RNG.standard_normal((5, 3)).astype(np.float32)
    batch = np.stack([SPD, 2 * SPD])

    def rebuilt(w: Any, v: Any) -> Any:
        return (v * w) @ v.T

    programs: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
        (jnp.linalg.cholesky, (SPD,)),
        (jnp.linalg.cholesky, (-SPD,)),
        (jnp.linalg.cholesky, (batch,)),
        (jnp.linalg.cholesky, (h,)),
        (lambda a, b: jsl.solve_triangular(a, b, lower=True, trans=1), (A, B)),
        (lambda a, b: jsl.solve_triangular(a, b, unit_diagonal=True), (A, B)),
        (jax.lax.linalg.lu, (A,)),
        (jax.lax.linalg.lu, (batch,)),
        (jnp.linalg.qr, (t,)),
        (lambda x: jnp.linalg.qr(x, mode="complete"), (t,)),
        (jnp.linalg.qr, (z,)),
        (jnp.linalg.eigvalsh, (h,)),
        (lambda x: rebuilt(*jnp.linalg.eigh(x)), (SPD,)),
        (lambda x: jnp.linalg.svd(x, compute_uv=False), (t,)),
        (jnp.linalg.solve, (A, B)),
        (jnp.linalg.inv, (A,)),
        (jnp.linalg.det, (A,)),
        (lambda x: tuple(jnp.linalg.slogdet(x)), (A,)),
        (lambda a, b: jnp.linalg.lstsq(a, b)[0], (t, t[:, 0])),
        (jnp.linalg.pinv, (t,)),
        (jnp.fft.fft, (z,)),
        (jnp.fft.ifft2, (z,)),
        (jnp.fft.rfft, (t,)),
        (lambda x: jnp.fft.irfft(x, 5), (z,)),
        (jax.grad(lambda x: jnp.sum(jnp.sin(jnp.linalg.cholesky(x)))), (SPD,)),
        (jax.grad(lambda x: jnp.sum(jnp.linalg.eigh(x)[1] ** 2 * jnp.arange(4.0))), (SPD,)),
        (jax.grad(lambda x: jnp.sum(jnp.sin(jnp.linalg.qr(x)[0]))), (t,)),
        (jax.grad(jnp.linalg.det), (A,)),
    ]
    for f, inputs in programs:
        text = jax.jit(f).lower(*inputs).as_text()
        found = compile_module(import_text(text), cache=False)["main"].flat(*inputs)
        for x, y in zip(found, jax.tree.leaves(jax.jit(f)(*inputs)), strict=True):
            np.testing.assert_allclose(x, np.asarray(y), rtol=1e-3, atol=1e-3)


@needs_jax
def test_an_imported_function_is_differentiated() -> None:
    import jax
    import jax.numpy as jnp

    def loss(x: Any) -> Any:
        return jnp.sum(jnp.linalg.cholesky(x) ** 3)

    found = gd.grad(import_text(jax.jit(loss).lower(SPD).as_text())["main"])(SPD)
    np.testing.assert_allclose(found, jax.grad(loss)(SPD), rtol=2e-3, atol=2e-3)
