"""The derivatives of one program by JAX, through the counterparts of its ops. Needs JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from gradir.ir.text import parse_module
from tests.autodiff.jax_counterparts import registry
from tests.autodiff.table.measure import SEEN, Derivatives, largest, relative

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class JaxErrors:
    """Against JAX: the values of the counterparts, both modes, and forward over reverse."""

    value: float
    vjp: float
    jvp: float
    second: float


def against_jax(d: Derivatives, *, second: bool = True) -> JaxErrors:
    """One compiled JAX function gives all."""
    registry.load()
    f, on, wrt = registry.function_of(parse_module(d.case.text)), d.results_with_derivative(), d.case.wrt

    def of_wrt(*moving: Any) -> tuple[Any, ...]:
        arguments: list[Any] = list(d.inputs)
        for k, x in zip(wrt, moving):
            arguments[k] = x
        found = f(*arguments)
        return tuple(found[k] for k in on)

    cts = tuple(d.cts[k] for k in on)

    def gradients(*moving: Any) -> Any:
        return jax.vjp(of_wrt, *moving)[1](cts)

    def everything(moving: Sequence[Any], tangents: Sequence[Any]) -> Any:
        values, along = jax.jvp(of_wrt, tuple(moving), tuple(tangents))
        twice = jax.jvp(gradients, tuple(moving), tuple(tangents)) if second else (gradients(*moving), ())
        return values, along, *twice

    values, along, vjp, twice = _numbers(jax.jit(everything), [d.inputs[k] for k in wrt], d.tangents)
    return JaxErrors(
        relative([d.values[k] for k in on], values),
        relative(d.vjp, vjp),
        relative(d.jvp, along),
        relative(d.forward_over_reverse, twice, SEEN * largest(d.vjp)) if second else np.inf,
    )


def _numbers(f: Callable[..., Any], *arguments: Any) -> list[list[Array]]:
    return [list(map(np.asarray, part)) for part in f(*arguments)]
