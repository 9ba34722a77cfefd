"""Whole programs that JAX printed: they import, verify, and give JAX's results, evaluated and compiled."""

from pathlib import Path

import numpy as np
import pytest

from gradir.driver.compile import compile_module
from gradir.errors import GradirError
from gradir.frontends.stablehlo import import_text
from gradir.ir.text import parse_module, print_module
from gradir.reference import run
from gradir.tools.stablehlo_suite import SUITES_VARIABLE, suites_folder
from tests.frontends_stablehlo.jax_reference import RESULTS, inputs_of

FOLDER = suites_folder()
PROGRAMS = sorted((FOLDER / "jax-programs").glob("*.mlir")) if FOLDER is not None else []
NOT_YET = {"random_dropout": "stablehlo.bitcast_convert", "topk_cumsum": "chlo.top_k"}

pytestmark = pytest.mark.skipif(not PROGRAMS, reason=f"no jax-programs: set {SUITES_VARIABLE} to the folder of the suites")


def expected(path: Path) -> list[np.ndarray]:
    stored = np.load(RESULTS)
    return [stored[name] for name in stored.files if name.partition("/")[0] == path.stem]


def check(found: list[np.ndarray], path: Path) -> None:
    wanted = expected(path)
    assert len(found) == len(wanted)
    for got, want in zip(found, wanted):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * max(1e-3, float(np.abs(want).max(initial=0))))


@pytest.mark.parametrize("path", [p for p in PROGRAMS if p.stem not in NOT_YET], ids=lambda p: p.stem)
def test_program_gives_what_jax_gives(path: Path) -> None:
    text = path.read_text()
    module = import_text(text, path.name)
    assert print_module(parse_module(print_module(module))) == print_module(module)
    inputs = inputs_of(text)
    check(run(module, "main", inputs), path)
    results = compile_module(module, cache=False)["main"](*inputs)
    check([np.asarray(r) for r in (results if isinstance(results, tuple | list) else [results])], path)


@pytest.mark.parametrize("path", [p for p in PROGRAMS if p.stem in NOT_YET], ids=lambda p: p.stem)
def test_program_that_waits_for_an_op_says_so(path: Path) -> None:
    with pytest.raises(GradirError, match=NOT_YET[path.stem]):
        import_text(path.read_text(), path.name)
