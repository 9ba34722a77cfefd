"""A product of warpgroups by hand: upstream takes its text, `ptxas` its code, the emulator finds numpy's results and nothing to report."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from gradir.driver.emulate import PtxLauncher, evaluate_as_ptx
from gradir.errors import GradirError
from gradir.ir.text import parse_module, print_module
from gradir.targets.nvptx import assemble, find_ptxas, to_ptx
from tests.targets.wgmma_kernels import gemm
from tests.upstream.roundtrip import upstream

SIZES = ((256, 128, 320), (136, 132, 72), (64, 8, 8), (1, 4, 200))
"""Aligned; tails in all directions; less than one block; one row. Rows are multiples of 16 bytes."""


def check(size: tuple[int, int, int], element: str, seed: int | None) -> None:
    m, n, k = size
    random = np.random.default_rng(m + n + k)
    dtype = {"bf16": ml_dtypes.bfloat16, "f16": np.float16}[element]
    a, b = (random.standard_normal((rows, k)).astype(dtype) for rows in (m, n))
    module = parse_module(gemm(m, n, k, element))
    (found,) = evaluate_as_ptx(module, "f", [a, b], PtxLauncher(module, seed))
    expected = a.astype(np.float64) @ b.astype(np.float64).T
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("size", SIZES)
def test_products(size: tuple[int, int, int]) -> None:
    check(size, "bf16", seed=1)


def test_another_element_type() -> None:
    check((136, 132, 72), "f16", seed=2)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_reported_whatever_the_order(seed: int) -> None:
    check((256, 132, 456), "bf16", seed)


@pytest.mark.parametrize("element", ["bf16", "f16"])
def test_assembles_without_spills(element: str) -> None:
    if find_ptxas() is None:
        pytest.skip("ptxas is not installed")
    _, (report,) = assemble(to_ptx(parse_module(gemm(256, 256, 512, element))), "sm_90a")
    assert (report.spills, report.stack) == (0, 0)
    assert report.registers <= 168  # 384 threads have 65536 registers


def test_upstream_agrees() -> None:
    text = print_module(parse_module(gemm(136, 132, 72)))
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
        ("{waitGroup = 0 : i64}", "{transposeB, waitGroup = 0 : i64}", "found: a transposed factor"),
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
