"""Samples of attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradir.dialects.nd.base import NdOp, Sample
from gradir.dialects.nd.samples.case import BF16, INF, Array, case, type_text, wave


def _attend(
    name: str,
    sizes: tuple[int, int, int, int, int, int, int],
    wrt: Sequence[int] = (),
    *,
    dtype: Any = np.float64,
    mask: Array | None = None,
    bias: Array | None = None,
    words: str = "scale 0.5",
) -> Sample:
    """`sizes` are B, T, S, H, K, D, E of the op's docstring."""
    b, t, s, h, k, d, e = sizes
    inputs = [
        wave(b, t, h, d, dtype=dtype),
        wave(b, s, k, d, dtype=dtype, scale=1.5, shift=0.2),
        wave(b, s, k, e, dtype=dtype, scale=2.0, shift=-0.3),
    ]
    text = "%0, %1, %2"
    for word, value in (("mask", mask), ("bias", bias)):
        if value is not None:
            text += f" {word} %{len(inputs)}"
            inputs.append(np.broadcast_to(value, (b, h, t, s)).copy())
    kinds = ", ".join(type_text(value) for value in inputs)
    result = type_text(np.zeros((b, t, h, e), dtype))
    return case(name, f"nd.attention {text} {words} : {kinds} -> {result}", inputs, result, wrt)


def samples_of(cls: type[NdOp]) -> tuple[Sample, ...]:
    """The samples of one op of this family."""
    mask = np.array([[True, False, True], [False, False, False]])
    bias = wave(1, 2, 2, 3)
    low = np.array([[0, -INF, 1], [-INF, -INF, -INF]], np.float32)
    return (
        _attend("f64", (2, 2, 3, 2, 2, 3, 2), (0, 1, 2)),
        _attend("f64 causal", (1, 3, 3, 2, 2, 2, 2), (0, 1, 2), words="causal scale 0.7"),
        _attend("f64 causal, fewer keys", (1, 4, 2, 1, 1, 2, 2), (0, 1, 2), words="causal scale 1.0"),
        _attend("f64 grouped queries", (1, 2, 3, 4, 2, 2, 3), (0, 1, 2)),
        _attend("f64 mask, a row of nothing", (2, 2, 3, 2, 1, 2, 2), (0, 1, 2), mask=mask),
        _attend("f64 bias", (1, 2, 3, 2, 2, 2, 2), (0, 1, 2, 3), bias=bias),
        _attend("f64 mask and bias", (1, 2, 3, 2, 2, 2, 2), (0, 1, 2, 4), mask=mask, bias=bias, words="causal scale 0.5"),
        _attend("f32 bias of -inf", (1, 2, 3, 1, 1, 2, 2), dtype=np.float32, bias=low),
        _attend("f32 one", (1, 1, 1, 1, 1, 1, 1), dtype=np.float32),
        _attend("bf16", (1, 3, 4, 2, 1, 4, 4), dtype=BF16),
        _attend("f32 no rows", (1, 0, 3, 2, 2, 2, 2), dtype=np.float32),
        _attend("f32 no keys", (1, 2, 0, 2, 2, 2, 2), dtype=np.float32),
        _attend("f32 no heads", (1, 2, 3, 0, 0, 2, 2), dtype=np.float32),
    )
