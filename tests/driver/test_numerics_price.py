"""docs/numerics.md, row "the price": where strong zeros give 0 and calculus another number, `check_nan` reports the product."""

from __future__ import annotations

import numpy as np

import gradir as gd
from gradir.driver.check_nan import compile_checked


def test_check_nan_reports_the_price() -> None:
    """(sqrt(x) * sqrt(x))' at 0 is 0 (truly 1): both products 0 * inf of the rule are noted."""
    x = np.float32(0)
    f = lambda x: gd.sqrt(x) * gd.sqrt(x)
    assert gd.grad(f)(x) == 0
    module, watch = compile_checked(gd.jit(gd.grad(f)).lower(x))
    watch.begin()
    (name,) = [function.name for function in module.manifest.functions]
    assert module[name](x) == 0
    assert any("0 times inf" in note.text and note.text.startswith("nd.mul_strong") for note in watch.notes)


def test_second_derivative_of_a_squared_norm_pays_too() -> None:
    second = gd.jvp(gd.grad(lambda x: gd.linalg.norm(x) ** 2), (np.zeros(2, np.float32),), (np.array([1, 0], np.float32),))[1]
    np.testing.assert_array_equal(second, [0, 0])
