"""Control flow compiled for this machine: random programs against the same Python run eagerly, and every corner by name.

The programs are those of `random_programs`: exact in f32, so that results are compared bit for bit. Their derivatives are compared in f64
with the derivative of the unrolled record that eager mode makes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import gradir as gd
from gradir.driver.compile import compile_module
from tests.cpu.random_programs import ARGUMENTS, Program, program

FEW = settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
MANY = settings(FEW, max_examples=300)


def drawn(data: st.DataObject, *, smooth: bool = False) -> Program:
    return program(lambda count: data.draw(st.integers(0, count - 1)), smooth=smooth)


def both_ways(f: Callable[..., Any], *args: Any) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Results of `f` run eagerly and compiled; the arguments must stay what they were."""
    kept = [np.asarray(a).tobytes() for a in args]
    with gd.eager():
        expected = gd.jit(f)(*args)
    found = gd.jit(f, cache=False, threads=1)(*args)
    assert [np.asarray(a).tobytes() for a in args] == kept
    return list(map(np.asarray, expected)), list(map(np.asarray, found))


def check_values(program: Program, seed: int) -> None:
    expected, found = both_ways(program.function(), *program.inputs(seed))
    for k, (a, b) in enumerate(zip(expected, found, strict=True)):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), program.source
        assert np.array_equal(a, b), f"result {k} of\n{program.source}"


def check_gradients(program: Program, seed: int) -> None:
    f = program.function()
    rng = np.random.default_rng(seed)
    args = [a if a.dtype == np.int32 else rng.standard_normal(a.shape) * 0.7 for a in program.inputs(seed, np.float64)]
    wrt = tuple(k for k, (_, kind) in enumerate(ARGUMENTS) if kind != "i")
    gradient = gd.value_and_grad(lambda *xs: sum(gd.sum(gd.sin(out)) for out in f(*xs)), wrt)
    found = gd.jit(gradient, cache=False, threads=1)(*args)
    with gd.eager():
        expected = gradient(*args)
    for a, b in zip((expected[0], *expected[1]), (found[0], *found[1]), strict=True):
        np.testing.assert_allclose(
            np.asarray(b), np.asarray(a), rtol=1e-9, atol=1e-9 * (1 + np.max(np.abs(np.asarray(a)))), err_msg=program.source
        )


@FEW
@given(data=st.data(), seed=st.integers(0, 1000))
def test_random_programs(data: st.DataObject, seed: int) -> None:
    check_values(drawn(data), seed)


@pytest.mark.full
@MANY
@given(data=st.data(), seed=st.integers(0, 1000))
def test_many_random_programs(data: st.DataObject, seed: int) -> None:
    check_values(drawn(data), seed)


@settings(FEW, max_examples=10)
@given(data=st.data(), seed=st.integers(0, 1000))
def test_derivatives_of_random_programs(data: st.DataObject, seed: int) -> None:
    check_gradients(drawn(data, smooth=True), seed)


@pytest.mark.full
@MANY
@given(data=st.data(), seed=st.integers(0, 1000))
def test_derivatives_of_many_random_programs(data: st.DataObject, seed: int) -> None:
    check_gradients(drawn(data, smooth=True), seed)


# By name -----------------------------------------------------------------------------------------------------------

X = np.arange(12, dtype=np.float32).reshape(3, 4)
V = np.array([1, -2, 3, -4], np.float32)


def agrees(f: Callable[..., Any], *args: Any) -> None:
    expected, found = both_ways(f, *args)
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_array_equal(b, a)


@pytest.mark.parametrize("trips", [-2, 0, 1, 2, 7])
def test_trip_counts_of_the_call(trips: int) -> None:
    agrees(lambda v, n: (gd.fori_loop(0, n, lambda i, s: s + i.astype(np.float32), v),), V, np.int32(trips))


@pytest.mark.parametrize("trips", [0, 1, 2, 3])
def test_swaps_and_rotations(trips: int) -> None:
    agrees(lambda a, b, n: gd.fori_loop(0, n, lambda i, s: (s[1], s[0]), (a, b)), V, 2 * V, np.int32(trips))
    agrees(lambda a, b, c, n: gd.fori_loop(0, n, lambda i, s: (s[1], s[2], s[0] + 1), (a, b, c)), V, 2 * V, 3 * V, np.int32(trips))
    agrees(lambda a, n: gd.fori_loop(0, n, lambda i, s: (s[1], s[0] * 2), (a, a)), V, np.int32(trips))


def test_a_carried_value_that_stays() -> None:
    agrees(lambda a, b: gd.fori_loop(0, 3, lambda i, s: (s[0], s[0] + s[1]), (a, b)), V, 2 * V)


def test_fibonacci_reads_the_old_pair() -> None:
    agrees(lambda a, b: gd.fori_loop(0, 6, lambda i, s: (s[1], s[0] + s[1]), (a, b)), V, 2 * V)


def test_loops_in_loops_share_bounds_and_state() -> None:
    def f(x: Any, n: Any) -> Any:
        def outer(i: Any, s: Any) -> Any:
            return gd.fori_loop(i, n, lambda j, t: t + x[gd.clip(j, 0, 2)] * (i + j).astype(np.float32), s)

        return (gd.fori_loop(0, n, outer, gd.zeros((4,), np.float32)),)

    for n in (0, 1, 4):
        agrees(f, X, np.int32(n))


def test_while_with_a_condition_on_data() -> None:
    agrees(lambda v: (gd.while_loop(lambda s: gd.sum(s * s) < 1000, lambda s: s * 2, v),), V)
    agrees(lambda v: gd.while_loop(lambda s: s[1] < 5, lambda s: (s[0] * 2 - 1, s[1] + 1), (v, np.int32(0))), V)
    agrees(lambda v: gd.while_loop(lambda s: s[1] < 0, lambda s: (s[0] * 2, s[1] + 1), (v, np.int32(0))), V)


def test_scan_stacks_its_outputs() -> None:
    agrees(lambda x, v: gd.scan(lambda c, row: (c + row, c * row), v, x), X, V)
    agrees(lambda x, v: gd.scan(lambda c, row: (row, c), v, x), X, V)  # what is stacked is the carried value itself
    agrees(lambda x, v: gd.scan(lambda c, row: (c, row), v, x), X, V)  # ... the input's row


def test_branches_that_pass_arguments_and_constants_on() -> None:
    f = lambda a, b, p: gd.cond(p > 0, lambda: (a, b, a), lambda: (b, gd.zeros((4,), np.float32), b + 1))
    for p in (-1, 1):
        agrees(f, V, 2 * V, np.int32(p))


def test_a_branch_in_a_loop_that_keeps_or_replaces() -> None:
    f = lambda v, w: (gd.fori_loop(0, 5, lambda i, s: gd.cond(i % 2 == 0, lambda: s + w, lambda: s), v),)
    agrees(f, V, 2 * V)
    g = lambda v, w: (gd.fori_loop(0, 5, lambda i, s: gd.cond(i == 3, lambda: w, lambda: s * 2), v),)
    agrees(g, V, 2 * V)


def test_arguments_constants_and_doubles_as_results() -> None:
    agrees(lambda a, b: (a, b, a), V, 2 * V)
    agrees(lambda a: (a + 1, gd.ones((3,), np.float32), gd.zeros((), np.int32), gd.ones((3,), np.float32)), V)

    def twice(a: Any) -> Any:
        b = a * 2
        return b, b, gd.flip(b, 0), a

    agrees(twice, V)


def test_an_update_after_the_last_read_and_before_it() -> None:
    def f(x: Any, v: Any) -> Any:
        y = gd.dynamic_update_slice(x, gd.reshape(v, (1, 4)), [np.int32(1), np.int32(0)])
        z = gd.dynamic_update_slice(y, gd.reshape(v * 2, (1, 4)), [np.int32(2), np.int32(0)])
        return y, z, gd.sum(x, 0)

    agrees(f, X, V)


def test_a_gather_reads_a_table_that_was_just_computed() -> None:
    def f(v: Any, w: Any) -> Any:
        table = gd.where(v > w, w, v)
        return table, gd.take(table, np.array([3, 0, 0, 1], np.int32))

    agrees(f, V, -V)


# What only the IR can say --------------------------------------------------------------------------------------------

STEPS = """
func.func @f(%x: tensor<4xf32>, %lo: index, %hi: index, %by: index) -> (tensor<4xf32>, tensor<index>) {
  %zero = arith.constant 0 : index
  %one = nd.constant splat(1.0 : f32) : tensor<4xf32>
  %r, %last = scf.for %i = %lo to %hi step %by iter_args(%s = %x, %l = %zero) -> (tensor<4xf32>, index) {
    %0 = nd.add %s, %one : tensor<4xf32>
    scf.yield %0, %i : tensor<4xf32>, index
  }
  %t = tensor.from_elements %last : tensor<index>
  return %r, %t : tensor<4xf32>, tensor<index>
}
"""


@pytest.mark.parametrize(("lo", "hi", "by"), [(0, 10, 3), (-5, 5, 4), (7, 7, 1), (9, 2, 2), (3, 4, 100)])
def test_bounds_and_steps_of_the_call(lo: int, hi: int, by: int) -> None:
    found, last = compile_module(STEPS, cache=False, threads=1)["f"](V, lo, hi, by)
    steps = range(lo, hi, by)
    np.testing.assert_array_equal(found, V + len(steps))
    assert int(last) == (steps[-1] if steps else 0)


SWITCH = """
func.func @f(%x: tensor<4xf32>, %k: index) -> tensor<4xf32> {
  %r = scf.index_switch %k -> tensor<4xf32>
  case 0 {
    scf.yield %x : tensor<4xf32>
  }
  case 5 {
    %0 = nd.neg %x : tensor<4xf32>
    scf.yield %0 : tensor<4xf32>
  }
  default {
    %0 = nd.add %x, %x : tensor<4xf32>
    scf.yield %0 : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
"""


def test_switches() -> None:
    f = compile_module(SWITCH, cache=False, threads=1)["f"]
    for k, factor in ((0, 1), (5, -1), (1, 2), (-1, 2)):
        np.testing.assert_array_equal(f(V, k), factor * V)


CALLS = """
func.func private @double(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = nd.add %x, %x : tensor<4xf32>
  return %0, %x : tensor<4xf32>, tensor<4xf32>
}
func.func @f(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a, %b = func.call @double(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %c, %d = func.call @double(%a) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %c, %b : tensor<4xf32>, tensor<4xf32>
}
func.func @g(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c, %b = func.call @f(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %c : tensor<4xf32>
}
"""


def test_functions_that_call_functions() -> None:
    module = compile_module(CALLS, cache=False, threads=1)
    c, b = module["f"](V)
    np.testing.assert_array_equal(c, 4 * V)
    np.testing.assert_array_equal(b, V)
    np.testing.assert_array_equal(module["g"](V), 4 * V)
