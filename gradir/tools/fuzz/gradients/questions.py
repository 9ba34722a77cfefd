"""Questions about the derivatives of one program; each has one right answer, and needs no other implementation.

The derivative along a random direction of all arguments at once, weighted by random cotangents of all results, is one number; a wrong
element anywhere changes it. It is compared with central differences of fourth order, where two step sizes and both sides of the point
agree on them: elsewhere the program has a kink or a jump there, and the question is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block

from gradir.autodiff.differentiate import Differentiate
from gradir.dialects import ad
from gradir.dialects.types import element_of, shape_of, tensor
from gradir.dialects.upstream.func import FuncOp, ReturnOp
from gradir.driver.compile import compile_module
from gradir.errors import GradirError
from gradir.ir.builder import Builder, new_function
from gradir.ir.passes import PassContext
from gradir.ir.structure import public_functions
from gradir.ir.text import parse_module, verify_module
from gradir.reference import run
from gradir.reference.inputs import generate
from gradir.reference.run import input_types
from gradir.tools.fuzz.refusal import RefusedError

Array = np.ndarray[Any, Any]
Arrays = list[Array]

STEPS = (2e-3, 1e-3)
"""Of the differences: their error is about step^4 times the fifth derivative, and 1e-16 / step."""

SMOOTH = 3e-7
"""How far two estimates of one slope may differ, relative to its size and 1: else there is a kink."""

TOLERANCE = 3e-6
"""Of a derivative against the differences, relative to their size and 1."""

EXACT = 1e-9
"""Of two derivatives by the same rules in another order of additions, relative to the size of the terms and 1."""


@dataclass(frozen=True)
class Case:
    """One program at one point, with a direction for its float arguments and cotangents for its results."""

    module: ModuleOp
    function: FuncOp
    inputs: Arrays
    wrt: list[int]
    directions: Arrays
    results: Arrays
    cotangents: Arrays

    @property
    def name(self) -> str:
        return self.function.sym_name.data

    @property
    def arguments(self) -> list[Attribute]:
        return list(self.function.function_type.inputs.data)

    @property
    def outputs(self) -> list[Attribute]:
        return list(self.function.function_type.outputs.data)

    @property
    def floats(self) -> list[int]:
        """Which results move."""
        return [k for k, y in enumerate(self.results) if y.dtype == np.float64]


def case(text: str, seed: int) -> Case:
    """The program at a random point. Raises RefusedError where nothing can be differentiated."""
    module = parse_module(text)
    functions = public_functions(module)
    if not functions:
        raise RefusedError("no function")
    function = functions[0]
    inputs = [np.asarray(x) for x in generate(input_types(function), seed % 1000, 0)]
    inputs = [np.clip(x, -1.5, 1.5) if x.dtype == np.float64 else x for x in inputs]
    wrt = [k for k, x in enumerate(inputs) if x.dtype == np.float64]
    rng = np.random.default_rng(seed)
    plain = _resolved(module.clone())
    try:
        results = [np.asarray(y) for y in run(plain, function.sym_name.data, inputs)]
    except GradirError as error:
        if error.code != "RT020":
            raise
        raise RefusedError(f"the program's own assertion does not hold there: {error.message}") from error
    if not wrt or not any(y.dtype == np.float64 for y in results):
        raise RefusedError("nothing to differentiate")
    cts = [rng.standard_normal(y.shape) if y.dtype == np.float64 else np.zeros_like(y) for y in results]
    return Case(module, function, inputs, wrt, [rng.standard_normal(inputs[k].shape) for k in wrt], results, cts)


def _resolved(module: ModuleOp, **options: Any) -> ModuleOp:
    """The module after `differentiate`, which must leave it valid."""
    verify_module(module)
    Differentiate(**options).apply(module, PassContext())
    try:
        verify_module(module)
    except GradirError as error:
        raise AssertionError(f"differentiate made invalid IR: {error.message}") from error
    return module


def _requests(one: Case, kinds: Mapping[str, Callable[[Block], ad.Request]], inputs: Mapping[str, Sequence[Attribute]]) -> ModuleOp:
    """A copy of the program with public functions that make one request each."""
    module = one.module.clone()
    for name, make in kinds.items():
        block = Block(arg_types=list(inputs[name]))
        op = make(block)
        block.add_op(op)
        Builder(block).op(ReturnOp, list(op.results))
        module.body.block.add_op(new_function(name, block, [r.type for r in op.results]))
    return module


def with_derivatives(one: Case) -> ModuleOp:
    """`@reverse(arguments, cotangents) -> (results, gradients)`, `@forward(arguments, directions) -> (results, tangents)`."""

    moving = [one.arguments[k] for k in one.wrt]
    requests: dict[str, Callable[[Block], ad.Request]] = {
        "reverse": lambda block: ad.VjpOp.make(one.name, list(block.args), one.wrt, one.outputs),
        "forward": lambda block: ad.JvpOp.make(one.name, list(block.args), one.wrt, one.outputs),
    }
    return _requests(one, requests, {"reverse": [*one.arguments, *one.outputs], "forward": [*one.arguments, *moving]})


def inner(a: Sequence[Array], b: Sequence[Array]) -> tuple[float, float]:
    """sum a*b, and the sum of the sizes of its terms."""
    terms = [x * y for x, y in zip(a, b, strict=True)]
    return float(sum(np.sum(t) for t in terms)), float(sum(np.sum(np.abs(t)) for t in terms))


def slope(along: Callable[[float], float]) -> float:
    """The derivative at 0. Raises RefusedError where the function is not smooth enough to tell."""
    found: list[float] = []
    for h in STEPS:
        near, far = along(h) - along(-h), along(2 * h) - along(-2 * h)
        found.append((8 * near - far) / (12 * h))
    middle = along(0.0)
    sides = [(-25 * middle + 48 * along(s) - 36 * along(2 * s) + 16 * along(3 * s) - 3 * along(4 * s)) / (12 * s) for s in (3e-4, -3e-4)]
    estimates = np.array([*found, *sides])
    if not np.isfinite(estimates).all():
        raise RefusedError("not finite there")
    if np.ptp(estimates[:2]) > SMOOTH * max(1, abs(found[1])) or np.ptp(estimates) > 30 * SMOOTH * max(1, abs(found[1])):
        raise RefusedError("not smooth there")
    return found[1]


def moved(one: Case, t: float) -> Arrays:
    """The arguments after a step of length `t` along the direction."""
    inputs = list(one.inputs)
    for k, d in zip(one.wrt, one.directions):
        inputs[k] = inputs[k] + t * d
    return inputs


def derivatives(text: str, seed: int) -> str | None:
    """Results as without a derivative; forward equal to reverse by the dot product; both equal to the slope."""
    one = case(text, seed)
    module = _resolved(with_derivatives(one))
    count = len(one.results)
    both = run(module, "reverse", [*one.inputs, *one.cotangents])
    values, gradients = both[:count], both[count:]
    tangents = run(module, "forward", [*one.inputs, *one.directions])
    for mode, found in (("reverse", values), ("forward", tangents[:count])):  # a composite in parts may round differently
        complaint = _different(f"{mode} mode", one.results, found, EXACT)
        if complaint is not None:
            return complaint
    backward, size = inner(gradients, one.directions)
    onward, other = inner(tangents[count:], [one.cotangents[k] for k in one.floats])
    if not abs(backward - onward) <= EXACT * max(1, size, other):
        return f"dot product: reverse mode gives {backward!r}, forward mode {onward!r}"
    plain = _resolved(one.module.clone())

    def along(t: float) -> float:
        return inner([y for y in run(plain, one.name, moved(one, t)) if y.dtype == np.float64], [one.cotangents[k] for k in one.floats])[0]

    with np.errstate(all="ignore"):
        expected = slope(along)
    if not abs(backward - expected) <= TOLERANCE * max(1, abs(expected)):
        return f"slope along a direction: expected {expected!r} by central differences, found {backward!r}"
    return None


def compiled_derivatives(text: str, seed: int) -> str | None:
    """Compiled with everything optimised, both derivatives are what the evaluator gives."""
    one = case(text, seed)
    source = with_derivatives(one)
    module = _resolved(source.clone())
    code = compile_module(source, cache=False, optimize=2, threads=1 + seed % 2)
    for name, inputs in (("reverse", [*one.inputs, *one.cotangents]), ("forward", [*one.inputs, *one.directions])):
        complaint = _different(f"@{name}", run(module, name, inputs), code[name].flat(*inputs), 1e-8)
        if complaint is not None:
            return complaint
    return None


def _different(what: str, expected: Sequence[Array], found: Sequence[Array], tolerance: float) -> str | None:
    """The first result that differs by more than that, relative to 1 and the largest element."""
    for k, (a, b) in enumerate(zip(map(np.asarray, expected), map(np.asarray, found), strict=True)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{what}, result {k}: {b.dtype}{list(b.shape)} instead of {a.dtype}{list(a.shape)}"
        if a.dtype != np.float64:
            wrong = not np.array_equal(a, b)
        else:
            finite = np.isfinite(a)
            wrong = not np.array_equal(a[~finite], b[~finite], equal_nan=True)
            wrong = wrong or not np.max(np.abs(a - b)[finite], initial=0) <= tolerance * max(1, np.max(np.abs(a[finite]), initial=0))
        if wrong:
            return f"{what}, result {k}: expected {a.tolist()}, found {b.tolist()}"
    return None


def second_order(text: str, seed: int) -> str | None:
    """Forward over reverse and reverse over reverse against the slope of the gradient, in one direction."""
    one = case(text, seed)
    module = with_derivatives(one)
    count, moving = len(one.results), [one.arguments[k] for k in one.wrt]
    inputs, gradient = [*one.arguments, *one.outputs], [*one.outputs, *moving]
    requests: dict[str, Callable[[Block], ad.Request]] = {
        "twice": lambda block: ad.VjpOp.make("reverse", list(block.args), one.wrt, gradient),
        "mixed": lambda block: ad.JvpOp.make("reverse", list(block.args), one.wrt, gradient),
    }
    whole = Case(module, one.function, one.inputs, one.wrt, one.directions, one.results, one.cotangents)
    module = _resolved(_requests(whole, requests, {"twice": [*inputs, *gradient], "mixed": [*inputs, *moving]}))
    given = [*one.inputs, *one.cotangents]
    rng = np.random.default_rng(seed + 1)
    weights = [rng.standard_normal(one.inputs[k].shape) for k in one.wrt]
    still = [np.zeros_like(y) for y in one.results]
    back = run(module, "twice", [*given, *still, *weights])[count + len(one.wrt) :]
    found, size = inner(back, one.directions)
    tangents = run(module, "mixed", [*given, *one.directions])
    onward, other = inner(tangents[-len(one.wrt) :], weights)
    if not abs(found - onward) <= EXACT * max(1, size, other):
        return f"second order: reverse over reverse gives {found!r}, forward over reverse {onward!r}"

    def along(t: float) -> float:
        return inner(run(module, "reverse", [*moved(one, t), *one.cotangents])[count:], weights)[0]

    with np.errstate(all="ignore"):
        expected = slope(along)
    if not abs(found - expected) <= TOLERANCE * 10 * max(1, abs(expected)):
        return f"second order: expected {expected!r} by central differences of the gradient, found {found!r}"
    return None


def policies(text: str, seed: int) -> str | None:
    """Whatever loops keep, the derivative has the same bits."""
    one = case(text, seed)
    source, inputs = with_derivatives(one), [*one.inputs, *one.cotangents]
    expected = run(_resolved(source.clone()), "reverse", inputs)
    for policy in ("none", "sqrt"):
        found = run(_resolved(source.clone(), loop_policy=policy), "reverse", inputs)
        complaint = _different(f"loop-policy={policy}", expected, found, 0.0)
        if complaint is not None:
            return complaint
    return None


LANES = 3


def lanes(text: str, seed: int) -> str | None:
    """The gradient of many points at once is that of each point, and the gradient of the program on lanes is that of its lanes."""
    one = case(text, seed)
    rng = np.random.default_rng(seed + 2)
    over = sorted({one.wrt[0], *(k for k in range(len(one.inputs)) if rng.random() < 0.6)})
    module = with_derivatives(one)
    moving = [one.arguments[k] for k in one.wrt]
    inputs, gradient = [*one.arguments, *one.outputs], [*one.outputs, *moving]
    wide = [_lanes(kind) if k in over else kind for k, kind in enumerate(inputs)]
    requests: dict[str, Callable[[Block], ad.Request]] = {
        "many": lambda block: ad.BatchOp.make("reverse", list(block.args), over, gradient)
    }
    kinds: dict[str, Sequence[Attribute]] = {"many": wide}
    whole = Case(module, one.function, one.inputs, one.wrt, one.directions, one.results, one.cotangents)
    module = _resolved(_requests(whole, requests, kinds))
    points = [_points(rng, x) if k in over else x for k, x in enumerate(one.inputs)]
    found = run(module, "many", [*points, *one.cotangents])
    each = [run(module, "reverse", [*(x[k] if j in over else x for j, x in enumerate(points)), *one.cotangents]) for k in range(LANES)]
    expected = [np.stack([np.asarray(row[k]) for row in each]) for k in range(len(found))]
    return _different("many points at once", expected, found, EXACT)


def _lanes(kind: Attribute) -> Attribute:
    return tensor(element_of(kind), (LANES, *shape_of(kind)))


def _points(rng: np.random.Generator, x: Array) -> Array:
    """The point and others near it."""
    if x.dtype == np.float64:
        return np.stack([x, *(x + 0.5 * rng.standard_normal(x.shape) for _ in range(LANES - 1))])
    if x.dtype == np.bool_:
        return np.stack([x, ~x, x])
    return np.stack([x, x + 1, x - 1])


ALLOWED = frozenset({"AD008"})
"""Refusals that are an answer: a derivative that needs static sizes. Any other error of a program that is right is a complaint."""


def _without_refusal(question: Callable[[str, int], str | None]) -> Callable[[str, int], str | None]:
    def ask(text: str, seed: int) -> str | None:
        parse_module(text)  # a program that is wrong (while a find is reduced) is refused
        try:
            return question(text, seed)
        except GradirError as error:
            if error.code in ALLOWED:
                raise
            return f"refused: [{error.code}] {error.message} in {error.function}"

    return ask


QUESTIONS: Mapping[str, Callable[[str, int], str | None]] = {
    "derivatives": _without_refusal(derivatives),
    "compiled-derivatives": _without_refusal(compiled_derivatives),
    "second-order": _without_refusal(second_order),
    "lanes": _without_refusal(lanes),
    "policies": _without_refusal(policies),
}
