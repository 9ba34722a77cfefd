"""Loading everything that a compilation will need: for servers and notebooks that want their first call fast."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module

from gradir.dialects.registry import DIALECTS, load
from gradir.driver.passes import PASSES, load_pass
from gradir.driver.versions import toolchain
from gradir.runtime.native.library import native
from gradir.runtime.target import host_target


def preload() -> None:
    """Import every dialect and pass, describe the host, compile the runtime's own native code. A plugin that does not load is skipped."""
    for name in DIALECTS:
        with suppress(ImportError):
            load(name)
    for name in PASSES:
        with suppress(ImportError):
            load_pass(name)
    import_module("gradir.driver.build")
    host_target()
    toolchain()
    native()
