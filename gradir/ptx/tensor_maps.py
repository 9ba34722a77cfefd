"""Tensor maps: what `cuTensorMapEncodeTiled` would encode, as an argument of `launch` for a parameter of 128 bytes.

A map describes an array in global memory: sizes and strides, of which an instruction copies a box at coordinates to or from shared memory.
The box lies there row after row; a swizzle exchanges pieces of 16 bytes within its rows by the bits of their addresses.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradir.errors import GradirError

Array = np.ndarray[Any, np.dtype[Any]]
MAP_BYTES = 128
PIECE = 16
"""Bytes that a swizzle moves together; rows of a box are multiples of it."""
SWIZZLES = {0: 0, 32: 1, 64: 3, 128: 7}
"""Bytes of a swizzled row -> which bits of the number of a row of 128 bytes are exchanged into the number of the piece."""
_MAGIC = b"gradir tensor map"


def swizzled(addresses: Array, swizzle: int, base: int = 0) -> Array:
    """Where the bytes of these addresses of shared memory lie with a swizzle; the pattern begins `base` rows of 128 bytes off."""
    bits = SWIZZLES[swizzle]
    return addresses ^ ((((addresses >> 7) - base) & bits) << 4)


@dataclass(frozen=True)
class TensorMap:
    """A tiled map of `base`: an array, or anything that `launch` takes as one. Dimensions are in the order of PTX: the innermost first.

    `shape` in elements, `strides` in bytes of all dimensions but the innermost, `box` and `element_strides` (every n-th element) of each
    dimension, `swizzle` 0, 32, 64 or 128, `fill` of elements outside: "zero" or "nan".
    """

    base: Any
    dtype: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int = 0
    fill: str = "zero"
    element_strides: tuple[int, ...] = ()
    interleave: int = 0
    extent: int = field(init=False, default=0)
    """Bytes from the first to behind the last element."""

    def __post_init__(self) -> None:
        rank = len(self.shape)
        size = np.dtype(self.dtype).itemsize
        steps = self.element_strides or (1,) * rank
        object.__setattr__(self, "element_strides", steps)
        row = self.box[0] * size if self.box else 0
        checks = (
            (1 <= rank <= 5, "from 1 to 5 dimensions", str(rank)),
            (len(self.strides) == rank - 1, "a stride of each dimension but the innermost", str(self.strides)),
            (len(self.box) == len(steps) == rank, "a box with the tensor's dimensions", f"{self.box}, {steps}"),
            (all(1 <= n <= 1 << 32 for n in self.shape), "sizes from 1 to 2^32", str(self.shape)),
            (all(0 < s < 1 << 40 and s % PIECE == 0 for s in self.strides), "strides that are multiples of 16 bytes", str(self.strides)),
            (all(1 <= n <= 256 for n in self.box), "boxes of 1 to 256 elements a dimension", str(self.box)),
            (all(1 <= n <= 8 for n in steps), "element strides from 1 to 8", str(steps)),
            (self.interleave == 0, "no interleaving", str(self.interleave)),
            (self.swizzle in SWIZZLES, "a swizzle of 0, 32, 64 or 128 bytes", str(self.swizzle)),
            (row % PIECE == 0, "rows of the box that are multiples of 16 bytes", f"{row} bytes"),
            (self.swizzle == 0 or row == self.swizzle, "rows of the box as long as the swizzle", f"{row} bytes, swizzle {self.swizzle}"),
            (self.fill in ("zero", "nan"), "fill with zero or nan", self.fill),
            (self.fill == "zero" or np.dtype(self.dtype).kind not in "iub", "nan for floats only", f"{self.fill} of {self.dtype}"),
        )
        for good, expected, found in checks:
            if not good:
                raise _bad(expected, found)
        last = sum((n - 1) * s for n, s in zip(self.shape, self.pitches))
        object.__setattr__(self, "extent", last + size)

    @property
    def pitches(self) -> tuple[int, ...]:
        """Bytes between neighbours in each dimension."""
        return (np.dtype(self.dtype).itemsize, *self.strides)

    @property
    def pieces(self) -> tuple[int, ...]:
        """Elements of the box that are copied in each dimension."""
        return tuple(-(-n // s) for n, s in zip(self.box, self.element_strides))

    @property
    def bytes(self) -> int:
        """What a copy of one box counts for at an mbarrier: elements outside of the tensor too."""
        return int(np.prod(self.pieces)) * np.dtype(self.dtype).itemsize


def row_major(base: Array, box: tuple[int, ...], swizzle: int = 0, fill: str = "zero") -> TensorMap:
    """The map of a whole numpy array; its last dimension is the innermost, `box` in the array's order."""
    shape, strides = base.shape[::-1], base.strides[::-1]
    return TensorMap(base, base.dtype, shape, strides[1:], box[::-1], swizzle, fill)


def encoded(number: int) -> bytes:
    """The bytes of a parameter that holds the map of this number."""
    return (_MAGIC + number.to_bytes(8, "little")).ljust(MAP_BYTES, b"\0")


def decoded(data: bytes) -> int | None:
    """The number of a map from the bytes of a parameter; None where they hold none."""
    return int.from_bytes(data[len(_MAGIC) : len(_MAGIC) + 8], "little") if data.startswith(_MAGIC) else None


def _bad(expected: str, found: str) -> GradirError:
    return GradirError(
        "this is no tensor map", part="operator", code="OP064", expected=expected, found=found, hint="as cuTensorMapEncodeTiled"
    )
