"""The two caches on disk: whole programs (artefacts) and single kernels (objects that hold one or several).

A program is found by the text of its level-1 module, a kernel by its structure at level 3; both keys include options, target, versions and
our own source files. Files are written atomically, named by or checked against SHA-256 hashes, and dropped when they are damaged. A
directory that cannot be written costs one warning and nothing else.
"""

from __future__ import annotations

import hashlib
import os
import time
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gradir.errors import GradirError
from gradir.runtime import artefact
from gradir.runtime.manifest import Manifest

DIRECTORY_VARIABLE = "GRADIR_CACHE_DIR"
"""Environment variable that names the directory; set but empty: no cache."""

SIZE_LIMIT = 1 << 30
"""Bytes that the directory may hold; the least recently used files go first."""

CLEANUP_INTERVAL = 3600.0
"""Seconds between two looks at the directory's size."""


def digest(*parts: str | bytes) -> str:
    """SHA-256 of the parts, each with its length, in hexadecimal."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        total.update(len(data).to_bytes(8, "little"))
        total.update(data)
    return total.hexdigest()


def default_directory() -> Path | None:
    """Where the caches live: `GRADIR_CACHE_DIR`, else the user's cache directory; None when the variable is empty."""
    named = os.environ.get(DIRECTORY_VARIABLE)
    if named is not None:
        return Path(named) if named else None
    import platformdirs

    return Path(platformdirs.user_cache_dir("gradir"))


def open_cache(cache: bool | str | os.PathLike[str] | Cache) -> Cache | None:
    """The cache that the option `cache` of `compile_module` means: the default one, one in a directory, or none."""
    if isinstance(cache, Cache):
        return cache
    directory = default_directory() if cache is True else None if cache is False else Path(cache)
    return None if directory is None else Cache(directory)


@dataclass(frozen=True)
class Cache:
    """`programs/<key>` are artefacts, `objects/<hash>` objects named by their content, `kernels/<key>` name the object of a kernel."""

    directory: Path
    size_limit: int = SIZE_LIMIT

    def find_program(self, key: str) -> tuple[Manifest, list[bytes]] | None:
        """The compiled program of `key`; a damaged or foreign file is dropped and counts as absent."""
        path = self.directory / "programs" / key
        data = _read(path)
        if data is None:
            return None
        try:
            found = artefact.unpack(data, str(path))
        except GradirError:
            _drop(path)
            return None
        _touch(path)
        return found

    def store_program(self, key: str, manifest: Manifest, objects: Iterable[bytes]) -> None:
        """Keep a compiled program under `key`."""
        self._write("programs", key, artefact.pack(manifest, list(objects)))

    def find_kernels(self, keys: Iterable[str]) -> dict[str, bytes]:
        """For each kernel key that is cached, its object intact: that object (one `bytes` for all kernels that it defines)."""
        found: dict[str, bytes] = {}
        objects: dict[str, bytes | None] = {}
        for key in keys:
            path = self.directory / "kernels" / key
            data = _read(path)
            if data is None:
                continue
            name = data.decode("ascii", "replace")
            if name not in objects:
                objects[name] = self._object(name) if len(name) == 64 and name.isalnum() else None
            code = objects[name]
            if code is not None:
                found[key] = code
            else:
                _drop(path)
        return found

    def _object(self, name: str) -> bytes | None:
        """The object whose content has the hash `name`; dropped when it has another."""
        path = self.directory / "objects" / name
        data = _read(path)
        if data is not None and hashlib.sha256(data).hexdigest() != name:
            _drop(path)
            return None
        return data

    def store_kernels(self, keys: Iterable[str], code: bytes) -> None:
        """Keep an object that defines the kernels `keys`."""
        name = hashlib.sha256(code).hexdigest()
        if self._write("objects", name, code):
            for key in keys:
                self._write("kernels", key, name.encode())

    def sizes(self) -> Mapping[Path, int]:
        """Bytes of every cached file."""
        return {path: stat.st_size for path, stat in self._files()}

    def clean(self) -> None:
        """Remove the least recently used files until the directory holds three quarters of its limit at most."""
        files = sorted(self._files(), key=lambda row: row[1].st_mtime)
        total = sum(stat.st_size for _, stat in files)
        if total <= self.size_limit:
            return
        for path, stat in files:
            if total <= self.size_limit * 3 // 4:
                return
            _drop(path)
            total -= stat.st_size

    def _files(self) -> list[tuple[Path, os.stat_result]]:
        rows: list[tuple[Path, os.stat_result]] = []
        for kind in ("programs", "objects", "kernels"):
            folder = self.directory / kind
            try:
                rows += [(Path(entry.path), entry.stat()) for entry in os.scandir(folder)]
            except OSError:
                continue
        return rows

    def _write(self, kind: str, name: str, data: bytes) -> bool:
        folder = self.directory / kind
        try:
            folder.mkdir(parents=True, exist_ok=True)
            artefact.write_atomically(folder / name, data)
            self._clean_sometimes()
        except OSError as error:
            _warn_once(str(self.directory), error.strerror or str(error))
            return False
        return True

    def _clean_sometimes(self) -> None:
        stamp = self.directory / "cleaned"
        try:
            if time.time() - stamp.stat().st_mtime < CLEANUP_INTERVAL:
                return
        except FileNotFoundError:
            stamp.touch()
            return
        stamp.touch()
        self.clean()


_warned: set[str] = set()


def _warn_once(directory: str, reason: str) -> None:
    if directory not in _warned:
        _warned.add(directory)
        warnings.warn(f"gradir compiles without a cache: {directory} cannot be written: {reason}", RuntimeWarning, stacklevel=2)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _drop(path: Path) -> None:
    try:
        path.unlink()
    except OSError:
        return


def _touch(path: Path) -> None:
    """Mark as used now; a read-only cache still serves."""
    try:
        os.utime(path)
    except OSError:
        return
