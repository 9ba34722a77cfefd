"""The notation for arrays on the command line, both ways."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from gradir.errors import GradirError
from gradir.tools.arrays import read_array, show_array


@pytest.mark.parametrize(
    ("text", "shape", "dtype", "values"),
    [
        ("2x3xf32=1.5", (2, 3), np.float32, 1.5),
        ("f64=-2e-3", (), np.float64, -2e-3),
        ("4xi32=[1,2,-3,4]", (4,), np.int32, [1, 2, -3, 4]),
        ("2x2xi1=[[true,false],[false,true]]", (2, 2), np.bool_, [[True, False], [False, True]]),
        ("3xf32=[nan,-inf,inf]", (3,), np.float32, [np.nan, -np.inf, np.inf]),
        ("2x2xi8=iota", (2, 2), np.int8, [[0, 1], [2, 3]]),
        ("ui64=18446744073709551615", (), np.uint64, 2**64 - 1),
        ("i64=-9223372036854775808", (), np.int64, -(2**63)),
        ("0x3xf32=1", (0, 3), np.float32, np.zeros((0, 3))),
        ("2xcomplex<f32>=[(1,-2.5),(inf,0)]", (2,), np.complex64, [1 - 2.5j, complex(np.inf, 0)]),
        ("2xcomplex<f64>=(0,1)", (2,), np.complex128, 1j),
        ("complex<f64>=2", (), np.complex128, 2),
        ("2xbf16=[1,0.5]", (2,), ml_dtypes.bfloat16, [1, 0.5]),
        ("2xf8E4M3FN=[1.5,448]", (2,), ml_dtypes.float8_e4m3fn, [1.5, 448]),
        ("2xf8E5M2=[-0.0,inf]", (2,), ml_dtypes.float8_e5m2, [-0.0, np.inf]),
    ],
)
def test_read(text: str, shape: tuple[int, ...], dtype: type, values: object) -> None:
    array = read_array(text)
    assert array.shape == shape and array.dtype == np.dtype(dtype) and array.flags.c_contiguous
    np.testing.assert_array_equal(array, np.broadcast_to(np.array(values, dtype=dtype), shape))


def test_random_is_reproducible_and_of_the_type() -> None:
    np.testing.assert_array_equal(read_array("4xf32=random(7)"), read_array("4xf32=random(7)"))
    assert not np.array_equal(read_array("4xf32=random(7)"), read_array("4xf32=random(8)"))
    numbers = read_array("100xi32=random(0)")
    assert numbers.min() >= 0 and numbers.max() == 9
    assert set(read_array("100xi1=random(0)").tolist()) == {False, True}


def test_npy_file(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(3.0))
    np.testing.assert_array_equal(read_array(f"@{tmp_path / 'x.npy'}"), [0, 1, 2])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2x3", "SHAPExTYPE=VALUE"),
        ("2xf33=1", "bf16, f8E4M3FN, f8E5M2, f64"),
        ("2xf32=[1,2,3]", r"values of shape \[2\]"),
        ("2xf32=[1,2", "a nested list"),
        ("2xf32=__import__('os')", "a nested list"),
        ("i8=128", "whole numbers from -128 to 127"),
        ("i8=1.5", "whole numbers"),
        ("ui8=-1", "whole numbers from 0 to 255"),
        ("2xcomplex<f32>=[(1,2,3),(1,2,3)]", "complex numbers are pairs"),
        ("2xcomplex<f16>=1", "SHAPExTYPE=VALUE"),
        ("2xf32=[[1],2]", "a nested list"),
        ("@/no/such.npy", "numpy.save"),
        ("2xi32=random(x)", "a nested list"),
    ],
)
def test_what_spells_no_array(text: str, message: str) -> None:
    with pytest.raises(GradirError, match=message) as caught:
        read_array(text)
    assert caught.value.code == "RT050"


def test_npy_with_pickle_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(GradirError, match="cannot read an input array"):
        read_array(f"@{tmp_path / 'x.npy'}")


@pytest.mark.parametrize(
    "text",
    [
        "2x3xf32=1.5",
        "2x2xf32=[[1.0,2.0],[3.0,0.1]]",
        "f64=0.1",
        "3xf32=[nan,inf,-inf]",
        "2xi1=[true,false]",
        "2xbf16=[0.5,1]",
        "2xf32=[0.0,-0.0]",
        "3xcomplex<f32>=[(0.1,-2),(nan,inf),(0,-0.0)]",
        "2xcomplex<f64>=[(0.0,0.0),(0.0,-0.0)]",
        "2xcomplex<f64>=(1,2)",
        "0x2xf32=[]",
    ],
)
def test_shown_arrays_read_back(text: str) -> None:
    array = read_array(text) if text != "0x2xf32=[]" else np.zeros((0, 2), np.float32)
    shown = show_array(array)
    if array.size:
        again = read_array(shown)
        assert again.tobytes() == array.tobytes()
    assert shown.startswith(text.split("=")[0] + "=")


def test_long_arrays_are_shortened() -> None:
    assert show_array(np.arange(2000, dtype=np.int32)) == "2000xi32=[0,1,2,3,4,5,6,7,...,1992,1993,1994,1995,1996,1997,1998,1999]"
