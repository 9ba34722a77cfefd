"""`arith` and `math`: values in the corners, and errors where upstream leaves the result undefined."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gradir.reference.scalars import rounded
from tests.reference.programs import one, refused_op

NAN, INF = math.nan, math.inf
BF16 = ml_dtypes.bfloat16


def floats(*values: float) -> np.ndarray[Any, Any]:
    return np.array(values, np.float32)


FLOAT_BINARY = [
    ("addf", floats(1, INF, NAN), floats(2, -INF, 1), floats(3, NAN, NAN)),
    ("subf", floats(1, 2, 0), floats(2, 2, 0), floats(-1, 0, 0)),
    ("mulf", floats(3, 0, -0.0), floats(2, INF, 1), floats(6, NAN, -0.0)),
    ("divf", floats(1, 0, -1), floats(0, 0, 2), floats(INF, NAN, -0.5)),
    ("remf", floats(-5, 5, 1, -0.0), floats(3, INF, 0, 3), floats(-2, 5, NAN, -0.0)),
    ("maximumf", floats(-0.0, 0.0, NAN, 1), floats(0.0, -0.0, 1, 2), floats(0.0, 0.0, NAN, 2)),
    ("minimumf", floats(-0.0, 0.0, NAN, 1), floats(0.0, -0.0, 1, 2), floats(-0.0, -0.0, NAN, 1)),
    ("maxnumf", floats(NAN, 1), floats(1, 2), floats(1, 2)),
    ("minnumf", floats(NAN, 1), floats(1, 2), floats(1, 1)),
]


@pytest.mark.parametrize(("name", "x", "y", "expected"), FLOAT_BINARY)
def test_float_binary(name: str, x: Any, y: Any, expected: Any) -> None:
    t = f"tensor<{len(x)}xf32>"
    found = one(f"%x: {t}, %y: {t}", f"%r = arith.{name} %x, %y : {t}", t, x, y)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found[found == 0]), np.signbit(expected[expected == 0]))


MIN, MAX = -128, 127
INTEGER_BINARY = [
    ("addi", [127, -1], [1, -1], [-128, -2]),
    ("subi", [-128, 5], [1, 7], [127, -2]),
    ("muli", [16, -128], [16, -1], [0, -128]),
    ("andi", [12], [10], [8]),
    ("ori", [12], [10], [14]),
    ("xori", [12], [-1], [-13]),
    ("divsi", [-7, 7, -128], [2, -2, 3], [-3, -3, -42]),
    ("remsi", [-7, 7, -1], [2, -2, 3], [-1, 1, -1]),
    ("floordivsi", [-7, 7], [2, -2], [-4, -4]),
    ("ceildivsi", [-7, 7, -8], [2, 2, 2], [-3, 4, -4]),
    ("divui", [-1, 7], [2, 2], [127, 3]),
    ("remui", [-1, 7], [2, 4], [1, 3]),
    ("ceildivui", [-1, 7], [2, 2], [-128, 4]),
    ("maxsi", [-1, 3], [1, 2], [1, 3]),
    ("minsi", [-1, 3], [1, 2], [-1, 2]),
    ("maxui", [-1, 3], [1, 2], [-1, 3]),
    ("minui", [-1, 3], [1, 2], [1, 2]),
    ("shli", [1, -1, 3], [7, 1, 0], [-128, -2, 3]),
    ("shrsi", [-128, 5], [7, 1], [-1, 2]),
    ("shrui", [-128, 5], [7, 1], [1, 2]),
]


@pytest.mark.parametrize(("name", "x", "y", "expected"), INTEGER_BINARY)
def test_integer_binary(name: str, x: list[int], y: list[int], expected: list[int]) -> None:
    t = f"vector<{len(x)}xi8>"
    body = f"%a = arith.constant dense<{x}> : {t}\n%b = arith.constant dense<{y}> : {t}\n%c = arith.{name} %a, %b : {t}"
    picks = [f"%e{i} = vector.extract %c[{i}] : i8 from {t}" for i in range(len(x))]
    names = ", ".join(f"%e{i}" for i in range(len(x)))
    found = one("", "\n".join([body, *picks, f"%r = tensor.from_elements {names} : tensor<{len(x)}xi8>"]), f"tensor<{len(x)}xi8>")
    np.testing.assert_array_equal(found, np.array(expected, np.int8))


@pytest.mark.parametrize(
    ("name", "expected"), [("addi", False), ("subi", False), ("muli", True), ("maxsi", True), ("maxui", True), ("minsi", True)]
)
def test_one_bit_arithmetic_is_modulo_two(name: str, expected: bool) -> None:
    assert one("%x: i1, %y: i1", f"%r = arith.{name} %x, %y : i1", "i1", True, True) == expected


@pytest.mark.parametrize(("name", "left", "expected"), [("maxsi", True, False), ("minsi", True, True), ("maxui", True, True)])
def test_signed_order_of_one_bit_has_true_as_minus_one(name: str, left: bool, expected: bool) -> None:
    assert one("%x: i1, %y: i1", f"%r = arith.{name} %x, %y : i1", "i1", left, False) == expected


PREDICATES = {
    "false": [0, 0, 0, 0],
    "oeq": [0, 1, 0, 0],
    "ogt": [0, 0, 1, 0],
    "oge": [0, 1, 1, 0],
    "olt": [1, 0, 0, 0],
    "ole": [1, 1, 0, 0],
    "one": [1, 0, 1, 0],
    "ord": [1, 1, 1, 0],
    "ueq": [0, 1, 0, 1],
    "ugt": [0, 0, 1, 1],
    "uge": [0, 1, 1, 1],
    "ult": [1, 0, 0, 1],
    "ule": [1, 1, 0, 1],
    "une": [1, 0, 1, 1],
    "uno": [0, 0, 0, 1],
    "true": [1, 1, 1, 1],
}


@pytest.mark.parametrize("name", PREDICATES)
def test_float_predicate(name: str) -> None:
    t = "tensor<4xf32>"
    found = one(f"%x: {t}, %y: {t}", f"%r = arith.cmpf {name}, %x, %y : {t}", "tensor<4xi1>", floats(1, 2, 3, NAN), floats(2, 2, 2, 2))
    np.testing.assert_array_equal(found, np.array(PREDICATES[name], bool))


@pytest.mark.parametrize(
    ("name", "expected"),
    [("eq", 0), ("ne", 1), ("slt", 1), ("sle", 1), ("sgt", 0), ("sge", 0), ("ult", 0), ("ule", 0), ("ugt", 1), ("uge", 1)],
)
def test_integer_predicate_of_minus_one_and_one(name: str, expected: int) -> None:
    assert one("%x: i32, %y: i32", f"%r = arith.cmpi {name}, %x, %y : i32", "i1", np.int32(-1), np.int32(1)) == expected
    assert one("%x: i1, %y: i1", f"%r = arith.cmpi {name}, %x, %y : i1", "i1", True, False) == expected


CASTS = [
    ("extsi", "i1", "i8", True, np.int8(-1)),
    ("extui", "i1", "i8", True, np.int8(1)),
    ("extui", "i8", "i32", np.int8(-1), np.int32(255)),
    ("extsi", "i8", "i32", np.int8(-1), np.int32(-1)),
    ("trunci", "i32", "i8", np.int32(300), np.int8(44)),
    ("trunci", "i32", "i1", np.int32(2), np.bool_(False)),
    ("index_cast", "index", "i32", np.int64(2**32 + 5), np.int32(5)),
    ("index_castui", "i8", "index", np.int8(-1), np.int64(255)),
    ("sitofp", "i1", "f32", True, np.float32(-1)),
    ("uitofp", "i8", "f32", np.int8(-1), np.float32(255)),
    ("sitofp", "i32", "f32", np.int32(16777217), np.float32(16777216)),
    ("fptosi", "f32", "i8", np.float32(-1.9), np.int8(-1)),
    ("fptoui", "f32", "i8", np.float32(255.5), np.int8(-1)),
    ("fptosi", "f64", "i64", np.float64(-(2.0**63)), np.int64(-(2**63))),
    ("truncf", "f64", "f32", np.float64(1e300), np.float32(INF)),
    ("extf", "f16", "f32", np.float16(0.1), np.float32(np.float16(0.1))),
    ("bitcast", "f32", "i32", np.float32(1), np.int32(0x3F800000)),
]


@pytest.mark.parametrize(("name", "source", "target", "value", "expected"), CASTS)
def test_cast(name: str, source: str, target: str, value: Any, expected: Any) -> None:
    found = one(f"%x: {source}", f"%r = arith.{name} %x : {source} to {target}", target, value)
    assert found == expected and found.dtype == expected.dtype


@pytest.mark.parametrize(
    ("value", "expected"), [(1 + 2.0**-8 + 2.0**-40, 1.0078125), (257.0, 256.0), (259.0, 260.0), (3.4e38, INF), (3.14, 3.140625)]
)
def test_f64_to_bf16_rounds_once(value: float, expected: float) -> None:
    assert float(rounded(np.float64(value), np.dtype(BF16))) == expected


def test_integer_to_bf16_rounds_once() -> None:
    assert one("%x: i64", "%r = arith.sitofp %x : i64 to bf16", "bf16", np.int64(2**62 + 2**54 + 1)) == BF16(2.0**62 + 2.0**55)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("%r = arith.divsi %x, %y : i32", 0),
        ("%r = arith.remui %x, %y : i32", 0),
        ("%r = arith.ceildivui %x, %y : i32", 0),
        ("%r = arith.shli %x, %y : i32", 32),
        ("%r = arith.shrsi %x, %y : i32", -1),
        ("%r = arith.addi %x, %y overflow<nsw> : i32", 2**31 - 1),
        ("%r = arith.muli %x, %y overflow<nuw> : i32", -1),
    ],
)
def test_undefined_integer_results_are_errors(body: str, value: int) -> None:
    error = refused_op("OP103", "%x: i32, %y: i32", body, np.int32(7), np.int32(value))
    assert error.op == body.split()[2] and error.function == "@f"


def test_overflowing_division_is_an_error() -> None:
    refused_op("OP103", "%x: i8, %y: i8", "%r = arith.divsi %x, %y : i8", np.int8(-128), np.int8(-1))
    refused_op("OP103", "%x: i8, %y: i8", "%r = arith.remsi %x, %y : i8", np.int8(-128), np.int8(-1))


@pytest.mark.parametrize("value", [128.0, -129.0, NAN, INF])
def test_float_out_of_integer_range_is_an_error(value: float) -> None:
    error = refused_op("OP103", "%x: f32", "%r = arith.fptosi %x : f32 to i8", np.float32(value))
    assert "does not fit i8" in error.message and "clamp" in error.hint


def test_broken_fastmath_promise_is_an_error() -> None:
    refused_op("OP103", "%x: f32", "%r = arith.addf %x, %x fastmath<nnan> : f32", np.float32(NAN))
    refused_op("OP103", "%x: f32", "%r = arith.mulf %x, %x fastmath<ninf> : f32", np.float32(3e38))
    assert one("%x: f32", "%r = arith.addf %x, %x fastmath<contract> : f32", "f32", np.float32(INF)) == INF


def test_select_by_one_and_by_many() -> None:
    t = "tensor<2xf32>"
    x, y = floats(1, 2), floats(3, 4)
    np.testing.assert_array_equal(one(f"%c: i1, %x: {t}, %y: {t}", f"%r = arith.select %c, %x, %y : {t}", t, False, x, y), y)
    found = one(
        f"%c: tensor<2xi1>, %x: {t}, %y: {t}", f"%r = arith.select %c, %x, %y : tensor<2xi1>, {t}", t, np.array([True, False]), x, y
    )
    np.testing.assert_array_equal(found, floats(1, 4))


def test_extended_multiplication_and_addition() -> None:
    both = "%l, %h = arith.mului_extended %x, %y : i8\n%t = tensor.from_elements %l, %h : tensor<2xi8>\n%r = tensor.cast %t : tensor<2xi8> to tensor<2xi8>"
    np.testing.assert_array_equal(one("%x: i8, %y: i8", both, "tensor<2xi8>", np.int8(-1), np.int8(-1)), np.array([1, -2], np.int8))
    both = both.replace("mului", "mulsi")
    np.testing.assert_array_equal(one("%x: i8, %y: i8", both, "tensor<2xi8>", np.int8(-1), np.int8(-1)), np.array([1, 0], np.int8))
    assert one("%x: i8, %y: i8", "%s, %r = arith.addui_extended %x, %y : i8, i1", "i1", np.int8(-1), np.int8(1))


MATH = [
    ("absf", -0.0, 0.0),
    ("ceil", -0.5, -0.0),
    ("floor", -0.5, -1.0),
    ("round", 0.49999997, 0.0),
    ("round", 2.5, 3.0),
    ("round", -0.5, -1.0),
    ("roundeven", 2.5, 2.0),
    ("trunc", -1.9, -1.0),
    ("sqrt", -1.0, NAN),
    ("rsqrt", -0.0, -INF),
    ("log", 0.0, -INF),
    ("log1p", -1.0, -INF),
    ("exp", 88.73, INF),
    ("expm1", 1e-10, 1e-10),
    ("erf", 3e-12, 3.3851374e-12),
    ("erfc", 10.0, 2.0884875837625446e-45),
    ("erfc", -INF, 2.0),
    ("tanh", 100.0, 1.0),
    ("cbrt", -8.0, -2.0),
    ("sin", INF, NAN),
    ("exp2", 3.0, 8.0),
    ("log2", 8.0, 3.0),
    ("log10", 1000.0, 3.0),
]


@pytest.mark.parametrize(("name", "value", "expected"), MATH)
def test_math_unary(name: str, value: float, expected: float) -> None:
    found = one("%x: f32", f"%r = math.{name} %x : f32", "f32", np.float32(value))
    np.testing.assert_array_equal(found, np.float32(expected))
    assert math.isnan(expected) or math.copysign(1, float(found)) == math.copysign(1, expected)


@pytest.mark.parametrize("name", ["acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "sin", "sinh", "tan"])
def test_math_unary_is_rounded_from_double(name: str) -> None:
    value = 1.25 if name == "acosh" else 0.25
    expected = np.float32(getattr(math, name)(value))
    assert one("%x: f32", f"%r = math.{name} %x : f32", "f32", np.float32(value)) == expected


@pytest.mark.parametrize(
    ("name", "x", "y", "expected"),
    [
        ("powf", NAN, 0.0, 1.0),
        ("powf", 1.0, NAN, 1.0),
        ("powf", -8.0, 1 / 3, NAN),
        ("powf", -0.0, -1.0, -INF),
        ("atan2", 0.0, -0.0, math.pi),
        ("atan2", INF, -INF, 3 * math.pi / 4),
        ("copysign", 3.0, -0.0, -3.0),
    ],
)
def test_math_binary(name: str, x: float, y: float, expected: float) -> None:
    found = one("%x: f32, %y: f32", f"%r = math.{name} %x, %y : f32", "f32", np.float32(x), np.float32(y))
    np.testing.assert_array_equal(found, np.float32(expected))


@pytest.mark.parametrize(
    ("name", "expected"), [("isnan", [0, 0, 1, 0]), ("isinf", [0, 1, 0, 0]), ("isfinite", [1, 0, 0, 1]), ("isnormal", [1, 0, 0, 0])]
)
def test_float_classes(name: str, expected: list[int]) -> None:
    t = "tensor<4xf32>"
    found = one(f"%x: {t}", f"%r = math.{name} %x : {t}", "tensor<4xi1>", floats(1, -INF, NAN, 1e-45))
    np.testing.assert_array_equal(found, np.array(expected, bool))


def test_fma_rounds_once() -> None:
    x = np.float32(1 + 2.0**-12)
    assert one("%x: f32, %z: f32", "%r = math.fma %x, %x, %z : f32", "f32", x, np.float32(-1)) == np.float32(2.0**-11 + 2.0**-24)
    y = np.float64(1 + 2.0**-30)
    assert one("%x: f64, %z: f64", "%r = math.fma %x, %x, %z : f64", "f64", y, np.float64(-1)) == 2.0**-29 + 2.0**-60
    assert math.isnan(float(one("%x: f64, %z: f64", "%r = math.fma %x, %x, %z : f64", "f64", np.float64(INF), np.float64(-INF))))


def test_clampf_and_bits_and_integer_powers() -> None:
    assert one("%x: f32, %l: f32", "%r = math.clampf %x to [%l, %l] : f32", "f32", np.float32(5), np.float32(2)) == 2
    assert one("%x: i8", "%r = math.ctlz %x : i8", "i8", np.int8(1)) == 7
    assert one("%x: i8", "%r = math.cttz %x : i8", "i8", np.int8(0)) == 8
    assert one("%x: i8", "%r = math.ctpop %x : i8", "i8", np.int8(-1)) == 8
    assert one("%x: i8", "%r = math.absi %x : i8", "i8", np.int8(-128)) == -128
    assert one("%x: i8, %y: i8", "%r = math.ipowi %x, %y : i8", "i8", np.int8(2), np.int8(8)) == 0
    assert one("%x: i8, %y: i8", "%r = math.ipowi %x, %y : i8", "i8", np.int8(-1), np.int8(-3)) == -1
    refused_op("OP103", "%x: i8, %y: i8", "%r = math.ipowi %x, %y : i8", np.int8(0), np.int8(-1))


def test_half_precision_is_rounded_after_every_op() -> None:
    body = "%c = arith.constant 1.0 : bf16\n%d = arith.constant 256.0 : bf16\n%s = arith.addf %d, %c : bf16\n%r = arith.subf %s, %d : bf16"
    assert float(one("", body, "bf16")) == 0.0
