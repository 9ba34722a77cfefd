"""`custom_vjp`, `custom_jvp`, `checkpoint`: functions that say how they are differentiated. A call becomes an op that names the rules."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradir.dialects import ad
from gradir.frontends.python import promotion
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.creation import zeros_like
from gradir.frontends.python.functions import Traced, trace_function
from gradir.frontends.python.jit import jit
from gradir.frontends.python.kept import forget
from gradir.frontends.python.operands import as_array
from gradir.frontends.python.pytrees import Structure, flatten, paths, unflatten
from gradir.frontends.python.requests import needs_arguments, needs_function
from gradir.frontends.python.sizes import whole
from gradir.frontends.python.trace import (
    FunctionTrace,
    ModuleTrace,
    current,
    eager_mode,
    into,
    python_location,
    ssa,
    tracing,
    user_error,
)


@dataclass(frozen=True, eq=False)
class _Open:
    """A call whose rules are being traced: a rule that calls the function again (`return f(x), residuals`) names the same rules."""

    module: ModuleTrace
    fixed: list[Any]
    types: list[Any]
    structure: Structure
    primal: Traced
    rules: list[str]

    def is_for(self, module: ModuleTrace, fixed: list[Any], leaves: Sequence[Array], structure: Structure) -> bool:
        """Whether a call with these arguments has these rules."""
        return (
            self.module is module
            and self.structure == structure
            and self.types == [x.type for x in leaves]
            and all(a is b or (type(a) is type(b) and not isinstance(a, Array | np.ndarray) and a == b) for a, b in zip(self.fixed, fixed))
        )


class _Ruled:
    """A function with rules. Calls inside a trace become an op; others run it as it is."""

    KIND = ""

    def __init__(self, function: Callable[..., Any], nondiff_argnums: Sequence[int] = ()) -> None:
        name = self.KIND.removeprefix("ad.")
        needs_function(name, function)
        functools.update_wrapper(self, function, updated=())
        self.function = function
        self.nondiff = frozenset(whole(f"{name}: an element of nondiff_argnums", n, 0) for n in nondiff_argnums)
        self._open: list[_Open] = []

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any) -> Any:
        needs_arguments(self.KIND.removeprefix("ad."), self.function, args)
        if tracing():
            return self._traced(args)
        if eager_mode():
            return self.function(*args)
        return self._compiled(*args)

    @functools.cached_property
    def _compiled(self) -> Callable[..., Any]:
        function = functools.wraps(self.function, updated=())(lambda *args: self._traced(args))
        return jit(function, static=sorted(self.nondiff))

    def _traced(self, args: tuple[Any, ...]) -> Any:
        raise NotImplementedError(self.KIND)  # abstract: each kind has its op

    def _split(self, args: tuple[Any, ...]) -> tuple[list[Any], list[Array], Structure]:
        """Static arguments, the leaves of the others, their structure."""
        fixed = [a for k, a in enumerate(args) if k in self.nondiff]
        flat, structure = flatten(tuple(a for k, a in enumerate(args) if k not in self.nondiff))
        return fixed, [as_array(x) for x in flat], structure

    def _whole(self, args: tuple[Any, ...]) -> Callable[..., Any]:
        """The function of the arguments that are not static."""

        def whole(*dynamic: Any) -> Any:
            rest = iter(dynamic)
            return self.function(*(a if k in self.nondiff else next(rest) for k, a in enumerate(args)))

        return functools.wraps(self.function, updated=())(whole)

    def _again(self, op: Any, args: tuple[Any, ...], module: ModuleTrace) -> tuple[Any] | None:
        """The results (in a tuple) of a call from inside of its own rule."""
        fixed, leaves, structure = self._split(args)
        for known in self._open:
            if known.is_for(module, fixed, leaves, structure):
                return (_emit(op, [known.primal.name, *known.rules], known.primal, leaves, self._whole(args), structure),)
        return None

    @contextmanager
    def _tracing_rules(self, known: _Open) -> Generator[None]:
        self._open.append(known)
        try:
            yield
        finally:
            self._open.remove(known)

    def _required(self) -> int | None:
        """How many arguments the function must be given; None where any number is right."""
        try:
            parameters = inspect.signature(self.function).parameters.values()
        except (TypeError, ValueError):
            return None
        if any(p.kind is p.VAR_POSITIONAL or p.default is not p.empty for p in parameters):
            return None
        return len(parameters)

    def _takes(self, what: str, rule: Any, count: int | None) -> None:
        """Refuse a rule that is no function, or that cannot be called with `count` arguments."""
        if not callable(rule):
            raise _misfit(self.KIND, f"{what} is not a function", "a function", repr(rule)[:80])
        try:
            signature = inspect.signature(rule)
        except (TypeError, ValueError):
            return
        try:
            signature.bind(*[None] * (count or 0))
        except TypeError:
            if count is not None:
                expected = f"{count} arguments" if count != 1 else "1 argument"
                raise _misfit(self.KIND, f"{what} does not take them", expected, f"{getattr(rule, '__name__', 'f')}{signature}") from None

    def _rule_of(self, rule: Callable[..., Any] | None, method: str) -> Callable[..., Any]:
        if rule is None:
            name = getattr(self.function, "__name__", "f")
            raise user_error(
                f"{name} has no rule yet",
                code="AD012",
                part="autodiff",
                op=self.KIND,
                expected=f"{name}.{method}(...) before the first call",
                found="none",
            )
        return rule


class CustomVjp(_Ruled):
    """A function with a reverse rule: made by `custom_vjp`, complete once `defvjp` was called."""

    KIND = "ad.custom_vjp"

    def __init__(self, function: Callable[..., Any], nondiff_argnums: Sequence[int] = ()) -> None:
        super().__init__(function, nondiff_argnums)
        self._forward: Callable[..., Any] | None = None
        self._backward: Callable[..., Any] | None = None

    def defvjp(self, forward: Callable[..., Any], backward: Callable[..., Any]) -> None:
        """`forward(*args) -> (results, residuals)`; `backward(*static args, residuals, cotangents) -> one cotangent per other argument`.

        Cotangents have the structure of what they belong to; None stands for zeros, and for arguments without derivative.
        """
        self._takes("the forward function", forward, self._required())
        self._takes("the backward function", backward, len(self.nondiff) + 2)
        self._forward, self._backward = forward, backward
        forget(self)

    def _traced(self, args: tuple[Any, ...]) -> Any:
        forward, backward = self._rule_of(self._forward, "defvjp"), self._rule_of(self._backward, "defvjp")
        fixed, leaves, structure = self._split(args)
        trace = current()[0]
        if (again := self._again(ad.CustomVjpOp, args, trace.module)) is not None:
            return again[0]
        primal = _function(trace, self._whole(args), leaves, structure, self.KIND)
        rules = [trace.module.fresh(getattr(f, "__name__", "f")) for f in (forward, backward)]
        shapes: list[Structure] = []

        def run(*dynamic: Any) -> Any:
            rest = iter(dynamic)
            pair = forward(*(a if k in self.nondiff else next(rest) for k, a in enumerate(args)))
            if not (isinstance(pair, tuple) and len(pair) == 2):
                raise _misfit(self.KIND, "the forward function returns a pair (results, residuals)", "a pair", type(pair).__name__)
            results, residuals = flatten(pair[0])[0], flatten(pair[1])
            shapes.append(residuals[1])
            return [*results, *residuals[0]]

        known = _Open(trace.module, fixed, [x.type for x in leaves], structure, primal, rules)
        with self._tracing_rules(known):
            ran = _function(trace, functools.wraps(forward, updated=())(run), leaves, structure, self.KIND, rules[0])
        count = len(primal.outputs)
        _same_types(self.KIND, "result of the forward function", primal.outputs, ran.outputs[:count])
        residuals, moving = ran.outputs[count:], [x for x in primal.outputs if promotion.is_inexact(x.dtype)]

        def back(saved: Sequence[Any], given: Sequence[Any]) -> Any:
            rest = iter(given)
            cotangents = [next(rest) if promotion.is_inexact(x.dtype) else zeros_like(x) for x in primal.outputs]
            found = backward(*fixed, unflatten(shapes[0], list(saved)), unflatten(primal.structure, cotangents))
            return _cotangents(self.KIND, found, leaves, structure)

        both = [*residuals, *moving]
        pairing = flatten(([0] * len(residuals), [0] * len(moving)))[1]
        with self._tracing_rules(known):
            _function(trace, functools.wraps(backward, updated=())(back), both, pairing, self.KIND, rules[1])
        return _emit(ad.CustomVjpOp, [primal.name, *rules], primal, leaves, self._whole(args), structure)


class CustomJvp(_Ruled):
    """A function with a forward rule, which reverse mode transposes: made by `custom_jvp`, complete once `defjvp` was called."""

    KIND = "ad.custom_jvp"

    def __init__(self, function: Callable[..., Any], nondiff_argnums: Sequence[int] = ()) -> None:
        super().__init__(function, nondiff_argnums)
        self._tangents: Callable[..., Any] | None = None

    def defjvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """`rule(*static args, primals, tangents) -> (results, their tangents)`, linear in the tangents. Usable as a decorator."""
        self._takes("the rule", rule, len(self.nondiff) + 2)
        self._tangents = rule
        forget(self)
        return rule

    def _traced(self, args: tuple[Any, ...]) -> Any:
        rule = self._rule_of(self._tangents, "defjvp")
        fixed, leaves, structure = self._split(args)
        trace = current()[0]
        if (again := self._again(ad.CustomJvpOp, args, trace.module)) is not None:
            return again[0]
        primal = _function(trace, self._whole(args), leaves, structure, self.KIND)
        rules = [trace.module.fresh(getattr(rule, "__name__", "f"))]
        directions = [x for x in leaves if promotion.is_inexact(x.dtype)]

        def run(primals: Any, given: Sequence[Any]) -> Any:
            rest = iter(given)
            tangents = [next(rest) if promotion.is_inexact(x.dtype) else zeros_like(x) for x in leaves]
            pair = rule(*fixed, primals, unflatten(structure, tangents))
            if not (isinstance(pair, tuple) and len(pair) == 2):
                raise _misfit(self.KIND, "the rule returns a pair (results, tangents)", "a pair", type(pair).__name__)
            results, moved = flatten(pair[0])[0], [as_array(t) for t in flatten(pair[1])[0]]
            _same_types(self.KIND, "result of the rule", primal.outputs, [as_array(x) for x in results])
            _same_types(self.KIND, "tangent of the rule", primal.outputs, moved)
            return [*results, *(t for t, x in zip(moved, primal.outputs) if promotion.is_inexact(x.dtype))]

        pairing = flatten((unflatten(structure, [0] * len(leaves)), [0] * len(directions)))[1]
        with self._tracing_rules(_Open(trace.module, fixed, [x.type for x in leaves], structure, primal, rules)):
            _function(trace, functools.wraps(rule, updated=())(run), [*leaves, *directions], pairing, self.KIND, rules[0])
        return _emit(ad.CustomJvpOp, [primal.name, *rules], primal, leaves, self._whole(args), structure)


class _Checkpoint(_Ruled):
    KIND = "ad.checkpoint"

    def _traced(self, args: tuple[Any, ...]) -> Any:
        _, leaves, structure = self._split(args)
        trace = current()[0]
        if trace.recording:  # what eager mode records is what it computed: there is nothing to save
            return self.function(*args)
        primal = trace_function(trace.module, self._whole(args), leaves, structure, parent=trace)
        return _emit(ad.CheckpointOp, [primal.name], primal, [*leaves, *primal.captured], self._whole(args), structure)


def custom_vjp(function: Callable[..., Any] | None = None, *, nondiff_argnums: Sequence[int] = ()) -> Any:
    """A function whose reverse mode is given by `f.defvjp(forward, backward)`; forward mode transposes it. Usable as `@custom_vjp(...)`.

    `nondiff_argnums`: positions of static arguments (hashable values, no arrays), handed to `backward` first.
    """
    if function is None:
        return functools.partial(CustomVjp, nondiff_argnums=nondiff_argnums)
    return CustomVjp(function, nondiff_argnums)


def custom_jvp(function: Callable[..., Any] | None = None, *, nondiff_argnums: Sequence[int] = ()) -> Any:
    """A function whose forward mode is given by `@f.defjvp`; reverse mode transposes it. Usable as `@custom_jvp(...)`.

    `nondiff_argnums`: positions of static arguments (hashable values, no arrays), handed to the rule first.
    """
    if function is None:
        return functools.partial(CustomJvp, nondiff_argnums=nondiff_argnums)
    return CustomJvp(function, nondiff_argnums)


def checkpoint(function: Callable[..., Any]) -> Any:
    """The function, of which reverse mode saves the arguments alone and computes the rest again: less memory for more time."""
    return _Checkpoint(function)


def _function(
    trace: FunctionTrace,
    function: Callable[..., Any],
    leaves: Sequence[Array],
    structure: Structure,
    kind: str,
    symbol: str | None = None,
) -> Traced:
    """The rule as a function of the module. It may not capture arrays: their derivative would be lost without a word."""
    types = [Array(x.type) for x in leaves]
    traced = trace_function(trace.module, function, types, structure, parent=trace, symbol=symbol)
    if traced.captured:
        raise user_error(
            f"{getattr(function, '__name__', 'f')} captures an array, whose derivative its rule could not give",
            code="AD012",
            part="autodiff",
            op=kind,
            expected="arrays as arguments",
            found=f"captured: {', '.join(str(x.type) for x in traced.captured)}",
            hint="hand it over as an argument, and return a cotangent for it (None for zeros)",
        )
    return traced


def _emit(
    kind: Any, functions: list[str], primal: Traced, operands: Sequence[Array], function: Callable[..., Any], structure: Structure
) -> Any:
    outer, builder = current()
    builder.loc = python_location()
    types = [x.type for x in primal.outputs]
    op = kind.make(functions, [ssa(x) for x in operands], types)
    op.location = builder.loc
    builder.block.add_op(op)
    results = [Array(t, v, outer) for t, v in zip(types, op.results)]
    if outer.recording:
        with into(None, None):
            values = flatten(function(*unflatten(structure, [Array(x.type, concrete=x.concrete) for x in operands])))[0]
        for result, value in zip(results, values):
            result.concrete = as_array(value).concrete
    return unflatten(primal.structure, results)


def _cotangents(kind: str, found: Any, leaves: Sequence[Array], structure: Structure) -> list[Array]:
    """The cotangents of the moving leaves; None for an argument means zeros."""
    count = len(structure.children)
    if not isinstance(found, tuple) or len(found) != count:
        what = f"{len(found)} of them" if isinstance(found, tuple) else type(found).__name__
        raise _misfit(kind, "the backward function returns a tuple with one cotangent per argument", f"{count} cotangents", what)
    wanted: list[Array] = []
    at = 0
    for k, (ct, child) in enumerate(zip(found, structure.children)):
        inside = leaves[at : at + child.leaves]
        at += child.leaves
        moving = [x for x in inside if promotion.is_inexact(x.dtype)]
        if ct is None:
            wanted += [zeros_like(x) for x in moving]
            continue
        flat, shape = flatten(ct)
        if shape != child:
            raise _misfit(kind, f"cotangent {k} has another structure than argument {k}", str(child), str(shape))
        for path, x, c in zip(paths(child), inside, flat):
            if not promotion.is_inexact(x.dtype):
                continue
            c = as_array(c, x.dtype) if not isinstance(c, Array | np.ndarray) else as_array(c)
            if (c.shape, c.dtype) != (x.shape, x.dtype):
                raise _misfit(kind, f"cotangent {k}{path} is not of the argument's shape and type", str(x.type), str(c.type))
            wanted.append(c)
    return wanted


def _same_types(kind: str, what: str, expected: Sequence[Array], found: Sequence[Array]) -> None:
    if len(expected) != len(found):
        raise _misfit(kind, f"another number of leaves: {what}", str(len(expected)), str(len(found)))
    for k, (want, have) in enumerate(zip(expected, found)):
        if want.type != have.type:
            raise _misfit(kind, f"{what} {k} is not of the function's type", str(want.type), str(have.type))


def _misfit(kind: str, message: str, expected: str, found: str) -> Exception:
    return user_error(f"{kind}: {message}", code="AD012", part="autodiff", op=kind, expected=expected, found=found)
