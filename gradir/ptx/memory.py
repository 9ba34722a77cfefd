"""Memory of the emulated device: allocations that know their bounds, and the bytes behind an access by many lanes at once.

An address of 64 bits is the number of an allocation (upper bits) and an offset (lower `OFFSET_BITS`): an offset that goes wrong by less
than 64 GiB never lands in another allocation, so bounds follow the operand that an address was computed from. Views of one array (an
arena) are allocations of their own, with nothing between them that counts as theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradir.ptx.tensor_maps import TensorMap

Array = np.ndarray[Any, np.dtype[Any]]

OFFSET_BITS = 36
SHARED_WINDOW, LOCAL_WINDOW, PARAMETERS, FUNCTIONS, FIRST = 1, 2, 3, 4, 8
"""Numbers of the windows through which generic addresses reach shared and local memory; of the kernel's parameters; of functions; of the
first allocation."""
BIAS = 1 << 20
"""Offset of an allocation's first byte: small negative offsets stay within its number."""
WIDEST = 16
"""Bytes of the widest access: memory of blocks and threads is laid out in multiples of it."""
POISON = 0xCD
"""Every byte of memory that nobody wrote."""


@dataclass
class Allocation:
    """Bytes of global or constant memory. `written` is None where all of it is defined, else a flag per byte."""

    number: int
    name: str
    data: Array
    written: Array | None = None
    readonly: bool = False
    reading: Array | None = None
    """Of each word of four bytes, how many asynchronous copies still read it; None before the first copy."""

    def being_read(self, offsets: Array, size: int, by: int) -> None:
        """Asynchronous copies of `size` bytes from each offset begin (1) or end (-1)."""
        if self.reading is None:
            self.reading = np.zeros(-(-self.data.size // 4), np.int32)
        for k in range(max(1, size // 4)):
            np.add.at(self.reading, offsets // 4 + k, by)

    @property
    def address(self) -> int:
        """Of the first byte."""
        return (self.number << OFFSET_BITS) + BIAS


@dataclass
class GlobalMemory:
    """All allocations of a launch by number."""

    allocations: dict[int, Allocation] = field(default_factory=dict[int, Allocation])
    maps: dict[int, TensorMap] = field(default_factory=dict[int, TensorMap])
    """Tensor maps by the number of the allocation that they describe."""
    _next: int = FIRST

    def add(self, name: str, data: Array, *, written: Array | None = None, readonly: bool = False) -> Allocation:
        """An allocation whose bytes (and flags of written bytes) are those of flat arrays that stay the caller's."""
        found = Allocation(self._next, name, data, written, readonly)
        self.allocations[self._next] = found
        self._next += 1
        return found


def parts_of(numbers: Array, active: Array) -> Iterator[tuple[int, Array]]:
    """Allocation numbers that the active lanes use, each with the lanes that use it: nearly always one."""
    chosen = numbers[active]
    if not chosen.size:
        return
    first = int(chosen.flat[0])
    if (chosen == first).all():
        yield first, active
        return
    for number in np.unique(chosen):
        yield int(number), active & (numbers == number)


def gather(data: Array, offsets: Array, width: int) -> Array:
    """`width` bytes (1, 2, 4, 8) at each offset, as unsigned integers of that width. Offsets are in bounds and aligned."""
    if width == 1:
        return data[offsets]
    whole = data[: data.size // width * width].view(f"u{width}")
    return whole[offsets >> (width.bit_length() - 1)]


def scatter(data: Array, offsets: Array, values: Array | int, width: int) -> None:
    """The same for stores; of lanes with equal offsets the last one wins."""
    if width == 1:
        data[offsets] = values
        return
    whole = data[: data.size // width * width].view(f"u{width}")
    whole[offsets >> (width.bit_length() - 1)] = values
