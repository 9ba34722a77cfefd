"""What the emitter refuses: each message, with the op, expected and found."""

from __future__ import annotations

import pytest

from gradir.dialects.target import CpuTargetAttr, CudaTargetAttr
from gradir.errors import GradirError
from gradir.ir.passes import PassContext
from gradir.lowering.lower_kernels import LowerKernels
from gradir.targets.llvm.module import emit_module
from tests.targets.jit import parse

HOST = CpuTargetAttr.of("x86-64-v3")


def refusal(text: str, target: CpuTargetAttr = HOST) -> GradirError:
    with pytest.raises(GradirError) as caught:
        emit_module(parse(text), target=target)
    assert caught.value.code == "OP040"
    return caught.value


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("%v = arith.constant 1 : i128", "no LLVM type for i128"),
        (
            "%z = arith.constant dense<0.0> : vector<4x4xf32>\n %r = vector.extract %z[%i] : vector<4xf32> from vector<4x4xf32>",
            "dynamic position",
        ),
        (
            "%z = arith.constant dense<0.0> : vector<4x4xf32>\n %y = arith.constant dense<0.0> : vector<4xf32>\n"
            "%r = vector.insert %y, %z[%i] : vector<4xf32> into vector<4x4xf32>",
            "dynamic position",
        ),
        (
            "%y = arith.constant dense<0.0> : vector<4xf32>\n %z = arith.constant dense<0.0> : vector<4x4xf32>\n"
            "%r = vector.outerproduct %y, %y, %z {kind = #vector.kind<maximumf>} : vector<4xf32>, vector<4xf32>",
            "outer product of kind maximumf",
        ),
    ],
    ids=["type", "extract", "insert", "outerproduct"],
)
def test_vectors_and_types(body: str, message: str) -> None:
    assert message in str(refusal(f"func.func @f(%i: index) {{\n {body}\n return\n}}"))


def test_a_permutation_map_that_is_no_projection() -> None:
    text = """func.func @f(%x: memref<8x8xf32>) {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  %v = "vector.transfer_read"(%x, %c0, %c0, %pad) <{in_bounds = [true], permutation_map = affine_map<(m, n) -> (m + n)>, operandSegmentSizes = array<i32: 1, 2, 1, 0>}> : (memref<8x8xf32>, index, index, f32) -> vector<8xf32>
  return
}"""
    assert "not a projected permutation" in str(refusal(text))


def test_fma_without_the_instruction() -> None:
    error = refusal("func.func @f(%x: f32) {\n %r = math.fma %x, %x, %x : f32\n return\n}", CpuTargetAttr.of("x86-64", vector=4))
    assert "the target has no fma" in error.message and "expand-math" in error.hint


def test_functions_that_return_buffers() -> None:
    text = "func.func private @g(%x: memref<4xf32>) -> memref<4xf32> {\n return %x : memref<4xf32>\n}\n"
    text += "func.func @f(%x: memref<4xf32>) {\n %y = func.call @g(%x) : (memref<4xf32>) -> memref<4xf32>\n return\n}"
    assert "returns a memref" in str(refusal(text))


def test_globals() -> None:
    dynamic = '"memref.global"() <{sym_name = "g", sym_visibility = "private", type = memref<?xf32>, initial_value = unit}> : () -> ()'
    assert "a global of dynamic size" in str(refusal(dynamic))
    odd = '"memref.global"() <{sym_name = "g", sym_visibility = "private", type = memref<2xf32>, initial_value = "x"}> : () -> ()'
    assert "an initial value of an unknown form" in str(refusal(odd))


def test_kernels_cannot_allocate_dynamic_buffers_in_loops() -> None:
    module = parse("""module attributes {gradir.target = #target.cuda<"sm_80">} {
  func.func private @k(%n: index, %o: memref<4xf32>) attributes {gradir.kernel = #kernel.template<>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %n step %c1 {
      %t = memref.alloc(%n) : memref<?xf32>
      memref.dealloc %t : memref<?xf32>
    }
    return
  }
}""")
    assert isinstance(module.attributes["gradir.target"], CudaTargetAttr)
    with pytest.raises(GradirError, match="a buffer of dynamic size inside a loop of a kernel"):
        LowerKernels().apply(module, PassContext())
