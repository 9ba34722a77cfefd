"""The digits: 1797 images of 8x8 pixels in 0..1, split by one fixed shuffle."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

TEST_IMAGES = 360
SHUFFLE_SEED = 0


@dataclass(frozen=True)
class Digits:
    """`x` arrays are f32 [n, 64] in 0..1, `y` arrays i32 [n]."""

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray


def load() -> Digits:
    """The first 360 of the shuffled images are the test set."""
    table = np.loadtxt(Path(__file__).with_name("digits.csv.gz"), delimiter=",", dtype=np.float32)
    order = np.random.default_rng(SHUFFLE_SEED).permutation(len(table))
    x, y = table[order, :64] / np.float32(16), table[order, 64].astype(np.int32)
    return Digits(x[TEST_IMAGES:], y[TEST_IMAGES:], x[:TEST_IMAGES], y[:TEST_IMAGES])


def shifted(images: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Each image [n, 64] moved by -1, 0 or 1 pixels in both directions."""
    padded = np.pad(images.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    down, right = rng.integers(0, 3, (2, len(images)))
    rows, columns = down[:, None, None] + np.arange(8)[:, None], right[:, None, None] + np.arange(8)
    return np.ascontiguousarray(padded[np.arange(len(images))[:, None, None], rows, columns].reshape(-1, 64))
