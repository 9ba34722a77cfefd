"""Helpers of the tests that compare our text with upstream's `mlir-opt`."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from gradir.ir.text import parse_module

MLIR_OPT = shutil.which("mlir-opt-22")


def reprint(text: str) -> str:
    """`text` through our parser, xDSL's verifier and our printer."""
    module = parse_module(text)
    module.verify()
    return str(module)


def upstream(text: str) -> str:
    """`text` through upstream's parser, verifier and printer."""
    if MLIR_OPT is None:
        pytest.skip("mlir-opt-22 is not installed")
    command = [MLIR_OPT, "--allow-unregistered-dialect", "--verify-each"]
    run = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr + text
    return run.stdout
