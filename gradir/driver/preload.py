"""Loading everything that a compilation will need: for servers and notebooks that want their first call fast."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module

from gradir.autodiff.registry import load_rules
from gradir.dialects.registry import DIALECTS, load
from gradir.dialects.target.implementations import rows_of
from gradir.driver.passes import PASSES, load_pass
from gradir.driver.versions import toolchain
from gradir.ir.verifier import INVARIANT_MODULES
from gradir.lowering.folds.table import FOLD_MODULES
from gradir.runtime.native.library import native
from gradir.runtime.target import host_target

NEEDED = (
    "gradir.driver.build",
    "gradir.driver.compile",
    "gradir.dialects.nd.meaning",
    "gradir.runtime.dispatch",
    "gradir.runtime.donation",
)
"""Modules that the first compilation or call would import."""


def preload() -> None:
    """Import every dialect, pass and rule, describe the host, compile the runtime's own native code.

    A plugin that does not load is skipped.
    """
    for name in DIALECTS:
        with suppress(ImportError):
            load(name)
    for name in PASSES:
        with suppress(ImportError):
            load_pass(name)
    load_rules()
    rows_of("")
    for name in (*NEEDED, *INVARIANT_MODULES.values(), *(module for modules in FOLD_MODULES.values() for module in modules)):
        import_module(name)
    host_target()
    toolchain()
    native()
