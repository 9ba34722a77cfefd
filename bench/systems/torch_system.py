"""PyTorch, eager and compiled, on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from bench.systems import Cell, NotAvailable, as_tuple
from bench.systems.numpy_system import NumpyOps
from bench.workloads import Workload


class TorchOps(NumpyOps):
    """The library's own functions."""

    tanh = staticmethod(torch.tanh)
    abs = staticmethod(torch.abs)
    sqrt = staticmethod(torch.sqrt)
    ones_like = staticmethod(torch.ones_like)
    both = staticmethod(torch.logical_and)

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

    def scan(self, f: Any, init: Any, xs: Any) -> Any:
        carry, ys = tuple(torch.as_tensor(c) for c in init), []
        for x in xs:
            carry, y = f(carry, x)
            ys.append(y)
        return torch.stack(ys)

    def while_loop(self, cond: Any, body: Any, state: Any) -> Any:
        state = tuple(torch.as_tensor(s) for s in state)
        while bool(cond(state)):
            state = body(state)
        return state

    def value_and_grad(self, f: Any, params: Any) -> Any:
        params = [p.detach().requires_grad_(True) for p in params]
        loss = f(*params)
        return loss.detach(), torch.autograd.grad(loss, params)


class TorchSystem:
    """Eager PyTorch."""

    compiled = False

    def __init__(self, threads: int) -> None:
        torch.set_num_threads(threads)
        self.ops = TorchOps()

    def version(self) -> str:
        return torch.__version__

    def prepare(self, w: Workload) -> Cell:
        if self.compiled and w.group == "control":
            raise NotAvailable("unrolls loops, or breaks the graph at them")
        n, ops = w.params, self.ops
        inputs = [torch.from_numpy(np.array(x)) for x in w.inputs()]
        inputs = [x.long() if x.dtype == torch.int32 and x.ndim else x for x in inputs]
        forward = lambda *a: w.fn(ops, *a)
        run = torch.compile(forward) if self.compiled else forward
        box: dict[str, Any] = {}

        def call() -> None:
            if w.kind in ("forward", "step"):
                with torch.no_grad() if w.kind == "forward" else torch.enable_grad():
                    box["out"] = as_tuple(run(*inputs))
                return
            params = [p.detach().requires_grad_(True) for p in inputs[:n]]
            loss = run(*params, *inputs[n:])
            gradients = torch.autograd.grad(loss, params)
            with torch.no_grad():
                box["out"] = (loss, *(p - w.rate * g for p, g in zip(params, gradients))) if w.kind == "train" else (loss, *gradients)

        return Cell(call, lambda: [x.detach().numpy() for x in box["out"]])


class TorchCompileSystem(TorchSystem):
    """`torch.compile` of the forward function; its backward is compiled with it."""

    compiled = True
