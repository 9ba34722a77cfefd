"""Row "accuracy" of docs/numerics.md: every function of one number keeps its bound, compiled, on sampled inputs.

f32 on inputs spread over all bit patterns against f64, by what `python -m bench.accuracy` does for all of them; f64 against 40 digits.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from gradir.driver.compile import compile_module

mpmath = pytest.importorskip("mpmath")
pytest.importorskip("scipy")

from bench.accuracy.references import REFERENCES, Reference  # noqa: E402  it needs both
from bench.accuracy.sweep import Result, compare  # noqa: E402

NAMES = [reference.name for reference in REFERENCES]
BITS = (np.arange(1 << 14, dtype=np.uint64) * 262147 % (1 << 32)).astype(np.uint32).view(np.float32)
"""One pattern in 2^18, no two with the same low bits."""
RNG = np.random.default_rng(5)
NEAR = np.concatenate([RNG.uniform(-1, 1, 2000), RNG.uniform(-12, 12, 2000), RNG.uniform(-90, 90, 500)]).astype(np.float32)
EDGES = np.float32([0, -0.0, 1, -1, 0.5, -0.5, 2, -2, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 88.7, -103.9, 0.99999994, 3.4028235e38])
SINGLE = np.concatenate([BITS, NEAR, EDGES])
DOUBLE = np.concatenate(
    [RNG.uniform(-1, 1, 60), RNG.uniform(-12, 12, 60), np.exp(RNG.uniform(-60, 60, 60)) * RNG.choice([-1, 1], 60), EDGES[:-1].astype(float)]
)
CANCEL = {"lgamma", "digamma"}
"""f64 loses digits close to the zeros of these at negative numbers."""


@cache
def module(element: str, size: int) -> Any:
    """All functions on tensors of that type, compiled once."""
    kind = f"tensor<{size}x{element}>"
    return compile_module(
        "".join(f"func.func @{name}(%x: {kind}) -> {kind} {{\n  %r = nd.{name} %x : {kind}\n  return %r : {kind}\n}}\n" for name in NAMES),
        threads=1,
        cache=False,
    )


@pytest.mark.parametrize("reference", REFERENCES, ids=NAMES)
def test_f32_keeps_its_bound(reference: Reference) -> None:
    found = np.asarray(module("f32", SINGLE.size)[reference.name](SINGLE))
    result = Result(reference.op, reference.bound, "")
    compare(reference, SINGLE, found, result, whole=False)
    assert result.mismatches == 0, result.first_mismatch
    worst, bits = result.worst[0] if result.worst else (0.0, 0)
    assert worst <= reference.bound, f"{worst:.2f} ulp at {np.array([bits], np.uint32).view(np.float32)[0]!r}"
    assert result.inputs == SINGLE.size


@pytest.mark.parametrize("reference", REFERENCES, ids=NAMES)
def test_f64_within_four_ulp(reference: Reference) -> None:
    found = np.asarray(module("f64", DOUBLE.size)[reference.name](DOUBLE))
    bound = 4.0 if reference.bound > 0.5 else reference.bound
    with mpmath.workdps(40):
        for x, got in zip(DOUBLE.tolist(), found.tolist(), strict=True):
            if not np.isfinite(x) or x == 0 or (reference.name in CANCEL and x < 0):
                continue
            want = 1 / (1 + mpmath.exp(-mpmath.mpf(x))) if reference.name == "logistic" else reference.exact(mpmath.mpf(x))
            nearest = float(want)
            if not np.isfinite(nearest) or not np.isfinite(got):
                assert got == nearest or (np.isnan(got) and np.isnan(nearest)), f"{reference.name}({x!r}) = {got!r}, not {nearest!r}"
                continue
            error = float(abs(mpmath.mpf(got) - want) / np.spacing(abs(nearest)))
            assert error <= bound, f"{error:.2f} ulp: {reference.name}({x!r}) = {got!r}, not {nearest!r}"
