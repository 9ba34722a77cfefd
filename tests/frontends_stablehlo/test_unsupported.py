"""What cannot be imported is one error that names all of it."""

import pytest

from gradir.errors import GradirError
from gradir.frontends.stablehlo import import_text


def missing(text: str) -> GradirError:
    with pytest.raises(GradirError) as caught:
        import_text(text, "m.mlir")
    assert caught.value.code == "GR120"
    return caught.value


def main_of(signature: str, *lines: str) -> str:
    body = "\n".join(f"    {line}" for line in lines)
    return f"module @m {{\n  func.func public @main({signature}) {{\n{body}\n    return\n  }}\n}}\n"


def test_everything_is_named_at_once_with_locations() -> None:
    error = missing(
        main_of(
            "%x: tensor<8xf32>",
            '%a = "stablehlo.send_home"(%x) : (tensor<8xf32>) -> tensor<8xf32>',
            "%b = stablehlo.add %a, %x : tensor<8xf32>",
            '%c = "stablehlo.novel_op"(%b) : (tensor<8xf32>) -> tensor<8xf32>',
            "%d = stablehlo.custom_call @lapack(%c) {api_version = 2 : i32} : (tensor<8xf32>) -> tensor<8xf32>",
        )
    )
    assert error.message == "3 ops of this program are not supported: stablehlo.send_home, stablehlo.novel_op, stablehlo.custom_call"
    assert error.found.split("\n") == [
        "m.mlir:3:10: stablehlo.send_home: no counterpart at level 1",
        "m.mlir:5:10: stablehlo.novel_op: no counterpart at level 1",
        "m.mlir:6:10: stablehlo.custom_call: custom call @lapack, which is not registered (gradir.register_custom_call)",
    ]
    assert error.location == "m.mlir:3:10"
    assert error.function == "@main"


def test_equal_ones_share_a_line_and_ops_without_a_line_have_that_of_their_function() -> None:
    op = '"stablehlo.infeed"() : () -> tensor<4xf32>'
    places = ('"a.py":1:2', '"a.py":3:4', '"a.py":3:4', '"a.py":5:6', '"a.py":7:8', '"a.py":9:1')
    lines = "\n".join(f"%{k} = {op} loc({place})" for k, place in enumerate(places))
    error = missing(
        f'func.func public @main() {{\n{lines}\nreturn\n}}\nfunc.func private @f() {{\n%0 = {op} loc("step")\n'
        '%1 = "stablehlo.recv"() : () -> tensor<4xf32> loc("step")\nreturn\n} loc("b.py":2:3)\n'
    )
    assert error.message == "8 ops of this program are not supported: stablehlo.infeed, stablehlo.recv"
    assert error.found.split("\n") == [
        "a.py:1:2: stablehlo.infeed: no counterpart at level 1 (also a.py:3:4, a.py:5:6, a.py:7:8 and 2 more places)",
        "b.py:2:3 (step): stablehlo.recv: no counterpart at level 1",
    ]


def test_one_missing_op_is_the_message() -> None:
    error = missing(main_of("%x: tensor<8xf32>", '%a = "stablehlo.send_home"(%x) : (tensor<8xf32>) -> tensor<8xf32>'))
    assert (error.message, error.found) == ("stablehlo.send_home: no counterpart at level 1", "")


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("tensor<2xi4>", "element type i4"),
        ("!stablehlo.token", "type !stablehlo.token"),
    ],
)
def test_types_of_arguments(kind: str, reason: str) -> None:
    assert missing(main_of(f"%x: {kind}")).message == f"func.func: {reason}"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("%r = stablehlo.constant dense_resource<k> : tensor<4xf32>", "dense_resource<k> has no data: the text was printed without it"),
        ('%r = stablehlo.composite "a.b" %x : (tensor<4xf32>) -> tensor<4xf32>', "composite a.b without a decomposition"),
        (
            "%r = stablehlo.add %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf64>",
            "the result has type tensor<4xf64>, its counterpart",
        ),
    ],
)
def test_reasons(line: str, reason: str) -> None:
    assert reason in missing(main_of("%x: tensor<4xf32>", line)).message


def test_a_region_that_reads_values_from_outside() -> None:
    error = missing(
        main_of(
            "%x: tensor<4xf32>, %t: tensor<f32>",
            '%r = "stablehlo.sort"(%x) <{dimension = 0 : i64}> ({',
            "^bb0(%a: tensor<f32>, %b: tensor<f32>):",
            "%s = stablehlo.multiply %a, %t : tensor<f32>",
            "%c = stablehlo.compare LT, %s, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>",
            "stablehlo.return %c : tensor<i1>",
            "}) : (tensor<4xf32>) -> tensor<4xf32>",
        )
    )
    assert error.message == "stablehlo.sort: a region that reads values from outside of it"


def test_a_region_that_is_not_elementwise() -> None:
    error = missing(
        main_of(
            "%x: tensor<4xf32>, %i: tensor<f32>",
            '%r = "stablehlo.reduce"(%x, %i) <{dimensions = array<i64: 0>}> ({',
            "^bb0(%a: tensor<f32>, %b: tensor<f32>):",
            "%w = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f32>) -> tensor<2xf32>",
            "%s = stablehlo.slice %w [0:1] : (tensor<2xf32>) -> tensor<1xf32>",
            "%c = stablehlo.reshape %s : (tensor<1xf32>) -> tensor<f32>",
            "stablehlo.return %c : tensor<f32>",
            "}) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>",
        )
    )
    assert "the combiner holds nd.broadcast, expected elementwise ops and constants of nd" in error.message
