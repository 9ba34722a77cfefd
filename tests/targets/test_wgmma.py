"""A product of warpgroups by hand: upstream takes its text, `ptxas` its code, the emulator finds numpy's results and nothing to report."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gradir.driver.emulate import PtxLauncher, evaluate_as_ptx
from gradir.errors import GradirError
from gradir.ir.text import parse_module, print_module
from gradir.targets.nvptx import assemble, to_ptx
from tests.targets.assembler import needs_ptxas
from tests.targets.wgmma_kernels import gemm
from tests.upstream.roundtrip import upstream

SIZES = ((256, 128, 320), (136, 132, 72), (64, 8, 8), (1, 4, 200))
"""Aligned; tails in all directions; less than one block; one row. Rows are multiples of 16 bytes."""


def check(size: tuple[int, int, int], element: str, seed: int | None, **forms: Any) -> None:
    m, n, k = size
    random = np.random.default_rng(m + n + k)
    dtype = {"bf16": ml_dtypes.bfloat16, "f16": np.float16}[element]
    a, b = (random.standard_normal((rows, k)).astype(dtype) for rows in (m, n))
    module = parse_module(gemm(m, n, k, element, **forms))
    inputs = [np.ascontiguousarray(x.T) if turned else x for x, turned in ((a, forms.get("turned_a")), (b, forms.get("turned_b")))]
    (found,) = evaluate_as_ptx(module, "f", inputs, PtxLauncher(module, seed))
    expected = a.astype(np.float64) @ b.astype(np.float64).T
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("size", SIZES)
def test_products(size: tuple[int, int, int]) -> None:
    check(size, "bf16", seed=1)


def test_another_element_type() -> None:
    check((136, 132, 72), "f16", seed=2)


FORMS = (
    {"turned_b": True},
    {"turned_a": True},
    {"turned_a": True, "turned_b": True},
    {"consumers": 1},
    {"consumers": 1, "turned_a": True},
)
"""Factors across the depth; one warpgroup with 128 rows."""


@pytest.mark.parametrize("forms", FORMS, ids=str)
def test_forms(forms: dict[str, Any]) -> None:
    check((136, 136, 72), "bf16", seed=3, **forms)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_reported_whatever_the_order(seed: int) -> None:
    check((256, 132, 456), "bf16", seed)


@needs_ptxas
@pytest.mark.parametrize("forms", [{}, {"element": "f16"}, *FORMS], ids=str)
def test_assembles_without_spills(forms: dict[str, Any]) -> None:
    _, (report,) = assemble(to_ptx(parse_module(gemm(256, 256, 512, **forms))), "sm_90a")
    assert (report.spills, report.stack) == (0, 0)
    assert report.registers <= (255 if "consumers" in forms else 168)  # 65536 registers for 256 or 384 threads


@pytest.mark.parametrize("forms", [{}, {"turned_a": True, "turned_b": True}], ids=str)
def test_upstream_agrees(forms: dict[str, Any]) -> None:
    text = print_module(parse_module(gemm(136, 136, 72, **forms)))
    assert print_module(parse_module(text)) == text
    theirs = upstream(text)
    assert upstream(print_module(parse_module(theirs))) == theirs


MUTATIONS = {
    "no wait for a free stage": ("            nvgpu.mbarrier.try_wait.parity %empty[%stage], %parity, %ticks : GROUP\n", "", "race"),
    "wrong parity of the first free stage": ("%stage = %zero, %parity = %odd)", "%stage = %zero, %parity = %even)", "deadlock"),
    "no wait for a full stage": ("          nvgpu.mbarrier.try_wait.parity %full[%stage], %parity, %ticks : GROUP\n", "", "unwaited copy"),
    "a warp that does not arrive": ("%readers = arith.constant 8 : index", "%readers = arith.constant 9 : index", "1 of 9 have to arrive"),
    "too few bytes": ("%bytes = arith.constant 32768 : index", "%bytes = arith.constant 32752 : index", "-16 bytes have to come"),
    "no fence before the copy out": (
        "        nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}\n",
        "",
        "no fence.proxy.async between a store to shared memory and the copy",
    ),
    "no barrier before the copy out": (
        "        nvvm.barrier id = %number number_of_threads = %count\n",
        "",
        "bytes of shared memory that nobody wrote",
    ),
    "mbarriers that copies may not see": ("        nvvm.fence.mbarrier.init\n", "", "no fence.mbarrier_init"),
    "no barrier after the initialisation": ("      gpu.barrier\n", "", "another warp may not have initialised"),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_what_is_left_out_is_reported(name: str) -> None:
    old, new, report = MUTATIONS[name]
    old = old.replace("GROUP", "!nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 3>")
    text = gemm(128, 128, 512)
    assert text.count(old) == 1
    module = parse_module(text.replace(old, new))
    a = np.ones((128, 512), ml_dtypes.bfloat16)
    with pytest.raises(GradirError) as caught:
        evaluate_as_ptx(module, "f", [a, a], PtxLauncher(module, seed=0))
    assert caught.value.code == "OP062"
    assert report in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{waitGroup = 0 : i64}", "{waitGroup = 1 : i64}", "expected: waitGroup = 0"),
        ("%full[%stage] to %la :", "%full[%stage] to %la multicast_mask = %mask :", "found: a multicast mask"),
    ],
)
def test_forms_without_code(old: str, new: str, message: str) -> None:
    text = gemm(128, 128, 64).replace(
        "%zero = arith.constant 0 : index", "%zero = arith.constant 0 : index\n%mask = arith.constant 3 : i16"
    )
    assert text.count(old) == 1
    with pytest.raises(GradirError) as caught:
        to_ptx(parse_module(text.replace(old, new)))
    assert caught.value.code == "OP040"
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("swizzle_128b", "swizzle_64b", "expected a swizzle of 128 bytes"),
        ("vector<64x128xf32>", "vector<64x64xf32>", "do not give"),
        ("setmaxregister decrease 40", "setmaxregister decrease 44", "expected a multiple of 8 from 24 to 256, found 44"),
        ("%ta[%deep, %row]", "%ta[%deep]", "expected a coordinate of each dimension"),
        ("setmaxregister decrease", "setmaxregister drop", "expected increase or decrease"),
        ("oob = zero", "oob = one", "unknown word 'one', expected one of: zero, nan"),
        ("oob = zero, ", "", "missing parameter 'oob'"),
        ("num_barriers = 3", "barriers = 3", "unknown parameter 'barriers'"),
    ],
)
def test_invalid_ops(old: str, new: str, message: str) -> None:
    text = gemm(128, 128, 64)
    assert old in text
    with pytest.raises(GradirError) as caught:
        parse_module(text.replace(old, new))
    assert message in str(caught.value)


def test_a_box_has_the_size_of_its_type() -> None:
    module = parse_module(gemm(128, 128, 64).replace("%ua box[%rows, %depth]", "%ua box[%half, %depth]"))
    a = np.ones((128, 64), ml_dtypes.bfloat16)
    with pytest.raises(GradirError) as caught:
        evaluate_as_ptx(module, "f", [a, a])
    assert caught.value.code == "OP111"
    assert "found: [64, 64] of [128, 64]" in str(caught.value)


def test_dynamic_memory_is_aligned_behind_static_memory() -> None:
    """The mbarriers of the kernel come first; a swizzle of 128 bytes wants the tiles at multiples of 1024."""
    assert ".extern .shared .align 1024" in to_ptx(parse_module(gemm(128, 128, 64)))


def product_of(shape: str, depth: int) -> str:
    """A product of one buffer with itself; boxes have 64 rows."""
    space = "#gpu.address_space<workgroup>"
    box = f"!nvgpu.tensormap.descriptor<tensor = memref<64x64xbf16, {space}>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>"
    left, right = (f"!nvgpu.warpgroup.descriptor<tensor = memref<{s}xbf16, {space}>>" for s in (f"64x{depth}", f"{depth}x64"))
    sums = "!nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>"
    memory = f"memref<{shape}xbf16, {space}>"
    return f"""
builtin.module attributes {{gradir.target = #target.cuda<"sm_90a">}} {{
  gpu.module @kernels {{
    gpu.func @product(%t: {box}) workgroup(%m: {memory}) kernel attributes {{known_block_size = array<i32: 128, 1, 1>}} {{
      %a = nvgpu.warpgroup.generate.descriptor %m, %t : {memory}, {box} -> {left}
      %b = nvgpu.warpgroup.generate.descriptor %m, %t : {memory}, {box} -> {right}
      %zero = nvgpu.warpgroup.mma.init.accumulator -> {sums}
      %c = nvgpu.warpgroup.mma %a, %b, %zero {{waitGroup = 0 : i64}} : {left}, {right}, {sums} -> {sums}
      gpu.return
    }}
  }}
}}
"""


@pytest.mark.parametrize(
    ("shape", "depth", "message"),
    [
        ("64x72", 64, "expected rows of a multiple of 128 bytes"),
        ("32x128", 64, "several boxes of the tensor map side by side, whose 64 rows are others"),
        ("64x64", 24, "expected m % 64 = 0, n % 8 = 0 up to 256, k % 16 = 0, found 64, 64, 24"),
        ("64x128", 128, "expected: a depth of 64, one box, where a factor lies along it"),
    ],
)
def test_invalid_factors(shape: str, depth: int, message: str) -> None:
    with pytest.raises(GradirError) as caught:
        to_ptx(parse_module(product_of(shape, depth)))
    assert message in str(caught.value)
