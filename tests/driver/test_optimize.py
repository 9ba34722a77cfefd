"""`optimize`: how much of the road runs. The results agree; the number of kernels tells what was left out."""

from __future__ import annotations

import numpy as np
import pytest

import gradir as gd
from gradir import GradirError
from gradir.driver.compile import compile_module
from gradir.driver.progress import remaining
from gradir.driver.report import CompileReport
from gradir.ir.text import parse_module

CHAIN = """
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = nd.exp %x : tensor<8xf32>
  %b = nd.exp %x : tensor<8xf32>
  %c = nd.add %a, %b : tensor<8xf32>
  %d = nd.tanh %c : tensor<8xf32>
  return %d : tensor<8xf32>
}
"""


@pytest.mark.parametrize(("optimize", "ops"), [(0, 4), (1, 3), (2, 1)])
def test_kernels_per_setting(optimize: int, ops: int) -> None:
    """Equal ops make equal kernels: the two exponentials are one kernel either way, called twice when nothing is simplified."""
    report = CompileReport(keep_ir=True)
    x = np.linspace(-2, 2, 8, dtype=np.float32)
    found = compile_module(CHAIN, optimize=optimize, cache=False, report=report)["f"](x)
    np.testing.assert_allclose(found, np.tanh(2 * np.exp(x)), rtol=1e-6)
    assert report.ir["2 structured"].count("call @") == ops


def test_settings_name_what_runs() -> None:
    module = parse_module(CHAIN)
    names = [{str(request) for request in remaining(module, optimize=optimize)} for optimize in (0, 1, 2)]
    assert "cse" in names[1] and "cse" not in names[0]
    assert "fuse{join=False}" in names[1] and "fuse" in names[2]


def test_functions_take_the_setting() -> None:
    x = np.ones(4, np.float32)
    kernels = [gd.compile(lambda x: gd.tanh(gd.exp(x)), x, optimize=optimize, cache=False).report.kernels for optimize in (1, 2)]
    assert kernels == [2, 1]
    assert gd.jit(lambda x: gd.exp(x) + 1, optimize=0)(x)[0] == np.float32(np.e) + 1


def test_another_setting_is_an_error() -> None:
    with pytest.raises(GradirError, match=r"RT016.*\n.*optimize=0"):
        compile_module(CHAIN, optimize=3)
