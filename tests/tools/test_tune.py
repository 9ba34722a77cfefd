"""gradir-tune and gradir-run --explain: what they print, exit codes, wrong command lines. No clock: measurements are made up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import gradir as gd
from gradir.driver import explain as explaining
from gradir.driver.tuning import tune as tuning
from gradir.driver.tuning.trials import Job, Outcome
from gradir.tools.main import run as gradir
from gradir.tools.run import run as gradir_run
from gradir.tools.tune import run
from tests.driver.test_explain import LIMITS, made_up

Capture = pytest.CaptureFixture[str]

DENSE = """func.func @dense(%x: tensor<24x40xf32>, %w: tensor<40x32xf32>) -> tensor<24x32xf32> {
  %0 = nd.dot_general %x, %w contract [1] x [0] : tensor<24x40xf32>, tensor<40x32xf32> -> tensor<24x32xf32>
  %1 = nd.tanh %0 : tensor<24x32xf32>
  return %1 : tensor<24x32xf32>
}
"""


def faster(job: Job) -> list[Outcome]:
    return [Outcome((1.0 - 0.05 * k,) * job.rounds) for k in range(len(job.forms))]


@pytest.fixture(autouse=True)
def made_up_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADIR_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(explaining, "measure_runs", lambda: made_up)
    for name in ("limits", "measured_again"):
        monkeypatch.setattr(explaining.LimitsFile, name, lambda self: LIMITS)
    real = tuning.tune
    monkeypatch.setattr(tuning, "tune", lambda *args, **options: real(*args, measure=faster, **options))


@pytest.fixture
def dense(tmp_path: Path) -> str:
    path = tmp_path / "dense.mlir"
    path.write_text(DENSE)
    return str(path)


def test_tune_show_export_import_clear(dense: str, tmp_path: Path, capsys: Capture) -> None:
    assert run([dense, "--threads=1", "--quiet", "--seconds=60"]) == 0
    out = capsys.readouterr().out
    assert "@dense on #target.cpu" in out and "contraction_0" in out and "the program: 1 s before, 950 ms after" in out
    assert gradir(["tune", "--show"]) == 0
    shown = capsys.readouterr().out
    assert "contraction_0" in shown and "dense.mlir:3" in shown and "1.18x" in shown
    assert run(["--export", str(tmp_path / "found.json")]) == 0 and run(["--export=-"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((tmp_path / "found.json").read_text())
    assert run(["--show", "--json"]) == 0
    (folder,) = json.loads(capsys.readouterr().out)
    assert folder["current"] and len(folder["decisions"]) == 1
    assert run(["--clear"]) == 0 and capsys.readouterr().out == "1 decisions forgotten\n"
    assert run(["--show"]) == 0 and capsys.readouterr().out == "no decisions\n"
    assert run(["--import", str(tmp_path / "found.json")]) == 0 and capsys.readouterr().out == "1 decisions taken\n"
    assert gradir_run([dense, "--threads=1", "--explain"]) == 0
    assert "tuned: 1.18 times as fast as contraction" in capsys.readouterr().out


def test_progress_and_json(dense: str, capsys: Capture) -> None:
    assert run([dense, "--json", "--entry=@dense", "--input=24x40xf32=1", "--input=40x32xf32=random(0)", "--cpu=x86-64-v3"]) == 0
    captured = capsys.readouterr()
    (report,) = json.loads(captured.out)
    assert report["kernels"][0]["record"]["tried"] > 1 and "x86-64-v3" in report["target"]
    assert "contraction_0" in captured.err and "dense.mlir" in captured.err


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        ([], 2, "expected files to tune, or one of --show, --clear, --export, --import"),
        (["--show", "--clear"], 2, "or one of"),
        (["FILE", "--show"], 2, "or one of"),
        (["nowhere.mlir", "--quiet"], 2, "nowhere.mlir"),
        (["FILE", "--quiet", "--input=4"], 2, "RT050"),
        (["--import=nowhere.json"], 2, "nowhere.json"),
        (["--import=FILE"], 1, "RT062"),
        (["FILE", "--quiet", "--entry=other"], 1, "GR052"),
        (["--show", "--cache="], 0, ""),
    ],
)
def test_wrong_command_lines(dense: str, arguments: list[str], code: int, expected: str, capsys: Capture) -> None:
    assert run([argument.replace("FILE", dense) for argument in arguments]) == code
    assert expected in capsys.readouterr().err


def test_no_cache_no_decisions(dense: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("GRADIR_CACHE_DIR", "")
    assert run([dense]) == 2 and "RT064" in capsys.readouterr().err


def test_run_explain_prints_a_table_and_writes_a_page(dense: str, tmp_path: Path, capsys: Capture) -> None:
    inputs = ["--input=24x40xf32=1", "--input=40x32xf32=random(0)"]
    assert gradir_run([dense, *inputs, "--explain", str(tmp_path / "page")]) == 0
    captured = capsys.readouterr()
    assert "contraction_0" in captured.out and "of bound" in captured.out and "index.html" in captured.err
    assert {"index.html", "trace.json", "explain.json"} <= {path.name for path in (tmp_path / "page").iterdir()}


def test_run_explain_of_a_saved_artefact(dense: str, tmp_path: Path, capsys: Capture) -> None:
    module: Any = gd.compile(gd.parse(DENSE))
    module.save(tmp_path / "dense.gradir")
    assert gradir_run([str(tmp_path / "dense.gradir"), "--explain"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("kernel") and "contraction_0" in out and "heuristic" in out and "accumulators" in out


@pytest.mark.parametrize("option", ["--target=reference", "--check-nan"])
def test_run_explain_needs_compiled_code(dense: str, option: str, capsys: Capture) -> None:
    assert gradir_run([dense, option, "--explain"]) == 1
    assert "RT065" in capsys.readouterr().err
