"""`linalg` on tensors and on memrefs: maps, reductions of every kind, bodies that read elsewhere, aliasing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradir.reference import run, structured
from tests.reference.programs import evaluate, parse, refused

RNG = np.random.default_rng(0)


def generic(maps: str, kinds: str, inputs: str, outputs: str, arguments: str, body: str, result: str = "") -> str:
    ins = f"ins({inputs})" if inputs else ""
    arrow = f"-> {result}" if result else ""
    words = ", ".join(f'"{ {"p": "parallel", "r": "reduction"}[k] }"' for k in kinds)
    return f"linalg.generic {{indexing_maps = [{maps}], iterator_types = [{words}]}} {ins} outs({outputs}) {{\n^bb0({arguments}):\n{body}\n}} {arrow}"


def affine(dims: str, *results: str) -> str:
    return ", ".join(f"affine_map<({dims}) -> ({r})>" for r in results)


REDUCTIONS = [
    ("addf", "f32", 0.5, lambda x: x.sum(1) + np.float32(0.5)),
    ("mulf", "f32", 2.0, lambda x: x.prod(1) * 2),
    ("maximumf", "f32", 0.25, lambda x: np.maximum(x.max(1), 0.25)),
    ("minimumf", "f32", 0.25, lambda x: np.minimum(x.min(1), 0.25)),
    ("maxnumf", "f32", 0.25, lambda x: np.maximum(x.max(1), 0.25)),
    ("minnumf", "f32", 0.25, lambda x: np.minimum(x.min(1), 0.25)),
    ("addi", "i8", 100, lambda x: (x.sum(1) + 100).astype(np.int8)),
    ("muli", "i8", 3, lambda x: (x.astype(np.int64).prod(1) * 3).astype(np.int8)),
    ("andi", "i8", -1, lambda x: np.bitwise_and.reduce(x, 1)),
    ("ori", "i8", 1, lambda x: np.bitwise_or.reduce(x, 1) | 1),
    ("xori", "i8", 1, lambda x: np.bitwise_xor.reduce(x, 1) ^ 1),
    ("maxsi", "i8", 0, lambda x: np.maximum(x.max(1), 0)),
    ("minsi", "i8", 0, lambda x: np.minimum(x.min(1), 0)),
    ("maxui", "i8", 0, lambda x: x.view(np.uint8).max(1).view(np.int8)),
    ("minui", "i8", -1, lambda x: x.view(np.uint8).min(1).view(np.int8)),
]


@pytest.mark.parametrize("limit", [1 << 22, 2])
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(("name", "element", "init", "expected"), REDUCTIONS)
def test_row_reduction(
    name: str, element: str, init: Any, expected: Any, swapped: bool, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(structured, "GRID_LIMIT", limit)
    t, v = f"tensor<3x5x{element}>", f"tensor<3x{element}>"
    operands = "%a, %acc" if swapped else "%acc, %a"
    body = f"%s = arith.{name} {operands} : {element}\nlinalg.yield %s : {element}"
    text = f"""func.func @f(%x: {t}) -> {v} {{
    %c = arith.constant dense<{init}> : {v}
    %r = {generic(affine("i, j", "i, j", "i"), "pr", f"%x : {t}", f"%c : {v}", f"%a: {element}, %acc: {element}", body, v)}
    return %r : {v}
    }}"""
    dtype = np.dtype("f4" if element == "f32" else "i1")
    x = RNG.standard_normal((3, 5)).astype(dtype) if element == "f32" else RNG.integers(-100, 100, (3, 5)).astype(dtype)
    (found,) = evaluate(text, [x])
    np.testing.assert_allclose(found, np.asarray(expected(x), dtype), rtol=1e-6)


def test_reduction_of_booleans_is_modulo_two() -> None:
    body = "%s = arith.addi %acc, %a : i1\nlinalg.yield %s : i1"
    op = generic(affine("i", "i", ""), "r", "%x : tensor<3xi1>", "%c : tensor<i1>", "%a: i1, %acc: i1", body, "tensor<i1>")
    text = f"func.func @f(%x: tensor<3xi1>, %c: tensor<i1>) -> tensor<i1> {{\n%r = {op}\nreturn %r : tensor<i1>\n}}"
    assert evaluate(text, [np.array([True, True, True]), np.array(False)])[0]
    assert not evaluate(text, [np.array([True, True, False]), np.array(False)])[0]


def test_argmax_runs_point_by_point() -> None:
    body = """%j = linalg.index 1 : index
    %ji = arith.index_cast %j : index to i32
    %c = arith.cmpf ogt, %a, %m : f32
    %v = arith.select %c, %a, %m : f32
    %k = arith.select %c, %ji, %p : i32
    linalg.yield %v, %k : f32, i32"""
    results = "(tensor<3xf32>, tensor<3xi32>)"
    op = generic(
        affine("i, j", "i, j", "i", "i"),
        "pr",
        "%x : tensor<3x5xf32>",
        "%lo, %zero : tensor<3xf32>, tensor<3xi32>",
        "%a: f32, %m: f32, %p: i32",
        body,
        results,
    )
    text = f"""func.func @f(%x: tensor<3x5xf32>) -> {results} {{
    %lo = arith.constant dense<0xFF800000> : tensor<3xf32>
    %zero = arith.constant dense<0> : tensor<3xi32>
    %r:2 = {op}
    return %r#0, %r#1 : tensor<3xf32>, tensor<3xi32>
    }}"""
    x = RNG.standard_normal((3, 5)).astype(np.float32)
    value, index = evaluate(text, [x])
    np.testing.assert_array_equal(value, x.max(1))
    np.testing.assert_array_equal(index, x.argmax(1))


def test_convolution_map_with_strides_and_shape_only_window() -> None:
    body = "%s = arith.maximumf %acc, %a : f32\nlinalg.yield %s : f32"
    op = generic(
        affine("i, k", "i * 2 + k", "k", "i"),
        "pr",
        "%x, %w : tensor<7xf32>, tensor<3xf32>",
        "%c : tensor<3xf32>",
        "%a: f32, %b: f32, %acc: f32",
        body,
        "tensor<3xf32>",
    )
    text = f"""func.func @f(%x: tensor<7xf32>) -> tensor<3xf32> {{
    %w = tensor.empty() : tensor<3xf32>
    %c = arith.constant dense<0xFF800000> : tensor<3xf32>
    %r = {op}
    return %r : tensor<3xf32>
    }}"""
    x = RNG.standard_normal(7).astype(np.float32)
    np.testing.assert_array_equal(evaluate(text, [x])[0], [x[0:3].max(), x[2:5].max(), x[4:7].max()])


def test_reversed_and_constant_maps() -> None:
    op = generic(
        affine("i", "-i + 3", "i"),
        "p",
        "%x : tensor<4xf32>",
        "%e : tensor<4xf32>",
        "%a: f32, %o: f32",
        "linalg.yield %a : f32",
        "tensor<4xf32>",
    )
    text = f"func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {{\n%e = tensor.empty() : tensor<4xf32>\n%r = {op}\nreturn %r : tensor<4xf32>\n}}"
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(evaluate(text, [x])[0], x[::-1])
    wrong = text.replace("-i + 3", "-i + 4")
    assert "out of bounds" in refused("OP102", wrong, [x]).message


def test_gather_in_the_body() -> None:
    body = """%j = arith.index_cast %k : i32 to index
    %v = tensor.extract %x[%j] : tensor<5xf32>
    linalg.yield %v : f32"""
    op = generic(affine("i", "i", "i"), "p", "%ks : tensor<3xi32>", "%e : tensor<3xf32>", "%k: i32, %o: f32", body, "tensor<3xf32>")
    text = f"func.func @f(%x: tensor<5xf32>, %ks: tensor<3xi32>) -> tensor<3xf32> {{\n%e = tensor.empty() : tensor<3xf32>\n%r = {op}\nreturn %r : tensor<3xf32>\n}}"
    x = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(evaluate(text, [x, np.array([4, 0, 2], np.int32)])[0], [4, 0, 2])
    assert refused("OP102", text, [x, np.array([4, 5, 2], np.int32)]).found == "5"


def test_branch_in_the_body_runs_point_by_point() -> None:
    body = """%z = arith.constant 0.0 : f32
    %c = arith.cmpf olt, %a, %z : f32
    %v = scf.if %c -> (f32) { scf.yield %z : f32 } else { scf.yield %a : f32 }
    linalg.yield %v : f32"""
    op = generic(
        affine("i, j", "i, j", "j, i"), "pp", "%x : tensor<2x3xf32>", "%e : tensor<3x2xf32>", "%a: f32, %o: f32", body, "tensor<3x2xf32>"
    )
    text = f"func.func @f(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {{\n%e = tensor.empty() : tensor<3x2xf32>\n%r = {op}\nreturn %r : tensor<3x2xf32>\n}}"
    x = RNG.standard_normal((2, 3)).astype(np.float32)
    np.testing.assert_array_equal(evaluate(text, [x])[0], np.maximum(x, 0).T)


@pytest.mark.parametrize("sizes", [(0, 3), (3, 0)])
def test_empty_loops(sizes: tuple[int, int]) -> None:
    body = "%s = arith.addf %acc, %a : f32\nlinalg.yield %s : f32"
    op = generic(
        affine("i, j", "i, j", "i"), "pr", "%x : tensor<?x?xf32>", "%c : tensor<?xf32>", "%a: f32, %acc: f32", body, "tensor<?xf32>"
    )
    text = f"func.func @f(%x: tensor<?x?xf32>, %c: tensor<?xf32>) -> tensor<?xf32> {{\n%r = {op}\nreturn %r : tensor<?xf32>\n}}"
    init = np.full(sizes[0], 7, np.float32)
    np.testing.assert_array_equal(evaluate(text, [np.zeros(sizes, np.float32), init])[0], init)


def test_missing_fill_and_disagreeing_sizes() -> None:
    body = "%s = arith.addf %acc, %a : f32\nlinalg.yield %s : f32"
    op = generic(affine("i", "i", "i"), "p", "%x : tensor<?xf32>", "%e : tensor<?xf32>", "%a: f32, %acc: f32", body, "tensor<?xf32>")
    text = f"func.func @f(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {{\n%e = tensor.empty(%n) : tensor<?xf32>\n%r = {op}\nreturn %r : tensor<?xf32>\n}}"
    assert refused("OP101", text, [np.ones(3, np.float32), np.int64(3)]).op == "linalg.generic"
    error = refused("OP111", text, [np.ones(3, np.float32), np.int64(4)])
    assert (error.expected, error.found) == ("3", "4")


def test_fill_and_copy_on_tensors() -> None:
    text = """func.func @f(%v: f32, %e: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
    %a = linalg.fill ins(%v : f32) outs(%e : tensor<2xf32>) -> tensor<2xf32>
    %b = linalg.copy ins(%a : tensor<2xf32>) outs(%e : tensor<2xf32>) -> tensor<2xf32>
    return %a, %b : tensor<2xf32>, tensor<2xf32>
    }"""
    for found in evaluate(text, [np.float32(3), np.zeros(2, np.float32)]):
        np.testing.assert_array_equal(found, [3, 3])


def memref_update(maps: str, kinds: str = "pp") -> str:
    op = generic(maps, kinds, "%x : memref<3x3xf32>", "%x : memref<3x3xf32>", "%a: f32, %o: f32", "linalg.yield %a : f32")
    return f"func.func @f(%x: memref<3x3xf32>) {{\n{op}\nreturn\n}}"


def test_in_place_needs_equal_maps() -> None:
    x = np.arange(9, dtype=np.float32).reshape(3, 3)
    (found,) = run(parse(memref_update(affine("i, j", "i, j", "i, j"))), "f", [x])
    np.testing.assert_array_equal(found, x)
    refused("OP109", memref_update(affine("i, j", "j, i", "i, j")), [x])


def test_accumulation_into_a_buffer() -> None:
    body = "%s = arith.addf %acc, %a : f32\nlinalg.yield %s : f32"
    op = generic(affine("i, j", "i, j", "i"), "pr", "%x : memref<2x3xf32>", "%y : memref<2xf32>", "%a: f32, %acc: f32", body)
    text = f"func.func @f(%x: memref<2x3xf32>, %y: memref<2xf32>) {{\n{op}\nreturn\n}}"
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(run(parse(text), "f", [x, np.array([1, 2], np.float32)])[1], [4, 5])
    refused("OP101", text, [x, None])


def test_large_contraction_is_cut_into_boxes(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "%p = arith.mulf %a, %b : f32\n%s = arith.addf %acc, %p : f32\nlinalg.yield %s : f32"
    op = generic(
        affine("m, n, k", "m, k", "k, n", "m, n"),
        "ppr",
        "%x, %w : tensor<5x7xf32>, tensor<7x4xf32>",
        "%c : tensor<5x4xf32>",
        "%a: f32, %b: f32, %acc: f32",
        body,
        "tensor<5x4xf32>",
    )
    text = f"func.func @f(%x: tensor<5x7xf32>, %w: tensor<7x4xf32>) -> tensor<5x4xf32> {{\n%c = arith.constant dense<0.0> : tensor<5x4xf32>\n%r = {op}\nreturn %r : tensor<5x4xf32>\n}}"
    x, w = (RNG.standard_normal(s).astype(np.float32) for s in ((5, 7), (7, 4)))
    for limit in (1 << 22, 9, 1):
        monkeypatch.setattr(structured, "GRID_LIMIT", limit)
        np.testing.assert_allclose(evaluate(text, [x, w])[0], x @ w, rtol=1e-5, atol=1e-6)


def test_an_output_along_a_reduction_has_an_element_for_each_of_its_points() -> None:
    """Two outputs share the loops: the sum over j, and one value for each i, j, which is no sum."""
    t, v = "tensor<3x5xf64>", "tensor<3xf64>"
    body = "%s = arith.addf %acc, %a : f64\n%t = arith.addf %o, %a : f64\nlinalg.yield %s, %t : f64, f64"
    nest = generic(
        affine("i, j", "i, j", "i", "i, j"),
        "pr",
        f"%x : {t}",
        f"%z, %y : {v}, {t}",
        "%a: f64, %acc: f64, %o: f64",
        body,
        f"({v}, {t})",
    )
    text = f"func.func @f(%x: {t}, %z: {v}, %y: {t}) -> ({v}, {t}) {{\n%r, %q = {nest}\nreturn %r, %q : {v}, {t}\n}}"
    x, z, y = RNG.standard_normal((3, 5)), RNG.standard_normal(3), RNG.standard_normal((3, 5))
    sums, values = run(parse(text), "f", [x, z, y])
    np.testing.assert_allclose(np.asarray(sums), z + x.sum(1))
    np.testing.assert_allclose(np.asarray(values), y + x)
