"""Every way in which a numeric rule must hold: evaluated op by op, and compiled at each optimisation setting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gradir as gd
from gradir.driver.compile import compile_module
from gradir.driver.evaluate import evaluate_level1
from gradir.ir.text import parse_module

SETTINGS = ["evaluated", "optimize=0", "optimize=1", "optimize=2"]
Run = Callable[..., Any]


def run_function(setting: str, f: Callable[..., Any], *arrays: Any) -> Any:
    """The results of a Python function of arrays."""
    if setting == "evaluated":
        with gd.eager():
            return gd.tree_map(np.asarray, f(*(gd.asarray(a) for a in arrays)))
    return gd.tree_map(np.asarray, gd.jit(f, optimize=int(setting[-1]), cache=False)(*arrays))


def run_text(setting: str, text: str, *arrays: Any) -> list[np.ndarray[Any, Any]]:
    """The results of the public function of a module at level 1."""
    module = parse_module(text)
    if setting == "evaluated":
        return evaluate_level1(module, "f", list(arrays))
    return list(compile_module(module, optimize=int(setting[-1]), cache=False)["f"].flat(*arrays))


def bits_equal(found: Any, expected: Any) -> None:
    """Equal values, NaN where NaN is expected, and equal signs of zero."""
    found, expected = np.asarray(found), np.asarray(expected)
    wide = np.complex128 if "c" in (found.dtype.kind, expected.dtype.kind) else np.float64
    found, expected = found.astype(wide), expected.astype(wide)
    for a, b in ((found.real, expected.real), (found.imag, expected.imag)):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(np.signbit(a)[b == 0], np.signbit(b)[b == 0])
