"""Scales that move into constant weights: the numbers stay, for convolutions with groups and products of any layout."""

from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.dialects import nd
from gradir.ir.text import parse_module

RNG = np.random.default_rng(0)


def array(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def batch_norm(x: Any, scale: np.ndarray, shift: np.ndarray, dim: int) -> Any:
    shape = [1] * x.ndim
    shape[dim] = -1
    return x * scale.reshape(shape) + shift.reshape(shape)


W3, W4, W2, WB = array(3, 3, 2, 6), array(3, 3, 1, 8), array(20, 30), array(3, 5, 7)
PROGRAMS: dict[str, tuple[Any, np.ndarray]] = {
    "convolution": (lambda x: batch_norm(gd.conv(x, W3, padding="SAME"), array(6), array(6), 3), array(2, 5, 5, 2)),
    "channels first": (
        lambda x: batch_norm(gd.transpose(gd.conv(x, W3, strides=2), (0, 3, 1, 2)), array(6), array(6), 1), array(2, 7, 7, 2),
    ),
    "groups": (lambda x: gd.conv(x, W4, groups=4) * array(8), array(2, 5, 5, 4)),
    "columns": (lambda x: (x @ W2) * array(30), array(11, 20)),
    "rows": (lambda x: (W2 @ x) * array(20, 1), array(30, 4)),
    "batches": (lambda x: gd.einsum("bmk,bkn->bmn", x, WB) * array(3, 1, 7) , array(3, 4, 5)),
    "one number": (lambda x: (x @ W2) * np.float32(0.125), array(11, 20)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_numbers_stay(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, x = PROGRAMS[name]
    state = RNG.bit_generator.state
    expected = gd.jit(function, cache=False)(x)
    RNG.bit_generator.state = state  # the functions draw their scales while they are traced
    compiled = gd.jit(function, cache=False, fastmath="fast").compile(x, keep_ir=True)
    np.testing.assert_allclose(compiled(x), expected, rtol=1e-5, atol=1e-5)
    simplified = parse_module(compiled.report.ir["1 tensor, simplified"])
    assert not [op for op in simplified.walk() if isinstance(op, nd.MulOp)]


def test_without_permission_the_scale_stays_outside_of_the_sum() -> None:
    function, x = PROGRAMS["columns"]
    compiled = gd.jit(function, cache=False).compile(x, keep_ir=True)
    assert [op for op in parse_module(compiled.report.ir["1 tensor, simplified"]).walk() if isinstance(op, nd.MulOp)]
