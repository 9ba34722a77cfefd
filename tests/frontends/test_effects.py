"""Assertions and barriers from Python: where they stop, how often they are checked, what they keep apart."""

from __future__ import annotations

import numpy as np
import pytest

import gradir as gd
from gradir.ir.text import print_module
from gradir.reference import run


def below(x):
    gd.assert_(x < 5, "every element must be below 5")
    return gd.sum(gd.fori_loop(0, 3, step, x))


def step(_i, state):
    gd.assert_(gd.sum(state) < 20, "the sum must stay below 20")
    return state * 2


GOOD = np.ones(3, np.float32)
LARGE = np.array([1, 9, 1], np.float32)
GROWS = np.full(3, 4, np.float32)


@pytest.mark.parametrize(
    ("x", "message", "line"), [(LARGE, "every element must be below 5", 14), (GROWS, "the sum must stay below 20", 19)]
)
def test_a_false_condition_stops_with_message_and_line(x: np.ndarray, message: str, line: int) -> None:
    compiled = gd.jit(below)
    assert compiled(GOOD) == 24
    with pytest.raises(gd.GradirError) as caught:
        compiled(x)
    error = caught.value
    assert (error.part, error.code, error.message) == ("runtime", "RT020", message)
    assert f"test_effects.py:{line}:" in error.location
    assert error.found == "it does not hold"


def test_the_reference_evaluator_says_the_same() -> None:
    module = gd.jit(below).lower(GOOD)
    assert print_module(module).count("nd.assert") == 2
    with pytest.raises(gd.GradirError) as caught:
        run(module, "below", [LARGE])
    error = caught.value
    assert (error.part, error.code, error.message) == ("runtime", "RT020", "every element must be below 5")
    assert "test_effects.py:14:" in error.location


def test_eager_and_gradients_stop_too() -> None:
    with gd.eager(), pytest.raises(gd.GradirError, match="the sum must stay"):
        below(GROWS)
    value, gradient = gd.jit(gd.value_and_grad(below))(GOOD)
    assert value == 24
    assert gradient.tolist() == [8, 8, 8]
    with pytest.raises(gd.GradirError, match="every element"):
        gd.jit(gd.grad(below))(LARGE)


def test_in_a_branch_only_when_taken() -> None:
    def guarded(x, flag):
        def strict(v):
            gd.assert_(gd.max(v) < 5, "strict")
            return v

        return gd.cond(flag, strict, lambda v: v, x)

    compiled = gd.jit(guarded)
    assert compiled(LARGE, np.array(False)).tolist() == [1, 9, 1]
    with pytest.raises(gd.GradirError, match="strict"):
        compiled(LARGE, np.array(True))


def test_unused_work_goes_and_the_assertion_stays() -> None:
    def f(x):
        gd.assert_(gd.sum(gd.exp(x)) > 0, "positive")
        return x

    with pytest.raises(gd.GradirError, match="positive"):
        gd.jit(f)(np.array([np.nan], np.float32))


def test_a_message_is_needed() -> None:
    with pytest.raises(gd.GradirError, match="needs a message"):
        gd.assert_(True, "")


@pytest.mark.parametrize(
    "use", [lambda x: gd.assert_(x > 0, 3), lambda x: gd.print(x, "{}"), lambda x: gd.print(3)], ids=["assert_", "print", "number"]
)
def test_what_is_no_text_is_refused(use) -> None:
    for call in (use, gd.jit(lambda x: (use(x), x)[1])):
        with pytest.raises(gd.GradirError, match="needs a") as caught:
            call(np.float32(1))
        assert caught.value.code == "GR011" and caught.value.expected == "a text"


def test_barrier_is_the_identity_with_an_identity_derivative() -> None:
    def f(x, y):
        a, b = gd.optimization_barrier((x * 2, y))
        return gd.sum(a * b + gd.exp(gd.optimization_barrier(a)))

    x, y = np.array([0.5, -1], np.float32), np.array([3, 4], np.float32)
    value, (dx, dy) = gd.jit(gd.value_and_grad(f, argnums=(0, 1)))(x, y)
    np.testing.assert_allclose(value, np.sum(2 * x * y + np.exp(2 * x)), rtol=1e-6)
    np.testing.assert_allclose(dx, 2 * y + 2 * np.exp(2 * x), rtol=1e-6)
    np.testing.assert_allclose(dy, 2 * x, rtol=1e-6)


# -- print


@pytest.fixture
def lines():
    """What programs print."""
    found: list[str] = []
    before = gd.set_print_sink(found.append)
    yield found
    gd.set_print_sink(before)


def told(x):
    gd.print("before {}", x)

    def step(i, s):
        gd.print("step {}: {:.2f}", i, gd.sum(s))
        return s * 2

    s = gd.fori_loop(0, 2, step, x)
    gd.cond(gd.sum(s) > 10, lambda: gd.print("large") or 1, lambda: gd.print("{{small}}") or 0)
    return gd.sum(s)


TOLD = ["before [1. 1. 1.]", "step 0: 3.00", "step 1: 6.00", "large"]


def test_lines_in_the_order_of_the_program(lines: list[str]) -> None:
    compiled = gd.jit(told)
    assert not lines
    compiled(GOOD)
    assert lines == TOLD
    compiled(GOOD / 2)
    assert lines[len(TOLD) :] == ["before [0.5 0.5 0.5]", "step 0: 1.50", "step 1: 3.00", "{small}"]


def test_a_derivative_prints_once(lines: list[str]) -> None:
    assert gd.jit(gd.grad(told))(GOOD).tolist() == [4, 4, 4]
    assert lines == TOLD


def test_the_evaluator_and_eager_code_print_the_same(lines: list[str]) -> None:
    run(gd.jit(told).lower(GOOD), "told", [GOOD])
    assert lines == TOLD
    with gd.eager():
        told(gd.asarray(GOOD))
    assert lines[len(TOLD) :] == TOLD


def test_stdout_unless_somebody_listens(capfd: pytest.CaptureFixture[str]) -> None:
    gd.jit(lambda x: gd.print("{} {} {}", x, np.uint8(200), np.array([True, False])))(np.float16(1.5))
    assert capfd.readouterr().out == "1.5 200 [ True False]\n"


@pytest.mark.parametrize(("template", "values"), [("{}", ()), ("x", (1,)), ("{0}", (1,)), ("{x!r}", (1,)), ("{", ()), ("{:q}", (1,))])
def test_a_format_must_fit(template: str, values: tuple) -> None:
    with pytest.raises(gd.GradirError, match="print") as caught:
        gd.print(template, *values)
    assert caught.value.code == "GR011"
