"""Random programs, compiled and evaluated op by op: values and gradients agree, with one thread and with two, from the cache and without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradir as gd
from tests.fuzz.programs import LARGE, SIZES, TOLERANCES, Program, program

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy's, of the eager side

GROUP = 5
"""Programs a test: few enough that a failing one is found at once."""


def difference(found: Any, expected: Any, tolerance: float) -> str:
    """What is wrong with `found`; empty if nothing. `tolerance` is relative to the largest element."""
    a, b = np.asarray(found), np.asarray(expected)
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return f"{a.dtype}{list(a.shape)} instead of {b.dtype}{list(b.shape)}"
    if a.dtype.name not in TOLERANCES:
        return "" if np.array_equal(a, b) else f"{np.count_nonzero(a != b)} of {a.size} elements differ"
    x, y = a.astype(np.float64), b.astype(np.float64)
    finite = np.isfinite(y)
    if not np.array_equal(x[~finite], y[~finite], equal_nan=True) or not np.isfinite(x[finite]).all():
        return "an infinity or a NaN on one side"
    error, scale = np.abs(x - y)[finite].max(initial=0), np.abs(y[finite]).max(initial=1)
    return "" if error <= tolerance * scale else f"error {error:.3g}, largest element {scale:.3g}"


def check(seed: int, steps: int, *, sizes: tuple[int, ...] = SIZES, threads: int = 1, cache: bool | Path = False) -> None:
    """Raise AssertionError with the program where the compiled one differs from its meaning."""
    made = program(seed, steps, sizes)
    with gd.eager():
        expected = made.run(*map(gd.asarray, made.inputs))
    compare(made, gd.jit(made.run, threads=threads, cache=cache)(*made.inputs), expected, "result")
    if not made.differentiable:
        return
    both = gd.value_and_grad(made.loss, made.differentiable)
    found = gd.jit(both, threads=threads, cache=cache)(*made.inputs)
    with gd.eager():
        value, gradients = both(*made.inputs)
    compare(made, found[0:1], (value,), "loss")
    compare(made, found[1], gradients, "gradient")


def compare(made: Program, found: Any, expected: Any, what: str) -> None:
    assert len(found) == len(expected), made
    for k, (a, b) in enumerate(zip(found, expected)):
        problem = difference(a, b, made.tolerance)
        assert not problem, f"{what} {k}: {problem}\n{made}"


@pytest.mark.parametrize("first", range(0, 40, GROUP))
def test_programs(first: int) -> None:
    for seed in range(first, first + GROUP):
        check(seed, steps=6)


@pytest.mark.parametrize("first", range(100, 115, GROUP))
def test_programs_with_parallel_kernels(first: int) -> None:
    for seed in range(first, first + GROUP):
        check(seed, steps=4, sizes=LARGE, threads=2)


def test_programs_from_the_cache(tmp_path: Path) -> None:
    for _ in range(2):
        for seed in range(200, 206):
            check(seed, steps=5, cache=tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("first", range(1000, 2000, 20))
def test_many_programs(first: int) -> None:
    for seed in range(first, first + 20):
        check(seed, steps=9)


@pytest.mark.full
@pytest.mark.parametrize("first", range(3000, 3200, 20))
def test_many_programs_with_parallel_kernels(first: int) -> None:
    for seed in range(first, first + 20):
        check(seed, steps=5, sizes=LARGE, threads=2)


def test_the_comparison_can_fail() -> None:
    x = np.ones(3, np.float32)
    assert difference(x, x, 0.0) == ""
    assert "error" in difference(x * np.float32(1.001), x, 2e-4)
    assert "instead of" in difference(x.astype(np.float64), x, 1.0)
    assert "infinity" in difference(np.array([1, 1, np.inf], np.float32), x, 1.0)
    assert "2 of 3" in difference(np.array([1, 2, 3]), np.array([1, 1, 1]), 1.0)
