"""Samples of `nd.dot_general`."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from gradir.dialects.nd.base import NdOp, Sample
from gradir.dialects.nd.samples.case import BF16, INF, NAN, Array, case, type_text, wave

E4M3 = ml_dtypes.float8_e4m3fn


def _dot(name: str, x: Array, y: Array, axes: str, shape: tuple[int, ...], wrt: tuple[int, ...] = (), dtype: Any = None) -> Sample:
    result = type_text(np.zeros(shape, dtype or x.dtype))
    return case(name, f"nd.dot_general %0, %1 {axes} : {{0}}, {{1}} -> {{2}}", [x, y], result, wrt)


def samples_of(cls: type[NdOp]) -> tuple[Sample, ...]:
    """The samples of one op of this family."""
    both = (0, 1)
    f32 = np.float32
    special = np.array([[INF, 0, 1], [NAN, 1, 2], [1, 2, 3]], f32)
    return (
        _dot("f64 matrix", wave(3, 4), wave(4, 5), "contract [1] x [0]", (3, 5), both),
        _dot("f64 transposed", wave(4, 3), wave(5, 4), "contract [0] x [1]", (3, 5), both),
        _dot("f64 batch", wave(2, 3, 4), wave(2, 4, 5), "batch [0] x [0] contract [2] x [1]", (2, 3, 5), both),
        _dot("f64 batch in the middle", wave(3, 2, 4), wave(4, 5, 2), "batch [1] x [2] contract [2] x [0]", (2, 3, 5), both),
        _dot("f64 two contracted", wave(2, 3, 4), wave(4, 3, 5), "contract [1, 2] x [1, 0]", (2, 5), both),
        _dot("f64 vectors", wave(4), wave(4), "contract [0] x [0]", (), both),
        _dot("f64 matrix vector", wave(3, 4), wave(4), "contract [1] x [0]", (3,), both),
        _dot("f64 outer", wave(3), wave(4), "contract [] x []", (3, 4), both),
        _dot("f64 two free each", wave(2, 3, 4), wave(4, 2, 3), "contract [2] x [0]", (2, 3, 2, 3), both),
        _dot("f32 odd sizes", wave(7, 33, dtype=f32), wave(33, 19, dtype=f32), "contract [1] x [0]", (7, 19)),
        _dot("f32 special", special, np.ones((3, 2), f32), "contract [1] x [0]", (3, 2)),
        _dot("f32 k is 0", np.zeros((2, 0), f32), np.zeros((0, 3), f32), "contract [1] x [0]", (2, 3)),
        _dot("f32 m is 0", np.zeros((0, 2), f32), np.ones((2, 3), f32), "contract [1] x [0]", (0, 3)),
        _dot("f32 ones", np.full((1, 1), 3, f32), np.full((1, 1), 4, f32), "contract [1] x [0]", (1, 1)),
        _dot("bf16", np.ones((2, 300), BF16), np.ones((300, 1), BF16), "contract [1] x [0]", (2, 1)),
        _dot("bf16 to f32", wave(2, 8, dtype=BF16), wave(8, 3, dtype=BF16), "contract [1] x [0]", (2, 3), dtype=f32),
        _dot("f16 to f32", wave(2, 8, dtype=np.float16), wave(8, 3, dtype=np.float16), "contract [1] x [0]", (2, 3), dtype=f32),
        _dot("f8E4M3FN to f32", wave(2, 8, dtype=E4M3), wave(8, 3, dtype=E4M3), "contract [1] x [0]", (2, 3), dtype=f32),
        _dot("i32", np.array([[2**30, 4]], np.int32), np.array([[4], [2]], np.int32), "contract [1] x [0]", (1, 1)),
        _dot("i8 to i32", np.full((1, 4), 100, np.int8), np.full((4, 1), -100, np.int8), "contract [1] x [0]", (1, 1), dtype=np.int32),
        _dot(
            "ui8 by i8 to i32", np.full((1, 2), 200, np.uint8), np.full((2, 1), -3, np.int8), "contract [1] x [0]", (1, 1), dtype=np.int32
        ),
        case(
            "f64 run-time batch",
            "nd.dot_general %0, %1 contract [1] x [0] : {0}, {1} -> {2}",
            [wave(3, 4), wave(4, 2)],
            'tensor<?x2xf64, ["b", ""]>',
            both,
            names={0: ("b", "")},
        ),
    )
