"""Barriers of StableHLO keep their identity."""

from __future__ import annotations

import numpy as np

from gradir.driver.compile import compile_module
from gradir.frontends.stablehlo import import_text
from gradir.ir.text import print_module
from gradir.reference import run

TEXT = """module @m {
  func.func public @main(%x: tensor<3xf32>, %y: tensor<2xi32>) -> (tensor<3xf32>, tensor<2xi32>) {
    %0:2 = stablehlo.optimization_barrier %x, %y : tensor<3xf32>, tensor<2xi32>
    stablehlo.optimization_barrier
    %1 = stablehlo.negate %0#0 : tensor<3xf32>
    return %1, %0#1 : tensor<3xf32>, tensor<2xi32>
  }
}
"""


def test_a_barrier_stays_one() -> None:
    module = import_text(TEXT.replace("    stablehlo.optimization_barrier\n", ""))
    assert print_module(module).count("nd.optimization_barrier") == 1
    x, y = np.array([1, -2, 0], np.float32), np.array([5, 6], np.int32)
    for results in (run(module, "main", [x, y]), compile_module(module, cache=False)["main"](x, y)):
        assert [np.asarray(r).tolist() for r in results] == [[-1, 2, 0], [5, 6]]
