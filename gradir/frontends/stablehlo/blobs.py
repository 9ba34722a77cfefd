"""Large constants of a StableHLO text: taken out before it is parsed, decoded once, into the memory that the module keeps.

`dense<"0x..">` becomes `dense_resource<key>`, and the data of a resource at the end of the text an empty one; the arrays stand in a table
by key. A file is mapped, and the pages that were decoded are given back, so importing it takes little more memory than its constants.
"""

from __future__ import annotations

import mmap
import re
from binascii import Error, unhexlify
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Bytes: TypeAlias = "NDArray[np.uint8]"
Source: TypeAlias = "str | mmap.mmap"

SHORTEST = 1 << 12
"""Literals of fewer digits stay in the text."""

DENSE, ALIGNMENT = "dense<", 8
"""What stands before a literal; how many digits the data of a resource starts with that are its alignment."""

LOOK_BACK = 256
"""In so many characters before the data the name of a resource is looked for."""

_RESOURCE = re.compile(r"(\w+)\s*:\s*$")
_STEP = 1 << 22


@dataclass
class Extracted:
    """The text without its large literals, and these by key."""

    text: str
    blobs: dict[str, Bytes] = field(default_factory=dict[str, Bytes])


def extract(source: Source) -> Extracted:
    """Take the large literals out of a text or a mapped file."""
    mark, quote = ('"0x', '"') if isinstance(source, str) else (b'"0x', b'"')
    pieces: list[str] = []
    blobs: dict[str, Bytes] = {}
    done = at = 0
    while (at := _find(source, mark, at)) >= 0:
        start = at + 3
        end = _find(source, quote, start)
        if end < 0:
            break
        if end - start >= SHORTEST:
            before = _text(source, max(done, at - LOOK_BACK), at)
            resource = _RESOURCE.search(before)
            dense = before.endswith(DENSE)
            data = _decode(source, start + (0 if dense else ALIGNMENT), end) if dense or resource is not None else None
            if data is not None:
                key = resource[1] if resource is not None else f"literal_{len(blobs)}"
                blobs[key] = data
                head = _text(source, done, at - (len(DENSE) if dense else 0))
                pieces.append(f"{head}dense_resource<{key}>" if dense else f'{head}"0x00"')
                done = end + (2 if dense else 1)  # behind `">`, or the quote
                _forget(source, done)
        at = end + 1
    if not pieces:
        return Extracted(source if isinstance(source, str) else _text(source, 0, len(source)))
    return Extracted("".join([*pieces, _text(source, done, len(source))]), blobs)


def extract_file(path: str | PathLike[str]) -> Extracted:
    """The same for a file in UTF-8, which is never in memory as a whole."""
    with open(path, "rb") as file:
        try:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (ValueError, OSError):  # empty, or not a file that can be mapped: a pipe
            return extract(file.read().decode("utf-8"))
        with mapped:
            return extract(mapped)


def _find(source: Any, what: Any, start: int) -> int:
    """`source.find`, giving back the pages of a mapped file on the way."""
    if isinstance(source, str):
        return source.find(what, start)
    while True:
        limit = min(len(source), start + 16 * _STEP)
        found = source.find(what, start, limit)
        if found >= 0 or limit == len(source):
            return found
        _forget(source, limit)
        start = limit - len(what) + 1


def _text(source: Source, start: int, end: int) -> str:
    piece = source[start:end]
    return piece if isinstance(piece, str) else piece.decode("utf-8")


def _decode(source: Source, start: int, end: int) -> Bytes | None:
    """The bytes that these digits spell; None of what is no hexadecimal number."""
    if (end - start) % 2:
        return None
    data = np.empty((end - start) // 2, np.uint8)
    for at in range(start, end, _STEP):
        stop = min(end, at + _STEP)
        try:
            data[(at - start) // 2 : (stop - start) // 2] = np.frombuffer(unhexlify(source[at:stop]), np.uint8)
        except (Error, ValueError):
            return None
        _forget(source, stop)
    data.flags.writeable = False
    return data


def _forget(source: Source, end: int) -> None:
    """The pages of a mapped file before `end` are not needed for now."""
    whole = end - end % mmap.PAGESIZE
    if isinstance(source, mmap.mmap) and whole and hasattr(source, "madvise"):
        source.madvise(mmap.MADV_DONTNEED, 0, whole)
