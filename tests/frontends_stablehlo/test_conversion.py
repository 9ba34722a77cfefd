"""What single ops become, and that they compute what StableHLO's specification says."""

import numpy as np
import pytest

from gradir.driver.compile import compile_module
from gradir.frontends.stablehlo import import_text
from gradir.ir.text import print_module
from gradir.reference import run

Array = np.ndarray


def function(signature: str, result: str, body: str, more: str = "") -> str:
    return f"module @m {{\n  func.func public @main({signature}) -> {result} {{\n{body}\n    return %r : {result}\n  }}\n{more}}}\n"


def both(text: str, *inputs: Array) -> Array:
    """The result in the evaluator; compiled it must be the same."""
    module = import_text(text)
    (value,) = run(module, "main", list(inputs))
    compiled = np.asarray(compile_module(module, cache=False)["main"](*inputs))
    np.testing.assert_allclose(compiled, value, rtol=1e-5)
    return value


def level1(text: str) -> str:
    return print_module(import_text(text))


def region(name: str, kind: str = "f32") -> str:
    return (
        f"({{\n^bb0(%a: tensor<{kind}>, %b: tensor<{kind}>):\n%s = stablehlo.{name} %a, %b : tensor<{kind}>\n"
        f"stablehlo.return %s : tensor<{kind}>\n}})"
    )


# -- reduce


def reduce_text(start: str, name: str = "add", kind: str = "f32") -> str:
    return function(
        f"%x: tensor<2x3x{kind}>",
        f"tensor<2x{kind}>",
        f"%c = stablehlo.constant dense<{start}> : tensor<{kind}>\n"
        f"%r = stablehlo.reduce(%x init: %c) applies stablehlo.{name} across dimensions = [1] : "
        f"(tensor<2x3x{kind}>, tensor<{kind}>) -> tensor<2x{kind}>",
    )


@pytest.mark.parametrize(
    ("name", "start", "kind", "op"),
    [
        ("add", "0.0", "f32", "nd.reduce_sum"),
        ("multiply", "1.0", "f32", "nd.reduce_prod"),
        ("maximum", "0xFF800000", "f32", "nd.reduce_max"),
        ("minimum", "0x7F800000", "f32", "nd.reduce_min"),
        ("maximum", "-2147483648", "i32", "nd.reduce_max"),
        ("or", "false", "i1", "nd.reduce_any"),
        ("and", "true", "i1", "nd.reduce_all"),
    ],
)
def test_reduce_from_the_identity_is_one_op(name: str, start: str, kind: str, op: str) -> None:
    text = level1(reduce_text(start, name, kind))
    assert f"{op} %x dims [1]" in text
    assert text.count("nd.") == text.count("nd.constant") + 1


def test_initial_value_is_combined_once() -> None:
    x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    np.testing.assert_array_equal(both(reduce_text("10.0"), x), [16, 25])


def test_unknown_body_folds_from_the_left() -> None:
    x = np.array([[1, 2, 3], [40, 5, 6]], np.float32)
    np.testing.assert_array_equal(both(reduce_text("1.0", "subtract"), x), [-5, -50])


def test_argmax_of_jax_is_argmax() -> None:
    body = (
        "%i = stablehlo.iota dim = 0 : tensor<4xi32>\n%l = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
        "%z = stablehlo.constant dense<0> : tensor<i32>\n"
        "%q:2 = stablehlo.reduce(%x init: %l), (%i init: %z) across dimensions = [0] : "
        "(tensor<4xf32>, tensor<4xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)\n"
        "reducer(%a: tensor<f32>, %c: tensor<f32>) (%b: tensor<i32>, %d: tensor<i32>) {\n"
        "%2 = stablehlo.compare GT, %a, %c, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
        "%3 = stablehlo.compare NE, %a, %a, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
        "%4 = stablehlo.or %2, %3 : tensor<i1>\n"
        "%5 = stablehlo.compare EQ, %a, %c, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
        "%6 = stablehlo.compare LT, %b, %d, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        "%7 = stablehlo.and %5, %6 : tensor<i1>\n%8 = stablehlo.or %4, %7 : tensor<i1>\n"
        "%9 = stablehlo.select %4, %a, %c : tensor<i1>, tensor<f32>\n%10 = stablehlo.select %8, %b, %d : tensor<i1>, tensor<i32>\n"
        "stablehlo.return %9, %10 : tensor<f32>, tensor<i32>\n}\n%r = stablehlo.add %q#1, %z : tensor<i32>"
    )
    text = function("%x: tensor<4xf32>", "tensor<i32>", body)
    assert "nd.argmax %x dim 0" in level1(text)
    assert both(text, np.array([1, 5, 5, 2], np.float32)) == 1
    other = text.replace("compare LT, %b, %d", "compare GT, %b, %d")  # the last of equal ones: not argmax, folded
    assert "nd.argmax" not in level1(other)
    assert both(other, np.array([1, 5, 5, 2], np.float32)) == 2


# -- windows


def window_text(start: str, name: str = "add", more: str = "") -> str:
    return function(
        "%x: tensor<5xf32>",
        "tensor<5xf32>",
        f"%c = stablehlo.constant dense<{start}> : tensor<f32>\n"
        '%r = "stablehlo.reduce_window"(%x, %c) <{window_dimensions = array<i64: 3>, padding = dense<[[2, 0]]> : tensor<1x2xi64>'
        f"{more}}}> {region(name)} : (tensor<5xf32>, tensor<f32>) -> tensor<5xf32>",
    )


X5 = np.array([1, 2, 3, 4, 5], np.float32)


def test_window_sum_from_zero_is_one_op() -> None:
    assert "nd.reduce_window sum, %x window [3] padding [2, 0]" in level1(window_text("0.0"))
    np.testing.assert_array_equal(both(window_text("0.0"), X5), [1, 3, 6, 9, 12])


def test_padding_of_a_window_counts_as_the_initial_value() -> None:
    np.testing.assert_array_equal(both(window_text("10.0"), X5), [31, 23, 16, 19, 22])
    np.testing.assert_array_equal(both(window_text("2.5", "maximum"), X5), [2.5, 2.5, 3, 4, 5])
    np.testing.assert_array_equal(both(window_text("1.0", "multiply"), X5), [1, 2, 6, 24, 60])


# -- gather and scatter


def gather_text(indices: str, dims: str, sizes: str, operand: str, result: str) -> str:
    return function(
        f"%x: tensor<{operand}xf32>, %i: tensor<{indices}xi32>",
        f"tensor<{result}xf32>",
        f'%r = "stablehlo.gather"(%x, %i) <{{dimension_numbers = #stablehlo.gather<{dims}>, slice_sizes = array<i64: {sizes}>}}> : '
        f"(tensor<{operand}xf32>, tensor<{indices}xi32>) -> tensor<{result}xf32>",
    )


X34 = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_gather_of_columns_is_a_gather_along_one_axis() -> None:
    text = gather_text(
        "2x1", "offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1", "3, 1", "3x4", "3x2"
    )
    assert "nd.gather %x, %0 dim 1" in level1(text)
    np.testing.assert_array_equal(both(text, X34, np.array([[3], [-7]], np.int32)), X34[:, [3, 0]])


def test_one_index_vector_is_a_dynamic_slice() -> None:
    text = gather_text("2", "offset_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 0", "2, 2", "3x4", "2x2")
    assert "nd.dynamic_slice" in level1(text)
    np.testing.assert_array_equal(both(text, X34, np.array([9, 1], np.int32)), X34[1:3, 1:3])


def test_any_other_gather_clamps_its_slices() -> None:
    text = gather_text("2x2", "offset_dims = [1, 2], start_index_map = [0, 1], index_vector_dim = 1", "2, 2", "3x4", "2x2x2")
    expected = np.stack([X34[1:3, 2:4], X34[0:2, 1:3]])
    np.testing.assert_array_equal(both(text, X34, np.array([[5, 2], [-1, 1]], np.int32)), expected)


def test_batching_dimensions_of_a_gather() -> None:
    dims = "collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2"
    text = gather_text("3x2x1", dims, "1, 1", "3x4", "3x2")
    indices = np.array([[[0], [3]], [[1], [1]], [[2], [9]]], np.int32)
    expected = np.take_along_axis(X34, np.clip(indices[..., 0], 0, 3), 1)
    np.testing.assert_array_equal(both(text, X34, indices), expected)


def scatter_text(combine: str) -> str:
    dims = "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1"
    body = f"%s = stablehlo.{combine} %a, %b : tensor<f32>" if combine else "%s = stablehlo.add %b, %z : tensor<f32>"
    return function(
        "%x: tensor<3x4xf32>, %i: tensor<3x2xi32>, %u: tensor<3x2xf32>",
        "tensor<3x4xf32>",
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        f'%r = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<{dims}>}}> ({{\n'
        f"^bb0(%a: tensor<f32>, %b: tensor<f32>):\n{body}\nstablehlo.return %s : tensor<f32>\n}}) : "
        "(tensor<3x4xf32>, tensor<3x2xi32>, tensor<3x2xf32>) -> tensor<3x4xf32>",
    )


@pytest.mark.parametrize("combine", ["add", "multiply", "maximum", ""])
def test_scatter_drops_what_is_outside_and_keeps_the_order(combine: str) -> None:
    indices = np.array([[0, 3], [2, 1], [2, 2]], np.int32)  # the first window sticks out by one
    updates = np.array([[10, 20], [30, 40], [5, 6]], np.float32)
    step = {"add": np.add, "multiply": np.multiply, "maximum": np.maximum, "": lambda old, new: new}[combine]
    expected = X34.copy()
    for (row, column), window in zip(indices, updates):
        for k, value in enumerate(window):
            if column + k < 4:
                expected[row, column + k] = step(expected[row, column + k], value)
    np.testing.assert_array_equal(both(scatter_text(combine), X34, indices, updates), expected)


# -- layouts, control flow


def test_channels_first_convolution_is_transposed() -> None:
    text = function(
        "%x: tensor<1x2x4x4xf32>, %w: tensor<3x2x3x3xf32>",
        "tensor<1x3x4x4xf32>",
        "%r = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {pad = [[1, 1], [1, 1]]} "
        "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x4x4xf32>, tensor<3x2x3x3xf32>) -> tensor<1x3x4x4xf32>",
    )
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(1, 2, 4, 4)).astype(np.float32), rng.normal(size=(3, 2, 3, 3)).astype(np.float32)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    np.testing.assert_allclose(both(text, x, w), np.einsum("bihwuv,oiuv->bohw", windows, w), rtol=1e-4, atol=1e-5)
    assert level1(text).count("nd.transpose") == 3


def case_text(branches: int) -> str:
    bodies = ", ".join(
        f"{{\n%k{i} = stablehlo.constant dense<{i}.0> : tensor<f32>\nstablehlo.return %k{i} : tensor<f32>\n}}" for i in range(branches)
    )
    return function("%i: tensor<i32>", "tensor<f32>", f'%r = "stablehlo.case"(%i) ({bodies}) : (tensor<i32>) -> tensor<f32>')


@pytest.mark.parametrize("branches", [1, 2, 3])
def test_case_outside_of_its_branches_takes_the_last(branches: int) -> None:
    for index in (-1, 0, 1, 2, 3):
        expected = index if 0 <= index < branches else branches - 1
        assert both(case_text(branches), np.array(index, np.int32)) == expected


def test_if_takes_one_of_two() -> None:
    text = function(
        "%p: tensor<i1>, %x: tensor<2xf32>",
        "tensor<2xf32>",
        '%r = "stablehlo.if"(%p) ({\n%a = stablehlo.negate %x : tensor<2xf32>\nstablehlo.return %a : tensor<2xf32>\n}, {\n'
        "stablehlo.return %x : tensor<2xf32>\n}) : (tensor<i1>) -> tensor<2xf32>",
    )
    x = np.array([1, -2], np.float32)
    np.testing.assert_array_equal(both(text, np.array(True), x), -x)
    np.testing.assert_array_equal(both(text, np.array(False), x), x)
