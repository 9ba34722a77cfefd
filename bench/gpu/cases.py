"""The cases of the GPU's bench: lists for correctness (several sizes, a reference in numpy) and for speed (a peer, flops and bytes).

`scale` "tiny" is what the emulator runs in a second, "full" is for a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import erf
from typing import Any, Literal

import ml_dtypes
import numpy as np

import gradir as gd

Array = np.ndarray[Any, Any]
Scale = Literal["tiny", "full"]
BF16 = np.dtype(ml_dtypes.bfloat16)
F32, F16, I32 = np.dtype(np.float32), np.dtype(np.float16), np.dtype(np.int32)
NAMES = {F32: "f32", F16: "f16", BF16: "bf16"}
TOLERANCE = {F32: 2e-4, F16: 1e-2, BF16: 4e-2}


@dataclass(frozen=True, eq=False)
class Case:
    """One program on given shapes. `reference` takes and gives f64 arrays; without one the CPU target is the reference.

    `flops` and `moved` are the least work of a call; `peer` names a function of `bench.gpu.peers`, `group` the table that the case is in.
    """

    name: str
    group: str
    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[np.dtype[Any], ...]
    reference: Callable[..., Any] | None = None
    flops: float = 0.0
    moved: float = 0.0
    peer: str = ""
    high: int = 7
    scaling: float = 1.0
    tolerance: float = 0.0
    element: str = "f32"
    options: dict[str, Any] = field(default_factory=dict[str, Any])

    def inputs(self) -> list[Array]:
        """Random arrays: floats around 0, whole numbers below `high`."""
        random = np.random.default_rng(sum(map(ord, self.name)))
        return [
            random.integers(0, self.high, shape).astype(dtype)
            if dtype.kind in "iu"
            else (random.standard_normal(shape) * self.scaling).astype(dtype)
            for shape, dtype in zip(self.shapes, self.dtypes, strict=True)
        ]

    @property
    def error(self) -> float:
        """The largest difference allowed, relative to the largest value."""
        return self.tolerance or max(TOLERANCE.get(dtype, 0.0) for dtype in self.dtypes)


def _product(a: Any, b: Any) -> Any:
    return gd.matmul(a, b, preferred_element_type=gd.float32).astype(a.dtype)


def _epilogue(a: Any, b: Any, c: Any) -> Any:
    return gd.gelu(gd.matmul(a, b) + c)


def _gelu(x: Array) -> Array:
    return 0.5 * x * (1 + np.vectorize(erf)(x / 2**0.5)) if x.size else x


def _softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True, initial=-np.inf))
    return e / e.sum(-1, keepdims=True)


def _layer_norm(x: Array, g: Array, b: Array) -> Array:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * g + b


def _attention(*qkv: Array) -> Array:
    """Of [batch, time, heads, depth]."""
    q, k, v = (np.swapaxes(x, 1, 2) for x in qkv)
    s = q @ np.swapaxes(k, -1, -2) / q.shape[-1] ** 0.5
    out = _softmax(np.where(np.tril(np.ones(s.shape[-2:], bool)), s, -np.inf)) @ v
    return np.swapaxes(out, 1, 2)


def _causal(q: Any, k: Any, v: Any) -> Any:
    return gd.attention(q, k, v, causal=True)


def _attention_gradient(q: Any, k: Any, v: Any) -> Any:
    return gd.grad(lambda q, k, v: gd.sum(_causal(q, k, v) * v), argnums=(0, 1, 2))(q, k, v)


def _convolution(x: Any, w: Any) -> Any:
    return gd.conv(x, w, padding="SAME")


def _convolution_gradient(x: Any, w: Any) -> Any:
    return gd.grad(lambda x, w: gd.sum(gd.square(_convolution(x, w))), argnums=(0, 1))(x, w)


def _scaled(x: Any) -> Any:
    return x * 2.0 + 1.0


def gemm(m: int, n: int, k: int, dtype: np.dtype[Any] = F32) -> Case:
    """A product of matrices."""
    size = dtype.itemsize
    return Case(
        f"{NAMES[dtype]} {m}x{n}x{k}", "gemm", _product, ((m, k), (k, n)), (dtype, dtype), np.matmul, 2.0 * m * n * k,
        size * (m * k + k * n + m * n), "matmul", scaling=k**-0.25, element=NAMES[dtype],
    )  # fmt: skip


def attention(b: int, h: int, t: int, d: int, dtype: np.dtype[Any], *, gradient: bool = False) -> Case:
    """Causal attention, or its three derivatives."""
    shape = (b, t, h, d)
    moved = (7.0 if gradient else 4.0) * dtype.itemsize * b * h * t * d
    work = 4.0 * b * h * t * t * d / 2 * (3.5 if gradient else 1.0)
    name = f"{NAMES[dtype]} {'backward ' if gradient else ''}{b}x{h}x{t}x{d}"
    function, reference = (_attention_gradient, None) if gradient else (_causal, _attention)
    return Case(
        name, "attention", function, (shape,) * 3, (dtype,) * 3, reference, work, moved,
        "attention_gradient" if gradient else "attention", tolerance=3 * TOLERANCE[dtype], element=NAMES[dtype],
    )  # fmt: skip


def convolution(n: int, size: int, c: int, o: int, kernel: int, *, gradient: bool = False) -> Case:
    """A convolution in NHWC, or its two derivatives."""
    work = 2.0 * n * size * size * c * o * kernel * kernel * (3.0 if gradient else 1.0)
    moved = 4.0 * (n * size * size * (c + o) + kernel * kernel * c * o) * (2.0 if gradient else 1.0)
    name = f"f32 {'gradients ' if gradient else ''}{n}x{size}x{size}x{c} -> {o}, {kernel}x{kernel}"
    function = _convolution_gradient if gradient else _convolution
    return Case(
        name, "convolution", function, ((n, size, size, c), (kernel, kernel, c, o)), (F32, F32), None, work, moved,
        "convolution_gradient" if gradient else "convolution", scaling=(kernel * kernel * c) ** -0.25, tolerance=1e-3,
    )  # fmt: skip


def memory(rows: int, columns: int) -> list[Case]:
    """What moves bytes and computes little."""
    n = rows * columns
    shape = (rows, columns)

    def row(name: str, function: Any, reference: Any, moved: float, *, more: Sequence[tuple[int, ...]] = (), peer: str = "") -> Case:
        shapes = (shape, *more)
        return Case(f"{name} {rows}x{columns}", "memory", function, shapes, (F32,) * len(shapes), reference, 8.0 * n, moved, peer or name)

    return [
        row("scaled", _scaled, lambda x: x * 2 + 1, 8.0 * n),
        row("added", lambda x, y: x + y, np.add, 12.0 * n, more=[shape]),
        row("gelu", gd.gelu, _gelu if n < 1 << 16 else None, 8.0 * n),
        row("transposed", lambda x: gd.transpose(x) * 1.0, np.transpose, 8.0 * n),
        row("row_sum", lambda x: gd.sum(x, axis=1), lambda x: x.sum(1), 4.0 * n),
        row("column_sum", lambda x: gd.sum(x, axis=0), lambda x: x.sum(0), 4.0 * n),
        row("total", lambda x: gd.sum(x), np.sum, 4.0 * n),
        row("softmax", gd.softmax, _softmax, 8.0 * n),
        row("layer_norm", gd.layer_norm, _layer_norm, 8.0 * n, more=[(columns,), (columns,)]),
        row("cumsum", lambda x: gd.cumsum(x, axis=1), lambda x: np.cumsum(x, 1), 8.0 * n),
    ]


def others(rows: int, columns: int) -> list[Case]:
    """Families that are checked; their speed has no peer here."""
    shape, picks = (rows, columns), (2 * rows,)
    name = f"{rows}x{columns}"
    table = {"high": rows, "group": "checked"}
    return [
        Case(f"take {name}", function=lambda t, i: gd.take(t, i, axis=0), shapes=(shape, picks), dtypes=(F32, I32), **table),
        Case(
            f"take gradient {name}", function=lambda t, i: gd.grad(lambda t: gd.sum(gd.square(gd.take(t, i, axis=0))))(t),
            shapes=(shape, picks), dtypes=(F32, I32), **table,
        ),
        Case(f"sort {name}", "checked", lambda x: gd.sort(x, axis=1), (shape,), (F32,), lambda x: np.sort(x, 1)),
        Case(f"top_k {name}", "checked", lambda x: gd.top_k(x, min(3, columns)), (shape,), (F32,)),
        Case(f"max_pool {name}", "checked", lambda x: gd.max_pool(x, 2), ((2, max(rows, 2), max(columns, 2), 3),), (F32,)),
        Case(f"column softmax {name}", "checked", lambda x: gd.softmax(x, 0), (shape,), (F32,), lambda x: _softmax(x.T).T),
        Case(f"gemm epilogue {name}", "checked", _epilogue, (shape, (columns, rows), (rows,)), (F32,) * 3),
        Case(
            f"batched {name}", "checked", gd.matmul, ((3, *shape), (3, columns, 5)), (F32, F32), np.matmul, scaling=max(1, columns) ** -0.25
        ),
        Case(
            f"turned {name}", "checked", lambda a, b: gd.matmul(gd.transpose(a), b), (shape, (rows, 9)), (F32, F32),
            lambda a, b: a.T @ b, scaling=max(1, rows) ** -0.25,
        ),
    ]  # fmt: skip


def checked(scale: Scale) -> list[Case]:
    """Every kernel family: sizes that vectors divide, odd ones, several blocks with a rest, one."""
    sizes = [(5, 7), (1, 1), (32, 64)] if scale == "tiny" else [(64, 256), (37, 101), (1, 1), (130, 1030), (513, 4099)]
    found = [case for rows, columns in sizes for case in (*memory(rows, columns), *others(rows, columns))]
    products = [(16, 8, 16), (5, 7, 9)] if scale == "tiny" else [(128, 256, 64), (5, 7, 9), (1, 1, 1), (257, 130, 515), (1024, 1024, 1024)]
    found += [gemm(*size, dtype) for size in products for dtype in (F32, BF16, F16)]
    if scale == "tiny":
        found += [attention(1, 2, 6, 8, F32), attention(1, 1, 5, 8, F32, gradient=True), convolution(1, 5, 3, 4, 3)]
        return [*found, convolution(1, 4, 2, 3, 3, gradient=True)]
    for dtype in (F32, BF16, F16):
        found += [attention(2, 3, t, 64, dtype) for t in (64, 77, 256)] + [attention(1, 2, 130, 64, dtype, gradient=True)]
    found += [convolution(*size) for size in ((4, 32, 32, 64, 3), (3, 17, 5, 9, 3), (8, 14, 64, 64, 1))]
    return [*found, convolution(4, 16, 8, 16, 3, gradient=True)]


def timed(scale: Scale) -> list[Case]:
    """What the tables show."""
    if scale == "tiny":
        return [
            gemm(16, 8, 16), gemm(16, 16, 16, BF16), *memory(8, 64), attention(1, 1, 8, 8, F32), convolution(1, 4, 2, 3, 3),
        ]  # fmt: skip
    found = [gemm(n, n, n, dtype) for dtype in (BF16, F16, F32) for n in (512, 1024, 2048, 4096, 8192)]
    found += [
        gemm(m, n, k, BF16)
        for m, n, k in ((4096, 12288, 4096), (8192, 4096, 14336), (2048, 2304, 768), (16, 4096, 4096), (128, 8192, 8192), (4096, 64, 4096))
    ]
    found += [*memory(8192, 8192), *memory(65536, 512)]
    found += [attention(8, 16, t, 64, BF16) for t in (512, 2048)] + [attention(4, 16, 1024, 128, BF16, gradient=True)]
    found += [convolution(64, 56, 64, 64, 3), convolution(64, 28, 128, 128, 3), convolution(64, 14, 256, 256, 3)]
    return [*found, convolution(32, 28, 128, 128, 3, gradient=True)]
