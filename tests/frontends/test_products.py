"""`cross`, `inner`, `vdot`, `kron`, and arrays made of lists that hold arrays: numpy's results, eagerly and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.errors import GradirError

RNG = np.random.default_rng(3)


def both(function: Any, *args: Any) -> list[Any]:
    with gd.eager():
        eager = function(*args)
    return [np.asarray(eager), np.asarray(gd.jit(function, cache=False)(*args))]


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("cross", [(3,), (3,)]),
        ("cross", [(4, 3), (3,)]),
        ("inner", [(2, 3), (4, 3)]),
        ("inner", [(), (3,)]),
        ("vdot", [(2, 3), (2, 3)]),
        ("kron", [(2, 3), (2, 2)]),
        ("kron", [(2,), (3, 2)]),
    ],
)
def test_products_are_those_of_numpy(name: str, shapes: Any) -> None:
    args = [RNG.standard_normal(shape) for shape in shapes]
    for found in both(getattr(gd, name), *args):
        np.testing.assert_allclose(found, getattr(np, name)(*args), rtol=1e-13)


def test_cross_along_another_axis() -> None:
    x, y = RNG.standard_normal((2, 3, 4))
    for found in both(lambda x, y: gd.cross(x, y, axis=0), x, y):
        np.testing.assert_allclose(found, np.cross(x, y, axis=0), rtol=1e-13)


def test_vdot_conjugates_the_first() -> None:
    x, y = RNG.standard_normal((2, 3)) + 1j * RNG.standard_normal((2, 3))
    for found in both(gd.vdot, x, y):
        np.testing.assert_allclose(found, np.vdot(x, y), rtol=1e-13)


def test_lists_of_arrays_and_numbers_are_arrays() -> None:
    rotation = lambda a: gd.array([[gd.cos(a), -gd.sin(a), 0], [gd.sin(a), gd.cos(a), 0], [0, 0, 1]])
    a = np.float64(0.4)
    expected = np.array([[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]])
    for found in both(rotation, a):
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, expected, rtol=1e-15)
    assert both(lambda x: gd.asarray([x, 2.0], gd.float64), np.float32(1.5))[1].dtype == np.float64


def test_vectors_of_another_length_have_no_cross_product() -> None:
    with pytest.raises(GradirError, match="not vectors of three elements") as error:
        gd.jit(gd.cross)(np.zeros((3, 2)), np.zeros(3))
    assert error.value.code == "GR001"


def test_a_ragged_list_of_arrays_is_an_error() -> None:
    with pytest.raises(GradirError, match="shapes differ") as error:
        gd.jit(lambda x: gd.array([x, 1.0]))(np.zeros(2))
    assert error.value.code == "GR001"
