"""Numbers and arrays as StableHLO text: exact, in decimal where that is exact, else as bits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Attribute

from gradir.dialects.types import is_bool, is_complex, is_float, numpy_dtype, real_of

LONGEST = 64
"""More elements than this are spelled as hexadecimal bytes."""


def number_text(value: Any, element: Attribute) -> str:
    """One number: `1.5`, `0x7F800000`, `-3`, `true`."""
    if is_bool(element):
        return "true" if value else "false"
    if is_complex(element):
        real, imag = (number_text(part, real_of(element)) for part in (np.real(value), np.imag(value)))
        return f"({real}, {imag})"
    if not is_float(element):
        return str(int(np.array(value).astype(numpy_dtype(element))))
    stored = np.array(value, numpy_dtype(element))
    number = float(stored)
    if not math.isfinite(number):
        return "0x" + stored.tobytes()[::-1].hex().upper()
    text = repr(number)
    mantissa, mark, exponent = text.partition("e")
    return text if "." in mantissa or not mark else f"{mantissa}.0e{exponent}"


def dense(data: NDArray[Any], element: Attribute) -> str:
    """What stands between `dense<` and `>`."""
    if data.size == 0:
        return ""
    if data.size > LONGEST and not is_bool(element):
        return f'"0x{np.ascontiguousarray(data).tobytes().hex().upper()}"'
    return _nested(data, element)


def _nested(data: NDArray[Any], element: Attribute) -> str:
    if data.ndim == 0:
        return number_text(data[()], element)
    return "[" + ", ".join(_nested(row, element) for row in data) + "]"
