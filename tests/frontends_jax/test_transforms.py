"""The transforms of functions mean what JAX's mean: structures, argnums, aux, containers, any order, all of them in each other."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import gradir as gd

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")


@pytest.fixture(autouse=True)
def in_f64() -> Any:
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


class Layer(NamedTuple):
    w: Any
    b: Any


RNG = np.random.default_rng(0)
P = {"l": Layer(RNG.standard_normal((3, 2)), RNG.standard_normal(2)), "scale": np.float64(0.7)}
X = RNG.standard_normal(3)


def same(found: Any, expected: Any) -> None:
    """Equal in structure, shapes, kinds of elements and values."""
    a, of_a = jax.tree_util.tree_flatten(found)
    b, of_b = jax.tree_util.tree_flatten(expected)
    assert of_a == of_b
    for x, y in zip(a, b):
        x, y = np.asarray(x), np.asarray(y)
        assert (x.shape, x.dtype.kind) == (y.shape, y.dtype.kind)
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)


def layer(xp: Any) -> Any:
    """Of containers and arrays, with several results."""

    def f(p: Any, x: Any, k: Any = 2) -> Any:
        h = xp.tanh(x @ p["l"].w + p["l"].b) * k
        return {"h": h, "t": (xp.sum(h**2) * p["scale"],)}

    return f


def loss(xp: Any) -> Any:
    def g(p: Any, x: Any, k: Any = 2) -> Any:
        found = layer(xp)(p, x, k)
        return found["t"][0], {"mean": xp.mean(found["h"]), "k": k}

    return g


def both(make: Any, *args: Any, **kwargs: Any) -> None:
    """`make(gd, gd)` and `make(jax, jnp)` agree on these arguments."""
    same(make(gd, gd)(*args, **kwargs), make(jax, jnp)(*args, **kwargs))


def inside_too(make: Any, *args: Any) -> None:
    """The same, and inside of jit."""
    both(make, *args)
    same(gd.jit(make(gd, gd))(*args), make(jax, jnp)(*args))


@pytest.mark.parametrize("argnums", [(0, 1), *(pytest.param(n, marks=pytest.mark.full) for n in (0, 1, (1,)))])
@pytest.mark.parametrize("transform", ["jacfwd", "jacrev", pytest.param("hessian", marks=pytest.mark.full)])
def test_jacobians(transform: str, argnums: Any) -> None:
    both(lambda t, xp: getattr(t, transform)(layer(xp), argnums), P, X)


@pytest.mark.full
def test_jacobians_with_aux_of_scalars_and_of_nothing() -> None:
    for transform in ("jacfwd", "jacrev", "hessian"):
        both(lambda t, xp, name=transform: getattr(t, name)(loss(xp), 1, has_aux=True), P, X)
        both(lambda t, xp, name=transform: getattr(t, name)(lambda x: (xp.sin(x), x * x)), np.float64(0.3))
    both(lambda t, xp: t.jacfwd(lambda x: xp.sin(x)), np.zeros((0, 2)))
    both(lambda t, xp: t.jacrev(lambda x: xp.sin(x)), np.zeros((0, 2)))


@pytest.mark.parametrize("argnums", [(1, 0), pytest.param(0, marks=pytest.mark.full)])
def test_gradients_with_aux(argnums: Any) -> None:
    both(lambda t, xp: t.grad(loss(xp), argnums, has_aux=True), P, X)
    both(lambda t, xp: t.value_and_grad(loss(xp), argnums, has_aux=True), P, X)
    both(lambda t, xp: t.grad(lambda *a: loss(xp)(*a)[0], argnums), P, X)


def test_vjp_jvp_linearize() -> None:
    def pulled(t: Any, xp: Any) -> Any:
        def f(p: Any, x: Any) -> Any:
            y, pullback = t.vjp(layer(xp), p, x)
            return y, pullback({"h": y["h"] * 2, "t": (xp.sum(x),)})

        return f

    def pulled_aux(t: Any, xp: Any) -> Any:
        def f(p: Any, x: Any) -> Any:
            y, pullback, aux = t.vjp(loss(xp), p, x, has_aux=True)
            return y, pullback(y), aux

        return f

    def pushed(t: Any, xp: Any) -> Any:
        return lambda p, x: t.jvp(layer(xp), (p, x), (p, x * 2))

    def linear(t: Any, xp: Any) -> Any:
        def f(p: Any, x: Any) -> Any:
            y, along = t.linearize(layer(xp), p, x)
            return y, along(p, x), along(p, x * 3)

        return f

    for make in (pulled, pulled_aux, pushed, linear):
        inside_too(make, P, X)
    with gd.eager():
        same(jax.tree_util.tree_map(np.asarray, pulled(gd, gd)(P, X)), pulled(jax, jnp)(P, X))
        same(jax.tree_util.tree_map(np.asarray, linear(gd, gd)(P, X)), linear(jax, jnp)(P, X))


@pytest.mark.full
def test_hessian_vector_products_and_third_order() -> None:
    def energy(xp: Any) -> Any:
        return lambda x: xp.sum(xp.tanh(x) ** 2) * x[0]

    both(lambda t, xp: lambda x, v: t.jvp(t.grad(energy(xp)), (x,), (v,))[1], X, X[::-1].copy())
    both(lambda t, xp: lambda x, v: t.grad(lambda y: xp.sum(t.grad(energy(xp))(y) * v))(x), X, X[::-1].copy())
    both(lambda t, xp: lambda x, v: t.vjp(t.grad(energy(xp)), x)[1](v), X, X[::-1].copy())
    both(lambda t, xp: t.grad(t.grad(t.grad(lambda x: xp.sin(x) * x**3))), np.float64(0.4))
    both(lambda t, xp: t.jacfwd(t.hessian(energy(xp))), X)
    both(lambda t, xp: t.hessian(lambda x: t.linearize(energy(xp), x)[1](x)), X)


@pytest.mark.parametrize(
    "axes",
    [
        ({"l": Layer(0, None), "scale": 0}, 1),
        ({"l": Layer(1, 0), "scale": None}, 0),
        *(pytest.param(axes, marks=pytest.mark.full) for axes in ((0, 0), (None, 1), ({"l": 0, "scale": None}, None))),
    ],
)
def test_vmap_over_containers(axes: Any) -> None:
    """`in_axes` and `out_axes` stand for all leaves below them."""
    of_layer, of_scale = (axes[0]["l"], axes[0]["scale"]) if isinstance(axes[0], dict) else (axes[0],) * 2
    of_w, of_b = of_layer if isinstance(of_layer, Layer) else (of_layer,) * 2

    def batched(x: Any, axis: Any) -> Any:
        return x if axis is None else np.stack([x, 2 * x, -x, x + 1], axis)

    p = {"l": Layer(batched(P["l"].w, of_w), batched(P["l"].b, of_b)), "scale": batched(P["scale"], of_scale)}
    x = batched(X, axes[1])
    for out in (0, {"h": 1, "t": 0}, {"h": -1, "t": (0,)}):
        expected = jax.vmap(layer(jnp), axes, out)(p, x)
        same(gd.vmap(layer(gd), axes, out)(p, x), expected)
    expected = jax.vmap(jax.grad(lambda *a: loss(jnp)(*a)[0], (0, 1)), axes)(p, x)
    same(gd.vmap(gd.grad(lambda *a: loss(gd)(*a)[0], (0, 1)), axes)(p, x), expected)


def test_vmap_over_arguments_by_name() -> None:
    both(lambda t, xp: t.vmap(lambda x, y: xp.sum(x) * y, in_axes=1), np.ones((3, 4)), y=np.arange(4.0))


@pytest.mark.full
def test_all_in_each_other() -> None:
    """A checkpoint, a rule of one's own, a loop and a branch under each transform."""

    def model(t: Any, xp: Any) -> Any:
        control = t if t is gd else jax.lax
        scan = (lambda f, c, xs: gd.scan(f, c, xs)) if t is gd else jax.lax.scan

        @t.custom_vjp
        def cube(x: Any) -> Any:
            return x**3

        cube.defvjp(lambda x: (x**3, x), lambda x, ct: (3 * x**2 * ct,))

        def step(c: Any, w: Any) -> Any:
            c = t.checkpoint(lambda c, w: xp.sin(c * w) + cube(c))(c, w)
            return c, control.cond(xp.sum(c) > 0, lambda c: c * 2, lambda c: -c, c)

        def f(x: Any) -> Any:
            last, ys = scan(step, x, xp.stack([x, x * 0.5, x * x]))
            return xp.sum(last) + xp.sum(ys**2)

        return f

    x = np.array([0.3, -0.4])
    many = np.stack([x, 2 * x, -x])
    transforms = [
        (lambda t, f: t.grad(f), x),
        (lambda t, f: t.value_and_grad(f), x),
        (lambda t, f: lambda x: t.vjp(f, x)[1](x[0])[0], x),
        (lambda t, f: t.jit(t.grad(t.jit(f))), x),
        (lambda t, f: t.vmap(t.grad(f), out_axes=1), many),
        (lambda t, f: t.grad(lambda xs: t.vmap(f)(xs)[1]), many),
        (lambda t, f: t.jacrev(t.grad(f)), x),
    ]
    for wrap, argument in transforms:
        same(wrap(gd, model(gd, gd))(argument), wrap(jax, model(jax, jnp))(argument))
