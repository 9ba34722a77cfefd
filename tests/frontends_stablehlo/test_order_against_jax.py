"""Sorting, gathers, scatters and folds as JAX writes them: values of the evaluator and compiled, and gradients, against JAX itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.driver.compile import compile_module
from gradir.frontends.stablehlo import import_text
from gradir.reference import run

jax: Any = pytest.importorskip("jax")
jnp: Any = jax.numpy

X = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
ROWS = np.array([2, 0, 2, 3], np.int32)
COLUMNS = np.array([[0, 5, 2], [1, 1, 7], [3, -1, 4], [2, 2, 2]], np.int32)
STARTS = np.array([1, 5, -2, 0], np.int32)

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "sort": lambda x: jnp.sort(x, axis=1),
    "sort descending": lambda x: jnp.sort(x, axis=0, descending=True),
    "argsort": lambda x: jnp.argsort(x, axis=1),
    "lexsort": lambda x: jnp.lexsort((x[0], x[1])),
    "two keys": lambda x: jax.lax.sort((jnp.round(x), x, jnp.arange(24.0).reshape(4, 6)), dimension=1, num_keys=2),
    "top_k": lambda x: jax.lax.top_k(x, 3),
    "median": lambda x: jnp.median(x, axis=1),
    "take_along_axis": lambda x: jnp.take_along_axis(x, jnp.array(COLUMNS), axis=1),
    "set": lambda x: x.at[ROWS].set(1.5),
    "max": lambda x: x.at[ROWS].max(x * 0.5),
    "apply": lambda x: x.at[ROWS].apply(jnp.sin),
    "segment_sum": lambda x: jax.ops.segment_sum(x, ROWS, 5),
    "segment_max": lambda x: jax.ops.segment_max(x, ROWS, 5),
    "cumlogsumexp": lambda x: jax.lax.cumlogsumexp(x, axis=1),
    "cummax": lambda x: jax.lax.cummax(x, axis=1, reverse=True),
    "products of windows": lambda x: jax.lax.reduce_window(x, np.float32(1), lambda a, b: a * b, (2, 3), (1, 2), "SAME"),
    "batched slices": lambda x: jax.vmap(lambda row, i: jax.lax.dynamic_slice(row, (i,), (3,)))(x, STARTS),
    "batched updates": lambda x: jax.vmap(lambda row, i: jax.lax.dynamic_update_slice(row, row[:2] * 2, (i,)))(x, STARTS),
    "searchsorted": lambda x: jnp.searchsorted(jnp.sort(x[0]), x[1]),
    "nonzero": lambda x: jnp.nonzero(x > 0, size=12, fill_value=-1),
}
NO_REVERSE = ("apply", "products of windows")
"""JAX has no reverse mode for these: central differences."""


def floats(results: Any) -> list[Any]:
    return [value for value in jax.tree.leaves(results) if value.dtype == np.float32]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients(name: str):
    function = FUNCTIONS[name]
    module = import_text(jax.jit(function).lower(X).as_text(), name)
    compiled = compile_module(module, cache=False)["main"](X)
    found = compiled if isinstance(compiled, tuple | list) else [compiled]
    wanted = jax.tree.leaves(jax.jit(function)(X))
    for value, evaluated, want in zip(found, run(module, "main", [X]), wanted, strict=True):
        np.testing.assert_allclose(np.asarray(value), want, rtol=2e-6, atol=1e-6)
        np.testing.assert_allclose(evaluated, want, rtol=2e-6, atol=1e-6)
    if not floats(wanted):
        return
    weights = np.cos(np.arange(floats(wanted)[0].size, dtype=np.float32)).reshape(floats(wanted)[0].shape)

    def loss(x: Any) -> Any:
        return jnp.sum(floats(function(x))[0] * weights)

    gradient = gd.grad(import_text(jax.jit(loss).lower(X).as_text(), name)["main"])(X)
    expected = _central(loss) if name in NO_REVERSE else jax.grad(loss)(X)
    np.testing.assert_allclose(np.asarray(gradient), expected, rtol=1e-5, atol=2e-2 if name in NO_REVERSE else 1e-5)


def _central(loss: Callable[[Any], Any]) -> np.ndarray[Any, Any]:
    """Differences of the loss in each element."""
    found = np.zeros_like(X)
    for place in np.ndindex(*X.shape):
        step = np.zeros_like(X)
        step[place] = 1e-2
        found[place] = (loss(jnp.array(X + step)) - loss(jnp.array(X - step))) / 2e-2
    return found
