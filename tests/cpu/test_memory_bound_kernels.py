"""Kernels that memory bounds: results stored past the caches, columns shared by threads, sizes that leave lanes over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import gradir as gd
from gradir.lowering.schedules import streaming

RNG = np.random.default_rng(3)
PROGRAMS: dict[str, Callable[..., Any]] = {
    "sum": lambda x: x * 2.0 + x,
    "two results": lambda x: (x + 1.0, -x),
    "softmax": lambda x: gd.softmax(x, -1),
    "layer norm": lambda x: gd.layer_norm(x, x[0], x[0], 1e-5),
    "centred columns": lambda x: x - gd.mean(x, 0),
}


def run(function: Callable[..., Any], x: np.ndarray, threads: int) -> list[np.ndarray]:
    found = gd.jit(lambda x: function(x), threads=threads, cache=False)(x)
    return [np.asarray(y) for y in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_stored_past_the_caches_are_the_same(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for shape in ((64, 128), (33, 96), (7, 61), (129, 1024)) if dtype == "float32" else ((33, 96), (7, 61)):
        x = RNG.standard_normal(shape).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
        plain = run(PROGRAMS[name], x, 1)
        for part in ("LEAST_TRAFFIC", "LEAST_RESULT"):
            monkeypatch.setattr(streaming, part, 0)
        streamed = [run(PROGRAMS[name], x, threads) for threads in (1, 2)]
        monkeypatch.undo()
        for results in streamed:
            for a, b in zip(plain, results, strict=True):
                np.testing.assert_array_equal(a.view(f"u{a.itemsize}"), b.view(f"u{b.itemsize}"))


@pytest.mark.parametrize("shape", [(1, 700), (3, 5000), (700, 777), (1200, 513), (600, 2, 520), (4096, 600), (0, 600)])
def test_sums_of_columns_on_one_thread_and_two(shape: tuple[int, ...]) -> None:
    x = RNG.standard_normal(shape).astype(np.float32)
    for threads in (1, 2):
        found, again = (run(lambda x: gd.sum(x, 0), x, threads)[0] for _ in range(2))
        np.testing.assert_array_equal(found, again)
        np.testing.assert_allclose(found, x.sum(0, dtype=np.float64), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("shape", [(1 << 20,), (999, 1003), (600000,), (3, 70, 5001)])
def test_everything_joined_on_two_threads(shape: tuple[int, ...], dtype: str) -> None:
    x = (RNG.standard_normal(shape) * 100).astype(dtype)
    function = gd.jit(lambda x: (gd.sum(x), gd.max(x), gd.min(x)), threads=2, cache=False)
    results = [function(x) for _ in range(20)]
    assert len({tuple(float(v) for v in result) for result in results}) == 1
    total, top, least = results[0]
    exact = x.sum(dtype=np.longdouble if dtype[0] == "f" else dtype)
    unit = {"float32": 2.0**-23, "float64": 2.0**-50, "int32": 0}[dtype]
    assert abs(float(total - exact)) <= unit * float(np.abs(x).sum(dtype=np.longdouble))
    assert (top, least) == (x.max(), x.min())


@pytest.mark.parametrize("place", [0, 77, 700000, (1 << 20) - 1])
def test_a_nan_anywhere_is_the_maximum_on_two_threads(place: int) -> None:
    x = RNG.standard_normal(1 << 20).astype(np.float32)
    x[place] = np.nan
    assert np.isnan(run(gd.max, x, 2)[0]) and np.isnan(run(gd.sum, x, 2)[0])


def test_columns_with_ops_before_and_after_on_two_threads() -> None:
    x = RNG.standard_normal((900, 1100)).astype(np.float32)
    found = run(lambda x: gd.sqrt(gd.mean(x * x, 0) + 1.0), x, 2)[0]
    np.testing.assert_allclose(found, np.sqrt((x.astype(np.float64) ** 2).mean(0) + 1.0), rtol=1e-6)


@pytest.mark.parametrize("threads", [1, 2])
def test_powers_of_what_the_maximum_was_taken_from(threads: int) -> None:
    """NaN, infinities and denormal results, through a maximum of the user's own."""
    x = RNG.standard_normal((40, 70)).astype(np.float32) * 60
    x[3, 4], x[5, 6], x[7] = np.nan, -np.inf, -np.inf
    with np.errstate(invalid="ignore", under="ignore"):
        expected = np.exp((x - x.max(1, keepdims=True)).astype(np.float64))
    found = run(lambda x: gd.exp(x - gd.max(x, 1, keepdims=True)), x, threads)[0]
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_allclose(found, expected, rtol=2.4e-7, atol=1.5e-45)
    assert np.any((found > 0) & (found < 1e-38))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bfloat16", "bool"])
def test_transposes_at_odd_sizes(dtype: str) -> None:
    kind = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    cases = [
        ((9, 33), (1, 0)),
        ((300, 17), (1, 0)),
        ((5, 20, 7), (0, 2, 1)),
        ((3, 20, 30), (2, 1, 0)),
        ((20, 30, 5), (1, 0, 2)),
        ((0, 5), (1, 0)),
        ((1, 530, 519), (0, 2, 1)),
    ]
    for shape, order in cases:
        x = (RNG.standard_normal(shape) * 50).astype(kind)
        one, two = (run(lambda x, order=order: gd.transpose(x, order), x, threads)[0] for threads in (1, 2))
        np.testing.assert_array_equal(one, x.transpose(order))
        np.testing.assert_array_equal(two, x.transpose(order))


def test_a_matrix_and_its_transpose_in_one_kernel() -> None:
    x = RNG.standard_normal((37, 37)).astype(np.float32)
    np.testing.assert_array_equal(run(lambda x: x + gd.transpose(x, (1, 0)) * 2.0, x, 2)[0], x + x.T * np.float32(2))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(3, 7), (5000, 64), (3001, 100), (40000, 16), (9000, 67)], ids=str)
def test_rows_of_tables(shape: tuple[int, int], threads: int) -> None:
    """Small tables and large ones, rows of whole vectors and others, indices beyond both ends, ops behind the lookup."""
    table = RNG.standard_normal(shape).astype(np.float32)
    for count in (0, 1, 33, 3000):
        ids = RNG.integers(-shape[0] - 3, shape[0] + 3, count).astype(np.int32)
        expected = table[np.clip(np.where(ids < 0, ids + shape[0], ids), 0, shape[0] - 1)]
        found, scaled = gd.jit(lambda t, i: (gd.take(t, i, 0), gd.take(t, i, 0) * 2.0 + t[0]), threads=threads, cache=False)(table, ids)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_allclose(scaled, expected * 2.0 + table[0], rtol=1e-6, atol=1e-6)


def test_rows_of_a_table_by_two_indices() -> None:
    table = RNG.standard_normal((90, 70, 128)).astype(np.float32)
    rows, columns = (RNG.integers(0, n, (40, 5)).astype(np.int32) for n in (90, 70))
    found = gd.jit(lambda t, i, j: t[i, j] + gd.exp(t[0, 0]), cache=False)(table, rows, columns)
    np.testing.assert_allclose(found, table[rows, columns] + np.exp(table[0, 0]), rtol=1e-5, atol=1e-5)
