"""Comparators and combiners: which become attributes, which stay regions, and what both compute, evaluated and compiled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from gradir.dialects import nd
from gradir.driver.compile import compile_module
from gradir.frontends.stablehlo import import_text
from gradir.reference import run

Array = np.ndarray[Any, Any]
F32 = "tensor<f32>"


def program(arguments: str, results: str, *lines: str) -> ModuleOp:
    """`@main` of these lines; the last op gives `%r`, `%r#0`, .."""
    kinds = results.split(", ")
    names = "%r" if len(kinds) == 1 else ", ".join(f"%r#{k}" for k in range(len(kinds)))
    body = "\n".join((*lines, f"return {names} : {results}"))
    return import_text(f"module @m {{ func.func public @main({arguments}) -> ({results}) {{\n{body}\n}} }}", "m.mlir")


def both(module: ModuleOp, *inputs: Array) -> list[Array]:
    """The results of the evaluator, which the compiled program gives too."""
    wanted = run(module, "main", list(inputs))
    found = compile_module(module, cache=False)["main"](*inputs)
    for got, want in zip(found if isinstance(found, tuple | list) else [found], wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(got), want)
    return wanted


def only(module: ModuleOp, kind: type[Any]) -> Any:
    """The one op of that class."""
    (found,) = [op for op in module.walk() if isinstance(op, kind)]
    return found


def compare(result: str, direction: str, x: str, y: str, element: str = "f32", order: str = "TOTALORDER") -> str:
    kind = f"tensor<{element}>"
    return f"%{result} = stablehlo.compare {direction}, %{x}, %{y}, {order} : ({kind}, {kind}) -> tensor<i1>"


def sort(elements: Sequence[str], *lines: str, arguments: str = "") -> ModuleOp:
    """A sort of operands of 5 elements; the comparator's arguments are %a0, %b0, %a1, .."""
    kinds = ", ".join(f"tensor<5x{e}>" for e in elements)
    inputs = ", ".join(f"%x{k}: tensor<5x{e}>" for k, e in enumerate(elements))
    pairs = ", ".join(f"%{side}{k}: tensor<{e}>" for k, e in enumerate(elements) for side in "ab")
    names = ", ".join(f"%x{k}" for k in range(len(elements)))
    pack = f":{len(elements)}" if len(elements) > 1 else ""
    return program(
        inputs,
        kinds,
        f'%r{pack} = "stablehlo.sort"({names}) <{{dimension = 0 : i64, is_stable = true}}> ({{',
        f"^bb0({pairs}):",
        *lines,
        "stablehlo.return %c : tensor<i1>",
        f"}}) : ({kinds}) -> ({kinds})",
    )


def canonical(result: str, x: str) -> list[str]:
    """JAX's spelling: -0 is 0, every NaN is the same."""
    zero, nan = f"{result}_zero", f"{result}_nan"
    return [
        f"%{zero} = stablehlo.constant dense<0.0> : {F32}",
        compare(f"{result}_is_zero", "EQ", x, zero, order="FLOAT"),
        f"%{result}_plain = stablehlo.select %{result}_is_zero, %{zero}, %{x} : tensor<i1>, {F32}",
        compare(f"{result}_is_nan", "NE", x, x, order="FLOAT"),
        f"%{nan} = stablehlo.constant dense<0x7FC00000> : {F32}",
        f"%{result} = stablehlo.select %{result}_is_nan, %{nan}, %{result}_plain : tensor<i1>, {F32}",
    ]


X = np.array([3, np.nan, -0.0, 0.0, -np.inf], np.float32)
NEGATIVE_NAN = np.array([0xFFC00000], np.uint32).view(np.float32)
I = np.array([2, 0, 1, 1, 2], np.int32)


def test_two_keys_as_jax_writes_them():
    lines = [*canonical("p", "a1"), *canonical("q", "b1"), compare("l1", "LT", "p", "q")]
    lines += [compare("l0", "LT", "a0", "b0", "i32", "SIGNED"), compare("e0", "EQ", "a0", "b0", "i32", "SIGNED")]
    lines += ["%t = stablehlo.and %e0, %l1 : tensor<i1>", "%c = stablehlo.or %l0, %t : tensor<i1>"]
    module = sort(["i32", "f32", "i32"], *lines)
    found = only(module, nd.SortOp)
    assert (found.comparator, found.number("keys"), found.is_descending, found.is_total) == (None, 2, False, False)
    first, second, third = both(module, I, X, np.arange(5, dtype=np.int32))
    np.testing.assert_array_equal(first, [0, 1, 1, 2, 2])
    np.testing.assert_array_equal(second, np.array([np.nan, -0.0, 0.0, -np.inf, 3], np.float32))
    np.testing.assert_array_equal(third, [1, 2, 3, 4, 0])


@pytest.mark.parametrize(("direction", "sides", "descending"), [("GT", "ab", True), ("LT", "ba", True), ("GT", "ba", False)])
def test_directions(direction: str, sides: str, descending: bool):
    module = sort(["i32"], compare("c", direction, f"{sides[0]}0", f"{sides[1]}0", "i32", "SIGNED"))
    found = only(module, nd.SortOp)
    assert (found.comparator, found.is_descending) == (None, descending)
    (got,) = both(module, I)
    np.testing.assert_array_equal(got, sorted(I.tolist(), reverse=descending))


def test_total_order_of_plain_floats():
    module = sort(["f32"], compare("c", "LT", "a0", "b0"))
    assert only(module, nd.SortOp).is_total
    (got,) = both(module, np.concatenate([X[[2, 3, 1, 4]], NEGATIVE_NAN]))
    np.testing.assert_array_equal(np.signbit(got), [True, True, True, False, False])
    assert np.isnan(got[0]) and np.isnan(got[-1]) and got[1] == -np.inf


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        ([compare("c", "LT", "a0", "b0", order="FLOAT")], None),
        (["%m = stablehlo.negate %a0 : tensor<f32>", "%n = stablehlo.negate %b0 : tensor<f32>", compare("c", "LT", "m", "n")], [5, 3, 1, 0, -2]),
        ([compare("c", "LE", "a0", "b0")], [-2, 0, 1, 3, 5]),
    ],
)  # fmt: skip
def test_other_comparators_stay(lines: list[str], wanted: list[float] | None):
    module = sort(["f32"], *lines)
    assert only(module, nd.SortOp).comparator is not None
    (got,) = both(module, np.array([3, 1, 0, 5, -2], np.float32))
    np.testing.assert_array_equal(got, wanted or [-2, 0, 1, 3, 5])


def test_a_comparator_that_calls_and_reads_a_constant_of_the_function():
    text = """
    module @m {
      func.func private @twice(%x: tensor<f32>, %t: tensor<f32>) -> tensor<f32> {
        %0 = stablehlo.multiply %x, %t : tensor<f32>
        return %0 : tensor<f32>
      }
      func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
        %two = stablehlo.constant dense<-2.0> : tensor<f32>
        %r = "stablehlo.sort"(%x) <{dimension = 0 : i64}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %p = func.call @twice(%a, %two) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          %q = func.call @twice(%b, %two) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          %c = stablehlo.compare LT, %p, %q, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %c : tensor<i1>
        }) : (tensor<3xf32>) -> tensor<3xf32>
        return %r : tensor<3xf32>
      }
    }"""
    (got,) = both(import_text(text, "m.mlir"), np.array([1, 3, 2], np.float32))
    np.testing.assert_array_equal(got, [3, 2, 1])


def test_top_k_names_the_dtype_of_its_indices():
    module = program(
        "%x: tensor<2x4xf32>", "tensor<2x2xf32>, tensor<2x2xi32>", "%r:2 = chlo.top_k(%x, k = 2) : tensor<2x4xf32> -> (tensor<2x2xf32>, tensor<2x2xi32>)"
    )  # fmt: skip
    values, indices = both(module, np.array([[1, np.nan, 3, 3], [0, -0.0, -1, 0]], np.float32))
    np.testing.assert_array_equal(values, np.array([[np.nan, 3], [0, 0]], np.float32))
    np.testing.assert_array_equal(indices, [[1, 2], [0, 1]])


def test_reduce_with_an_unknown_body_folds_in_index_order():
    module = program(
        "%x: tensor<2x3xf32>, %i: tensor<f32>",
        "tensor<2xf32>",
        '%r = "stablehlo.reduce"(%x, %i) <{dimensions = array<i64: 1>}> ({',
        f"^bb0(%a: {F32}, %b: {F32}):",
        f"%s = stablehlo.multiply %a, %a : {F32}",
        f"%c = stablehlo.subtract %s, %b : {F32}",
        f"stablehlo.return %c : {F32}",
        "}) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>",
    )
    (got,) = both(module, np.array([[1, 2, 3], [0, 0, 1]], np.float32), np.array(2, np.float32))
    np.testing.assert_array_equal(got, [((2**2 - 1) ** 2 - 2) ** 2 - 3, 255])


@pytest.mark.parametrize(
    ("select", "scatter", "start", "wanted"),
    [
        ("GT", "add", 0, [0, 7, 9, 0]),  # the last of equals
        ("GE", "multiply", 2, [14, 2, 18, 2]),
        ("GE", "maximum", 8, [8, 8, 9, 8]),
        ("LT", "add", 1, [1, 8, 1, 10]),
    ],
)
def test_select_and_scatter_with_any_bodies(select: str, scatter: str, start: float, wanted: list[float]):
    module = program(
        "%x: tensor<4xf32>, %s: tensor<2xf32>, %i: tensor<f32>",
        "tensor<4xf32>",
        '%r = "stablehlo.select_and_scatter"(%x, %s, %i) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({',
        f"^bb0(%a: {F32}, %b: {F32}):",
        compare("c", select, "a", "b", order="FLOAT"),
        "stablehlo.return %c : tensor<i1>",
        "}, {",
        f"^bb0(%a: {F32}, %b: {F32}):",
        f"%c = stablehlo.{scatter} %a, %b : {F32}",
        f"stablehlo.return %c : {F32}",
        "}) : (tensor<4xf32>, tensor<2xf32>, tensor<f32>) -> tensor<4xf32>",
    )
    (got,) = both(module, np.array([2, 2, 5, 1], np.float32), np.array([7, 9], np.float32), np.array(start, np.float32))
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(("edges", "reverse"), [("[[0, 0], [2, 0]]", False), ("[[0, 0], [0, 2]]", True)])
@pytest.mark.parametrize(
    ("body", "kind", "start"), [("add", nd.CumsumOp, 0.0), ("multiply", nd.CumprodOp, 1.0), ("maximum", nd.CummaxOp, 2.0)]
)
def test_windows_over_all_before_or_behind_are_cumulative(edges: str, reverse: bool, body: str, kind: type[Any], start: float):
    module = program(
        "%x: tensor<2x3xf32>",
        "tensor<2x3xf32>",
        f"%i = stablehlo.constant dense<{start}> : tensor<f32>",
        '%r = "stablehlo.reduce_window"(%x, %i) <{window_dimensions = array<i64: 1, 3>, padding = '
        f"dense<{edges}> : tensor<2x2xi64>}}> ({{",
        f"^bb0(%a: {F32}, %b: {F32}):",
        f"%c = stablehlo.{body} %a, %b : {F32}",
        f"stablehlo.return %c : {F32}",
        "}) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>",
    )
    assert only(module, kind).is_reverse == reverse
    x = np.array([[1, 3, 2], [4, -1, 5]], np.float32)
    fold = {"add": np.add, "multiply": np.multiply, "maximum": np.maximum}[body].accumulate
    wanted = fold(x[:, ::-1], axis=1)[:, ::-1] if reverse else fold(x, axis=1)
    (got,) = both(module, x)
    np.testing.assert_array_equal(got, np.maximum(wanted, 2) if body == "maximum" else wanted)
