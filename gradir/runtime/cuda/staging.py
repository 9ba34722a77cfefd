"""Page-locked memory of the host that copies to and from a GPU go through, so that they need not wait."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gradir.runtime.cuda.device import Event

LEAST = 1 << 12


@dataclass(frozen=True)
class Place:
    """`size` bytes at `address`; `owner` keeps them."""

    address: int
    size: int
    owner: Any


class Staging:
    """Places that are free again once the copy that read them is over. `allocate` gives an object with `ptr`."""

    def __init__(self, allocate: Callable[[int], Any]) -> None:
        self._allocate = allocate
        self._free: dict[int, list[Place]] = {}
        self._busy: deque[tuple[Event, Place]] = deque()
        self._lock = threading.Lock()
        self.made = 0

    def take(self, size: int) -> Place:
        """At least `size` bytes that no copy uses."""
        size = max(LEAST, 1 << (size - 1).bit_length())
        with self._lock:
            while self._busy and self._busy[0][0].done():
                self._keep(self._busy.popleft()[1])
            rows = self._free.get(size)
            if rows:
                return rows.pop()
            self.made += 1
        owner = self._allocate(size)
        return Place(int(owner.ptr), size, owner)

    def give_back(self, place: Place, after: Event | None) -> None:
        """Free from `after` on; None: now."""
        with self._lock:
            if after is None:
                self._keep(place)
            else:
                self._busy.append((after, place))

    def _keep(self, place: Place) -> None:
        self._free.setdefault(place.size, []).append(place)
