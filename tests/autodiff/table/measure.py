"""The numbers of one program of the table: how far its derivatives are from differences, from JAX's, and from each other.

Every error is the largest difference of a tensor by the largest element of what is expected, the largest over all tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block

from gradir.autodiff.differentiate import Differentiate
from gradir.dialects import ad
from gradir.ir.builder import Builder, new_function
from gradir.ir.passes import PassContext
from gradir.ir.text import parse_module, verify_module
from gradir.reference import run
from tests.autodiff.table.cases import Case
from tests.autodiff.table.differences import directions, slope

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Derivatives:
    """What our rules and the differences say about one program, at fixed random cotangents and tangents."""

    case: Case
    inputs: list[Array]
    values: list[Array]
    cts: list[Array]
    tangents: list[Array]
    vjp: list[Array]
    jvp: list[Array]
    forward_over_reverse: list[Array]
    reverse_over_reverse: list[Array]

    def results_with_derivative(self) -> list[int]:
        """The positions of float and complex results."""
        return [k for k, ct in enumerate(self.cts) if ct.dtype.kind in "fc"]


SEEN = 1e-4
"""Differences see no slope that is smaller than this part of what moves: such a slope is measured by it."""


def largest(xs: Sequence[Array]) -> float:
    """The largest finite magnitude."""
    return max((float(np.max(np.abs(x), initial=0.0, where=np.isfinite(x))) for x in xs if x.dtype.kind in "fc"), default=0.0)


def relative(found: Sequence[Array], expected: Sequence[Array], least: float = 0.0) -> float:
    """The largest error of a tensor, by its largest element or by `least` if that is more; NaN anywhere is infinite."""
    worst = 0.0
    for a, b in zip(found, expected, strict=True):
        assert np.shape(a) == np.shape(b), f"{np.shape(a)} and {np.shape(b)}"
        scale = max(float(np.max(np.abs(b), initial=0.0, where=np.isfinite(b))), least) or 1.0
        with np.errstate(invalid="ignore"):
            apart = np.where(np.asarray(a) == np.asarray(b), 0.0, np.abs(np.asarray(a) - np.asarray(b)))
        error = float(np.max(apart, initial=0.0)) / scale
        worst = max(worst, error if np.isfinite(error) else np.inf)
    return worst


def module_of(case: Case) -> ModuleOp:
    """The program with public `@vjp`, `@jvp`, and of `@vjp` again `@forward_over_reverse` and `@reverse_over_reverse`."""
    module = parse_module(case.text)
    _request(module, "f", "vjp", ad.VjpOp, case.wrt)
    _request(module, "f", "jvp", ad.JvpOp, case.wrt)
    Differentiate().apply(module, PassContext())
    _request(module, "vjp", "forward_over_reverse", ad.JvpOp, case.wrt)
    _request(module, "vjp", "reverse_over_reverse", ad.VjpOp, case.wrt)
    Differentiate().apply(module, PassContext())
    verify_module(module)
    return module


def _request(module: ModuleOp, of: str, name: str, kind: Any, wrt: Sequence[int]) -> None:
    """A public function `name` of the arguments of `@of` and then the cotangents of all results or the tangents of `wrt`."""
    function = next(op for op in module.body.block.ops if isinstance(op, FuncOp) and op.sym_name.data == of)
    inputs, outputs = function.function_type.inputs.data, function.function_type.outputs.data
    more: Sequence[Attribute] = outputs if kind is ad.VjpOp else [inputs[k] for k in wrt]
    block = Block(arg_types=[*inputs, *more])
    op = kind.make(of, list(block.args), wrt, outputs)
    block.add_op(op)
    Builder(block).op(ReturnOp, list(op.results))
    module.body.block.add_op(new_function(name, block, [r.type for r in op.results]))


def _random(rng: np.random.Generator, like: Array) -> Array:
    if like.dtype.kind == "c":
        return (rng.standard_normal(like.shape) + 1j * rng.standard_normal(like.shape)).astype(like.dtype)
    return rng.standard_normal(like.shape).astype(like.dtype) if like.dtype.kind == "f" else np.zeros(like.shape, like.dtype)


def derivatives(case: Case, module: ModuleOp) -> Derivatives:
    """By our rules, in the reference evaluator."""
    inputs = [np.asarray(x) for x in case.inputs()]
    rng = np.random.default_rng(11)
    values = list(map(np.asarray, run(module, "f", inputs)))
    cts = [_random(rng, value) for value in values]
    tangents = [_random(rng, inputs[k]) for k in case.wrt]
    count, n = len(case.wrt), len(values)
    vjp = run(module, "vjp", [*inputs, *cts])[n:]
    pushed = run(module, "jvp", [*inputs, *tangents])
    assert relative(list(map(np.asarray, pushed[:n])), values) < 1e-13, "forward mode gives other values than the function"
    jvp = pushed[n:]
    twice = run(module, "forward_over_reverse", [*inputs, *cts, *tangents])[-count:]
    zeros = [np.zeros_like(ct) for ct in cts]
    back = run(module, "reverse_over_reverse", [*inputs, *cts, *zeros, *tangents])[-count:]
    return Derivatives(case, inputs, values, cts, tangents, *(list(map(np.asarray, xs)) for xs in (vjp, jvp, twice, back)))


def moved(inputs: Sequence[Array], at: Sequence[int], by: Sequence[Array], step: float) -> list[Array]:
    """The inputs with those `at` positions moved."""
    found = list(inputs)
    for k, direction in zip(at, by):
        found[k] = np.asarray(found[k] + step * direction)
    return found


@dataclass(frozen=True)
class Errors:
    """Against differences, and the dot-product test: `<ct, J t> = <J^T ct, t>`."""

    vjp: float
    jvp: float
    dot: float
    forward_over_reverse: float
    reverse_over_reverse: float


def against_differences(d: Derivatives, module: ModuleOp) -> Errors:
    """Every element of the inputs moves on its own for the first derivatives; for the second, all move along the tangents."""
    wrt, on = d.case.wrt, d.results_with_derivative()
    gradients: list[Array] = []
    along = [np.zeros(d.cts[k].shape, d.cts[k].dtype) for k in on]
    for k, tangent in zip(wrt, d.tangents):
        gradient = np.zeros(tangent.shape, tangent.dtype)
        for direction in directions(d.inputs[k]):
            columns = slope(lambda s, k=k, direction=direction: run(module, "f", moved(d.inputs, [k], [direction], s)))
            change = sum(float(np.sum(d.cts[r] * columns[r]).real) for r in on)
            gradient += np.conj(direction) * change  # Re(g dz) is the change
            weight = float(np.sum(np.conj(direction) * tangent).real)
            along = [a + columns[r] * weight for a, r in zip(along, on)]
        gradients.append(gradient)
    second = slope(lambda s: run(module, "vjp", [*moved(d.inputs, wrt, d.tangents, s), *d.cts])[len(d.cts) :])
    left = [float(np.sum(d.cts[k] * t).real) for k, t in zip(on, d.jvp)]
    right = [float(np.sum(g * t).real) for g, t in zip(d.vjp, d.tangents)]
    size = sum(float(np.sum(np.abs(g * t))) for g, t in zip(d.vjp, d.tangents)) or 1.0
    least, least_slope = SEEN * largest(d.values), SEEN * largest(d.vjp)
    return Errors(
        relative(d.vjp, gradients, least),
        relative(d.jvp, along, least),
        abs(sum(left) - sum(right)) / size,
        relative(d.forward_over_reverse, second, least_slope),
        relative(d.reverse_over_reverse, second, least_slope),
    )


__all__ = ["Derivatives", "Errors", "against_differences", "derivatives", "module_of", "relative"]
