"""Sums in another type than that of the factors, convolutions of any layout, transposed convolutions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import gradir as gd

BF16 = np.dtype(ml_dtypes.bfloat16)
RNG = np.random.default_rng(11)


def ints(dtype: Any, *shape: int) -> np.ndarray:
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max, shape, dtype, endpoint=True)


def wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.int64 if x.dtype.kind in "iu" else np.float64)


@pytest.mark.parametrize(("left", "right"), [(np.int8, np.int8), (np.uint8, np.int8), (np.int8, np.uint8), (np.int16, np.int8)])
def test_narrow_integers_are_summed_in_i32(left: Any, right: Any) -> None:
    x, w = ints(left, 5, 70), ints(right, 70, 19)
    found = np.asarray(gd.jit(lambda x, w: gd.dot(x, w, preferred_element_type=np.int32))(x, w))
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, wide(x) @ wide(w))


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), BF16])
def test_narrow_floats_are_summed_and_kept_in_f32(dtype: np.dtype[Any]) -> None:
    x, w = RNG.normal(size=(7, 300)).astype(dtype), RNG.normal(size=(300, 33)).astype(dtype)
    found = np.asarray(gd.jit(lambda x, w: gd.matmul(x, w, preferred_element_type=np.float32))(x, w))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wide(x) @ wide(w), rtol=1e-4, atol=1e-4)
    assert np.any(found != found.astype(dtype).astype(np.float32))


def test_gradient_has_the_factors_type() -> None:
    x, w = RNG.normal(size=(4, 6)).astype(BF16), RNG.normal(size=(6, 3)).astype(BF16)
    f = gd.jit(gd.grad(lambda x, w: gd.sum(gd.dot(x, w, preferred_element_type=np.float32) ** 2), argnums=(0, 1)))
    dx, dw = (np.asarray(g) for g in f(x, w))
    y = wide(x) @ wide(w)
    assert dx.dtype == dw.dtype == BF16
    np.testing.assert_allclose(dx.astype(float), 2 * y @ wide(w).T, rtol=2e-2, atol=2e-2)
    np.testing.assert_allclose(dw.astype(float), 2 * wide(x).T @ y, rtol=2e-2, atol=2e-2)


def test_other_contractions_take_it_too() -> None:
    x, w = ints(np.int8, 2, 3, 4), ints(np.int8, 2, 4, 5)
    expected = np.einsum("bij,bjk->bik", wide(x), wide(w))
    batched = gd.jit(lambda x, w: gd.matmul(x, w, np.int32))(x, w)
    general = gd.jit(lambda x, w: gd.dot_general(x, w, ((2,), (1,)), ((0,), (0,)), np.int32))(x, w)
    for found in (batched, general):
        np.testing.assert_array_equal(found, expected)
    found = gd.jit(lambda x, w: gd.tensordot(x, w, ((0, 2), (0, 1)), np.int64))(x, w)
    np.testing.assert_array_equal(found, np.tensordot(wide(x), wide(w), ((0, 2), (0, 1))))
    row = gd.jit(lambda v, w: gd.matmul(v, w, np.int32))(x[0, 0], w)
    np.testing.assert_array_equal(row, np.einsum("j,bjk->bk", wide(x[0, 0]), wide(w)))


def test_a_type_of_another_kind_is_refused() -> None:
    with pytest.raises(gd.GradirError, match="preferred_element_type does not fit"):
        gd.dot(np.ones((2, 2), np.float32), np.ones((2, 2), np.float32), preferred_element_type=np.int32)


# -- convolutions


def correlated(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Plain correlation of [N, H, W, C] with [h, w, C, O]."""
    x, w = wide(x), wide(w)
    n, h, v, _ = x.shape
    a, b, _, o = w.shape
    out = np.zeros((n, h - a + 1, v - b + 1, o), x.dtype)
    for i in range(out.shape[1]):
        for j in range(out.shape[2]):
            out[:, i, j] = np.tensordot(x[:, i : i + a, j : j + b], w, 3)
    return out


def test_convolution_of_bytes_in_i32() -> None:
    x, w = ints(np.uint8, 2, 6, 5, 3), ints(np.int8, 3, 2, 3, 4)
    found = np.asarray(gd.jit(lambda x, w: gd.conv(x, w, preferred_element_type=np.int32))(x, w))
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, correlated(x, w))


def test_convolution_of_bf16_in_f32() -> None:
    x, w = RNG.normal(size=(1, 6, 6, 4)).astype(BF16), RNG.normal(size=(3, 3, 4, 2)).astype(BF16)
    found = np.asarray(gd.jit(lambda x, w: gd.conv(x, w, preferred_element_type=np.float32))(x, w))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, correlated(x, w), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "numbers", [("NCHW", "OIHW", "NCHW"), ("NHWC", "HWIO", "NHWC"), ("HWNC", "IOWH", "CWHN"), ("CWHN", "HIWO", "NHWC")]
)
def test_any_layout(numbers: tuple[str, str, str]) -> None:
    x, w = RNG.normal(size=(2, 6, 5, 3)).astype(np.float32), RNG.normal(size=(3, 2, 3, 4)).astype(np.float32)
    given_x = x.transpose(["NHWC".index(letter) for letter in numbers[0]])
    given_w = w.transpose(["HWIO".index(letter) for letter in numbers[1]])
    found = gd.jit(lambda x, w: gd.conv(x, w, dimension_numbers=numbers))(given_x, given_w)
    expected = correlated(x, w).transpose(["NHWC".index(letter) for letter in numbers[2]])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def scattered(x: np.ndarray, w: np.ndarray, stride: int) -> np.ndarray:
    """Every element of x [N, L, C] adds its multiple of w [k, C, O] `stride` further on: the flipped kernel's transposed convolution."""
    n, length, _ = x.shape
    out = np.zeros((n, (length - 1) * stride + w.shape[0], w.shape[2]))
    for i in range(length):
        for k in range(w.shape[0]):
            out[:, i * stride + k] += x[:, i] @ w[w.shape[0] - 1 - k]
    return out


@pytest.mark.parametrize(("stride", "window"), [(1, 3), (2, 3), (3, 2), (2, 4), (4, 4)])
def test_transposed_convolution(stride: int, window: int) -> None:
    x, w = RNG.normal(size=(2, 5, 3)), RNG.normal(size=(window, 3, 4))
    whole = scattered(x, w, stride)
    valid = np.asarray(gd.jit(lambda x, w: gd.conv_transpose(x, w, stride, "VALID"))(x, w))
    assert valid.shape[1] == 5 * stride + max(window - stride, 0)
    np.testing.assert_allclose(valid[:, : whole.shape[1]], whole, rtol=1e-9, atol=1e-9)
    same = np.asarray(gd.jit(lambda x, w: gd.conv_transpose(x, w, stride))(x, w))
    assert same.shape == (2, 5 * stride, 4)


def test_transposed_kernel_is_the_gradient_of_a_convolution() -> None:
    x, w, ct = RNG.normal(size=(1, 9, 9, 2)), RNG.normal(size=(3, 3, 2, 4)), RNG.normal(size=(1, 4, 4, 4))
    (dx,) = gd.jit(gd.grad(lambda x: gd.sum(gd.conv(x, w, 2) * ct), argnums=(0,)))(x)
    found = gd.jit(lambda ct: gd.conv_transpose(ct, w, 2, "VALID", transpose_kernel=True))(ct)
    np.testing.assert_allclose(found, dx, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("padding", ["SAME", "VALID", [(1, 2), (0, 3)]])
@pytest.mark.parametrize("kernel", [False, True])
def test_transposed_convolution_agrees_with_jax(padding: Any, kernel: bool) -> None:
    jax = pytest.importorskip("jax")
    x = RNG.normal(size=(2, 3, 5, 4)).astype(np.float32)
    numbers = ("NCHW", "OIHW", "NCHW") if kernel else ("NCHW", "IHWO", "NCHW")
    w = RNG.normal(size=(3, 6, 4, 2) if kernel else (3, 4, 2, 6)).astype(np.float32)
    expected = jax.lax.conv_transpose(x, w, (2, 3), padding, (1, 2), numbers, kernel)
    found = gd.conv_transpose(x, w, (2, 3), padding, (1, 2), transpose_kernel=kernel, dimension_numbers=numbers)
    np.testing.assert_allclose(np.asarray(found.concrete), expected, rtol=1e-4, atol=1e-4)


def test_a_window_of_one_whose_memory_has_no_dimension_to_sum_over() -> None:
    rng = np.random.default_rng(0)
    x, w, c = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((3, 5, 8), (1, 1, 8), (3, 5, 8)))
    depthwise = gd.grad(lambda x, w: gd.sum(gd.conv(x, w, groups=8) * c), (0, 1))
    dx, dw = gd.jit(depthwise, cache=False)(x, w)
    np.testing.assert_allclose(dx, c * w[0, 0], rtol=1e-6)
    np.testing.assert_allclose(dw, np.sum(c * x, (0, 1), keepdims=True), rtol=1e-5)
    outer = gd.jit(lambda x, w: gd.conv(x[..., None], w[None, None]), cache=False)(x[0], w[0, 0])
    np.testing.assert_allclose(outer, x[0][..., None] * w[0, 0], rtol=1e-6)


def test_batch_groups_and_input_dilation() -> None:
    x, w = RNG.normal(size=(4, 5, 5, 2)).astype(np.float32), RNG.normal(size=(3, 3, 2, 6)).astype(np.float32)
    found = gd.jit(lambda x, w: gd.conv(x, w, batch_groups=2))(x, w)
    halves = [correlated(x[2 * g : 2 * g + 2], w[..., 3 * g : 3 * g + 3]) for g in range(2)]
    np.testing.assert_allclose(found, np.concatenate(halves, -1), rtol=1e-5, atol=1e-5)
    spread = np.zeros((4, 9, 13, 2), np.float32)
    spread[:, ::2, ::3] = x
    found = gd.jit(lambda x, w: gd.conv(x, w, lhs_dilation=(2, 3)))(x, w)
    np.testing.assert_allclose(found, correlated(spread, w), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x, w: gd.conv(x, w, dimension_numbers=("NHWC", "HWIO")), "dimension_numbers do not fit"),
        (lambda x, w: gd.conv(x, w, dimension_numbers=("NHWC", "HWOO", "NHWC")), "dimension_numbers do not fit"),
        (lambda x, w: gd.conv_transpose(x, w, padding="FULL"), "unknown padding"),
        (lambda x, w: gd.conv(x, w, groups=2), "shapes do not fit"),
    ],
)
def test_bad_arguments(call: Callable[..., Any], message: str) -> None:
    with pytest.raises(gd.GradirError, match=message):
        call(np.ones((1, 4, 4, 2), np.float32), np.ones((2, 2, 2, 3), np.float32))
