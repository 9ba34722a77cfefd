"""Sorting under numpy's names: stable, NaN as the greatest number, gradients to the chosen positions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.driver.compile import compile_module
from gradir.errors import GradirError
from gradir.ir.text import parse_module

X = np.array([[3, np.nan, -1, 3, 0.0], [-0.0, 0.0, np.inf, -np.inf, 2]], np.float32)


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


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_sort_and_argsort_are_numpys_stable_ones(mode: Any, axis: int | None):
    ordered, order = mode(lambda x: (gd.sort(x, axis), gd.argsort(x, axis)))(X)
    np.testing.assert_array_equal(ordered, np.sort(X, axis=axis, kind="stable"))
    np.testing.assert_array_equal(order, np.argsort(X, axis=axis, kind="stable"))
    assert order.dtype == np.int32


def test_descending_keeps_the_order_of_ties_and_begins_with_nan(mode: Any):
    ordered, order = mode(lambda x: (gd.sort(x, descending=True), gd.argsort(x, descending=True)))(X)
    np.testing.assert_array_equal(order, [[1, 0, 3, 4, 2], [2, 4, 0, 1, 3]])
    np.testing.assert_array_equal(ordered, np.take_along_axis(X, np.asarray(order), 1))
    np.testing.assert_array_equal(np.signbit(ordered[1]), [False, False, True, False, True])


def test_sort_together_is_lexicographic(mode: Any):
    a, b = np.array([2, 1, 2, 1, 1], np.int32), np.array([1, np.nan, -1, 1, 0], np.float32)
    first, second, third = mode(lambda a, b: gd.sort_together([a, b, gd.arange(5)], num_keys=2))(a, b)
    np.testing.assert_array_equal(first, [1, 1, 1, 2, 2])
    np.testing.assert_array_equal(second, np.array([0, 1, np.nan, -1, 1], np.float32))
    np.testing.assert_array_equal(third, [4, 3, 1, 2, 0])


def test_top_k(mode: Any):
    values, indices = mode(lambda x: gd.top_k(x, 2, axis=1))(X)
    np.testing.assert_array_equal(values, np.array([[np.nan, 3], [np.inf, 2]], np.float32))
    np.testing.assert_array_equal(indices, [[1, 0], [2, 4]])


@pytest.mark.parametrize("n", [1, 2, 3, 17, 256, 1000])
def test_sizes(mode: Any, n: int):
    keys = (np.arange(n) * 7919 % 101).astype(np.int32)
    ordered, order = mode(lambda x: (gd.sort(x), gd.argsort(x)))(keys)
    np.testing.assert_array_equal(order, np.argsort(keys, kind="stable"))
    np.testing.assert_array_equal(ordered, np.sort(keys))


def test_median(mode: Any):
    rows = np.array([[5, 1, 4, 2], [np.nan, 1, 2, 3]], np.float32)
    by_row, of_all, kept = mode(lambda x: (gd.median(x, 1), gd.median(x[:1]), gd.median(x[:1, :3], 1, keepdims=True)))(rows)
    np.testing.assert_array_equal(by_row, np.array([3, np.nan], np.float32))
    assert of_all == 3
    np.testing.assert_array_equal(kept, [[4]])


def test_cotangents_go_to_the_chosen_positions():
    x, w = np.array([3.0, 1.0, 2.0, 3.0], np.float32), np.array([10.0, 20.0, 30.0, 40.0], np.float32)
    np.testing.assert_array_equal(gd.jit(gd.grad(lambda x: gd.sum(gd.sort(x) * w)))(x), [30, 10, 20, 40])
    np.testing.assert_array_equal(gd.jit(gd.grad(lambda x: gd.sum(gd.top_k(x, 2)[0] * w[:2])))(x), [10, 0, 0, 20])


def test_run_time_sizes_of_rows_and_of_the_sorted_dimension():
    text = """
    func.func @f(%x: tensor<?x?xf32, ["n", "m"]>) -> tensor<?x?xf32, ["n", "m"]> {
      %0 = nd.sort %x dim 1 descending : tensor<?x?xf32, ["n", "m"]>
      return %0 : tensor<?x?xf32, ["n", "m"]>
    }"""
    sort = compile_module(parse_module(text))["f"]
    for shape in [(3, 17), (0, 4), (2, 0), (1, 1), (4, 64)]:
        x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        np.testing.assert_array_equal(sort(x), -np.sort(-x, axis=1))


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda x: gd.sort(gd.sum(x)), "GR104"),
        (lambda x: gd.top_k(x, 9), "GR104"),
        (lambda x: gd.sort_together([x, gd.sum(x)]), "GR001"),
        (lambda x: gd.sort_together([x], num_keys=2), "GR104"),
        (lambda x: gd.median(x[:0], 0), "GR104"),
    ],
)
def test_bad_use(mode: Any, call: Any, code: str):
    with pytest.raises(GradirError) as caught:
        mode(call)(X)
    assert caught.value.code == code
