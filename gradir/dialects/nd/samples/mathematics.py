"""Samples of the further functions of one number."""

from __future__ import annotations

import numpy as np

from gradir.dialects.nd.base import NdOp, Sample
from gradir.dialects.nd.mathematics import Bits, Classification
from gradir.dialects.nd.samples.case import BF16, SPECIAL, Array, case, limits, same, type_text, wave

_ALL = wave(2, 3, scale=2.0, shift=0.2)
_UNIT = wave(2, 3, scale=0.9)
_SMOOTH: dict[str, Array] = {
    "nd.tan": wave(2, 3, scale=1.2),
    "nd.asin": _UNIT,
    "nd.acos": _UNIT,
    "nd.atanh": _UNIT,
    "nd.erf_inv": _UNIT,
    "nd.acosh": wave(2, 3, scale=0.9, shift=2.1),
}
"""Where each function is smooth, if not everywhere."""

_HALVES = np.array([0.5, -0.5, 1.5, -1.5, 2.5, 0.49999997, -0.49999997, 8388609.0, -3.7], np.float32)


_FLOATS = (np.array(SPECIAL, np.float32), np.array(SPECIAL[:-1], BF16), np.array(SPECIAL), np.zeros((0, 2), np.float32))
_INTEGERS = (np.int32, np.int8, np.uint8, np.int64, np.uint16)
_BITS = (*(np.array(limits(dtype), dtype) for dtype in _INTEGERS), np.zeros((2, 0), np.int32))


def samples_of(cls: type[NdOp]) -> tuple[Sample, ...]:
    """The samples of one op of this family."""
    line = f"{cls.name} %0"
    if issubclass(cls, Classification):
        return tuple(case(f"{x.dtype} {x.size}", f"{line} : {{0}} -> {{1}}", [x], type_text(x.astype(np.bool_))) for x in _FLOATS)
    if issubclass(cls, Bits):
        return tuple(same(f"{x.dtype} {x.size}", line, [x]) for x in _BITS)
    found = [
        same("f64", line, [_SMOOTH.get(cls.name, _ALL)], (0,)),
        same("f32 special", line, [np.array([*SPECIAL, 0.5, -0.5, -1.0, 2.0, 100, -100, 3e38], np.float32)]),
        same("bf16", line, [np.array([*SPECIAL[:-1], 0.5, -0.5, 3.0], BF16)]),
        same("f16", line, [np.array([*SPECIAL[:-1], 0.5, 11.09], np.float16)]),
        same("f32 empty", line, [np.zeros((3, 0), np.float32)]),
        same("f32 scalar", line, [np.array(0.75, np.float32)]),
    ]
    if cls.name in ("nd.round_even", "nd.round_away", "nd.trunc"):
        found += [
            same("f32 halves", line, [_HALVES]),
            same("f64 halves", line, [np.array([0.49999999999999994, 2.5, -0.5, -2.5, 2.0**52 + 1])]),
        ]
    return tuple(found)
