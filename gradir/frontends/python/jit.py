"""`jit` and `compile`: a Python function as compiled code, one program per structure, shapes and types of its arguments."""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from gradir.dialects.size_limits import LIMITS
from gradir.dialects.types import element_type, tensor
from gradir.driver.check_nan import Watch, compile_checked
from gradir.driver.compile import compile_module, memory_report
from gradir.driver.memory import MemoryReport
from gradir.driver.report import CompileReport
from gradir.driver.residuals import ResidualReport, residual_report
from gradir.errors import GradirError
from gradir.frontends.python import promotion
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.dims import learn, limits_as_attribute
from gradir.frontends.python.dynamic import Shapes, Spec, described, named_arguments
from gradir.frontends.python.eager import to_numpy
from gradir.frontends.python.functions import argument_names, call, trace_function
from gradir.frontends.python.operands import as_array
from gradir.frontends.python.packing import Pack, Unpack, packer, unpacker
from gradir.frontends.python.program import EVALUATED, compile_program
from gradir.frontends.python.pytrees import Structure, flatten, paths, unflatten
from gradir.frontends.python.residuals import residual_choice
from gradir.frontends.python.trace import ModuleTrace, current, eager_mode, tracing, user_error
from gradir.ir.text import print_module
from gradir.runtime.module import Module


@dataclass(frozen=True)
class Options:
    """How to compile: `jit` explains each."""

    target: str = "host"
    threads: int = 0
    cache: bool | str | os.PathLike[str] = True
    optimize: int = 2
    fastmath: str = "none"
    check_nan: bool = False
    residuals: str | None = None
    budget: int | None = None


@dataclass
class Compiled:
    """One program: call it with arguments of the structure, shapes and types that it was compiled for."""

    name: str
    level1: ModuleOp = field(repr=False)
    module: Module
    report: CompileReport = field(repr=False)
    inputs: Structure
    outputs: Structure
    watch: Watch | None = field(default=None, repr=False)
    options: Options = field(default_factory=Options, repr=False)

    def run(self, *leaves: Any) -> tuple[Any, ...]:
        """Flat arguments to flat results."""
        return self.flat(*leaves)

    @property
    def flat(self) -> Callable[..., tuple[Any, ...]]:
        """The compiled function on flat arguments; with `check_nan` it raises GradirError RT040."""
        flat = self.module[self.name].flat
        return flat if self.watch is None else self.watch.watched(flat, f"@{self.name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, structure = flatten((args, kwargs))
        if structure != self.inputs:
            raise GradirError(
                f"{self.name}: the arguments have another structure than those it was compiled for",
                part="runtime",
                code="GR107",
                function=f"@{self.name}",
                expected=str(self.inputs),
                found=str(structure),
            )
        return self.pack(self.run(*leaves))

    @functools.cached_property
    def pack(self) -> Pack:
        """Flat results to the function's result."""
        return packer(self.outputs)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the artefact that `gradir.runtime.load` reads; its function takes and returns flat arrays."""
        self.module.save(path)

    def ir(self) -> str:
        """The traced program at level 1."""
        return print_module(self.level1, debuginfo=True)

    def residual_report(self) -> ResidualReport:
        """What each derivative in the program keeps for its backward part: values, bytes, where and why. `print` shows a table."""
        return residual_report(self.level1)

    def memory_report(self) -> MemoryReport:
        """Where every buffer of the program lies in the arena, for how long, and what made it. `print` shows a table with a timeline."""
        options = self.options
        return memory_report(self.level1, target=options.target, threads=options.threads or None, optimize=options.optimize)


class Jitted:
    """A function that compiles itself for each kind of arguments it meets. Made by `jit`."""

    def __init__(self, function: Callable[..., Any], options: Options, static: frozenset[int | str], dynamic: Shapes | None = None) -> None:
        functools.update_wrapper(self, function, updated=())
        self.function, self.options, self.static = function, options, _both_ways(function, static)
        self.dynamic = named_arguments(function, dynamic or {})
        self._programs: dict[Any, Compiled] = {}
        self._recent: tuple[Unpack, Callable[..., Any], Pack] | None = None

    def __repr__(self) -> str:
        return f"<gradir.jit {getattr(self.function, '__name__', 'f')}: {len(self._programs)} programs>"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if tracing():
            return self._nested(args, kwargs)
        if eager_mode():
            return self._eagerly(args, kwargs)
        if self._recent is not None and not self.static:
            unpack, run, pack = self._recent
            taken = unpack((args, kwargs))
            if taken is not None:
                return pack(run(*taken))
        return self._dispatch(args, kwargs)

    def _dispatch(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Find or compile the program for these arguments, and remember how to recognise the next ones like them."""
        dynamic, fixed = self._split(args, kwargs)
        leaves, structure = flatten(dynamic)
        if self.dynamic:
            dynamic = self._described(dynamic, len(args))
        kinds = flatten(dynamic)[0] if self.dynamic else leaves
        key = (structure, _static_key(fixed), *[_signature(x) for x in kinds])
        program = self._programs.get(key)
        if program is None:
            program = self._programs[key] = self._compile(dynamic, fixed, args)
        results = program.run(*leaves)
        unpack = unpacker(structure, kinds)
        self._recent = (unpack, program.flat, program.pack) if unpack is not None else None
        return program.pack(results)

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
            trace, self._bound(fixed, len(args)), [_placeholder(x) for x in leaves], structure, private=False, names=names
        )
        if trace.sizes:
            _function(trace.module, traced.name).attributes[LIMITS] = limits_as_attribute(trace.sizes)
        if self.options.fastmath != "none":
            _function(trace.module, traced.name).attributes["gradir.fastmath"] = StringAttr(self.options.fastmath)
        trace.module.attributes.update(residual_choice(self.options.residuals, self.options.budget))
        return trace.module, traced.name, structure, traced.structure

    def _compile(self, dynamic: Any, fixed: tuple[Any, ...], args: tuple[Any, ...], *, keep_ir: bool = False) -> Compiled:
        module, name, inputs, outputs = self._trace(dynamic, fixed, args)
        options = self.options
        report = CompileReport(keep_ir=keep_ir)
        if options.check_nan:
            trees = {name: (str(inputs), str(outputs))}
            checked, watch = compile_checked(module, target=options.target, threads=options.threads or None, trees=trees)
            return Compiled(name, module, checked, report, inputs, outputs, watch, options)
        compiled = compile_module(
            module,
            target=options.target,
            threads=options.threads or None,
            optimize=options.optimize,
            cache=options.cache,
            trees={name: (str(inputs), str(outputs))},
            report=report,
        )
        return Compiled(name, module, compiled, report, inputs, outputs, options=options)

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


def _both_ways(function: Callable[..., Any], static: frozenset[int | str]) -> frozenset[int | str]:
    """Names and positions of the static arguments: a named one may be passed by position, and the other way round."""
    try:
        parameters = list(inspect.signature(function).parameters.values()) if static else []
    except (TypeError, ValueError):  # a callable without a signature
        return static
    open_ended = any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)
    positions = {p.name: k for k, p in enumerate(parameters) if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)}
    names = [p.name for p in parameters]
    both: set[int | str] = set()
    for word in static:
        name = word if isinstance(word, str) else next((n for n, k in positions.items() if k == word % max(1, len(positions))), "")
        if name not in names and not open_ended:
            raise user_error(
                f"static names an argument that {getattr(function, '__name__', 'f')} lacks",
                code="GR104",
                expected=f"one of {', '.join(names)}",
                found=str(word),
            )
        both |= {name, positions[name]} if name in positions and (isinstance(word, str) or word < len(positions)) else {word}
    return frozenset(both)


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
    """What of an argument selects the program."""
    if isinstance(x, np.ndarray):
        return x.shape, x.dtype
    if isinstance(x, bool | int | float | complex) and not isinstance(x, np.generic):
        return type(x)
    return _placeholder(x).type


def _placeholder(x: Any) -> Array:
    """An array of the type of `x`, without its value."""
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
        return _placeholder(np.from_dlpack(cast("Any", x)))  # the protocol was just checked
    return as_array(x)


def jit(
    function: Callable[..., Any] | None = None,
    *,
    target: str = "host",
    threads: int = 0,
    cache: bool | str | os.PathLike[str] = True,
    optimize: int = 2,
    fastmath: str = "none",
    static: Sequence[int | str] = (),
    dynamic: Shapes | None = None,
    check_nan: bool = False,
    residuals: str | None = None,
    budget: int | None = None,
) -> Any:
    """Compile `function` at its first call with each structure, shapes and types of arguments.

    Arguments and results are nested containers of arrays (see `pytrees`); numbers are rank-0 arrays (float: f32, int: i32).
    `target`: host, or the name of a `#target`. `threads`: how many may work (0: all). `cache`: True, False or a directory.
    `static` names arguments, or their positions, whose values (hashable) select the program instead. `dynamic={"x": ("b", 64)}` names
    sizes (names or `Dim`s) that only a call knows: one program serves them all. `optimize`: 2 everything, 1 no fusion, 0 neither fusion
    nor simplification (for finding out where a result comes from). `fastmath="fast"` allows to reassociate float arithmetic and to take
    no care of NaN and infinity. `check_nan=True` runs op by op, slowly, and raises GradirError RT040 at the first op that makes NaN or
    infinity of finite operands. `residuals` ("all", "none", "sqrt") is what loops keep for their derivatives that do not say it themselves,
    `budget` so many bytes for all of them together (`value_and_grad`). Also usable as `@jit(...)`.
    """
    residual_choice(residuals, budget)
    if function is None:
        options: dict[str, Any] = {"cache": cache, "optimize": optimize, "fastmath": fastmath, "static": static, "dynamic": dynamic}
        options |= {"check_nan": check_nan, "residuals": residuals, "budget": budget}
        return functools.partial(jit, target=target, threads=threads, **options)
    choices = Options(_machine(target), threads, cache, optimize, fastmath, check_nan, residuals, budget)
    return Jitted(function, choices, frozenset(static), dynamic)


def _machine(target: str) -> str:
    """`target`, unless it names an evaluator: these take modules."""
    if target in EVALUATED:
        raise user_error(
            f"a function is compiled for a machine, not for '{target}'",
            part="operator",
            code="OP041",
            expected="host, cpu, cpu:NAME, cuda:NAME",
            found=target,
            hint=f"take its module, gradir.compile(gradir.jit(f).lower(*args), target='{target}'), or `with gradir.eager():`",
        )
    return target


def compile(
    function: Callable[..., Any] | ModuleOp,
    *args: Any,
    target: str = "host",
    threads: int = 0,
    cache: bool | str | os.PathLike[str] = True,
    optimize: int = 2,
    keep_ir: bool = False,
    residuals: str | None = None,
    budget: int | None = None,
    **kwargs: Any,
) -> Any:
    """Compile `function` for arguments like `args` (arrays or `Spec`s) now; the result can be called, inspected and saved.

    Of a module instead of a function (`import_text`, `parse`) all public functions are compiled, `compile(module)["main"]` is one of
    them, with numpy arrays in and out. Its target may also be `reference` (the definition of each op, nothing is compiled) or
    `cuda:emulated` (the CUDA program at level 4, thread by thread). `residuals` and `budget`: what derivatives keep, as for `jit`.
    """
    asked = residual_choice(residuals, budget)
    if isinstance(function, ModuleOp):
        if args or kwargs or keep_ir:
            given = [*(["arguments"] if args or kwargs else []), *(["keep_ir"] if keep_ir else [])]
            raise user_error(
                "compile takes no arguments for a module: its functions have types",
                code="GR104",
                expected="no arguments, no keep_ir",
                found=" and ".join(given),
            )
        if asked:
            function = function.clone()
            function.attributes.update(asked)
        return compile_program(function, target=target, threads=threads or None, cache=cache, optimize=optimize)
    options = Options(_machine(target), threads, cache, optimize, residuals=residuals, budget=budget)
    jitted = function if isinstance(function, Jitted) else Jitted(function, options, frozenset())
    if asked and isinstance(function, Jitted):
        jitted = Jitted(function.function, replace(function.options, residuals=residuals, budget=budget), function.static, function.dynamic)
    return jitted.compile(*args, keep_ir=keep_ir, **kwargs)


def _function(module: ModuleOp, name: str) -> FuncOp:
    return next(op for op in module.body.block.ops if isinstance(op, FuncOp) and op.sym_name.data == name)


def bundle(
    functions: Mapping[str, tuple[Callable[..., Any], Sequence[Any]]],
    *,
    target: str = "host",
    threads: int = 0,
    cache: bool | str | os.PathLike[str] = True,
    residuals: str | None = None,
    budget: int | None = None,
) -> Module:
    """One module with several functions: name -> (function, arguments or `Spec`s). Its functions take and return flat arrays.

    `residuals` and `budget`: what derivatives keep, as for `jit`.
    """
    trace = ModuleTrace()
    trace.module.attributes.update(residual_choice(residuals, budget))
    trees: dict[str, tuple[str, str]] = {}
    for name, (function, args) in functions.items():
        leaves, structure = flatten(tuple(args))
        named = functools.partial(_renamed, function)
        named.__name__ = name  # pyright: ignore[reportAttributeAccessIssue]  (the symbol of the func.func)
        names = argument_names(function, structure)
        traced = trace_function(trace, named, [_placeholder(x) for x in leaves], structure, private=False, names=names)
        trees[traced.name] = (str(structure), str(traced.structure))
    return compile_module(trace.module, target=target, threads=threads or None, cache=cache, trees=trees)


def _renamed(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)
