"""Batch normalisation of StableHLO, all three ops, on every feature index."""

from __future__ import annotations

import numpy as np
import pytest

from gradir.driver.compile import compile_module
from gradir.frontends.stablehlo import import_text
from gradir.ir.text import print_module
from gradir.reference import run

RNG = np.random.default_rng(3)
SHAPE = (4, 3, 5)


def text(op: str, index: int, operands: int, results: int, tensors: tuple[int, ...]) -> str:
    """The operands and results in `tensors` have the shape of the input, the others lie along the feature dimension."""
    whole, vector = f"tensor<{'x'.join(map(str, SHAPE))}xf32>", f"tensor<{SHAPE[index]}xf32>"
    kinds = [whole if k in tensors else vector for k in range(operands)]
    made = [whole, *[vector] * (results - 1)]
    arguments = ", ".join(f"%a{k}: {kind}" for k, kind in enumerate(kinds))
    names = ", ".join(f"%a{k}" for k in range(operands))
    returned = ", ".join(f"%r#{k}" if results > 1 else "%r" for k in range(results))
    types = ", ".join(made)
    return (
        f"func.func public @main({arguments}) -> ({types}) {{\n"
        f'  %r{f":{results}" if results > 1 else ""} = "stablehlo.{op}"({names}) '
        f"{{epsilon = 0.01 : f32, feature_index = {index} : i64}} : ({', '.join(kinds)}) -> ({types})\n"
        f"  return {returned} : {types}\n}}\n"
    )


def both(source: str, inputs: list[np.ndarray]) -> list[np.ndarray]:
    module = import_text(source)
    found = run(module, "main", inputs)
    compiled = compile_module(module, cache=False)["main"].flat(*inputs)
    for a, b in zip(found, compiled, strict=True):
        np.testing.assert_allclose(b, a, rtol=2e-5, atol=1e-6)
    return found


def inputs(index: int, vectors: int) -> list[np.ndarray]:
    x = RNG.normal(size=SHAPE) * 2 + 3
    return [x.astype(np.float32), *((RNG.normal(size=SHAPE[index]) + 2).astype(np.float32) for _ in range(vectors))]


def along(vector: np.ndarray, index: int) -> np.ndarray:
    return vector.astype(np.float64).reshape([n if d == index else 1 for d, n in enumerate(SHAPE)])


@pytest.mark.parametrize("index", range(3))
def test_training(index: int) -> None:
    source = text("batch_norm_training", index, 3, 3, (0,))
    assert "nd.batch_norm_train" in print_module(import_text(source))
    x, scale, offset = inputs(index, 2)
    axes = tuple(d for d in range(3) if d != index)
    mean, var = x.astype(np.float64).mean(axes), x.astype(np.float64).var(axes)
    expected = (x - along(mean, index)) / np.sqrt(along(var, index) + 0.01) * along(scale, index) + along(offset, index)
    for found, wanted in zip(both(source, [x, scale, offset]), (expected, mean, var)):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("index", range(3))
def test_inference(index: int) -> None:
    source = text("batch_norm_inference", index, 5, 1, (0,))
    assert "nd.batch_norm_infer" in print_module(import_text(source))
    x, scale, offset, mean, var = inputs(index, 4)
    var = np.abs(var)
    normal = (x - along(mean, index)) / np.sqrt(along(var, index) + 0.01)
    (found,) = both(source, [x, scale, offset, mean, var])
    np.testing.assert_allclose(found, normal * along(scale, index) + along(offset, index), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("index", range(3))
def test_gradient_is_that_of_training(index: int) -> None:
    x, scale, _ = inputs(index, 2)
    ct = RNG.normal(size=SHAPE).astype(np.float32)
    axes = tuple(d for d in range(3) if d != index)
    mean, var = x.astype(np.float64).mean(axes), x.astype(np.float64).var(axes)
    given = [x, scale, mean.astype(np.float32), var.astype(np.float32), ct]
    dx, dscale, doffset = both(text("batch_norm_grad", index, 5, 3, (0, 4)), given)

    def loss(values: np.ndarray) -> float:
        m, v = values.mean(axes), values.var(axes)
        return float(np.sum((values - along(m, index)) / np.sqrt(along(v, index) + 0.01) * along(scale, index) * ct))

    wide, step = x.astype(np.float64), 1e-5
    for at in [(0, 0, 0), (1, 2, 3), (3, 1, 4)]:
        move = np.zeros(SHAPE)
        move[at] = step
        assert abs((loss(wide + move) - loss(wide - move)) / (2 * step) - dx[at]) < 1e-3
    normal = (wide - along(mean, index)) / np.sqrt(along(var, index) + 0.01)
    np.testing.assert_allclose(dscale, np.sum(ct * normal, axes), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(doffset, np.sum(ct, axes, dtype=np.float64), rtol=1e-4, atol=1e-5)
