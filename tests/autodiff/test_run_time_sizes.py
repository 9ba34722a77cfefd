"""Derivatives of programs with named sizes: dimensions that an op leaves alone may be named, the others are refused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from gradir.autodiff.differentiate import Differentiate
from gradir.dialects import nd
from gradir.driver.compile import compile_module
from gradir.errors import GradirError
from gradir.ir.passes import PassContext
from gradir.ir.text import parse_module, verify_module
from gradir.reference import run
from tests.autodiff.gradients import cotangents, with_vjp


def named(*sizes: int | str) -> str:
    """The type of an f32 tensor; a string is the name of a run-time size."""
    dims = "x".join("?" if isinstance(n, str) else str(n) for n in sizes)
    names = ", ".join(f'"{n}"' if isinstance(n, str) else '""' for n in sizes)
    return f"tensor<{dims}xf32, [{names}]>"


def gradient(types: list[str], body: str, result: str):
    """`@f`: the gradients of sum(y * y), where `body` computes %y of type `result` from %x0, %x1, ..."""
    arguments = ", ".join(f"%x{k}: {t}" for k, t in enumerate(types))
    values, kinds, wrt = (", ".join(s) for s in ([f"%x{k}" for k in range(len(types))], types, map(str, range(len(types)))))
    rank = result.partition("f32")[0].count("x")
    text = f"""
func.func private @loss({arguments}) -> tensor<f32> {{
  %zero = nd.constant splat(0.0 : f32) : tensor<f32>
  {body}
  %square = nd.mul %y, %y : {result}
  %sum = nd.reduce_sum %square dims [{", ".join(map(str, range(rank)))}] : {result} -> tensor<f32>
  return %sum : tensor<f32>
}}
func.func @f({arguments}) -> ({kinds}) {{
  %g:{len(types)} = ad.grad @loss({values}) wrt [{wrt}] : ({kinds}) -> ({kinds})
  return {", ".join(f"%g#{k}" for k in range(len(types)))} : {kinds}
}}"""
    module = parse_module(text, "f.mlir")
    Differentiate().apply(module, PassContext())
    verify_module(module)
    return module


X, Y = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(8, dtype=np.float32).reshape(2, 4)


def test_concatenate_leaves_other_dimensions_alone() -> None:
    x, y, both = named("b", 3), named("b", 4), named("b", 7)
    module = gradient([x, y], f"%y = nd.concatenate %x0, %x1 dim 1 : {x}, {y} -> {both}", both)
    dx, dy = run(module, "f", [X, Y])
    np.testing.assert_array_equal(dx, 2 * X)
    np.testing.assert_array_equal(dy, 2 * Y)


def test_pad_leaves_other_dimensions_alone() -> None:
    x, y = named("b", 3), named("b", 8)
    module = gradient([x], f"%y = nd.pad %x0, %zero low [0, 1] high [0, 2] interior [0, 1] : {x}, tensor<f32> -> {y}", y)
    np.testing.assert_array_equal(run(module, "f", [X])[0], 2 * X)


def test_slice_leaves_other_dimensions_alone() -> None:
    x, y = named("b", 3), named("b", 2)
    module = gradient([x], f"%y = nd.slice %x0 start [0, 0] limit [-1, 3] stride [1, 2] : {x} -> {y}", y)
    np.testing.assert_array_equal(run(module, "f", [X])[0], 2 * X * [1, 0, 1])


@pytest.mark.parametrize("n", [0, 1, 3])
def test_concatenate_along_a_run_time_dimension(n: int) -> None:
    x, joined = named("b"), named("2*b+4")
    module = gradient([x, "tensor<4xf32>"], f"%y = nd.concatenate %x0, %x1, %x0 dim 0 : {x}, tensor<4xf32>, {x} -> {joined}", joined)
    dx, dy = run(module, "f", [X.ravel()[:n], Y[0]])
    np.testing.assert_array_equal(dx, 4 * X.ravel()[:n])
    np.testing.assert_array_equal(dy, 2 * Y[0])


@pytest.mark.parametrize("n", [0, 1, 3])
def test_slice_of_a_run_time_dimension(n: int) -> None:
    """An operand shorter than what the slice skips has a cotangent of its own size, not of what was skipped."""
    x, rest = named("b"), named("max(b-2,0)")
    module = gradient([x], f"%y = nd.slice %x0 start [2] limit [-1] : {x} -> {rest}", rest)
    np.testing.assert_array_equal(run(module, "f", [X.ravel()[:n]])[0], 2 * X.ravel()[:n] * (np.arange(n) >= 2))


@pytest.mark.parametrize("n", [0, 1, 3])
def test_pad_of_a_run_time_dimension(n: int) -> None:
    x, padded = named("b"), named("b+2*max(b-1,0)+3")
    module = gradient([x], f"%y = nd.pad %x0, %zero low [1] high [2] interior [2] : {x}, tensor<f32> -> {padded}", padded)
    np.testing.assert_array_equal(run(module, "f", [X.ravel()[:n]])[0], 2 * X.ravel()[:n])


FLAGS = ("", " reverse", " exclusive", " reverse exclusive")
NAMED = [
    *((op, f"f64{flags}", {4: "n", 5: "n"}) for op in (nd.CumprodOp, nd.CumlogsumexpOp) for flags in FLAGS),
    *((op, "f64", {2: "a", 4: "n", 3: "c"}) for op in (nd.CumprodOp, nd.CumlogsumexpOp)),
    *((nd.ScatterGeneralOp, f"f64 {kind} with duplicates", {4: "n"}) for kind in ("set", "add", "mul", "max", "min")),
    (nd.ScatterGeneralOp, "f64 mul with zeros", {3: "n"}),
    (nd.ScatterGeneralOp, "f64 rows, one outside", {4: "n", 3: "k"}),
    (nd.ScatterGeneralOp, "f64 windows over the edge, set", {4: "n", 3: "k"}),
    (nd.ScatterGeneralOp, "f64 batches", {3: "n"}),
    (nd.ReduceWindowOp, "max f64 padded", {2: "b"}),
    (nd.SelectAndScatterOp, "f64", {1: "b", 2: "c"}),
    (nd.LuOp, "f64", {3: "n"}),
    (nd.LuOp, "f64 tall batch", {2: "b"}),
    (nd.QrOp, "f64", {3: "n"}),
    (nd.QrOp, "f64 tall batch", {4: "m+2", 2: "m"}),
    (nd.SvdOp, "f64", {3: "n"}),
    (nd.SvdOp, "f64 tall batch", {3: "n+1", 2: "n"}),
    (nd.EighOp, "f64 upper batch", {2: "n"}),
    (nd.RfftOp, "f64 odd batch", {2: "b"}),
    (nd.IrfftOp, "f64 odd batch", {2: "b"}),
    (nd.RfftOp, "f64 odd batch", {5: "2*k+1", 3: "k+1"}),
    (nd.IrfftOp, "f64 odd batch", {5: "2*k+1", 3: "k+1"}),
    (nd.IrfftOp, "f64", {6: "2*k", 4: "k+1"}),
]


def with_names(text: str, names: dict[int, str]) -> str:
    """The sizes that have a name are run-time sizes."""

    def replace(match: re.Match[str]) -> str:
        *sizes, element = match[1].split("x", match[1].count("x") - element_crosses(match[1]))
        dims = "x".join("?" if int(n) in names else n for n in sizes)
        return (
            f"tensor<{dims}x{element}, [{', '.join(chr(34) + names.get(int(n), '') + chr(34) for n in sizes)}]>"
            if "?" in dims
            else match[0]
        )

    return re.sub(r"tensor<((?:\d+x)+[a-z][\w<]*>?)>", replace, text)


def element_crosses(kind: str) -> int:
    """The letters x in the element type."""
    return 1 if "complex" in kind else 0


@pytest.mark.parametrize(("op", "name", "sizes"), NAMED, ids=lambda x: x.name if isinstance(x, type) else str(x))
def test_run_time_sizes_change_nothing(op: Any, name: str, sizes: dict[int, str]) -> None:
    """Against the same program with numbers, which the table of derivatives checks."""
    sample = next(s for s in op.samples() if s.name == name)
    text = with_names(sample.text, sizes)
    assert text.count("?") >= 2
    inputs, cts = sample.inputs(), cotangents(sample.text, sample.inputs(), seed=4)
    expected = run(with_vjp(sample.text, sample.wrt), "vjp", [*inputs, *cts])[len(cts) :]
    for found, value in zip(run(with_vjp(text, sample.wrt), "vjp", [*inputs, *cts])[len(cts) :], expected, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-12, atol=1e-13)


@pytest.mark.full
@pytest.mark.parametrize(("op", "name", "sizes"), NAMED, ids=lambda x: x.name if isinstance(x, type) else str(x))
def test_run_time_sizes_compiled(op: Any, name: str, sizes: dict[int, str]) -> None:
    sample = next(s for s in op.samples() if s.name == name)
    module = with_vjp(with_names(sample.text, sizes), sample.wrt)
    inputs, cts = sample.inputs(), cotangents(sample.text, sample.inputs(), seed=4)
    found = compile_module(module, cache=False)["vjp"].flat(*inputs, *cts)
    for a, b in zip(found, run(module, "vjp", [*inputs, *cts]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("n", [0, 1, 4])
def test_products_of_a_run_time_number(n: int) -> None:
    """With zeros among them, of few and of none; twice."""
    kind = named("b").replace("f32", "f64")
    text = f"func.func @f(%x: {kind}) -> {kind} {{\n%r = nd.cumprod %x dim 0 : {kind}\nreturn %r : {kind}\n}}"
    module = with_vjp(text, (0,))
    x, ct = np.array([2.0, 0.0, 3.0, -1.0])[:n], np.array([1.0, 10.0, 100.0, 1000.0])[:n]
    expected = [sum(ct[i] * np.prod(np.delete(x[: i + 1], j)) for i in range(j, n)) for j in range(n)]
    np.testing.assert_allclose(run(module, "vjp", [x, ct])[1], expected)


REFUSED = {
    "concatenate": (
        [named("b"), "tensor<2xf32>"],
        f"nd.concatenate %x0, %x1 dim 0 : {named('b')}, tensor<2xf32> -> tensor<?xf32>",
        "tensor<?xf32>",
    ),
    "pad": ([named("b")], f"nd.pad %x0, %zero low [1] high [0] : {named('b')}, tensor<f32> -> tensor<?xf32>", "tensor<?xf32>"),
    "conv_general": (
        [named(1, "h", 2), "tensor<3x2x2xf32>"],
        f"nd.conv_general %x0, %x1 : {named(1, 'h', 2)}, tensor<3x2x2xf32> -> {named(1, 'max(h-2,0)', 2)}",
        named(1, "max(h-2,0)", 2),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_run_time_dimension_that_the_derivative_needs_is_refused(case: str) -> None:
    types, body, result = REFUSED[case]
    with pytest.raises(GradirError, match="this derivative needs static sizes") as caught:
        gradient(types, body if body.startswith("%") else f"%y = {body}", result)
    assert (caught.value.part, caught.value.code, caught.value.op) == ("autodiff", "AD008", f"nd.{case}")
    assert "?" in caught.value.found
