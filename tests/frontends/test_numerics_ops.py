"""docs/numerics.md: rows about bits, complex numbers, order, scatter, linear algebra, Fourier and random numbers, in every setting."""

from __future__ import annotations

from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import gradir as gd
from gradir import GradirError
from gradir.frontends.stablehlo import import_text
from gradir.ir.text import print_module
from tests.frontends.numerics_settings import SETTINGS, Run, bits_equal, run_function, run_text

BF16 = ml_dtypes.bfloat16
INF, NAN = np.inf, np.nan


@pytest.fixture(params=SETTINGS)
def run(request: pytest.FixtureRequest) -> Run:
    """run(f, *arrays)"""
    return partial(run_function, request.param)


@pytest.fixture(params=SETTINGS)
def text(request: pytest.FixtureRequest) -> Run:
    """text(module, *arrays)"""
    return partial(run_text, request.param)


def f32(*values: Any) -> np.ndarray[Any, Any]:
    return np.array(values[0] if len(values) == 1 and isinstance(values[0], list) else values, np.float32)


def c64(*values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, np.complex64)


# Types and rounding


def test_to_bool_of_complex_looks_at_the_real_part(text: Run) -> None:
    module = "func.func @f(%x: tensor<3xcomplex<f32>>) -> tensor<3xi1> {\n  %y = nd.convert %x : tensor<3xcomplex<f32>> -> tensor<3xi1>\n  return %y : tensor<3xi1>\n}"
    (found,) = text(module, c64(0.5, 1j, 0))
    assert found.tolist() == [True, False, False]


def test_complex_to_real_takes_the_real_part(text: Run) -> None:
    module = "func.func @f(%x: tensor<2xcomplex<f32>>) -> tensor<2xf32> {\n  %y = nd.convert %x : tensor<2xcomplex<f32>> -> tensor<2xf32>\n  return %y : tensor<2xf32>\n}"
    bits_equal(text(module, c64(1 + 2j, complex(-0.0, 3)))[0], [1, -0.0])


def test_bitcast_moves_bits(run: Run) -> None:
    words = np.array([0x7FC00001, 0xFFC12345, 0x80000000, 1, 0x7F800001], np.uint32)
    as_float = run(lambda x: gd.bitcast_convert(x, gd.float32), words)
    assert as_float.view(np.uint32).tolist() == words.tolist()
    found = run(lambda x: gd.bitcast_convert(x, gd.uint8), np.array([0x04030201], np.uint32))
    assert found.tolist() == [[1, 2, 3, 4]]  # little-endian
    assert run(lambda x: gd.bitcast_convert(x, gd.uint32), np.array([[1, 2, 3, 4]], np.uint8)).tolist() == [0x04030201]


def test_reduce_precision_flushes_denormals(run: Run) -> None:
    tiny, small = 2.0**-15, 2.0**-14  # the smallest normal number of f16 is 2^-14
    found = run(lambda x: gd.reduce_precision(x, 5, 10), f32(tiny, -tiny, small, 70000, 1 + 2**-11, 1 + 3 * 2**-11, NAN))
    bits_equal(found, [0.0, -0.0, small, INF, 1, 1 + 2**-9, NAN])


# Elementwise


def test_total_order() -> None:
    """-NaN < -inf < -1 < -0 < +0 < 1 < inf < NaN"""
    order = np.array([0xFFC00000, 0xFF800000, 0xBF800000, 0x80000000, 0, 0x3F800000, 0x7F800000, 0x7FC00000], np.uint32).view(np.float32)
    module = print_module(
        import_text("""
module {
  func.func public @f(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xi1> {
    %0 = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
    return %0 : tensor<8xi1>
  }
}""")
    )
    for setting in SETTINGS:
        assert run_text(setting, module, order, np.roll(order, -1))[0].tolist() == [True] * 7 + [False]
        assert not run_text(setting, module, order, order)[0].any()


def test_complex_corners(run: Run) -> None:
    bits_equal(run(gd.abs, c64(3e30 + 4e30j, complex(INF, NAN))), [np.float32(5e30), INF])
    big = c64(1e38 + 1e38j)
    np.testing.assert_allclose(run(lambda x, y: x / y, big, big), [1])
    down = np.array([-1], np.complex64)
    down.imag = -0.0
    np.testing.assert_allclose(run(gd.sqrt, down), [-1j])
    np.testing.assert_allclose(run(gd.sqrt, c64(-1)), [1j])
    np.testing.assert_allclose(run(gd.log, down).imag, [-np.pi], rtol=1e-6)
    with pytest.raises(GradirError):
        run(lambda x, y: x < y, big, big)
    assert run(lambda x, y: x == y, big, big).tolist() == [True]


# Shape, indexing, order

SCATTER = """
func.func @f(%x: tensor<3xf32>, %i: tensor<NxIxi32>, %u: tensor<UPDATES>) -> tensor<3xf32> {
  %r = nd.scatter_general KIND, %x, %i, %u DIMS map [0] : tensor<3xf32>, tensor<NxIxi32>, tensor<UPDATES> -> tensor<3xf32>
  return %r : tensor<3xf32>
}
"""


def scatter(kind: str, windows: bool, n: int) -> str:
    updates, dims = (f"{n}x2xf32", "window [1]") if windows else (f"{n}xf32", "inserted [0]")
    return SCATTER.replace("KIND", kind).replace("UPDATES", updates).replace("DIMS", dims).replace("NxI", f"{n}x1")


def test_scatter_keeps_the_rest_of_a_window(text: Run) -> None:
    (found,) = text(scatter("set", True, 1), f32(0, 0, 0), np.array([[2]], np.int32), f32([[10, 20]]))
    bits_equal(found, [0, 0, 10])
    (found,) = text(scatter("add", True, 1), f32(0, 0, 0), np.array([[-1]], np.int32), f32([[10, 20]]))
    bits_equal(found, [20, 0, 0])


def test_scatter_of_duplicates_in_order(text: Run) -> None:
    x, at, u = f32(1, 1, 1), np.array([[1], [1], [0], [1]], np.int32), f32(5, 6, 7, 8)
    for kind, expected in {"set": [7, 8, 1], "add": [8, 20, 1], "mul": [7, 240, 1], "max": [7, 8, 1], "min": [1, 1, 1]}.items():
        bits_equal(text(scatter(kind, False, 4), x, at, u)[0], expected)


def test_sort_is_stable_and_nan_is_greatest(run: Run) -> None:
    x = f32(2, NAN, -0.0, 0.0, INF, -NAN, -INF, 2)
    bits_equal(run(gd.sort, x), [-INF, -0.0, 0.0, 2, 2, INF, NAN, NAN])
    assert run(gd.argsort, x).tolist() == [6, 2, 3, 0, 7, 4, 1, 5]
    assert run(lambda x: gd.argsort(x, descending=True), x).tolist() == [1, 5, 4, 0, 7, 2, 3, 6]
    values, at = run(lambda x: gd.top_k(x, 4), x)
    bits_equal(values, [NAN, NAN, INF, 2])
    assert at.tolist() == [1, 5, 4, 0]


def test_cholesky_reads_one_triangle(text: Run) -> None:
    module = "func.func @f(%a: tensor<2x2xf32>) -> tensor<2x2xf32> {\n  %l = nd.cholesky %a lower : tensor<2x2xf32> -> tensor<2x2xf32>\n  return %l : tensor<2x2xf32>\n}"
    bits_equal(text(module, f32([[4, 99], [2, 5]]))[0], [[2, 0], [1, 2]])
    assert np.isnan(text(module, f32([[1, 0], [2, 1]]))[0]).any()


def test_fft_scales_the_inverse(run: Run) -> None:
    x = c64(1, 2, 3, 4)
    np.testing.assert_allclose(run(gd.fft.fft, x)[0], 10)
    np.testing.assert_allclose(run(lambda x: gd.fft.ifft(gd.fft.fft(x)), x), x, rtol=1e-6)
    half = c64(5 + 7j, 1 + 1j, 2 + 9j)
    np.testing.assert_allclose(run(lambda x: gd.fft.irfft(x, 4), half), np.fft.irfft(np.array([5, 1 + 1j, 2]), 4), rtol=1e-6)


def test_random_bits(run: Run) -> None:
    found = run(lambda: gd.random.bits(gd.random.key(0), (4,)))
    assert [f"{word:08x}" for word in found] == ["f29a4fa7", "fa843692", "55110e28", "77faa835"]


# Reductions and composites

FOLD = """
module {
  func.func public @f(%x: tensor<SIZExf32>, %i: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.reduce(%x init: %i) applies stablehlo.add across dimensions = [0] : (tensor<SIZExf32>, tensor<f32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}"""


def test_an_initial_value_is_combined_once(text: Run) -> None:
    for values, expected in (([], 5), ([1, 2], 8)):
        module = print_module(import_text(FOLD.replace("SIZE", str(len(values)))))
        bits_equal(text(module, f32(list(values)), np.float32(5))[0], expected)
    ordered = """
func.func @f(%x: tensor<3xf32>, %i: tensor<f32>) -> tensor<f32> {
  %r = nd.reduce %x init %i dims [0] by (%a: tensor<f32>, %b: tensor<f32>) {
    %v = nd.sub %a, %b : tensor<f32>
    nd.yield %v : tensor<f32>
  } : tensor<3xf32>, tensor<f32> -> tensor<f32>
  return %r : tensor<f32>
}"""
    bits_equal(text(ordered, f32(1, 2, 4), np.float32(10))[0], 3)


def test_norms(run: Run) -> None:
    one, zero = np.ones(3, np.float32), np.zeros(3, np.float32)
    row = f32([[8e37, -8e37, 4e37]])
    np.testing.assert_allclose(run(lambda x: gd.layer_norm(x, one, zero), row), [[0.980581, -1.372813, 0.392232]], rtol=1e-6)
    constant = np.full((4, 3), 0.1, np.float32)
    bits_equal(run(lambda x: gd.batch_norm(x, one, zero)[0], constant), np.zeros((4, 3)))
    np.testing.assert_allclose(run(lambda x: gd.rms_norm(x, one), row), row / np.sqrt((row.astype(float) ** 2).mean()), rtol=1e-6)


def test_attention_of_a_masked_row(run: Run) -> None:
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, 2, 1, 4)).astype(np.float32) for _ in range(3))
    mask = np.array([[True, True], [False, False]]).reshape(1, 1, 2, 2)
    found = run(lambda q, k, v: gd.attention(q, k, v, mask=mask), q, k, v)
    bits_equal(found[0, 1], np.zeros((1, 4)))
    for gradient in run(gd.grad(lambda q, k, v: gd.sum(gd.attention(q, k, v, mask=mask)[0, 1]), (0, 1, 2)), q, k, v):
        bits_equal(np.abs(gradient), np.zeros_like(gradient))


def test_pooling_in_ceil_mode(run: Run) -> None:
    """A window that would start in the right padding is dropped; only elements inside input and padding count."""
    row = f32([1, 2, 3, 4]).reshape(1, 4, 1)
    pool = partial(gd.avg_pool, window=2, strides=3, padding=[(1, 1)], ceil_mode=True)
    np.testing.assert_allclose(run(pool, row).ravel(), [0.5, 3.5])
    image = np.arange(1, 17, dtype=np.float32).reshape(1, 4, 4, 1)
    pool = partial(gd.avg_pool, window=3, strides=2, padding=[(1, 1), (1, 1)], ceil_mode=True)
    expected = [[1.5556, 3.3333, 2], [6.3333, 11, 6], [4.5, 7.5, 4]]
    np.testing.assert_allclose(run(pool, image)[0, :, :, 0], expected, atol=1e-4)
    largest = partial(gd.max_pool, window=2, padding=[(1, 1)])
    bits_equal(run(largest, f32([-1, -2]).reshape(1, 2, 1)).ravel(), [-1, -2])


def test_f8_ops_are_computed_in_f32(run: Run) -> None:
    """Rounded after each op: (16 + 1) - 16 is 0 where 17 is halfway between neighbours, and 448 + 1 stays 448."""
    x = np.array([16, 448], ml_dtypes.float8_e4m3fn)
    one = np.ones(2, ml_dtypes.float8_e4m3fn)
    bits_equal(run(lambda x, y: (x + y) - x, x, one).astype(np.float32), [0, 0])


def test_f8_overflow(run: Run) -> None:
    x = f32(464, 465, INF, 448)
    bits_equal(run(lambda x: x.astype(ml_dtypes.float8_e4m3fn), x).astype(np.float32), [448, NAN, NAN, 448])
    bits_equal(run(lambda x: x.astype(ml_dtypes.float8_e5m2), f32(61440, 61439)).astype(np.float32), [INF, 57344])


def test_f8_saturates_where_convert_says_so(text: Run) -> None:
    module = "func.func @f(%x: tensor<3xf32>) -> tensor<3xf8E4M3FN> {\n  %y = nd.convert %x saturate : tensor<3xf32> -> tensor<3xf8E4M3FN>\n  return %y : tensor<3xf8E4M3FN>\n}"
    bits_equal(text(module, f32(INF, 1000, -465))[0].astype(np.float32), [448, 448, -448])


def test_quantize_rounds_after_adding_zero(run: Run) -> None:
    found = run(lambda x: gd.quantize(x, np.float32(1), np.int8(1)), f32(0.5, NAN, 1000, -1000, 1.5))
    assert found.tolist() == [2, 0, 127, -128, 2]
    assert found.dtype == np.int8
