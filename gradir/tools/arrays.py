"""Arrays on a command line: `2x3xf32=1.5`, `4xi32=[1,2,3,4]`, `2xcomplex<f32>=[(1,2),(0,-1)]`, `4xf32=random(0)`, `@x.npy`.

Results print the same way.

Relies on numpy and the runtime's names of element types only: a saved artefact runs without the compiler.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np

from gradir.errors import GradirError
from gradir.runtime.dtypes import ML_NAMES, NUMPY_NAMES, dtype_name, numpy_dtype

Array = np.ndarray[Any, np.dtype[Any]]

SHOWN = 1000
"""A result with more elements shows its first and last ones only."""

_SPEC = re.compile(r"((?:\d+x)*)([a-z]+\d*\w*|complex<f\d+>)=(.+)", re.S)
_NAMES = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan, "true": True, "false": False}


def read_array(text: str) -> Array:
    """The array that `text` spells; GradirError RT050 if it spells none."""
    if text.startswith("@"):
        return _load(text[1:])
    match = _SPEC.fullmatch(text.strip())
    if match is None or match[2] not in (*ML_NAMES, *NUMPY_NAMES):
        raise _error(text, "SHAPExTYPE=VALUE with a type of " + ", ".join((*ML_NAMES, *NUMPY_NAMES)))
    shape = tuple(int(size) for size in match[1].split("x") if size)
    dtype, value = numpy_dtype(match[2]), match[3].strip()
    if (seeded := re.fullmatch(r"random\((\d+)\)", value)) is not None:
        return _random(shape, dtype, int(seeded[1]))
    if value == "iota":
        return np.arange(math.prod(shape)).reshape(shape).astype(dtype)
    try:
        given = _complex(value) if dtype.kind == "c" else np.array(_value(value), dtype=_wide(dtype))
    except (ValueError, TypeError, OverflowError) as error:
        raise _error(text, "a number, a nested list, random(SEED), iota or @FILE.npy", str(error)) from error
    if given.shape not in ((), shape):
        raise _error(text, f"values of shape {list(shape)}", f"shape {list(given.shape)}")
    return _convert(np.broadcast_to(given, shape), dtype, text)


def _complex(text: str) -> Array:
    """Pairs `(re,im)`, or real numbers."""
    parts = np.array(_value(text.replace("(", "[").replace(")", "]")), np.float64)
    if "(" not in text:
        return parts.astype(np.complex128)
    if parts.shape[-1] != 2:
        raise ValueError("complex numbers are pairs (re,im)")
    return np.ascontiguousarray(parts).view(np.complex128)[..., 0]


def show_array(array: Array) -> str:
    """The notation that `read_array` reads; equal elements as one value, long arrays shortened."""
    kind = "x".join((*map(str, array.shape), dtype_name(array.dtype)))
    flat = array.reshape(-1)
    if array.size > 1 and bool((flat == flat[0]).all()) and not _mixed_zeros(flat):
        return f"{kind}={_element(flat[0])}"
    return f"{kind}={_nested(array) if array.size <= SHOWN else _short(flat)}"


def _value(text: str) -> Any:
    """A number or a nested list; inf, nan, true and false may stand in it."""
    if text in _NAMES:
        return _NAMES[text]
    quoted = re.sub(r"(?<![\w.])(-?inf|nan)(?![\w.])", lambda m: {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}[m[1]], text)
    return json.loads(quoted)


def _wide(dtype: np.dtype[Any]) -> Any:
    """What a value is read as before it is checked against `dtype`."""
    if dtype == np.bool_:
        return np.bool_
    return object if np.issubdtype(dtype, np.integer) else np.float64


def _convert(values: Array, dtype: np.dtype[Any], text: str) -> Array:
    if np.issubdtype(dtype, np.integer):
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        for value in values.reshape(-1):
            if isinstance(value, bool | float) or not low <= value <= high:
                raise _error(text, f"whole numbers from {low} to {high}", str(value))
    return values.astype(dtype, order="C")


def _random(shape: tuple[int, ...], dtype: np.dtype[Any], seed: int) -> Array:
    """Standard normal floats, whole numbers from 0 to 9, coin flips."""
    generator = np.random.default_rng(seed)
    if dtype == np.bool_:
        return generator.integers(0, 2, shape).astype(dtype)
    if np.issubdtype(dtype, np.integer):
        return generator.integers(0, 10, shape).astype(dtype)
    if dtype.kind == "c":
        return np.asarray(generator.standard_normal(shape) + 1j * generator.standard_normal(shape)).astype(dtype)
    return np.asarray(generator.standard_normal(shape)).astype(dtype)


def _load(path: str) -> Array:
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise _error(f"@{path}", "a file that numpy.save wrote", str(error)) from error
    if not isinstance(array, np.ndarray):
        raise _error(f"@{path}", "one array (.npy)", "an archive (.npz)")
    return array


def _mixed_zeros(flat: Array) -> bool:
    """0.0 == -0.0: whether both occur."""
    if flat.dtype.kind == "c":
        return _mixed_zeros(np.real(flat)) or _mixed_zeros(np.imag(flat))
    if flat[0] != 0 or not (np.issubdtype(flat.dtype, np.floating) or dtype_name(flat.dtype) in ML_NAMES):
        return False
    signs = np.signbit(flat.astype(np.float64))
    return bool(signs.any() and not signs.all())


def _nested(array: Array) -> str:
    if array.ndim == 0:
        return _element(array[()])
    return "[" + ",".join(_nested(row) for row in array) + "]"


def _short(flat: Array) -> str:
    edge = [",".join(map(_element, part)) for part in (flat[:8], flat[-8:])]
    return f"[{edge[0]},...,{edge[1]}]"


def _element(value: Any) -> str:
    if isinstance(value, np.bool_):
        return "true" if value else "false"
    if isinstance(value, np.complexfloating):
        return f"({value.real!s},{value.imag!s})"
    return str(value)  # numpy's shortest text that reads back as the same number


def _error(text: str, expected: str, found: str = "") -> GradirError:
    return GradirError(
        "cannot read an input array",
        part="runtime",
        code="RT050",
        expected=expected,
        found=f"{text}{': ' + found if found else ''}",
        hint="for example --input=2x3xf32=1.5, --input=4xi32=[1,2,3,4], --input=4xf32=random(0), --input=@x.npy",
    )
