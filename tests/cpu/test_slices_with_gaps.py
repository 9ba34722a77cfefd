"""Slices along run-time sizes whose rows do not follow each other in memory: kernels that join dimensions must see the gaps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradir.driver.compile import compile_module
from gradir.ir.text import parse_module
from gradir.reference import run

X = np.arange(72.0).reshape(6, 6, 2)
Y = -np.arange(72.0).reshape(6, 6, 2)


def named(*sizes: int | str) -> str:
    """The type of an f64 tensor; a string is the name of a run-time size."""
    dims = "x".join("?" if isinstance(n, str) else str(n) for n in sizes)
    names = ", ".join(f'"{n}"' if isinstance(n, str) else '""' for n in sizes)
    return f"tensor<{dims}xf64, [{names}]>"


def check(text: str, *inputs: Any) -> None:
    module = parse_module(text)
    expected = run(module, "f", list(inputs))[0]
    for optimize in (0, 1, 2):
        np.testing.assert_allclose(compile_module(module, optimize=optimize, cache=False)["f"](*inputs), expected, rtol=1e-14)


SLICES = {
    "columns of rows": ((6, 6, "c"), (6, 3, "c"), "start [0, 1, 0] limit [6, 4, -1]"),
    "every second row": ((6, 6, "c"), (3, 6, "c"), "start [0, 0, 0] limit [6, 6, -1] stride [2, 1, 1]"),
    "both": ((6, 6, "c"), (3, 3, "c"), "start [0, 1, 0] limit [5, 6, -1] stride [2, 2, 1]"),
    "a run-time window": ((6, "b", 2), (6, "max(b-3,0)", 2), "start [0, 3, 0] limit [6, -1, 2]"),
    "rows in a row": ((6, 6, "c"), (3, 6, "c"), "start [1, 0, 0] limit [4, 6, -1]"),
    "all run-time": (("a", "b", "c"), ("a", 2, "c"), "start [0, 1, 0] limit [-1, 3, -1]"),
}


@pytest.mark.parametrize("name", SLICES)
def test_reading(name: str) -> None:
    sizes, part, numbers = SLICES[name]
    large, small = named(*sizes), named(*part)
    cut = f"%a = nd.slice %x {numbers} : {large} -> {small}\n%b = nd.slice %y {numbers} : {large} -> {small}\n"
    check(
        f"func.func @f(%x: {large}, %y: {large}) -> {small} {{\n{cut}%c = nd.sin %b : {small}\n%r = nd.add %a, %c : {small}\nreturn %r : {small}\n}}",
        X,
        Y,
    )


def test_writing() -> None:
    large, small = named(6, 6, "c"), named(6, 3, "c")
    body = f"""
  %0 = nd.constant splat(0 : i32) : tensor<i32>
  %1 = nd.constant splat(2 : i32) : tensor<i32>
  %n = nd.neg %y : {large}
  %u = nd.mul %p, %p : {small}
  %r = nd.dynamic_update_slice %n, %u, %0, %1, %0 : {large}, {small}, tensor<i32>, tensor<i32>, tensor<i32> -> {large}
"""
    check(f"func.func @f(%p: {small}, %y: {large}) -> {large} {{{body}  return %r : {large}\n}}", X[:, 3:].copy(), Y)


def test_in_a_loop() -> None:
    """Slots of a stack are whole rows and stay so; a column of it is not."""
    large, row, column = named(6, "b", 2), named("b", 2), named(6, 2)
    body = f"""
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %6 = arith.constant 6 : index
  %r = scf.for %i = %0 to %6 step %1 iter_args(%s = %y) -> ({large}) {{
    %a = nd.index_at %x[%i] dim 0 : {large} -> {row}
    %c = nd.sin %a : {row}
    %t = nd.update_at %c into %s[%i] dim 0 : {row} -> {large}
    %k = nd.index_at %t[%1] dim 1 : {large} -> {column}
    %m = nd.add %k, %k : {column}
    %v = nd.update_at %m into %t[%1] dim 1 : {column} -> {large}
    scf.yield %v : {large}
  }}
"""
    check(f"func.func @f(%x: {large}, %y: {large}) -> {large} {{{body}  return %r : {large}\n}}", X, Y)
