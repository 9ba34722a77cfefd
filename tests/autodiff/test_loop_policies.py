"""What loops keep for their backward part: every policy gives the derivatives of `all`, bit by bit, compiled and evaluated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.autodiff.differentiate import Differentiate
from gradir.driver.compile import compile_module
from gradir.errors import GradirError
from gradir.ir.passes import PassContext
from gradir.ir.text import verify_module
from gradir.reference import run
from tests.autodiff.test_data_dependent_loops import PROGRAMS, M, N, X

POLICIES = ("none", "sqrt")


def rnn(x: Any, n: Any, m: Any) -> Any:
    """The weights are captured, the inputs indexed by the iteration, and what every step gives is collected."""
    w, xs = gd.sin(gd.arange(9, dtype=np.float64).reshape(3, 3) * x), gd.cos(gd.arange(30, dtype=np.float64).reshape(10, 3) + x)

    def step(h: Any, row: Any) -> Any:
        new = gd.tanh(h @ w + row)
        return new, gd.exp(new) * h

    h, ys = gd.scan(step, gd.ones(3, dtype=np.float64) * x, xs)
    return gd.sum(h * gd.cos(ys[3])) + gd.sum(ys * xs)


def backwards_scan(x: Any, n: Any, m: Any) -> Any:
    total, ys = gd.scan(lambda c, v: (c * v + gd.sin(c), c * x), x, gd.arange(7, dtype=np.float64), reverse=True)
    return total * gd.sum(ys * ys)


def index_in_the_body(x: Any, n: Any, m: Any) -> Any:
    return gd.fori_loop(2, 9, lambda i, s: gd.sin(s * x) + i.astype(np.float64) * s, x)


def bounds_of_run_time(x: Any, n: Any, m: Any) -> Any:
    return gd.fori_loop(n - 5, n * m, lambda i, s: gd.sin(s) * x + s * 0.5, x)


def without_a_trip(x: Any, n: Any, m: Any) -> Any:
    return gd.fori_loop(m, n, lambda i, s: gd.sin(s) * x, x * x) + gd.fori_loop(4, 4, lambda i, s: gd.sin(s) * x, x)


def nest(x: Any, n: Any, m: Any) -> Any:
    inner = lambda s: gd.fori_loop(0, 5, lambda j, t: gd.sin(t * s) + x, s)
    return gd.fori_loop(0, 6, lambda i, s: gd.cos(inner(s)) * s + s, x)


def several_carried(x: Any, n: Any, m: Any) -> Any:
    """One value is swapped with another, one counts, one only adds up."""
    start = (x, x * 2.0, gd.asarray(np.int32(0)), x * 0.0)
    a, b, k, total = gd.fori_loop(0, 8, lambda i, s: (s[1], gd.sin(s[0]) * s[1], s[2] + 1, s[3] + s[0] * s[1]), start)
    return a * b + total * k.astype(np.float64)


def branch(x: Any, n: Any, m: Any) -> Any:
    loop = lambda s: gd.fori_loop(0, m, lambda i, t: gd.sin(t) * x, s)
    return gd.fori_loop(0, 5, lambda i, s: gd.cond(s > 0.3, loop, lambda t: gd.exp(t) * x, s), x)


@gd.jit
def called(x: Any, s: Any) -> Any:
    return gd.fori_loop(0, 6, lambda i, t: gd.sin(t) * x + t, s)


def callee(x: Any, n: Any, m: Any) -> Any:
    return called(x, x) * called(x * x, called(x, x))


LOOPS = [
    rnn,
    backwards_scan,
    index_in_the_body,
    bounds_of_run_time,
    without_a_trip,
    nest,
    several_carried,
    branch,
    callee,
    *(PROGRAMS[k] for k in (0, 2, 5, 8, 9)),
]


def evaluated(module: Any, policy: str, *inputs: Any) -> Any:
    """The derivative by the reference evaluator, which knows nothing of kernels, fusion or memory."""
    program = module.clone()
    Differentiate(loop_policy=policy).apply(program, PassContext())
    verify_module(program)
    return run(program, "main", inputs)


def compiled(module: Any, policy: str, *inputs: Any) -> Any:
    program = module.clone()
    Differentiate(loop_policy=policy).apply(program, PassContext())
    return compile_module(program, cache=False)["main"].flat(*inputs)


def derivative(f: Callable[..., Any]) -> Any:
    """The module of `main(x, n, m)`: value and gradient."""

    def main(x: Any, n: Any, m: Any) -> Any:
        return gd.value_and_grad(f)(x, n, m)

    return gd.jit(main).lower(X, N, M)


def bits(results: Any) -> list[bytes]:
    return [np.asarray(r).tobytes() for r in results]


@pytest.mark.parametrize("f", LOOPS, ids=lambda f: f.__name__)
def test_policies_give_the_bits_of_all(f: Callable[..., Any]) -> None:
    module = derivative(f)
    expected = evaluated(module, "all", X, N, M)
    code = bits(compiled(module, "all", X, N, M))
    for policy in POLICIES:
        assert bits(evaluated(module, policy, X, N, M)) == bits(expected), policy
        assert bits(compiled(module, policy, X, N, M)) == code, policy


STEPS = 4096
STATE = 256 * 4


def long_loop(policy: str) -> Callable[[Any, Any], Any]:
    """4096 steps on a state of 1 KiB; an iteration saves several values of that size."""

    def step(s: Any, w: Any) -> Any:
        a = gd.sin(s * w) + s
        return gd.tanh(a * gd.exp(a * 0.1) + w * gd.sum(a * s))

    return lambda x, w: gd.sum(gd.fori_loop(0, STEPS, lambda i, s: step(s, w), x, residuals=policy))


def test_sqrt_keeps_the_memory_of_two_times_sqrt_n_states() -> None:
    """Of the compiled module, after every pass: the arena is what is planned for all buffers, those of the loop's own work included."""
    x, w = np.linspace(-1, 1, 256, dtype=np.float32), np.linspace(0.1, 0.9, 256, dtype=np.float32)
    arena: dict[str, int] = {}
    found: dict[str, list[bytes]] = {}
    for policy in ("all", *POLICIES):
        program = gd.compile(gd.value_and_grad(long_loop(policy), (0, 1)), x, w, cache=False)
        value, gradients = program(x, w)
        found[policy] = bits([value, *gradients])
        arena[policy] = program.module.manifest.functions[0].arena_bytes
    assert found["none"] == found["sqrt"] == found["all"]
    assert arena["all"] > 3 * STEPS * STATE
    assert STEPS * STATE < arena["none"] < 1.01 * STEPS * STATE
    assert 2 * 64 * STATE <= arena["sqrt"] < 2.5 * 64 * STATE


def test_unknown_policies_are_refused() -> None:
    x = np.float64(1.0)
    loops: list[Callable[[], Any]] = [
        lambda: gd.fori_loop(0, 3, lambda i, s: s, x, residuals="some"),
        lambda: gd.while_loop(lambda s: s < 3.0, lambda s: s + 1.0, x, residuals="some"),
        lambda: gd.scan(lambda c, _: (c, c), x, length=3, residuals="some"),
    ]
    for loop in (*loops, lambda: Differentiate(loop_policy="some").apply(derivative(rnn), PassContext())):
        with pytest.raises(GradirError, match="no such policy of residuals") as caught:
            loop()
        assert (caught.value.code, caught.value.found) == ("AD020", "'some'") and "all, none, sqrt" in caught.value.expected
