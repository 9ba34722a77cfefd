"""Products of warpgroups on sm_90a, where a schedule asks for them: results in the emulator, registers, what they are not for."""

from __future__ import annotations

import numpy as np
import pytest

from gradir.dialects.kernel import ContractionAttr
from gradir.dialects.target import CudaTargetAttr
from gradir.dialects.upstream.nvgpu_warpgroup import WarpgroupMmaOp
from gradir.driver.emulate import PtxLauncher, evaluate_as_ptx
from gradir.driver.kernels import kernel_functions
from gradir.driver.lower import lower
from gradir.ir.text import parse_module, print_module
from gradir.lowering.groups import group_of_kernel
from gradir.lowering.schedules.gpu_contraction import reason_gpu_contraction
from gradir.targets.nvptx import assemble, to_ptx
from tests.lowering.test_gpu_products import lowered, numbers, product
from tests.targets.assembler import needs_ptxas
from tests.upstream.roundtrip import upstream

WARPGROUPS = {"tile": [64, 128], "block": [128, 128, 64], "stages": [4]}


@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize(
    ("m", "k", "n"),
    [
        pytest.param(136, 328, 144, id="tails"),
        pytest.param(8, 16, 24, id="one step", marks=pytest.mark.full),
        pytest.param(256, 512, 128, id="aligned", marks=pytest.mark.full),
    ],
)
def test_layouts_and_tails(layout: str, m: int, k: int, n: int) -> None:
    text, inputs, want = product(layout, "bf16", "f32", m, k, n)
    module = lowered(text, "sm_90a", **WARPGROUPS)
    assert any(isinstance(op, WarpgroupMmaOp) for op in module.walk())
    (found,) = evaluate_as_ptx(module, "f", inputs, PtxLauncher(module, seed=1))
    np.testing.assert_array_equal(found, want)


LAYER = """func.func @f(%x: tensor<130x72xf16>, %w: tensor<72x136xf16>, %b: tensor<136xf32>) -> tensor<130x136xf16> {
  %y = nd.dot_general %x, %w contract [1] x [0] : tensor<130x72xf16>, tensor<72x136xf16> -> tensor<130x136xf32>
  %c = nd.broadcast %b dims [1] : tensor<136xf32> -> tensor<130x136xf32>
  %z = nd.add %y, %c : tensor<130x136xf32>
  %r = nd.convert %z : tensor<130x136xf32> -> tensor<130x136xf16>
  return %r : tensor<130x136xf16>
}"""


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(1, 20))])
def test_what_follows_the_product(seed: int) -> None:
    module = lowered(LAYER, "sm_90a", **WARPGROUPS)
    assert any(isinstance(op, WarpgroupMmaOp) for op in module.walk())
    x, w = numbers("f16", 130, 72), numbers("f16", 72, 136)
    b = np.arange(136, dtype=np.float32)
    (found,) = evaluate_as_ptx(module, "f", [x, w, b], PtxLauncher(module, seed))
    np.testing.assert_array_equal(found, (x.astype(np.float32) @ w.astype(np.float32) + b).astype(np.float16))


@needs_ptxas
@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
def test_registers(layout: str) -> None:
    module = lowered(product(layout, "bf16", "f32", 1000, 2048, 1024)[0], "sm_90a", **WARPGROUPS)
    _, (report,) = assemble(to_ptx(module), "sm_90a")
    assert report.registers <= 168 and (report.spills, report.stack) == (0, 0)


def test_upstream_takes_it() -> None:
    text = print_module(lowered(product("nn", "bf16", "f32", 136, 72, 144)[0], "sm_90a", **WARPGROUPS))
    assert print_module(parse_module(text)) == text
    upstream(text.replace('gradir.target = #target.cuda<"sm_90a">', "gradir.none"))


@pytest.mark.parametrize(
    ("element", "sums", "arch", "shape"),
    [
        ("bf16", "f32", "sm_90", (136, 72, 144)),
        ("f32", "f32", "sm_90a", (136, 72, 144)),
        ("bf16", "f32", "sm_90a", (136, 70, 144)),
        ("bf16", "f32", "sm_90a", (136, 72, 141)),
    ],
    ids=["another GPU", "f32", "rows along the depth", "rows across the depth"],
)
def test_other_factors_take_another_way(element: str, sums: str, arch: str, shape: tuple[int, int, int]) -> None:
    """Rows that are no multiples of 16 bytes have no tensor map."""
    module = lowered(product("nn", element, sums, *shape)[0], arch, **WARPGROUPS)
    assert not any(isinstance(op, WarpgroupMmaOp) for op in module.walk())


def test_reason() -> None:
    """What `explain` says of such a schedule."""
    (kernel,) = kernel_functions(lower(product("nn", "bf16", "f32", 136, 72, 144)[0], target="cuda:sm_90a", last="buffers"))
    group = group_of_kernel(kernel)
    assert group is not None
    words = reason_gpu_contraction(group, CudaTargetAttr.of("sm_90a"), ContractionAttr.of(**WARPGROUPS))
    assert words == "tiles of 128 x 128 x 64 by two warpgroups that multiply and one that copies, 4 stages"
