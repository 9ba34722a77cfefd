"""The tutorial docs/porting-from-jax.md runs as it stands."""

from pathlib import Path

import pytest

from tests.test_docs import DOCS, blocks

pytest.importorskip("jax")


def test_the_tutorial_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRADIR_CACHE_DIR", str(tmp_path / "cache"))
    names: dict[str, object] = {}
    for block in blocks(DOCS / "porting-from-jax.md", "python"):
        exec(compile(block, "porting-from-jax.md", "exec"), names)
    assert "func.func @main" in capsys.readouterr().out
    assert (tmp_path / "step.gradir").exists()
