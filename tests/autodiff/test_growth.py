"""Gradients grow with the program and with nothing else: generated ops are counted, no time is taken (`bench/compile_time.py` does)."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradir as gd
from bench.gradient_programs import ARGUMENTS, calls, chain, differentiated, nest, ops, tree
from gradir.dialects.upstream import func
from gradir.reference import run


def generated(loss: Callable[..., Any], *, inline: bool = True) -> int:
    return ops(differentiated(loss, inline=inline)[0])


def increments(counts: list[int]) -> list[int]:
    return [b - a for a, b in itertools.pairwise(counts)]


def test_chains_and_trees_grow_by_the_same_for_each_op() -> None:
    assert len(set(increments([generated(chain(n)) for n in (50, 100, 150)]))) == 1
    leaves = {n: generated(tree(n)) for n in (16, 32, 64)}
    assert leaves[64] - leaves[32] == 2 * (leaves[32] - leaves[16])


def test_each_further_loop_of_a_nest_adds_the_same() -> None:
    assert len(set(increments([generated(nest(depth)) for depth in range(2, 9)]))) == 1


def test_the_number_of_trips_changes_nothing() -> None:
    assert len({generated(nest(3, trips)) for trips in (10, 1000, 100_000)}) == 1


def test_functions_that_call_each_other_twice_have_one_pair_each() -> None:
    """2**8 calls, 8 pairs (and that of the last function)."""
    module, _ = differentiated(calls(8), inline=False)
    names = [op.sym_name.data for op in module.body.block.ops if isinstance(op, func.FuncOp)]
    assert sum(".fwd" in name for name in names) == sum(".bwd" in name for name in names) == 9
    assert max(increments([generated(calls(depth), inline=False) for depth in range(3, 9)])) < 50
    assert max(len(op.operands) for op in module.walk()) < 600


def test_a_call_with_very_many_residuals_runs_again() -> None:
    """Nine levels: without that, half a thousand residuals leave the outermost call."""
    module, _ = differentiated(calls(9), inline=False)
    (entry,) = [op for op in module.body.block.ops if isinstance(op, func.FuncOp) and op.sym_visibility is None]
    (found,) = run(module, entry.sym_name.data, list(ARGUMENTS))
    w, x = ARGUMENTS
    np.testing.assert_allclose(found[3], _slope_of_calls(9, w[3], x[3]), rtol=1e-6)


def _slope_of_calls(depth: int, w: float, x: float) -> float:
    """Of one element, by differences in numpy."""

    def value(s: float, w: float, depth: int) -> float:
        if depth == 0:
            return float(np.tanh(s * w) + s)
        return value(value(s, w, depth - 1) * (1.0 + 0.1 * (depth - 1)), w, depth - 1)

    step = 1e-5
    return (value(x * (w + step), w + step, depth) - value(x * (w - step), w - step, depth)) / (2 * step)


@pytest.mark.full
@pytest.mark.parametrize("loss", [chain(20), tree(8), nest(3), calls(3)], ids=["chain", "tree", "nest", "calls"])
def test_the_programs_that_are_timed_have_right_gradients(loss: Callable[..., Any]) -> None:
    w, x = ARGUMENTS
    found = gd.jit(gd.grad(loss), cache=False)(w, x)
    value = gd.jit(loss, cache=False)
    slope = [(value(w + 1e-6 * e, x) - value(w - 1e-6 * e, x)) / 2e-6 for e in np.eye(16)]
    np.testing.assert_allclose(found, slope, rtol=1e-7, atol=1e-8)
