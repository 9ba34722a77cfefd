"""Meaning of the random bits: Threefry-2x32 with 20 rounds and Philox-4x32 with 10, on numpy's integers."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from gradir.dialects.types import element_of, numpy_dtype, shape_of

Array = np.ndarray[Any, Any]
U32, U64 = np.uint32, np.uint64


def _rotate(x: Array, bits: int) -> Array:
    return (x << U32(bits)) | (x >> U32(32 - bits))


def threefry(key: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """The two words for each position of `x` and `y`."""
    schedule = (key[0], key[1], key[0] ^ key[1] ^ U32(0x1BD11BDA))
    x, y = x + schedule[0], y + schedule[1]
    for group in range(1, 6):
        for bits in ((13, 15, 26, 6), (17, 29, 16, 24))[(group + 1) % 2]:
            x = x + y
            y = x ^ _rotate(y, bits)
        x = x + schedule[group % 3]
        y = y + schedule[(group + 1) % 3] + U32(group)
    return x, y


def threefry2x32(_op: Any, key: Array, x: Array, y: Array) -> tuple[Array, Array]:
    return threefry(key, x, y)


def random_bits(op: Any, key: Array, *sizes: Any) -> Array:
    given = iter(int(n) for n in sizes)
    shape = tuple(n if isinstance(n, int) else next(given) for n in shape_of(op.result))
    position = np.arange(prod(shape), dtype=U64).reshape(shape)
    a, b = threefry(key, (position >> U64(32)).astype(U32), position.astype(U32))
    dtype = numpy_dtype(element_of(op.result))
    if dtype.itemsize == 8:
        return (a.astype(U64) << U64(32)) | b.astype(U64)
    return (a ^ b).astype(dtype)


def philox4x32(_op: Any, key: Array, *counter: Array) -> tuple[Array, ...]:
    a, b, c, d = counter
    first, second = int(key[0]), int(key[1])
    for _ in range(10):
        left, right = a.astype(U64) * U64(0xD2511F53), c.astype(U64) * U64(0xCD9E8D57)
        a, b, c, d = (
            (right >> U64(32)).astype(U32) ^ b ^ U32(first),
            right.astype(U32),
            (left >> U64(32)).astype(U32) ^ d ^ U32(second),
            left.astype(U32),
        )
        first, second = (first + 0x9E3779B9) & 0xFFFFFFFF, (second + 0xBB67AE85) & 0xFFFFFFFF
    return a, b, c, d


EVALUATE: dict[str, Callable[..., Any]] = {
    "nd.random_bits": random_bits,
    "nd.threefry2x32": threefry2x32,
    "nd.philox4x32": philox4x32,
}
