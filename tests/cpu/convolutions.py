"""Convolutions and their derivatives as sums over the window's positions, in f64: the oracle of the convolution kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Geometry:
    """x [N, spatial.., C], w [window.., C / groups, O]; a tuple each for strides, dilations and (low, high) paddings."""

    space: tuple[int, ...]
    window: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    dilations: tuple[int, ...]
    spread: tuple[int, ...]
    """Distance between neighbours of x (`lhs_dilation`)."""
    batch: int
    channels: int
    features: int
    groups: int = 1

    @property
    def x_shape(self) -> tuple[int, ...]:
        return (self.batch, *self.space, self.channels)

    @property
    def w_shape(self) -> tuple[int, ...]:
        return (*self.window, self.channels // self.groups, self.features)

    @property
    def wide(self) -> tuple[int, ...]:
        """The padded, spread input."""
        between = (max(0, (n - 1) * d + 1) for n, d in zip(self.space, self.spread))
        return tuple(n + low + high for n, (low, high) in zip(between, self.padding))

    @property
    def out(self) -> tuple[int, ...]:
        reach = ((k - 1) * d + 1 for k, d in zip(self.window, self.dilations))
        return tuple(max(0, (n - r) // s + 1) if n >= r else 0 for n, r, s in zip(self.wide, reach, self.strides))

    @property
    def out_shape(self) -> tuple[int, ...]:
        return (self.batch, *self.out, self.features)


def _pairs(g: Geometry) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
    """(position in the result, in the window, in x) of all products that are not with a zero of the padding."""
    for o in product(*map(range, g.out)):
        for k in product(*map(range, g.window)):
            at = [a * s + b * d - low for a, s, b, d, (low, _) in zip(o, g.strides, k, g.dilations, g.padding)]
            if all(i % d == 0 and 0 <= i // d < n for i, d, n in zip(at, g.spread, g.space)):
                yield o, k, tuple(i // d for i, d in zip(at, g.spread))


def forward(g: Geometry, x: Array, w: Array) -> Array:
    """The convolution."""
    y = np.zeros((*g.out_shape[:-1], g.groups, g.features // g.groups))
    xs = x.reshape(*x.shape[:-1], g.groups, g.channels // g.groups)
    ws = w.reshape(*w.shape[:-1], g.groups, g.features // g.groups)
    for o, k, i in _pairs(g):
        y[:, *o] += np.einsum("ngc,cgf->ngf", xs[:, *i], ws[k])
    return y.reshape(g.out_shape)


def backward(g: Geometry, x: Array, w: Array, ct: Array) -> tuple[Array, Array]:
    """Cotangents of x and w."""
    xs = x.reshape(*x.shape[:-1], g.groups, g.channels // g.groups)
    ws = w.reshape(*w.shape[:-1], g.groups, g.features // g.groups)
    cts = ct.reshape(*ct.shape[:-1], g.groups, g.features // g.groups)
    dx, dw = np.zeros(xs.shape), np.zeros(ws.shape)
    for o, k, i in _pairs(g):
        dx[:, *i] += np.einsum("ngf,cgf->ngc", cts[:, *o], ws[k])
        dw[k] += np.einsum("ngc,ngf->cgf", xs[:, *i], cts[:, *o])
    return dx.reshape(x.shape), dw.reshape(w.shape)


def random_geometry(rng: np.random.Generator, rank: int) -> Geometry:
    """Odd sizes, strides, dilations, paddings (negative ones too) and groups, with a result of at least one position."""
    while True:

        def numbers(low: int, high: int) -> tuple[int, ...]:
            return tuple(int(v) for v in rng.integers(low, high + 1, rank))

        groups = int(rng.choice([1, 1, 1, 2, 3]))
        found = Geometry(
            space=numbers(1, 12 if rank < 3 else 5),
            window=numbers(1, 4),
            strides=numbers(1, 3),
            padding=tuple(zip(numbers(-1, 3), numbers(-1, 3))),
            dilations=numbers(1, 2),
            spread=numbers(1, 2) if rng.random() < 0.3 else (1,) * rank,
            batch=int(rng.integers(1, 4)),
            channels=groups * int(rng.integers(1, 18 // groups)),
            features=groups * int(rng.integers(1, 18 // groups)),
            groups=groups,
        )
        if min(found.wide) > 0 and min(found.out) > 0:
            return found
