"""Ops that move data."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import jax.numpy as jnp
from jax import lax

from tests.autodiff.jax_counterparts.registry import counterpart


@counterpart("reshape")
def reshape(run: Any, op: Any, x: Any, *sizes: Any) -> Any:
    return jnp.reshape(x, run.shape(op.result))


@counterpart("transpose")
def transpose(run: Any, op: Any, x: Any) -> Any:
    return lax.transpose(x, op.numbers("perm"))


@counterpart("broadcast")
def broadcast(run: Any, op: Any, x: Any, *sizes: Any) -> Any:
    """Dimension k goes to `dims[k]`, in any order; lax wants them sorted."""
    dims = op.numbers("dims")
    order = sorted(range(len(dims)), key=lambda k: dims[k])
    return lax.broadcast_in_dim(lax.transpose(x, order), run.shape(op.result), sorted(dims))


@counterpart("slice")
def slice_(run: Any, op: Any, x: Any) -> Any:
    """A limit of -1 is the end, -2 one before it."""
    limit = [hi if hi >= 0 else n + 1 + hi for hi, n in zip(op.numbers("limit"), x.shape)]
    return x[tuple(slice(lo, max(hi, 0), step) for lo, hi, step in zip(op.numbers("start"), limit, op.numbers("stride")))]


@counterpart("pad")
def pad(run: Any, op: Any, x: Any, value: Any) -> Any:
    """Interior first; edges may be negative, also of an empty operand."""
    interior, low, high = op.numbers("interior"), op.numbers("low"), op.numbers("high")
    spread = lax.pad(x, value, [(0, 0, k) for k in interior])
    return lax.pad(spread, value, [(lo, hi, 0) for lo, hi in zip(low, high)])


@counterpart("concatenate")
def concatenate(run: Any, op: Any, *xs: Any) -> Any:
    return lax.concatenate(xs, op.number("dim"))


@counterpart("reverse")
def reverse(run: Any, op: Any, x: Any) -> Any:
    return lax.rev(x, op.numbers("dims"))


@counterpart("split")
def split(run: Any, op: Any, x: Any) -> tuple[Any, ...]:
    return tuple(jnp.split(x, list(accumulate(op.numbers("sizes")))[:-1], axis=op.number("dim")))


@counterpart("bind")
def bind(run: Any, op: Any, size: Any) -> tuple[Any, ...]:
    """The size is an argument, and a number when the function is called."""
    run.sizes[op.sym.data] = int(size)
    return ()


@counterpart("optimization_barrier")
def optimization_barrier(run: Any, op: Any, *xs: Any) -> tuple[Any, ...]:
    return tuple(lax.optimization_barrier(xs))
