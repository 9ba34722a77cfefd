"""gradir: each workload is one jitted function, numpy in, numpy out."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradir as gd
from bench.systems import Cell, as_tuple
from bench.systems.ops import Composites
from bench.workloads import Workload


class GradirOps(Composites):
    """The ops of the workloads as traced functions."""

    def __getattr__(self, name: str) -> Any:
        return getattr(gd, name)

    def matmul_i8(self, a: Any, b: Any) -> Any:
        return gd.matmul(a, b, np.int32)

    def cumsum(self, x: Any) -> Any:
        return gd.cumsum(x, -1)

    def depthwise(self, x: Any, w: Any) -> Any:
        out = gd.conv(gd.transpose(x, (0, 2, 3, 1)), gd.transpose(w, (2, 3, 1, 0)), 1, [(1, 1), (1, 1)], groups=x.shape[1])
        return gd.transpose(out, (0, 3, 1, 2))

    def both(self, a: Any, b: Any) -> Any:
        return gd.logical_and(a, b)

    def as_f32(self, x: Any) -> Any:
        return x.astype(np.float32)

    def softmax(self, x: Any) -> Any:
        return gd.softmax(x, -1)

    def layer_norm(self, x: Any, g: Any, b: Any) -> Any:
        return gd.layer_norm(x, g, b, 1e-5)

    def batch_norm(self, x: Any, g: Any, b: Any, mean: Any = None, var: Any = None) -> Any:
        mean = gd.mean(x, (0, 2, 3)) if mean is None else mean
        var = gd.var(x, (0, 2, 3)) if var is None else var
        scale = g / gd.sqrt(var + 1e-5)
        column = lambda v: gd.reshape(v, (1, -1, 1, 1))
        return x * column(scale) + column(b - mean * scale)

    def conv(self, x: Any, w: Any, stride: int) -> Any:
        k = w.shape[2] // 2
        out = gd.conv(gd.transpose(x, (0, 2, 3, 1)), gd.transpose(w, (2, 3, 1, 0)), stride, [(k, k), (k, k)])
        return gd.transpose(out, (0, 3, 1, 2))

    def conv_nhwc(self, x: Any, w: Any) -> Any:
        return gd.conv(x, w, padding="SAME")

    def max_pool_nhwc(self, x: Any) -> Any:
        return gd.max_pool(x, 2)

    def cross_entropy(self, z: Any, labels: Any) -> Any:
        return gd.mean(gd.cross_entropy(z, labels))

    def scan(self, f: Any, init: Any, xs: Any) -> Any:
        return gd.scan(f, init, xs)[1]

    def value_and_grad(self, f: Any, params: Any) -> Any:
        return gd.value_and_grad(f, tuple(range(len(params))))(*params)


class GradirSystem:
    """Compiles without the disk cache, so that the first call shows the compile time, unless `cache` is a directory."""

    def __init__(self, threads: int, cache: bool | str = False, *, preload: bool = True) -> None:
        self.ops, self.threads, self.cache = GradirOps(), threads, cache
        if preload:  # what a first call would load otherwise: imports are no part of it
            gd.preload()

    def version(self) -> str:
        return gd.__version__

    def prepare(self, w: Workload, dtype: Any = np.float32) -> Cell:
        """Training steps update their parameters in place, as PyTorch's do here: the arrays are donated. Those of a model's
        inference are frozen, as they are constants in ONNX Runtime's graphs; the filter of a lone convolution is not, which is faster here.
        """
        function, n = self.function(w), w.params if w.kind == "train" else 0
        frozen = w.params if w.kind == "forward" and w.group != "conv" else 0
        jitted = gd.jit(function, threads=self.threads, cache=self.cache, donate=tuple(range(n)), frozen=tuple(range(frozen)))
        inputs = [x.astype(dtype) if x.dtype == np.float32 else x for x in w.inputs()]
        inputs[:frozen] = [gd.freeze(x) for x in inputs[:frozen]]
        box: dict[str, Any] = {}

        def call() -> None:
            box["out"] = jitted(*inputs)

        def step() -> None:
            box["out"] = out = jitted(*inputs)
            inputs[:n] = out[1:]

        def memory() -> dict[str, int]:
            """Of the step that takes nothing over, as JAX's is."""
            program = gd.compile(function, *inputs, threads=self.threads, cache=False)
            planned, plans = program.module[program.name].planned_bytes(*inputs), program.memory_report().functions
            bound = sum(plan.peak for plan in plans)
            return {"temporary": planned, "output": sum(x.nbytes for x in box["out"]), "arena": sum(p.arena for p in plans), "bound": bound}

        return Cell(step if n else call, lambda: [np.asarray(x) for x in box["out"]], memory=memory)

    def function(self, w: Workload) -> Any:
        """The workload as one function of flat arguments, derivatives and update included."""
        n, ops = w.params, self.ops

        def function(*inputs: Any) -> Any:
            if w.kind in ("forward", "step"):
                return as_tuple(w.fn(ops, *inputs))
            loss, gradients = gd.value_and_grad(lambda *p: w.fn(ops, *p, *inputs[n:]), tuple(range(n)))(*inputs[:n])
            return (loss, *(p - w.rate * g for p, g in zip(inputs[:n], gradients))) if w.kind == "train" else (loss, *gradients)

        function.__name__ = w.name
        return function
