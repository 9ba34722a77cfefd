"""Values and derivatives of the programs from JAX, kept so that they are compared where JAX is not installed.

`python -m tests.autodiff.programs.golden [NAME..]` (with JAX) writes golden.json. An array is kept as its largest size, its sum of sizes, a
weighted sum that no permutation or sign leaves alone, and up to 12 of its elements.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from gradir.frontends.python.pytrees import flatten
from tests.autodiff.programs import PROGRAMS, Program, Toolkit, jax_toolkit

PATH = Path(__file__).with_name("golden.json")
KEPT = 12


def value_and_gradients(program: Program, k: Toolkit, args: Any) -> tuple[Any, Any]:
    """The loss and its gradient by the parameters."""
    return k.ad.value_and_grad(program.loss(k))(*args)


def direction(params: Any, k: Toolkit) -> Any:
    """A tangent: cosines, the same for everyone."""
    return k.tree_map(lambda x: np.cos(np.arange(np.size(x)) + 1.0).reshape(np.shape(x)).astype(x.dtype), params)


def hessian_vector_product(program: Program, k: Toolkit, args: Any) -> Any:
    """Forward over reverse, along `direction`."""
    params, *data = args
    gradient = lambda p: k.ad.grad(program.loss(k))(p, *data)
    return k.ad.jvp(gradient, (params,), (direction(params, k),))[1]


def gradients_by_example(program: Program, k: Toolkit, args: Any) -> Any:
    """A gradient for each row of the data: vmap of grad, each row a batch of one."""
    params, *data = args
    rows = [x[:, None] for x in data]
    return k.ad.vmap(k.ad.grad(program.loss(k)), in_axes=(None, *(0 for _ in rows)))(params, *rows)


QUESTIONS = {"gradient": value_and_gradients, "hvp": hessian_vector_product, "examples": gradients_by_example}


def asked(program: Program) -> list[str]:
    """Which of the questions are asked of it."""
    return ["gradient", *(["hvp"] if program.hvp else []), *(["examples"] if program.examples else [])]


def summary(x: Any) -> dict[str, Any]:
    """What is kept of an array."""
    a = np.asarray(x, np.float64).ravel()
    picks = np.linspace(0, a.size - 1, min(KEPT, a.size)).round().astype(int)
    weights = np.cos(np.arange(a.size) * 0.7 + 0.3)
    return {
        "shape": list(np.shape(x)),
        "largest": float(np.max(np.abs(a))),
        "size": float(np.sum(np.abs(a))),
        "weighted": float(weights @ a),
        "elements": [float(v) for v in a[picks]],
    }


def distance(found: Any, kept: dict[str, Any]) -> float:
    """The largest difference of what is kept, relative to the array's largest element (sum of sizes)."""
    mine = summary(found)
    assert mine["shape"] == kept["shape"], f"shape {mine['shape']}, expected {kept['shape']}"
    elements = max((abs(a - b) for a, b in zip(mine["elements"], kept["elements"])), default=0.0)
    return max(elements / (kept["largest"] or 1.0), abs(mine["weighted"] - kept["weighted"]) / (kept["size"] or 1.0))


def main() -> None:
    import jax

    k = jax_toolkit()
    named = sys.argv[1:]
    answers: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))["answers"] if named else {}
    for name, program in PROGRAMS.items():
        if named and name not in named:
            continue
        args = jax.tree_util.tree_map(jax.numpy.asarray, program.inputs())
        answers[name] = {q: [summary(x) for x in flatten(jax.device_get(QUESTIONS[q](program, k, args)))[0]] for q in asked(program)}
    PATH.write_text(json.dumps({"jax": jax.__version__, "answers": answers}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
