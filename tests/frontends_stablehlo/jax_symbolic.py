"""Writes `jax_symbolic.npz`: programs that JAX exports with symbolic shapes, and its results at several sizes.

python -m tests.frontends_stablehlo.jax_symbolic      (needs jax; the tests only read the file)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

TARGET = Path(__file__).parent / "jax_symbolic.npz"


def main() -> None:
    import jax
    import jax.numpy as jnp
    from jax import export

    rng = np.random.default_rng(0)
    found: dict[str, Any] = {}

    def data(*shape: int) -> Any:
        return rng.standard_normal(shape).astype(np.float32)

    def add(name: str, function: Callable[..., Any], shapes: Sequence[str], cases: Sequence[Sequence[Any]], *constraints: str) -> None:
        scope = export.SymbolicScope(constraints)
        specs = [jax.ShapeDtypeStruct(export.symbolic_shape(shape, scope=scope), x.dtype) for shape, x in zip(shapes, cases[0])]
        text = export.export(jax.jit(function))(*specs).mlir_module()
        found[f"{name}/text"] = re.sub(r"(?m)^#loc.*\n", "", re.sub(r" loc\((?:[^()]|\([^()]*\))*\)", "", text))
        for k, inputs in enumerate(cases):
            results = jax.jit(function)(*inputs)
            for what, arrays in (("in", inputs), ("out", results if isinstance(results, tuple) else (results,))):
                for i, array in enumerate(arrays):
                    found[f"{name}/{k}/{what}/{i}"] = np.asarray(array)

    def mix(x: Any, w: Any) -> Any:
        y = jnp.concatenate([x, x], 0) @ w
        return jnp.sum(y, 1) / y.shape[0], y.reshape(-1)[1:], jnp.pad(x, ((1, 2), (0, 0))), jnp.arange(x.shape[0]), jnp.mean(x)

    add("mix", mix, ("b,8", "8,t"), [(data(b, 8), data(8, t)) for b, t in ((3, 2), (1, 1), (2, 5))])
    add("constraints", lambda x: x.reshape(2, -1), ("b,8",), [(data(b, 8),) for b in (4, 6)], "b>=4", "mod(b,2)==0")
    add(
        "gradient",
        lambda x, w: jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w),
        ("b,8", "8,3"),
        [(data(b, 8), data(8, 3)) for b in (1, 4)],
    )
    add("one name", lambda x, y: x + y, ("b,4", "b,4"), [(data(b, 4), data(b, 4)) for b in (1, 4)])
    add("twice", lambda x, y: x + y[: x.shape[0]], ("b,4", "2*b,4"), [(data(b, 4), data(2 * b, 4)) for b in (1, 4)])
    add("slices", lambda x: (x[::2], x[1:-1], x[::-1]), ("b,4",), [(data(b, 4),) for b in (5, 4)], "b>=4")
    add(
        "attention",
        lambda q, k, v: jax.nn.softmax(jnp.einsum("btd,bsd->bts", q, k)) @ v,
        ("b,t,8", "b,s,8", "b,s,8"),
        [(data(2, 3, 8), data(2, 5, 8), data(2, 5, 8))],
    )
    add("scan", lambda x: jax.lax.scan(lambda c, v: (c + v, c), jnp.zeros(4), x)[0], ("b,4",), [(data(b, 4),) for b in (1, 4)])
    add("gather", lambda x, i: x[i], ("b,4", "n"), [(data(5, 4), np.array([0, 4, -1], np.int32))])
    add("cumsum", lambda x: jnp.cumsum(x, 0), ("b,4",), [(data(b, 4),) for b in (1, 4)])
    add(
        "layer norm",
        lambda x: (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5),
        ("b,t,8",),
        [(data(2, 3, 8),)],
    )
    np.savez_compressed(TARGET, **found)


if __name__ == "__main__":
    main()
