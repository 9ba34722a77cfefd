"""PyTorch, eager and compiled, on the CPU: the library's own attention, LSTM, embedding and foreach updates where it has them."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from bench.systems import BUILD, Cell, NotAvailable, as_tuple, caches_allowed
from bench.systems.numpy_system import NumpyOps
from bench.systems.ops import MANDELBROT_STEPS, Composites
from bench.workloads import Workload


class TorchOps(NumpyOps):
    """The library's own functions."""

    tanh = staticmethod(torch.tanh)
    abs = staticmethod(torch.abs)
    sqrt = staticmethod(torch.sqrt)
    ones_like = staticmethod(torch.ones_like)
    both = staticmethod(torch.logical_and)

    def linear(self, x: Any, w: Any, b: Any) -> Any:
        return torch.addmm(b, x, w) if x.ndim == 2 else x @ w + b

    def attention(self, q: Any, k: Any, v: Any) -> Any:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    def lstm(self, wx: Any, wh: Any, b: Any, xs: Any) -> Any:
        """The library's LSTM: its gates lie in the same order."""
        zero = xs.new_zeros((1, xs.shape[1], wh.shape[0]))
        weights = [wx.t(), wh.t(), b, torch.zeros_like(b)]
        return torch._VF.lstm(xs, (zero, zero), weights, True, 1, 0.0, False, False, False)[0]

    def matmul_i8(self, a: Any, b: Any) -> Any:
        return torch._int_mm(a, b)

    def matmul_bf16(self, a: Any, b: Any) -> Any:
        return a @ b

    def depthwise(self, x: Any, w: Any) -> Any:
        return F.conv2d(x, w, None, 1, 1, groups=x.shape[1])

    def take(self, table: Any, ids: Any) -> Any:
        return F.embedding(ids, table)

    def top_k(self, x: Any, k: int) -> Any:
        return torch.topk(x, k)

    def cumsum(self, x: Any) -> Any:
        return torch.cumsum(x, -1)

    def recurrence(self, a: Any, b: Any) -> Any:
        h, out = torch.zeros_like(b[0]), torch.empty_like(b)
        for t in range(len(b)):
            h = torch.addcmul(b[t], a[t], h, out=out[t])
        return out

    def mandelbrot(self, cx: Any, cy: Any) -> Any:
        x, y, n = torch.zeros_like(cx), torch.zeros_like(cx), torch.zeros_like(cx)
        live = torch.ones(cx.shape, dtype=torch.bool)
        i = 0
        while i < MANDELBROT_STEPS and live.any():
            x, y = torch.where(live, x * x - y * y + cx, x), torch.where(live, 2 * x * y + cy, y)
            live = x * x + y * y <= 4
            n, i = n + live, i + 1
        return n

    def sum(self, x: Any, axis: Any) -> Any:
        return x.sum() if axis is None else x.sum(axis)

    def relu(self, x: Any) -> Any:
        return torch.relu(x)

    def sigmoid(self, x: Any) -> Any:
        return torch.sigmoid(x)

    def max(self, x: Any) -> Any:
        return x.max()

    def any(self, x: Any) -> Any:
        return x.any()

    def where(self, c: Any, x: Any, y: Any) -> Any:
        return torch.where(torch.as_tensor(c), x, torch.as_tensor(y))

    def as_f32(self, x: Any) -> Any:
        return x.float()

    def mean(self, x: Any, axis: Any = None) -> Any:
        return x.mean() if axis is None else x.mean(axis)

    def transpose(self, x: Any, perm: Any) -> Any:
        return x.permute(perm)

    def gelu(self, x: Any) -> Any:
        return F.gelu(x, approximate="tanh")

    def softmax(self, x: Any) -> Any:
        return torch.softmax(x, -1)

    def layer_norm(self, x: Any, g: Any, b: Any) -> Any:
        return F.layer_norm(x, (x.shape[-1],), g, b, 1e-5)

    def batch_norm(self, x: Any, g: Any, b: Any, mean: Any = None, var: Any = None) -> Any:
        return F.batch_norm(x, mean, var, g, b, mean is None, 0.0, 1e-5)

    def conv(self, x: Any, w: Any, stride: int) -> Any:
        return F.conv2d(x, w, None, stride, w.shape[2] // 2)

    def conv_nhwc(self, x: Any, w: Any) -> Any:
        return F.conv2d(x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), None, 1, w.shape[0] // 2).permute(0, 2, 3, 1)

    def max_pool_nhwc(self, x: Any) -> Any:
        return F.max_pool2d(x.permute(0, 3, 1, 2), 2).permute(0, 2, 3, 1)

    def cross_entropy(self, z: Any, labels: Any) -> Any:
        return F.cross_entropy(z, labels)

    def newton(self, a: Any) -> Any:
        x, i = torch.ones_like(a), 0
        while i < 60 and (x * x * x - a).abs().max() > 1e-4:
            x, i = x - (x * x * x - a) / (3.0 * x * x), i + 1
        return x

    def value_and_grad(self, f: Any, params: Any) -> Any:
        params = [p.detach().requires_grad_(True) for p in params]
        loss = f(*params)
        return loss.detach(), torch.autograd.grad(loss, params)


class CompiledOps(TorchOps):
    """Loops over data as `while_loop`, an LSTM of plain ops that the compiler unrolls."""

    def zeros(self, shape: Any, like: Any) -> Any:
        return like.new_zeros(shape)

    def lstm(self, wx: Any, wh: Any, b: Any, xs: Any) -> Any:
        return Composites.lstm(self, wx, wh, b, xs)

    def scan(self, f: Any, init: Any, xs: Any) -> Any:
        carry, ys = init, []
        for x in xs:
            carry, y = f(carry, x)
            ys.append(y)
        return torch.stack(ys)

    def recurrence(self, a: Any, b: Any) -> Any:
        raise NotAvailable("unrolls 1024 steps")

    def newton(self, a: Any) -> Any:
        if a.requires_grad:  # while_loop has no derivative: a Python loop, with graphs between its tests
            return TorchOps.newton(self, a)
        from torch._higher_order_ops.while_loop import while_loop

        unfinished = lambda x, i: torch.logical_and((x * x * x - a).abs().max() > 1e-4, i < 60)
        step = lambda x, i: (x - (x * x * x - a) / (3.0 * x * x), i + 1)
        return while_loop(unfinished, step, (torch.ones_like(a), torch.zeros((), dtype=torch.int64)))[0]

    def mandelbrot(self, cx: Any, cy: Any) -> Any:
        from torch._higher_order_ops.while_loop import while_loop

        def step(x: Any, y: Any, n: Any, live: Any, i: Any) -> Any:
            x, y = torch.where(live, x * x - y * y + cx, x), torch.where(live, 2 * x * y + cy, y)
            live = x * x + y * y <= 4
            return x, y, n + live, live, i + 1

        unfinished = lambda x, y, n, live, i: torch.logical_and(i < MANDELBROT_STEPS, live.any())
        zeros = [torch.zeros_like(cx) for _ in range(3)]
        return while_loop(unfinished, step, (*zeros, torch.ones(cx.shape, dtype=torch.bool), torch.zeros((), dtype=torch.int64)))[2]


def tensor(x: np.ndarray, dtype: Any) -> Any:
    """A tensor of its own; bf16 arrays by their bits, labels and indices as i64."""
    if x.dtype.name == "bfloat16":
        exact = torch.from_numpy(x.view(np.uint16).copy()).view(torch.bfloat16)
        return exact.double() if dtype == np.float64 else exact
    return torch.from_numpy(np.array(x.astype(dtype) if x.dtype == np.float32 else x.astype(np.int64) if x.dtype == np.int32 else x))


class TorchSystem:
    """Eager PyTorch."""

    compiled = False

    def __init__(self, threads: int) -> None:
        torch.set_num_threads(threads)
        self.ops: TorchOps = TorchOps()

    def version(self) -> str:
        return torch.__version__.split("+")[0]

    def prepare(self, w: Workload, dtype: Any = np.float32) -> Cell:
        n, ops = w.params, self.ops
        inputs = [tensor(x, dtype) for x in w.inputs()]
        forward = lambda *a: w.fn(ops, *a)
        run = torch.compile(forward) if self.compiled else forward
        box: dict[str, Any] = {}
        if w.kind in ("train", "grad"):
            for p in inputs[:n]:
                p.requires_grad_(True)

        def call() -> None:
            if w.kind == "forward":
                with torch.no_grad():
                    box["out"] = as_tuple(run(*inputs))
                return
            if w.kind == "step":
                box["out"] = as_tuple(run(*inputs))
                return
            loss = run(*inputs)
            gradients = torch.autograd.grad(loss, inputs[:n])
            if w.kind == "train":  # in place, as the library's optimizers do
                with torch.no_grad():
                    torch._foreach_add_(inputs[:n], gradients, alpha=-w.rate)
                gradients = inputs[:n]
            box["out"] = (loss, *gradients)

        def outputs() -> list[np.ndarray]:
            found = [x.detach() for x in box["out"]]
            return [np.array(x.float() if x.dtype == torch.bfloat16 else x) for x in found]

        return Cell(call, outputs, close=self.close)

    def close(self) -> None:
        pass


class TorchCompileSystem(TorchSystem):
    """`torch.compile` of the forward function; its backward is compiled with it."""

    compiled = True

    def __init__(self, threads: int) -> None:
        if caches_allowed():
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(BUILD / "bench" / "inductor")
        else:
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp(prefix="inductor-")
            os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"
        Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]).mkdir(parents=True, exist_ok=True)
        super().__init__(threads)
        self.ops = CompiledOps()

    def close(self) -> None:
        torch._dynamo.reset()
