"""One function over all 2^32 inputs of f32, in blocks, and how far its results lie from the reference.

The distance is in units of the last place of the f32 nearest to the exact result, 2^-149 where that is denormal. Where one of the two is
NaN or infinite the other must be as well: each such element that differs is a mismatch. The sign of a zero result is compared where the
reference's is meant (exact functions and odd ones).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import mpmath
import numpy as np

from bench.accuracy.references import Reference
from gradir.driver.compile import compile_module

Array = np.ndarray[Any, Any]

BLOCK = 1 << 22
BLOCKS = (1 << 32) // BLOCK
HALF = BLOCKS // 2
"""Blocks from here on hold negative numbers: the same magnitudes in the same order."""
_SIGN = np.uint32(1 << 31)
_LEAST = 2.0**-149
_HARD = 16
"""So many of the worst spots are looked at again in mpmath."""


@dataclass
class Compiled:
    """A compiled function on blocks, and what identifies its code."""

    call: Callable[[Array], Array]
    code: str


@dataclass
class Result:
    """What a sweep has found; `worst` are (ulp, bits of the input), the largest first."""

    op: str
    bound: float
    code: str
    inputs: int = 0
    max_ulp: float = 0.0
    at: float | str = ""
    got: float | str = ""
    expected: float | str = ""
    mismatches: int = 0
    first_mismatch: str = ""
    seconds: float = 0.0
    worst: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]])

    @property
    def within(self) -> bool:
        """Whether the function keeps its bound and has no mismatch."""
        return self.max_ulp <= self.bound and not self.mismatches

    def plain(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def compiled(reference: Reference, size: int = BLOCK) -> Compiled:
    """The op on `tensor<size x f32>`, by one thread."""
    kind = f"tensor<{size}xf32>"
    text = f"func.func @f(%x: {kind}) -> {kind} {{\n  %r = {reference.op} %x : {kind}\n  return %r : {kind}\n}}\n"
    module = compile_module(text, threads=1, cache=False)
    digest = hashlib.sha256(b"".join(module.objects)).hexdigest()
    function = module["f"]
    return Compiled(lambda x: np.asarray(function(x)), digest[:16])


def inputs_of(block: int, size: int = BLOCK) -> Array:
    """The floats whose bits are `block * size` and the next ones."""
    return (np.arange(size, dtype=np.uint32) + np.uint32(block * size)).view(np.float32)


def measure_block(reference: Reference, function: Callable[[Array], Array], block: int, result: Result) -> None:
    """Add one block of inputs to `result`; a block of negative numbers comes with its mirror image, see `measure_pair`."""
    x = inputs_of(block)
    compare(reference, x, function(x), result)


def measure_pair(reference: Reference, function: Callable[[Array], Array], block: int, result: Result) -> None:
    """A block of positive numbers and its negatives, of an odd or even function: where those mirror exactly they need no reference."""
    x = inputs_of(block)
    y, mirrored = function(x), function(-x)
    compare(reference, x, y, result)
    flip = _SIGN if reference.symmetry == "odd" else np.uint32(0)
    differs = np.flatnonzero(mirrored.view(np.uint32) != (y.view(np.uint32) ^ flip))
    differs = differs[~(np.isnan(y[differs]) & np.isnan(mirrored[differs]))]
    result.inputs += len(x) - len(differs)
    if len(differs):
        compare(reference, -x[differs], mirrored[differs], result, whole=False)


def compare(reference: Reference, x: Array, got: Array, result: Result, *, whole: bool = True) -> None:
    """Add results `got` of inputs `x`: only those that are not the nearest f32 are measured exactly."""
    with np.errstate(all="ignore"):
        wide = reference.on_block(x.astype(np.float64)) if whole else reference.function(x.astype(np.float64))
        near = wide.astype(np.float32)
    result.inputs += len(x)
    differs = got.view(np.uint32) != near.view(np.uint32)
    if reference.bound == 0:
        differs |= (wide != near) & ~np.isnan(wide)  # cannot be: the function's results are floats
    off = np.flatnonzero(differs)
    off = off[~(np.isnan(got[off]) & np.isnan(near[off]))]
    got, near, wide = got[off], near[off], wide[off]
    wrong = ~np.isfinite(got) | ~np.isfinite(near)
    if reference.bound == 0 or reference.symmetry == "odd":
        wrong |= (got == 0) & (near == 0)  # of different sign
    if wrong.any():
        result.mismatches += int(np.count_nonzero(wrong))
        if not result.first_mismatch:
            k = int(np.flatnonzero(wrong)[0])
            result.first_mismatch = f"{reference.name}({x[off[k]]!r}) = {got[k]!r}, not {near[k]!r}"
        off, got, near, wide = (a[~wrong] for a in (off, got, near, wide))
    unit = (near.view(np.uint32) & np.uint32(0x7F800000)).view(np.float32).astype(np.float64) * 2.0**-23
    ulp = np.abs(got - wide) / np.maximum(unit, _LEAST)
    least = result.worst[-1][0] if len(result.worst) == _HARD else -1.0
    worse = np.flatnonzero(ulp > least)
    if len(worse) > _HARD:
        worse = worse[np.argpartition(ulp[worse], len(worse) - _HARD)[len(worse) - _HARD :]]
    found = [(float(ulp[k]), int(x[off[k] : off[k] + 1].view(np.uint32)[0])) for k in worse]
    result.worst = sorted([*result.worst, *found], reverse=True)[:_HARD]


def settle(reference: Reference, function: Callable[[Array], Array], result: Result) -> None:
    """Measure the worst spots again, against mpmath with 50 digits: `max_ulp` is theirs."""
    mpmath.mp.dps = 50
    measured: list[tuple[float, int, float, float]] = []
    for _, bits in result.worst:
        x = np.array([bits], np.uint32).view(np.float32)
        got = float(function(np.resize(x, BLOCK))[0])
        want = reference.exact(mpmath.mpf(float(x[0])))
        unit = max(float(np.spacing(np.abs(np.float32(float(want))))), _LEAST)
        measured.append((float(abs(mpmath.mpf(got) - want) / unit), bits, got, float(want)))
    measured.sort(reverse=True)
    result.worst = [(ulp, bits) for ulp, bits, _, _ in measured]
    if measured:
        ulp, bits, got, want = measured[0]
        result.max_ulp, result.got, result.expected = ulp, got, want
        result.at = float(np.array([bits], np.uint32).view(np.float32)[0])
    elif reference.bound:
        result.max_ulp = 0.5
