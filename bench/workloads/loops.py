"""Programs whose cost is in loops: LSTM, Newton's iteration and its derivative, Mandelbrot."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.workloads.spec import F32, Workload, normal


def lstm_inputs() -> list[np.ndarray]:
    n = 256
    return [normal(0, n, 4 * n, scale=0.06), normal(1, n, 4 * n, scale=0.06), normal(2, 4 * n, scale=0.1), normal(3, 64, 32, n)]


LSTM_FLOPS = 2.0 * 64 * 32 * 512 * 1024


def mandelbrot_inputs() -> list[np.ndarray]:
    y, x = np.meshgrid(np.linspace(-1.25, 1.25, 512), np.linspace(-2, 0.5, 512), indexing="ij")
    return [x.astype(F32), y.astype(F32)]


def newton_inputs() -> list[np.ndarray]:
    return [(0.5 + 3.5 * np.random.default_rng(9).random(65536)).astype(F32)]


def lstm(B: Any, wx: Any, wh: Any, b: Any, xs: Any) -> Any:
    return B.lstm(wx, wh, b, xs)


LOOPS = (
    Workload("lstm_forward", "control", "forward", lstm, lstm_inputs, params=3, flops=LSTM_FLOPS),
    Workload("lstm_grad", "control", "grad", lambda B, *a: B.mean(lstm(B, *a) ** 2), lstm_inputs, params=3, flops=3 * LSTM_FLOPS),
    Workload("newton", "control", "forward", lambda B, a: B.newton(a), newton_inputs),
    Workload("newton_grad", "control", "grad", lambda B, a: B.sum(B.newton(a), None), newton_inputs, params=1),
    Workload(
        "mandelbrot_512", "control", "forward", lambda B, x, y: B.mandelbrot(x, y), mandelbrot_inputs, tolerance=0.02, compare="share",
    ),
)  # fmt: skip
