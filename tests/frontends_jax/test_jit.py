"""JAX functions through Gradir: values, pytrees, static and donated arguments, keys, caching, errors."""

from __future__ import annotations

import sys
from collections import namedtuple

import numpy as np
import pytest

import gradir as gd
from gradir.errors import GradirError
from gradir.frontends.jax import arrays as arrays_module, from_jax, jit
from gradir.frontends.jax.text import text_of
from gradir.reference import run

jax = pytest.importorskip("jax")
jnp = jax.numpy

Params = namedtuple("Params", ["w", "b"])
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
PARAMS = Params(jnp.ones((4, 2)) * 0.3, jnp.arange(2.0))


def model(params, x, *, scale=1.0):
    return {"y": jnp.tanh(x @ params.w + params.b) * scale, "n": [jnp.sum(x > 0)]}


def test_pytrees_go_in_and_come_out():
    ours, theirs = jit(model)(PARAMS, X, scale=2.0), jax.jit(model)(PARAMS, X, scale=2.0)
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs)):
        assert isinstance(a, jax.Array)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_jax_transformations_go_inside():
    def loss(params, x):
        return jnp.mean(model(params, x)["y"] ** 2)

    ours, theirs = jit(jax.value_and_grad(loss))(PARAMS, X), jax.value_and_grad(loss)(PARAMS, X)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), ours, theirs)
    per_row = jit(jax.vmap(jax.grad(loss), (None, 0)))(PARAMS, X)
    np.testing.assert_allclose(per_row.w, jax.vmap(jax.grad(loss), (None, 0))(PARAMS, X).w, rtol=1e-5)


def test_gradir_differentiates_jax_functions():
    def loss(w, x):
        return jnp.sum(jnp.sin(x @ w))

    w = np.ones((4, 2), np.float32)
    np.testing.assert_allclose(gd.grad(jit(loss))(w, X), jax.grad(loss)(w, X), rtol=1e-5)


def test_programs_are_kept_per_types_and_static_values():
    traced = []

    @jit(static_argnums=1, static_argnames="mode")
    def power(x, n, mode="plain"):
        traced.append((n, mode))
        return x**n if mode == "plain" else -(x**n)

    assert power(jnp.float32(3), 2) == 9
    assert power(jnp.float32(4), 2) == 16
    assert power(jnp.float32(3), 3) == 27
    assert power(jnp.float32(3), 2, mode="negative") == -9
    assert power(jnp.ones(2), 2).shape == (2,)
    assert traced == [(2, "plain"), (3, "plain"), (2, "negative"), (2, "plain")]
    assert len(power.programs) == 4


def test_donated_arrays_are_gone():
    step = jit(lambda state, x: jax.tree.map(lambda s: s + x, state), donate_argnums=0)
    state, x = {"a": jnp.ones(3), "b": jnp.zeros(3)}, jnp.ones(3)
    new = step(state, x)
    np.testing.assert_array_equal(new["a"], 2 * np.ones(3))
    assert state["a"].is_deleted() and state["b"].is_deleted()
    assert not x.is_deleted()


def test_arrays_share_memory():
    x = jnp.arange(8192.0)
    taken = arrays_module.to_runtime(x, x)
    assert taken.ctypes.data == x.unsafe_buffer_pointer()
    result = gd.compile(from_jax(lambda v: v + 1, x))["main"](x)
    assert arrays_module.to_jax(result, x).unsafe_buffer_pointer() == result.ctypes.data


def test_methods_and_arguments_that_are_no_arrays():
    class Layer:
        def __init__(self):
            self.w = jnp.full(2, 3.0)

        @jit(static_argnums=0)
        def __call__(self, x, mask=None):
            return x * self.w if mask is None else x * mask

    np.testing.assert_array_equal(Layer()(jnp.ones(2)), [3, 3])
    np.testing.assert_array_equal(Layer()(jnp.ones(2), mask=jnp.zeros(2)), [0, 0])
    assert jit(lambda: ())() == ()
    nothing, three = jit(lambda x, y=None: (y, 3))(jnp.ones(2))
    assert nothing is None and three == 3


def test_types_that_dlpack_lacks_and_numbers():
    np.testing.assert_array_equal(jit(lambda x: x * 2)(jnp.ones(3, jnp.bfloat16)), np.full(3, 2, jnp.bfloat16))
    assert jit(lambda x: x > 0)(jnp.ones(2)).dtype == bool
    assert jit(lambda x, k: x + k)(2, 0.5) == 2.5
    assert jit(lambda x: x.sum())(np.ones(4)).dtype == jnp.float32  # JAX's 32 bits for numpy's 64
    assert jit(lambda x: x)(jnp.zeros((0, 3))).shape == (0, 3)


def test_random_keys():
    def draw(key):
        key, sub = jax.random.split(key)
        return key, jax.random.uniform(sub, (4,))

    assert jax.random.key_impl(jit(lambda k: k)(jax.random.key(1, impl="rbg"))) == "rbg"
    key = jax.random.key(7)
    ours, theirs = jit(draw)(key), jax.jit(draw)(key)
    np.testing.assert_array_equal(jax.random.key_data(ours[0]), jax.random.key_data(theirs[0]))
    assert ours[0].dtype == theirs[0].dtype
    np.testing.assert_array_equal(ours[1], theirs[1])


def test_from_jax_gives_the_module():
    module = from_jax(lambda a, n: a * n, jax.ShapeDtypeStruct((2, 2), jnp.float32), 3, static_argnums=1)
    assert module.functions == ("main",)
    (result,) = run(module, "main", [np.ones((2, 2), np.float32)])
    np.testing.assert_array_equal(result, np.full((2, 2), 3))


def test_calls_from_within_jax_are_refused():
    with pytest.raises(GradirError, match="while JAX traces") as caught:
        jax.grad(jit(lambda x: x * x))(1.0)
    assert caught.value.code == "GR131"
    assert "jit(jax.grad(f))" in caught.value.hint


def test_what_is_missing_is_named_with_its_python_line():
    def unusual(x):
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    with pytest.raises(GradirError) as caught:
        jit(unusual)(jnp.ones(3))
    assert caught.value.code == "GR120"
    assert "test_jit.py" in caught.value.location


def test_without_jax_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    arrays_module.jax.cache_clear()
    with pytest.raises(GradirError, match="jax is not installed") as caught:
        jit(lambda x: x)
    assert (caught.value.code, caught.value.hint) == ("GR130", "pip install gradir[jax]")
    arrays_module.jax.cache_clear()


def test_large_constants_are_never_text():
    rng = np.random.default_rng(0)
    w, i, b = rng.normal(size=(64, 64)).astype(np.float32), np.arange(3000, dtype=np.int32), rng.random(5000) > 0.5
    h = jnp.asarray(rng.normal(size=2000), jnp.bfloat16)

    def f(x):
        inner = jax.lax.cond(x[0, 0] > 0, lambda: jnp.asarray(w) * 2, lambda: jnp.asarray(w.T))
        return x @ w, x.sum().astype(int) + i, b, h * 2, inner

    lowered = jax.jit(f).lower(jnp.ones((2, 64)))
    taken = text_of(lowered)
    assert len(taken.text) < 10_000
    assert sorted(len(data) for data in taken.blobs.values()) == [4000, 5000, 12000, 16384, 16384]
    for ours, theirs in zip(jit(f)(jnp.ones((2, 64))), f(jnp.ones((2, 64)))):
        np.testing.assert_allclose(np.asarray(ours, np.float64), np.asarray(theirs, np.float64), rtol=1e-4, atol=1e-5)
