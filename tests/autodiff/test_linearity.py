"""Rules of one's own are transposed where they are linear in their (co)tangents, and refused where they are not: AD017, never a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir import GradirError
from gradir.dialects import custom_calls
from gradir.runtime import library

X, T, W = np.array([0.3, 0.5]), np.array([1.0, 2.0]), np.array([0.7, -0.2])


def fixed_trips(x: Any, ct: Any) -> Any:
    return gd.fori_loop(0, 3, lambda _, u: ct + u * gd.tanh(x) * 0.5, ct)


def counting(x: Any, ct: Any) -> Any:
    """A condition that does not look at the cotangent."""
    step = lambda s: (ct + s[0] * gd.tanh(x) * 0.5, s[1] + 1)
    return gd.while_loop(lambda s: s[1] < 3, step, (ct, np.int32(0)))[0]


def branch(x: Any, ct: Any) -> Any:
    return gd.cond(x[0] > 0, lambda c: c * x, lambda c: c, ct)


def solve(x: Any, ct: Any) -> Any:
    return gd.linalg.solve(gd.eye(2, dtype=np.float64) * 3 + x, ct)


def along(x: Any, ct: Any) -> Any:
    """A sort that takes the cotangent with it."""
    return gd.sort_together((x, ct), 0)[1]


LINEAR = [fixed_trips, counting, branch, solve, along]


def clipped(x: Any, ct: Any) -> Any:
    return gd.clip(ct, -1, 1)


def squared(x: Any, ct: Any) -> Any:
    return ct * ct


def until_small(x: Any, ct: Any) -> Any:
    return gd.while_loop(lambda u: gd.max(gd.abs(u)) > 0.1, lambda u: u * 0.5, ct)


def by_sign(x: Any, ct: Any) -> Any:
    return gd.cond(ct[0] > 0, lambda c: c, lambda c: c * 2, ct)


NOT_LINEAR = [clipped, squared, until_small, by_sign]


def reverse_rule(rule: Callable[..., Any]) -> Any:
    f = gd.custom_vjp(lambda x: x * 1.0)
    f.defvjp(lambda x: (x * 1.0, x), lambda x, ct: (rule(x, ct),))
    return f


def forward_rule(rule: Callable[..., Any]) -> Any:
    f = gd.custom_jvp(lambda x: x * 1.0)
    f.defjvp(lambda primals, tangents: (primals[0] * 1.0, rule(primals[0], tangents[0])))
    return f


def tangent(f: Any) -> Any:
    return gd.jit(lambda x: gd.jvp(f, (x,), (T,))[1], cache=False)(X)


def cotangent(f: Any) -> Any:
    return gd.jit(lambda x: gd.vjp(f, x)[1](W)[0], cache=False)(X)


@pytest.mark.parametrize("made", [reverse_rule, forward_rule])
@pytest.mark.parametrize("rule", LINEAR)
def test_a_linear_rule_is_transposed(rule: Any, made: Any) -> None:
    f = made(rule)
    np.testing.assert_allclose(np.sum(W * tangent(f)), np.sum(T * cotangent(f)), rtol=1e-12)


@pytest.mark.parametrize("rule", NOT_LINEAR)
def test_a_rule_that_is_not_linear_is_refused_in_the_other_mode(rule: Any) -> None:
    f, g = reverse_rule(rule), forward_rule(rule)
    np.testing.assert_allclose(cotangent(f), np.asarray(gd.jit(rule)(X, W)))
    np.testing.assert_allclose(tangent(g), np.asarray(gd.jit(rule)(X, T)))
    with pytest.raises(GradirError, match=r"AD017.*ad\.custom_vjp: @\w+ is not linear in its cotangents"):
        tangent(f)
    with pytest.raises(GradirError, match=r"AD017.*ad\.custom_jvp: @\w+ is not linear in its tangents"):
        cotangent(g)


def test_the_rule_of_a_library_function_too() -> None:
    """`gd.custom_call`: its reverse rule is the user's as well."""
    gd.register_custom_call("halved", lambda x, out: None, shape=lambda x: x, vjp=lambda inputs, results, ct: (gd.clip(ct, -1, 1),))
    try:
        with pytest.raises(GradirError, match=r"AD017.*@halved is not linear in its cotangents"):
            tangent(lambda x: gd.custom_call("halved", x))
    finally:
        custom_calls.CALLS.pop("halved", None)
        library.ROWS.pop("halved", None)
