"""Tensor maps: 128 bytes that say to the GPU's copy engine where a tensor lies and which box of it a copy moves.

Host code passes words: element type (`abi.ELEMENT_CODES`), rank, sizes (innermost first), strides in bytes (of all but the innermost), box
sizes (innermost first), swizzle in bytes (0, 32, 64, 128).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

from gradir.runtime import abi

ELEMENTS = {
    abi.ELEMENT_CODES[name]: code
    for name, code in {
        "ui8": 0, "i8": 0, "i1": 0, "f8E4M3FN": 0, "f8E5M2": 0, "ui16": 1, "i16": 1, "ui32": 2, "i32": 3, "ui64": 4, "i64": 5,
        "f16": 6, "f32": 7, "f64": 8, "bf16": 9,
    }.items()
}  # fmt: skip
"""Our number of an element type -> CUtensorMapDataType."""
SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
PROMOTION_256 = 3
"""CU_TENSOR_MAP_L2_PROMOTION_L2_256B."""


class TensorMap(NamedTuple):
    """What the words say."""

    element: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int


def read_words(words: Sequence[int]) -> TensorMap:
    """The words as fields."""
    element, rank, *rest = words
    sizes, rest = rest[:rank], rest[rank:]
    strides, rest = rest[: rank - 1], rest[rank - 1 :]
    return TensorMap(element, tuple(sizes), tuple(strides), tuple(rest[:rank]), rest[rank])


def encode(libcuda: Any, base: int, words: Sequence[int]) -> tuple[int, bytes]:
    """`cuTensorMapEncodeTiled`: its status, and the map."""
    found = read_words(words)
    rank = len(found.sizes)
    room = (ctypes.c_uint8 * (abi.TENSOR_MAP_BYTES + 63))()
    at = -ctypes.addressof(room) % 64
    place = ctypes.c_void_p(ctypes.addressof(room) + at)
    status = libcuda.cuTensorMapEncodeTiled(
        place,
        ctypes.c_int(ELEMENTS[found.element]),
        ctypes.c_uint32(rank),
        ctypes.c_void_p(base),
        (ctypes.c_uint64 * rank)(*found.sizes),
        (ctypes.c_uint64 * max(1, rank - 1))(*found.strides),
        (ctypes.c_uint32 * rank)(*found.box),
        (ctypes.c_uint32 * rank)(*[1] * rank),
        ctypes.c_int(0),
        ctypes.c_int(SWIZZLES[found.swizzle]),
        ctypes.c_int(PROMOTION_256),
        ctypes.c_int(0),
    )
    return int(status), bytes(room[at : at + abi.TENSOR_MAP_BYTES])
