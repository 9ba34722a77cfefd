"""Convolutions and their derivatives, compiled, against sums in f64: random geometries, layouts, element types, sizes of 0."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import gradir as gd
from tests.cpu.convolutions import Array, Geometry, backward, forward, random_geometry

EPS = {"float32": 2.0**-24, "float64": 2.0**-53}


def arrays(g: Geometry, dtype: Any, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    return tuple(rng.standard_normal(shape).astype(dtype) for shape in (g.x_shape, g.w_shape, g.out_shape))  # pyright: ignore[reportReturnType]


def conv(g: Geometry, x: Any, w: Any) -> Any:
    return gd.conv(x, w, g.strides, list(g.padding), g.dilations, g.groups, lhs_dilation=g.spread)


def with_gradients(g: Geometry, nchw: bool = False) -> Any:
    """(y, dx, dw) of a convolution; `nchw`: with the channels of all tensors first."""
    rank = len(g.space)
    back, first = (0, *range(2, rank + 2), 1), (0, rank + 1, *range(1, rank + 1))

    def plain(x: Any, w: Any) -> Any:
        return conv(g, x, w)

    def channels_first(x: Any, w: Any) -> Any:
        return gd.transpose(conv(g, gd.transpose(x, back), gd.transpose(w, (*range(2, rank + 2), 1, 0))), first)

    def f(x: Any, w: Any, ct: Any) -> Any:
        y, pull = gd.vjp(channels_first if nchw else plain, x, w)
        return (y, *pull(ct))

    return gd.jit(f, cache=False)


def check(g: Geometry, got: Any, x: Array, w: Array, ct: Array, eps: float) -> None:
    """Within K eps sum(abs(a * b)) of the exact sums, K the number of products (docs/numerics.md)."""
    x, w, ct = (np.asarray(a, np.float64) for a in (x, w, ct))
    exact = (forward(g, x, w), *backward(g, x, w, ct))
    size = (forward(g, abs(x), abs(w)), *backward(g, abs(x), abs(w), abs(ct)))
    window, positions = int(np.prod(g.window)), int(np.prod(g.out))
    counts = (window * g.channels // g.groups, window * g.features // g.groups, g.batch * positions)
    for name, a, b, s, count in zip(("y", "dx", "dw"), got, exact, size, counts):
        a = np.asarray(a).astype(np.float64)
        assert a.shape == b.shape, name
        assert np.all(abs(a - b) <= max(count, 1) * eps * s + 1e-300), f"{name} of {g}: {np.max(abs(a - b))}"


@pytest.mark.parametrize("seed", range(6))
def test_random_geometry(seed: int) -> None:
    rng = np.random.default_rng(seed)
    g = random_geometry(rng, 1 + seed % 3)
    x, w, ct = arrays(g, np.float32)
    check(g, with_gradients(g)(x, w, ct), x, w, ct, EPS["float32"])


@pytest.mark.full
@pytest.mark.parametrize("seed", range(6, 150))
def test_more_random_geometries(seed: int) -> None:
    rng = np.random.default_rng(seed)
    g = random_geometry(rng, 1 + seed % 3)
    dtype = np.float64 if seed % 4 == 0 else np.float32
    x, w, ct = arrays(g, dtype)
    check(g, with_gradients(g)(x, w, ct), x, w, ct, EPS[np.dtype(dtype).name])


NETWORKS = [
    Geometry((16, 17), (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1), 2, 8, 16),
    Geometry((16, 16), (3, 3), (2, 2), ((1, 1), (1, 1)), (1, 1), (1, 1), 1, 3, 12),
    Geometry((9, 33), (1, 1), (2, 2), ((0, 0), (0, 0)), (1, 1), (1, 1), 2, 5, 17),
    Geometry((38, 37), (3, 3), (1, 2), ((1, 2), (3, 1)), (1, 1), (1, 1), 1, 11, 9),
]


@pytest.mark.parametrize("g", NETWORKS, ids=["3x3", "3x3 stride 2", "1x1 stride 2", "edges of a large frame"])
def test_channels_first(g: Geometry) -> None:
    """The layout of most models: transposes around the convolution become maps of its kernel, or of copies around it."""
    x, w, ct = arrays(g, np.float32)
    first = (0, 3, 1, 2)
    inputs = [np.ascontiguousarray(a.transpose(p)) for a, p in ((x, first), (w, (3, 2, 0, 1)), (ct, first))]
    y, dx, dw = (np.asarray(a) for a in with_gradients(g, nchw=True)(*inputs))
    back = (0, 2, 3, 1)
    check(g, (y.transpose(back), dx.transpose(back), dw.transpose((2, 3, 1, 0))), x, w, ct, EPS["float32"])


SHORT_LINES = [
    Geometry((7, 7), (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1), 2, 5, 20),
    Geometry((13, 15), (3, 3), (2, 2), ((1, 0), (1, 2)), (1, 2), (1, 1), 1, 4, 33),
    Geometry((4, 8, 4), (1, 3, 2), (1, 1, 1), ((0, 0), (1, 1), (1, 0)), (1, 1, 1), (1, 1, 1), 1, 3, 16),
]


@pytest.mark.parametrize("g", SHORT_LINES, ids=["7 x 7", "with strides and dilation", "3-D"])
@pytest.mark.parametrize("after", ["nothing", "a sum", "a polynomial"])
def test_tiles_across_the_ends_of_lines(g: Geometry, after: str) -> None:
    """Lines shorter than a tile is high: its rows are positions of several lines, stored one by one after what follows the sum."""
    x, w, ct = arrays(g, np.float32)
    bias = np.linspace(-1, 1, g.features, dtype=np.float32)
    functions: dict[str, Any] = {
        "nothing": lambda y, r: y,
        "a sum": lambda y, r: gd.relu(y + bias) + r,
        "a polynomial": lambda y, r: gd.tanh(y + bias),
    }
    got = gd.jit(lambda x, w, r: functions[after](conv(g, x, w), r), cache=False)(x, w, ct)
    y = forward(g, *(a.astype(np.float64) for a in (x, w)))
    exact = {"nothing": y, "a sum": np.maximum(y + bias, 0) + ct, "a polynomial": np.tanh(y + bias)}[after]
    np.testing.assert_allclose(got, exact, rtol=1e-5, atol=1e-4)


TURNED = [
    Geometry((20, 29), (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1), 2, 8, 27),
    Geometry((7, 7), (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1), 1, 9, 33),
    Geometry((15, 15), (3, 2), (2, 1), ((0, 1), (1, 0)), (1, 1), (1, 1), 2, 8, 8),
]


@pytest.mark.parametrize("g", TURNED, ids=["lines", "across lines", "strides"])
@pytest.mark.parametrize("after", ["nothing", "a sum", "a polynomial"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_results_with_channels_first_are_turned_in_the_kernel(g: Geometry, after: str, dtype: Any) -> None:
    """Tiles of positions and channels are squares of channels and positions when they are stored, and what follows is computed on those."""
    x, w, r = arrays(g, dtype)
    bias = np.linspace(-1, 1, g.features).astype(dtype).reshape(-1, 1, 1)
    first, back = (0, 3, 1, 2), (0, 2, 3, 1)
    functions: dict[str, Any] = {
        "nothing": lambda y, r: y,
        "a sum": lambda y, r: gd.relu(y + bias) + r,
        "a polynomial": lambda y, r: gd.tanh(y + bias),
    }

    def f(x: Any, w: Any, r: Any) -> Any:
        return functions[after](gd.transpose(conv(g, gd.transpose(x, back), gd.transpose(w, (2, 3, 1, 0))), first), r)

    x1, w1, r1 = (np.ascontiguousarray(a.transpose(p)) for a, p in ((x, first), (w, (3, 2, 0, 1)), (r, first)))
    one, two = (np.asarray(gd.jit(f, cache=False, threads=threads)(x1, w1, r1)) for threads in (1, 2))
    y = forward(g, *(a.astype(np.float64) for a in (x, w))).transpose(first)
    exact = {"nothing": y, "a sum": np.maximum(y + bias, 0) + r1, "a polynomial": np.tanh(y + bias)}[after]
    np.testing.assert_allclose(one, exact, rtol=1e-5, atol=1e-4)
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["f16", "bf16"])
def test_narrow_elements(dtype: Any) -> None:
    """Products and sums in f32, one rounding at the end."""
    g = NETWORKS[0]
    x, w, ct = arrays(g, dtype)
    exact = (forward(g, *(a.astype(np.float64) for a in (x, w))), *backward(g, *(a.astype(np.float64) for a in (x, w, ct))))
    for a, b in zip(with_gradients(g)(x, w, ct), exact):
        np.testing.assert_allclose(np.asarray(a).astype(np.float64), b, rtol=2.0**-7, atol=2.0**-7)


@pytest.mark.parametrize(
    "g",
    [
        Geometry((4, 4), (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1), 0, 3, 4),
        Geometry((4, 4), (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1), 2, 0, 4),
        Geometry((4, 4), (3, 3), (2, 1), ((1, 1), (1, 1)), (1, 1), (1, 1), 2, 3, 0),
        Geometry((2, 5), (3, 3), (1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1), 2, 3, 4),
    ],
    ids=["no images", "no channels", "no features", "no positions"],
)
def test_sizes_of_zero(g: Geometry) -> None:
    x, w, ct = arrays(g, np.float32)
    check(g, with_gradients(g)(x, w, ct), x, w, ct, EPS["float32"])


@pytest.mark.parametrize(("batch", "size"), [(2, 9), (3, 29)], ids=["small", "frames of edges"])
def test_a_small_network_keeps_its_values(batch: int, size: int) -> None:
    """Convolutions, normalisation over all but the channels, a residual sum and a pooled mean, channels first, with gradients."""

    def layer(x: Any, w: Any) -> Any:
        y = gd.transpose(gd.conv(gd.transpose(x, (0, 2, 3, 1)), gd.transpose(w, (2, 3, 1, 0)), 1, [(1, 1), (1, 1)]), (0, 3, 1, 2))
        return (y - gd.reshape(gd.mean(y, (0, 2, 3)), (1, -1, 1, 1))) / gd.reshape(gd.sqrt(gd.var(y, (0, 2, 3)) + 1e-3), (1, -1, 1, 1))

    def loss(w0: Any, w1: Any, x: Any) -> Any:
        y = gd.relu(layer(x, w0))
        y = gd.relu(y + layer(y, w1))
        return gd.sum(gd.mean(y, (2, 3)) ** 2)

    def f(w0: Any, w1: Any, x: Any) -> Any:
        value, gradients = gd.value_and_grad(loss, (0, 1))(w0, w1, x)
        return (value, *gradients)

    rng = np.random.default_rng(3)
    inputs = [rng.standard_normal(s) for s in ((8, 3, 3, 3), (8, 8, 3, 3), (batch, 3, size, size + 1))]
    exact = gd.compile(gd.jit(f).lower(*inputs), target="reference")["f"](*inputs)
    for a, b in zip(gd.jit(f, cache=False)(*(a.astype(np.float32) for a in inputs)), exact):
        np.testing.assert_allclose(np.asarray(a), b, rtol=2e-4, atol=2e-4)
