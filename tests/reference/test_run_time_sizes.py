"""Programs with named sizes in the evaluator: samples at 0 and 1 find what other sizes hide, limits are honoured, types that lie are errors."""

from __future__ import annotations

import numpy as np
import pytest

from gradir.dialects.size_limits import Limits, limits_of
from gradir.errors import GradirError
from gradir.ir.structure import public_functions
from gradir.ir.text import parse_module
from gradir.reference import check_semantics, run
from gradir.reference.inputs import generate
from gradir.reference.run import input_types

B, TWICE, LESS = 'tensor<?xf32, ["b"]>', 'tensor<?xf32, ["2*b"]>', 'tensor<?xf32, ["2*b-1"]>'


def program(body: str, limits: str = "") -> str:
    """@f of a vector of run-time size: `body` makes %y from %x, its sum %s, and its size as the f32 %n."""
    attributes = f" attributes {{gradir.sizes = {limits}}}" if limits else ""
    return f"""
func.func @f(%x: {B}) -> tensor<f32>{attributes} {{
  %size = nd.dim %x dim 0 : {B}
  %whole = arith.index_cast %size : index to i64
  %count = tensor.from_elements %whole : tensor<i64>
  %n = nd.convert %count : tensor<i64> -> tensor<f32>
  %one = nd.constant splat(1.0 : f32) : tensor<f32>
  %s = nd.reduce_sum %x dims [0] : {B} -> tensor<f32>
  {body}
  return %y : tensor<f32>
}}"""


MEAN = "%y = nd.div %s, %n : tensor<f32>"
WRONG_AT_0 = "%m = nd.max %n, %one : tensor<f32>\n  %y = nd.div %s, %m : tensor<f32>"
SUM = "%y = nd.mul %s, %one : tensor<f32>"
WRONG_AT_1 = "%m = nd.sub %n, %one : tensor<f32>\n  %k = nd.min %m, %one : tensor<f32>\n  %y = nd.mul %s, %k : tensor<f32>"


@pytest.mark.parametrize(
    ("right", "wrong", "sample", "limits"),
    [(MEAN, WRONG_AT_0, 2, "{b = {min = 1 : i64}}"), (SUM, WRONG_AT_1, 1, "{b = {multiple = 2 : i64}}")],
    ids=["size 0", "size 1"],
)
def test_a_bug_that_only_one_size_shows(right: str, wrong: str, sample: int, limits: str) -> None:
    error = check_semantics(parse_module(program(right)), parse_module(program(wrong)), pass_name="rewrite")
    assert error is not None and error.code == "OP110" and error.message.startswith("pass rewrite: result 0 of @f differs")
    assert f"sample {sample}," in error.message
    assert check_semantics(parse_module(program(right, limits)), parse_module(program(wrong, limits))) is None


def test_limits_are_honoured_and_sizes_fit_together() -> None:
    text = (
        'func.func @f(%x: tensor<?x?xf32, ["b", "t"]>, %y: tensor<?xf32, ["2*b+1"]>, %z: tensor<?xf32, ["b*t"]>) '
        "attributes {gradir.sizes = {b = {min = 3 : i64, max = 12 : i64, multiple = 4 : i64}}} { return }"
    )
    (function,) = public_functions(parse_module(text))
    limits = limits_of(function)
    assert limits == {"b": Limits(3, 12, 4)}
    seen: set[int] = set()
    for k in range(12):
        x, y, z = generate(input_types(function), 0, k, limits=limits)
        (b, t), seen = x.shape, seen | {x.shape[1]}
        assert b in (4, 8, 12) and y.shape == (2 * b + 1,) and z.shape == (b * t,)
    assert {0, 1} < seen


def test_names_differ_in_the_first_sample() -> None:
    (function,) = public_functions(parse_module('func.func @f(%x: tensor<?x?xf32, ["b", "t"]>) { return }'))
    assert generate(input_types(function), 0, 0)[0].shape == (3, 2)


LIES = {
    "a number": (f"nd.slice %x start [0] limit [2] : {B} -> tensor<2xf32>", 1),
    "a text": (
        f"nd.concatenate %x, %x dim 0 : {B}, {B} -> {TWICE}\n  %z = nd.slice %y start [0] limit [-2] : {TWICE} -> {LESS}",
        0,
    ),
}


@pytest.mark.parametrize("case", LIES)
def test_a_type_that_lies_is_an_error(case: str) -> None:
    body, size = LIES[case]
    module = parse_module(f"func.func @f(%x: {B}) {{\n  %y = {body}\n  return\n}}")
    with pytest.raises(GradirError) as caught:
        run(module, "f", [np.zeros(size, np.float32)])
    assert (caught.value.code, caught.value.op) == ("OP111", "nd.slice")


def test_two_sizes_for_one_name() -> None:
    module = parse_module(f"func.func @f(%x: {B}, %y: {B}) {{ return }}")
    with pytest.raises(GradirError, match="the size 'b' has two values"):
        run(module, "f", [np.zeros(2, np.float32), np.zeros(3, np.float32)])


def test_operands_of_one_shape_are_not_stretched() -> None:
    module = parse_module("func.func @f(%x: tensor<?xf32>, %y: tensor<?xf32>) { %0 = nd.add %x, %y : tensor<?xf32>\n return }")
    with pytest.raises(GradirError, match="operands have different shapes") as caught:
        run(module, "f", [np.zeros(1, np.float32), np.zeros(3, np.float32)])
    assert (caught.value.code, caught.value.found) == ("OP111", "[1] and [3]")


def test_limits_are_checked_at_the_entry() -> None:
    module = parse_module(program(SUM, "{b = {min = 2 : i64, multiple = 2 : i64}}"))
    assert run(module, "f", [np.ones(4, np.float32)])[0] == 4
    for size in (0, 3):
        with pytest.raises(GradirError, match="the size 'b' is not allowed") as caught:
            run(module, "f", [np.ones(size, np.float32)])
        assert caught.value.found == str(size)


IN_A_REGION = """
func.func @f(%x: tensor<f32>) -> tensor<f32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %y = scf.for %i = %c0 to %c3 step %c1 iter_args(%s = %x) -> (tensor<f32>) {
    nd.bind %i as "n"
    %v = nd.broadcast %x dims [] sizes (%i) : tensor<f32> -> tensor<?xf32, ["n"]>
    %t = nd.reduce_sum %v dims [0] : tensor<?xf32, ["n"]> -> tensor<f32>
    %u = nd.add %s, %t : tensor<f32>
    WRONG
    scf.yield %u : tensor<f32>
  }
  return %y : tensor<f32>
}"""


def test_each_run_of_a_region_names_its_own_sizes() -> None:
    x = np.float32(2)
    assert run(parse_module(IN_A_REGION.replace("WRONG", "")), "f", [x]) == [2 + 2 * (0 + 1 + 2)]
    with pytest.raises(GradirError, match=r"the size 'n' has two values"):
        run(parse_module(IN_A_REGION.replace("WRONG", 'nd.bind %c3 as "n"')), "f", [x])
