"""Samples of the normalisations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradir.dialects.nd.base import NdOp, Sample
from gradir.dialects.nd.samples.case import BF16, INF, NAN, Array, case, type_text, wave

_LARGE = np.array([[8e37, -8e37, 4e37]], np.float32)


def _normal(
    op: str,
    name: str,
    x: Array,
    dim: int,
    vectors: int,
    *,
    clause: str = "",
    wrt: Sequence[int] = (),
    eps: str = "1.0e-05",
    results: int = 1,
) -> Sample:
    """`vectors` operands along `dim`: scale, bias, mean, and a positive variance."""
    size = x.shape[dim]
    given = [wave(size, shift=1.0), wave(size), wave(size, scale=0.3), wave(size, scale=0.5, shift=1.0)][:vectors]
    inputs = [x, *(vector.astype(x.dtype) for vector in given)]
    kinds = [type_text(value) for value in inputs]
    operands = ", ".join(f"%{k}" for k in range(len(inputs)))
    line = f"{op} {operands}{clause} eps {eps} : {', '.join(kinds)}"
    if results == 1:
        return case(name, line, inputs, kinds[0], wrt)
    arguments = ", ".join(f"%{k}: {kind}" for k, kind in enumerate(kinds))
    types = ", ".join([kinds[0], *[kinds[1]] * (results - 1)])
    names = ", ".join(f"%r{k}" for k in range(results))
    text = f"func.func @f({arguments}) -> ({types}) {{\n  {names} = {line}\n  return {names} : {types}\n}}\n"
    return Sample(name, text, lambda: tuple(value.copy() for value in inputs), tuple(wrt))


def _batch(op: str, vectors: int, results: int) -> list[Sample]:
    every = tuple(range(vectors + 1))

    def norm(name: str, x: Array, dim: int, wrt: Sequence[int] = (), eps: str = "1.0e-05") -> Sample:
        return _normal(op, name, x, dim, vectors, clause=f" dim {dim}", wrt=wrt, eps=eps, results=results)

    return [
        norm("f64 last", wave(4, 2, 3), 2, every),
        norm("f64 second", wave(2, 3, 4), 1, every),
        norm("f64 first", wave(3, 5), 0, every),
        norm("f32 large", _LARGE.T.copy(), 1),
        norm("f32 close together", np.array([[1e4], [1e4 + 1]], np.float32), 1, eps="0.001"),
        norm("f32 constant", np.full((5, 2), 0.1, np.float32), 1),
        norm("f32 nan", np.array([[NAN, 1, 2], [1, INF, 4]], np.float32), 1),
        norm("bf16", wave(8, 2, dtype=BF16), 1),
        norm("f32 one", np.array([[3.0]], np.float32), 1),
        norm("f32 no rows", np.zeros((0, 3), np.float32), 1),
        norm("f32 no channels", np.zeros((3, 0), np.float32), 1),
    ]


def _group() -> list[Sample]:
    def norm(name: str, x: Array, groups: int, wrt: Sequence[int] = (), eps: str = "1.0e-05") -> Sample:
        return _normal("nd.group_norm", name, x, x.ndim - 1, 2, clause=f" groups {groups}", wrt=wrt, eps=eps)

    return [
        norm("f64", wave(2, 3, 4), 2, (0, 1, 2)),
        norm("f64 image", wave(2, 2, 2, 6), 3, (0, 1, 2)),
        norm("f64 instance", wave(2, 5, 2), 2, (0, 1, 2)),
        norm("f32 layer", _LARGE, 1),
        norm("f32 constant", np.full((2, 3, 4), 0.1, np.float32), 2),
        norm("bf16", wave(1, 4, 4, dtype=BF16), 2),
        norm("f32 no rows", np.zeros((0, 2, 4), np.float32), 2),
        norm("f32 no places", np.zeros((2, 0, 4), np.float32), 2),
    ]


def _rms() -> list[Sample]:
    def norm(name: str, x: Array, wrt: Sequence[int] = (), eps: str = "1.0e-05") -> Sample:
        return _normal("nd.rms_norm", name, x, x.ndim - 1, 1, wrt=wrt, eps=eps)

    return [
        norm("f64", wave(3, 5), (0, 1)),
        norm("f64 rank 3", wave(2, 2, 4), (0, 1)),
        norm("f64 vector", wave(4), (0, 1)),
        norm("f32 large", np.array([[3e38, -3e38, 1e38], [1e-30, 2e-30, 0]], np.float32), eps="0.0"),
        norm("f32 zeros", np.array([[0.0, -0.0, 0.0]], np.float32), eps="0.0"),
        norm("f32 nan", np.array([[NAN, 1, 2], [1, INF, 4]], np.float32)),
        norm("bf16", wave(2, 8, dtype=BF16)),
        norm("f32 no rows", np.zeros((0, 3), np.float32)),
        norm("f32 no elements", np.zeros((3, 0), np.float32)),
    ]


def samples_of(cls: type[NdOp]) -> tuple[Sample, ...]:
    """The samples of one op of this family."""
    if cls.name == "nd.batch_norm_train":
        return tuple(_batch(cls.name, 2, 3))
    if cls.name == "nd.batch_norm_infer":
        return tuple(_batch(cls.name, 4, 1))
    return tuple(_group() if cls.name == "nd.group_norm" else _rms())
