"""What straight-line derivatives keep in memory: redone terms change no bit, nest in both modes and in batches, and make the arena small."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradir as gd
from bench.systems.gradir_system import GradirOps
from bench.workloads import WORKLOADS
from gradir.driver.lower import lower, run_passes
from gradir.driver.pipelines import Request
from gradir.driver.report import CompileReport
from gradir.ir.text import parse_module, print_module
from gradir.lowering.plan_memory import ARENA

JAX_TEMPORARY_BYTES = 34_652_160
"""`compiled.memory_analysis().temp_size_in_bytes` of the same training step in JAX 0.10.2 on a CPU."""


def arena(function: Any, *inputs: Any) -> int:
    """Planned bytes of the one public function, after the whole pipeline."""
    module = lower(gd.jit(function).lower(*inputs), target="cpu:x86-64-v3", threads=2, last="buffers", check=False)
    return next(op.attributes[ARENA].value.data for op in module.body.block.ops if ARENA in op.attributes)


def train(name: str) -> Any:
    """One step of plain SGD on a workload of the benchmark."""
    w = WORKLOADS[name]

    def step(*inputs: Any) -> Any:
        n = w.params
        loss, gradients = gd.value_and_grad(lambda *p: w.fn(GradirOps(), *p, *inputs[n:]), tuple(range(n)))(*inputs[:n])
        return (loss, *(p - w.rate * g for p, g in zip(inputs[:n], gradients)))

    return step


def test_a_transformer_block_trains_in_less_memory_than_jax_plans() -> None:
    assert arena(train("block_train"), *WORKLOADS["block_train"].inputs()) <= JAX_TEMPORARY_BYTES


def net(w: Any, v: Any, x: Any) -> Any:
    h = gd.layer_norm(x @ w, 1.5, 0.5)
    return gd.mean((gd.gelu(h) @ v + h[:, :16]) ** 2)


W, V, X = (np.random.default_rng(k).standard_normal(s) / 4 for k, s in enumerate([(16, 64), (64, 16), (96, 16)]))


@pytest.mark.parametrize(
    "derivative",
    [
        lambda f: gd.grad(f, (0, 1)),
        lambda f: lambda w, v, x: gd.jvp(lambda w: gd.grad(f)(w, v, x), (w,), (w,))[1],
        lambda f: lambda w, v, x: gd.grad(lambda w: gd.sum(gd.grad(f)(w, v, x) ** 2))(w),
        lambda f: lambda w, v, x: gd.vmap(gd.grad(f), (None, None, 0))(w, v, gd.stack([x, x + 1])),
    ],
    ids=["reverse", "forward over reverse", "reverse over reverse", "batched"],
)
def test_redone_terms_nest(derivative: Any) -> None:
    function = derivative(net)
    module = gd.jit(function).lower(W, V, X)
    run_passes(module, [Request("differentiate")], CompileReport())
    assert "nd.optimization_barrier" in print_module(module)
    with gd.eager():
        expected = function(W, V, X)
    found = gd.jit(function, cache=False)(W, V, X)
    for a, b in zip(*(x if isinstance(x, tuple) else (x,) for x in (found, expected))):
        np.testing.assert_allclose(a, np.asarray(b), rtol=1e-9, atol=1e-12)


def test_a_barrier_keeps_what_is_the_same_for_all_lanes() -> None:
    module = parse_module(
        """
        func.func private @f(%x: tensor<3xf32>, %y: tensor<3xf32>) -> tensor<3xf32> {
          %0, %1 = nd.optimization_barrier %x, %y : tensor<3xf32>, tensor<3xf32>
          %2 = nd.exp %0 : tensor<3xf32>
          %3 = nd.mul %2, %1 : tensor<3xf32>
          return %3 : tensor<3xf32>
        }
        func.func @main(%x: tensor<3xf32>, %y: tensor<5x3xf32>) -> tensor<5x3xf32> {
          %0 = ad.batch @f(%x, %y) over [1] : (tensor<3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
          return %0 : tensor<5x3xf32>
        }"""
    )
    run_passes(module, [Request("differentiate")], CompileReport())
    text = print_module(module)
    assert "nd.optimization_barrier %x, %y : tensor<3xf32>, tensor<5x3xf32>" in text
    assert text.count("nd.exp %0 : tensor<3xf32>") == 2  # of @f and of its batch


def test_checkpoints_lower_the_arena_after_the_whole_pipeline() -> None:
    """Eight layers x + gelu(x w) v. Of each, two hidden values live until its backward part; with checkpoints its input alone does."""
    ws = [(np.zeros((32, 128), np.float32), np.zeros((128, 32), np.float32))] * 8
    hidden = 256 * 128 * 4

    def loss(wrap: Any) -> Any:
        def f(ws: Any, x: Any) -> Any:
            for w, v in ws:
                x = wrap(lambda x, w, v: x + gd.gelu(x @ w) @ v)(x, w, v)
            return gd.sum(x * x)

        return f

    plain, checked = (arena(gd.grad(loss(wrap)), ws, np.zeros((256, 32), np.float32)) for wrap in (lambda f: f, gd.checkpoint))
    assert plain == (8 * 2 + 2) * hidden  # and two on the way
    assert checked <= (8 / 4 + 2.5) * hidden  # an input is a quarter of a hidden value; one layer at a time has two of these


def test_the_bytes_of_jax_are_those_of_jax() -> None:
    jax = pytest.importorskip("jax")
    if jax.__version__ != "0.10.2" or jax.default_backend() != "cpu":
        pytest.skip("the number is of JAX 0.10.2 on a CPU")
    from bench.systems.jax_system import JaxOps

    w = WORKLOADS["block_train"]

    def step(*inputs: Any) -> Any:
        n = w.params
        loss, gradients = jax.value_and_grad(lambda p: w.fn(JaxOps(), *p, *inputs[n:]))(inputs[:n])
        return (loss, *(p - w.rate * g for p, g in zip(inputs[:n], gradients)))

    assert jax.jit(step).lower(*w.inputs()).compile().memory_analysis().temp_size_in_bytes == JAX_TEMPORARY_BYTES
