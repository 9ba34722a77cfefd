"""Products of every size, layout and element type against sums in f64 (exact ones for integers), by hypothesis.

The bound is that of docs/numerics.md: |error| <= K 2^-24 sum |a b| (2^-53 for f64), plus the rounding of the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import gradir as gd

SIZES = (0, 1, 2, 3, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129)
FLOATS: dict[str, tuple[Any, float, float]] = {
    "f32": (np.float32, 2.0**-24, 0.0),
    "f64": (np.float64, 2.0**-53, 0.0),
    "f16": (np.float16, 2.0**-24, 2.0**-11),
    "bf16": (ml_dtypes.bfloat16, 2.0**-24, 2.0**-8),
}
"""Element type, the rounding of one addition, the rounding of the result."""
INTEGERS: dict[str, tuple[Any, Any]] = {"i8": (np.int8, np.int32), "u8": (np.uint8, np.int32), "i16": (np.int16, np.int32)}
RNG = np.random.default_rng(3)


@dataclass(frozen=True)
class Product:
    """`[batch, m, k] x [batch, k, n]`, each operand transposed or not, every second element of a larger array or not."""

    m: int
    n: int
    k: int
    batch: int
    turned: tuple[bool, bool]
    gaps: tuple[bool, bool]

    def operand(self, which: int, dtype: Any) -> np.ndarray:
        rows, columns = ((self.m, self.k), (self.k, self.n))[which]
        shape = (columns, rows) if self.turned[which] else (rows, columns)
        shape = (self.batch, *shape) if self.batch else shape
        wide = (*shape[:-1], 2 * shape[-1]) if self.gaps[which] else shape
        if np.dtype(dtype).kind in "iu":
            info = np.iinfo(dtype)
            return RNG.integers(info.min, info.max, wide, endpoint=True).astype(dtype)
        return RNG.standard_normal(wide).astype(dtype)

    def view(self, which: int, x: Any) -> Any:
        x = x[..., ::2] if self.gaps[which] else x
        if not self.turned[which]:
            return x
        return x.swapaxes(-1, -2) if isinstance(x, np.ndarray) else gd.swapaxes(x, -1, -2)


size = st.sampled_from(SIZES)
flag = st.booleans()
products = st.builds(
    Product, m=size, n=size, k=size, batch=st.sampled_from((0, 0, 0, 1, 3)), turned=st.tuples(flag, flag), gaps=st.tuples(flag, flag)
)


def check_floats(p: Product, dtype: str, threads: int) -> None:
    element, unit, last = FLOATS[dtype]
    a, b = p.operand(0, element), p.operand(1, element)
    got = np.asarray(gd.jit(lambda x, y: p.view(0, x) @ p.view(1, y), threads=threads, cache=False)(a, b))
    wide = [np.asarray(p.view(i, x)).astype(np.longdouble) for i, x in enumerate((a, b))]
    exact, sizes = wide[0] @ wide[1], np.abs(wide[0]) @ np.abs(wide[1])
    assert got.shape == exact.shape and got.dtype == element
    error = np.abs(got.astype(np.longdouble) - exact)
    assert np.all(error <= p.k * unit * sizes + last * np.abs(exact)), f"{p} {dtype}: {error.max()}"


def check_integers(p: Product, dtype: str, threads: int) -> None:
    element, result = INTEGERS[dtype]
    a, b = p.operand(0, element), p.operand(1, element)
    rank = 3 if p.batch else 2
    batch = ((0,), (0,)) if p.batch else ((), ())

    def f(x: Any, y: Any) -> Any:
        return gd.dot_general(p.view(0, x), p.view(1, y), ((rank - 1,), (rank - 2,)), batch, preferred_element_type=result)

    got = np.asarray(gd.jit(f, threads=threads, cache=False)(a, b))
    with np.errstate(over="ignore"):
        want = np.asarray(p.view(0, a)).astype(result) @ np.asarray(p.view(1, b)).astype(result)
    np.testing.assert_array_equal(got, want, err_msg=f"{p} {dtype}")


@given(products, st.sampled_from(tuple(FLOATS)), st.sampled_from((1, 2)))
@settings(max_examples=40, deadline=None)
def test_float_products(p: Product, dtype: str, threads: int) -> None:
    check_floats(p, dtype, threads)


@given(products, st.sampled_from(tuple(INTEGERS)), st.sampled_from((1, 2)))
@settings(max_examples=20, deadline=None)
def test_integer_products(p: Product, dtype: str, threads: int) -> None:
    check_integers(p, dtype, threads)


@pytest.mark.full
@given(products, st.sampled_from(tuple(FLOATS)), st.sampled_from((1, 2)))
@settings(max_examples=1000, deadline=None)
def test_many_float_products(p: Product, dtype: str, threads: int) -> None:
    check_floats(p, dtype, threads)


@pytest.mark.full
@given(products, st.sampled_from(tuple(INTEGERS)), st.sampled_from((1, 2)))
@settings(max_examples=500, deadline=None)
def test_many_integer_products(p: Product, dtype: str, threads: int) -> None:
    check_integers(p, dtype, threads)


@pytest.mark.parametrize(
    ("m", "k", "n"),
    [(197, 300, 301), (13, 9000, 40), (70, 2500, 70), (260, 70, 530), (300, 257, 1)],
    ids=["edges", "long k", "blocks of k", "groups of columns", "one column"],
)
@pytest.mark.parametrize("turned", [(False, False), (True, True)])
def test_sizes_that_need_every_loop(m: int, k: int, n: int, turned: tuple[bool, bool]) -> None:
    for threads in (1, 2):
        check_floats(Product(m, n, k, 0, turned, (False, False)), "f32", threads)
    check_integers(Product(m, n, k, 0, turned, (False, False)), "i8", 1)


@pytest.mark.parametrize("rows", [1, 3, 8])
@pytest.mark.parametrize("columns", [1024, 1059])
def test_few_rows_on_threads(rows: int, columns: int) -> None:
    """Each thread reads its columns in bands of k; two runs agree to the bit, and an epilogue comes behind the last band."""
    a, b = Product(rows, columns, 803, 0, (False, False), (False, False)), np.float32
    x, y = a.operand(0, b), a.operand(1, b)
    layer = gd.jit(lambda x, y: gd.relu(x @ y + 1.0), threads=2, cache=False)
    first = np.asarray(layer(x, y))
    exact = np.maximum(x.astype(np.float64) @ y.astype(np.float64) + 1.0, 0.0)
    assert np.all(np.abs(first - exact) <= 803 * 2.0**-24 * (np.abs(x).astype(np.float64) @ np.abs(y) + 1.0))
    assert np.array_equal(first, np.asarray(layer(x, y)))
    check_floats(a, "f32", 2)


def test_extreme_products_wrap_as_documented() -> None:
    low = np.full((16, 6), -(2**15), np.int16)
    f = gd.jit(lambda x, y: gd.dot_general(x, y, ((1,), (0,)), preferred_element_type=np.int32), cache=False)
    got = np.asarray(f(low, np.full((6, 64), -(2**15), np.int16)))
    np.testing.assert_array_equal(got, np.full((16, 64), np.int64(6 * 2**30).astype(np.int32)))


def test_not_a_number_stays_where_it_is() -> None:
    a, b = np.ones((70, 33), np.float32), np.ones((33, 100), np.float32)
    a[5, 7], b[3, 99] = np.nan, np.inf
    got = np.asarray(gd.jit(lambda x, y: x @ y, cache=False)(a, b))
    assert np.isnan(got[5]).all() and np.isinf(np.delete(got[:, 99], 5)).all()
    assert np.isfinite(np.delete(got[:, :99], 5, axis=0)).all()
