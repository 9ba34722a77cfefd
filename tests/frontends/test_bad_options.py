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
    "rms_norm of a scalar": (lambda: gd.rms_norm(1.0, 1.0), "GR104", "-1"),
}


@pytest.mark.parametrize("name", CASES)
def test_options_that_make_no_sense(name: str) -> None:
    call, code, found = CASES[name]
    with pytest.raises(GradirError) as caught:
        call()
    assert caught.value.code == code and found in caught.value.found and caught.value.expected


def test_numpy_integers_are_whole_numbers() -> None:
    three = np.int32(3)
    np.testing.assert_array_equal(gd.reduce_precision(X, np.int64(8), three), gd.reduce_precision(X, 8, 3))
    np.testing.assert_allclose(gd.var(X, correction=np.int32(1)), np.var(X, ddof=1), rtol=1e-6)
    np.testing.assert_array_equal(gd.full((2, 3), np.float64(2), np.float32), np.full((2, 3), 2, np.float32))
    np.testing.assert_array_equal(gd.full((2, 3), [1, 2, 3]), np.full((2, 3), [1, 2, 3]))
