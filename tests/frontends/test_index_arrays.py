"""Index arrays: numpy's rules, several of them together, reads and updates, and their derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir import GradirError

X = np.arange(120, dtype=np.float64).reshape(4, 5, 6)
I, J, K = np.array([[0], [3]], np.int32), np.array([4, -1, 2], np.int32), np.array([1, 2, 3], np.int32)

READS: list[Any] = [
    (I,), (I, J), (I, J, K), (slice(None), I, J), (slice(1, 3), J), (slice(None), slice(None), J),
    (I, slice(None), J), (I, None, J), (None, I, J), (..., J), (2, slice(None), J), (slice(None, None, -1), J, K),
]  # fmt: skip


@pytest.mark.parametrize("index", READS, ids=[str(k) for k in range(len(READS))])
def test_reads_are_numpys(index: Any) -> None:
    index = tuple(np.clip(i, 0, 3) if isinstance(i, np.ndarray) and k == 0 else i for k, i in enumerate(index))
    expected = X[index]
    for found in (gd.jit(lambda x: x[index], cache=False)(X), _eager(lambda x: x[index])):
        assert found.shape == expected.shape
        np.testing.assert_array_equal(found, expected)


def _eager(f: Any) -> Any:
    with gd.eager():
        return np.asarray(f(gd.asarray(X)))


def test_updates() -> None:
    i, j = np.array([0, 3, 0], np.int32), np.array([4, -1, 4], np.int32)
    for name, ufunc in (("add", np.add), ("multiply", np.multiply), ("max", np.maximum), ("min", np.minimum)):
        for index in ((i,), (i, j)):
            expected = X.copy()
            ufunc.at(expected, index, 7.0)
            np.testing.assert_array_equal(
                gd.jit(lambda x, index=index, name=name: getattr(x.at[index], name)(7.0), cache=False)(X), expected
            )
    expected = X.copy()
    expected[i, j, 2] = [1, 2, 3]
    np.testing.assert_array_equal(gd.jit(lambda x: x.at[i, j, np.int32(2)].set(np.array([1.0, 2, 3])))(X), expected)


def test_derivatives() -> None:
    i, j = np.array([0, 3, 0], np.int32), np.array([4, 1, 4], np.int32)
    weights = np.arange(18.0).reshape(3, 6)
    expected = np.zeros_like(X)
    np.add.at(expected, (i, j), weights)
    np.testing.assert_array_equal(gd.grad(lambda x: gd.sum(x[i, j] * weights))(X), expected)
    gd.check_grads(lambda x, v: x.at[i, j].set(v), (X, weights))
    gd.check_grads(lambda x, v: x.at[i, j].add(v), (X, weights), order=2)


def test_what_is_refused() -> None:
    with pytest.raises(GradirError, match=r"GR104"):
        gd.jit(lambda x: x.at[1:, J].set(0.0))(X)
    with pytest.raises(GradirError, match=r"GR002"):
        gd.jit(lambda x: x[np.array([True, False, True, True]), J])(X)
