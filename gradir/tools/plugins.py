"""Loading what others add: `--load FILE.py`, and installed packages with an entry point in the group `gradir.plugins`.

A plugin registers dialects, passes and rules when it is imported, through the tables that we use ourselves
(`gradir.dialects.registry`, `gradir.driver.passes`, the rule tables of autodiff and lowering). If it has a function
`register`, that is called too.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import cast

from gradir.errors import GradirError

GROUP = "gradir.plugins"


def load_file(path: str) -> ModuleType:
    """Import the plugin file `path` under the module name `gradir_plugin_<stem>`; GradirError GR036 if that fails."""
    name = "gradir_plugin_" + Path(path).stem.replace("-", "_")
    known = sys.modules.get(name)
    if known is not None and known.__file__ == os.path.abspath(path):  # a second tool in one process
        return known
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not os.path.isfile(path):
        raise _load_error(path, "no such Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
        _register(module)
    except GradirError:
        del sys.modules[name]
        raise
    except Exception as error:
        del sys.modules[name]
        raise _load_error(path, f"{type(error).__name__}: {error}{_line_in(path, error)}") from error
    return module


def load_installed() -> None:
    """Import the plugins of installed packages."""
    if not any(_dists_with_plugins()):
        return
    from importlib.metadata import entry_points  # 15 ms, and hardly anyone has a plugin

    for point in entry_points(group=GROUP):
        try:
            _register(point.load())
        except GradirError:
            raise
        except Exception as error:
            raise _load_error(f"{point.name} = {point.value}", f"{type(error).__name__}: {error}") from error


def _register(plugin: object) -> None:
    register: object = plugin if callable(plugin) else getattr(plugin, "register", None)
    if callable(register):
        cast("Callable[[], None]", register)()


def _dists_with_plugins() -> Iterator[str]:
    """Metadata folders on `sys.path` whose entry points name our group (reading 100 of them takes 2 ms)."""
    mark = f"[{GROUP}]".encode()
    for folder in dict.fromkeys(sys.path):
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        for name in names:
            if not name.endswith((".dist-info", ".egg-info")):
                continue
            try:
                with open(os.path.join(folder, name, "entry_points.txt"), "rb") as file:
                    if mark in file.read():
                        yield name
            except OSError:
                continue


def _line_in(path: str, error: Exception) -> str:
    """Where in the file `path` the exception passed last."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == os.path.abspath(path)]
    return f" ({os.path.basename(path)}:{lines[-1]})" if lines else ""


def _load_error(what: str, why: str) -> GradirError:
    return GradirError(
        f"plugin {what} does not load",
        part="graph",
        code="GR036",
        expected="a Python file that imports, or a package that provides the entry point",
        found=why,
        hint="run it with python alone to see the whole traceback",
    )
