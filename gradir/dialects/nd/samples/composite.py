"""Samples of the composites."""

from __future__ import annotations

import numpy as np

from gradir.dialects.nd.base import NdOp, Sample
from gradir.dialects.nd.samples.case import BF16, INF, NAN, Array, case, same, type_text, wave

_ROWS = np.array(
    [[3.4e38, -3.4e38, 0], [-INF, -INF, -INF], [NAN, 0, 1], [1000, 1000, -1000], [-INF, 0, 1], [-0.0, 0.0, 88.0]],
    np.float32,
)


def _along(op: str) -> list[Sample]:
    drops = op == "nd.logsumexp"

    def over(name: str, x: Array, dim: int, wrt: tuple[int, ...] = ()) -> Sample:
        kept = np.zeros([n for d, n in enumerate(x.shape) if d != dim], x.dtype)
        if not drops:
            return same(name, f"{op} %0 dim {dim}", [x], wrt)
        return case(name, f"{op} %0 dim {dim} : {{0}} -> {{1}}", [x], type_text(kept), wrt)

    return [
        over("f64 last", wave(2, 5, scale=2.0), 1, (0,)),
        over("f64 first", wave(4, 3, scale=2.0), 0, (0,)),
        over("f64 middle", wave(2, 3, 2), 1, (0,)),
        over("f64 one", wave(3, 1), 1, (0,)),
        over("f32 special", _ROWS, 1),
        over("f32 inf", np.array([[INF, 0], [INF, INF]], np.float32), 1),
        over("bf16", np.linspace(-3, 3, 40).reshape(2, 20).astype(BF16), 1),
        over("f32 empty axis", np.zeros((2, 0), np.float32), 1),
        over("f32 no rows", np.zeros((0, 3), np.float32), 1),
    ]


def _layer_norm() -> list[Sample]:
    def norm(name: str, x: Array, wrt: tuple[int, ...] = (), eps: str = "1.0e-05") -> Sample:
        size = x.shape[-1]
        scale, bias = wave(size, shift=1.0).astype(x.dtype), wave(size).astype(x.dtype)
        return case(name, f"nd.layer_norm %0, %1, %2 eps {eps} : {{0}}, {{1}}, {{2}}", [x, scale, bias], type_text(x), wrt)

    return [
        norm("f64", wave(3, 5), (0, 1, 2)),
        norm("f64 rank 3", wave(2, 2, 4), (0, 1, 2)),
        norm("f64 vector", wave(4), (0, 1, 2)),
        norm("f32 large", np.array([[8e37, -8e37, 4e37]], np.float32)),
        norm("f32 close together", np.array([[1e4, 1e4 + 1]], np.float32), eps="0.0"),
        norm("f32 constant", np.full((2, 3), 0.1, np.float32)),
        norm("f32 nan", np.array([[NAN, 1, 2], [1, 2, 4]], np.float32)),
        norm("bf16", wave(2, 8, dtype=BF16)),
        norm("f32 no rows", np.zeros((0, 3), np.float32)),
    ]


def _gelu() -> list[Sample]:
    found: list[Sample] = []
    for word in ("", " approximate"):
        line = f"nd.gelu %0{word}"
        found += [
            same(f"f64{word}", line, [wave(2, 3, scale=2.0)], (0,)),
            same(f"f32 special{word}", line, [np.array([NAN, INF, -0.0, 0.0, 3, 30, -0.5], np.float32)]),
            same(f"bf16{word}", line, [wave(8, dtype=BF16)]),
            same(f"f32 empty{word}", line, [np.zeros((0, 2), np.float32)]),
        ]
    return found


def _cross_entropy() -> list[Sample]:
    def loss(name: str, logits: Array, labels: Array, wrt: tuple[int, ...] = ()) -> Sample:
        result = type_text(np.zeros(logits.shape[0], logits.dtype))
        return case(name, "nd.cross_entropy %0, %1 : {0}, {1} -> {2}", [logits, labels], result, wrt)

    labels = np.array([2, 0, 1, 1], np.int32)
    return [
        loss("f64", wave(4, 3, scale=2.0), labels, (0,)),
        loss("f64 labels outside", wave(2, 3), np.array([-1, 7], np.int64), (0,)),
        loss("f32 special", _ROWS, np.array([0, 1, 0, 1, 2, 2], np.int32)),
        loss("bf16", wave(4, 3, dtype=BF16), labels),
        loss("f32 i8 labels of 200 classes", wave(2, 200, dtype=np.float32), np.array([127, 5], np.int8)),
        loss("f32 ui8 labels", wave(2, 3, dtype=np.float32), np.array([1, 255], np.uint8)),
        loss("f32 no rows", np.zeros((0, 3), np.float32), np.zeros(0, np.int32)),
    ]


def samples_of(cls: type[NdOp]) -> tuple[Sample, ...]:
    """The samples of one op of this family."""
    if cls.name in ("nd.softmax", "nd.log_softmax", "nd.logsumexp"):
        return tuple(_along(cls.name))
    return tuple({"nd.layer_norm": _layer_norm, "nd.gelu": _gelu, "nd.cross_entropy": _cross_entropy}[cls.name]())
