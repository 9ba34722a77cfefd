"""Sums over everything that no block holds: the whole grid adds them up, in two launches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.dialects.upstream import gpu
from gradir.driver.emulate import PtxLauncher, evaluate_as_ptx
from gradir.driver.lower import lower


def squashed(x: Any) -> Any:
    y = gd.tanh(x)
    return y, gd.exp(gd.mean(y)), gd.max(x)


@pytest.mark.parametrize("shape", [(70001,), (264, 301)])
def test_stored_elements_sums_and_what_follows_them(shape: tuple[int, ...]) -> None:
    """No launch sweeps everything with one block, and any order of warps gives the numbers of the CPU."""
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    function = gd.jit(squashed)
    expected = function(x)
    module = lower(function.lower(x), target="cuda")
    launches = [op for op in module.walk() if isinstance(op, gpu.LaunchFuncOp)]
    blocks = [op.gridSize[0].owner.value.value.data for op in launches]
    assert sum(n >= 16 for n in blocks) >= 3
    assert sum(n == 1 for n in blocks) >= 2
    for seed in (None, 2):
        found = evaluate_as_ptx(module, "squashed", [x], PtxLauncher(module, seed))
        for a, b in zip(expected, found, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)
