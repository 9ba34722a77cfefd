"""Samples of convolution and windows. Result shapes are computed here by a definition of their own: by counting window positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradir.dialects.nd.base import NdOp, Sample
from gradir.dialects.nd.samples.case import BF16, INF, NAN, Array, case, type_text, wave


def _count(size: int, window: int, stride: int, low: int, high: int, dilation: int = 1, gap: int = 1) -> int:
    padded = ((size - 1) * gap + 1 if size else 0) + low + high
    return len([s for s in range(0, max(padded, 0), stride) if s + (window - 1) * dilation < padded])


def _conv(
    name: str,
    x: Array,
    w: Array,
    wrt: tuple[int, ...] = (),
    *,
    strides: list[int] | None = None,
    padding: list[int] | None = None,
    lhs_dilation: list[int] | None = None,
    rhs_dilation: list[int] | None = None,
    feature_groups: int = 1,
    batch_groups: int = 1,
    dtype: Any = None,
) -> Sample:
    rank = x.ndim - 2
    step, pad = strides or [1] * rank, padding or [0] * (2 * rank)
    spread, dilate = lhs_dilation or [1] * rank, rhs_dilation or [1] * rank
    space = [_count(x.shape[1 + d], w.shape[d], step[d], pad[2 * d], pad[2 * d + 1], dilate[d], spread[d]) for d in range(rank)]
    result = type_text(np.zeros((x.shape[0] // batch_groups, *space, w.shape[-1]), dtype or x.dtype))
    words = {"strides": strides, "padding": padding, "lhs_dilation": lhs_dilation, "rhs_dilation": rhs_dilation}
    clauses = [f"{word} {value}" for word, value in words.items() if value]
    clauses += [f"{word} {n}" for word, n in (("feature_groups", feature_groups), ("batch_groups", batch_groups)) if n > 1]
    return case(name, f"nd.conv_general %0, %1 {' '.join(clauses)} : {{0}}, {{1}} -> {{2}}", [x, w], result, wrt)


def _convolutions() -> list[Sample]:
    both = (0, 1)
    x, w = wave(2, 5, 4, 3), wave(3, 2, 3, 4)
    f32 = np.float32
    return [
        _conv("f64", x, w, both),
        _conv("f64 same", x, wave(3, 3, 3, 4), both, padding=[1, 1, 1, 1]),
        _conv("f64 strided", x, w, both, strides=[2, 1], padding=[0, 1, 1, 0]),
        _conv("f64 strides that leave a rest", wave(1, 6, 6, 1), wave(3, 3, 1, 2), both, strides=[2, 2]),
        _conv("f64 dilated kernel", wave(1, 7, 5, 2), wave(3, 2, 2, 2), both, rhs_dilation=[2, 3]),
        _conv("f64 dilated input", wave(1, 3, 3, 2), wave(3, 2, 2, 2), both, lhs_dilation=[2, 3], padding=[1, 2, 0, 1]),
        _conv("f64 negative padding", wave(1, 6, 5, 1), wave(2, 2, 1, 1), both, padding=[-1, 1, 1, -2]),
        _conv("f64 feature groups", wave(2, 4, 4, 4), wave(2, 2, 2, 6), both, feature_groups=2),
        _conv("f64 depthwise", wave(1, 4, 4, 3), wave(2, 2, 1, 3), both, feature_groups=3),
        _conv("f64 batch groups", wave(4, 4, 3, 2), wave(2, 2, 2, 6), both, batch_groups=2),
        _conv("f64 one dimension", wave(2, 8, 2), wave(3, 2, 3), both, strides=[2], padding=[1, 1]),
        _conv("f64 three dimensions", wave(1, 3, 4, 3, 2), wave(2, 2, 2, 2, 1), both),
        _conv("f64 kernel of one", wave(2, 3, 3, 2), wave(1, 1, 2, 4), both),
        _conv("f32", wave(2, 8, 8, 3, dtype=f32), wave(3, 3, 3, 8, dtype=f32), padding=[1, 1, 1, 1]),
        _conv("f32 kernel larger than input", np.ones((1, 2, 2, 1), f32), np.ones((3, 3, 1, 2), f32)),
        _conv("f32 empty batch", np.zeros((0, 4, 4, 1), f32), np.ones((2, 2, 1, 2), f32)),
        _conv("bf16", np.ones((1, 20, 20, 1), BF16), np.ones((20, 20, 1, 1), BF16)),
        _conv("bf16 to f32", wave(1, 5, 5, 2, dtype=BF16), wave(3, 3, 2, 3, dtype=BF16), dtype=f32),
        _conv("i8 by ui8 to i32", np.full((1, 3, 3, 2), -128, np.int8), np.full((2, 2, 2, 1), 255, np.uint8), dtype=np.int32),
        _conv("i32", np.arange(16, dtype=np.int32).reshape(1, 4, 4, 1), np.arange(4, dtype=np.int32).reshape(2, 2, 1, 1)),
    ]


def _window(
    kind: str,
    name: str,
    x: Array,
    window: list[int],
    wrt: tuple[int, ...] = (),
    *,
    strides: list[int] | None = None,
    padding: list[int] | None = None,
    dilations: list[int] | None = None,
) -> Sample:
    step, pad, dilate = strides or [1] * x.ndim, padding or [0] * (2 * x.ndim), dilations or [1] * x.ndim
    shape = [_count(x.shape[d], window[d], step[d], pad[2 * d], pad[2 * d + 1], dilate[d]) for d in range(x.ndim)]
    words = {"window": window, "strides": strides, "padding": padding, "dilations": dilations}
    clauses = " ".join(f"{word} {value}" for word, value in words.items() if value)
    result = type_text(np.zeros(shape, x.dtype))
    return case(f"{kind} {name}", f"nd.reduce_window {kind}, %0 {clauses} : {{0}} -> {{1}}", [x], result, wrt)


def _windows() -> list[Sample]:
    found: list[Sample] = []
    image = wave(2, 6, 5, 2)
    special = np.array([[NAN, 1, -INF, -0.0, 0.0], [2, 2, INF, -INF, -0.0]], np.float32)
    for kind in ("sum", "prod", "max", "min"):
        found += [
            _window(kind, "f64 2x2", image, [1, 2, 2, 1], (0,), strides=[1, 2, 2, 1]),
            _window(kind, "f64 padded", image, [1, 3, 3, 1], (0,), strides=[1, 2, 2, 1], padding=[0, 0, 1, 1, 1, 1, 0, 0]),
            _window(kind, "f64 dilated", wave(9), [3], (0,), dilations=[2], padding=[1, 2]),
            _window(kind, "f32 special", special, [1, 2], padding=[0, 0, 1, 0]),
            _window(kind, "f32 padding alone", np.ones((2,), np.float32), [2], strides=[2], padding=[2, 0]),
            _window(kind, "f32 no window", np.ones((2,), np.float32), [3]),
            _window(kind, "f32 empty batch", np.zeros((0, 4), np.float32), [1, 2]),
            _window(kind, "bf16", np.full((600,), 1, BF16), [300], strides=[300]),
            _window(kind, "i32", np.array([3, -7, 2**31 - 1, 5], np.int32), [2]),
        ]
    bits = np.array([[True, False, True, True], [False, False, True, False]])
    for kind in ("and", "or"):
        found += [
            _window(kind, "i1", bits, [1, 2], padding=[0, 0, 1, 0]),
            _window(kind, "i1 rows", bits, [2, 1], strides=[2, 1]),
        ]
    return found


def _scatter(
    name: str,
    x: Array,
    source: Array,
    window: list[int],
    wrt: tuple[int, ...] = (),
    strides: list[int] | None = None,
    padding: list[int] | None = None,
) -> Sample:
    words = {"window": window, "strides": strides, "padding": padding}
    clauses = " ".join(f"{word} {value}" for word, value in words.items() if value)
    return case(name, f"nd.select_and_scatter %0, %1 {clauses} : {{0}}, {{1}} -> {{2}}", [x, source], type_text(x), wrt)


def _scatters() -> list[Sample]:
    f32 = np.float32
    ties = np.array([1, 1, NAN, 2, NAN, -INF, -INF, 0.0, -0.0], f32)
    image, pooled = wave(1, 6, 6, 2), wave(1, 3, 3, 2)
    return [
        _scatter("f64", image, pooled, [1, 2, 2, 1], (1,), strides=[1, 2, 2, 1]),
        _scatter("f64 overlapping", wave(5), wave(3), [3], (1,)),
        _scatter("f64 padded", wave(5), wave(4), [3], (1,), strides=[2], padding=[2, 2]),
        _scatter("f32 ties and nan", ties, np.arange(1, 9, dtype=f32), [2]),
        _scatter("f32 padding alone", np.ones(2, f32), np.array([5, 7], f32), [2], strides=[2], padding=[2, 0]),
        _scatter("bf16 many", np.array([1, 0], BF16), np.ones(512, BF16), [512], padding=[511, 510]),
        _scatter("f32 empty", np.zeros((0, 4), f32), np.zeros((0, 3), f32), [1, 2]),
        _scatter("i32", np.array([1, 5, 2], np.int32), np.array([10, 20], np.int32), [2]),
    ]


def samples_of(cls: type[NdOp]) -> tuple[Sample, ...]:
    """The samples of one op of this family."""
    return tuple({"nd.conv_general": _convolutions, "nd.reduce_window": _windows, "nd.select_and_scatter": _scatters}[cls.name]())
