"""`differentiate{check}`: functions that say whether a derivative is one, beside each derivative that a request generated.

`@f.check_dot_N(primals, directions v, weights w)` compares <w, J v> of forward mode with <J^T w, v> of reverse mode, `@f.check_fd_N` the
derivative with the slope of `@f` along v. Both return `(a, b, tolerance, ok)`: two numbers and an f64 tolerance, of which
infinity says that the point decides nothing. `gradir.reference.check_derivatives` runs them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type, SymbolRefAttr, f64, i1
from xdsl.ir import Attribute, Block, Operation, SSAValue

from gradir.autodiff.activity import Activity
from gradir.autodiff.reverse.functions import Pair, Program
from gradir.autodiff.tensors import TensorBuilder, is_differentiable
from gradir.dialects import ad, nd
from gradir.dialects.nd import bits
from gradir.dialects.types import element_of, is_complex, is_inexact, real_of, shape_of, tensor
from gradir.dialects.upstream import func
from gradir.ir.builder import Builder, new_function
from gradir.ir.checks import CHECK, Check

NUMBER = tensor(f64, ())
VERDICT = tensor(i1, ())

Derive = Callable[[TensorBuilder, Sequence[SSAValue], Sequence[SSAValue]], Sequence[SSAValue]]
"""(builder, primals, directions or weights) -> tangents of the wanted results, or cotangents of the arguments in `wrt`."""


@dataclass(frozen=True)
class Precision:
    """What a number format allows."""

    step: float
    """The step h of the differences, near the cube root of the spacing at 1."""
    noise: float
    """What a slope may be off by because results are rounded, relative to them: a multiple of the spacing over h."""
    dot: float
    differences: float
    """What both tests grant relative to the sum of the terms."""
    limit: float
    """With a larger tolerance than this, relative to the slope, differences decide nothing."""


PRECISIONS: dict[type[Attribute], Precision] = {
    BFloat16Type: Precision(2.0**-2, 4 * 2.0**-5, 0.1, 0.1, 0.5),
    Float16Type: Precision(2.0**-3, 4 * 2.0**-7, 0.03, 0.1, 0.5),
    Float32Type: Precision(2.0**-7, 64 * 2.0**-16, 1e-3, 1e-2, 0.1),
    Float64Type: Precision(2.0**-17, 64 * 2.0**-35, 1e-10, 1e-6, 1e-3),
}
"""From the narrowest to the widest; a function that computes in a narrower type (f8) is not checked."""

NO_SLOPE = (ad.StopGradientOp, bits.ReducePrecisionOp, bits.BitcastConvertOp)
"""Ops whose derivative is not the slope, by definition: differences say nothing about what passes through them."""


@dataclass(frozen=True)
class Derivative:
    """A generated derivative of `primal`: `push` is forward mode, `pull` reverse mode, `reverse` says which of them was asked for.

    `seeded`: the weight of the only wanted result is 1 (`ad.grad`), else weights are arguments.
    """

    primal: func.FuncOp
    wrt: tuple[int, ...]
    wanted: tuple[int, ...]
    request: str
    push: Derive
    pull: Derive
    reverse: bool
    seeded: bool


def call(t: TensorBuilder, name: str, operands: Sequence[SSAValue], kinds: Sequence[Attribute]) -> Sequence[SSAValue]:
    """`func.call @name`; its results."""
    return t.builder.op(func.CallOp, operands, kinds, {"callee": SymbolRefAttr(name)}).results


def push_by(name: str, primal: func.FuncOp, wanted: Sequence[int]) -> Derive:
    """Forward mode through the function `name`: (primals, tangents of wrt) -> (results, tangents)."""
    kinds = primal.function_type.outputs.data

    def push(t: TensorBuilder, primals: Sequence[SSAValue], directions: Sequence[SSAValue]) -> Sequence[SSAValue]:
        results = call(t, name, [*primals, *directions], [*kinds, *(kinds[k] for k in wanted)])
        return results[len(kinds) :]

    return push


def pull_by_gradient(name: str, primal: func.FuncOp, wrt: Sequence[int], values: bool) -> Derive:
    """Reverse mode through a gradient function: primals -> (results if `values`, gradients)."""
    kinds = primal.function_type.outputs.data if values else ()

    def pull(t: TensorBuilder, primals: Sequence[SSAValue], weights: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return call(t, name, primals, [*kinds, *(primals[k].type for k in wrt)])[len(kinds) :]

    return pull


def pull_by_vjp(name: str, primal: func.FuncOp, wrt: Sequence[int], wanted: Sequence[int]) -> Derive:
    """Reverse mode through a vjp function: (primals, a cotangent per result) -> (results, cotangents)."""
    kinds = primal.function_type.outputs.data

    def pull(t: TensorBuilder, primals: Sequence[SSAValue], weights: Sequence[SSAValue]) -> Sequence[SSAValue]:
        given = dict(zip(wanted, weights))
        cotangents = [given[k] if k in given else t.zeros(kind) for k, kind in enumerate(kinds)]
        return call(t, name, [*primals, *cotangents], [*kinds, *(primals[k].type for k in wrt)])[len(kinds) :]

    return pull


def pull_by_pair(pair: Pair, primal: func.FuncOp, wrt: Sequence[int]) -> Derive:
    """Reverse mode through both halves of a split vjp."""
    kinds = primal.function_type.outputs.data

    def pull(t: TensorBuilder, primals: Sequence[SSAValue], weights: Sequence[SSAValue]) -> Sequence[SSAValue]:
        saved = call(t, pair.forward, primals, [*kinds, *pair.residual_types])[len(kinds) :]
        found = call(t, pair.backward, [*saved, *weights], [primals[k].type for k in sorted(wrt)])
        by_position = dict(zip(sorted(wrt), found))
        return [by_position[k] for k in wrt]

    return pull


def add_checks(program: Program, derivative: Derivative) -> list[str]:
    """Append the checks of one derivative to the module; their names: none where nothing could be said about it."""
    precision = _precision(program, derivative.primal)
    if precision is None or not derivative.wrt or not derivative.wanted:
        return []
    made = [_function(program, derivative, "dot", lambda c: _dot(c, precision))]
    if not _has_no_slope(program, derivative):
        made.append(_function(program, derivative, "fd", lambda c: _differences(c, precision)))
    return made


# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Context:
    """The body of a check: its arguments, and what is checked."""

    t: TensorBuilder
    derivative: Derivative
    primals: Sequence[SSAValue]
    directions: Sequence[SSAValue]
    weights: Sequence[SSAValue]


def _function(program: Program, derivative: Derivative, kind: str, body: Callable[[_Context], Sequence[SSAValue]]) -> str:
    primal, stem = derivative.primal, derivative.primal.sym_name.data
    inputs, outputs = primal.function_type.inputs.data, primal.function_type.outputs.data
    weighted = [] if derivative.seeded else [outputs[k] for k in derivative.wanted]
    block = Block(arg_types=[*inputs, *(inputs[k] for k in derivative.wrt), *weighted])
    primals, moved = block.args[: len(inputs)], len(inputs) + len(derivative.wrt)
    for old, new in zip(primal.body.block.args, primals):
        new.name_hint = old.name_hint
    for k, direction in zip(derivative.wrt, block.args[len(inputs) : moved]):
        direction.name_hint = f"{primals[k].name_hint or f'arg{k}'}_direction"
    for weight in block.args[moved:]:
        weight.name_hint = "weight"
    t = TensorBuilder(Builder(block, primal.location))
    weights = [t.full(1.0, outputs[k]) for k in derivative.wanted] if derivative.seeded else block.args[moved:]
    results = body(_Context(t, derivative, primals, block.args[len(inputs) : moved], weights))
    t.builder.op(func.ReturnOp, results)
    count = sum(1 for name in program.functions if name.startswith(f"{stem}.check_{kind}_"))
    name = program.fresh_name(f"{stem}.check_{kind}_{count}")
    attributes = {CHECK: Check(kind, stem, derivative.request).attribute()}
    kinds = [v.type for v in results]
    new = new_function(name, block, kinds, private=True, attributes=attributes, loc=primal.location)
    return program.insert(new, list(program.functions.values())[-1])


def _dot(c: _Context, precision: Precision) -> Sequence[SSAValue]:
    """<w, J v> = <J^T w, v>, where both are finite."""
    t = c.t
    forward, above = _pairing(t, c.weights, c.derivative.push(t, c.primals, _sorted(c.derivative, c.directions)), "forward")
    reverse, below = _pairing(t, c.derivative.pull(t, c.primals, c.weights), c.directions, "reverse")
    scale = t.add(t.full(1.0, NUMBER), t.add(above, below))
    finite = t.logical_and(_finite(t, forward), _finite(t, reverse))
    return _verdict(t, reverse, forward, t.select(finite, t.scale(scale, precision.dot), _infinity(t)))


def _differences(c: _Context, precision: Precision) -> Sequence[SSAValue]:
    """The derivative along v, weighted by w, against the slope of F(s) = <w, f(x + s v)>, which is (F(h/2) - F(-h/2)) / h.

    The tolerance is relative to the terms that were added, plus the rounding error of a difference, plus what the differences of two
    steps and the slopes on both sides differ by. Where that is large, as at a kink, the point decides nothing.
    """
    t, h = c.t, precision.step
    (far, _), (right, size), (here, _), (left, _), (back, _) = (_along(c, k * h) for k in (1.0, 0.5, 0.0, -0.5, -1.0))
    slope = t.scale(t.sub(right, left), 1 / h)
    slope.name_hint = "slope"
    wide = t.scale(t.sub(far, back), 0.5 / h)
    bend = t.scale(t.sub(t.sub(right, here), t.sub(here, left)), 2 / h)
    if c.derivative.reverse:
        derivative, terms = _pairing(t, c.derivative.pull(t, c.primals, c.weights), c.directions, "derivative")
    else:
        tangents = c.derivative.push(t, c.primals, _sorted(c.derivative, c.directions))
        derivative, terms = _pairing(t, c.weights, tangents, "derivative")
    scale = t.add(t.abs(slope), t.select(_finite(t, terms), terms, t.zeros(NUMBER)))
    error = t.add(t.scale(t.abs(t.sub(slope, wide)), 4.0), t.abs(bend))
    noise = t.add(t.scale(scale, precision.differences), t.scale(size, precision.noise))
    tolerance = t.add(error, noise)
    decided = t.compare("le", tolerance, t.scale(t.add(t.abs(slope), t.full(1.0, NUMBER)), precision.limit))  # false for NaN
    return _verdict(t, derivative, slope, t.select(decided, tolerance, _infinity(t)))


def _verdict(t: TensorBuilder, found: SSAValue, expected: SSAValue, tolerance: SSAValue) -> Sequence[SSAValue]:
    """(found, expected, tolerance, whether they agree); an infinite tolerance agrees with anything."""
    near = t.compare("le", t.abs(t.sub(found, expected)), tolerance)
    ok = t.logical_or(near, t.compare("eq", tolerance, _infinity(t)))
    tolerance.name_hint, ok.name_hint = "tolerance", "ok"
    return found, expected, tolerance, ok


def _along(c: _Context, by: float) -> tuple[SSAValue, SSAValue]:
    """F(by), the weighted results of the primal function at x + by * v, and the sum of the sizes of its terms."""
    t, primals = c.t, list(c.primals)
    for k, v in zip(c.derivative.wrt, c.directions):
        if by:
            primals[k] = t.add(primals[k], t.mul(v, t.full(by, v.type)))
    results = call(t, c.derivative.primal.sym_name.data, primals, c.derivative.primal.function_type.outputs.data)
    return _pairing(t, c.weights, [results[k] for k in c.derivative.wanted], "f")


def _pairing(t: TensorBuilder, left: Sequence[SSAValue], right: Sequence[SSAValue], name: str) -> tuple[SSAValue, SSAValue]:
    """Re(sum a * b) over all pairs in f64, a factor 0 making 0; and the sum of the absolute values of its terms."""
    totals: list[SSAValue] = []
    sizes: list[SSAValue] = []
    for a, b in zip(left, right, strict=True):
        terms = t.real(t.mul_strong(_wide(t, a), _wide(t, b)))
        dims = range(len(shape_of(terms)))
        totals.append(t.sum(terms, dims))
        sizes.append(t.sum(t.abs(terms), dims))
    total, size = functools.reduce(t.add, totals), functools.reduce(t.add, sizes)
    total.name_hint = name
    return total, size


def _wide(t: TensorBuilder, x: SSAValue) -> SSAValue:
    """The elements in f64, complex ones in complex<f64>."""
    if not is_complex(element_of(x)):
        return t.convert(x, f64)
    re, im = t.convert(t.real(x), f64), t.convert(t.imag(x), f64)
    return x if real_of(element_of(x)) == f64 else t.complex(re, im)


def _finite(t: TensorBuilder, x: SSAValue) -> SSAValue:
    return t.emit(nd.IsFiniteOp, [x], VERDICT)


def _infinity(t: TensorBuilder) -> SSAValue:
    return t.full(float("inf"), NUMBER)


def _sorted(derivative: Derivative, directions: Sequence[SSAValue]) -> list[SSAValue]:
    """Tangents in the order of the arguments."""
    by_position = dict(zip(derivative.wrt, directions))
    return [by_position[k] for k in sorted(by_position)]


# ---------------------------------------------------------------------------------------------------------------------


def _reached(program: Program, function: func.FuncOp, seen: set[str]) -> Iterator[func.FuncOp]:
    """`function` and all that it calls."""
    if function.sym_name.data in seen:
        return
    seen.add(function.sym_name.data)
    yield function
    for op in function.walk():
        names = op.functions() if isinstance(op, ad.RuledCall) else [op.callee.string_value()] if isinstance(op, func.CallOp) else []
        for name in names:
            if (callee := program.functions.get(name)) is not None:
                yield from _reached(program, callee, seen)


def _precision(program: Program, primal: func.FuncOp) -> Precision | None:
    """That of the narrowest float type in the function and its callees."""
    found: set[type[Attribute]] = set()
    for function in _reached(program, primal, set()):
        for op in function.walk():
            values: list[SSAValue] = [*op.results, *(a for region in op.regions for block in region.blocks for a in block.args)]
            found.update(type(real_of(element_of(v))) for v in values if is_differentiable(v.type) and is_inexact(element_of(v)))
    if not found <= PRECISIONS.keys():
        return None
    return next((precision for kind, precision in PRECISIONS.items() if kind in found), None)


def _has_no_slope(program: Program, derivative: Derivative) -> bool:
    """Whether an op of `NO_SLOPE` lies on a path from the arguments; in a callee, whether there is one."""
    primal = derivative.primal
    arguments = [k in derivative.wrt for k in range(len(primal.body.block.args))]
    results = [k in derivative.wanted for k in range(len(primal.function_type.outputs.data))]
    activity = Activity.of(primal, arguments, results, program.resolve)

    def cuts(function: func.FuncOp, op: Operation) -> bool:
        return isinstance(op, NO_SLOPE) and (function is not primal or any(v in activity.varied for v in op.operands))

    return any(cuts(function, op) for function in _reached(program, primal, set()) for op in function.walk())


__all__ = ["Derivative", "Derive", "add_checks", "pull_by_gradient", "pull_by_pair", "pull_by_vjp", "push_by"]
