"""`gradir.random` against numbers that jax.random drew: bits, uniforms, integers and orders exactly, the rest within ulps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.ir.text import parse_module
from gradir.reference import run
from tests.frontends.jax_random import CHANCES, LOGITS, RANGES, ROWS, TARGET, UPPER, drawn

GOLDEN = dict(np.load(TARGET))
KEY = np.array([0, 1234567], np.uint32)
r = gd.random

EXACT: dict[str, Callable[[Any], Any]] = {
    "split": r.split,
    "fold_in": lambda key: r.fold_in(key, 7),
    "bernoulli": lambda key: r.bernoulli(key, CHANCES),
    "categorical": lambda key: r.categorical(key, LOGITS, axis=1),
    "categorical_shape": lambda key: r.categorical(key, LOGITS[0], shape=(6, 4)),
    "permutation_17": lambda key: r.permutation(key, 17),
    "permutation_rows": lambda key: r.permutation(key, ROWS),
    "permutation_independent": lambda key: r.permutation(key, ROWS, axis=1, independent=True),
    "permutation_2000": lambda key: r.permutation(key, 2000),
    **{f"bits_{name}": lambda key, name=name: r.bits(key, (3, 5), name) for name in ("uint8", "uint16", "uint32", "uint64")},
    **{f"uniform_{name}": lambda key, name=name: r.uniform(key, (3, 7), name) for name in ("float16", "bfloat16", "float32", "float64")},
    **{
        f"range_{name}": lambda key, name=name: r.uniform(key, (100,), name, -3.3, 7.1)
        for name in ("float16", "bfloat16", "float32", "float64")
    },
    **{f"randint_{name}_{a}_{b}": lambda key, name=name, a=a, b=b: r.randint(key, (40,), a, b, name) for name, a, b in RANGES},
}
CLOSE: dict[str, Callable[[Any], Any]] = {
    "truncated_normal": lambda key: r.truncated_normal(key, -1.0, UPPER),
    **{f"normal_{name}": lambda key, name=name: r.normal(key, (64,), name) for name in ("float32", "float64")},
    **{f"exponential_{name}": lambda key, name=name: r.exponential(key, (64,), name) for name in ("float32", "float64")},
    **{f"gumbel_{name}": lambda key, name=name: r.gumbel(key, (64,), name) for name in ("float32", "float64")},
}


def eagerly(function: Callable[[Any], Any]) -> np.ndarray:
    return np.asarray(function(gd.asarray(KEY)).concrete)


def compiled(function: Callable[[Any], Any]) -> np.ndarray:
    return np.asarray(gd.jit(lambda key: function(key))(KEY))


@pytest.mark.parametrize("way", [eagerly, compiled])
@pytest.mark.parametrize("name", EXACT)
def test_exactly_as_jax(name: str, way: Callable[..., np.ndarray]) -> None:
    found = way(EXACT[name])
    expected = GOLDEN[name]
    assert found.dtype == expected.dtype or expected.dtype in (np.float64, np.int64)
    np.testing.assert_array_equal(found.astype(expected.dtype), expected)


@pytest.mark.parametrize("way", [eagerly, compiled])
@pytest.mark.parametrize("name", CLOSE)
def test_within_ulps_of_jax(name: str, way: Callable[..., np.ndarray]) -> None:
    expected = GOLDEN[name]
    ulp = np.finfo(expected.dtype).eps
    np.testing.assert_allclose(way(CLOSE[name]), expected, rtol=64 * ulp, atol=4 * ulp)


def test_keys() -> None:
    np.testing.assert_array_equal([r.key(seed).concrete for seed in (0, 1, 42, -1)], GOLDEN["key"])
    np.testing.assert_array_equal([r.key(np.int64(seed)).concrete for seed in (0, 5, 1 << 40)], GOLDEN["key64"])
    np.testing.assert_array_equal(r.split(r.key(0), (2, 3)).concrete, GOLDEN["split_2_3"])
    np.testing.assert_array_equal(gd.jit(r.key)(np.int32(42)), [0, 42])


def test_words_that_docs_numerics_names() -> None:
    assert [hex(n) for n in r.bits(r.key(0), (4,)).concrete] == ["0xf29a4fa7", "0xfa843692", "0x55110e28", "0x77faa835"]
    words = ", ".join(f"%r{k}" for k in range(4))
    module = parse_module(
        f"func.func @f(%k: tensor<2xui32>, %c: tensor<ui32>) -> (tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>) {{\n"
        f"  {words} = nd.philox4x32 %k, %c, %c, %c, %c : tensor<2xui32>, tensor<ui32>\n"
        f"  return {words} : tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>\n}}\n"
    )
    found = run(module, "f", [np.zeros(2, np.uint32), np.uint32(0)])
    assert [hex(int(n)) for n in found] == ["0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"]


def test_jax_still_draws_these() -> None:
    pytest.importorskip("jax")
    for name, value in drawn().items():
        np.testing.assert_array_equal(value, GOLDEN[name], err_msg=name)


def test_dropout() -> None:
    x = np.ones((50, 40), np.float32)
    for rate in (0.25, 0.9):
        y = np.asarray(gd.jit(lambda key, x, rate=rate: r.dropout(key, x, rate))(KEY, x))
        assert set(np.unique(y)) == {np.float32(0), np.float32(1 / (1 - rate))}
        assert abs((y == 0).mean() - rate) < 0.05
    slope = gd.jit(gd.grad(lambda x, key: gd.sum(r.dropout(key, x, 0.25))))(x, KEY)
    np.testing.assert_array_equal(slope, eagerly(lambda key: r.dropout(key, x, 0.25)))
    assert eagerly(lambda key: r.dropout(key, x, 0)).tolist() == x.tolist()
    assert not eagerly(lambda key: r.dropout(key, x, 1)).any()
    assert eagerly(lambda key: r.dropout(key, x, 0.5, deterministic=True)).all()


def test_a_range_and_sizes_of_nothing() -> None:
    u = eagerly(lambda key: r.uniform(key, (1000,), minval=-3.5, maxval=7.25))
    assert u.min() >= -3.5
    assert u.max() < 7.25
    assert abs(u.mean() - 1.875) < 0.3
    assert eagerly(lambda key: r.normal(key, (0, 3))).shape == (0, 3)
    assert eagerly(lambda key: r.permutation(key, 1)).tolist() == [0]
    assert eagerly(lambda key: r.split(key, 0)).shape == (0, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: r.uniform(np.zeros(3, np.uint32)), "key"),
        (lambda: r.uniform(r.key(0), dtype=np.int32), "floating-point"),
        (lambda: r.bits(r.key(0), (), np.int32), "uint8"),
        (lambda: r.key(1.5), "rank-0 integer"),
        (lambda: r.fold_in(r.key(0), np.zeros(2)), "rank-0 integer"),
        (lambda: r.randint(r.key(0), (2,), 0.5, 2), "integer bounds"),
        (lambda: r.randint(r.key(0), (2,), 0, 2, np.float32), "integer dtype"),
        (lambda: r.categorical(r.key(0), LOGITS, shape=(3,)), "a shape that ends in"),
        (lambda: r.dropout(r.key(0), LOGITS, 2), "rate"),
    ],
)
def test_bad_arguments(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(gd.GradirError) as caught:
        call()
    assert caught.value.code == "GR116"
    assert message in caught.value.expected
