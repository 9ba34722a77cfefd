"""JAX on the CPU: each workload is one jitted function on device arrays."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bench.systems import Cell, as_tuple
from bench.systems.numpy_system import NumpyOps
from bench.systems.ops import Composites
from bench.workloads import Workload


class JaxOps(NumpyOps):
    """numpy's formulas where XLA does well on them, JAX's own functions elsewhere."""

    tanh = staticmethod(jnp.tanh)
    abs = staticmethod(jnp.abs)
    max = staticmethod(jnp.max)
    any = staticmethod(jnp.any)
    sqrt = staticmethod(jnp.sqrt)
    ones_like = staticmethod(jnp.ones_like)
    where = staticmethod(jnp.where)
    both = staticmethod(jnp.logical_and)

    def relu(self, x: Any) -> Any:
        return jax.nn.relu(x)

    def sigmoid(self, x: Any) -> Any:
        return jax.nn.sigmoid(x)

    def gelu(self, x: Any) -> Any:
        return jax.nn.gelu(x, approximate=True)

    def softmax(self, x: Any) -> Any:
        return jax.nn.softmax(x, -1)

    def layer_norm(self, x: Any, g: Any, b: Any) -> Any:
        d = x - x.mean(-1, keepdims=True)
        return d * jax.lax.rsqrt((d * d).mean(-1, keepdims=True) + 1e-5) * g + b

    def batch_norm(self, x: Any, g: Any, b: Any, mean: Any = None, var: Any = None) -> Any:
        mean = x.mean((0, 2, 3)) if mean is None else mean
        var = x.var((0, 2, 3)) if var is None else var
        scale = g * jax.lax.rsqrt(var + 1e-5)
        return x * scale[None, :, None, None] + (b - mean * scale)[None, :, None, None]

    def conv(self, x: Any, w: Any, stride: int) -> Any:
        k = w.shape[2] // 2
        return jax.lax.conv_general_dilated(x, w, (stride, stride), ((k, k), (k, k)), dimension_numbers=("NCHW", "OIHW", "NCHW"))

    def conv_nhwc(self, x: Any, w: Any) -> Any:
        return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def max_pool_nhwc(self, x: Any) -> Any:
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    def depthwise(self, x: Any, w: Any) -> Any:
        layout = ("NCHW", "OIHW", "NCHW")
        return jax.lax.conv_general_dilated(x, w, (1, 1), ((1, 1), (1, 1)), dimension_numbers=layout, feature_group_count=x.shape[1])

    def matmul_i8(self, a: Any, b: Any) -> Any:
        return jax.lax.dot_general(a, b, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32)

    def matmul_bf16(self, a: Any, b: Any) -> Any:
        return a @ b

    def top_k(self, x: Any, k: int) -> Any:
        return jax.lax.top_k(x, k)

    def cumsum(self, x: Any) -> Any:
        return jnp.cumsum(x, -1)

    recurrence = Composites.recurrence
    mandelbrot = Composites.mandelbrot

    def cross_entropy(self, z: Any, labels: Any) -> Any:
        return -jnp.take_along_axis(jax.nn.log_softmax(z), labels[:, None], 1).mean()

    def scan(self, f: Any, init: Any, xs: Any) -> Any:
        return jax.lax.scan(f, init, xs)[1]

    def while_loop(self, cond: Any, body: Any, state: Any) -> Any:
        return jax.lax.while_loop(cond, body, state)

    def value_and_grad(self, f: Any, params: Any) -> Any:
        return jax.value_and_grad(f, tuple(range(len(params))))(*params)


class JaxSystem:
    """Times include blocking until the results are there."""

    def __init__(self, threads: int) -> None:
        self.ops = JaxOps()

    def version(self) -> str:
        return jax.__version__

    def prepare(self, w: Workload, dtype: Any = np.float32) -> Cell:
        if dtype == np.float64:
            jax.config.update("jax_enable_x64", True)
        jitted = jax.jit(self.function(w))
        inputs = [jnp.asarray(x.astype(dtype) if x.dtype == np.float32 else x) for x in w.inputs()]
        jax.block_until_ready(inputs)
        box: dict[str, Any] = {}

        def call() -> None:
            box["out"] = jax.block_until_ready(jitted(*inputs))

        def memory() -> dict[str, int]:
            found = jitted.lower(*inputs).compile().memory_analysis()
            return {"temporary": found.temp_size_in_bytes, "output": found.output_size_in_bytes}

        note = "forward mode" if w.name == "newton_grad" else ""
        return Cell(call, lambda: [np.asarray(x) for x in box["out"]], note, memory, jitted.clear_cache)

    def function(self, w: Workload) -> Any:
        """The workload as one function; `newton_grad` in forward mode, because reverse mode of a while loop is refused."""
        n, ops = w.params, self.ops

        def function(*inputs: Any) -> Any:
            if w.kind in ("forward", "step"):
                return as_tuple(w.fn(ops, *inputs))
            if w.name == "newton_grad":
                x, slope = jax.jvp(ops.newton, inputs, (jnp.ones_like(inputs[0]),))
                return x.sum(), slope
            loss, gradients = jax.value_and_grad(lambda p: w.fn(ops, *p, *inputs[n:]))(inputs[:n])
            return (loss, *(p - w.rate * g for p, g in zip(inputs[:n], gradients))) if w.kind == "train" else (loss, *gradients)

        return function
