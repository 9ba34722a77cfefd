"""Programs as people write them for JAX give through Gradir what XLA gives."""

from __future__ import annotations

import numpy as np
import pytest

from gradir.frontends.jax import jit

jax = pytest.importorskip("jax")

from tests.frontends_jax.programs import PROGRAMS  # noqa: E402  needs jax

SLOW = (
    "transformer_with_dropout",
    "random_numbers",
    "statistics",
    "order_statistics",
    "indexing",
    "resnet_block",
    "special_functions",
    "kalman_filter",
)


def close(ours: object, theirs: object) -> None:
    if jax.dtypes.issubdtype(theirs.dtype, jax.dtypes.prng_key):
        ours, theirs = jax.random.key_data(ours), jax.random.key_data(theirs)
    a, b = np.asarray(ours), np.asarray(theirs)
    assert (a.dtype, a.shape) == (b.dtype, b.shape)
    np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5 * max(1e-3, float(np.abs(b).max(initial=0))))


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.full] * (n in SLOW)) for n in PROGRAMS])
def test_program_gives_what_xla_gives(name: str) -> None:
    function, arguments = PROGRAMS[name]()
    ours, theirs = jit(function, cache=False)(*arguments), jax.jit(function)(*arguments)
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    jax.tree.map(close, ours, theirs)
