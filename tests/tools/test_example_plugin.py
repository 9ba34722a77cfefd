"""examples/plugin: every facet of an op that is not part of the package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from gradir.driver.evaluate import evaluate_level1
from gradir.ir.text import parse_module, print_module
from gradir.tools.opt import run
from gradir.tools.plugins import load_file

PLUGIN = Path(__file__).parent.parent.parent / "examples" / "plugin"
SCRIPT, TEXT = str(PLUGIN / "gradir_softsign.py"), str(PLUGIN / "softsign.mlir")

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def plugin() -> ModuleType:
    return load_file(SCRIPT)


def test_samples_round_trip_and_evaluate(plugin: ModuleType) -> None:
    for sample in plugin.SoftsignOp.samples():
        module = parse_module(sample.text)
        assert print_module(parse_module(print_module(module))) == print_module(module)
        (x,) = sample.inputs()
        with np.errstate(all="ignore"):
            expected = x / (1 + np.abs(x))
        np.testing.assert_array_equal(evaluate_level1(module, "f", [x])[0], expected)


def test_verifier(plugin: ModuleType) -> None:
    bad = "func.func @f(%x: tensor<2xi32>) -> tensor<2xi32> {\n  %0 = act.softsign %x : tensor<2xi32>\n  return %0 : tensor<2xi32>\n}\n"
    with pytest.raises(Exception, match=r"act\.softsign"):
        parse_module(bad)


def test_derivative_against_differences(plugin: ModuleType) -> None:
    text = Path(TEXT).read_text().replace("f32", "f64")
    x = np.linspace(-2.0, 3.0, 8)
    _, gradient = evaluate_level1(parse_module(text), "step", [x])
    h = 1e-6
    differences = [(((x + h * e) / (1 + abs(x + h * e))).sum() - ((x - h * e) / (1 + abs(x - h * e))).sum()) / (2 * h) for e in np.eye(8)]
    np.testing.assert_allclose(gradient, differences, rtol=1e-8)


def test_derivative_through_the_raised_op(capsys: Capture) -> None:
    assert run([TEXT, "--load", SCRIPT, "-p", "act-raise,dce,differentiate"]) == 0
    module = parse_module(capsys.readouterr().out)
    x = np.linspace(-2.0, 3.0, 8, dtype=np.float32)
    value, gradient = evaluate_level1(module, "step", [x])
    np.testing.assert_allclose(value, (x / (1 + abs(x))).sum(), rtol=1e-6)
    np.testing.assert_allclose(gradient, 1 / (1 + abs(x)) ** 2, rtol=1e-6)


def test_fold(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "odd.mlir"
    path.write_text(
        "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
        "  %0 = nd.neg %x : tensor<4xf32>\n  %1 = act.softsign %0 : tensor<4xf32>\n  return %1 : tensor<4xf32>\n}\n"
    )
    assert run([str(path), "--load", SCRIPT, "-p", "canonicalize"]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines() if "tensor<4xf32>" in line and "=" in line]
    assert lines == ["%0 = act.softsign %x : tensor<4xf32>", "%1 = nd.neg %0 : tensor<4xf32>"]


def test_all_the_way_down(capsys: Capture) -> None:
    pipeline = "act-raise,dce,differentiate,to-structured{target=cpu},to-buffers,to-loops"
    assert run([TEXT, "--load", SCRIPT, "-p", pipeline]) == 0
    out = capsys.readouterr().out
    assert "act." not in out and "arith.divf" in out


def test_found_as_an_installed_package(tmp_path: Path) -> None:
    info = tmp_path / "gradir_softsign-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: gradir-softsign\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text("[gradir.plugins]\nsoftsign = gradir_softsign\n")
    code = "import sys; sys.path[:0] = sys.argv[1:3]; from gradir.tools.opt import run; sys.exit(run(sys.argv[3:]))"
    arguments = [str(tmp_path), str(PLUGIN), TEXT, "-p", "act-raise,dce"]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert done.returncode == 0 and "act.softsign %x" in done.stdout, done.stderr
