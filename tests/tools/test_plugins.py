"""Plugins: files given with --load, and entry points of installed packages."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gradir.errors import GradirError
from gradir.tools import main as tools
from gradir.tools.arrays import read_array
from gradir.tools.plugins import load_file, load_installed

DOCS = Path(__file__).parent.parent.parent / "docs"
MISH = """
func.func private @f(%x: tensor<4xf32>) -> tensor<f32> {
  %0 = my.mish %x : tensor<4xf32>
  %1 = nd.reduce_sum %0 dims [0] : tensor<4xf32> -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @g(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = ad.grad @f(%x) wrt [0] : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""

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


@pytest.mark.parametrize(
    ("text", "found"), [("x = 0\n1 / x", "ZeroDivisionError: division by zero (broken.py:2)"), ("def f(:", "SyntaxError")]
)
def test_a_plugin_that_raises_is_named(tmp_path: Path, text: str, found: str) -> None:
    path = tmp_path / "broken.py"
    path.write_text(text)
    with pytest.raises(GradirError) as caught:
        load_file(str(path))
    assert caught.value.code == "GR036" and found in caught.value.found and str(path) in caught.value.message


def test_the_composite_of_the_manual(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The block of docs/add-an-op.md is a plugin that is differentiated, compiled and evaluated."""
    (block,) = re.findall(r"```python\n(from collections.*?)```", (DOCS / "add-an-op.md").read_text(), re.S)
    (tmp_path / "mish.py").write_text(block)
    (tmp_path / "mish.mlir").write_text(MISH)
    found = []
    for target in ("cpu", "reference"):
        arguments = [str(tmp_path / "mish.mlir"), "--load", str(tmp_path / "mish.py"), "--target", target, "--input=4xf32=iota"]
        assert tools.run(["run", *arguments]) == 0
        found.append(read_array(capsys.readouterr().out.strip()))
    x = np.arange(4.0)
    slope = np.tanh(np.log1p(np.exp(x))) + x * (1 - np.tanh(np.log1p(np.exp(x))) ** 2) / (1 + np.exp(-x))
    for gradient in found:
        np.testing.assert_allclose(gradient, slope, rtol=1e-6)


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
