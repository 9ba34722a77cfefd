"""`Jitted`: a function that is traced and compiled for each kind of arguments it meets, and called inside of other traces."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, ModuleOp, StringAttr, i64

from gradir.dialects.donation import DONATED
from gradir.dialects.size_limits import LIMITS
from gradir.dialects.types import element_type, tensor
from gradir.driver.check_nan import compile_checked
from gradir.driver.compile import compile_module
from gradir.driver.frozen import split_frozen
from gradir.driver.lower import collector_paused
from gradir.driver.report import CompileReport
from gradir.errors import GradirError
from gradir.frontends.python import promotion
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.compiled import Compiled, Options, tune_program, write_results
from gradir.frontends.python.dims import learn, limits_as_attribute
from gradir.frontends.python.dynamic import Shapes, Spec, described, named_arguments
from gradir.frontends.python.eager import to_numpy
from gradir.frontends.python.frozen import Preparation
from gradir.frontends.python.functions import argument_names, call, trace_function
from gradir.frontends.python.operands import as_array
from gradir.frontends.python.places import entry_of
from gradir.frontends.python.pytrees import Structure, flatten, paths, unflatten
from gradir.frontends.python.residuals import residual_choice
from gradir.frontends.python.trace import MODES, ModuleTrace, current, eager_mode, tracing, user_error
from gradir.ir.structure import function_named
from gradir.runtime.buffer import Buffer
from gradir.runtime.cuda.foreign import seen_elsewhere
from gradir.runtime.dispatch import DirectCall, Dispatch
from gradir.runtime.dlpack import from_dlpack
from gradir.runtime.process_lock import ProcessLock

TUNE_SECONDS = 30.0
"""How long `tune=True` may search."""


class Jitted(DirectCall):
    """A function that compiles itself for each kind of arguments it meets. Made by `jit`.

    A call of a kind that was met before goes from the native function in `__call__` straight into compiled code. With `out=` (an array,
    or a container of arrays like the result) the results are written to these arrays; a function that has an argument `out` keeps it.
    """

    def __init__(self, function: Callable[..., Any], options: Options, static: frozenset[int | str], dynamic: Shapes | None = None) -> None:
        functools.update_wrapper(self, function, updated=())
        self.function, self.options, self.static = function, options, _both_ways(function, static, "static")
        self._donated = _both_ways(function, options.donate, "donate")
        self._frozen = _both_ways(function, options.frozen, "frozen")
        if both := self._frozen & self._donated:
            raise _frozen_and_donated(function, both)
        self.dynamic = named_arguments(function, dynamic or {})
        self._programs: dict[Any, Compiled] = {}
        self._takes_out = _has_own_out(function)
        self._dispatch: Dispatch | None = None
        self._compiling = ProcessLock()
        self.__call__ = self._any_call

    def __repr__(self) -> str:
        return f"<gradir.jit {getattr(self.function, '__name__', 'f')}: {len(self._programs)} programs>"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __reduce__(self) -> str:
        """By name, as Python functions: other processes import it."""
        return getattr(self, "__qualname__", type(self).__name__)

    def _any_call(self, *args: Any, **kwargs: Any) -> Any:
        """A call that native code does not know: in a trace, of a new kind, with arguments to convert or to explain."""
        out = None if self._takes_out else kwargs.pop("out", None)
        if tracing():
            if out is not None:
                raise _out_in_trace(self.function)
            return self._nested(args, kwargs)
        if eager_mode():
            result = self._eagerly(args, kwargs)
            return result if out is None else write_results(result, out, getattr(self.function, "__name__", "f"))
        dynamic, fixed = self._split(args, kwargs)
        leaves, structure = flatten(dynamic)
        if self.dynamic:
            dynamic = self._described(dynamic, len(args))
        kinds = flatten(dynamic)[0] if self.dynamic else leaves
        key = (structure, _static_key(fixed), *[_signature(x) for x in kinds])
        program = self._programs.get(key)
        if program is None:
            with self._compiling:  # several threads may meet a kind for the first time: one compiles, the others wait
                program = self._programs.get(key)
                if program is None:
                    program = self._programs[key] = self._compile(dynamic, fixed, args)
        result = program.result(leaves, out)
        self._remember(program, args, kwargs)
        return result

    def _remember(self, program: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Let native code recognise calls like this one."""
        entry = (
            None
            if program.watch is not None or program.preparation is not None
            else entry_of(program.function, program.outputs, args, kwargs, self.static)
        )
        if entry is None:
            return
        if self._dispatch is None:
            self._dispatch = Dispatch(self._any_call, out=None if self._takes_out else "out", modes=MODES.word)
        self._dispatch.add(entry)
        if self.__call__ == self._any_call:
            self.__call__ = self._dispatch.builtin()

    @property
    def programs(self) -> tuple[Compiled, ...]:
        """What was compiled so far."""
        return tuple(self._programs.values())

    def lower(self, *args: Any, **kwargs: Any) -> ModuleOp:
        """The traced level-1 module for these arguments (arrays or `Spec`s), not compiled."""
        dynamic, fixed = self._split(args, kwargs)
        return self._trace(self._described(dynamic, len(args)), fixed, args)[0]

    def compile(self, *args: Any, keep_ir: bool = False, **kwargs: Any) -> Compiled:
        """The program for these arguments (arrays or `Spec`s); `keep_ir` keeps the text of each level in `report.ir`."""
        dynamic, fixed = self._split(args, kwargs)
        return self._compile(self._described(dynamic, len(args)), fixed, args, keep_ir=keep_ir)

    # ---------------------------------------------------------------------------------------------------------------

    def _split(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[tuple[tuple[Any, ...], dict[str, Any]], tuple[Any, ...]]:
        """Dynamic arguments, and the static ones as a hashable key."""
        if not self.static:
            return (args, dict(kwargs)), ()
        fixed = tuple((k, args[k]) for k in range(len(args)) if k in self.static) + tuple(
            (k, v) for k, v in sorted(kwargs.items()) if k in self.static
        )
        dynamic = tuple(a for k, a in enumerate(args) if k not in self.static), {k: v for k, v in kwargs.items() if k not in self.static}
        return dynamic, fixed

    def _described(self, arguments: Any, count: int) -> Any:
        """The arguments that are traced, with a `Spec` where `dynamic` names a shape."""
        return described(arguments, [k for k in range(count) if k not in self.static], self.dynamic) if self.dynamic else arguments

    def _bound(self, fixed: tuple[Any, ...], count: int) -> Callable[..., Any]:
        """The function of the dynamic arguments alone, taken as (args, kwargs)."""
        function, values = self.function, dict(fixed)

        def bound(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            rest = iter(args)
            full = [values[k] if k in values else next(rest) for k in range(count)]
            return function(*full, **kwargs, **{k: v for k, v in values.items() if isinstance(k, str)})

        bound.__name__ = getattr(function, "__name__", "f")
        bound.__wrapped__ = function  # pyright: ignore[reportFunctionMemberAccess]  (where it was defined, for locations)
        return bound

    def _trace(self, dynamic: Any, fixed: tuple[Any, ...], args: tuple[Any, ...]) -> tuple[ModuleOp, str, Structure, Structure]:
        leaves, structure = flatten(dynamic)
        trace = ModuleTrace()
        positional, named = structure.children
        names = [*argument_names(self.function, positional), *(re.sub(r"\W+", "_", p).strip("_") for p in paths(named))]
        for leaf in leaves:
            for size in leaf.shape if isinstance(leaf, Spec) else ():
                learn(trace.sizes, size)
        traced = trace_function(
            trace, self._bound(fixed, len(args)), [placeholder(x) for x in leaves], structure, private=False, names=names
        )
        if trace.sizes:
            function_named(trace.module, traced.name).attributes[LIMITS] = limits_as_attribute(trace.sizes)
        if self.options.fastmath != "none":
            function_named(trace.module, traced.name).attributes["gradir.fastmath"] = StringAttr(self.options.fastmath)
        if self._donated and (given := self._flat_positions(structure, len(args), self._donated)):
            function_named(trace.module, traced.name).attributes[DONATED] = DenseArrayBase.from_list(i64, given)
        trace.module.attributes.update(residual_choice(self.options.residuals, self.options.budget))
        return trace.module, traced.name, structure, traced.structure

    def _flat_positions(self, structure: Structure, count: int, listed: frozenset[int | str]) -> list[int]:
        """Positions, among the flat arguments, of those that `donate` or `frozen` lists."""
        positional, named = structure.children
        positions = [k for k in range(count) if k not in self.static]
        words = [*zip(positions, positional.children), *zip(named.data, named.children)]
        found: list[int] = []
        at = 0
        for word, child in words:
            found += range(at, at + child.leaves) if word in listed else ()
            at += child.leaves
        return found

    def _compile(self, dynamic: Any, fixed: tuple[Any, ...], args: tuple[Any, ...], *, keep_ir: bool = False) -> Compiled:
        with collector_paused():  # as a decorator it would be the frame that errors take for the caller's
            return self._traced_and_compiled(dynamic, fixed, args, keep_ir)

    def _traced_and_compiled(self, dynamic: Any, fixed: tuple[Any, ...], args: tuple[Any, ...], keep_ir: bool) -> Compiled:
        module, name, inputs, outputs = self._trace(dynamic, fixed, args)
        options = self.options
        report = CompileReport(keep_ir=keep_ir)
        if options.check_nan:
            trees = {name: (str(inputs), str(outputs))}
            checked, watch = compile_checked(module, target=options.target, threads=options.threads or None, trees=trees)
            return Compiled(name, module, checked, report, inputs, outputs, watch, options)
        frozen = self._flat_positions(inputs, len(args), self._frozen) if self._frozen else []
        preparation = self._prepare(module, name, frozen, report) if frozen else None
        if options.tune:
            leaves = flatten(dynamic)[0]
            known = preparation is None and not any(isinstance(leaf, Spec) for leaf in leaves)
            tune_program(module, name, leaves if known else None, options, TUNE_SECONDS if options.tune is True else options.tune)
        compiled = compile_module(
            module,
            target=options.target,
            threads=options.threads or None,
            optimize=options.optimize,
            cache=options.cache,
            trees={name: (str(inputs), str(outputs))},
            report=report,
        )
        return Compiled(name, module, compiled, report, inputs, outputs, options=options, preparation=preparation)

    def _prepare(self, module: ModuleOp, name: str, frozen: list[int], report: CompileReport) -> Preparation:
        """Take what follows from frozen arguments alone out of the module, as a program of its own."""
        options = self.options
        split = split_frozen(module, name, frozen, options.target, report)
        function = None
        if split.prepare is not None:
            prepared = compile_module(split.prepare, target=options.target, threads=options.threads or None, cache=options.cache)
            function = prepared[name]
        return Preparation(name, function, tuple(frozen), split.kept)

    def _nested(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Inside a trace: one private function per kind of arguments, called as often as needed."""
        trace = current()[0]
        dynamic, fixed = self._split(args, kwargs)
        flat, structure = flatten(dynamic)
        leaves = [as_array(x) for x in flat]
        if trace.recording:
            return self.function(*args, **kwargs)
        key = (id(self), structure, _static_key(fixed), *(x.type for x in leaves))
        traced = trace.module.calls.get(key)
        if traced is None:
            traced = trace_function(trace.module, self._bound(fixed, len(args)), leaves, structure, parent=trace)
            if not traced.captured:
                trace.module.calls[key] = traced
        return call(traced, leaves)

    def _eagerly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        dynamic, fixed = self._split(args, kwargs)
        leaves, structure = flatten(dynamic)
        inside = any(isinstance(x, Array) for x in leaves)
        positional, named = unflatten(structure, [as_array(x) for x in leaves])
        result = self._bound(fixed, len(args))(positional, named)
        return result if inside else to_numpy(result)


def _both_ways(function: Callable[..., Any], static: frozenset[int | str], option: str) -> frozenset[int | str]:
    """Names and positions of the arguments that an option lists: a named one may be passed by position, and the other way round."""
    try:
        parameters = list(inspect.signature(function).parameters.values()) if static else []
    except (TypeError, ValueError):  # a callable without a signature
        return static
    open_ended = any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)
    positions = {p.name: k for k, p in enumerate(parameters) if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)}
    at = {p: name for name, k in positions.items() for p in (k, k - len(positions))}
    names = [p.name for p in parameters]
    both: set[int | str] = set()
    for word in static:
        name = word if isinstance(word, str) else at.get(word, "")
        if name not in names and not open_ended:
            raise user_error(
                f"{option} names an argument that {getattr(function, '__name__', 'f')} lacks",
                code="GR104",
                expected=f"one of {', '.join(names)}",
                found=str(word),
            )
        both |= {name, positions[name]} if name in positions and (isinstance(word, str) or word < len(positions)) else {word}
    return frozenset(both)


def _frozen_and_donated(function: Callable[..., Any], both: frozenset[int | str]) -> GradirError:
    name = getattr(function, "__name__", "f")
    return user_error(
        f"{name}: an argument is both frozen and donated",
        code="GR133",
        expected="frozen= and donate= list different arguments",
        found=", ".join(sorted(str(word) for word in both)),
        hint="a frozen argument never changes, a donated one is overwritten: take it out of one of them",
    )


def _has_own_out(function: Callable[..., Any]) -> bool:
    """Whether `out` is one of the function's own arguments."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # a callable without a signature
        return False
    return "out" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _out_in_trace(function: Callable[..., Any]) -> GradirError:
    name = getattr(function, "__name__", "f")
    return user_error(
        f"{name}: out= inside of a function that is traced",
        code="GR132",
        expected="a call from outside of traced functions",
        found="out= in a trace",
        hint="leave it away: compiled code decides where results lie",
    )


def _static_key(fixed: tuple[Any, ...]) -> tuple[Any, ...]:
    """The static arguments as a key that tells 1, 1.0 and True apart; GradirError GR103 for one without a hash."""
    for name, value in fixed:
        try:
            hash(value)
        except TypeError:
            raise user_error(
                f"static argument {name} has no hash", code="GR103", expected="a value that can be a key", found=repr(value)[:80]
            ) from None
    return tuple((name, type(value), repr(value) if isinstance(value, float) else value) for name, value in fixed)


def _signature(x: Any) -> Any:
    """What of an argument selects the program. A number counts as the array it becomes, so a counter that starts at 0 needs one program."""
    if isinstance(x, np.ndarray | np.generic):
        return x.shape, x.dtype
    if isinstance(x, Buffer):
        return x.shape, x.numpy().dtype
    if isinstance(x, bool | int | float | complex):
        return (), promotion.weak_dtype(x)
    if (there := seen_elsewhere(x)) is not None:
        return there
    if hasattr(x, "__dlpack__") and not isinstance(x, Array):
        array = from_dlpack(x)
        return array.shape, array.dtype
    return placeholder(x).type


def placeholder(x: Any) -> Array:
    """An array of the type of `x`, without its value."""
    if (there := seen_elsewhere(x)) is not None:
        return Array(tensor(element_type(there[1]), there[0]))
    if isinstance(x, Buffer):
        return placeholder(x.numpy())
    if isinstance(x, Spec):
        return Array(tensor(element_type(x.dtype), x.shape))
    if isinstance(x, np.ndarray):
        try:
            return Array(tensor(element_type(x.dtype), x.shape))
        except KeyError:
            return as_array(x)
    if isinstance(x, bool | int | float) and not isinstance(x, np.generic):
        return Array(tensor(element_type(promotion.weak_dtype(x)), ()))
    if hasattr(x, "__dlpack__") and not isinstance(x, Array):
        return placeholder(from_dlpack(x))
    return as_array(x)
