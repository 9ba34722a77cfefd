"""docs/numerics.md: rows that speak of programs and of numpy-like functions rather than of one op, in every setting."""

from __future__ import annotations

from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import gradir as gd
from gradir import GradirError
from gradir.driver.compile import compile_module
from gradir.ir.text import parse_module
from gradir.reference import run as evaluate_module
from tests.frontends.numerics_settings import SETTINGS, Run, bits_equal, run_function

BF16 = ml_dtypes.bfloat16
INF, NAN = np.inf, np.nan


def f32(*values: Any) -> np.ndarray[Any, Any]:
    return np.array(values[0] if len(values) == 1 and isinstance(values[0], list) else values, np.float32)


@pytest.fixture(params=SETTINGS)
def run(request: pytest.FixtureRequest) -> Run:
    """run(f, *arrays): the function evaluated op by op, or compiled with a setting."""
    return partial(run_function, request.param)


# Types and rounding


def test_narrow_floats_round_after_each_op_of_a_fused_kernel(run: Run) -> None:
    x = np.array([256] * 40, BF16)
    bits_equal(run(lambda x: (x + BF16(1)) - x, x), np.zeros(40))
    half = np.array([60000, 2049], np.float16)
    bits_equal(run(lambda x: (x + x) - x, half), [INF, 2049 * 2 - 2049 - 1])


def test_composites_round_once(run: Run) -> None:
    """In bf16 every step of a softmax rounded by itself would be far off the one rounding of the exact result."""
    x = np.linspace(-3, 3, 24).astype(BF16).reshape(2, 12)
    wide = x.astype(np.float64)
    exact = np.exp(wide) / np.exp(wide).sum(1, keepdims=True)
    np.testing.assert_array_equal(run(gd.softmax, x).astype(np.float64), exact.astype(np.float32).astype(BF16).astype(np.float64))


def test_nothing_is_reassociated(run: Run) -> None:
    big, one = f32(1e8), f32(1)
    bits_equal(run(lambda a, b: (a + b) - a, big, one), [0])
    bits_equal(run(lambda a, b: (a - a) + b, big, one), [1])
    bits_equal(run(lambda a, b: (b / a) * a, f32(3), f32(1)), [np.float32(1) / np.float32(3) * np.float32(3)])


def test_adding_zero_is_no_identity(run: Run) -> None:
    bits_equal(run(lambda x: 1 / (gd.ceil(x) + f32(0)), f32(-0.5)), [INF])
    bits_equal(run(lambda x: 1 / gd.ceil(x), f32(-0.5)), [-INF])


def test_twice_gives_the_same_bits(run: Run) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((63, 65)).astype(np.float32), rng.standard_normal((65, 33)).astype(np.float32)
    f = lambda x, w: gd.sum(gd.softmax(gd.tanh(x @ w)), 0)
    assert run(f, x, w).tobytes() == run(f, x, w).tobytes()


def test_arguments_of_programs_are_unchanged(run: Run) -> None:
    x = f32([3, 1, 2, 0])
    kept = x.tobytes()
    run(lambda x: gd.fori_loop(0, 3, lambda i, s: gd.dynamic_update_slice(s, f32([9]), [i]) * 2, x), x)
    assert x.tobytes() == kept


def test_what_is_exact_is_the_same_everywhere(run: Run) -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(-(2**31), 2**31, 257).astype(np.int32)
    f = lambda x: (x * x ^ (x >> 3), x.astype(np.int8), x.astype(np.float32), gd.where(x > 5, x, -x), gd.flip(x)[3:40:7])
    with gd.eager():
        expected = gd.tree_map(np.asarray, f(gd.asarray(x)))
    for found, want in zip(run(f, x), expected, strict=True):
        assert found.dtype == want.dtype and found.tobytes() == want.tobytes()


def test_an_empty_tensor_may_not_be_read() -> None:
    text = "func.func @f() -> tensor<2xf32> {\n  %e = nd.empty : tensor<2xf32>\n  %r = nd.neg %e : tensor<2xf32>\n  return %r : tensor<2xf32>\n}"
    with pytest.raises(GradirError, match=r"never written|empty"):
        evaluate_module(parse_module(text), "f", [])


# Elementwise


def test_round_of_frontends_is_the_even_one(run: Run) -> None:
    bits_equal(run(gd.round, f32(0.5, 1.5, 2.5, -0.5, 0.49999997)), [0, 2, 2, -0.0, 0])
    bits_equal(run(gd.round_away, f32(0.5, -0.5, 2.5, 0.49999997)), [1, -1, 3, 0])


def test_floor_mod_and_floor_div(run: Run) -> None:
    bits_equal(run(gd.mod, f32(-5, -0.0, -5, 5, 5), f32(3, 3, INF, -3, INF)), [1, 0.0, INF, -1, 5])
    bits_equal(run(gd.floor_divide, f32(1, -7), f32(0.1, 2)), [9, -4])
    i32 = lambda *v: np.array(v, np.int32)
    low = -(2**31)
    np.testing.assert_array_equal(run(gd.floor_divide, i32(-7, 7, 5, low), i32(2, -2, 0, -1)), [-4, -4, -1, low])
    np.testing.assert_array_equal(run(gd.mod, i32(-7, 7, 5, low), i32(2, -2, 0, -1)), [1, -1, 5, 0])


def test_no_subtraction_of_truth_values() -> None:
    x = np.array([True, False])
    with pytest.raises((GradirError, TypeError), match=r"bool|i1"):
        gd.jit(lambda x: x - x)(x)
    with pytest.raises((GradirError, TypeError), match=r"bool|i1"):
        gd.jit(lambda x: -x)(x)


# Shape, indexing, order


def test_slices_mean_what_numpy_says(run: Run) -> None:
    x = np.arange(10, dtype=np.float32)
    for at in (slice(9, 0, -1), slice(9, 0, -3), slice(0, 5, -1), slice(-3, None), slice(None, None, -2), slice(20, 2, -4), slice(3, 3)):
        np.testing.assert_array_equal(run(lambda x, at=at: x[at], x), x[at])
    np.testing.assert_array_equal(run(lambda x, i: x[i], x, np.int32(-2)), 8)


def test_indices_beyond_their_type_are_numbers(run: Run) -> None:
    """200 does not fit an i8 and the last start of a slice of 2 of 300 is 298: clamping happens on the number."""
    x = np.arange(300, dtype=np.float32)
    np.testing.assert_array_equal(run(lambda x, i: gd.dynamic_slice(x, [i], [2]), x, np.uint8(255)), [255, 256])
    np.testing.assert_array_equal(run(lambda x, i: gd.dynamic_slice(x, [i], [2]), x, np.int8(-3)), [0, 1])
    np.testing.assert_array_equal(run(lambda x, i: gd.dynamic_slice(x, [i], [2]), x, np.int64(2**40)), [298, 299])


def test_argmax_of_an_empty_axis_is_an_error() -> None:
    with pytest.raises(GradirError, match="0"):
        gd.jit(gd.argmax)(np.zeros((0,), np.float32))
    with pytest.raises(GradirError, match="0"):
        gd.jit(lambda x: gd.take(x, np.array([0], np.int32)))(np.zeros((0,), np.float32))


# Reductions and composites


def test_means_of_many(run: Run) -> None:
    ones = np.ones(70000, np.float16)
    assert run(gd.sum, ones) == INF
    assert run(gd.mean, ones) == 1
    assert run(gd.sum, np.ones(512, BF16)) == 512
    assert np.isnan(run(gd.mean, np.zeros(0, np.float32)))
    assert np.isnan(run(gd.var, np.zeros(0, np.float32)))


def test_frontends_raise_what_they_promise() -> None:
    for f in (gd.max, gd.min):
        with pytest.raises((GradirError, ValueError), match=r"empty|0"):
            gd.jit(f)(np.zeros(0, np.float32))


def test_a_sum_starts_at_plus_zero(run: Run) -> None:
    bits_equal(run(gd.sum, f32(-0.0)), 0.0)


def test_variances_are_shifted(run: Run) -> None:
    assert run(gd.var, f32(1e4, 1e4 + 1)) == 0.25
    bits_equal(
        run(lambda x: gd.layer_norm(x, np.ones(4, np.float32), np.zeros(4, np.float32)), np.full((2, 4), 0.1, np.float32)), np.zeros((2, 4))
    )


def test_losses_are_finite_where_they_can_be(run: Run) -> None:
    big = f32([3.4e38, -3.4e38])
    bits_equal(run(gd.log_softmax, big), [0, -INF])
    none = f32([-INF, -INF])
    bits_equal(run(gd.softmax, none), [0, 0])
    bits_equal(run(gd.log_softmax, none), [-INF, -INF])
    assert run(gd.logsumexp, none) == -INF
    assert run(gd.logsumexp, f32([INF, 0])) == INF
    assert np.isnan(run(gd.softmax, f32([INF, 0]))).any()


# Big sizes: compiled only


def test_a_long_sum_is_exact() -> None:
    ones = np.ones(2**25, np.float32)
    assert gd.jit(gd.sum)(ones) == 33554432


@pytest.mark.full
def test_a_long_mean_is_within_a_millionth() -> None:
    """2^28 elements (1 GB) stand for the row's 3e9 (12 GB)."""
    x = np.full(2**28, 0.1, np.float32)
    np.testing.assert_allclose(gd.jit(gd.mean)(x), np.float32(0.1), rtol=1e-6)


def test_the_same_module_in_one_and_in_two_threads() -> None:
    """Partitions do not depend on scheduling: two runs with two threads agree bit for bit."""
    text = (
        "func.func @f(%x: tensor<511x257xf32>) -> (tensor<511xf32>, tensor<257xf32>) {\n"
        "  %e = nd.exp %x : tensor<511x257xf32>\n"
        "  %a = nd.reduce_sum %e dims [1] : tensor<511x257xf32> -> tensor<511xf32>\n"
        "  %b = nd.reduce_sum %e dims [0] : tensor<511x257xf32> -> tensor<257xf32>\n"
        "  return %a, %b : tensor<511xf32>, tensor<257xf32>\n}"
    )
    x = np.random.default_rng(0).standard_normal((511, 257)).astype(np.float32)
    f = compile_module(text, threads=2, cache=False)["f"]
    first = [r.tobytes() for r in f(x)]
    assert all([r.tobytes() for r in f(x)] == first for _ in range(5))
