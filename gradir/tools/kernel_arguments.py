"""Arguments of a kernel on a command line: `f32[64,32]=random(0)`, `f32[1024]=@x.npy`, `u32=1000`, `bytes=00ff`.

`f16[64,64]=iota;box=8,32;swizzle=64` is a tensor map. Types are those of PTX.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gradir.errors import GradirError
from gradir.ptx.launch import DeviceBuffer
from gradir.ptx.tensor_maps import row_major
from gradir.ptx.types import DTYPES

Array = np.ndarray[Any, np.dtype[Any]]
_SPEC = re.compile(r"(\w+)(?:\[([\d,x ]+)\])?=(.+)", re.DOTALL)
_MAP = re.compile(r"(.+?);\s*box=(\d+(?:,\d+)*)(?:;\s*swizzle=(\d+))?(?:;\s*fill=(zero|nan))?", re.DOTALL)
_TYPES = {name: dtype for name, dtype in DTYPES.items() if name not in ("pred", "tf32")}


@dataclass(frozen=True)
class KernelArgument:
    """An array (global memory), a number or bytes; `undefined`: what is in the array does not count as written.

    With `box` the kernel gets a tensor map of the array, of boxes of that size.
    """

    value: Any
    undefined: bool = False
    box: tuple[int, ...] = ()
    swizzle: int = 0
    fill: str = "zero"

    def passed(self) -> Any:
        """What `launch` takes for the argument."""
        if not self.box:
            return self.value
        found = row_major(self.value, self.box, self.swizzle, self.fill)
        if not self.undefined:
            return found
        flat = self.value.reshape(-1).view(np.uint8)
        return replace(found, base=DeviceBuffer(flat, np.zeros(flat.size, np.bool_)))


def read_argument(text: str) -> KernelArgument:
    """The argument that `text` spells; GradirError RT051 if it spells none."""
    mapped = _MAP.fullmatch(text.strip())
    if mapped is not None:
        array = read_argument(mapped[1])
        if not isinstance(array.value, np.ndarray):
            raise _error(text, "an array before the box")
        box = tuple(int(n) for n in mapped[2].split(","))
        return replace(array, box=box, swizzle=int(mapped[3] or 0), fill=mapped[4] or "zero")
    match = _SPEC.fullmatch(text.strip())
    if match is not None and match[1] == "bytes" and match[2] is None:
        return KernelArgument(_bytes(text, match[3]))
    if match is None or match[1] not in _TYPES:
        raise _error(text, "TYPE[SIZES]=VALUE, TYPE=NUMBER or bytes=HEX with a type of " + ", ".join(_TYPES))
    dtype, value = _TYPES[match[1]], match[3].strip()
    if match[2] is None:
        return KernelArgument(_filled(text, (), dtype, value)[()])
    shape = tuple(int(size) for size in re.split(r"[,x ]+", match[2].strip()) if size)
    return KernelArgument(_filled(text, shape, dtype, value), value == "undefined")


def _bytes(text: str, value: str) -> bytes:
    try:
        if not value.startswith("@"):
            return bytes.fromhex(value)
        with open(value[1:], "rb") as file:
            return file.read()
    except (ValueError, OSError) as error:
        raise _error(text, "hexadecimal digits or @FILE", str(error)) from error


def _filled(text: str, shape: tuple[int, ...], dtype: np.dtype[Any], value: str) -> Array:
    seeded = re.fullmatch(r"random\((\d+)\)", value)
    if value in ("zeros", "undefined"):
        return np.zeros(shape, dtype)
    if value == "iota":
        return np.arange(math.prod(shape)).reshape(shape).astype(dtype)
    if seeded is not None:
        random = np.random.default_rng(int(seeded[1]))
        return (random.integers(0, 10, shape) if dtype.kind in "iu" else random.standard_normal(shape)).astype(dtype)
    if value.startswith("@"):
        return _loaded(text, shape, dtype, value[1:])
    try:
        given = np.array(json.loads(re.sub(r"(?<!\w)(-?inf|nan)(?!\w)", _spelled, value)), object if dtype.kind in "iu" else np.float64)
        found = np.broadcast_to(given, shape) if given.shape in ((), shape) else None
    except ValueError as error:
        raise _error(text, "a number, a list, zeros, undefined, iota, random(SEED) or @FILE.npy", str(error)) from error
    if found is None:
        raise _error(text, f"values of shape {list(shape)}", f"shape {list(given.shape)}")
    if dtype.kind in "iu":
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        wrong = [number for number in found.reshape(-1) if not isinstance(number, int) or not low <= number <= high]
        if wrong:
            raise _error(text, f"whole numbers from {low} to {high}", str(wrong[0]))
    return np.array(found.astype(dtype))


def _spelled(match: re.Match[str]) -> str:
    return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}[match[1]]


def _loaded(text: str, shape: tuple[int, ...], dtype: np.dtype[Any], path: str) -> Array:
    try:
        found = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise _error(text, "a file that numpy.save wrote", str(error)) from error
    if not isinstance(found, np.ndarray) or found.dtype.itemsize != dtype.itemsize or found.size != math.prod(shape):
        held = f"{found.dtype}{list(found.shape)}" if isinstance(found, np.ndarray) else "an archive"
        raise _error(text, f"an array of {math.prod(shape)} elements of {dtype.itemsize} bytes", held)
    return np.ascontiguousarray(found).view(dtype).reshape(shape).copy()


def _error(text: str, expected: str, found: str = "") -> GradirError:
    return GradirError(
        "cannot read an argument of the kernel",
        part="runtime",
        code="RT051",
        expected=expected,
        found=f"{text}{': ' + found if found else ''}",
        hint="for example --arg 'f32[1024]=random(0)', --arg 'f32[64,32]=@x.npy', --arg u32=1000, --arg bytes=0000803f",
    )
