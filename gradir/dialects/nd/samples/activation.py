"""Samples of the activations."""

from __future__ import annotations

import numpy as np

from gradir.dialects.nd.base import NdOp, Sample
from gradir.dialects.nd.samples.case import BF16, SPECIAL, same, wave


def samples_of(cls: type[NdOp]) -> tuple[Sample, ...]:
    """The samples of one op of this family."""
    line = f"{cls.name} %0"
    large = np.array([*SPECIAL, 88.0, -88.0, -90.0, 1e30, -1e30, -3e38], np.float32)
    return (
        same("f64", line, [wave(2, 4, scale=3.0)], (0,)),
        same("f64 large", line, [np.array([-800.0, -40.0, 40.0, 800.0])], (0,)),
        same("f32 special", line, [large]),
        same("bf16", line, [wave(9, dtype=BF16, scale=5.0)]),
        same("f16 scalar", line, [np.array(-2.0, np.float16)]),
        same("f32 empty", line, [np.zeros((0, 2), np.float32)]),
    )
