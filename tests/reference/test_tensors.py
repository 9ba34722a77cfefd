"""`tensor` and `nd`: slices, poison of `empty`, and elements that stay undefined while they move."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradir.dialects import nd
from gradir.dialects.nd.base import Sample
from gradir.ir.text import parse_module
from gradir.reference import run
from tests.reference.programs import evaluate, one, refused_op

X = np.arange(12, dtype=np.float32).reshape(3, 4)
T = "tensor<3x4xf32>"


def test_extract_and_insert_element() -> None:
    assert one(f"%x: {T}, %i: index", f"%r = tensor.extract %x[%i, %i] : {T}", "f32", X, np.int64(2)) == 10
    found = one(f"%x: {T}, %i: index, %v: f32", f"%r = tensor.insert %v into %x[%i, %i] : {T}", T, X, np.int64(1), np.float32(-1))
    assert found[1, 1] == -1 and X[1, 1] == 5


@pytest.mark.parametrize("i", [-1, 3])
def test_element_out_of_bounds(i: int) -> None:
    error = refused_op("OP102", f"%x: {T}, %i: index", f"%r = tensor.extract %x[%i, %i] : {T}", X, np.int64(i))
    assert (error.expected, error.found) == ("0 <= index < 3", str(i))


def test_slices() -> None:
    body = f"%r = tensor.extract_slice %x[%i, 0] [1, 2] [1, 2] : {T} to tensor<2xf32>"
    np.testing.assert_array_equal(one(f"%x: {T}, %i: index", body, "tensor<2xf32>", X, np.int64(1)), X[1, ::2])
    body = f"%r = tensor.insert_slice %s into %x[0, %i] [3, 1] [1, 1] : tensor<3xf32> into {T}"
    found = one(f"%x: {T}, %s: tensor<3xf32>, %i: index", body, T, X, np.ones(3, np.float32), np.int64(2))
    np.testing.assert_array_equal(found[:, 2], 1)
    np.testing.assert_array_equal(found[:, 1], X[:, 1])


@pytest.mark.parametrize(("offset", "size"), [(2, 2), (-1, 1), (0, -1)])
def test_slice_out_of_bounds(offset: int, size: int) -> None:
    body = f"%r = tensor.extract_slice %x[%i, 0] [%n, 4] [1, 1] : {T} to tensor<?x4xf32>"
    refused_op("OP102", f"%x: {T}, %i: index, %n: index", body, X, np.int64(offset), np.int64(size))
    body = f"%s = tensor.empty(%n) : tensor<?x4xf32>\n%r = tensor.insert_slice %s into %x[%i, 0] [%n, 4] [1, 1] : tensor<?x4xf32> into {T}"
    if size > 0:
        refused_op("OP102", f"%x: {T}, %i: index, %n: index", body, X, np.int64(offset), np.int64(size))


def test_empty_slice_at_the_end() -> None:
    body = f"%r = tensor.extract_slice %x[%i, 0] [%n, 4] [1, 1] : {T} to tensor<?x4xf32>"
    assert one(f"%x: {T}, %i: index, %n: index", body, "tensor<?x4xf32>", X, np.int64(3), np.int64(0)).shape == (0, 4)


def test_unit_dims_are_dropped_from_the_right_place() -> None:
    x = np.arange(6, dtype=np.float32).reshape(1, 3, 1, 2)
    body = "%r = tensor.extract_slice %x[0, 0, 0, 0] [1, 3, 1, 2] [1, 1, 1, 1] : tensor<1x3x1x2xf32> to tensor<3x1x2xf32>"
    assert one("%x: tensor<1x3x1x2xf32>", body, "tensor<3x1x2xf32>", x).shape == (3, 1, 2)


def test_shapes_and_creation() -> None:
    body = f"""
    %c = tensor.collapse_shape %x [[0, 1]] : {T} into tensor<12xf32>
    %e = tensor.expand_shape %c [[0, 1]] output_shape [2, 6] : tensor<12xf32> into tensor<2x6xf32>
    %k = tensor.concat dim(0) %e, %e : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<4x6xf32>
    %v = arith.constant 9.0 : f32
    %r = tensor.pad %k low[1, 0] high[0, 1] {{ ^bb0(%i: index, %j: index): tensor.yield %v : f32 }} : tensor<4x6xf32> to tensor<5x7xf32>"""
    found = one(f"%x: {T}", body, "tensor<5x7xf32>", X)
    e = X.reshape(2, 6)
    np.testing.assert_array_equal(found, np.pad(np.concatenate([e, e]), ((1, 0), (0, 1)), constant_values=9))
    assert one(f"%x: {T}, %i: index", f"%r = tensor.dim %x, %i : {T}", "index", X, np.int64(1)) == 4
    refused_op("OP102", f"%x: {T}, %i: index", f"%r = tensor.dim %x, %i : {T}", X, np.int64(2))
    np.testing.assert_array_equal(one("%v: f32", "%r = tensor.splat %v : tensor<2xf32>", "tensor<2xf32>", np.float32(7)), [7, 7])
    np.testing.assert_array_equal(
        one("%v: f32", "%r = tensor.from_elements %v, %v : tensor<2xf32>", "tensor<2xf32>", np.float32(7)), [7, 7]
    )
    body = "%s = arith.constant dense<[4, 3]> : tensor<2xi64>\n%r = tensor.reshape %x(%s) : (tensor<3x4xf32>, tensor<2xi64>) -> tensor<4x3xf32>"
    np.testing.assert_array_equal(one(f"%x: {T}", body, "tensor<4x3xf32>", X), X.reshape(4, 3))


def test_cast_checks_sizes() -> None:
    refused_op("OP111", "%x: tensor<?xf32>", "%r = tensor.cast %x : tensor<?xf32> to tensor<3xf32>", np.ones(4, np.float32))


EMPTY = "%e = tensor.empty() : tensor<2x3xf32>\n%0 = arith.constant 0 : index\n%1 = arith.constant 1 : index\n"


def test_poison_is_an_error_only_where_it_is_read() -> None:
    write = EMPTY + "%a = tensor.insert_slice %x into %e[1, 0] [1, 3] [1, 1] : tensor<3xf32> into tensor<2x3xf32>\n"
    read = "%r = tensor.extract_slice %a[1, 0] [1, 3] [1, 1] : tensor<2x3xf32> to tensor<3xf32>"
    x = np.array([1, 2, 3], np.float32)
    np.testing.assert_array_equal(one("%x: tensor<3xf32>", write + read, "tensor<3xf32>", x), x)
    assert one("%x: tensor<3xf32>", write + "%r = tensor.extract %a[%1, %1] : tensor<2x3xf32>", "f32", x) == 2
    error = refused_op("OP101", "%x: tensor<3xf32>", write + "%r = tensor.extract %a[%0, %1] : tensor<2x3xf32>", x)
    assert error.op == "tensor.extract"
    refused_op("OP101", "", EMPTY + "%r = nd.neg %e : tensor<2x3xf32>")


def test_returning_poison_is_an_error() -> None:
    with pytest.raises(Exception, match="6 elements that were never written"):
        one("", EMPTY + "%r = tensor.cast %e : tensor<2x3xf32> to tensor<2x3xf32>", "tensor<2x3xf32>")


STACK = """
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %e = nd.empty : tensor<3x2xf32>
  %s = scf.for %i = %0 to %n step %1 iter_args(%a = %e) -> (tensor<3x2xf32>) {
    %b = nd.update_at %x into %a[%i] dim 0 : tensor<2xf32> -> tensor<3x2xf32>
    scf.yield %b : tensor<3x2xf32>
  }
  %t = nd.transpose %s perm [1, 0] : tensor<3x2xf32> -> tensor<2x3xf32>
  %r = nd.index_at %t[%1] dim 1 : tensor<2x3xf32> -> tensor<2xf32>"""


def test_definedness_moves_with_elements() -> None:
    x = np.array([4, 5], np.float32)
    arguments = "%x: tensor<2xf32>, %n: index"
    np.testing.assert_array_equal(one(arguments, STACK, "tensor<2xf32>", x, np.int64(2)), x)
    refused_op("OP101", arguments, STACK + "\n%q = nd.neg %r : tensor<2xf32>", x, np.int64(1))


SAMPLES = [pytest.param(op, sample, id=f"{op.name}: {sample.name}") for op in nd.Nd.operations for sample in op.samples()[:2]]


@pytest.mark.parametrize(("op", "sample"), SAMPLES)
def test_samples_evaluate_and_leave_their_inputs_alone(op: type[nd.NdOp], sample: Sample) -> None:
    inputs = sample.inputs()
    kept = [np.array(x, copy=True) for x in inputs]
    for value in run(parse_module(sample.text), "f", inputs):
        assert isinstance(value, np.ndarray)
    for x, y in zip(inputs, kept):
        assert x.tobytes() == y.tobytes()


def test_constants() -> None:
    cases: list[tuple[str, str, Any]] = [
        ("dense<[1.5, 2.5]> : tensor<2xbf16>", "tensor<2xbf16>", [1.5, 2.5]),
        ("dense<[true, false]> : tensor<2xi1>", "tensor<2xi1>", [True, False]),
        ("dense<255> : tensor<2xi8>", "tensor<2xi8>", [-1, -1]),
        ("255 : i8", "i8", -1),
        ("true", "i1", True),
        ("7 : index", "index", 7),
        ("0x7FC00000 : f32", "f32", float("nan")),
    ]
    for literal, type_, expected in cases:
        (found,) = evaluate(f"func.func @f() -> {type_} {{\n%r = arith.constant {literal}\nreturn %r : {type_}\n}}")
        np.testing.assert_array_equal(found.astype(np.float64), np.asarray(expected, np.float64))
