"""Conventions of derivatives in bodies of loop nests: ties, zeros, branches not taken, narrow types, every scalar function."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gradir.autodiff.differentiate import Differentiate
from gradir.ir.passes import PassContext
from gradir.ir.text import parse_module, print_module, verify_module
from gradir.reference import run
from tests.autodiff.gradients import Array, check_both_modes, reverse, with_both_modes, with_vjp


def reduction(op: str, start: str = "%z", element: str = "f64", n: int = 4) -> str:
    return f"""
#x = affine_map<(i) -> (i)>
#r = affine_map<(i) -> ()>
func.func @f(%x: tensor<{n}x{element}>, %z: tensor<{element}>) -> tensor<{element}> {{
  %low = arith.constant 0xFFF0000000000000 : f64
  %e = tensor.empty() : tensor<{element}>
  %i = linalg.fill ins(%low : f64) outs(%e : tensor<{element}>) -> tensor<{element}>
  %r = linalg.generic {{indexing_maps = [#x, #r], iterator_types = ["reduction"]}} ins(%x : tensor<{n}x{element}>)
    outs({start} : tensor<{element}>) {{
  ^bb0(%a: {element}, %acc: {element}):
    %s = arith.{op} %acc, %a : {element}
    linalg.yield %s : {element}
  }} -> tensor<{element}>
  return %r : tensor<{element}>
}}
"""


def gradient(text: str, *inputs: Any) -> list[Array]:
    """By all arguments, for cotangents of 1."""
    given = [np.asarray(x, np.float64) for x in inputs]
    results = run(parse_module(text), "f", given)
    return [np.asarray(g) for g in reverse(text, given, [np.ones_like(np.asarray(r)) for r in results], range(len(given)))]


INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("op", "x", "z", "dx", "dz"),
    [
        ("maximumf", [1, 3, 2, 3], 0, [0, 0.5, 0, 0.5], 0),
        ("maximumf", [1, 3, 2, 3], 3, [0, 1 / 3, 0, 1 / 3], 1 / 3),
        ("maximumf", [1, 3, 2, 3], 5, [0, 0, 0, 0], 1),
        ("minimumf", [1, 3, 1, 3], 1, [1 / 3, 0, 1 / 3, 0], 1 / 3),
        ("maximumf", [1, NAN, 2, 3], 0, [0, 1, 0, 0], 0),
        ("maxnumf", [1, NAN, 2, 3], 0, [0, 0, 0, 1], 0),
        ("maximumf", [-INF, -INF, -INF, -INF], -INF, [0.25] * 4, 0),
        ("mulf", [2, 0, 3, 4], 1, [0, 24, 0, 0], 0),
        ("mulf", [2, 0, 3, 0], 1, [0, 0, 0, 0], 0),
    ],
)
def test_ties_and_zeros(op: str, x: list[float], z: float, dx: list[float], dz: float) -> None:
    found = gradient(reduction(op), x, z)
    np.testing.assert_allclose(found[0], dx)
    np.testing.assert_allclose(found[1], dz)


def test_the_identity_takes_no_share() -> None:
    found = gradient(reduction("maximumf", "%i"), [2, 2, 1, 2], 0)
    np.testing.assert_allclose(found[0], [1 / 3, 1 / 3, 0, 1 / 3])
    np.testing.assert_allclose(found[1], 0)


def test_forward_mode_has_the_same_weights_at_ties() -> None:
    module = with_both_modes(reduction("maximumf"), [0, 1])
    _, moved = run(module, "jvp", [np.array([1.0, 3, 2, 3]), np.array(3.0), np.array([1.0, 2, 3, 4]), np.array(6.0)])
    np.testing.assert_allclose(np.asarray(moved), (2 + 4 + 6) / 3)


def elementwise(body: str, inputs: int = 1, n: int = 2, element: str = "f64") -> str:
    names = [f"%x{k}" for k in range(inputs)]
    kind = f"tensor<{n}x{element}>"
    return f"""
#id = affine_map<(i) -> (i)>
func.func @f({", ".join(f"{x}: {kind}" for x in names)}) -> {kind} {{
  %e = tensor.empty() : {kind}
  %r = linalg.generic {{indexing_maps = [{", ".join(["#id"] * (inputs + 1))}], iterator_types = ["parallel"]}}
    ins({", ".join(names)} : {", ".join([kind] * inputs)}) outs(%e : {kind}) {{
  ^bb0({", ".join(f"%a{k}: {element}" for k in range(inputs))}, %o: {element}):
{body}
    linalg.yield %y : {element}
  }} -> {kind}
  return %r : {kind}
}}
"""


WHERE = """
    %one = arith.constant 1.0 : f64
    %test = arith.cmpf olt, %a0, %one : f64
    %root = math.sqrt %a0 : f64
    %y = arith.select %test, %a0, %root : f64
"""
SQUARE = """
    %one = arith.constant 1.0 : f64
    %root = math.sqrt %a0 : f64
    %d = arith.subf %root, %one : f64
    %y = arith.mulf %d, %d : f64
"""


def test_the_branch_not_taken_does_not_poison() -> None:
    np.testing.assert_array_equal(gradient(elementwise(WHERE), [0.0, -1.0])[0], [1, 1])
    np.testing.assert_array_equal(gradient(elementwise(WHERE), [-4.0, 4.0])[0], [1, 0.25])


def test_strong_zero_does_not_break_second_order() -> None:
    """The Hessian of (sqrt(x) - 1)^2 at 1 is 1/2, though the first derivative is 0 there."""
    once = print_module(with_vjp(elementwise(SQUARE), [0])).replace("@f", "@primal").replace("@vjp", "@f")
    for text in (once, print_module(parse_module(once))):
        found = reverse(text, [np.ones(2), np.ones(2)], [np.zeros(2), np.ones(2)], [0])
        np.testing.assert_allclose(np.asarray(found[0]), [0.5, 0.5])


@pytest.mark.parametrize(
    ("body", "points"),
    [
        (f"    %y = math.{name} %a0 : f64\n", points)
        for name, points in [
            *((n, [0.3, -0.8]) for n in ("absf", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "atanh")),
            *((n, [0.3, 1.7]) for n in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "cbrt", "erf", "erfc")),
            ("acosh", [1.3, 2.5]),
            *((n, [0.3, -1.7]) for n in ("floor", "ceil", "round", "roundeven", "trunc")),
        ]
    ],
    ids=lambda value: value.split()[2] if isinstance(value, str) else "",
)
def test_scalar_functions(body: str, points: list[float]) -> None:
    check_both_modes(elementwise(body), [np.array(points)])


@pytest.mark.parametrize(
    "op",
    [
        "arith.addf %a0, %a1",
        "arith.subf %a0, %a1",
        "arith.mulf %a0, %a1",
        "arith.divf %a0, %a1",
        "arith.remf %a0, %a1",
        "arith.maximumf %a0, %a1",
        "arith.minimumf %a0, %a1",
        "arith.maxnumf %a0, %a1",
        "arith.minnumf %a0, %a1",
        "math.atan2 %a0, %a1",
        "math.powf %a1, %a0",
        "math.copysign %a0, %a1",
        "math.fma %a0, %a1, %a1",
        "math.clampf %a0 to [%a1, %a1]",
    ],
)
def test_scalar_functions_of_two(op: str) -> None:
    check_both_modes(elementwise(f"    %y = {op} : f64\n", 2), [np.array([-0.7, 2.3]), np.array([0.4, 1.1])])


def test_whole_powers_and_casts() -> None:
    body = """
    %n = arith.constant 3 : i32
    %p = math.fpowi %a0, %n : f64, i32
    %t = arith.truncf %p : f64 to f32
    %w = arith.extf %t : f32 to f64
    %y = arith.mulf %w, %p : f64
"""
    found = gradient(elementwise(body), [0.5, -2.0])[0]
    np.testing.assert_allclose(found, 6 * np.array([0.5, -2.0]) ** 5, rtol=1e-6)


# sums in f32 ---------------------------------------------------------------------------------------------------------


def test_cotangents_of_bf16_are_summed_in_f32() -> None:
    """One bf16 value read 512 times, each time with a cotangent of 1: 512, where bf16 would stay at 256."""
    text = """
#s = affine_map<(i) -> (0)>
#id = affine_map<(i) -> (i)>
func.func @f(%x: tensor<1xbf16>) -> tensor<512xbf16> {
  %e = tensor.empty() : tensor<512xbf16>
  %r = linalg.generic {indexing_maps = [#s, #id], iterator_types = ["parallel"]} ins(%x : tensor<1xbf16>) outs(%e : tensor<512xbf16>) {
  ^bb0(%a: bf16, %o: bf16):
    linalg.yield %a : bf16
  } -> tensor<512xbf16>
  return %r : tensor<512xbf16>
}
"""
    one, many = np.ones(1, ml_dtypes.bfloat16), np.ones(512, ml_dtypes.bfloat16)
    assert np.asarray(reverse(text, [one], [many], [0])[0]).astype(np.float64) == 512


def test_products_are_plain_on_request() -> None:
    """`strong-zero=false`: 0 * inf is NaN, as IEEE has it; selections of the program's own stay."""
    text = elementwise(WHERE).replace("@f", "@one") + (
        "func.func @f(%x: tensor<2xf64>, %c: tensor<2xf64>) -> tensor<2xf64> {\n"
        "  %r:2 = ad.vjp @one(%x, %c) wrt [0] : (tensor<2xf64>, tensor<2xf64>) -> (tensor<2xf64>, tensor<2xf64>)\n"
        "  return %r#1 : tensor<2xf64>\n}\n"
    )
    for strong in (True, False):
        module = parse_module(text)
        Differentiate(strong_zero=strong).apply(module, PassContext())
        verify_module(module)
        (found,) = run(module, "f", [np.array([0.0, 4.0]), np.ones(2)])
        np.testing.assert_array_equal(np.asarray(found), [1.0 if strong else np.nan, 0.25])
