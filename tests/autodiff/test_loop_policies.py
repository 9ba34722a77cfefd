"""What loops keep for their backward part: every policy gives the derivatives of `all`, bit by bit, compiled and evaluated."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.autodiff.differentiate import Differentiate
from gradir.driver.compile import compile_module
from gradir.errors import GradirError
from gradir.ir.passes import PassContext
from gradir.ir.text import print_module, verify_module
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


LONG = ("while_in_while", "while_in_a_branch_in_a_loop", "branch", "several_values", "callee")


@pytest.mark.parametrize(
    "f", [pytest.param(f, marks=pytest.mark.full if f.__name__ in LONG else ()) for f in LOOPS], ids=lambda f: f.__name__
)
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


def two_loops(x: Any, w: Any) -> Any:
    """1024 steps, then a nest of 64 times 16; the state is 1 KiB."""

    def step(s: Any) -> Any:
        a = gd.sin(s * w) + s
        return gd.tanh(a * gd.exp(a * 0.1) + w * gd.sum(a * s))

    h = gd.fori_loop(0, 1024, lambda i, s: step(s), x)
    return gd.sum(gd.fori_loop(0, 64, lambda i, s: gd.fori_loop(0, 16, lambda j, t: gd.sin(t * w), s), h))


X1, W1 = np.linspace(-1, 1, 256, dtype=np.float32), np.linspace(0.1, 0.9, 256, dtype=np.float32)


def policies_in(program: Any) -> list[str]:
    return re.findall(r'gradir.residuals = "(\w+)"', program.report.ir["1 tensor, simplified"])


@pytest.mark.parametrize("budget", [8_000_000, *(pytest.param(n, marks=pytest.mark.full) for n in (4_000_000, 1_300_000, 200_000)), 90_000])
def test_a_budget_is_kept_by_the_compiled_module(budget: int) -> None:
    """The plan of all buffers, after every pass, takes no more; the bits are those of no budget."""
    whole = gd.compile(gd.value_and_grad(two_loops, (0, 1)), X1, W1, cache=False)
    program = gd.compile(gd.value_and_grad(two_loops, (0, 1), budget=budget), X1, W1, cache=False, keep_ir=True)
    assert program.module.manifest.functions[0].arena_bytes <= budget
    expected, found = whole(X1, W1), program(X1, W1)
    assert bits([found[0], *found[1]]) == bits([expected[0], *expected[1]])
    assert ("sqrt" in "".join(policies_in(program)) or "segment" in policies_in(program)) == (budget < 1_000_000)
    assert (set(policies_in(program)) <= {"all"}) == (budget == 8_000_000)


def test_a_budget_that_nothing_fits_is_a_warning() -> None:
    with pytest.warns(
        RuntimeWarning, match=r"value_and_grad: residuals of @two_loops\w* take at least \d+ bytes, more than the budget of 1000"
    ):
        program = gd.compile(gd.value_and_grad(two_loops, (0, 1)), X1, W1, cache=False, budget=1000, keep_ir=True)
    assert program.module.manifest.functions[0].arena_bytes < 100_000


def test_the_nearest_choice_holds() -> None:
    """A loop's own, then the derivative's, then the program's."""

    def f(x: Any) -> Any:
        own = gd.fori_loop(0, 9, lambda i, s: gd.sin(s * x), x, residuals="none")
        return own * gd.fori_loop(0, 9, lambda i, s: gd.sin(s * x), x)

    def policies(g: Callable[..., Any], **options: Any) -> set[str]:
        return set(policies_in(gd.jit(g, **options).compile(X, keep_ir=True)))

    assert policies(gd.grad(f)) == {"none"}
    assert policies(gd.grad(f), residuals="sqrt") == {"none", "segment"}
    assert policies(gd.grad(f, residuals="all"), residuals="sqrt") == {"none"}
    level1 = gd.jit(gd.grad(f), residuals="sqrt").lower(X)
    assert str(level1.attributes["gradir.residuals"]) == '"sqrt"'
    kinds = re.findall("gradir.residuals", print_module(gd.jit(gd.grad(f, residuals="sqrt", budget=10)).lower(X)))
    assert len(kinds) == 2


def test_wrong_budgets_are_refused() -> None:
    for wrong in (-1, 1.5, "1 MB", True):
        for call in (
            lambda w=wrong: gd.grad(rnn, budget=w),
            lambda w=wrong: gd.jit(rnn, budget=w),
            lambda w=wrong: gd.compile(rnn, X, budget=w),
        ):
            with pytest.raises(GradirError, match="no such budget of residuals") as caught:
                call()
            assert (caught.value.code, caught.value.found) == ("AD020", repr(wrong)) and "bytes" in caught.value.expected


def recurrence(policy: str) -> Callable[..., Any]:
    w = np.random.default_rng(0).standard_normal((4, 4)) * 0.4
    return lambda x: gd.sum(gd.fori_loop(0, 20, lambda i, s: gd.tanh(s @ w + x * 0.1), x, residuals=policy))


@pytest.mark.parametrize(
    "derivative",
    [
        pytest.param(lambda f, x: gd.grad(lambda y: gd.sum(gd.sin(gd.grad(f)(y))))(x), id="reverse over reverse"),
        pytest.param(lambda f, x: gd.jvp(gd.grad(f), (x,), (x * 2.0,)), id="forward over reverse"),
        pytest.param(lambda f, x: gd.grad(lambda y: gd.jvp(f, (y,), (y * y,))[1])(x), id="reverse over forward"),
        pytest.param(lambda f, x: gd.vmap(gd.grad(f))(gd.stack([x, x * 2.0, x * 3.0])), id="batch of reverse"),
        pytest.param(
            lambda f, x: gd.grad(lambda y: gd.sum(gd.vmap(f)(gd.stack([y, y * 2.0]))))(x), id="reverse of a batch", marks=pytest.mark.full
        ),
        pytest.param(lambda f, x: gd.hessian(f)(x), id="hessian", marks=pytest.mark.full),
    ],
)
def test_derivatives_of_derivatives(derivative: Callable[..., Any]) -> None:
    """Sums of cotangents may come in another order, so within rounding; twice in reverse the memory stays that of sqrt."""
    x = np.linspace(-1, 1, 4)
    functions = {p: recurrence(p) for p in ("all", *POLICIES)}
    programs = {p: gd.compile(lambda x, f=f: derivative(f, x), x, cache=False) for p, f in functions.items()}
    expected = programs["all"](x)
    for policy in POLICIES:
        for a, b in zip(np.asarray(programs[policy](x)), np.asarray(expected)):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-15)
    sizes = {p: program.module.manifest.functions[0].arena_bytes for p, program in programs.items()}
    assert sizes["sqrt"] < sizes["all"]


@pytest.mark.parametrize("policy", ["all", *POLICIES])
def test_cotangents_of_weights_add_up_in_place(policy: str) -> None:
    """The weights of a loop are larger than all that is kept: the plan has no buffer of their size, and nothing of theirs is copied."""
    x, w = np.ones((2, 64), np.float32), np.eye(64, dtype=np.float32)
    loss = lambda x, w: gd.sum(gd.fori_loop(0, 9, lambda i, s: gd.tanh(s @ w), x, residuals=policy))
    program = gd.compile(gd.grad(loss, (0, 1)), x, w, cache=False, keep_ir=True)
    assert program.module.manifest.functions[0].arena_bytes < w.nbytes
    entry = program.report.ir["3 buffers"].rpartition("func.func")[2]
    assert entry.count("64x64") and not re.search(r"memref\.(copy|alloc|view)[^\n]*64x64", entry)


def test_collected_results_are_not_kept_again() -> None:
    """The array in which a scan collects its results is no state: policies but `all` would keep it once per iteration or segment."""
    x, xs = np.ones(64, np.float32), np.ones((256, 64), np.float32)

    def loss(x: Any, xs: Any, policy: str) -> Any:
        c, ys = gd.scan(lambda s, r: (gd.tanh(s + r), gd.sin(s) * r), x, xs, residuals=policy)
        return gd.sum(c) + gd.sum(ys * ys)

    arena = {
        p: gd.compile(gd.grad(lambda x, xs, p=p: loss(x, xs, p)), x, xs, cache=False).module.manifest.functions[0].arena_bytes
        for p in ("all", *POLICIES)
    }
    assert arena["none"] <= arena["all"] and arena["sqrt"] < arena["none"] - 200 * x.nbytes


def lengths(xs: Any, x: Any) -> Any:
    w = np.linspace(-1, 1, 16).reshape(4, 4)
    c, ys = gd.scan(lambda s, r: (gd.tanh(s @ w + r), s * r), x, xs)
    return gd.sum(c) + gd.sum(ys * ys)


def test_segments_of_a_length_of_run_time() -> None:
    """ceil(sqrt(n)) is computed by the program; every length, none and one included, has the bits of `all`."""
    x = np.ones(4)
    results: dict[str, list[bytes]] = {}
    for policy in ("all", "sqrt"):
        both = gd.jit(gd.value_and_grad(lengths, (0, 1)), dynamic={"xs": ("n", 4)}, residuals=policy, cache=False)
        for n in (0, 1, 2, 3, 4, 5, 16, 17, 100):
            value, gradients = both(np.random.default_rng(n).standard_normal((n, 4)), x)
            results[policy] = results.get(policy, []) + bits([value, *gradients])
        assert len(both.programs) == 1
    assert results["sqrt"] == results["all"]


def test_a_budget_of_run_time_sizes() -> None:
    """A length counts with its largest value; without one the loop gets the policy that grows slowest."""
    expected = {(64, 10**6): "all", (64, 3500): "sqrt", (None, 10**9): "sqrt"}
    for (most, budget), policy in expected.items():
        shape = {"xs": (gd.Dim("n", max=most), 4)}
        program = gd.jit(gd.value_and_grad(lengths, (0, 1)), dynamic=shape, budget=budget, cache=False)
        found = policies_in(program.compile(np.ones((3, 4)), np.ones(4), keep_ir=True))
        assert set(found) == ({"all"} if policy == "all" else {"none", "segment"}), (most, budget)


def test_a_budget_sees_into_a_checkpoint() -> None:
    """What it runs again is there for a while, the stacks of its loops too."""

    @gd.checkpoint
    def part(x: Any) -> Any:
        return gd.fori_loop(0, 400, lambda i, s: gd.sin(s * x), x)

    program = gd.compile(gd.grad(lambda x: gd.sum(part(x))), W1, cache=False, budget=200 * W1.nbytes, keep_ir=True)
    assert set(policies_in(program)) == {"none", "segment"}
    assert program.module.manifest.functions[0].arena_bytes <= 200 * W1.nbytes


BODIES: dict[str, Callable[[Any, Any], Any]] = {
    "matmul": lambda s, w: gd.tanh(s @ w),
    "sums": lambda s, w: gd.sin(s * gd.sum(gd.exp(s * 0.1)) + gd.sum(s @ w, axis=0)),
    "two matmuls": lambda s, w: gd.tanh(gd.relu(s @ w + 1.0) @ w.T * 0.1),
    "softmax": lambda s, w: gd.softmax(s @ w) * s,
    "attention": lambda s, w: gd.softmax(s @ w @ s.T) @ s,
    "normalized": lambda s, w: gd.tanh((s - gd.mean(s, axis=1, keepdims=True)) / gd.sqrt(gd.var(s, axis=1, keepdims=True) + 1e-5)),
    "cumulative": lambda s, w: gd.sin(s) + gd.cumsum(gd.sin(s), axis=1) * 0.01 + gd.logsumexp(s, axis=0) * 0.1,
}
QUICK = {("matmul", np.float32, 64), ("sums", np.float64, 17)}


@pytest.mark.parametrize(
    ("body", "dtype", "size"),
    [
        pytest.param(body, dtype, size, marks=() if (body, dtype, size) in QUICK else pytest.mark.full)
        for body in BODIES
        for dtype in (np.float16, np.float32, np.float64)
        for size in (17, 64)
    ],
)
def test_kernels_of_both_runs_give_the_same_bits(body: str, dtype: Any, size: int) -> None:
    """Sums and contractions have the order of a schedule, which neither fusion nor the place of an operand in a stack may change."""
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal((8, size)) * 0.5).astype(dtype), (rng.standard_normal((size, size)) * 0.2).astype(dtype)
    found: dict[str, list[bytes]] = {}
    for policy in ("all", *POLICIES):
        loop = lambda x, w, p=policy: gd.fori_loop(0, 10, lambda i, s: BODIES[body](s, w).astype(s.dtype), x, residuals=p)
        loss = lambda x, w, loop=loop: gd.sum(loop(x, w)).astype(np.float32)
        value, gradients = gd.compile(gd.value_and_grad(loss, (0, 1)), x, w, cache=False)(x, w)
        assert np.isfinite(value)
        found[policy] = bits([value, *gradients])
    assert found["none"] == found["sqrt"] == found["all"]
