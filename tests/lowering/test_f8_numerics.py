"""8-bit floats: every number up, every rounding down, and what a program on them computes (docs/numerics.md, "Types and rounding")."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import gradir as gd
from gradir.dialects.nd.meaning.rounding import convert
from gradir.driver.compile import compile_module
from gradir.ir.text import parse_module, print_module
from gradir.reference import run
from gradir.runtime.module import load

TYPES = {"f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2}
EVERY = np.arange(256, dtype=np.uint8)


def converted(values: Any, source: str, target: str) -> Any:
    """`nd.convert`, compiled and evaluated, which agree bit for bit (NaN with NaN)."""
    a, b = (f"tensor<{values.size}x{e}>" for e in (source, target))
    module = parse_module(f"func.func @f(%x: {a}) -> {b} {{\n%r = nd.convert %x : {a} -> {b}\nreturn %r : {b}\n}}")
    found, want = compile_module(module)["f"](values), run(module, "f", [values])[0]
    assert found.dtype == want.dtype
    same(found, want)
    return found


def same(found: Any, want: Any) -> None:
    a, b = found.astype(np.float64), want.astype(np.float64)
    np.testing.assert_array_equal(a, b)
    assert (np.signbit(a) == np.signbit(b))[~np.isnan(b)].all()


@pytest.mark.parametrize("name", TYPES)
def test_every_number_is_exact_in_f32(name: str):
    values = EVERY.view(TYPES[name])
    same(converted(values, name, "f32"), values.astype(np.float32))


@pytest.mark.parametrize("name", TYPES)
def test_rounding_is_to_nearest_even(name: str):
    """At every number, half way between every two, and one f32 beside that."""
    dtype = TYPES[name]
    numbers = np.sort(EVERY.view(dtype).astype(np.float32)[np.isfinite(EVERY.view(dtype).astype(np.float32))])
    middle = (numbers[1:] + numbers[:-1]) / 2
    values = np.concatenate([numbers, middle, np.nextafter(middle, np.float32(1e9)), np.nextafter(middle, np.float32(-1e9))])
    same(converted(values, "f32", name), values.astype(dtype))


@pytest.mark.parametrize("name", TYPES)
def test_f64_is_rounded_once(name: str):
    """1 + 1/16 + 2**-40 is above the middle of 1 and 1 + 1/8 (1/4 of f8E5M2), which f32 alone would not see."""
    step = 2.0 ** -(3 if name == "f8E4M3FN" else 2)
    values = np.array([1 + step / 2 + 2.0**-40, 1 + step / 2, 1 + step / 2 - 2.0**-40, np.nan, np.inf, -(1 + step / 2 + 2.0**-40)])
    assert converted(values, "f64", name).astype(float)[[0, 1, 2, 5]].tolist() == [1 + step, 1, 1, -(1 + step)]


def test_overflow_does_not_saturate():
    values = np.array([464, 465, np.inf, -465, 61440, 61439], np.float32)
    assert np.array_equal(converted(values, "f32", "f8E4M3FN").astype(float)[:4], [448, np.nan, np.nan, np.nan], equal_nan=True)
    assert converted(values, "f32", "f8E5M2").astype(float)[2:].tolist() == [np.inf, -448, np.inf, 57344]


def test_integers():
    values = np.array([17, 19, 300, 2**31 - 1, -464], np.int32)
    assert np.array_equal(converted(values, "i32", "f8E4M3FN").astype(float), [16, 20, 288, np.nan, -448], equal_nan=True)
    assert converted(np.array([2.5, -448.0, np.nan]).astype(TYPES["f8E4M3FN"]), "f8E4M3FN", "i8").tolist() == [2, -128, 0]


@pytest.mark.parametrize("name", TYPES)
def test_the_definition_agrees_with_ml_dtypes_from_f32(name: str):
    values = np.random.default_rng(0).standard_normal(4096).astype(np.float32) * np.float32(100)
    same(convert(values, np.dtype(TYPES[name])), values.astype(TYPES[name]))


@pytest.mark.parametrize("name", TYPES)
def test_each_op_is_rounded_once(name: str):
    """(x + y) - y in f8, rounded in between also where the two ops share a kernel."""
    x, y = (v.ravel().view(TYPES[name]) for v in np.meshgrid(EVERY[::5], EVERY[::3]))
    kind = f"tensor<{x.size}x{name}>"
    text = f"func.func @f(%x: {kind}, %y: {kind}) -> {kind} {{\n%s = nd.add %x, %y : {kind}\n%r = nd.sub %s, %y : {kind}\nreturn %r : {kind}\n}}"
    with np.errstate(all="ignore"):
        total = (x.astype(np.float32) + y.astype(np.float32)).astype(TYPES[name])
        want = (total.astype(np.float32) - y.astype(np.float32)).astype(TYPES[name])
    for optimize in (0, 2):
        same(compile_module(text, optimize=optimize)["f"](x, y), want)


def test_products_accumulate_in_f32():
    """512 products of 1 are 512, which f8E4M3FN cannot hold: the sum is rounded only where the result asks for it."""
    ones = np.ones((1, 512), TYPES["f8E4M3FN"])
    f = gd.jit(lambda x: gd.dot_general(x, x, ([1], [1]), preferred_element_type=np.float32))
    assert f(ones).tolist() == [[512]]
    assert np.isnan(gd.jit(lambda x: gd.sum(x))(ones).astype(float))


def test_python_arrays_and_promotion():
    x = np.array([1.0, 2.5], TYPES["f8E5M2"])
    assert gd.jit(lambda x: x * 2)(x).dtype == gd.float8_e5m2
    assert gd.jit(lambda x: x * np.float16(2))(x).dtype == np.float16
    assert gd.jit(lambda x: x + x.astype(gd.float8_e4m3fn))(x).dtype == np.float32
    gradient = gd.grad(lambda x: gd.sum(gd.square(x.astype(np.float32))))(x)
    assert gradient.dtype == gd.float8_e5m2 and gradient.astype(float).tolist() == [2, 5]


@pytest.mark.parametrize("name", TYPES)
def test_text_and_artefacts_keep_the_type(name: str, tmp_path: Any):
    kind = f"tensor<300x{name}>"
    values = np.resize(EVERY, 300).view(TYPES[name])
    module = parse_module(f"func.func @f(%x: {kind}) -> {kind} {{\n%r = nd.reverse %x dims [0] : {kind}\nreturn %r : {kind}\n}}")
    text = print_module(module)
    assert print_module(parse_module(text)) == text
    compile_module(module).save(tmp_path / "f.gradir")
    loaded = load(tmp_path / "f.gradir")["f"]
    assert str(loaded.spec.inputs[0]) == f"300x{name}"
    assert loaded(values).tobytes() == values[::-1].tobytes()


def test_large_constants():
    values = np.resize(EVERY, 1000).view(TYPES["f8E4M3FN"])
    assert gd.jit(lambda i: gd.asarray(values)[::-1])(np.int32(0)).tobytes() == values[::-1].tobytes()


@pytest.mark.parametrize(("name", "most"), [("f8E4M3FN", 448), ("f8E5M2", 57344)])
def test_saturation_where_it_is_asked_for(name: str, most: float):
    values = np.array([1e9, -np.inf, np.inf, 1.5, np.nan], np.float32)
    found = gd.jit(lambda x: x.astype(TYPES[name], saturate=True))(values).astype(float)
    assert np.array_equal(found, [most, -most, most, 1.5, np.nan], equal_nan=True)
