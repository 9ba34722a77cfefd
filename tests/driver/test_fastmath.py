"""`gradir.fastmath`: off unless a function asks for it; then the flags reach LLVM and sums may be reassociated."""

from __future__ import annotations

import numpy as np
import pytest

import gradir as gd
from gradir import GradirError
from gradir.driver.compile import compile_module

SPAN = """
func.func @f(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {ATTRIBUTES} {
  %s = nd.add %x, %y : tensor<4xf32>
  %d = nd.sub %x, %s : tensor<4xf32>
  return %d : tensor<4xf32>
}
"""
BIG, ONE = np.full(4, 1e8, np.float32), np.ones(4, np.float32)


def test_numerics_fastmath_is_off() -> None:
    """x - (x + y) loses y next to a large x, as IEEE says."""
    assert (compile_module(SPAN.replace("{ATTRIBUTES}", ""), cache=False)["f"](BIG, ONE) == 0).all()
    assert (gd.jit(lambda x, y: x - (x + y))(BIG, ONE) == 0).all()


def test_numerics_fastmath_is_a_choice_per_function() -> None:
    text = SPAN.replace("{ATTRIBUTES}", 'attributes {gradir.fastmath = "fast"}')
    assert (compile_module(text, cache=False)["f"](BIG, ONE) == -1).all()
    assert (gd.jit(lambda x, y: x - (x + y), fastmath="fast")(BIG, ONE) == -1).all()


def test_no_such_setting() -> None:
    text = SPAN.replace("{ATTRIBUTES}", 'attributes {gradir.fastmath = "loose"}')
    with pytest.raises(GradirError, match=r"OP045(.|\n)*none, fast(.|\n)*loose"):
        compile_module(text, cache=False)
