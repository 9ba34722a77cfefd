"""Samples of calls by name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradir.dialects.nd.base import Sample
from gradir.dialects.nd.samples.case import Array, case, type_text

MATRIX = np.array([[4.0, 0, 0], [2, 5, 0], [-2, 1, 6]])


def samples_of(_cls: type[object]) -> tuple[Sample, ...]:
    """The samples of `nd.custom_call`."""
    line = "nd.custom_call @lapack.potrf(%0) {{config = {{lower = true}}}} : ({0}) -> {0}"

    def square(name: str, a: Array, wrt: Sequence[int] = ()) -> Sample:
        return case(name, line, [a], type_text(a), wrt)

    return (
        square("f64", MATRIX, (0,)),
        square("f32 batch", np.stack([MATRIX, 2 * MATRIX]).astype(np.float32)),
        square("f32 not positive definite", np.array([[1.0, 0], [2, 1]], np.float32)),
        square("f32 empty", np.zeros((0, 2, 2), np.float32)),
    )
