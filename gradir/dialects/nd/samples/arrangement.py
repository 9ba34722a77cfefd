"""Samples of the composites that only arrange."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradir.dialects.nd.base import NdOp, Sample
from gradir.dialects.nd.samples.case import Array, case, type_text, wave
from gradir.dialects.nd.samples.sorting import several


def _split() -> list[Sample]:
    def split(name: str, x: Array, sizes: Sequence[int], dim: int, wrt: Sequence[int] = ()) -> Sample:
        results = [type_text(np.zeros((*x.shape[:dim], n, *x.shape[dim + 1 :]), x.dtype)) for n in sizes]
        line = f"nd.split %0 sizes {list(sizes)} dim {dim} : {type_text(x)} -> {', '.join(results)}"
        return several(name, line, [x], results, wrt)

    return [
        split("f64 last", wave(2, 5), [2, 3], 1, (0,)),
        split("f64 first", wave(3, 2), [1, 0, 2], 0, (0,)),
        split("i1 one part", np.array([True, False]), [2], 0),
        split("empty", np.zeros((0, 2), np.float32), [0, 0], 0),
    ]


def _one_hot() -> list[Sample]:
    def hot(name: str, indices: Array, depth: int, element: str) -> Sample:
        shape = "".join(f"{n}x" for n in (*indices.shape, depth))
        return case(name, f"nd.one_hot %0 depth {depth} : {{0}} -> {{1}}", [indices], f"tensor<{shape}{element}>")

    return [
        hot("f32", np.array([[0, 2], [1, 9]], np.int32), 3, "f32"),
        hot("i1 outside", np.array([-1, 1, 127], np.int8), 2, "i1"),
        hot("bf16 by ui64", np.array([2**64 - 1, 1], np.uint64), 2, "bf16"),
        hot("i64 of one", np.array(1, np.int64), 2, "i64"),
        hot("ui8 by ui8", np.array([255, 3], np.uint8), 4, "ui8"),
        hot("no classes", np.array([0], np.int32), 0, "f32"),
    ]


def samples_of(cls: type[NdOp]) -> tuple[Sample, ...]:
    """The samples of one op of this family."""
    return tuple({"nd.split": _split, "nd.one_hot": _one_hot}[cls.name]())
