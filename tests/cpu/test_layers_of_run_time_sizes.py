"""Normalisations and attention over sizes that only the call knows, compiled, forward and backward."""

from __future__ import annotations

import numpy as np
import pytest

from gradir.dialects.nd.base import Sample
from tests.cpu.batches import backward, differences, forward

RNG = np.random.default_rng(0)
ROWS, VECTOR = 'tensor<?x3xf32, ["b", ""]>', "tensor<3xf32>"
LONG, ALONG = 'tensor<5x?xf32, ["", "d"]>', 'tensor<?xf32, ["d"]>'
IMAGES, CHANNELS = 'tensor<?x?x4xf32, ["b", "t", ""]>', "tensor<4xf32>"
QUERY, KEY = 'tensor<?x?x4x2xf32, ["b", "t", "", ""]>', 'tensor<?x?x2x2xf32, ["b", "s", "", ""]>'


def program(name: str, arguments: list[str], results: list[str], line: str, *shapes: tuple[int, ...]) -> Sample:
    given = ", ".join(f"%{k}: {kind}" for k, kind in enumerate(arguments))
    names, types = ", ".join(f"%r{k}" for k in range(len(results))), ", ".join(results)
    text = f"func.func @f({given}) -> ({types}) {{\n  {names} = {line}\n  return {names} : {types}\n}}\n"
    arrays = tuple(RNG.normal(size=shape).astype(np.float32) for shape in shapes)
    return Sample(name, text, lambda: tuple(array.copy() for array in arrays))


PROGRAMS = [
    program(
        "batch_norm_train",
        [ROWS, VECTOR],
        [ROWS, VECTOR, VECTOR],
        f"nd.batch_norm_train %0, %1, %1 dim 1 eps 1.0e-05 : {ROWS}, {VECTOR}, {VECTOR}",
        (5, 3),
        (3,),
    ),
    program("rms_norm", [LONG, ALONG], [LONG], f"nd.rms_norm %0, %1 eps 1.0e-05 : {LONG}, {ALONG}", (5, 3), (3,)),
    program(
        "group_norm",
        [IMAGES, CHANNELS],
        [IMAGES],
        f"nd.group_norm %0, %1, %1 groups 2 eps 1.0e-05 : {IMAGES}, {CHANNELS}, {CHANNELS}",
        (2, 5, 4),
        (4,),
    ),
    program(
        "attention",
        [QUERY, KEY],
        [QUERY],
        f"nd.attention %0, %1, %1 causal scale 0.5 : {QUERY}, {KEY}, {KEY} -> {QUERY}",
        (2, 5, 4, 2),
        (2, 3, 2, 2),
    ),
    program(
        "attention of no keys",
        [QUERY, KEY],
        [QUERY],
        f"nd.attention %0, %1, %1 scale 0.5 : {QUERY}, {KEY}, {KEY} -> {QUERY}",
        (1, 2, 4, 2),
        (1, 0, 2, 2),
    ),
]


@pytest.mark.parametrize("sample", PROGRAMS, ids=[sample.name for sample in PROGRAMS])
def test_forward_and_backward(sample: Sample) -> None:
    for batch in (forward([sample]), backward([sample])):
        assert differences(batch, batch.compiled()) == []
