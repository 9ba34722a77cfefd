"""Elementwise kernels that threads share: every element once, whatever the size and the number of threads, and the same bits."""

from __future__ import annotations

import numpy as np
import pytest

import gradir as gd


@pytest.mark.parametrize("threads", [2, 3, 7])
@pytest.mark.parametrize("size", [131072, 131073, 140001, 1_000_003])
def test_sizes_and_threads(size, threads):
    x = np.random.default_rng(size).standard_normal(size).astype(np.float32)
    function = lambda x: gd.tanh(x) * gd.exp(-x * x) + x
    shared, alone = gd.jit(function, threads=threads), gd.jit(function, threads=1)
    assert "scf.parallel" in shared.compile(x, keep_ir=True).report.ir["4 loops"]
    found = shared(x)
    assert np.array_equal(found, alone(x)) and np.array_equal(found, shared(x))
    assert np.allclose(found, np.tanh(x) * np.exp(-x * x) + x, atol=1e-5)
