"""What a program of this folder is written against: one spelling of numpy, control flow and transformations for Gradir and for JAX.

`GRADIR` is everywhere the module `gradir` itself. `jax_toolkit()` is JAX; it differs where JAX has no reverse mode: a `while` loop is a
bounded scan that stops to change anything when the condition fails, which is the same loop with the same trips.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import gradir as gd


@dataclass(frozen=True)
class Toolkit:
    """`xp`: numpy; `lax`: scan, cond, fori_loop; `nn`: activations; `ad`: grad, jvp, vmap; the rest by name."""

    xp: Any
    lax: Any
    nn: Any
    ad: Any
    random: Any
    linalg: Any
    conv: Callable[..., Any]
    while_loop: Callable[..., Any]
    tree_map: Callable[..., Any]


def gradir_while(condition: Any, body: Any, state: Any, _at_most: int) -> Any:
    """The loop as it is: no bound is needed."""
    return gd.while_loop(condition, body, state)


GRADIR = Toolkit(gd, gd, gd, gd, gd.random, gd.linalg, gd.conv, gradir_while, gd.tree_map)


def jax_toolkit() -> Toolkit:
    """The same names in JAX, with 64-bit numbers."""
    import jax

    jax.config.update("jax_enable_x64", True)
    from jax.scipy import linalg as scipy_linalg

    def conv(x: Any, w: Any, strides: int = 1, padding: str = "VALID") -> Any:
        return jax.lax.conv_general_dilated(x, w, (strides, strides), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def bounded_while(condition: Any, body: Any, state: Any, at_most: int) -> Any:
        def step(s: Any, _: Any) -> Any:
            return jax.lax.cond(condition(s), body, lambda s: s, s), None

        return jax.lax.scan(step, state, None, length=at_most)[0]

    class Linalg:
        """numpy's and scipy's linear algebra under one name."""

        solve_triangular = staticmethod(scipy_linalg.solve_triangular)

        def __getattr__(self, name: str) -> Any:
            return getattr(jax.numpy.linalg, name)

    return Toolkit(jax.numpy, jax.lax, jax.nn, jax, jax.random, Linalg(), conv, bounded_while, jax.tree_util.tree_map)


@dataclass(frozen=True)
class Program:
    """A scalar function `loss(toolkit)(params, *data)` and its arguments; derivatives are by `params`.

    `hvp`: also a Hessian-vector product; `examples`: also a gradient for each row of every array in `data`; `trips`: how often its
    data-dependent loops run at these arguments (for counting flops).
    """

    name: str
    loss: Callable[[Toolkit], Callable[..., Any]]
    arguments: Callable[[np.random.RandomState], tuple[Any, ...]]
    hvp: bool = False
    examples: bool = False
    trips: int = 0
    tolerance: float = 1e-9
    f32_tolerance: float = 1e-5
    notes: str = ""
    tags: tuple[str, ...] = field(default=())

    def inputs(self, dtype: Any = np.float64) -> tuple[Any, ...]:
        """The arguments with floating-point leaves of type `dtype`. The old generator: its stream is frozen."""

        def typed(x: Any) -> Any:
            x = np.asarray(x)
            return x.astype(dtype) if x.dtype.kind == "f" else x

        return gd.tree_map(typed, self.arguments(np.random.RandomState(len(self.name) + 17)))
