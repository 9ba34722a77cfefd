"""Runs the lit tests from pytest: one test for the suite, one for a subset without the fork server."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


def lit(tmp_path: Path, *arguments: str, **environment: str) -> str:
    command = [sys.executable, "-c", "from lit.main import main; main()", "--no-progress-bar", *arguments]
    env = {**os.environ, "GRADIR_LIT_OUTPUT": str(tmp_path), **environment}
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=TESTS)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert "Passed" in done.stdout, "no test has run"  # `python -m lit.main` of lit 23 does nothing, successfully
    return done.stdout


def test_lit_suite(tmp_path: Path) -> None:
    lit(tmp_path, "-j2", str(TESTS / "filecheck"))


@pytest.mark.parametrize("folder", ["tools", "ir"])
def test_lit_subset_without_server_and_with_python_filecheck(tmp_path: Path, folder: str) -> None:
    lit(tmp_path, "-j2", str(TESTS / "filecheck" / folder), GRADIR_NO_SERVER="1", GRADIR_FILECHECK="python")
