"""What `gradir-translate` writes of a module for CUDA."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from gradir.driver.lower import lower
from gradir.errors import GradirError
from gradir.targets import translate
from gradir.targets.nvptx import disassemble
from gradir.tools.translate import run
from tests.targets.assembler import needs_ptxas

TEXT = "func.func @f(%x: tensor<64xf32>) -> tensor<64xf32> {\n %y = nd.tanh %x : tensor<64xf32>\n return %y : tensor<64xf32>\n}\n"


def test_host_code() -> None:
    module = lower(TEXT, target="cuda")
    text = translate.to_llvm_ir(module)
    assert "call i32 @gradir.launch(ptr %ctx" in text and "vector" not in text
    assert translate.to_object(module)[:4] == b"\x7fELF"


@needs_ptxas
def test_a_cubin(tmp_path: Path) -> None:
    (tmp_path / "f.mlir").write_text(TEXT)
    assert run([str(tmp_path / "f.mlir"), "--to=cubin", "--cpu=sm_80", "-o", str(tmp_path / "f.cubin")]) == 0
    assert (tmp_path / "f.cubin").read_bytes()[:4] == b"\x7fELF"


def test_sass_comes_from_the_toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GradirError, match="prints machine code") as caught:
        disassemble(b"code")
    assert caught.value.code == "OP044" and "--to=cubin" in (caught.value.hint or "")
    tool = tmp_path / "nvdisasm"
    tool.write_text('#!/bin/sh\n/bin/cat "$1"\n')
    os.chmod(tool, tool.stat().st_mode | stat.S_IEXEC)
    assert disassemble(b"MOV R1") == "MOV R1"
    tool.write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(GradirError, match="ended with 3"):
        disassemble(b"code")
