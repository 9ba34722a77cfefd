"""Families of programs that grow: chains, trees, nested loops, calls. Timed by `bench.compile_time`, counted by tests/autodiff/test_growth.

Each is a function of (w, x), two vectors, whose loss is differentiated by w.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

import gradir as gd
from gradir.driver.lower import run_passes
from gradir.driver.pipelines import BEFORE_AD, Request
from gradir.driver.report import CompileReport

Loss = Callable[[Any, Any], Any]
ARGUMENTS = (np.full(16, 0.5), np.linspace(-1.0, 1.0, 16))


def chain(n: int) -> Loss:
    """`n` ops one after the other, no two of them equal: their constants differ."""

    def loss(w: Any, x: Any) -> Any:
        for k in range(n // 5):
            x = gd.tanh(x * (1.0 + k / n) + 0.01 * (k % 7))
            x = x - gd.sigmoid(x) * w
        return gd.sum(x)

    return loss


def tree(leaves: int) -> Loss:
    """A binary tree over `leaves` leaves, all of them different."""

    def loss(w: Any, x: Any) -> Any:
        level = [gd.tanh(x * w + j / leaves) for j in range(leaves)]
        while len(level) > 1:
            level = [gd.sin(a) * b for a, b in zip(level[::2], level[1::2])]
        return gd.sum(level[0])

    return loss


def nest(depth: int, trips: int = 3) -> Loss:
    """`depth` loops inside of each other."""

    def loss(w: Any, x: Any) -> Any:
        def run(k: int, s: Any) -> Any:
            return gd.tanh(s * w) if k == 0 else gd.fori_loop(0, trips, lambda _, t: run(k - 1, t) * 0.9 + s, s)

        return gd.sum(run(depth, x))

    return loss


def calls(depth: int) -> Loss:
    """A function that calls the next one twice, `depth` levels deep: 2**depth calls of the last one."""
    function = gd.jit(lambda s, w: gd.tanh(s * w) + s)
    for k in range(depth):

        def twice(s: Any, w: Any, inner: Any = function, scale: float = 1.0 + 0.1 * k) -> Any:
            return inner(inner(s, w) * scale, w)

        function = gd.jit(twice)
    return lambda w, x: gd.sum(function(x * w, w))


def differentiated(loss: Loss, *, inline: bool = True) -> tuple[ModuleOp, float]:
    """The gradient's module right after `differentiate`, and the CPU seconds of that pass; without `inline`, calls stay calls."""
    module = gd.jit(gd.grad(loss)).lower(*ARGUMENTS)
    *before, last = (Request(s.pass_name) for s in BEFORE_AD if inline or s.pass_name != "inline")
    run_passes(module, before, CompileReport())
    began = time.process_time()
    run_passes(module, [last], CompileReport())
    return module, time.process_time() - began


def ops(module: ModuleOp) -> int:
    """How many ops a module has, those in regions included."""
    return sum(1 for _ in module.walk())
