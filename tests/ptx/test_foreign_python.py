"""PTX that Triton and numba-cuda made of Python: right results and nothing to report."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradir.ptx.launch import launch
from gradir.ptx.reports import Reports
from gradir.ptx.tensor_maps import row_major
from tests.ptx.test_foreign import FOREIGN, SEEDS, Array, normal, run

# Triton: the last two parameters are scratch memory, which these kernels do not use


@SEEDS
def test_softmax_of_triton(seed: int | None) -> None:
    x, y, scratch = normal(4, 200), np.zeros((4, 200), np.float32), np.zeros(1, np.uint8)
    run("triton_softmax", grid=4, block=128, args=[x, y, 200, scratch, scratch], shared=16, undefined=[1], seed=seed)
    expected = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, expected / expected.sum(1, keepdims=True), rtol=1e-5)


@SEEDS
@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 96), (70, 80, 48)])
def test_gemm_of_triton(m: int, n: int, k: int, seed: int | None) -> None:
    a, b, c, scratch = normal(m, k, dtype="f2"), normal(k, n, dtype="f2"), np.zeros((m, n), np.float16), np.zeros(1, np.uint8)
    grid = (-(-m // 64), -(-n // 64))
    run("triton_gemm", grid=grid, block=128, args=[a, b, c, m, n, k, scratch, scratch], shared=16384, undefined=[2], seed=seed)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), atol=2e-2)


@SEEDS
def test_gemm_of_triton_on_wgmma(seed: int | None) -> None:
    m, n, k = 70, 136, 96
    a, b, c, scratch = normal(m, k, dtype="f2"), normal(k, n, dtype="f2"), np.zeros((m, n), np.float16), np.zeros(1, np.uint8)
    text = (FOREIGN / "triton_gemm_sm90.ptx").read_text()
    launch(text, grid=(2, 2), block=128, args=[a, b, c, m, n, k, scratch, scratch], shared=73728, undefined=[2], seed=seed)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), atol=3e-2)


@SEEDS
def test_cumulative_sums_of_triton(seed: int | None) -> None:
    x, y, total, scratch = normal(1300), np.zeros(1300, np.float32), np.zeros(1, np.float32), np.zeros(1, np.uint8)
    run("triton_cumsum", grid=3, block=128, args=[x, y, total, 1300, scratch, scratch], shared=16, undefined=[1], seed=seed)
    for first in range(0, 1300, 512):
        np.testing.assert_allclose(y[first : first + 512], np.cumsum(x[first : first + 512].astype(np.float64)), atol=3e-5)
    np.testing.assert_allclose(total[0], x.sum(dtype=np.float64), atol=1e-4)


# numba-cuda: an array is two objects of the host, its size, the bytes of an element, its memory, sizes, strides


def numba_array(array: Array) -> list[Any]:
    return [0, 0, array.size, array.itemsize, array, *array.shape, *array.strides]


def run_numba(name: str, **options: Any) -> Reports:
    return launch((FOREIGN / f"{name}.ptx").read_text(), **options)


@SEEDS
def test_saxpy_of_numba(seed: int | None) -> None:
    x, y = normal(500), normal(500)
    expected = (np.float64(1.5) * x + y).astype(np.float32)
    run_numba("numba_saxpy", grid=4, block=128, args=[*numba_array(x), *numba_array(y), 1.5], seed=seed)
    np.testing.assert_allclose(y, expected, rtol=1e-6, atol=1e-6)


@SEEDS
def test_sum_of_blocks_of_numba(seed: int | None) -> None:
    x, y = normal(500), np.zeros(1, np.float32)
    run_numba("numba_block_sum", grid=4, block=128, args=[*numba_array(x), *numba_array(y)], seed=seed)
    np.testing.assert_allclose(y[0], x.sum(dtype=np.float64), atol=1e-4)


@SEEDS
def test_mandelbrot_of_numba(seed: int | None) -> None:
    width, height, limit = 20, 12, 25
    counts = np.zeros((height, width), np.int32)
    run_numba("numba_mandelbrot", grid=(2, 2), block=(16, 8), args=[*numba_array(counts), width, height, limit], undefined=[4], seed=seed)
    for y in range(height):
        for x in range(width):
            c, z, count = complex(-2.0 + 3.0 * x / width, -1.5 + 3.0 * y / height), 0j, 0
            while z.real * z.real + z.imag * z.imag <= 4.0 and count < limit:
                z = complex(z.real * z.real - z.imag * z.imag + c.real, 2.0 * z.real * z.imag + c.imag)
                count += 1
            assert counts[y, x] == count


@SEEDS
def test_gemm_of_triton_on_tensor_copies_and_wgmma(seed: int | None) -> None:
    """All that is reported is that Triton leaves out the fence behind `mbarrier.init`; with it, nothing is."""
    m, n, k = 200, 136, 200
    a, b, scratch = normal(m, k, dtype="f2"), normal(k, n, dtype="f2"), np.zeros(1, np.uint8)
    text = (FOREIGN / "triton_tma_gemm.ptx").read_text()
    fenced = text.replace("\tbar.sync \t0;", "\tfence.mbarrier_init.release.cluster;\n\tbar.sync \t0;", 1)
    for one, kinds in ((text, {"missing fence"}), (fenced, set[str]())):
        c = np.zeros((m, n), np.float16)
        boxes = ((a, (128, 64)), (b, (64, 64)), (c, (128, 64)))
        maps = [v for x, box in boxes for v in (row_major(x, box, 128), *x.shape, np.int64(x.shape[1]), np.int64(1))]
        reports = launch(one, grid=(2, 2), block=256, args=[*maps, k, scratch, scratch], shared=98328, seed=seed, check=False)
        assert {report.kind for report in reports.mistakes} == kinds
        assert all("initialisation" in report.message for report in reports.mistakes)
        np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), atol=3e-2)
