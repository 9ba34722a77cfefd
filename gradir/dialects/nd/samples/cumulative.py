"""Samples of the cumulative ops."""

from __future__ import annotations

import numpy as np

from gradir.dialects.nd.base import NdOp, Sample
from gradir.dialects.nd.samples.case import BF16, INF, NAN, same, wave


def samples_of(cls: type[NdOp]) -> tuple[Sample, ...]:
    """The samples of one op of this family."""
    op = f"{cls.name} %0 dim"
    special = np.array([[1, NAN, 2], [-INF, INF, 0], [-0.0, 0.0, -0.0], [0.0, 3, 3], [2, 0, 4]], np.float32)
    x = wave(2, 4, 3, shift=0.3)
    floats = (
        same("f64", f"{op} 1", [x], (0,)),
        same("f64 reverse", f"{op} 1 reverse", [x], (0,)),
        same("f64 exclusive", f"{op} 2 exclusive", [x], (0,)),
        same("f64 reverse exclusive", f"{op} 0 reverse exclusive", [wave(5, shift=0.3)], (0,)),
        same("f32 special", f"{op} 1", [special]),
        same("f32 special reverse exclusive", f"{op} 0 reverse exclusive", [special]),
        same("f32 long", f"{op} 0", [wave(100, dtype=np.float32)]),
        same("f32 empty", f"{op} 1", [np.zeros((2, 0), np.float32)]),
        same("f32 no rows", f"{op} 1", [np.zeros((0, 2), np.float32)]),
        same("f32 one", f"{op} 0 exclusive", [np.ones(1, np.float32)]),
        same("bf16", f"{op} 0", [np.array([256, 1, 1, 1, 3], BF16)]),
        same("f16", f"{op} 0 reverse", [np.array([2, 0.5, NAN, 3], np.float16)]),
    )
    if cls.name == "nd.cumlogsumexp":
        large = np.array([[3e38, -3e38, 3.4e38], [-INF, -INF, 1000]], np.float32)
        return (*floats, same("f32 large", f"{op} 1", [large]), same("f64 from -inf", f"{op} 0", [np.array([-INF, 1.0, 2.0])]))
    return (
        *floats,
        same("i32", f"{op} 1", [np.array([[1, -7, 5], [2**31 - 1, 1, 2]], np.int32)]),
        same("i8", f"{op} 0 exclusive", [np.array([100, 100, -3], np.int8)]),
        same("ui8", f"{op} 0 reverse", [np.array([200, 100, 3], np.uint8)]),
    )
