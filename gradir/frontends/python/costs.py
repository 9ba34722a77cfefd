"""`flops`: what one run of a Python function costs, counted on its IR, without compiling it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradir.driver.costs import flops_of
from gradir.frontends.python.jit import jit
from gradir.frontends.python.jitted import Jitted


def flops(function: Callable[..., Any], *args: Any, trips: int | None = None, **kwargs: Any) -> int:
    """Floating-point operations of one run of `function` for arguments like `args` (arrays or `Spec`s), counted, not measured

    A product of matrices is 2 m n k, everything else one per element, a transcendental too; moves and integers are free. Counted on the
    last form of level 1, after derivatives, expansions and simplifications, which is what runs. Loops count by their trips, branches by
    their dearest side; `trips` stands for what only the run knows (error GR071 without).
    """
    jitted = function if isinstance(function, Jitted) else jit(function)
    return flops_of(jitted.lower(*args, **kwargs), trips=trips)
