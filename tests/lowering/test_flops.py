"""Floating-point operations from Python: what is counted is what runs, after derivatives and simplifications."""

from __future__ import annotations

import numpy as np
import pytest

import gradir as gd
from gradir.errors import GradirError
from gradir.ir.text import parse_module
from gradir.lowering.flops import flops

X = np.ones((4, 5))


def test_a_product_and_its_gradient() -> None:
    w = np.ones((5, 6))
    f = lambda w, x: gd.sum(gd.tanh(x @ w))
    assert gd.flops(f, w, X) == 2 * 4 * 5 * 6 + 24 + 24
    gradient = gd.flops(gd.grad(f), w, X)
    assert gradient == 2 * (2 * 4 * 5 * 6) + 24 + 2 * 24  # x w again and x^T ct, tanh, 1 - y y (the cotangent is 1 everywhere)


def test_composites_count_as_their_expansions_without_a_pass() -> None:
    text = (
        "func.func @f(%x: tensor<4x5xf64>) -> tensor<4x5xf64> {\n%y = nd.softmax %x dim 1 : tensor<4x5xf64>\nreturn %y : tensor<4x5xf64>\n}"
    )
    assert flops(parse_module(text)) >= 5 * 20


def test_what_is_not_read_and_what_is_known_is_not_counted() -> None:
    def f(x: gd.Array) -> gd.Array:
        gd.exp(x)
        return x * (gd.ones((4, 5), x.dtype) * 2.0)

    assert gd.flops(f, X) == 20


def test_loops_multiply() -> None:
    loop = lambda x: gd.fori_loop(0, 7, lambda i, s: gd.fori_loop(0, 3, lambda j, t: gd.sin(t), s), x)
    assert gd.flops(loop, X) == 7 * 3 * 20


def test_a_number_stands_for_unknown_trips() -> None:
    loop = lambda x: gd.while_loop(lambda s: gd.sum(s) < 9.0, lambda s: gd.exp(s), x)
    assert gd.flops(loop, X, trips=3) == 4 * (20 + 1) + 3 * 20
    with pytest.raises(GradirError, match="known only at run time") as error:
        gd.flops(loop, X)
    assert error.value.code == "GR071"


def test_which_function() -> None:
    module = parse_module("func.func @f() {\nreturn\n}\nfunc.func @g() {\nreturn\n}")
    assert flops(module, "g") == 0
    with pytest.raises(GradirError, match="several functions") as error:
        flops(module)
    assert error.value.code == "GR072"
    with pytest.raises(GradirError, match="no such function") as error:
        flops(module, "h")
    assert error.value.code == "GR072" and error.value.found == "@h"


def test_a_library_counts_as_what_it_computes() -> None:
    """Cholesky of 100 rows goes to LAPACK where that is installed: n^3 / 3 either way."""
    assert gd.flops(lambda x: gd.linalg.cholesky(x), np.eye(100)) - 2 * 100 * 100 == -(-(100**3) // 3)
