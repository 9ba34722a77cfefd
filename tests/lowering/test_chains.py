"""Chains of stages over rows (attention and its gradient), compiled, against the definitions of the ops."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import gradir as gd
from gradir.dialects.upstream.func import FuncOp
from gradir.driver.lower import lower

BF16 = ml_dtypes.bfloat16


def inputs(batch: int, rows: int, keys: int, heads: int, shared: int, depth: int, width: int, dtype: Any) -> list[Any]:
    rng = np.random.default_rng(0)
    shapes = [(batch, rows, heads, depth), (batch, keys, shared, depth), (batch, keys, shared, width)]
    return [rng.standard_normal(s).astype(dtype) for s in shapes]


def kernels(function: Any, *args: Any, threads: int = 1) -> list[str]:
    """Kinds of the kernels of a function, one a kernel, for the machine of the tests."""
    module = lower(gd.jit(function, cache=False).lower(*args), target="cpu:x86-64-v3", threads=threads, last="structured")
    return [
        f.attributes["gradir.kernel"].name.removeprefix("kernel.")
        for f in module.ops
        if isinstance(f, FuncOp) and "gradir.kernel" in f.attributes
    ]


def plain(q: Any, k: Any, v: Any, mask: Any = None, causal: bool = False) -> Any:
    """Attention in f64."""
    q, k, v = (np.asarray(x, np.float64) for x in (q, k, v))
    times = q.shape[2] // k.shape[2]
    s = np.einsum("bihd,bjhd->bhij", q, np.repeat(k, times, 2)) * q.shape[3] ** -0.5
    if causal:
        s = np.where(np.tri(*s.shape[2:], dtype=bool), s, -np.inf)
    if mask is not None:
        s = np.where(mask, s, -np.inf)
    top = np.maximum(s.max(-1, keepdims=True), -1e300)
    p = np.exp(s - top)
    return np.einsum("bhij,bjhe->bihe", p / np.maximum(p.sum(-1, keepdims=True), 0.5), np.repeat(v, times, 2))


SIZES = [
    (2, 128, 300, 4, 4, 16, 16),  # cross attention
    (1, 257, 257, 4, 2, 8, 12),  # groups of heads, a prime number of rows
    (3, 61, 1100, 2, 1, 5, 7),  # nothing divides anything
]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(np.float32, 2e-6), pytest.param(np.float64, 1e-14, marks=pytest.mark.full), (BF16, 1e-2)],
    ids=["f32", "f64", "bf16"],
)
def test_attention_is_one_kernel_and_right(sizes: Any, dtype: Any, tolerance: float) -> None:
    q, k, v = inputs(*sizes, dtype)
    attend = lambda *x: gd.attention(*x, causal=True)
    assert "chain" in kernels(attend, q, k, v)
    found = np.asarray(gd.jit(attend, cache=False)(q, k, v)).astype(np.float64)
    np.testing.assert_allclose(found, plain(q, k, v, causal=True), atol=tolerance * 3, rtol=tolerance)


@pytest.mark.parametrize("threads", [1, 2])
def test_masks_infinities_and_nan_give_what_the_definition_gives(threads: int) -> None:
    q, k, v = inputs(2, 130, 300, 3, 3, 8, 8, np.float32)
    rng = np.random.default_rng(1)
    mask = rng.random((2, 3, 130, 300)) < 0.7
    mask[0, 1, 5] = False  # a row that sees nothing
    q[1, 7, 2, 0] = np.nan
    k[0, 9, 0, 1] = np.inf
    v[1, 11, 1, 3] = np.inf
    attend = lambda q, k, v, m: gd.attention(q, k, v, mask=m)
    assert "chain" in kernels(attend, q, k, v, mask, threads=threads)
    found = np.asarray(gd.jit(attend, threads=threads, cache=False)(q, k, v, mask))
    with np.errstate(invalid="ignore"):
        expected = plain(q, k, v, mask)
    assert not found[0, 5, 1].any()
    np.testing.assert_allclose(found, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_gradients_keep_no_scores(sizes: Any) -> None:
    q, k, v = inputs(*sizes, np.float32)
    weight = np.random.default_rng(2).standard_normal((sizes[0], sizes[1], sizes[3], sizes[6])).astype(np.float32)

    def loss(q: Any, k: Any, v: Any) -> Any:
        return gd.sum(gd.attention(q, k, v, causal=True) * weight)

    gradient = lambda *x: gd.grad(loss, (0, 1, 2))(*x)
    assert kernels(gradient, q, k, v).count("chain") >= 1
    found = gd.jit(gradient, cache=False)(q, k, v)
    exact = gd.jit(gradient, cache=False)(*(x.astype(np.float64) for x in (q, k, v)))
    for name, a, b in zip("qkv", found, exact):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), atol=2e-5, rtol=2e-5, err_msg=name)


def test_the_step_needs_no_memory_for_scores() -> None:
    q, k, v = inputs(2, 256, 256, 4, 4, 16, 16, np.float32)

    def loss(q: Any, k: Any, v: Any) -> Any:
        return gd.sum(gd.attention(q, k, v) ** 2)

    step = gd.compile(lambda *x: gd.value_and_grad(loss, (0, 1, 2))(*x), q, k, v, cache=False)
    scores = 2 * 4 * 256 * 256 * 4
    assert 0 < sum(step.report.arena_bytes.values()) < scores


def test_threads_do_not_change_a_bit() -> None:
    q, k, v = inputs(2, 200, 300, 3, 3, 8, 8, np.float32)
    one, two = (np.asarray(gd.jit(lambda *x: gd.attention(*x), threads=n, cache=False)(q, k, v)) for n in (1, 2))
    np.testing.assert_array_equal(one, two)
