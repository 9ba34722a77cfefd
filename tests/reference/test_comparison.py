"""docs/numerics.md, "Comparison": what is exact, how wide a tolerance is, what is not compared."""

from __future__ import annotations

import numpy as np
import pytest

from gradir.reference import compare, expectations
from gradir.reference.compare import Expectation
from gradir.reference.inputs import generate
from tests.reference.programs import parse

RNG = np.random.default_rng(1)


def expected_of(body: str, type_: str, *inputs: np.ndarray, result: str | None = None) -> Expectation:
    arguments = ", ".join(f"%{k}: {type_}" for k in range(len(inputs)))
    text = f"func.func @f({arguments}) -> {result or type_} {{\n{body}\nreturn %r : {result or type_}\n}}"
    return expectations(parse(text), "f", inputs)[0]


V = "tensor<50xf32>"
X = RNG.standard_normal(50).astype(np.float32)


@pytest.mark.parametrize("body", ["nd.neg %0", "nd.abs %0", "nd.reverse %0 dims [0]", "nd.relu %0", "nd.max %0, %0", "nd.floor %0"])
def test_exact_ops_have_no_tolerance(body: str) -> None:
    expected = expected_of(f"%r = {body} : {V}", V, X)
    assert not expected.tolerance.any() and not expected.unstable.any()
    off = expected.value.copy()
    off[3] = np.nextafter(off[3], np.float32(9))
    difference = compare(expected, off)
    assert difference is not None and difference.index == (3,) and difference.count == 1


def test_small_integers_in_floats_are_exact() -> None:
    x = RNG.integers(0, 10, 50).astype(np.float32)
    for body in ("%s = nd.add %0, %0 : {v}\n%r = nd.mul %s, %0 : {v}", "%r = nd.sub %0, %0 : {v}"):
        assert not expected_of(body.format(v=V), V, x).tolerance.any()
    total = expected_of(f"%r = nd.reduce_sum %0 dims [0] : {V} -> tensor<f32>", V, x, result="tensor<f32>")
    assert not total.tolerance.any()


@pytest.mark.parametrize("name", ["exp", "tanh", "logistic", "sin"])
def test_transcendental_tolerance_is_some_ulps(name: str) -> None:
    expected = expected_of(f"%r = nd.{name} %0 : {V}", V, X)
    ulps = expected.tolerance / (np.abs(expected.value) * 2.0**-23)
    assert (ulps > 3).all() and (ulps < 40).all()
    assert compare(expected, (expected.value * np.float32(1 + 3e-7)).astype(np.float32)) is None
    assert compare(expected, (expected.value * np.float32(1 + 3e-5)).astype(np.float32)) is not None


def test_every_one_of_very_many_rounded_elements_has_a_tolerance() -> None:
    """The errors of a square and of its root cancel in all the runs for some elements; those are not exact for that."""
    x = np.abs(RNG.standard_normal(20_000)).astype(np.float32)
    expected = expected_of("%s = nd.mul %0, %0 : {v}\n%r = nd.sqrt %s : {v}".format(v="tensor<20000xf32>"), "tensor<20000xf32>", x)
    assert (expected.tolerance >= 2.0**-22 * expected.value).all()


def test_sum_tolerance_follows_the_terms_and_not_the_result() -> None:
    x = np.array([1e6, -1e6, 1.5] * 10, np.float32) + np.float32(0.1)
    expected = expected_of("%r = nd.reduce_sum %0 dims [0] : tensor<30xf32> -> tensor<f32>", "tensor<30xf32>", x, result="tensor<f32>")
    assert 1e-2 < float(expected.tolerance) < 1e3
    assert compare(expected, np.array(expected.value + 0.01, np.float32)) is None


def test_contraction_tolerance() -> None:
    x = RNG.standard_normal((40, 40)).astype(np.float32)
    t = "tensor<40x40xf32>"
    expected = expected_of(f"%r = nd.dot_general %0, %1 contract [1] x [0] : {t}, {t} -> {t}", t, x, x)
    sequential = np.zeros((40, 40), np.float32)
    for k in range(40):
        sequential += np.outer(x[:, k], x[k])
    assert compare(expected, sequential) is None
    wrong = sequential - np.outer(x[:, 0], x[0])
    difference = compare(expected, wrong)
    assert difference is not None and difference.count > 1000


def test_tolerance_grows_through_cancellation() -> None:
    body = f"%e = nd.exp %0 : {V}\n%l = nd.log %e : {V}\n%r = nd.sub %l, %0 : {V}"
    expected = expected_of(body, V, X)
    assert compare(expected, np.zeros(50, np.float32)) is None
    assert compare(expected, np.full(50, 1e-4, np.float32)) is not None


def test_elements_near_a_discontinuity_are_counted() -> None:
    body = f"%e = nd.exp %0 : {V}\n%l = nd.log %e : {V}\n%r = nd.compare lt, %l, %0 : {V} -> tensor<50xi1>"
    text = f"func.func @f(%0: {V}) -> tensor<50xi1> {{\n{body.replace(' -> tensor<50xi1>', '')}\nreturn %r : tensor<50xi1>\n}}"
    expected = expectations(parse(text), "f", [X])[0]
    assert expected.unstable.mean() > 0.5
    assert compare(expected, np.where(expected.unstable, ~expected.value, expected.value)) is None


def test_special_values() -> None:
    expected = expected_of(
        f"%r = nd.exp %0 : {V}", V, np.where(np.arange(50) < 5, np.nan, np.where(np.arange(50) < 9, np.inf, X)).astype(np.float32)
    )
    assert compare(expected, expected.value) is None
    off = expected.value.copy()
    off[7] = 3e38
    difference = compare(expected, off)
    assert difference is not None and difference.index == (7,) and difference.expected == "inf"
    off = expected.value.copy()
    off[0] = 1
    assert compare(expected, off) is not None


def test_shape_and_type_must_agree_but_not_the_sign_of_integers() -> None:
    exact = Expectation(np.array([1, 255], np.uint8), np.zeros(2), np.zeros(2, bool))
    assert compare(exact, np.array([1, -1], np.int8)) is None
    assert compare(exact, np.array([1, -1], np.int16)) is not None
    difference = compare(exact, np.array([[1, -1]], np.int8))
    assert difference is not None and difference.index is None and difference.expected == "uint8[2]"


def test_bf16_and_f64_have_their_own_scale() -> None:
    import ml_dtypes

    expected = expected_of("%r = nd.exp %0 : tensor<50xbf16>", "tensor<50xbf16>", X.astype(ml_dtypes.bfloat16))
    assert (expected.tolerance / np.abs(expected.value.astype(np.float64)) > 2.0**-8).all()
    expected = expected_of("%r = nd.exp %0 : tensor<50xf64>", "tensor<50xf64>", X.astype(np.float64))
    relative = expected.tolerance / np.abs(expected.value)
    assert (relative > 1e-16).all() and (relative < 1e-14).all()


def test_inputs_cover_sizes_of_zero_and_one_and_repeat() -> None:
    text = (
        'func.func @f(%a: tensor<?x4xf32, ["b", ""]>, %b: tensor<?xi32, ["b"]>, %c: i1, %d: index, %e: memref<?xui8>, %f: f32) { return }'
    )
    function = parse(text).body.block.first_op
    assert function is not None
    types = [argument.type for argument in function.regions[0].block.args]
    sizes = set()
    for sample in range(7):
        arrays = generate(types, 3, sample)
        again = generate(types, 3, sample)
        assert all(np.array_equal(x, y) for x, y in zip(arrays, again))
        assert arrays[0].shape[0] == arrays[1].shape[0]
        assert ((arrays[1] >= 0) & (arrays[1] < 4)).all() and arrays[4].dtype == np.uint8
        sizes.add(arrays[0].shape[0])
    assert {0, 1} <= sizes
