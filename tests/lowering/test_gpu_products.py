"""Products and attention for CUDA at level 4: their meaning on the SIMT reference, what is found when they are made wrong, their schedules."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from gradir.dialects.kernel import KERNEL_ATTRIBUTE, ContractionAttr
from gradir.dialects.target import CudaTargetAttr
from gradir.dialects.upstream import func, gpu, nvgpu
from gradir.driver.lower import lower
from gradir.errors import GradirError
from gradir.ir.passes import PassContext
from gradir.ir.text import parse_module, print_module
from gradir.lowering.lower_kernels import LowerKernels
from gradir.lowering.schedules.gpu_contraction import ProductSizes, on_tensor_cores, schedule_product
from gradir.reference import run
from tests.upstream.roundtrip import upstream

Array = np.ndarray[Any, Any]
DTYPES = {"bf16": np.dtype(ml_dtypes.bfloat16), "f16": np.dtype(np.float16), "f32": np.dtype(np.float32), "i8": np.dtype(np.int8)}


def numbers(element: str, *shape: int) -> Array:
    """Small whole numbers: sums of products are exact in any order."""
    return np.random.default_rng(sum(shape)).integers(-4, 5, shape).astype(DTYPES[element])


def product(layout: str, element: str, sums: str, m: int, k: int, n: int) -> tuple[str, list[Array], Array]:
    """Text, inputs and result; `layout` says of both operands whether they lie along the depth: `nt` does, `tn` lies across it."""
    a, b = (m, k) if layout[0] == "n" else (k, m), (n, k) if layout[1] == "t" else (k, n)
    x, w = numbers(element, *a), numbers(element, *b)
    types = [f"tensor<{s[0]}x{s[1]}x{element}>" for s in (a, b)]
    contract = f"contract [{1 if layout[0] == 'n' else 0}] x [{1 if layout[1] == 't' else 0}]"
    result = f"tensor<{m}x{n}x{sums}>"
    text = f"""func.func @f(%x: {types[0]}, %w: {types[1]}) -> {result} {{
  %y = nd.dot_general %x, %w {contract} : {types[0]}, {types[1]} -> {result}
  return %y : {result}
}}"""
    left, right = x.astype(np.float64), w.astype(np.float64)
    return text, [x, w], (left if layout[0] == "n" else left.T) @ (right.T if layout[1] == "t" else right)


def lowered(text: str, arch: str = "sm_80", **schedule: list[int]) -> ModuleOp:
    """The module after `lower-kernels`; with `schedule` its contractions have that one."""
    module = lower(text, target=f"cuda:{arch}", last="buffers")
    for op in module.body.block.ops:
        if schedule and isinstance(op, func.FuncOp) and isinstance(op.attributes.get(KERNEL_ATTRIBUTE), ContractionAttr):
            op.attributes[KERNEL_ATTRIBUTE] = ContractionAttr.of(**schedule)
    LowerKernels().apply(module, PassContext())
    return module


SMALL = {"tile": [16, 16], "block": [16, 16, 64], "stages": [3]}


@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize(
    ("m", "k", "n"),
    [
        pytest.param(16, 72, 16, id="aligned"),
        pytest.param(13, 70, 9, id="four bytes", marks=pytest.mark.full),
        pytest.param(5, 67, 18, id="odd", marks=pytest.mark.full),
    ],
)
def test_layouts_and_tails_on_tensor_cores(layout: str, m: int, k: int, n: int) -> None:
    text, inputs, want = product(layout, "bf16", "f32", m, k, n)
    module = lowered(text, "sm_80", **SMALL)
    assert any(isinstance(op, nvgpu.MmaSyncOp) for op in module.walk())
    (found,) = run(module, "f", inputs, result_shapes=[want.shape])
    np.testing.assert_array_equal(found, want)


def test_integers_and_other_types() -> None:
    text, inputs, want = product("nn", "i8", "i32", 17, 9, 18)
    module = lowered(text, tile=[16, 16], block=[32, 16, 32], stages=[2])
    assert any(isinstance(op, nvgpu.MmaSyncOp) for op in module.walk())
    np.testing.assert_array_equal(run(module, "f", inputs, result_shapes=[want.shape])[0], want)
    text, inputs, want = product("nt", "f16", "f32", 9, 20, 10)
    module = lowered(text, "sm_70")
    assert not any(isinstance(op, nvgpu.MmaSyncOp | nvgpu.DeviceAsyncCopyOp) for op in module.walk())
    np.testing.assert_array_equal(run(module, "f", inputs, result_shapes=[want.shape])[0], want)


def test_blocks_that_share_a_sum() -> None:
    text, inputs, want = product("nn", "f32", "f32", 20, 100, 12)
    module = lowered(text, tile=[4, 4], block=[32, 32, 16], stages=[2], split=[3])
    assert len([op for op in module.walk() if isinstance(op, gpu.LaunchFuncOp)]) == 2
    np.testing.assert_array_equal(run(module, "f", inputs, result_shapes=[want.shape])[0], want)


def _without(module: ModuleOp, kind: type[Any], which: int) -> None:
    found = [op for op in module.walk() if isinstance(op, kind)]
    found[which].detach()


@pytest.mark.parametrize("which", [0, 1])
def test_a_dropped_barrier_or_wait_is_found(which: int) -> None:
    text, inputs, _ = product("nn", "bf16", "f32", 16, 130, 16)
    for kind, codes in ((gpu.BarrierOp, {"OP101", "OP107"}), (nvgpu.DeviceAsyncWaitOp, {"OP101", "OP107"})):
        module = lowered(text, tile=[16, 16], block=[32, 16, 64], stages=[2])
        _without(module, kind, which)
        with pytest.raises(GradirError) as caught:
            run(module, "f", inputs, result_shapes=[(16, 16)])
        assert caught.value.code in codes, caught.value


ATTENTION = """func.func @f(%q: tensor<1x5x16xf16>, %k: tensor<1x70x16xf16>, %v: tensor<1x70x8xf16>) -> tensor<1x5x8xf16> {
  %s = nd.dot_general %q, %k batch [0] x [0] contract [2] x [2] : tensor<1x5x16xf16>, tensor<1x70x16xf16> -> tensor<1x5x70xf16>
  %p = nd.softmax %s dim 2 : tensor<1x5x70xf16>
  %o = nd.dot_general %p, %v batch [0] x [0] contract [2] x [1] : tensor<1x5x70xf16>, tensor<1x70x8xf16> -> tensor<1x5x8xf16>
  return %o : tensor<1x5x8xf16>
}"""


def attention_inputs() -> list[Array]:
    random = np.random.default_rng(0)
    return [random.standard_normal(s).astype(np.float16) for s in ((1, 5, 16), (1, 70, 16), (1, 70, 8))]


def test_attention_is_one_kernel() -> None:
    inputs = attention_inputs()
    (want,) = run(parse_module(ATTENTION), "f", inputs)
    module = lowered(ATTENTION)
    (kernel,) = [op for op in module.walk() if isinstance(op, gpu.FuncOp)]
    assert not any("x5x70" in str(a.type) for a in kernel.body.block.args)
    (found,) = run(module, "f", inputs, result_shapes=[want.shape])
    np.testing.assert_allclose(found.astype(float), want.astype(float), rtol=4e-3, atol=2e-3)


@pytest.mark.full
def test_infinities_and_nan_of_scores_stay_in_their_rows() -> None:
    inputs = attention_inputs()
    inputs[0][0, 1, 0] = np.nan
    inputs[0][0, 3] = np.float16(6e4)  # scores beyond f16: infinite of both signs
    (want,) = run(parse_module(ATTENTION), "f", inputs)
    (found,) = run(lowered(ATTENTION), "f", inputs, result_shapes=[want.shape])
    np.testing.assert_array_equal(np.isnan(found.astype(float)), np.isnan(want.astype(float)))
    kept = [0, 2, 4]
    np.testing.assert_allclose(found.astype(float)[:, kept], want.astype(float)[:, kept], rtol=4e-3, atol=2e-3)


def test_weights_that_others_read_are_in_memory() -> None:
    text = ATTENTION.replace("-> tensor<1x5x8xf16> {", "-> (tensor<1x5x8xf16>, tensor<1x5x70xf16>) {")
    text = text.replace("return %o : tensor<1x5x8xf16>", "return %o, %p : tensor<1x5x8xf16>, tensor<1x5x70xf16>")
    assert len([op for op in lowered(text).walk() if isinstance(op, gpu.FuncOp)]) > 1


@pytest.mark.parametrize("text", [ATTENTION, product("nt", "bf16", "f32", 20, 70, 9)[0]], ids=["attention", "product"])
def test_upstream_accepts_the_text(text: str) -> None:
    upstream(print_module(lower(text, target="cuda")))


def _sizes(element: str, sums: str, m: int, k: int, n: int) -> ProductSizes:
    bytes_ = {"bf16": 2, "f16": 2, "f32": 4, "i8": 1, "f64": 8}
    return ProductSizes(1, m, n, k, element, element, sums, False, bytes_[element], bytes_[element], 8 if sums == "f64" else 4)


def test_schedules() -> None:
    target = CudaTargetAttr.of("sm_80")
    large = schedule_product(_sizes("bf16", "f32", 8192, 8192, 8192), target)
    assert large.field("block") == (128, 256, 64) and large.field("tile") == (64, 64) and not large.field("split")
    deep = schedule_product(_sizes("bf16", "f32", 64, 65536, 64), target)
    assert deep.field("split")[0] >= 8
    row = schedule_product(_sizes("f32", "f32", 1, 4096, 4096), target)
    assert row.field("block")[0] == 4 and row.field("split")[0] > 1
    assert on_tensor_cores(_sizes("i8", "i32", 64, 64, 64), target)
    assert not on_tensor_cores(_sizes("f32", "f32", 64, 64, 64), target), "f32 is never rounded"
    assert not on_tensor_cores(_sizes("f16", "f32", 64, 64, 64), CudaTargetAttr.of("sm_70"))
    assert not on_tensor_cores(_sizes("f16", "f16", 64, 64, 64), target), "sums are as wide as the program says"
