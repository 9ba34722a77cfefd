"""`jit`, `compile` and `bundle`: a Python function as compiled code, one program per structure, shapes and types of its arguments."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from gradir.driver.compile import compile_module
from gradir.frontends.python.compiled import Options, tune_program
from gradir.frontends.python.dynamic import Shapes
from gradir.frontends.python.functions import argument_names, trace_function
from gradir.frontends.python.jitted import TUNE_SECONDS, Jitted, placeholder
from gradir.frontends.python.options import arguments_in, machine_in, seconds_in
from gradir.frontends.python.program import EVALUATED, compile_program
from gradir.frontends.python.pytrees import flatten
from gradir.frontends.python.residuals import residual_choice
from gradir.frontends.python.trace import ModuleTrace, user_error
from gradir.ir.structure import public_functions
from gradir.runtime.module import Module


def jit(
    function: Callable[..., Any] | None = None,
    *,
    target: str = "host",
    threads: int = 0,
    cache: bool | str | os.PathLike[str] = True,
    optimize: int = 2,
    fastmath: str = "none",
    static: Sequence[int | str] | None = (),
    dynamic: Shapes | None = None,
    check_nan: bool = False,
    residuals: str | None = None,
    budget: int | None = None,
    tune: bool | float | None = False,
    donate: Sequence[int | str] | None = (),
    frozen: Sequence[int | str] | None = (),
) -> Any:
    """Compile `function` at its first call with each structure, shapes and types of arguments.

    Arguments and results are nested containers of arrays (see `pytrees`); numbers are rank-0 arrays (float: f32, int: i32).
    `target`: host, or the name of a `#target`. `threads`: how many may work (0: all). `cache`: True, False or a directory.
    `static` names arguments, or their positions, whose values (hashable) select the program instead. `dynamic={"x": ("b", 64)}` names
    sizes (names or `Dim`s) that only a call knows: one program serves them all. `optimize`: 2 everything, 1 no fusion, 0 neither fusion
    nor simplification (for finding out where a result comes from). `fastmath="fast"` allows to reassociate float arithmetic and to take
    no care of NaN and infinity. `check_nan=True` runs op by op, slowly, and raises GradirError RT040 at the first op that makes NaN or
    infinity of finite operands. `residuals` ("all", "none", "sqrt") is what loops keep for their derivatives that do not say it themselves,
    `budget` so many bytes for all of them together (`value_and_grad`). `tune`: seconds (True: 30) to search schedules of the hot kernels
    in, by measurement, at the first call with each kind of arguments; what is found is kept in the cache for all programs. `donate` names
    arguments, or their positions, whose memory a call may take for results: such an array is overwritten, and is the result
    (`memory_report` says which). `frozen` names arguments, or their positions, that are `freeze`d: what follows from them alone is
    computed once for each set of them, and matrices among them are packed for the products that read them. Also usable as `@jit(...)`.
    """
    residual_choice(residuals, budget)
    if function is None:
        options: dict[str, Any] = {"cache": cache, "optimize": optimize, "fastmath": fastmath, "static": static, "dynamic": dynamic}
        options |= {"check_nan": check_nan, "residuals": residuals, "budget": budget, "tune": tune, "donate": donate, "frozen": frozen}
        return functools.partial(jit, target=target, threads=threads, **options)
    lists = arguments_in("donate", donate), arguments_in("frozen", frozen)
    searched = seconds_in(tune)
    choices = Options(machine_in(target), threads, cache, optimize, fastmath, check_nan, residuals, budget, searched, *lists)
    return Jitted(function, choices, arguments_in("static", static), dynamic)


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
    tune: bool | float | None = False,
    donate: Sequence[int | str] | None = (),
    frozen: Sequence[int | str] | None = (),
    **kwargs: Any,
) -> Any:
    """Compile `function` for arguments like `args` (arrays or `Spec`s) now; the result can be called, inspected and saved.

    Of a module instead of a function (`import_text`, `parse`) all public functions are compiled, `compile(module)["main"]` is one of
    them, with numpy arrays in and out. Its target may also be `reference` (the definition of each op, nothing is compiled) or
    `cuda:emulated` (the PTX of a CUDA program, in the emulator). `residuals` and `budget`: what derivatives keep, `tune`: seconds to
    search schedules in, as for `jit` (of a module: for each public function, with random arguments). `donate` and `frozen`: as for `jit`.
    """
    asked, tune = residual_choice(residuals, budget), seconds_in(tune)
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
        if tune and target != EVALUATED:
            choices = Options(target, threads, cache, optimize)
            for public in public_functions(function):
                tune_program(function, public.sym_name.data, None, choices, TUNE_SECONDS if tune is True else tune)
        return compile_program(function, target=target, threads=threads or None, cache=cache, optimize=optimize)
    lists = {"donate": arguments_in("donate", donate), "frozen": arguments_in("frozen", frozen)}
    options = Options(machine_in(target), threads, cache, optimize, residuals=residuals, budget=budget, tune=tune)
    options = replace(options, donate=lists["donate"], frozen=lists["frozen"])
    jitted = function if isinstance(function, Jitted) else Jitted(function, options, frozenset())
    if (asked or tune or donate or frozen) and isinstance(function, Jitted):
        changed = {"residuals": residuals, "budget": budget} if asked else {}
        given = {word: words or getattr(function.options, word) for word, words in lists.items()}
        options = replace(function.options, **changed, tune=tune or function.options.tune, **given)
        jitted = Jitted(function.function, options, function.static, function.dynamic)
    return jitted.compile(*args, keep_ir=keep_ir, **kwargs)


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
        traced = trace_function(trace, named, [placeholder(x) for x in leaves], structure, private=False, names=names)
        trees[traced.name] = (str(structure), str(traced.structure))
    return compile_module(trace.module, target=target, threads=threads or None, cache=cache, trees=trees)


def _renamed(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)
