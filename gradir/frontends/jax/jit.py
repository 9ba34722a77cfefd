"""`jit` and `from_jax`: JAX traces a function once per types of its arguments, Gradir compiles the StableHLO that it prints."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from gradir.driver.compile import compile_module
from gradir.errors import GradirError
from gradir.frontends.jax.arrays import jax, to_jax, to_runtime
from gradir.frontends.jax.text import text_of
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.program import Program
from gradir.frontends.python.trace import tracing
from gradir.frontends.stablehlo import import_extracted
from gradir.runtime.module import Function


@dataclass(frozen=True)
class Options:
    """What `jax.jit` needs to trace, and how to compile."""

    static_argnums: tuple[int, ...] = ()
    static_argnames: tuple[str, ...] = ()
    donate_argnums: tuple[int, ...] = ()
    target: str = "host"
    threads: int = 0
    optimize: int = 2
    cache: bool | str = True


@dataclass
class Traced:
    """One program: its module, the types of its flat arguments and results, the structure of its results."""

    program: Program
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    structure: Any
    donated: tuple[int, ...] = ()
    compiled: Function | None = field(default=None, repr=False)


class JaxFunction:
    """A JAX function that runs through Gradir. Made by `jit`."""

    def __init__(self, function: Callable[..., Any], options: Options) -> None:
        functools.update_wrapper(self, function, updated=())
        self.function, self.options = function, options
        self._jitted = jax().jit(function, static_argnums=options.static_argnums, static_argnames=options.static_argnames, keep_unused=True)
        self._programs: dict[Any, Traced] = {}

    def __repr__(self) -> str:
        return f"<gradir.frontends.jax.jit {getattr(self.function, '__name__', 'f')}: {len(self._programs)} programs>"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, structure, fixed = self._dynamic(args, kwargs)
        if any(isinstance(leaf, jax().core.Tracer) for leaf in leaves):
            raise _inside_jax(self)
        if tracing():
            return self._nested(args, kwargs, leaves)
        key = (structure, fixed, *map(jax().typeof, leaves))
        traced = self._programs.get(key)
        if traced is None:
            traced = self._programs[key] = self._trace(args, kwargs)
        if traced.compiled is None:
            traced.compiled = self._compiled(traced.program)
        results = traced.compiled.flat(*map(to_runtime, leaves, traced.inputs))
        for position in traced.donated:
            if hasattr(leaves[position], "delete"):
                leaves[position].delete()
        return jax().tree.unflatten(traced.structure, [to_jax(*pair) for pair in zip(results, traced.outputs)])

    def lower(self, *args: Any, **kwargs: Any) -> Program:
        """The module of level 1 for these arguments (arrays or `jax.ShapeDtypeStruct`s); its function is `main`, on flat arrays."""
        return self._trace(args, kwargs).program

    @property
    def programs(self) -> tuple[Program, ...]:
        """What was traced so far."""
        return tuple(traced.program for traced in self._programs.values())

    def _dynamic(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Any, tuple[Any, ...]]:
        """Leaves and structure of the arguments that are arrays, and the static ones."""
        static = {n % len(args) for n in self.options.static_argnums if -len(args) <= n < len(args)}
        dynamic = tuple(arg for k, arg in enumerate(args) if k not in static)
        named = {k: v for k, v in kwargs.items() if k not in self.options.static_argnames}
        fixed = tuple((k, type(args[k]), args[k]) for k in sorted(static))
        fixed += tuple((k, type(v), v) for k, v in sorted(kwargs.items()) if k not in named)
        leaves, structure = jax().tree.flatten((dynamic, named))
        return leaves, structure, fixed

    def _trace(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Traced:
        lowered = self._jitted.lower(*args, **kwargs)
        program = import_extracted(text_of(lowered), f"<jax {getattr(self.function, '__name__', 'f')}>")
        outputs, structure = jax().tree.flatten(lowered.out_info)
        return Traced(program, tuple(jax().tree.leaves(lowered.in_avals)), tuple(outputs), structure, self._donated(args))

    def _donated(self, args: tuple[Any, ...]) -> tuple[int, ...]:
        """Positions of the leaves that are donated."""
        static = {n % len(args) for n in self.options.static_argnums if -len(args) <= n < len(args)}
        donated = {n % len(args) for n in self.options.donate_argnums if -len(args) <= n < len(args)}
        found: list[int] = []
        start = 0
        for k, arg in enumerate(args):
            count = 0 if k in static else len(jax().tree.leaves(arg))
            found += range(start, start + count) if k in donated else ()
            start += count
        return tuple(found)

    def _compiled(self, program: Program) -> Function:
        o = self.options
        module = compile_module(program, target=o.target, threads=o.threads or None, cache=o.cache, optimize=o.optimize, entry="main")
        return module["main"]

    def _nested(self, args: tuple[Any, ...], kwargs: dict[str, Any], leaves: list[Any]) -> Any:
        """Inside a function that Gradir traces: a call of the program, so that `gradir.grad` and `gradir.jit` take JAX functions."""

        def shape_of(leaf: Any) -> Any:
            return jax().ShapeDtypeStruct(leaf.shape, leaf.dtype) if isinstance(leaf, Array) else leaf

        shaped_args, shaped_kwargs = jax().tree.map(shape_of, (args, kwargs))
        traced = self._trace(shaped_args, shaped_kwargs)
        results = traced.program["main"](
            *[leaf if isinstance(leaf, Array) else to_runtime(leaf, t) for leaf, t in zip(leaves, traced.inputs)]
        )
        return jax().tree.unflatten(traced.structure, results if isinstance(results, tuple) else [results])


def _inside_jax(function: JaxFunction) -> GradirError:
    return GradirError(
        f"{getattr(function.function, '__name__', 'f')}: a function of gradir.frontends.jax.jit was called while JAX traces another one",
        part="graph",
        code="GR131",
        expected="arrays",
        found="a tracer of JAX (from jax.grad, jax.vmap, jax.jit, ..)",
        hint="put the transformation inside: gradir.frontends.jax.jit(jax.grad(f))",
    )


def _tuple(numbers: int | str | Iterable[Any] | None) -> tuple[Any, ...]:
    if numbers is None:
        return ()
    return (numbers,) if isinstance(numbers, int | str) else tuple(numbers)


def jit(
    function: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Iterable[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Iterable[int] | None = None,
    target: str = "host",
    threads: int = 0,
    optimize: int = 2,
    cache: bool | str = True,
) -> Any:
    """`function`, written for JAX, compiled by Gradir: pytrees of arrays in, pytrees of jax arrays out, as with `jax.jit`.

    JAX traces it once per structure and types of the arguments and values of the static ones. Arrays share memory with their jax or numpy
    arrays where types agree. Arrays of donated arguments are deleted after the call. JAX's transformations go inside, `jit(jax.grad(f))`;
    Gradir's take the result, `gradir.grad(jit(f))`. Raises GradirError GR120 that lists what the importer lacks, with the Python lines.
    """
    if function is None:
        return functools.partial(
            jit,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
            target=target,
            threads=threads,
            optimize=optimize,
            cache=cache,
        )
    options = Options(_tuple(static_argnums), _tuple(static_argnames), _tuple(donate_argnums), target, threads, optimize, cache)
    return JaxFunction(function, options)


def from_jax(function: Callable[..., Any], *args: Any, static_argnums: int | Iterable[int] | None = None, **kwargs: Any) -> Program:
    """The module of level 1 that computes `function` on arguments like these (arrays or `jax.ShapeDtypeStruct`s).

    Its public function is `main`; it takes and returns the flat leaves of the arguments and results.
    """
    return jit(function, static_argnums=static_argnums).lower(*args, **kwargs)
