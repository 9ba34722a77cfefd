"""How large is what a composite adds up? The error of a result is a few units in the last place of that, see `noise`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Magnitude = Callable[[Any, int, Array, Sequence[Array]], Any]
"""`f(op, number of the result, the result, operands)`, all in f64."""

TINY = 1.2e-38
"""The least normal number of f32: below it an exponential has few bits."""


def largest(array: Array) -> float:
    """The largest finite element in size, 0 of nothing."""
    finite = array[np.isfinite(array)]
    return float(np.max(np.abs(finite), initial=0.0))


def _spread(array: Array) -> float:
    finite = array[np.isfinite(array)]
    return float(np.max(finite) - np.min(finite)) if finite.size else 0.0


def _along_rows(_op: Any, _k: int, result: Array, operands: Sequence[Array]) -> Any:
    return np.abs(result) + largest(operands[0])


def _normalised(_op: Any, _k: int, result: Array, operands: Sequence[Array]) -> Any:
    return np.abs(result) + largest(result) + max((largest(vector) for vector in operands[2:3]), default=0.0)


def _batch_norm(op: Any, k: int, result: Array, operands: Sequence[Array]) -> Any:
    if k == 0:
        return _normalised(op, k, result, operands)
    return largest(operands[0]) if k == 1 else np.abs(result) + _spread(operands[0]) ** 2


def _attention(op: Any, _k: int, result: Array, operands: Sequence[Array]) -> Any:
    q, k, v = operands[:3]
    norms = [largest(np.sqrt(np.sum(np.square(np.where(np.isfinite(x), x, 0.0)), axis=-1))) for x in (q, k)]
    scores = abs(op.factor) * norms[0] * norms[1] + sum(largest(x) for x in operands[3:])
    return np.abs(result) + largest(v) * (1 + scores)


def _share(result: Array, operands: Sequence[Array]) -> float:
    """1, and more where one element of the result adds up many: rounding errors of a sum grow with it."""
    return 1 + operands[0].size / max(1, result.size) / 16


def _variance(_op: Any, _k: int, result: Array, operands: Sequence[Array]) -> Any:
    return (np.abs(result) + _spread(operands[0]) ** 2) * _share(result, operands)


def _cumulative(op: Any, _k: int, result: Array, operands: Sequence[Array]) -> Any:
    return (np.abs(result) + largest(operands[0]) + 1) * (1 + result.shape[op.number("dim")] / 16)


COMPOSITES: dict[str, Magnitude] = {
    "nd.variance": _variance,
    "nd.norm": lambda _op, _k, result, operands: np.abs(result) * _share(result, operands),
    "nd.cumlogsumexp": _cumulative,
    "nd.softmax": lambda _op, _k, result, operands: np.abs(result) * (1 + largest(operands[0])),
    "nd.log_softmax": _along_rows,
    "nd.logsumexp": _along_rows,
    "nd.cross_entropy": _along_rows,
    "nd.layer_norm": _normalised,
    "nd.gelu": lambda _op, _k, _result, operands: np.abs(operands[0]),
    "nd.silu": lambda _op, _k, result, operands: np.abs(result) + TINY * np.abs(operands[0]),
    "nd.softplus": lambda _op, _k, result, _operands: np.abs(result) + TINY,
    "nd.batch_norm_train": _batch_norm,
    "nd.batch_norm_infer": _normalised,
    "nd.group_norm": _normalised,
    "nd.rms_norm": _normalised,
    "nd.attention": _attention,
}
