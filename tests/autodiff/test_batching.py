"""`ad.batch`: every op on every sample, lane by lane against the op itself; control flow and nesting with both modes by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block

import gradir as gd
from gradir.autodiff.batching.lanes import lane_type
from gradir.autodiff.batching.rules import BATCH
from gradir.autodiff.differentiate import Differentiate
from gradir.dialects import ad, nd
from gradir.ir.builder import Builder, new_function
from gradir.ir.passes import PassContext
from gradir.ir.text import parse_module, verify_module
from gradir.reference import run

LANES = 3
SAMPLES = [(s.name, s) for ops in nd.FAMILIES.values() for op in ops for s in getattr(op, "samples", tuple)()]


def batched(text: str, over: Sequence[int]) -> Any:
    """The module with a public `@batch` of `@f`."""
    module = parse_module(text)
    (f,) = [op for op in module.body.block.ops if isinstance(op, FuncOp) and op.sym_name.data == "f"]
    kinds = [lane_type(kind, LANES) if k in over else kind for k, kind in enumerate(f.function_type.inputs.data)]
    block = Block(arg_types=kinds)
    op = ad.BatchOp.make("f", list(block.args), over, f.function_type.outputs.data)
    block.add_op(op)
    Builder(block).op(ReturnOp, list(op.results))
    module.body.block.add_op(new_function("batch", block, [r.type for r in op.results]))
    Differentiate().apply(module, PassContext())
    verify_module(module)
    return module


def lanes_of(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The sample's values, in another order in each lane."""
    flat = array.reshape(-1)
    return np.stack([np.roll(flat, k).reshape(array.shape) for k in range(LANES)])


@pytest.mark.parametrize(("name", "sample"), SAMPLES, ids=[n for n, _ in SAMPLES])
def test_each_lane_is_the_op(name: str, sample: nd.Sample) -> None:
    inputs = sample.inputs()
    if not inputs:
        return
    choices = {tuple(range(len(inputs)))} | ({(k,) for k in range(len(inputs))} if len(inputs) > 1 else set())
    with np.errstate(all="ignore"):
        for over in sorted(choices):
            module = batched(sample.text, over)
            wide = [lanes_of(x) if k in over else x for k, x in enumerate(inputs)]
            found = run(module, "batch", wide)
            for lane in range(LANES):
                expected = run(module, "f", [x[lane] if k in over else x for k, x in enumerate(wide)])
                for want, got in zip(expected, found, strict=True):
                    want, got = np.asarray(want), np.asarray(got)[lane]
                    assert want.shape == got.shape and want.dtype == got.dtype, (over, lane)
                    if want.dtype.kind in "iub":
                        np.testing.assert_array_equal(got, want, err_msg=f"{over} lane {lane}")
                    else:
                        wide_type = np.complex128 if want.dtype.kind == "c" else np.float64
                        np.testing.assert_allclose(
                            got.astype(wide_type), want.astype(wide_type), rtol=1e-5, atol=1e-6, err_msg=f"{over} lane {lane}"
                        )


X = np.linspace(0.3, 1.4, LANES)
K = np.array([1, 4, 2], np.int32)


def branch(x: Any, k: Any) -> Any:
    return gd.cond(x > 0.8, lambda x: gd.log(x), lambda x: x * x, x)


def trips(x: Any, k: Any) -> Any:
    return gd.fori_loop(0, k, lambda i, s: gd.sin(s) + x * i.astype(np.float64), x)


def newton(x: Any, k: Any) -> Any:
    return gd.while_loop(lambda s: gd.abs(s * s - x) > 1e-9, lambda s: 0.5 * (s + x / s), x)


def several_ends(x: Any, k: Any) -> Any:
    total = gd.while_loop(lambda s: s[2] < k, lambda s: (s[0] * 1.5 + x, s[1] + s[0] * x, s[2] + 1), (x, x * 0.0, np.int32(0)))
    return total[0] + total[1]


def choice(x: Any, k: Any) -> Any:
    return gd.switch(k - 1, [lambda x: x, lambda x: x * x, lambda x: gd.exp(x)], x)


def places(x: Any, k: Any) -> Any:
    table = gd.arange(6, dtype=np.float64) * x
    table = gd.dynamic_update_slice(table, gd.stack([x, x]), [k])
    return gd.sum(gd.dynamic_slice(table, [k - 1], [3]) * table[k])


def nest(x: Any, k: Any) -> Any:
    def body(i: Any, s: Any) -> Any:
        return gd.cond(
            i % 2 == 0, lambda s: gd.while_loop(lambda t: t < 3.0, lambda t: t + gd.abs(gd.sin(t)) * x + 0.1, s), lambda s: s * x, s
        )

    return gd.fori_loop(0, k, body, x)


@gd.custom_vjp
def ruled(x: Any) -> Any:
    return gd.sin(x)


ruled.defvjp(lambda x: (gd.sin(x), x), lambda x, ct: (ct * 7.0 * x,))


def with_rules(x: Any, k: Any) -> Any:
    return ruled(x) + gd.checkpoint(lambda y: gd.exp(y) * x)(x)


PROGRAMS = [branch, trips, newton, several_ends, choice, places, nest, with_rules]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_control_flow_per_lane(f: Callable[..., Any]) -> None:
    """Values, both modes, and both orders of batching and differentiation, compiled and evaluated."""
    one = lambda g: np.stack([np.asarray(gd.jit(g, cache=False)(x, k)) for x, k in zip(X, K)])
    np.testing.assert_allclose(gd.jit(gd.vmap(f), cache=False)(X, K), one(f), rtol=1e-12)
    slopes = one(gd.grad(f))
    np.testing.assert_allclose(gd.jit(gd.vmap(gd.grad(f)), cache=False)(X, K), slopes, rtol=1e-10)
    np.testing.assert_allclose(gd.jit(gd.grad(lambda x, k: gd.sum(gd.vmap(f)(x, k))), cache=False)(X, K), slopes, rtol=1e-10)
    forward = lambda x, k: gd.jvp(lambda x: f(x, k), (x,), (np.float64(1),))[1]
    np.testing.assert_allclose(gd.jit(gd.vmap(forward), cache=False)(X, K), slopes, rtol=1e-10)
    with gd.eager():
        np.testing.assert_allclose(np.asarray(gd.vmap(f)(X, K)), one(f), rtol=1e-12)


def test_axes_containers_and_captures() -> None:
    shift = np.float32(100)
    f = lambda p, y: {"s": p["a"] + y + shift, "t": (p["a"] * 2,)}
    a, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.float32(10)
    found = gd.vmap(f, in_axes=(1, None), out_axes=-1)({"a": a}, y)
    np.testing.assert_array_equal(found["s"], a + 110)
    np.testing.assert_array_equal(found["t"][0], a * 2)
    pairs = gd.vmap(lambda x, y: (x * y, x), in_axes=(0, 1), out_axes=(1, 0))(a, a.T)
    np.testing.assert_array_equal(pairs[0], (a * a).T)
    outer = gd.jit(lambda c, x: gd.vmap(lambda v: v * c)(x))(np.float32(3), a)
    np.testing.assert_array_equal(outer, a * 3)


def test_nested() -> None:
    """All pairwise products, and a matrix product from dots of vectors."""
    a, b = np.arange(3.0), np.arange(4.0)
    np.testing.assert_array_equal(gd.vmap(lambda x: gd.vmap(lambda y: x * y)(b))(a), np.outer(a, b))
    m, n = np.random.default_rng(0).standard_normal((2, 3, 3))
    product = gd.vmap(gd.vmap(gd.dot, in_axes=(None, 1)), in_axes=(0, None))
    np.testing.assert_allclose(product(m, n), m @ n)


def test_jacobians_and_hessian() -> None:
    f = lambda x: gd.stack([x[0] * x[1], gd.sin(x[2]), x[0] * x[0] * x[2]])
    x = np.array([1.0, 2.0, 0.5])
    expected = [[2, 1, 0], [0, 0, np.cos(0.5)], [1, 0, 1]]
    np.testing.assert_allclose(gd.jacfwd(f)(x), expected)
    np.testing.assert_allclose(gd.jacrev(f)(x), expected)
    with gd.eager():
        np.testing.assert_allclose(np.asarray(gd.jacfwd(f)(x)), expected)
    g = lambda x: gd.sum(x * x * x) + x[0] * x[1]
    np.testing.assert_allclose(gd.hessian(g)(x), np.diag(6 * x) + np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]]))


def test_a_jacobian_beside_an_infinite_result() -> None:
    """The cotangents of other results are zeros, not zero times them."""
    found = gd.jacrev(lambda x: (gd.exp(x), gd.log(x)))(np.array([0.0, 1000.0]))[1]
    np.testing.assert_array_equal(np.diag(found)[1], 1e-3)


def test_an_assertion_is_about_the_lanes_that_come_by() -> None:
    def f(x: Any) -> Any:
        def checked(x: Any) -> Any:
            gd.assert_(x > 0, "positive")
            return gd.log(x)

        return gd.cond(x > 0, checked, lambda x: x, x)

    np.testing.assert_allclose(gd.jit(gd.vmap(f))(np.array([-1.0, 1.0])), [-1, 0])
    broken = gd.jit(gd.vmap(lambda x: (gd.assert_(x > 0, "positive"), x)[1]))
    with pytest.raises(gd.GradirError, match=r"positive"):
        broken(np.array([-1.0, 1.0]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gd.vmap(gd.add)(np.ones(3), np.ones(4)), "different sizes"),
        (lambda: gd.vmap(gd.sin, in_axes=None)(np.ones(3)), "no argument is mapped over"),
        (lambda: gd.vmap(gd.sin, in_axes=2)(np.ones(3)), "no axis 2"),
        (lambda: gd.vmap(gd.add, in_axes=(0,))(np.ones(3), np.ones(3)), "in_axes does not fit"),
        (lambda: gd.vmap(gd.sin, out_axes=None)(np.ones(3)), "out_axes is None"),
    ],
)
def test_bad_axes(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(gd.GradirError, match=r"GR107") as caught:
        call()
    assert message in str(caught.value)


SCALAR = """
func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  %s = tensor.extract %x[] : tensor<f32>
  %t = math.exp %s : f32
  %r = tensor.from_elements %t : tensor<f32>
  return %r : tensor<f32>
}
func.func @g(%x: tensor<3xf32>) -> tensor<3xf32> {
  %r = ad.batch @f(%x) over [0] : (tensor<3xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}
"""


def test_ops_on_scalars_are_loop_nests_over_the_lanes() -> None:
    module = parse_module(SCALAR)
    Differentiate().apply(module, PassContext())
    x = np.array([-1.0, 0.5, 2.0], np.float32)
    np.testing.assert_allclose(run(module, "g", [x])[0], np.exp(x), rtol=1e-6)


def test_an_op_on_scalars_with_two_results() -> None:
    text = """
func.func private @f(%x: tensor<i32>) -> tensor<i32> {
  %s = tensor.extract %x[] : tensor<i32>
  %lo, %hi = arith.mulsi_extended %s, %s : i32
  %r = tensor.from_elements %hi : tensor<i32>
  return %r : tensor<i32>
}
func.func @g(%x: tensor<3xi32>) -> tensor<3xi32> {
  %r = ad.batch @f(%x) over [0] : (tensor<3xi32>) -> tensor<3xi32>
  return %r : tensor<3xi32>
}
"""
    with pytest.raises(gd.GradirError, match=r"AD013.*arith.mulsi_extended"):
        Differentiate().apply(parse_module(text), PassContext())


def test_unsigned_comparisons_of_scalars() -> None:
    """`nd.compare` takes signless integers as signed ones; the op itself does not."""
    text = """
func.func private @f(%x: tensor<i32>) -> tensor<i1> {
  %s = tensor.extract %x[] : tensor<i32>
  %one = arith.constant 1 : i32
  %t = arith.cmpi ugt, %s, %one : i32
  %r = tensor.from_elements %t : tensor<i1>
  return %r : tensor<i1>
}
func.func @g(%x: tensor<3xi32>) -> tensor<3xi1> {
  %r = ad.batch @f(%x) over [0] : (tensor<3xi32>) -> tensor<3xi1>
  return %r : tensor<3xi1>
}
"""
    module = parse_module(text)
    Differentiate().apply(module, PassContext())
    assert list(np.asarray(run(module, "g", [np.array([-1, 0, 2], np.int32)])[0])) == [True, False, True]
    signed = parse_module(text.replace("ugt", "sgt"))
    Differentiate().apply(signed, PassContext())
    assert list(np.asarray(run(signed, "g", [np.array([-1, 0, 2], np.int32)])[0])) == [False, False, True]


def test_recursion_is_refused() -> None:
    text = SCALAR.replace("math.exp %s : f32", "math.exp %s : f32\n  %again = func.call @f(%x) : (tensor<f32>) -> tensor<f32>")
    with pytest.raises(gd.GradirError, match=r"AD006"):
        Differentiate().apply(parse_module(text.replace("%t = math.exp %s : f32\n", "").replace("%t :", "%s :")), PassContext())


def test_a_lane_by_lane_loop_for_an_op_without_a_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(BATCH, nd.CumsumOp)
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(gd.jit(gd.vmap(gd.cumsum), cache=False)(x), np.cumsum(x, 1))
