"""`Compiled.memory_report()`: every buffer with its place, its life and its maker; checked by hand and against the plan."""

from itertools import combinations
from typing import Any

import numpy as np

import gradir as gd

RNG = np.random.default_rng(0)


def loss(w1: Any, w2: Any, x: Any) -> Any:
    return gd.mean(gd.tanh(gd.tanh(x @ w1) @ w2) ** 2)


def arguments() -> list[np.ndarray]:
    return [RNG.standard_normal(shape).astype(np.float32) for shape in ((64, 128), (128, 64), (256, 64))]


def test_rows_by_hand() -> None:
    """The first product, 8 x 16 f32, lives until the second has read it, 8 x 4 until the third; the third, 8 x 2, is the caller's."""

    def f(x: Any, w: Any) -> Any:
        return gd.tanh(gd.tanh(x @ w) @ w.T) @ w[:, :2]

    x, w = np.ones((8, 4), np.float32), np.ones((4, 16), np.float32)
    report = gd.jit(f, cache=False).compile(x, w).memory_report()
    (plan,) = report.functions
    assert plan.function == "f"
    assert (plan.arena, plan.peak, plan.unshared, plan.steps) == (640, 640, 640, 3)
    assert [(b.type, b.bytes, b.begin, b.end) for b in plan.buffers] == [("memref<8x16xf32>", 512, 0, 1), ("memref<8x4xf32>", 128, 1, 2)]
    assert plan.buffers[0].location.split(":")[0].endswith("test_memory_report.py")
    text = str(report)
    assert text.startswith("memory of @f: arena 640 bytes, at most 640 live at once, 640 without sharing\n")
    assert "made by" in text and "@contraction_0" in text


def test_the_plan_is_what_was_compiled() -> None:
    compiled = gd.jit(gd.grad(loss, argnums=(0, 1)), cache=False).compile(*arguments())
    (plan,) = compiled.memory_report().functions
    assert {plan.function: plan.arena} == compiled.report.arena_bytes
    assert plan.peak <= plan.arena <= plan.unshared
    assert max(map(plan.live_at, range(plan.steps))) == plan.peak


def test_buffers_that_live_together_lie_apart() -> None:
    def deep(x: Any, *weights: Any) -> Any:
        for w in weights:
            x = gd.softmax(gd.tanh(x @ w) @ w.T)
        return gd.sum(x)

    weights = [np.ones((32, 16 * (k + 1)), np.float32) for k in range(5)]
    compiled = gd.jit(gd.grad(deep, argnums=tuple(range(6))), cache=False).compile(np.ones((24, 32), np.float32), *weights)
    (plan,) = compiled.memory_report().functions
    assert len(plan.buffers) > 5
    for a, b in combinations((b for b in plan.buffers if b.place == "arena"), 2):
        together = a.begin <= b.end and b.begin <= a.end
        apart = a.offset + a.bytes <= b.offset or b.offset + b.bytes <= a.offset
        assert apart or not together or a.end == b.begin or b.end == a.begin, (a, b)  # one step may read the one and write the other
    assert all(b.offset + b.bytes <= plan.arena for b in plan.buffers)
    assert plan.arena <= 1.05 * plan.peak


def test_sizes_known_at_run_time_are_counted() -> None:
    b = gd.Dim("b")
    compiled = gd.jit(lambda x: gd.softmax(gd.sort(x * 2) + 1), cache=False, dynamic={0: (b, 4)}).compile(np.ones((3, 4), np.float32))
    (plan,) = compiled.memory_report().functions
    assert plan.run_time >= 1
    assert "whose sizes only the run knows" in str(compiled.memory_report())


def test_a_program_without_buffers() -> None:
    (plan,) = gd.compile(lambda x: x + 1, np.ones(3, np.float32)).memory_report().functions
    assert (plan.arena, plan.buffers) == (0, ())
