"""Samples of variance and length."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradir.dialects.nd.base import NdOp, Sample
from gradir.dialects.nd.samples.case import BF16, INF, NAN, Array, case, type_text, wave


def samples_of(cls: type[NdOp]) -> tuple[Sample, ...]:
    """The samples of one op of this family."""

    def over(name: str, x: Array, dims: Sequence[int], more: str = "", wrt: Sequence[int] = ()) -> Sample:
        shape = [n for d, n in enumerate(x.shape) if d not in dims]
        result = type_text(np.zeros(shape, x.dtype))
        return case(name, f"{cls.name} %0 dims {list(dims)}{more} : {{0}} -> {{1}}", [x], result, wrt)

    far = np.array([[1e4, 1e4 + 1], [3, 3]], np.float32)
    shared = [
        over("f64 rows", wave(3, 4, shift=0.3), [1], wrt=(0,)),
        over("f64 two dimensions", wave(2, 3, 4), [0, 2], wrt=(0,)),
        over("f32 far from 0", far, [1]),
        over("f32 special", np.array([[1, NAN], [INF, 1], [-INF, INF], [0, -0.0]], np.float32), [1]),
        over("f32 nothing", np.zeros((2, 0), np.float32), [1]),
        over("f32 no rows", np.zeros((0, 2), np.float32), [1]),
        over("f32 large", np.array([3e30, -4e30], np.float32) / np.float32(1e12), [0]),
        over("bf16", np.array([256, 257, 258, 3], BF16), [0]),
        over("f16", np.array([1, 2, 4], np.float16), [0]),
    ]
    if cls.name == "nd.norm":
        return (*shared, over("f32 at the limits", np.array([[3e38, 1e38], [1e-42, 1e-42]], np.float32), [1]))
    return (
        *shared,
        over("f64 sample variance", wave(2, 5), [1], " correction 1", wrt=(0,)),
        over("f32 one element", np.array([[2.0]], np.float32), [1], " correction 1"),
    )
