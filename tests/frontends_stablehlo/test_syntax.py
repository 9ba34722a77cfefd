"""Forms of StableHLO's text: short, generic, with locations, resources, sharding."""

import numpy as np
import pytest

from gradir.dialects import nd
from gradir.errors import GradirError
from gradir.frontends.stablehlo import import_text
from gradir.ir.diagnostics import Engine
from gradir.ir.text import parse_module, print_module
from gradir.reference import run


def function(body: str, signature: str = "%x: tensor<2x3xf32>", result: str = "tensor<2x3xf32>") -> str:
    """A module whose `@main` has that body; it returns %r."""
    return f"module @m {{\n  func.func public @main({signature}) -> {result} {{\n    {body}\n    return %r : {result}\n  }}\n}}\n"


def evaluate(text: str, *inputs: np.ndarray) -> np.ndarray:
    return run(import_text(text), "main", list(inputs))[0]


X = np.array([[1, -2, 3], [0.5, 5, -6]], np.float32)


@pytest.mark.parametrize(
    "line",
    [
        "%r = stablehlo.add %x, %x : tensor<2x3xf32>",
        "%r = stablehlo.add %x, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>",
        '%r = "stablehlo.add"(%x, %x) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>',
        '%r = stablehlo.add %x, %x {mhlo.frontend_attributes = {a = "b"}} : tensor<2x3xf32>',
    ],
)
def test_forms_of_one_op(line: str) -> None:
    np.testing.assert_array_equal(evaluate(function(line), X), X + X)


@pytest.mark.parametrize(
    "line",
    [
        "%r = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>",
        "%r = stablehlo.reduce(%x init: %c) across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>\n"
        "reducer(%a: tensor<f32>, %b: tensor<f32>) {\n%s = stablehlo.add %b, %a : tensor<f32>\nstablehlo.return %s : tensor<f32>\n}",
        '%r = "stablehlo.reduce"(%x, %c) <{dimensions = array<i64: 1>}> ({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n'
        '%s = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n"stablehlo.return"(%s) : (tensor<f32>) -> ()\n'
        "}) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>",
    ],
)
def test_forms_of_reduce(line: str) -> None:
    text = function("%c = stablehlo.constant dense<0.0> : tensor<f32>\n" + line, result="tensor<2xf32>")
    assert "nd.reduce_sum %x dims [1]" in print_module(import_text(text))
    np.testing.assert_allclose(evaluate(text, X), X.sum(1))


@pytest.mark.parametrize(
    "line",
    [
        "%r = stablehlo.dot_general %x, %x, contracting_dims = [1] x [1], precision = [DEFAULT, HIGHEST] : "
        "(tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x2xf32>",
        '%r = "stablehlo.dot_general"(%x, %x) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], '
        "rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : "
        "(tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x2xf32>",
    ],
)
def test_forms_of_dot_general(line: str) -> None:
    np.testing.assert_allclose(evaluate(function(line, result="tensor<2x2xf32>"), X), X @ X.T, rtol=1e-6)


def test_constants_keep_their_bits() -> None:
    text = function(
        '%c = stablehlo.constant dense<"0x0000803F000000400000C07F"> : tensor<3xf32>\n'
        "%s = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
        "%b = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<3xf32>\n"
        "%r = stablehlo.concatenate %c, %b, dim = 0 : (tensor<3xf32>, tensor<3xf32>) -> tensor<6xf32>",
        result="tensor<6xf32>",
    )
    np.testing.assert_array_equal(evaluate(text, X), np.array([1, 2, np.nan, -np.inf, -np.inf, -np.inf], np.float32))


def test_resources_stand_at_the_end_of_the_text() -> None:
    line = "%r = stablehlo.constant dense_resource<k> : tensor<2xf32>"
    for elements, expected in (("0000803F00000040", [1, 2]), ("0000803F0000803F", [1, 1])):  # no text sees the resources of another
        data = '{-#\n  dialect_resources: {\n    builtin: {\n      k: "0x04000000' + elements + '"\n    }\n  }\n#-}\n'
        np.testing.assert_array_equal(evaluate(function(line, "", "tensor<2xf32>") + data), expected)


def test_location_aliases_stand_after_their_uses() -> None:
    text = (
        function("%r = stablehlo.sine %x : tensor<2x3xf32> loc(#loc2)") + '#loc1 = loc("model.py":7:3)\n#loc2 = loc("jit(f)/sin"(#loc1))\n'
    )
    printed = print_module(import_text(text), debuginfo=True)
    assert '"model.py":7:3' in printed


def test_sharding_is_ignored_with_a_remark() -> None:
    text = (
        'module @m {\n  sdy.mesh @mesh = <["x"=2]>\n'
        '  func.func public @main(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> {\n'
        '    %r = sdy.sharding_constraint %x <@mesh, [{"x"}]> : tensor<4xf32>\n    return %r : tensor<4xf32>\n  }\n}\n'
    )
    engine = Engine()
    module = import_text(text, "s.mlir", engine)
    assert "sdy" not in print_module(module)
    assert [str(d.where) for d in engine.diagnostics] == ["s.mlir:2:3", "s.mlir:4:10"]
    assert "sharding is ignored" in engine.diagnostics[0].message


def test_composites_call_their_decomposition() -> None:
    text = (
        "module @m {\n  func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
        '    %r = stablehlo.composite "my.double" %x {composite_attributes = {n = 2 : i64}, decomposition = @double} : '
        "(tensor<2xf32>) -> tensor<2xf32>\n    return %r : tensor<2xf32>\n  }\n"
        "  func.func private @double(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
        "    %r = stablehlo.add %x, %x : tensor<2xf32>\n    return %r : tensor<2xf32>\n  }\n}\n"
    )
    np.testing.assert_array_equal(evaluate(text, np.array([1, 2], np.float32)), [2, 4])


def test_result_is_text_of_level_1() -> None:
    module = import_text(function("%r = stablehlo.tanh %x : tensor<2x3xf32>"))
    assert all(isinstance(op, nd.TanhOp) or op.name.split(".")[0] in ("func", "builtin") for op in module.walk())
    again = print_module(module)
    assert print_module(parse_module(again)) == again


def test_syntax_errors_point_into_the_text() -> None:
    with pytest.raises(GradirError) as caught:
        import_text(function("%r = stablehlo.slice %x [0:2, 0] : (tensor<2x3xf32>) -> tensor<2x3xf32>"), "bad.mlir")
    assert caught.value.code == "GR010"
    assert caught.value.location.startswith("bad.mlir:3:")
