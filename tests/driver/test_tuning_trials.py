"""The child process of the tuner: forms that are wrong, crash, hang or do not compile are refused, the others measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.driver.compile import compile_module
from gradir.driver.tuning.trials import Job, measure_in_child
from gradir.errors import GradirError
from gradir.runtime.module import Module
from gradir.runtime.trial import Guarded, Tolerance
from tests.driver.test_explain import f32


def saved(factor: float, shape: tuple[int, ...] = (8,)) -> Callable[[], Module]:
    return lambda: compile_module(gd.jit(lambda x: x * factor).lower(f32(*shape)), cache=False)


def test_a_child_checks_every_form_and_times_the_good_ones() -> None:
    outcomes = measure_in_child(Job([saved(2.0), saved(2.0), saved(3.0)], [f32(8)], sets=2, rounds=3, seconds=1e-5))
    assert [len(outcome.seconds) for outcome in outcomes] == [3, 3, 0]
    assert not outcomes[1].refused and outcomes[2].refused.startswith("result 0 at [0]:") and "8 of 8 differ" in outcomes[2].refused


def test_a_form_that_does_not_compile_is_refused() -> None:
    def broken() -> Module:
        raise GradirError("no", part="operator", code="OP043")

    outcomes = measure_in_child(Job([saved(2.0), broken, saved(2.0)], [f32(8)], rounds=1, seconds=1e-5))
    assert outcomes[0].seconds and outcomes[1].refused == "it does not compile: OP043" and outcomes[2].seconds
    with pytest.raises(GradirError) as caught:
        measure_in_child(Job([broken, saved(2.0)], [f32(8)], rounds=1, seconds=1e-5))
    assert caught.value.code == "RT063" and "OP043" in caught.value.found


def unknown_function() -> Module:
    """Loads here, not in the child: there the name of its function is unknown, so the child ends with an error."""
    gd.register_custom_call("only_here", lambda x: x * 2, shape=lambda x: gd.Spec(x.shape, x.dtype))
    return compile_module(gd.jit(lambda x: gd.custom_call("only_here", x)).lower(f32(8)), cache=False)


def test_a_form_that_ends_the_child_is_refused_and_the_others_go_on() -> None:
    outcomes = measure_in_child(Job([saved(2.0), unknown_function, saved(2.0)], [f32(8)], rounds=2, seconds=1e-5))
    assert outcomes[0].seconds and outcomes[2].seconds and outcomes[1].refused.startswith("it ends the process")
    with pytest.raises(GradirError) as caught:
        measure_in_child(Job([unknown_function, saved(2.0)], [f32(8)], rounds=2, seconds=1e-5))
    assert caught.value.code == "RT063" and "ends the process" in caught.value.found


def endless() -> Module:
    def f(x: Any) -> Any:
        return gd.while_loop(lambda s: gd.sum(s) < 1, lambda s: s * 0, x * 0)

    return compile_module(gd.jit(f).lower(f32(8)), cache=False)


def test_a_form_that_hangs_is_refused() -> None:
    outcomes = measure_in_child(Job([saved(2.0), endless], [f32(8)], rounds=1, seconds=1e-5), silence=1.5)
    assert outcomes[0].seconds == () and outcomes[1].refused.startswith("it hangs")


def test_marks_around_results() -> None:
    guarded = Guarded([np.zeros((3, 5), np.float32), np.zeros((), np.int64)])
    assert [a.shape for a in guarded.arrays] == [(3, 5), ()] and all(a.ctypes.data % 64 == 0 for a in guarded.arrays)
    for array in guarded.arrays:
        array[...] = 7
    assert not guarded.broken()
    np.lib.stride_tricks.as_strided(guarded.arrays[0], (16,), (4,))[15] = 1
    assert guarded.broken()


def test_tolerance_is_that_of_another_order_of_sums() -> None:
    x = f32(1000)
    tolerance = Tolerance.of(lambda arrays: [np.asarray(np.sum(arrays[0])), np.arange(3), arrays[0] > 0], [x])
    good = [np.asarray(np.float32(np.sum(x[::-1].astype(np.float64)))), np.arange(3), x > 0]
    assert tolerance.difference(good) == ""
    off = np.asarray(good[0] * np.float32(1.001) + np.float32(0.01))
    assert tolerance.difference([off, *good[1:]]).startswith("result 0 at []")
    assert tolerance.difference([good[0], np.array([0, 1, 3]), good[2]]).startswith("result 1 at [2]: 2 expected, 3 found (1 of 3")
    nan = Tolerance.of(lambda arrays: [arrays[0] * np.float32(np.nan)], [np.zeros(2, np.float32)])
    assert nan.difference([np.full(2, np.nan, np.float32)]) == "" and nan.difference([np.zeros(2, np.float32)])
