"""The op reference: element types come from the verifiers, names elsewhere from the table."""

from gradir.dialects import nd
from gradir.tools.docs_ops import page
from gradir.tools.element_types import element_types


def test_element_types_are_what_the_verifier_takes() -> None:
    assert element_types(nd.ShlOp) == ("i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64")
    assert element_types(nd.NotOp)[-1] == "i1"
    assert element_types(nd.RealOp) == ("complex<f32>", "complex<f64>")
    assert "complex<f64>" in element_types(nd.AbsOp)  # the result is real then
    assert "i1" in element_types(nd.ConstantOp)  # what its samples show
    assert element_types(nd.YieldOp) == ()


def test_a_section_says_all_of_an_op() -> None:
    section = page().partition("### nd.gelu\n")[2].partition("\n### ")[0]
    for part in (
        "X standard normal",
        "Elsewhere: StableHLO `stablehlo.composite gradir.gelu`; ONNX `Gelu`; torch `nn.functional.gelu`; JAX `nn.gelu`.",
        "Elements of the first operand: f64, f32, f16, bf16",
        "```mlir\n%result = nd.gelu %0",
        "Samples: ",
    ):
        assert part in section
