"""Folds, windows, gathers and scatters by functions and dimension numbers; variance and lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.errors import GradirError

X = np.array([[3, 1, 2], [2, 5, 0]], np.float32)


@pytest.fixture(autouse=True, params=["eager", "compiled"])
def mode(request: pytest.FixtureRequest) -> Any:
    """Every test runs op by op and compiled."""
    if request.param == "compiled":
        return gd.jit

    def run(function: Any) -> Any:
        def call(*arguments: Any) -> Any:
            with gd.eager():
                return gd.tree_map(np.asarray, function(*map(gd.asarray, arguments)))

        return call

    return run


def test_reduce_by_a_function_in_index_order(mode: Any):
    found = mode(lambda x: gd.reduce(lambda acc, e: acc * 0.5 + e, x, 8.0, axis=1))(X)
    np.testing.assert_array_equal(found, [((8 * 0.5 + 3) * 0.5 + 1) * 0.5 + 2, ((8 * 0.5 + 2) * 0.5 + 5) * 0.5])


def test_reduce_of_pairs(mode: Any):
    def last_greatest(acc: Any, at: Any, e: Any, k: Any) -> Any:
        keeps = gd.greater(acc, e)
        return gd.where(keeps, acc, e), gd.where(keeps, at, k)

    ids = np.arange(4, dtype=np.int32)
    value, at = mode(lambda x, i: gd.reduce(last_greatest, (x, i), (-np.inf, -1)))(np.array([1, 7, 7, 2], np.float32), ids)
    assert (value, at) == (7, 2)


def test_a_fold_is_differentiated_as_its_loop():
    def f(x: Any) -> Any:
        return gd.sum(gd.reduce(lambda acc, e: acc * e + e, x, 1.0, axis=1))

    grads = np.asarray(gd.jit(gd.grad(f))(X))
    for (i, j), got in np.ndenumerate(grads):
        step = np.zeros_like(X)
        step[i, j] = 1e-2
        rows = [X[i] + step[i], X[i] - step[i]]
        values = [((1 * r[0] + r[0]) * r[1] + r[1]) * r[2] + r[2] for r in rows]
        assert abs((values[0] - values[1]) / 2e-2 - got) < 1e-2


def test_sort_by(mode: Any):
    far, ids = mode(lambda x, i: gd.sort_by(lambda a, b, _i, _j: gd.greater(gd.abs(a), gd.abs(b)), (x, i)))(
        np.array([1, -3, 2, 3], np.float32), np.arange(4, dtype=np.int32)
    )
    np.testing.assert_array_equal(far, [-3, 3, 2, 1])
    np.testing.assert_array_equal(ids, [1, 3, 2, 0])


@pytest.mark.parametrize(
    ("kind", "wanted"), [("prod", [3, 2, 10, 0]), ("sum", [4, 3, 7, 5]), ("max", [3, 2, 5, 5]), (lambda a, b: a - b, [-4, -3, -7, -5])]
)
def test_windows(mode: Any, kind: Any, wanted: list[float]):
    init = None if isinstance(kind, str) else 0
    found = mode(lambda x: gd.reduce_window(x, kind, (1, 2), (1, 1), init=init))(X)
    np.testing.assert_array_equal(np.asarray(found).reshape(-1), wanted)


def test_windows_of_truth_values_and_dilations(mode: Any):
    bits = np.array([True, False, False, True])
    either, both, far = mode(
        lambda b: (
            gd.reduce_window(b, "or", (2,), (1,)),
            gd.reduce_window(b, "and", (2,), (1,), padding=[(1, 0)]),
            gd.reduce_window(gd.asarray(np.arange(3, dtype=np.int32)), "sum", (2,), (1,), dilations=2, base_dilations=2),
        )
    )(bits)
    np.testing.assert_array_equal(either, [True, False, True])
    np.testing.assert_array_equal(both, [True, False, False, False])
    np.testing.assert_array_equal(far, [1, 0, 3])


def test_select_and_scatter(mode: Any):
    found = mode(lambda x: gd.select_and_scatter(x, np.array([5.0, 7.0]), 1.0, gd.less, gd.multiply, (2,), 2))(
        np.array([2, 1, 4, 4], np.float32)
    )
    np.testing.assert_array_equal(found, [1, 5, 1, 7])


def test_pooling_in_ceil_mode(mode: Any):
    """docs/numerics.md, "pooling"."""
    line = np.array([1, 2, 3, 4], np.float32).reshape(1, 4, 1)
    (line,) = [np.asarray(mode(lambda x: gd.avg_pool(x, 2, 3, [(1, 1)], ceil_mode=True))(line)).reshape(-1)]
    np.testing.assert_array_equal(line, [0.5, 3.5])
    square = np.arange(1, 17, dtype=np.float32).reshape(1, 4, 4, 1)
    with_pad = mode(lambda x: gd.avg_pool(x, 3, 2, [(1, 1), (1, 1)], ceil_mode=True))(square)
    wanted = [[14 / 9, 30 / 9, 2], [57 / 9, 11, 6], [4.5, 7.5, 4]]
    np.testing.assert_allclose(np.asarray(with_pad)[0, :, :, 0], wanted, rtol=1e-6)
    without, top = mode(
        lambda x: (
            gd.avg_pool(x, 3, 2, [(1, 1), (1, 1)], ceil_mode=True, count_include_pad=False),
            gd.max_pool(x, 3, 2, [(1, 1), (1, 1)], ceil_mode=True),
        )
    )(square)
    np.testing.assert_allclose(np.asarray(without)[0, :, :, 0], [[3.5, 5, 6], [9.5, 11, 12], [13.5, 15, 16]], rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(top)[0, :, :, 0], [[6, 8, 8], [14, 16, 16], [14, 16, 16]])


def test_variance_and_lengths(mode: Any):
    far = np.array([[1e4, 1e4 + 1], [3, 3]], np.float32)
    var, std, sample, norm, one, most = mode(
        lambda x: (
            gd.var(x, 1),
            gd.std(x, 1, keepdims=True),
            gd.var(x, 1, correction=1),
            gd.norm(x * 3e34, 1),
            gd.norm(x, 1, ord=1),
            gd.norm(x, ord=float("inf")),
        )
    )(far)
    np.testing.assert_array_equal(var, [0.25, 0])
    np.testing.assert_array_equal(std, [[0.5], [0]])
    np.testing.assert_array_equal(sample, [0.5, 0])
    np.testing.assert_allclose(norm[1], 3 * np.sqrt(2) * 3e34, rtol=1e-6)
    assert np.isinf(norm[0]) == (np.hypot(1e4, 1e4 + 1) * 3e34 > 3.4e38)
    np.testing.assert_array_equal(one, [20001, 6])
    assert most == 10001


def test_derivatives_at_zero_length():
    zeros = np.zeros(3, np.float32)
    np.testing.assert_array_equal(gd.jit(gd.grad(gd.norm))(zeros), zeros)
    np.testing.assert_array_equal(gd.jit(gd.grad(gd.std))(zeros + 2), zeros)
    np.testing.assert_array_equal(gd.jit(gd.grad(lambda x: gd.norm(x) ** 2))(zeros), zeros)
    np.testing.assert_allclose(gd.jit(gd.grad(gd.norm))(np.array([3, 0, -4], np.float32)), [0.6, 0, -0.8], rtol=1e-6)


def test_cumlogsumexp(mode: Any):
    x = np.array([-np.inf, 1000, 1001, -5], np.float32)
    found = mode(gd.cumlogsumexp)(x)
    np.testing.assert_allclose(found, np.logaddexp.accumulate(x.astype(np.float64)), rtol=1e-6)


def test_take_along_axis(mode: Any):
    at = np.array([[2, -1], [0, 9]], np.int32)
    found = mode(lambda x, i: gd.take_along_axis(x, i, 1))(X, at)
    np.testing.assert_array_equal(found, [[2, 2], [2, 0]])


def test_gather_and_scatter_by_dimension_numbers(mode: Any):
    at = np.array([[1], [0]], np.int32)
    rows = mode(lambda x, i: gd.gather(x, i, (1, 3), offset=(1,), collapsed=(0,), map=(0,)))(X, at)
    np.testing.assert_array_equal(rows, X[::-1])
    line, places = np.array([1, 2, 3], np.float32), np.array([[2], [2], [7]], np.int32)
    new = np.array([10, 20, 30], np.float32)
    for kind, last in {"set": 20, "add": 33, "mul": 600, "min": 3, "max": 20}.items():
        found = mode(lambda x, i, u, kind=kind: gd.scatter(x, i, u, kind, inserted=(0,), map=(0,)))(line, places, new)
        np.testing.assert_array_equal(found, [1, 2, last])
    found = mode(lambda x, i, u: gd.scatter(x, i, u, lambda a, b: b - a, inserted=(0,), map=(0,)))(line, places, new)
    np.testing.assert_array_equal(found, [1, 2, 13])


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda x: gd.reduce(lambda a, b: a > b, x, 0.0), "GR103"),
        (lambda x: gd.reduce(lambda a, b: a, (x, x), (0.0,)), "GR104"),
        (lambda x: gd.reduce_window(x, "mean", (1, 2), (1, 1)), "GR112"),
        (lambda x: gd.reduce_window(x, lambda a, b: a, (1, 2), (1, 1)), "GR112"),
        (lambda x: gd.norm(x, ord=3), "GR112"),
        (lambda x: gd.scatter(x, gd.asarray([[0]]), x, "sub"), "GR112"),
        (lambda x: gd.gather(x, gd.asarray([[0]]), (1, 3)), "GR104"),
        (lambda x: gd.take_along_axis(x, x, 0), "GR001"),
        (lambda x: gd.one_hot(x, 3), "GR002"),
    ],
)
def test_bad_use(mode: Any, call: Any, code: str):
    with pytest.raises(GradirError) as caught:
        mode(call)(X)
    assert caught.value.code == code


def test_a_function_of_elements_reads_nothing_from_outside():
    with pytest.raises(GradirError) as caught:
        gd.jit(lambda x, y: gd.reduce(lambda a, b: a + b * y, x, 0.0))(X, np.float32(2))
    assert caught.value.code == "GR110"


def test_updates_at_an_array_of_indices(mode: Any):
    x, at = np.arange(8, dtype=np.float32).reshape(4, 2), np.array([1, -1, 1], np.int32)
    new = np.array([[10, 20], [30, 40], [50, 60]], np.float32)
    found = mode(lambda x, i, v: (x.at[i].set(v), x.at[i].add(v), x.at[i].multiply(2.0), x.at[i, :].max(5.0), x.at[i].min(v)))(x, at, new)
    rows = [[0, 1], [2, 3], [4, 5], [6, 7]]
    expected = [
        [rows[0], [50, 60], rows[2], [30, 40]],
        [rows[0], [62, 83], rows[2], [36, 47]],
        [rows[0], [8, 12], rows[2], [12, 14]],
        [rows[0], [5, 5], rows[2], [6, 7]],
        rows,
    ]
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_array_equal(got, want)
