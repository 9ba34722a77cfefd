"""What is not an array among the arguments of functions, where it makes no sense: an error of ours at the user's line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.errors import GradirError

X = np.arange(6, dtype=np.float32).reshape(2, 3)
ONE_AXIS: dict[str, Callable[..., Any]] = {
    "sort": gd.sort,
    "argsort": gd.argsort,
    "cumsum": gd.cumsum,
    "cumlogsumexp": gd.cumlogsumexp,
    "softmax": gd.softmax,
    "glu": gd.glu,
    "split": lambda x, axis: gd.split(x, 1, axis),
    "take": lambda x, axis: gd.take(x, [0], axis),
    "concatenate": lambda x, axis: gd.concatenate([x, x], axis),
}


@pytest.mark.parametrize("name", ONE_AXIS)
@pytest.mark.parametrize("axis", [(), (0, 1)], ids=str)
def test_one_axis_is_needed(name: str, axis: tuple[int, ...]) -> None:
    for call in (lambda: ONE_AXIS[name](X, axis=axis), lambda: gd.jit(lambda x: ONE_AXIS[name](x, axis=axis))(X)):
        with pytest.raises(GradirError, match="one axis is needed") as caught:
            call()
        assert caught.value.code == "GR104" and caught.value.found == str(axis) and "-2 to 1" in caught.value.expected


def _plus_one(x: Any) -> Any:
    return x + 1.0


def _around(kind: str) -> Any:
    inner: Any = [X] if kind == "list" else {"x": X}
    inner.append(inner) if kind == "list" else inner.update(again=inner)
    return inner


class _Broken:
    """Says that it exports DLPack, and gives this instead."""

    def __init__(self, given: Any) -> None:
        self.given = given

    def __dlpack__(self, **_: Any) -> Any:
        if isinstance(self.given, Exception):
            raise self.given
        return self.given

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


CASES: dict[str, tuple[Callable[[], Any], str, str]] = {
    "full of a row too long": (lambda: gd.full((2, 3), [1.0, 2.0]), "GR001", "(2,)"),
    "full of a complex number": (lambda: gd.full_like(X, 1 + 2j), "GR103", "(1+2j)"),
    "full, ragged": (lambda: gd.full((2, 2), [[1], [1, 2]]), "GR103", "inhomogeneous"),
    "no bits": (lambda: gd.reduce_precision(X, 5.5, 3), "GR112", "5.5"),
    "fftfreq": (lambda: gd.fft.fftfreq(-1), "GR112", "-1"),
    "rfftfreq": (lambda: gd.fft.rfftfreq(0), "GR112", "0"),
    "beyond 64 bits": (lambda: gd.ones(10**19), "GR112", str(10**19)),
    "a fraction as correction": (lambda: gd.var(X, correction=1.5), "GR112", "1.5"),
    "one start": (lambda: gd.dynamic_slice(X, 0, (1, 1)), "GR104", "0"),
    "einsum without letters": (lambda: gd.einsum(X, X), "GR001", "array"),
    "top_k of a fraction": (lambda: gd.top_k(X, 5.0), "GR112", "5.0"),
    "top_k in jit": (lambda: gd.jit(lambda x: gd.top_k(x, "2"))(X), "GR112", "'2'"),
    "sort_together by a fraction": (lambda: gd.sort_together([X, X], num_keys=1.5), "GR112", "1.5"),
    "donate a number": (lambda: gd.jit(_plus_one, donate=7), "GR134", "7"),
    "donate a name": (lambda: gd.jit(_plus_one, donate="x"), "GR134", "'x'"),
    "donate None inside": (lambda: gd.compile(_plus_one, X, donate=(None,)), "GR134", "(None,)"),
    "freeze a number": (lambda: gd.jit(_plus_one, frozen=7), "GR134", "7"),
    "a static flag": (lambda: gd.jit(_plus_one, static=(True,)), "GR134", "(True,)"),
    "tune text": (lambda: gd.jit(_plus_one, tune="x"), "GR134", "'x'"),
    "tune less than nothing": (lambda: gd.jit(_plus_one, tune=-1), "GR134", "-1"),
    "tune for nan seconds": (lambda: gd.compile(_plus_one, X, tune=float("nan")), "GR134", "nan"),
    "tune for ever": (lambda: gd.jit(_plus_one, tune=float("inf")), "GR134", "inf"),
    "no target": (lambda: gd.jit(_plus_one, target=None), "OP041", "None"),
    "a number as target": (lambda: gd.compile(_plus_one, X, target=7), "OP041", "7"),
    "a broken export": (lambda: gd.jit(_plus_one)(_Broken(BufferError("not here"))), "RT024", "_Broken: BufferError: not here"),
    "no capsule": (lambda: gd.jit(_plus_one)(_Broken(5)), "RT024", "_Broken: ValueError"),
    "a broken output": (lambda: gd.compile(_plus_one, X)(X, out=_Broken(OSError("gone"))), "RT024", "_Broken: OSError: gone"),
    "a broken source": (lambda: gd.runtime.Buffer.from_array(_Broken(TypeError())), "RT024", "_Broken: TypeError"),
    "a list in itself": (lambda: gd.jit(lambda a: a[0])(_around("list")), "GR135", "a list"),
    "a dict in itself": (lambda: gd.grad(lambda a: gd.sum(a["x"]))(_around("dict")), "GR135", "a dict"),
    "a result in itself": (lambda: gd.jit(lambda x: _around("list"))(X), "GR135", "a list"),
    "rms_norm of a scalar": (lambda: gd.rms_norm(1.0, 1.0), "GR104", "-1"),
}


@pytest.mark.parametrize("name", CASES)
def test_options_that_make_no_sense(name: str) -> None:
    call, code, found = CASES[name]
    with pytest.raises(GradirError) as caught:
        call()
    assert caught.value.code == code and found in caught.value.found and caught.value.expected


def test_options_may_be_left_to_none() -> None:
    function = gd.jit(_plus_one, donate=None, frozen=None, static=None, tune=None)
    np.testing.assert_array_equal(function(X), X + 1)
    np.testing.assert_array_equal(gd.compile(_plus_one, X, donate=None, frozen=None, tune=0)(X), X + 1)


def test_one_list_at_two_places_is_no_circle() -> None:
    twice = [X]
    assert gd.jit(lambda a: a[0][0] + a[1][0])([twice, twice]).shape == X.shape
    deep: Any = X
    for _ in range(2000):
        deep = [deep]
    with pytest.raises(RecursionError):
        gd.jit(_plus_one)(deep)


def test_numpy_integers_are_whole_numbers() -> None:
    three = np.int32(3)
    np.testing.assert_array_equal(gd.top_k(X, np.int64(1))[0], gd.top_k(X, 1)[0])
    np.testing.assert_array_equal(gd.reduce_precision(X, np.int64(8), three), gd.reduce_precision(X, 8, 3))
    np.testing.assert_allclose(gd.var(X, correction=np.int32(1)), np.var(X, ddof=1), rtol=1e-6)
    np.testing.assert_array_equal(gd.full((2, 3), np.float64(2), np.float32), np.full((2, 3), 2, np.float32))
    np.testing.assert_array_equal(gd.full((2, 3), [1, 2, 3]), np.full((2, 3), [1, 2, 3]))
