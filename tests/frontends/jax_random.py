"""Writes `jax_random.npz`, numbers that jax.random draws: `python -m tests.frontends.jax_random` where jax is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

TARGET = Path(__file__).with_suffix(".npz")
RANGES = (
    ("int32", -5, 17),
    ("int8", -128, 128),
    ("uint8", 0, 256),
    ("int64", -(1 << 40), 1 << 41),
    ("uint32", 3, 3),
    ("int16", 5, -5),
    ("int32", -(1 << 31), 1 << 31),
)
LOGITS = np.sin(np.arange(60, dtype=np.float32)).reshape(5, 4, 3) * 3
CHANCES = np.linspace(0, 1, 40, dtype=np.float32)
UPPER = np.linspace(-0.5, 2, 64, dtype=np.float32)
ROWS = np.arange(24).reshape(6, 4)


def drawn() -> dict[str, np.ndarray[Any, Any]]:
    """Name -> what jax.random gives, 64-bit types enabled."""
    import jax
    import jax.random as jr

    with jax.enable_x64(True):
        zero, key = jr.key(0), jr.key(1234567)
        found: dict[str, Any] = {
            "key": np.stack([jr.key_data(jr.key(np.int32(seed))) for seed in (0, 1, 42, -1)]),
            "key64": np.stack([jr.key_data(jr.key(np.int64(seed))) for seed in (0, 5, 1 << 40)]),
            "split": jr.key_data(jr.split(key)),
            "split_2_3": jr.key_data(jr.split(zero, (2, 3))),
            "fold_in": jr.key_data(jr.fold_in(key, 7)),
            "truncated_normal": jr.truncated_normal(key, -1.0, UPPER, dtype="float32"),
            "bernoulli": jr.bernoulli(key, CHANCES),
            "categorical": jr.categorical(key, LOGITS, axis=1),
            "categorical_shape": jr.categorical(key, LOGITS[0], axis=-1, shape=(6, 4)),
            "permutation_17": jr.permutation(key, 17),
            "permutation_rows": jr.permutation(key, ROWS),
            "permutation_independent": jr.permutation(key, ROWS, axis=1, independent=True),
            "permutation_2000": jr.permutation(key, 2000),
        }
        for name in ("uint8", "uint16", "uint32", "uint64"):
            found[f"bits_{name}"] = jr.bits(key, (3, 5), name)
        for name in ("float16", "bfloat16", "float32", "float64"):
            found[f"uniform_{name}"] = np.asarray(jr.uniform(key, (3, 7), name)).astype(np.float64)
            found[f"range_{name}"] = np.asarray(jr.uniform(key, (100,), name, -3.3, 7.1)).astype(np.float64)
        for name in ("float32", "float64"):
            found[f"normal_{name}"] = jr.normal(key, (64,), name)
            found[f"exponential_{name}"] = jr.exponential(key, (64,), name)
            found[f"gumbel_{name}"] = jr.gumbel(key, (64,), name)
        for name, low, high in RANGES:
            found[f"randint_{name}_{low}_{high}"] = jr.randint(key, (40,), low, high, name)
    return {name: np.asarray(value) for name, value in found.items()}


if __name__ == "__main__":
    np.savez_compressed(TARGET, **drawn())
