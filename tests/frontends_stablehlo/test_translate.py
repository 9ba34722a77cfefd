"""gradir-translate --from=stablehlo."""

from pathlib import Path

import pytest

from gradir.ir.text import parse_module
from gradir.tools.translate import run as translate

Capture = pytest.CaptureFixture[str]

PROGRAM = """module @m {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %r = stablehlo.OP %x : tensor<4xf32>
    return %r : tensor<4xf32>
  }
}
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "model.mlir"
    path.write_text(PROGRAM.replace("OP", "tanh"))
    return path


def test_level_1_is_printed_and_what_is_ignored_said_once(program: Path, capsys: Capture) -> None:
    assert translate(["--from=stablehlo", "--to=gradir", str(program)]) == 0
    captured = capsys.readouterr()
    assert "nd.tanh %x : tensor<4xf32>" in captured.out
    parse_module(captured.out)
    assert captured.err == f"{program}:2:3: remark: sharding is ignored: the program runs on one device\n"


def test_other_formats_take_the_road(program: Path, capsys: Capture) -> None:
    assert translate(["--from=stablehlo", "--to=llvm-ir", str(program)]) == 0
    assert "@main.packed" in capsys.readouterr().out


def test_our_own_text_is_printed_as_it_was_read(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "ours.mlir"
    path.write_text("func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %x : tensor<4xf32>\n}\n")
    assert translate(["--to=gradir", str(path)]) == 0
    assert "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32>" in capsys.readouterr().out


def test_what_is_missing_ends_with_1(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(PROGRAM.replace("OP", "infeed"))
    assert translate(["--from=stablehlo", "--to=gradir", str(path)]) == 1
    assert "[graph GR120] stablehlo.infeed: no counterpart at level 1" in capsys.readouterr().err


def test_level_1_is_written_as_stablehlo(program: Path, capsys: Capture) -> None:
    assert translate(["--from=stablehlo", "--to=stablehlo", str(program)]) == 0
    assert "stablehlo.tanh %0 : tensor<4xf32>" in capsys.readouterr().out


def test_gradients_are_resolved_before_they_are_written(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "ours.mlir"
    path.write_text(
        "func.func @loss(%x: tensor<f32>) -> tensor<f32> {\n  %y = nd.sin %x : tensor<f32>\n  return %y : tensor<f32>\n}\n"
        "func.func @main(%x: tensor<f32>) -> tensor<f32> {\n  %g = ad.grad @loss(%x) wrt [0] : (tensor<f32>) -> tensor<f32>\n"
        "  return %g : tensor<f32>\n}\n"
    )
    assert translate(["--to=stablehlo", str(path)]) == 0
    assert "stablehlo.cosine" in capsys.readouterr().out
