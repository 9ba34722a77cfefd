"""Whole programs that JAX printed: they import, verify, keep their meaning on the road, and give JAX's results, evaluated and compiled."""

from pathlib import Path

import numpy as np
import pytest

from gradir.driver.compile import compile_module
from gradir.frontends.stablehlo import import_text
from gradir.ir.text import parse_module, print_module
from gradir.reference import run
from gradir.tools.opt import run as opt
from gradir.tools.stablehlo_suite import SUITES_VARIABLE, suites_folder
from tests.frontends_stablehlo.jax_reference import RESULTS, inputs_of

FOLDER = suites_folder()
PROGRAMS = sorted((FOLDER / "jax-programs").glob("*.mlir")) if FOLDER is not None else []
SLOW = ("fwd_cnn_sgd", "fwd_transformer_adamw", "train_mlp_adam")
"""Programs whose loops take the evaluator more than 5 s."""

pytestmark = pytest.mark.skipif(not PROGRAMS, reason=f"no jax-programs: set {SUITES_VARIABLE} to the folder of the suites")


def expected(path: Path) -> list[np.ndarray]:
    stored = np.load(RESULTS)
    return [stored[name] for name in stored.files if name.partition("/")[0] == path.stem]


def check(found: list[np.ndarray], path: Path) -> None:
    wanted = expected(path)
    assert len(found) == len(wanted) > 0
    for got, want in zip(found, wanted):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * max(1e-3, float(np.abs(want).max(initial=0))))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_program_gives_what_jax_gives(path: Path) -> None:
    text = path.read_text()
    module = import_text(text, path.name)
    assert print_module(parse_module(print_module(module))) == print_module(module)
    inputs = inputs_of(text)
    check(run(module, "main", inputs), path)
    results = compile_module(module, cache=False)["main"](*inputs)
    check([np.asarray(r) for r in (results if isinstance(results, tuple | list) else [results])], path)


@pytest.mark.parametrize("path", [pytest.param(p, marks=[pytest.mark.full] * (p.stem in SLOW), id=p.stem) for p in PROGRAMS])
def test_program_keeps_its_meaning_from_pass_to_pass(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    level1 = tmp_path / path.name
    level1.write_text(print_module(import_text(path.read_text(), path.name)))
    assert opt([str(level1), "-p", "to-structured{target=cpu},to-buffers,to-loops", "--check-semantics"]) == 0
    captured = capsys.readouterr()
    assert "scf." in captured.out
    assert not captured.err
