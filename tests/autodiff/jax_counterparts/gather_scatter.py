"""Gather and scatter of windows. The scatter is its meaning, update by update: XLA drops a whole window over the edge."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import jax.numpy as jnp
from jax import lax

from tests.autodiff.jax_counterparts.registry import counterpart


@counterpart("gather_general")
def gather_general(run: Any, op: Any, x: Any, indices: Any) -> Any:
    n = op.dimensions
    numbers = lax.GatherDimensionNumbers(
        offset_dims=n.window,
        collapsed_slice_dims=n.dropped,
        start_index_map=n.map,
        operand_batching_dims=n.operand_batch,
        start_indices_batching_dims=n.indices_batch,
    )
    return lax.gather(x, indices, numbers, op.numbers("sizes"), mode=lax.GatherScatterMode.CLIP)


COMBINE: dict[str, Any] = {
    "set": lambda old, new: new,
    "add": lax.add,
    "mul": lax.mul,
    "max": lax.max,
    "min": lax.min,
}


@counterpart("scatter_general")
def scatter_general(run: Any, op: Any, *operands: Any) -> tuple[Any, ...]:
    count, n = len(op.outputs), op.dimensions
    xs, indices, updates = list(operands[:count]), operands[count], operands[count + 1 :]
    combine = run.region(op.combiner.block) if op.combine == "region" else lambda old, new: (COMBINE[op.combine](old, new),)
    shape = xs[0].shape
    flat = [jnp.reshape(x, (math.prod(shape),)) for x in xs]
    for at in product(*map(range, updates[0].shape)):
        vector = indices[tuple(at[d] for d in n.batch)]
        place: list[Any] = [0] * len(shape)
        for k, d in enumerate(n.map):
            place[d] = place[d] + vector[k]
        for k, d in enumerate(n.operand_batch):
            place[d] = at[n.batch_of(k)]
        for d, w in zip(n.walked, n.window):
            place[d] = place[d] + at[w]
        inside, position = jnp.asarray(True), jnp.asarray(0)
        for p, size in zip(place, shape):
            inside &= (p >= 0) & (p < size)
            position = position * size + p
        position = jnp.where(inside, position, 0)
        news = combine(*(x[position] for x in flat), *(u[at] for u in updates))
        flat = [x.at[position].set(jnp.where(inside, new, x[position])) for x, new in zip(flat, news)]
    return tuple(jnp.reshape(x, shape) for x in flat)
