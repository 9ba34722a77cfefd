"""PTX: what the worker makes of kernels assembles without spills; failures name a reproducer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gradir.dialects.target import CudaTargetAttr
from gradir.driver.lower import lower
from gradir.errors import GradirError
from gradir.targets import nvptx
from gradir.targets.nvptx import assemble, compile_ptx, device_text, to_ptx
from gradir.targets.worker import generate
from tests.targets.assembler import needs_ptxas

EXAMPLES = Path(__file__).parents[2] / "examples"
SM80 = CudaTargetAttr.of("sm_80")

MIXED = """
func.func @f(%x: tensor<40x70xf32>, %w: tensor<70x50xf32>, %d: tensor<40x30xf64>, %h: tensor<64xf16>, %i: tensor<33xi8>)
    -> (tensor<40x50xf32>, tensor<30xf64>, tensor<64xf16>, tensor<33xi8>, tensor<40xi32>) {
  %y = nd.dot_general %x, %w contract [1] x [0] : tensor<40x70xf32>, tensor<70x50xf32> -> tensor<40x50xf32>
  %g = nd.gelu %y : tensor<40x50xf32>
  %s = nd.softmax %g dim 1 : tensor<40x50xf32>
  %c = nd.reduce_sum %d dims [0] : tensor<40x30xf64> -> tensor<30xf64>
  %e = nd.sin %c : tensor<30xf64>
  %k = nd.exp %h : tensor<64xf16>
  %j = nd.add %i, %i : tensor<33xi8>
  %a = nd.argmax %g dim 1 : tensor<40x50xf32> -> tensor<40xi32>
  return %s, %e, %k, %j, %a : tensor<40x50xf32>, tensor<30xf64>, tensor<64xf16>, tensor<33xi8>, tensor<40xi32>
}
"""


@needs_ptxas
@pytest.mark.parametrize("source", ["mixed", "mlp.mlir"])
def test_every_kernel_assembles_without_spills(source: str) -> None:
    text = MIXED if source == "mixed" else (EXAMPLES / source).read_text()
    module = lower(text, target="cuda")
    ptx = to_ptx(module)
    names = set(re.findall(r"\.entry ([\w$]+)", ptx))
    assert names and ".extern" not in ptx
    for arch in ("sm_80", "sm_90"):
        cubin, reports = assemble(ptx, arch)
        assert cubin[:4] == b"\x7fELF" and {r.name for r in reports} == names
        assert all(r.spills == 0 and r.registers > 0 for r in reports), [r for r in reports if r.spills]


def test_kernels_declare_their_block_and_spaces() -> None:
    text = device_text(lower(MIXED, target="cuda"))
    assert re.search(r"define ptx_kernel void @contraction_0\(ptr addrspace\(1\) noalias readonly %a0", text)
    assert '"nvvm.reqntid"="64,1,1"' in text and "internal addrspace(3) global" in text
    assert "llvm.exp" not in text and "llvm.sin" not in text


def test_the_worker_in_this_process() -> None:
    assert ".target sm_90" in generate(device_text(lower(MIXED, target="cuda")), "sm_90")


def test_a_module_without_kernels() -> None:
    with pytest.raises(GradirError, match="no kernels for a GPU") as caught:
        to_ptx(lower("func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n return %x : tensor<4xf32>\n}", target="cpu"))
    assert caught.value.code == "OP044"


def test_rejected_text_names_a_reproducer() -> None:
    with pytest.raises(GradirError, match="the PTX worker ended with") as caught:
        compile_ptx("define ptx_kernel void @k() { ret i32 0 }", SM80)
    assert caught.value.code == "OP044" and ".ll" in caught.value.hint


def test_an_abort_of_the_back_end_is_an_error_here() -> None:
    text = "define ptx_kernel void @k(ptr addrspace(1) %p) {\n %x = load float, ptr addrspace(1) %p\n %y = call float @llvm.exp.f32(float %x)\n"
    text += " store float %y, ptr addrspace(1) %p\n ret void\n}"
    with pytest.raises(GradirError, match="the PTX worker ended with"):
        compile_ptx(text, SM80)


@needs_ptxas
def test_ptx_that_does_not_assemble() -> None:
    with pytest.raises(GradirError, match="ptxas -arch=sm_80 ended with"):
        assemble(".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() { nonsense; }", "sm_80")


def test_ptxas_is_named_when_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvptx, "find_ptxas", lambda: None)
    with pytest.raises(GradirError, match="ptxas was not found") as caught:
        assemble("", "sm_80")
    assert "gradir[ptx]" in caught.value.hint
