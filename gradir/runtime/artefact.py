"""The file of a compiled module: a manifest and object blobs, each under a SHA-256 hash that is checked before anything is used.

bytes 0-7    magic "GRADIR\\x00\\x01"
bytes 8-15   length of the manifest, little endian
bytes 16-47  SHA-256 of the manifest
then         the manifest (JSON; its "objects" list sizes and hashes), then the blobs, one after the other
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gradir.errors import GradirError
from gradir.runtime.caller import caller_location
from gradir.runtime.manifest import Manifest, dump

MAGIC = b"GRADIR\x00\x01"
HEADER_BYTES = 48


def pack(manifest: Manifest, objects: Sequence[bytes]) -> bytes:
    """The artefact's bytes; equal modules give equal bytes."""
    rows = [{"bytes": len(blob), "sha256": hashlib.sha256(blob).hexdigest()} for blob in objects]
    head = dump(manifest, {"objects": rows})
    return b"".join((MAGIC, len(head).to_bytes(8, "little"), hashlib.sha256(head).digest(), head, *objects))


def unpack(data: bytes, origin: str = "artefact") -> tuple[Manifest, list[bytes]]:
    """Manifest and objects of an artefact; `GradirError` RT012 when it is truncated or altered, RT011 when of another format."""
    if len(data) < HEADER_BYTES or not data.startswith(MAGIC):
        raise damaged(origin, "a file that starts with the magic of a gradir artefact", f"{len(data)} bytes starting with {data[:8]!r}")
    size = int.from_bytes(data[8:16], "little")
    head = data[HEADER_BYTES : HEADER_BYTES + size]
    if len(head) != size:
        raise damaged(origin, f"a manifest of {size} bytes", f"the file ends after {len(head)} of them")
    if hashlib.sha256(head).digest() != data[16:HEADER_BYTES]:
        raise damaged(origin, "a manifest with the hash of the header", "another hash")
    value: Mapping[str, Any] = json.loads(head)
    manifest = Manifest.from_json(value)
    objects: list[bytes] = []
    at = HEADER_BYTES + size
    for index, row in enumerate(value.get("objects", ())):
        blob = data[at : at + row["bytes"]]
        if len(blob) != row["bytes"]:
            raise damaged(origin, f"object {index} of {row['bytes']} bytes", f"the file ends after {len(blob)} of them")
        if hashlib.sha256(blob).hexdigest() != row["sha256"]:
            raise damaged(origin, f"object {index} with hash {row['sha256'][:16]}...", "another hash")
        objects.append(blob)
        at += len(blob)
    if at != len(data):
        raise damaged(origin, f"{at} bytes", f"{len(data)} bytes")
    return manifest, objects


def write_atomically(path: Path, data: bytes) -> None:
    """Put `data` at `path` so that no reader ever sees a part of it: temporary file beside it, then rename."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read(path: str | os.PathLike[str]) -> bytes:
    """The bytes of the file; `GradirError` RT013 when there is none that can be read."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise GradirError(
            f"the artefact cannot be read: {error.strerror}",
            part="runtime",
            code="RT013",
            location=caller_location(),
            expected="a file written by `module.save(path)`",
            found=str(path),
            hint="check the path",
        ) from error


def damaged(origin: str, expected: str, found: str) -> GradirError:
    """The error for bytes that are not what was saved."""
    return GradirError(
        f"{origin} is truncated or altered",
        part="runtime",
        code="RT012",
        location=caller_location(),
        expected=expected,
        found=found,
        hint="save the module again, or copy the file again",
    )
