"""Lines that are read by one expression give what the parser gives, and leave every mistake to it."""

from pathlib import Path

import pytest

from gradir.errors import GradirError
from gradir.frontends.stablehlo.dialect import stablehlo_context
from gradir.frontends.stablehlo.lines import LineParser
from gradir.ir.parser import LocParser
from gradir.ir.text import parse_module, print_module
from gradir.tools.stablehlo_suite import suites_folder

FOLDER = suites_folder()
PROGRAMS = sorted((FOLDER / "jax-programs").glob("*.mlir")) if FOLDER is not None else []

TEXT = """#loc = loc(unknown)
module @m {
  func.func public @main(%x: tensor<2x3xf32>, %i: tensor<i32>) -> (tensor<2x3xf32>, tensor<3xf32>) {
    %0 = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(#loc)
    %1 = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(#loc1)
    %2 = stablehlo.constant dense<[1, 2]> : tensor<2xi64>
    %3 = stablehlo.add %x, %x : tensor<2x3xf32> loc(#loc2)
    %4 = stablehlo.add %3, %x : tensor<2x3xf32> loc(#loc)
    %5 = stablehlo.transpose %4, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %6 = stablehlo.transpose %5, dims = [1, 0] : (tensor<3x2xf32>) -> tensor<2x3xf32>
    %7 = stablehlo.transpose %6, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %8 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %9 = stablehlo.iota dim = 0 : tensor<2x3xi32>
    %10 = stablehlo.iota dim = 1 : tensor<2x3xi32>
    %11 = stablehlo.reduce(%x init: %1) applies stablehlo.add across dimensions = [0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>
    %12 = stablehlo.reduce(%4 init: %1) applies stablehlo.add across dimensions = [0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>
    %13:2 = "stablehlo.optimization_barrier"(%12, %4) : (tensor<3xf32>, tensor<2x3xf32>) -> (tensor<3xf32>, tensor<2x3xf32>)
    %14 = stablehlo.negate %13#1 : tensor<2x3xf32>
    %15 = stablehlo.pad %14, %0, low = [0, -1], high = [1, 0], interior = [0, 0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<3x2xf32>
    %16 = stablehlo.pad %14, %0, low = [0, -1], high = [1, 0], interior = [0, 0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<3x2xf32>
    %17 = stablehlo.dynamic_slice %14, %i, %i, sizes = [1, 1] : (tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x1xf32>
    %18 = stablehlo.complex %x, %x : tensor<2x3xcomplex<f32>>
    %19 = stablehlo.complex %3, %x : tensor<2x3xcomplex<f32>>
    %20 = chlo.erf %x : tensor<2x3xf32> -> tensor<2x3xf32>
    %21 = chlo.erf %20 : tensor<2x3xf32> -> tensor<2x3xf32>
    %22 = stablehlo.compare LT, %21, %x, FLOAT : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
    %23 = stablehlo.select %22, %21, %x : tensor<2x3xi1>, tensor<2x3xf32>
    return %23, %13#0 : tensor<2x3xf32>, tensor<3xf32>
  }
}
#loc1 = loc("a.py":3:4)
#loc2 = loc("add"(#loc1))
"""


def read(text: str, parser: type[LocParser]) -> str:
    module = parse_module(text, "m.mlir", stablehlo_context(), check=False, parser=parser)
    return print_module(module, generic=True, debuginfo=True)


def test_lines_are_read_as_the_parser_reads_them() -> None:
    assert read(TEXT, LineParser) == read(TEXT, LocParser)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_programs_are_read_as_the_parser_reads_them(path: Path) -> None:
    text = path.read_text()
    assert read(text, LineParser) == read(text, LocParser)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("%4 = stablehlo.add %3, %x : tensor<2x3xf32>", "%4 = stablehlo.add %3, %nope : tensor<2x3xf32>", "use of undefined value %nope"),
        ("%4 = stablehlo.add %3", "%3 = stablehlo.add %3", "SSA value %3 is already defined"),
        ("%14 = stablehlo.negate %13#1", "%14 = stablehlo.negate %13#2", "Tuple is of size 2"),
        ("%14 = stablehlo.negate %13#1 : tensor<2x3xf32>", "%14 = stablehlo.negate %13#1 : tensor<2x3xi32>", "%13#1"),
        ("%3, %x : tensor<2x3xf32>", "%3, %x : tensor<2x3xf3>", "f3"),
    ],
)
def test_mistakes_are_those_of_the_parser(old: str, new: str, message: str) -> None:
    text = TEXT.replace(old, new)
    assert text != TEXT
    errors: list[str] = []
    for parser in (LineParser, LocParser):
        with pytest.raises(GradirError) as caught:
            read(text, parser)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]
    assert message in errors[0]
