"""Samples of the special functions."""

from __future__ import annotations

import numpy as np

from gradir.dialects.nd.base import NdOp, Sample
from gradir.dialects.nd.samples.case import BF16, INF, NAN, SPECIAL, Array, pairs, same, wave
from gradir.dialects.nd.special import FmaOp, PolygammaOp, SpecialFunction, ZetaOp

_POLES = (-1.0, -2.0, -7.0, 0.5, -0.5, -2.25, 1.5, 2.0, 3.0, 9.5, 40.0, 1e6, -1e6, 3e38)
_BINARY_WRT: dict[type[NdOp], tuple[Array, Array]] = {
    ZetaOp: (np.array([[2.0, 3.0, 1.5], [2.0, 4.0, 7.0]]), np.array([[0.5, 1.25, 30.0], [-1.25, 0.3, 2.0]])),
    PolygammaOp: (np.array([[0.0, 1.0, 2.0], [1.0, 3.0, 0.0]]), np.array([[0.5, 1.25, 30.0], [-1.25, 0.3, 2.0]])),
}


def samples_of(cls: type[NdOp]) -> tuple[Sample, ...]:
    """The samples of one op of this family."""
    if issubclass(cls, SpecialFunction):
        line = f"{cls.name} %0"
        return (
            same("f64", line, [wave(2, 3, scale=3.0, shift=0.2)], (0,)),
            same("f64 large", line, [np.array([[3.5, 8.25], [11.0, 120.0]])], (0,)),
            same("f32 special", line, [np.array([*SPECIAL, *_POLES], np.float32)]),
            same("f64 special", line, [np.array([*SPECIAL[:-1], *_POLES[:-1], 1e300])]),
            same("bf16", line, [np.array([*SPECIAL[:-1], *_POLES[:8]], BF16)]),
            same("f16", line, [np.array([*SPECIAL[:-1], *_POLES[:11]], np.float16)]),
            same("f32 empty", line, [np.zeros((3, 0), np.float32)]),
            same("f32 scalar", line, [np.array(0.75, np.float32)]),
        )
    if cls is FmaOp:
        line = f"{cls.name} %0, %1, %2"
        a, b = pairs([NAN, INF, 0.0, -0.0, 1.0 + 2.0**-12, -3.5], np.float32)
        with np.errstate(all="ignore"):
            c = np.nan_to_num(-(a * b), nan=1.0, posinf=INF, neginf=-INF)  # what is left is the rounding of the product
        return (
            same("f64", line, [wave(2, 3), wave(2, 3, shift=1.0), wave(2, 3, scale=2.0)], (0, 1, 2)),
            same("f32 special", line, [a, b, c]),
            same("f64 once rounded", line, [np.array([1 + 2.0**-30, 1e300]), np.array([1 - 2.0**-30, 1e300]), np.array([-1.0, -INF])]),
            same("bf16", line, [np.array([1.0, -2.5, INF, NAN], BF16), np.array([0.5, 3.0, 0.0, 1.0], BF16), np.array([1, 7, 2, 3], BF16)]),
            same(
                "f16", line, [np.array([300.0, 0.1], np.float16), np.array([300.0, 0.1], np.float16), np.array([-6e4, -0.01], np.float16)]
            ),
            same("f32 empty", line, [np.zeros((0, 2), np.float32)] * 3),
            same("f32 scalar", line, [np.array(v, np.float32) for v in (2.0, 3.0, 1.0)]),
        )
    line = f"{cls.name} %0, %1"
    orders = [NAN, 0.0, 1.0, 2.0, 3.0, 2.5, -1.0]
    first, second = np.meshgrid(orders, [NAN, INF, -INF, 0.0, -1.0, -2.5, 0.3, 1.0, 7.5, 1e5], indexing="ij")
    grids = [np.array(first), np.array(second)]
    left, right = _BINARY_WRT[cls]
    return (
        same("f64", line, [left, right], (1,)),
        same("f32 special", line, [grid.astype(np.float32) for grid in grids]),
        same("f64 special", line, grids),
        same("bf16", line, [np.array([2.0, 1.0, 3.0], BF16), np.array([0.5, 3.0, 1.5], BF16)]),
        same("f16", line, [np.array([2.0, 1.0, 3.0], np.float16), np.array([0.5, 3.0, 1.5], np.float16)]),
        same("f32 empty", line, [np.zeros((0, 2), np.float32)] * 2),
        same("f32 scalar", line, [np.array(2.0, np.float32), np.array(1.0, np.float32)]),
    )
