"""gradir-run and gradir-translate: targets, notation, exit codes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gradir.tools.run import run
from gradir.tools.translate import run as translate

Capture = pytest.CaptureFixture[str]

ADD = """func.func @add(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = nd.add %x, %y : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
"""
SQUARES = """func.func private @loss(%w: tensor<3xf32>) -> tensor<f32> {
  %0 = nd.mul %w, %w : tensor<3xf32>
  %1 = nd.reduce_sum %0 dims [0] : tensor<3xf32> -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @step(%w: tensor<3xf32>) -> (tensor<f32>, tensor<3xf32>) {
  %loss, %dw = ad.value_and_grad @loss(%w) wrt [0] : (tensor<3xf32>) -> (tensor<f32>, tensor<3xf32>)
  return %loss, %dw : tensor<f32>, tensor<3xf32>
}
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADIR_CACHE_DIR", str(tmp_path / "cache"))


def module(tmp_path: Path, text: str = ADD) -> str:
    path = tmp_path / "module.mlir"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_results_in_the_notation_of_inputs(tmp_path: Path, capsys: Capture, target: str) -> None:
    inputs = ["--input=2x3xf32=1.5", "--input=2x3xf32=[[1,2,3],[4,5,inf]]"]
    assert run([module(tmp_path), f"--target={target}", *inputs]) == 0
    assert capsys.readouterr().out == "2x3xf32=[[2.5,3.5,4.5],[5.5,6.5,inf]]\n"


@pytest.mark.parametrize("target", ["cpu", "reference"])
def test_gradients_of_a_level_1_module(tmp_path: Path, capsys: Capture, target: str) -> None:
    assert run([module(tmp_path, SQUARES), "--entry", "step", f"--target={target}", "--input=3xf32=[1,-2,3]"]) == 0
    assert capsys.readouterr().out == "f32=14.0\n3xf32=[2.0,-4.0,6.0]\n"


def test_npy_input_and_bench(tmp_path: Path, capsys: Capture) -> None:
    np.save(tmp_path / "x.npy", np.ones((2, 3), np.float32))
    assert run([module(tmp_path), f"--input=@{tmp_path / 'x.npy'}", "--input=2x3xf32=1", "--bench", "3"]) == 0
    out, err = capsys.readouterr()
    assert out == "2x3xf32=2.0\n" and "3 runs: fastest" in err


@pytest.mark.parametrize("flags", [[], ["--target=runtime"]])
def test_artefact_runs_without_the_compiler(tmp_path: Path, flags: list[str]) -> None:
    from gradir.driver.compile import compile_module

    artefact = tmp_path / "add.gradir"
    compile_module(ADD).save(artefact)
    code = (
        "import sys; from gradir.tools.run import run; code = run(sys.argv[1:]); "
        "print(code, [m for m in sys.modules if m.startswith(('xdsl', 'gradir.dialects', 'gradir.driver.compile', 'gradir.lowering'))])"
    )
    arguments = [str(artefact), *flags, "--input=2x3xf32=1.5", "--input=2x3xf32=2"]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert done.stdout == "2x3xf32=3.5\n0 []\n", done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--input=2x3xf32=1"], 1, "wrong number of inputs"),
        (["--input=2x3xf32=1", "--input=2x2xf32=1"], 1, "[runtime RT002]"),
        (["--input=2x3xf32=1", "--input=2x3xf64=1"], 1, "[runtime RT003]"),
        (["--entry=sub", "--input=2x3xf32=1", "--input=2x3xf32=1"], 1, "no public function @sub"),
        (["--input=2x3=1"], 2, "[runtime RT050]"),
    ],
)
def test_mistakes(tmp_path: Path, capsys: Capture, arguments: list[str], code: int, message: str) -> None:
    assert run([module(tmp_path), *arguments]) == code
    out, err = capsys.readouterr()
    assert out == "" and message in err and "Traceback" not in err


def test_an_error_about_inputs_does_not_point_into_the_command(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [__file__])
    assert run([module(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith("gradir-run: error: [runtime RT001] wrong number of inputs")


def test_several_functions_need_an_entry(tmp_path: Path, capsys: Capture) -> None:
    path = module(tmp_path, ADD + ADD.replace("@add", "@add2"))
    assert run([path, "--target=reference", "--input=2x3xf32=1", "--input=2x3xf32=1"]) == 1
    assert "several public functions" in capsys.readouterr().err


def test_missing_files(tmp_path: Path, capsys: Capture) -> None:
    assert run(["/no/such.mlir"]) == 2
    assert run(["/no/such.gradir", "--target=runtime"]) == 1
    assert "[runtime RT013]" in capsys.readouterr().err
    assert translate(["/no/such.mlir", "--to=asm"]) == 2


def test_syntax_error_has_a_place(tmp_path: Path, capsys: Capture) -> None:
    path = module(tmp_path, ADD.replace("nd.add", "nd.addd"))
    assert run([path]) == 1
    assert f"{path}:2:8: [graph GR010] unknown op 'nd.addd'" in capsys.readouterr().err
    assert translate([path, "--to=llvm-ir"]) == 1
    assert f"{path}:2:8: [graph GR010]" in capsys.readouterr().err


def test_translate_text_formats(tmp_path: Path, capsys: Capture) -> None:
    path = module(tmp_path)
    assert translate([path, "--to=llvm-ir"]) == 0
    assert "define i32 @add.packed(ptr" in capsys.readouterr().out
    assert translate([path, "--to=asm", "--target=cpu", "-mcpu=znver3"]) == 0
    assert "vaddps" in capsys.readouterr().out


def test_translate_object(tmp_path: Path) -> None:
    out = tmp_path / "add.o"
    assert translate([module(tmp_path), "--to=obj", "-o", str(out)]) == 0
    assert out.read_bytes()[:4] == b"\x7fELF"


def test_translate_wrong_format(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as end:
        translate([module(tmp_path), "--to=wasm"])
    assert end.value.code == 2
