"""What the right results are, in f64, and how far others are off.

Forward workloads are run by numpy. Derivatives come from PyTorch, else JAX, else Gradir, all in f64, and are held against a directional
difference of numpy's loss before they count. References lie under build/bench/references, by a hash of the workloads' source.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bench.peer import Peer
from bench.systems import BUILD, PEERS
from bench.systems.numpy_system import NumpyOps, NumpySystem
from bench.workloads import Workload

Arrays = list[np.ndarray]
ROUNDING = 1.2e-7
"""Of an f32 parameter that gets an update: it is no error of the derivative."""


@cache
def _folder() -> Path:
    here = Path(__file__).parent
    sources = [*sorted((here / "workloads").glob("*.py")), here / "systems" / "numpy_system.py", here / "systems" / "ops.py"]
    return BUILD / "bench" / "references" / hashlib.sha256(b"".join(p.read_bytes() for p in sources)).hexdigest()[:12]


def reference(w: Workload) -> Arrays:
    """The outputs of `w` in f64, made at the first request."""
    path = _folder() / f"{w.name}.npz"
    if path.exists():
        return _read(path)
    outputs = _forward(w) if w.kind == "forward" else _derivatives(w)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, *outputs)
    return outputs


def _read(path: Path | str) -> Arrays:
    with np.load(path) as file:
        return [file[name] for name in file.files]


def _forward(w: Workload) -> Arrays:
    cell = NumpySystem(1).prepare(w, np.float64)
    cell.call()
    return cell.outputs()


def _derivatives(w: Workload) -> Arrays:
    for name in ("torch", "jax", "gradir"):
        if name != "gradir" and not (PEERS / name).exists():
            continue
        peer = Peer.start(name, 2)
        got = peer.ask("reference", workload=w.name) if peer.ready else peer.hello
        outputs = _read(got["outputs"]) if "outputs" in got else None
        peer.end()
        if outputs is not None and (w.kind == "step" or agrees_with_differences(w, outputs)):
            return outputs
    raise RuntimeError(f"{w.name}: no system gives its derivatives in f64")


def double(x: np.ndarray) -> np.ndarray:
    return x if x.dtype.kind == "i" else x.astype(np.float64)


def agrees_with_differences(w: Workload, outputs: Sequence[np.ndarray], *, step: float = 1e-8) -> bool:
    """Is loss(p + step v) - loss(p - step v) = 2 step <gradient, v> in f64, for a random direction v?"""
    inputs, n, ops = [double(x) for x in w.inputs()], w.params, NumpyOps()
    gradients = [(p - new) / w.rate for p, new in zip(inputs, outputs[1:])] if w.kind == "train" else outputs[1:]
    rng = np.random.default_rng(99)
    direction = [rng.standard_normal(p.shape) * (np.abs(p).mean() + 1e-3) for p in inputs[:n]]
    loss = lambda t: float(w.fn(ops, *(p + t * v for p, v in zip(inputs, direction)), *inputs[n:]))
    difference = (loss(step) - loss(-step)) / (2 * step)
    along = float(sum((g * v).sum() for g, v in zip(gradients, direction)))
    return abs(difference - along) <= 1e-3 * abs(along) and abs(loss(0.0) - float(outputs[0])) <= 1e-6 * abs(loss(0.0))


def error(w: Workload, outputs: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> float:
    """How far off, as `w.compare` says; infinite for other shapes, and for NaN where a number belongs."""
    if len(outputs) != len(expected) or any(a.size != b.size for a, b in zip(outputs, expected)):
        return float("inf")
    pairs = [(np.asarray(a, np.float64).reshape(b.shape), np.asarray(b, np.float64)) for a, b in zip(outputs, expected)]
    if w.compare == "share":
        worst = max(float(np.mean(a != b)) for a, b in pairs)
    elif w.compare == "update":
        parameters = [None, *w.inputs()[: w.params], *[None] * len(pairs)]
        worst = max(_update(a, b, p) for (a, b), p in zip(pairs, parameters))
    else:
        worst = max(float(np.max(np.abs(a - b), initial=0.0)) / max(float(np.max(np.abs(b), initial=0.0)), 1e-30) for a, b in pairs)
    return worst if worst == worst else float("inf")


def _update(a: np.ndarray, b: np.ndarray, before: Any) -> float:
    """Norm of the difference against the norm of what was added to `before`: a ReLU that flips spoils one element, not the norm."""
    size = b if before is None else b - before
    slack = 0.0 if before is None else ROUNDING * float(np.abs(before).max()) * b.size**0.5
    return max(0.0, float(np.linalg.norm(a - b)) - slack) / max(float(np.linalg.norm(size)), 1e-30)
