"""The ops that are made of others. A system inherits them and replaces those for which it has a function of its own.

A system supplies: add matmul relu tanh sigmoid abs max any sqrt ones_like where both as_f32 sum mean reshape transpose gelu softmax
layer_norm batch_norm conv conv_nhwc max_pool_nhwc depthwise cross_entropy scan while_loop value_and_grad take top_k cumsum.
"""

from __future__ import annotations

from typing import Any

import numpy as np

F32 = np.float32
MANDELBROT_STEPS = 200


class Composites:
    """Formulas over the other ops of the class that inherits this one."""

    def add(self, a: Any, b: Any) -> Any:
        return a + b

    def linear(self, x: Any, w: Any, b: Any) -> Any:
        return x @ w + b

    def zeros(self, shape: Any, like: Any) -> Any:
        """In the element type of `like`."""
        return np.zeros(shape, like.dtype)

    def matmul_bf16(self, a: Any, b: Any) -> Any:
        """bf16 operands and result, sums in f32 at least."""
        return self.matmul(a, b)

    def attention(self, q: Any, k: Any, v: Any) -> Any:
        """Causal attention over [batch, head, position, feature]."""
        n = q.shape[-2]
        scores = self.matmul(q, self.transpose(k, (0, 1, 3, 2))) * F32(q.shape[-1] ** -0.5)
        return self.matmul(self.softmax(self.where(np.tril(np.ones((n, n), bool)), scores, F32(-1e30))), v)

    def lstm(self, wx: Any, wh: Any, b: Any, xs: Any) -> Any:
        """All hidden states [time, batch, n] from zero; the gates lie in the order input, forget, cell, output."""
        n = wh.shape[0]

        def cell(carry: Any, gates: Any) -> tuple[Any, Any]:
            h, c = carry
            g = gates + h @ wh
            i, f, z, o = (g[:, k * n : (k + 1) * n] for k in range(4))
            c = self.sigmoid(f) * c + self.sigmoid(i) * self.tanh(z)
            h = self.sigmoid(o) * self.tanh(c)
            return (h, c), h

        zero = self.zeros((xs.shape[1], n), xs)
        return self.scan(cell, (zero, zero), xs @ wx + b)

    def newton(self, a: Any) -> Any:
        """x^3 = a, until the largest residue is small."""

        def unfinished(state: Any) -> Any:
            x, i = state
            return self.both(self.max(self.abs(x * x * x - a)) > 1e-4, i < 60)

        def step(state: Any) -> Any:
            x, i = state
            return x - (x * x * x - a) / (3.0 * x * x), i + 1

        return self.while_loop(unfinished, step, (self.ones_like(a), np.int32(0)))[0]

    def mandelbrot(self, cx: Any, cy: Any) -> Any:
        """Escape counts, at most 200 iterations, until every point has escaped."""

        def unfinished(state: Any) -> Any:
            *_, live, i = state
            return self.both(i < MANDELBROT_STEPS, self.any(live))

        def step(state: Any) -> Any:
            x, y, n, live, i = state
            x, y = self.where(live, x * x - y * y + cx, x), self.where(live, 2.0 * x * y + cy, y)
            live = x * x + y * y <= 4.0
            return x, y, n + self.as_f32(live), live, i + 1

        zero = self.zeros(cx.shape, cx)
        return self.while_loop(unfinished, step, (zero, zero, zero, np.ones(cx.shape, bool), np.int32(0)))[2]

    def recurrence(self, a: Any, b: Any) -> Any:
        """h[t] = a[t] h[t-1] + b[t] from zero, every h."""

        def step(carry: Any, ab: Any) -> tuple[Any, Any]:
            h = ab[0] * carry[0] + ab[1]
            return (h,), h

        return self.scan(step, (self.zeros(a.shape[1:], a),), (a, b))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{type(self).__name__} has no op {name}")
