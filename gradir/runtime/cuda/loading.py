"""The functions of a loaded module for a GPU."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from gradir.errors import GradirError
from gradir.runtime.cuda.device import device_named
from gradir.runtime.cuda.function import DeviceFunction
from gradir.runtime.cuda.program import DeviceProgram
from gradir.runtime.library.table import LibraryTable
from gradir.runtime.loader import Library
from gradir.runtime.manifest import Manifest


class Loader:
    """Loads a module's part for a GPU when its first function is called: a program may be compiled and saved where there is no GPU."""

    def __init__(self, manifest: Manifest, objects: Sequence[bytes], table: LibraryTable, device: str) -> None:
        self.name = device
        self._manifest, self._objects, self._table = manifest, tuple(objects), table
        self._program: DeviceProgram | None = None
        self._lock = threading.Lock()

    @property
    def program(self) -> DeviceProgram:
        """GradirError RT070 without that device, RT075 when the module is for another architecture."""
        if self._program is None:
            with self._lock:
                if self._program is None:
                    self._program = self._load()
        return self._program

    def _load(self) -> DeviceProgram:
        manifest = self._manifest
        assert manifest.device is not None
        where = device_named(self.name)
        check_architecture(manifest.device.arch, where.limits.arch, self.name)
        name = ", ".join(f"@{spec.name}" for spec in manifest.functions)
        return DeviceProgram(where, manifest.device, self._objects, manifest.source_map, self._table, name)


def device_functions(
    manifest: Manifest, objects: Sequence[bytes], library: Library, table: LibraryTable, device: str, threads: int
) -> dict[str, DeviceFunction]:
    """The public functions of a module on a device, which is looked for when one of them is called."""
    loader = Loader(manifest, objects, table, device)
    return {spec.name: DeviceFunction(spec, library.address(spec.symbol), loader, threads, library) for spec in manifest.functions}


def check_architecture(wanted: str, there: str, device: str) -> None:
    """Raise GradirError RT075 unless code for `wanted` (sm_80) runs on a device of the architecture `there`."""
    if device.endswith("emulated"):
        return
    version, specific = number_of(wanted)
    found, _ = number_of(there)
    if version == found or (version < found and not specific):
        return
    raise GradirError(
        "the module was compiled for another GPU",
        part="runtime",
        code="RT075",
        expected=f"{there} or an older architecture without its special instructions",
        found=wanted,
        hint=f"compile it with target=cuda:{there}",
    )


def number_of(arch: str) -> tuple[int, bool]:
    """`sm_90a` is (90, True): code with instructions that no later architecture has."""
    digits = arch.removeprefix("sm_")
    return int(digits.rstrip("af")), not digits.isdecimal()
