"""What compiling a function gives: how it was asked for (`Options`), and the program (`Compiled`)."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp

from gradir.driver.check_nan import Watch
from gradir.driver.compile import memory_report
from gradir.driver.memory import MemoryReport
from gradir.driver.report import CompileReport
from gradir.driver.residuals import ResidualReport, residual_report
from gradir.errors import GradirError
from gradir.frontends.python.frozen import Preparation
from gradir.frontends.python.packing import Pack, packer
from gradir.frontends.python.places import entry_of
from gradir.frontends.python.pytrees import LEAF, Structure, flatten, unflatten
from gradir.ir.text import print_module
from gradir.runtime.dispatch import DirectCall, Dispatch
from gradir.runtime.module import Function, Module

if TYPE_CHECKING:
    from gradir.driver.explain import Explanation
    from gradir.driver.explain.cuda import CudaExplanation
    from gradir.driver.tuning.tune import TuningReport

EXPLAIN, TUNE = "gradir.driver.explain", "gradir.driver.tuning.tune"
"""Loaded when somebody asks."""


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
    tune: bool | float = False
    donate: frozenset[int | str] = frozenset()
    frozen: frozenset[int | str] = frozenset()


@dataclass(eq=False)
class Compiled(DirectCall):
    """One program: call it with arguments of the structure, shapes and types that it was compiled for.

    With `out=` (an array, or a container of arrays like the result) the results are written to these arrays.
    """

    name: str
    level1: ModuleOp = field(repr=False)
    module: Module
    report: CompileReport = field(repr=False)
    inputs: Structure = field(repr=False)
    outputs: Structure = field(repr=False)
    watch: Watch | None = field(default=None, repr=False)
    options: Options = field(default_factory=Options, repr=False)
    preparation: Preparation | None = field(default=None, repr=False)
    """What runs once for each set of frozen arguments; None when there are none."""

    def __post_init__(self) -> None:
        self._dispatch: Dispatch | None = None
        self.__call__ = self._any_call

    def run(self, *leaves: Any) -> tuple[Any, ...]:
        """Flat arguments to flat results."""
        return self.flat(*leaves)

    @property
    def function(self) -> Function:
        """The loaded function."""
        return self.module[self.name]

    @property
    def flat(self) -> Callable[..., tuple[Any, ...]]:
        """The compiled function on flat arguments; with `check_nan` it raises GradirError RT040."""
        flat = self.function.flat
        if self.preparation is not None:
            arguments = self.preparation.arguments
            return lambda *leaves: flat(*arguments(leaves))
        return flat if self.watch is None else self.watch.watched(flat, f"@{self.name}")

    def result(self, leaves: Sequence[Any], out: Any = None) -> Any:
        """The result for flat arguments, in its container; written to the arrays of `out` where given."""
        if out is None:
            return self.pack(self.flat(*leaves))
        given = leaves_like(out, self.outputs, self.name)
        if self.preparation is not None:
            return self.pack(self.function.write(self.preparation.arguments(leaves), given))
        if self.watch is None:
            return self.pack(self.function.write(leaves, given))
        return self.pack(self.watch.watched(lambda *leaves: self.function.write(leaves, given), f"@{self.name}")(*leaves))

    def _any_call(self, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        """A call that native code does not know."""
        leaves = self.leaves_of(args, kwargs)
        result = self.result(leaves, out)
        entry = None if self.watch is not None or self.preparation is not None else entry_of(self.function, self.outputs, args, kwargs)
        if entry is not None:
            if self._dispatch is None:
                self._dispatch = Dispatch(self._any_call)
            self._dispatch.add(entry)
            self.__call__ = self._dispatch.builtin()
        return result

    def leaves_of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The flat arguments of a call; GradirError GR107 for another structure."""
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
        return leaves

    def _given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any] | None:
        """The flat arguments of the program itself; None when none are given."""
        if not args and not kwargs:
            return None
        leaves = self.leaves_of(args, kwargs)
        return leaves if self.preparation is None else self.preparation.arguments(leaves)

    @functools.cached_property
    def pack(self) -> Pack:
        """Flat results to the function's result."""
        return packer(self.outputs)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the artefact that `gradir.runtime.load` reads; its function takes and returns flat arrays.

        GradirError RT067 for a program with frozen arguments: what was prepared of them is no part of an artefact.
        """
        if self.preparation is not None:
            raise GradirError(
                f"{self.name}: a program with frozen arguments cannot be saved",
                part="runtime",
                code="RT067",
                function=f"@{self.name}",
                expected="a program that takes all arguments at each call",
                found="frozen arguments, of which packed forms are made in this process",
                hint="compile it without frozen= for the artefact",
            )
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

    def explain(self, *args: Any, gpu: str = "h200", **kwargs: Any) -> Explanation | CudaExplanation:
        """Run the program and say what each kernel does, why so, how long it takes and how far that is from the machine's limits.

        `args` as for a call; without any, random arguments (GradirError RT060 where only a call knows a size). `print` shows a table,
        `to_dict`, `to_json` and `gradir.driver.explain.save_page` have the rest. `gpu`: the card that a program for CUDA is held to.
        """
        leaves = self._given(args, kwargs)
        options = self.options
        settings: dict[str, Any] = {"target": options.target, "threads": options.threads or None, "optimize": options.optimize}
        return import_module(EXPLAIN).explain_target(self.level1, leaves, entry=self.name, cache=options.cache, gpu=gpu, **settings)

    def tune(self, *args: Any, seconds: float = 60.0, **kwargs: Any) -> TuningReport:
        """Search schedules of the hot kernels by measurement for about so many seconds; programs compiled from now on use what is faster.

        `args` as for a call; without any, random arguments (GradirError RT060 where only a call knows a size). RT064 without a cache.
        """
        leaves = self._given(args, kwargs)
        return tune_program(self.level1, self.name, leaves, self.options, seconds)


def tune_program(module: ModuleOp, name: str, leaves: Any, options: Options, seconds: float) -> TuningReport:
    """The tuner on the program `module`, with the options of a compilation."""
    settings: dict[str, Any] = {"target": options.target, "threads": options.threads or None, "optimize": options.optimize}
    return import_module(TUNE).tune(module, leaves, entry=name, cache=options.cache, seconds=seconds, **settings)


def leaves_like(out: Any, structure: Structure, name: str) -> tuple[Any, ...]:
    """The arrays of `out`, which is built like the result or is a flat sequence of one array for each of its leaves."""
    leaves, found = flatten(out)
    flat = isinstance(out, list | tuple) and all(child.kind is LEAF for child in found.children)
    if found == structure or (flat and len(leaves) == structure.leaves):
        return tuple(leaves)
    raise GradirError(
        f"{name}: out= has another structure than the result",
        part="runtime",
        code="GR107",
        function=f"@{name}",
        expected=str(structure),
        found=str(found),
        hint="pass one array for each array of the result, in the same containers or in one tuple",
    )


def write_results(result: Any, out: Any, name: str) -> Any:
    """Copy a result into the arrays of `out`; the result made of these."""
    leaves, structure = flatten(result)
    given = leaves_like(out, structure, name)
    for target, value in zip(given, leaves):
        target[...] = value
    return unflatten(structure, given)
