"""The table of counterparts, and the walk over a program that uses it.

A counterpart is a small function of jax.numpy or lax, written by hand: `f(run, op, *operands)` gives the result of `op`, or a tuple of
results; attributes are read from `op`. With them a straight-line program of level 1 is a JAX function, which JAX differentiates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import jax
import numpy as np
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, SSAValue

from gradir import size_algebra
from gradir.dialects.nd.regions import YieldOp
from gradir.dialects.types import shape_of

jax.config.update("jax_enable_x64", True)

COUNTERPARTS: dict[str, Callable[..., Any]] = {}

FAMILIES = (
    "elementwise",
    "special",
    "reduction",
    "contraction",
    "convolution",
    "shape",
    "indexing",
    "gather_scatter",
    "composite",
    "normalization",
    "sorting",
    "region_reduction",
    "linalg",
    "fourier",
    "effects",
)


def counterpart(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the function as what these ops compute."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            COUNTERPARTS[f"nd.{name}"] = function
        return function

    return register


def plain(table: dict[str, Callable[..., Any]]) -> None:
    """Register functions of the operands alone."""
    for name, function in table.items():
        COUNTERPARTS[f"nd.{name}"] = lambda run, op, *xs, function=function: function(*xs)


class Run:
    """One call of a program: the values so far, and what its named sizes are."""

    def __init__(self, sizes: dict[str, int] | None = None) -> None:
        self.values: dict[SSAValue, Any] = {}
        self.sizes: dict[str, int] = {} if sizes is None else sizes

    def shape(self, of: Attribute | SSAValue) -> tuple[int, ...]:
        """The shape as numbers."""
        return tuple(size_algebra.evaluate(n, self.sizes) for n in shape_of(of))

    def learn(self, kinds: Sequence[Attribute], values: Sequence[Any]) -> None:
        """The names in the sizes of the arguments."""
        tensors = [(kind, value) for kind, value in zip(kinds, values) if isinstance(kind, TensorType)]
        sizes = [n or 0 for kind, _ in tensors for n in shape_of(kind)]
        numbers = [n for _, value in tensors for n in np.shape(value)]
        for name, k, rest, factor in size_algebra.solve(sizes):
            self.sizes[name] = (numbers[k] - size_algebra.evaluate(rest, self.sizes)) // factor

    def block(self, block: Block, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """What the terminator hands on. The ops of a region work on whole tensors as well as on elements."""
        self.values.update(zip(block.args, arguments))
        for op in block.ops:
            operands = [self.values[v] for v in op.operands]
            if isinstance(op, ReturnOp | YieldOp):
                return tuple(operands)
            found = COUNTERPARTS[op.name](self, op, *operands)
            self.values.update(zip(op.results, found if isinstance(found, tuple) else (found,), strict=True))
        raise AssertionError("a block without a terminator")

    def region(self, block: Block) -> Callable[..., tuple[Any, ...]]:
        """The region as a function."""
        return lambda *arguments: Run(self.sizes).block(block, arguments)


def function_of(module: ModuleOp) -> Callable[..., tuple[Any, ...]]:
    """`@f` of the module as a JAX function."""
    f = next(op for op in module.body.block.ops if isinstance(op, FuncOp) and op.sym_name.data == "f")

    def call(*arguments: Any) -> tuple[Any, ...]:
        run = Run()
        run.learn(f.function_type.inputs.data, arguments)
        return run.block(f.body.block, arguments)

    return call


def load() -> None:
    """Import every family; importing registers."""
    for family in FAMILIES:
        import_module(f"tests.autodiff.jax_counterparts.{family}")
