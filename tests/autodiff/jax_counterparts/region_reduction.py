"""Folds by a region, as the loops that they stand for."""

from __future__ import annotations

from itertools import product
from typing import Any

import jax.numpy as jnp
from jax import lax

from tests.autodiff.jax_counterparts.convolution import pairs, window_elements
from tests.autodiff.jax_counterparts.registry import counterpart


@counterpart("reduce")
def reduce(run: Any, op: Any, *operands: Any) -> tuple[Any, ...]:
    count, dims = len(op.outputs), sorted(op.numbers("dims"))
    xs, combine = operands[:count], run.region(op.combiner.block)
    kept = [d for d in range(xs[0].ndim) if d not in dims]
    rest = tuple(xs[0].shape[d] for d in kept)
    lines = [jnp.reshape(lax.transpose(x, (*dims, *kept)), (-1, *rest)) for x in xs]
    state = tuple(jnp.broadcast_to(start, rest) for start in operands[count:])
    for k in range(lines[0].shape[0]):
        state = combine(*state, *(line[k] for line in lines))
    return state


@counterpart("reduce_window_general")
def reduce_window_general(run: Any, op: Any, *operands: Any) -> tuple[Any, ...]:
    count, combine = len(op.outputs), run.region(op.combiner.block)
    xs, starts = operands[:count], operands[count:]
    edges = [(lo, hi, d - 1) for (lo, hi), d in zip(pairs(op.numbers("padding")), op.numbers("base_dilations"))]
    shape = [op.numbers(a) for a in ("window", "strides", "dilations")]
    columns = [window_elements(lax.pad(x, start, edges), *shape) for x, start in zip(xs, starts)]
    state = tuple(jnp.broadcast_to(start, column[0].shape) for start, column in zip(starts, columns))
    for elements in zip(*columns):
        state = combine(*state, *elements)
    return state


@counterpart("select_and_scatter_general")
def select_and_scatter_general(run: Any, op: Any, x: Any, source: Any, start: Any) -> Any:
    select, scatter = run.region(op.select.block), run.region(op.scatter.block)
    window, strides, padding = op.numbers("window"), op.numbers("strides"), pairs(op.numbers("padding"))
    fixed, result = lax.stop_gradient(x), jnp.broadcast_to(start, x.shape)
    for w in product(*map(range, source.shape)):
        corner = [a * s - lo for a, s, (lo, _) in zip(w, strides, padding)]
        places = [tuple(c + o for c, o in zip(corner, offset)) for offset in product(*map(range, window))]
        places = [at for at in places if all(0 <= p < n for p, n in zip(at, x.shape))]
        if not places:
            continue
        chosen, value = jnp.asarray(places[0]), fixed[places[0]]
        for at in places[1:]:
            stays = select(value, fixed[at])[0]
            chosen, value = jnp.where(stays, chosen, jnp.asarray(at)), jnp.where(stays, value, fixed[at])
        at = tuple(chosen)
        result = result.at[at].set(scatter(result[at], source[w])[0])
    return result
