"""Plugins: files given with --load, and entry points of installed packages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gradir.errors import GradirError
from gradir.tools.plugins import load_file, load_installed

PASS = """
from dataclasses import dataclass
from typing import ClassVar
from gradir.driver.passes import register_pass
from gradir.ir.passes import Pass

@dataclass(frozen=True)
class Nothing(Pass):
    NAME: ClassVar[str] = "{name}"
    def apply(self, op, context):
        pass

def register():
    register_pass("{name}", Nothing, "does nothing")
"""


def test_register_function_is_called(tmp_path: Path) -> None:
    path = tmp_path / "my-plugin.py"
    path.write_text("calls = []\ndef register():\n    calls.append(1)\n")
    module = load_file(str(path))
    assert module.calls == [1] and module.__name__ == "gradir_plugin_my_plugin"


def test_one_file_is_loaded_once_however_its_path_is_spelt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "twice.py"
    path.write_text("")
    monkeypatch.chdir(tmp_path)
    assert load_file(str(path)) is load_file("twice.py")


@pytest.mark.parametrize(("text", "found"), [("1 / 0", "ZeroDivisionError: division by zero"), ("def f(:", "SyntaxError")])
def test_a_plugin_that_raises_is_named(tmp_path: Path, text: str, found: str) -> None:
    path = tmp_path / "broken.py"
    path.write_text(text)
    with pytest.raises(GradirError) as caught:
        load_file(str(path))
    assert caught.value.code == "GR036" and found in caught.value.found and str(path) in caught.value.message


def test_a_folder_is_no_plugin(tmp_path: Path) -> None:
    with pytest.raises(GradirError, match="does not load"):
        load_file(str(tmp_path))


def test_a_pass_name_cannot_be_taken(tmp_path: Path) -> None:
    path = tmp_path / "thief.py"
    path.write_text(PASS.format(name="cse"))
    with pytest.raises(GradirError) as caught:
        load_file(str(path))
    assert caught.value.code == "GR031"


def installed(folder: Path, value: str, code: str) -> None:
    (folder / "installed_plugin.py").write_text(code)
    info = folder / "installed_plugin-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: installed-plugin\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[gradir.plugins]\nmine = {value}\n")


def test_entry_point_registers_a_pass(tmp_path: Path) -> None:
    installed(tmp_path, "installed_plugin:register", PASS.format(name="from-entry-point"))
    code = "import sys; sys.path.insert(0, sys.argv[1]); from gradir.tools.opt import run; run(['--list-passes'])"
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True)
    assert "from-entry-point" in done.stdout, done.stderr


def test_broken_entry_point_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, "installed_plugin", "raise RuntimeError('no')")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(GradirError, match=r"mine = installed_plugin does not load"):
        load_installed()
