"""Requests in Python that must be refused: each a function without arguments, and the code, op and words of its error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import gradir as gd

X, M, I, Z = np.ones(3), np.ones((2, 3)), np.arange(3), np.ones(3, complex)


@dataclass(frozen=True)
class Refused:
    """`run` raises a GradirError with this code at a line of this file; `words` stand in its text."""

    run: Callable[[], Any]
    code: str
    op: str
    words: tuple[str, ...]


def loss(x: Any) -> Any:
    return gd.sum(x * x)


@gd.jit
def endless(x: Any) -> Any:
    return endless(x * 0.5)


def two(x: Any, y: Any) -> Any:
    return gd.sum(x * y)


def ruled(forward: Callable[..., Any], backward: Any) -> Callable[[], Any]:
    """The gradient of the identity with these rules."""

    def run() -> Any:
        f = gd.custom_vjp(lambda x: x)
        f.defvjp(forward, backward)
        return gd.grad(lambda x: gd.sum(f(x)))(X)

    return run


def tangent(rule: Callable[..., Any]) -> Callable[[], Any]:
    """The tangent of the identity with this rule."""

    def run() -> Any:
        f = gd.custom_jvp(lambda x: x)
        f.defjvp(rule)
        return gd.jvp(f, (X,), (X,))

    return run


def wrong_slope() -> Any:
    f = gd.custom_vjp(lambda x: gd.sum(x * x))
    f.defvjp(lambda x: (gd.sum(x * x), x), lambda x, ct: (ct * x,))
    return gd.check_grads(f, (X,), modes=("rev",))


PYTHON: dict[str, Refused] = {
    # arguments
    "by an integer": Refused(lambda: gd.grad(loss)(I), "GR109", "ad.value_and_grad", ("argument 0 of loss", "int64", "astype")),
    "by truth values": Refused(lambda: gd.grad(loss)(I > 0), "GR109", "ad.value_and_grad", ("found: bool",)),
    "by an integer in a container": Refused(
        lambda: gd.grad(lambda t: gd.sum(t["w"]))({"w": X, "n": I}), "GR109", "ad.value_and_grad", ("argument 0['n']",)
    ),
    "by nothing at all": Refused(lambda: gd.grad(lambda x: gd.ones(()))(None), "GR109", "gradir.grad", ("no arrays",)),
    "by an argument that is not there": Refused(lambda: gd.grad(loss, 1)(X), "GR104", "gradir.grad", ("argument 1", "0, the only one")),
    "by an argument twice": Refused(lambda: gd.grad(two, (0, -2))(X, X), "GR104", "gradir.grad", ("argument 0 twice", "(0, -2)")),
    "by no argument": Refused(lambda: gd.grad(loss, ())(X), "GR104", "gradir.grad", ("names no argument",)),
    "by an argument given by name": Refused(lambda: gd.grad(loss)(x=X), "GR104", "gradir.grad", ("given by name", "by position")),
    "argnums that is no number": Refused(lambda: gd.grad(loss, 0.5)(X), "GR112", "gradir.grad", ("neither a number nor several", "0.5")),
    "argnums None": Refused(lambda: gd.grad(loss, None)(X), "GR112", "gradir.grad", ("found: None",)),
    "an element of argnums": Refused(lambda: gd.grad(loss, (0, "x"))(X), "GR112", "", ("'x'",)),
    "text": Refused(lambda: gd.grad(two)(X, "mean"), "GR103", "", ("a str is not an array", "'mean'")),
    "a function as an argument": Refused(lambda: gd.grad(two)(X, loss), "GR103", "", ("a function is not an array",)),
    "too many arguments": Refused(lambda: gd.grad(loss)(X, X), "GR119", "gradir.grad", ("loss cannot be called", "loss(x: 'Any')", "2 by position")),
    "too few arguments": Refused(lambda: gd.grad(two)(X), "GR119", "gradir.grad", ("missing a required argument: 'y'",)),
    "no function": Refused(lambda: gd.grad(3.0), "GR119", "gradir.grad", ("a float is not a function", "grad(f)(x), not grad(f(x))")),
    # losses
    "a loss of three elements": Refused(lambda: gd.grad(lambda x: x * x)(X), "GR108", "ad.value_and_grad", ("tensor<3xf64>", "gradir.mean")),
    "an integer loss": Refused(lambda: gd.grad(lambda x: gd.argmax(x, 0))(X), "GR108", "ad.value_and_grad", ("tensor<i32>",)),
    "a truth value": Refused(lambda: gd.grad(lambda x: gd.sum(x) > 0)(X), "GR108", "ad.value_and_grad", ("tensor<i1>",)),
    "a complex loss": Refused(lambda: gd.grad(gd.sum)(Z), "GR108", "ad.value_and_grad", ("complex<f64>", "real scalar")),
    "no loss": Refused(lambda: gd.grad(lambda x: None)(X), "GR108", "ad.value_and_grad", ("is a return missing?",)),
    "a pair without has_aux": Refused(lambda: gd.grad(lambda x: (gd.sum(x), x))(X), "GR108", "ad.value_and_grad", ("found: tuple", "has_aux=True")),
    "has_aux without a pair": Refused(lambda: gd.grad(loss, has_aux=True)(X), "GR108", "ad.value_and_grad", ("(loss, aux)", "found: Array")),
    "endless recursion": Refused(lambda: gd.grad(endless)(X), "GR040", "", ("tracing endless does not come to an end", "gradir.while_loop")),
    # vjp and jvp
    "cotangents of another structure": Refused(lambda: gd.vjp(lambda x: (x, x), X)[1](X), "GR107", "ad.vjp", ("tuple(*, *)",)),
    "a cotangent of another shape": Refused(lambda: gd.vjp(gd.sin, X)[1](M), "GR107", "ad.vjp", ("cotangent 0", "(3,)", "(2, 3)")),
    "a cotangent of another type": Refused(lambda: gd.vjp(gd.sin, X)[1](np.float32(X)), "GR107", "ad.vjp", ("float64", "float32")),
    "the cotangent of a position": Refused(lambda: gd.vjp(lambda x: gd.argmax(x, 0), X)[1](I[0]), "GR109", "gradir.vjp", ("nothing to differentiate",)),
    "the pullback of an integer": Refused(lambda: gd.vjp(lambda i: i * 2.0, I), "GR109", "gradir.vjp", ("nothing to differentiate", "tensor<3xi64>")),
    "tangents of another structure": Refused(lambda: gd.jvp(loss, (X,), (X, X)), "GR107", "ad.jvp", ("tuple(*)", "tuple(*, *)")),
    "a tangent of another shape": Refused(lambda: gd.jvp(loss, (X,), (M,)), "GR107", "ad.jvp", ("tangent 0", "(3,)", "(2, 3)")),
    "a tangent of another type": Refused(lambda: gd.jvp(loss, (X,), (np.float32(X),)), "GR107", "ad.jvp", ("float32",)),
    "primals without a tuple": Refused(lambda: gd.jvp(loss, X, X), "GR107", "gradir.jvp", ("not a tuple", "write (x,)")),
    "the tangent of an integer": Refused(lambda: gd.jvp(lambda i: i * 2.0, (I,), (I,)), "GR109", "gradir.jvp", ("nothing to differentiate",)),
    # vmap
    "lanes of different numbers": Refused(lambda: gd.vmap(two)(X, np.ones(4)), "GR107", "ad.batch", ("different sizes", "3, 4")),
    "an axis that is not there": Refused(lambda: gd.vmap(loss, 2)(M), "GR107", "ad.batch", ("no axis 2", "(2, 3)")),
    "no lanes": Refused(lambda: gd.vmap(loss, None)(M), "GR107", "ad.batch", ("at least one argument",)),
    "axes for too many arguments": Refused(lambda: gd.vmap(loss, (0, 0))(M), "GR107", "ad.batch", ("tuple of 1",)),
    "a result that is the same for all": Refused(lambda: gd.vmap(loss, out_axes=None)(M), "GR107", "ad.batch", ("out_axes is None",)),
    "lanes of no function": Refused(lambda: gd.vmap(X), "GR119", "gradir.vmap", ("a ndarray is not a function",)),
    # Jacobians and checks
    "the Jacobian by an argument that is not there": Refused(lambda: gd.jacfwd(loss, 3)(X), "GR104", "gradir.jacfwd", ("argument 3",)),
    "the Jacobian of positions": Refused(lambda: gd.jacrev(lambda x: gd.argmax(x, 0))(X), "GR109", "gradir.vjp", ("nothing to differentiate", "tensor<i32>")),
    "a slope that differs": Refused(wrong_slope, "AD014", "", ("central differences", "kink at this point")),
    "a mode that is not there": Refused(lambda: gd.check_grads(loss, (X,), modes=("side",)), "GR104", "", ("fwd, rev", "'side'")),
    "order 0": Refused(lambda: gd.check_grads(loss, (X,), order=0), "GR112", "", ("at least 1",)),
    "a step of 0": Refused(lambda: gd.check_grads(loss, (X,), step=0.0), "GR112", "", ("finite number above 0", "0.0")),
    # rules of one's own
    "no rule": Refused(lambda: gd.grad(gd.custom_vjp(loss))(X), "AD012", "ad.custom_vjp", ("loss has no rule yet", "defvjp")),
    "a rule that is no function": Refused(ruled(lambda x: (x, ()), None), "AD012", "ad.custom_vjp", ("the backward function is not a function",)),
    "a backward function of one argument": Refused(ruled(lambda x: (x, ()), lambda ct: (ct,)), "AD012", "ad.custom_vjp", ("2 arguments",)),
    "a forward function without residuals": Refused(ruled(lambda x: x, lambda r, ct: (ct,)), "AD012", "ad.custom_vjp", ("a pair", "Array")),
    "a forward function of another result": Refused(ruled(lambda x: (gd.sum(x), ()), lambda r, ct: (ct,)), "AD012", "ad.custom_vjp", ("tensor<3xf64>", "found: tensor<f64>")),
    "too many cotangents": Refused(ruled(lambda x: (x, ()), lambda r, ct: (ct, ct)), "AD012", "ad.custom_vjp", ("1 cotangents", "2 of them")),
    "a cotangent of a rule with another shape": Refused(ruled(lambda x: (x, ()), lambda r, ct: (gd.sum(ct),)), "AD012", "ad.custom_vjp", ("cotangent 0", "tensor<3xf64>")),
    "a checkpoint of no function": Refused(lambda: gd.checkpoint(X), "GR119", "gradir.checkpoint", ("a ndarray is not a function",)),
    "a tangent rule of one argument": Refused(tangent(lambda primals: primals), "AD012", "ad.custom_jvp", ("2 arguments",)),
    "a tangent of a rule with another shape": Refused(tangent(lambda p, t: (p[0], gd.sum(t[0]))), "AD012", "ad.custom_jvp", ("tangent of the rule", "tensor<3xf64>")),
    "a policy that is none": Refused(lambda: gd.jit(gd.grad(loss), residuals="some"), "AD020", "", ("one of all, none, sqrt", "'some'")),
    "a budget that is no number": Refused(lambda: gd.jit(gd.grad(loss), budget="1MB"), "AD020", "", ("number of bytes", "'1MB'")),
    "a budget beyond 64 bits": Refused(lambda: gd.grad(loss, budget=2**80)(X), "AD020", "", ("64 bits", str(2**80))),
    "a loop that keeps few": Refused(
        lambda: gd.grad(lambda x: gd.fori_loop(0, 3, lambda i, s: s * x, x, residuals="few"))(np.float64(2)), "AD020", "", ("'few'",)
    ),
    "stop_gradient of a function": Refused(lambda: gd.stop_gradient(loss), "GR103", "", ("a function is not an array",)),
}  # fmt: skip
