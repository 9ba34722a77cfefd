"""A stencil written in `linalg.generic` in a loop of 100 time steps: value and gradient equal JAX's, compiled and evaluated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradir.autodiff.differentiate import Differentiate
from gradir.driver.compile import compile_module
from gradir.ir.passes import PassContext
from gradir.ir.text import parse_module, verify_module
from gradir.reference import run
from tests.autodiff.gradients import Array, error

TEXT = (Path(__file__).parent / "programs" / "stencil.mlir").read_text()


def inputs() -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((18, 18)), 1.0 + 0.5 * rng.random((16, 16))


def expected(u0: Array, a: Array) -> list[Array]:
    """Loss and gradients of the same program in JAX, in f64."""
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy

    def loss(u0: Any, a: Any) -> Any:
        def step(u: Any, _: Any) -> Any:
            c = u[1:-1, 1:-1]
            around = u[:-2, 1:-1] + u[2:, 1:-1] + (u[1:-1, :-2] + u[1:-1, 2:])
            return u.at[1:-1, 1:-1].set(c + 0.1 * (a * (around - 4.0 * c) - jnp.sin(c))), None

        return jnp.sum(jax.lax.scan(step, u0, None, length=100)[0] ** 2)

    value, gradients = jax.value_and_grad(loss, (0, 1))(u0, a)
    return [np.asarray(value), *map(np.asarray, gradients)]


def test_evaluated_equals_jax() -> None:
    wanted = expected(*inputs())
    module = parse_module(TEXT)
    Differentiate().apply(module, PassContext())
    verify_module(module)
    for found, want in zip(run(module, "value_and_grad", inputs()), wanted, strict=True):
        assert error(np.asarray(found), want) < 1e-9


def test_compiled_equals_jax() -> None:
    wanted = expected(*inputs())
    compiled = compile_module(TEXT, cache=False)["value_and_grad"]
    for found, want in zip(compiled(*inputs()), wanted, strict=True):
        assert error(np.asarray(found), want) < 1e-9


@pytest.mark.parametrize("wrt", [0, 1])
def test_the_gradient_is_the_slope(wrt: int) -> None:
    """Along a random direction, without JAX."""
    compiled = compile_module(TEXT, cache=False)["value_and_grad"]
    given = list(inputs())
    direction = np.random.default_rng(1).standard_normal(given[wrt].shape)
    gradients = compiled(*given)[1:]

    def at(step: float) -> float:
        return float(compiled(*(x + step * direction if k == wrt else x for k, x in enumerate(given)))[0])

    slope = (at(1e-5) - at(-1e-5)) / 2e-5
    assert abs(slope - float(np.sum(gradients[wrt] * direction))) < 1e-8 * abs(slope)
