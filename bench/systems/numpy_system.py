"""numpy: the reference, in f64 for expected values and in f32 as a column. No gradients, except by hand for `mlp_train`."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.systems import Cell, NotAvailable, as_tuple
from bench.systems.ops import MANDELBROT_STEPS, Composites
from bench.workloads import Workload


class NumpyOps(Composites):
    """The ops of the workloads in plain numpy, in the element type of the inputs."""

    def matmul(self, a: Any, b: Any) -> Any:
        return a @ b

    def relu(self, x: Any) -> Any:
        return np.maximum(x, 0)

    tanh = staticmethod(np.tanh)
    abs = staticmethod(np.abs)
    max = staticmethod(np.max)
    any = staticmethod(np.any)
    sqrt = staticmethod(np.sqrt)
    ones_like = staticmethod(np.ones_like)
    where = staticmethod(np.where)
    both = staticmethod(np.logical_and)

    def sigmoid(self, x: Any) -> Any:
        return 1 / (1 + np.exp(-x))

    def as_f32(self, x: Any) -> Any:
        return x.astype(np.float32)

    def sum(self, x: Any, axis: int) -> Any:
        return x.sum(axis)

    def mean(self, x: Any, axis: Any = None) -> Any:
        return x.mean(axis)

    def reshape(self, x: Any, shape: Any) -> Any:
        return x.reshape(shape)

    def transpose(self, x: Any, perm: Any) -> Any:
        return x.transpose(perm)

    def gelu(self, x: Any) -> Any:
        return 0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * (x * x * x))))

    def softmax(self, x: Any) -> Any:
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    def layer_norm(self, x: Any, g: Any, b: Any) -> Any:
        d = x - x.mean(-1, keepdims=True)
        return d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-5) * g + b

    def batch_norm(self, x: Any, g: Any, b: Any, mean: Any = None, var: Any = None) -> Any:
        mean = x.mean((0, 2, 3)) if mean is None else mean
        var = x.var((0, 2, 3)) if var is None else var
        scale = g / np.sqrt(var + 1e-5)
        return x * scale[None, :, None, None] + (b - mean * scale)[None, :, None, None]

    def conv(self, x: Any, w: Any, stride: int) -> Any:
        """NCHW, OIHW, padding k // 2: windows as a matrix."""
        k = w.shape[2]
        if k > 1:
            x = np.pad(x, ((0, 0), (0, 0), (k // 2, k // 2), (k // 2, k // 2)))
        v = np.lib.stride_tricks.sliding_window_view(x, (k, k), (2, 3))[:, :, ::stride, ::stride]
        n, c, h, q = v.shape[:4]
        columns = v.transpose(0, 2, 3, 1, 4, 5).reshape(n * h * q, c * k * k)
        return (columns @ w.reshape(w.shape[0], -1).T).reshape(n, h, q, -1).transpose(0, 3, 1, 2)

    def conv_nhwc(self, x: Any, w: Any) -> Any:
        return self.conv(x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1), 1).transpose(0, 2, 3, 1)

    def max_pool_nhwc(self, x: Any) -> Any:
        n, h, w, c = x.shape
        return x.reshape(n, h // 2, 2, w // 2, 2, c).max((2, 4))

    def depthwise(self, x: Any, w: Any) -> Any:
        """3 x 3, padding 1, one filter a channel: nine shifted products."""
        n, c, h, q = x.shape
        x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        out = np.zeros((n, c, h, q), x.dtype)
        for i in range(3):
            for j in range(3):
                out += x[:, :, i : i + h, j : j + q] * w[None, :, 0, i, j, None, None]
        return out

    def matmul_i8(self, a: Any, b: Any) -> Any:
        """Exact in f32 while 2^14 k < 2^24, so in f64 here: numpy has no fast integer product."""
        return (a.astype(np.float64) @ b.astype(np.float64)).astype(np.int32)

    def matmul_bf16(self, a: Any, b: Any) -> Any:
        return (a.astype(np.float32) @ b.astype(np.float32)).astype(a.dtype) if a.itemsize == 2 else a @ b

    def take(self, table: Any, ids: Any) -> Any:
        return table[ids]

    def top_k(self, x: Any, k: int) -> Any:
        some = np.argpartition(x, -k, -1)[..., -k:]
        values = np.take_along_axis(x, some, -1)
        order = np.argsort(-values, -1)
        return np.take_along_axis(values, order, -1), np.take_along_axis(some, order, -1)

    def cumsum(self, x: Any) -> Any:
        return np.cumsum(x, -1, dtype=x.dtype)

    def recurrence(self, a: Any, b: Any) -> Any:
        out = np.empty_like(b)
        h = np.zeros_like(b[0])
        for t in range(len(b)):
            h = out[t] = a[t] * h + b[t]
        return out

    def mandelbrot(self, cx: Any, cy: Any) -> Any:
        """In place: what one writes when every pass over the arrays costs."""
        x, y, n = np.zeros_like(cx), np.zeros_like(cx), np.zeros_like(cx)
        live = np.ones(cx.shape, bool)
        for _ in range(MANDELBROT_STEPS):
            if not live.any():
                break
            x, y = np.where(live, x * x - y * y + cx, x), np.where(live, 2 * x * y + cy, y)
            live = x * x + y * y <= 4
            n += live
        return n

    def cross_entropy(self, z: Any, labels: Any) -> Any:
        z = z - z.max(-1, keepdims=True)
        log_p = z - np.log(np.exp(z).sum(-1, keepdims=True))
        return -log_p[np.arange(len(labels)), labels].mean()

    def scan(self, f: Any, init: Any, xs: Any) -> Any:
        """Over one array `xs`."""
        carry, ys = tuple(c.astype(xs.dtype) for c in init), []
        for x in xs:
            carry, y = f(carry, x)
            ys.append(y)
        return np.stack(ys)

    def while_loop(self, cond: Any, body: Any, state: Any) -> Any:
        while cond(state):
            state = body(state)
        return state


class NumpySystem:
    """Runs forward workloads, and the MLP training step with its gradient written by hand."""

    def __init__(self, threads: int) -> None:
        self.ops = NumpyOps()

    def version(self) -> str:
        return np.__version__

    def prepare(self, w: Workload, dtype: Any = np.float32) -> Cell:
        inputs = [x if x.dtype.kind == "i" else x.astype(dtype) if dtype != np.float32 or x.itemsize != 2 else x for x in w.inputs()]
        if w.kind == "forward":
            run = lambda: as_tuple(w.fn(self.ops, *inputs))
        elif w.name == "mlp_train":
            run = lambda: mlp_train(w.rate, *inputs)
        else:
            raise NotAvailable("no gradients")
        box: dict[str, Any] = {}

        def call() -> None:
            box["out"] = run()

        return Cell(call, lambda: [np.asarray(x) for x in box["out"]])


def mlp_train(rate: float, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, x: Any, labels: Any) -> tuple[Any, ...]:
    """Forward, backward and SGD of the three-layer MLP, as one would write it in numpy."""
    h1 = np.maximum(x @ w1 + b1, 0)
    h2 = np.maximum(h1 @ w2 + b2, 0)
    z = h2 @ w3 + b3
    z = z - z.max(1, keepdims=True)
    e = np.exp(z)
    p = e / e.sum(1, keepdims=True)
    rows = np.arange(len(labels))
    loss = -np.log(p[rows, labels]).mean()
    p[rows, labels] -= 1
    d = p / p.dtype.type(len(labels))
    g3, c3 = h2.T @ d, d.sum(0)
    d = (d @ w3.T) * (h2 > 0)
    g2, c2 = h1.T @ d, d.sum(0)
    d = (d @ w2.T) * (h1 > 0)
    g1, c1 = x.T @ d, d.sum(0)
    step = p.dtype.type(rate)
    return (loss, *(a - step * g for a, g in zip((w1, b1, w2, b2, w3, b3), (g1, c1, g2, c2, g3, c3))))
