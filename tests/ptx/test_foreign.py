"""PTX that nvcc made of CUDA C++: right results and nothing to report, in order and in random order of warps."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gradir.errors import GradirError
from gradir.ptx.launch import launch
from gradir.ptx.reports import Reports
from gradir.ptx.tensor_maps import row_major

Array = np.ndarray[Any, Any]
FOREIGN = Path(__file__).parent / "foreign"
SEEDS = pytest.mark.parametrize("seed", [None, 3])


def run(name: str, **options: Any) -> Reports:
    return launch((FOREIGN / f"{name}.ptx").read_text(), name, **options)


def normal(*shape: int, dtype: str = "f4") -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


@SEEDS
def test_softmax(seed: int | None) -> None:
    x, y = normal(5, 300), np.zeros((5, 300), np.float32)
    run("softmax", grid=5, block=128, args=[x, y, 300], undefined=[1], seed=seed)
    expected = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, expected / expected.sum(1, keepdims=True), rtol=2e-6)


@SEEDS
def test_scan_that_looks_back(seed: int | None) -> None:
    n = 1000
    x, y, totals, prefixes = normal(n), np.zeros(n, np.float32), np.zeros(4, np.float32), np.zeros(4, np.float32)
    states, ticket = np.zeros(4, np.int32), np.zeros(1, np.int32)
    run("scan", grid=4, block=256, args=[x, y, totals, prefixes, states, ticket, n], undefined=[1, 2, 3], together=True, seed=seed)
    np.testing.assert_allclose(y, np.cumsum(x.astype(np.float64)), atol=2e-5)


@SEEDS
def test_histogram(seed: int | None) -> None:
    n = 2000
    keys, weights = np.random.default_rng(0).integers(0, 256, n).astype(np.uint8), np.abs(normal(n))
    counts, sums, total = np.zeros(256, np.uint32), np.zeros(256, np.float32), np.zeros(1)
    run("histogram", grid=4, block=256, args=[keys, weights, counts, sums, total, n], seed=seed)
    np.testing.assert_array_equal(counts, np.bincount(keys, minlength=256))
    np.testing.assert_allclose(sums, np.bincount(keys, weights, 256), rtol=1e-5)
    np.testing.assert_allclose(total[0], weights.sum(dtype=np.float64), rtol=1e-14)


@SEEDS
def test_transpose(seed: int | None) -> None:
    x, y = normal(70, 45), np.zeros((45, 70), np.float32)
    run("transpose", grid=(2, 3), block=(32, 8), args=[x, y, 70, 45], undefined=[1], seed=seed)
    np.testing.assert_array_equal(y, x.T)


@SEEDS
def test_tiled_gemm_with_asynchronous_copies(seed: int | None) -> None:
    m, n, k = (50, 33, 45) if seed is None else (9, 33, 45)
    a, b, c = normal(m, k), normal(k, n), np.zeros((m, n), np.float32)
    run("tiled_gemm", grid=(-(-n // 32), -(-m // 32)), block=(32, 8), args=[a, b, c, m, n, k], undefined=[2], seed=seed)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, atol=2e-5)


@SEEDS
def test_wmma_gemm(seed: int | None) -> None:
    m, n, k = 32, 48, 64
    a, b, c = normal(m, k, dtype="f2"), normal(n, k, dtype="f2"), np.zeros((m, n), np.float32)
    run("wmma_gemm", grid=(2, 2), block=64, args=[a, b, c, m, n, k], undefined=[2], seed=seed)
    np.testing.assert_allclose(c, np.maximum(a.astype(np.float64) @ b.astype(np.float64).T, 0), atol=2e-5)


@SEEDS
def test_warp_norms(seed: int | None) -> None:
    x = normal(11, 77)
    norms, negatives, largest = np.zeros(11, np.float32), np.zeros(11, np.uint32), np.zeros(11, np.uint32)
    run("warp_norms", grid=3, block=128, args=[x, norms, negatives, largest, 11, 77], undefined=[1, 2, 3], seed=seed)
    np.testing.assert_allclose(norms, np.linalg.norm(x.astype(np.float64), axis=1), rtol=1e-6)
    np.testing.assert_array_equal(negatives, (x < 0).sum(1))
    np.testing.assert_array_equal(largest, np.abs(x).argmax(1) % 32)


@SEEDS
def test_stencil(seed: int | None) -> None:
    x, y = normal(37, 50), np.zeros((37, 50), np.float32)
    run("stencil", grid=(4, 5), block=(16, 8), args=[x, y, 37, 50], shared=18 * 10 * 4, undefined=[1], seed=seed)
    p = np.pad(x.astype(np.float64), 1)
    around = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]
    np.testing.assert_allclose(y, 0.5 * x + 0.125 * around, atol=1e-6)


@SEEDS
def test_matvec_whose_last_block_adds_up(seed: int | None) -> None:
    a, x, y = normal(9, 60, dtype="f8"), normal(60, dtype="f8"), normal(9, dtype="f8")
    expected, checksum = 1.5 * a @ x + 0.5 * y, np.zeros(1)
    run("matvec", grid=9, block=128, args=[a, x, y, 1.5, 0.5, 30, np.zeros(1, np.uint32), checksum], seed=seed)
    np.testing.assert_allclose(y, expected, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(checksum[0], expected.sum(), rtol=1e-12)


LINE = struct.pack("ffi4xd", 0.5, 1.25, 3, 2.5)


@SEEDS
def test_functions(seed: int | None) -> None:
    def fibonacci(n: int) -> int:
        return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

    n = 150
    x, y, z = normal(n), np.zeros(n, np.float32), np.zeros(n, np.int32)
    found = run("functions", grid=2, block=96, args=[x, y, z, LINE, n], undefined=[1, 2], seed=seed)
    value = x
    for _ in range(3):
        value = np.float32(0.5) * value + np.float32(1.25)
    value = value + np.float32(2.5)
    np.testing.assert_allclose(y, np.where(np.arange(n) % 2 == 0, 2 * value, value * value), rtol=1e-6)
    assert z.tolist() == [fibonacci(i % 9) + 100 * (i // 7) + 10000 * (i % 7) + 1000000 * ((i % 8 * 5 + i) % 8) for i in range(n)]
    assert found.printed == [f"thread 3 has {x[3]:f} and a word\n"]


def test_an_assertion_that_does_not_hold() -> None:
    x, y, z = normal(4), np.zeros(4, np.float32), np.zeros(4, np.int32)
    with pytest.raises(GradirError, match=r"assertion in @functions: line.times >= 0 does not hold \(functions.cu:26, void functions"):
        run("functions", grid=1, block=32, args=[x, y, z, struct.pack("ffi4xd", 0, 0, -1, 0), 4])


@SEEDS
def test_bitonic_sort(seed: int | None) -> None:
    keys = np.random.default_rng(0).integers(0, 1000, (2, 64)).astype(np.int32)
    payload, before = np.arange(128, dtype=np.uint64).reshape(2, 64), keys.copy()
    run("bitonic_sort", grid=2, block=32 if seed is None else 64, args=[keys, payload, 64], shared=64 * 12, seed=seed)
    np.testing.assert_array_equal(keys, np.sort(before, 1))
    np.testing.assert_array_equal(before.reshape(-1)[payload.astype(np.int64)], keys)


@SEEDS
def test_a_sum_of_cooperating_blocks(seed: int | None) -> None:
    x, y, partial = normal(900), np.zeros(1, np.float32), np.zeros(4, np.float32)
    run("cooperative_sum", grid=4, block=128, args=[x, partial, y, 900], undefined=[1, 2], together=True, seed=seed)
    np.testing.assert_allclose(y[0], x.sum(dtype=np.float64), atol=1e-4)
    with pytest.raises(GradirError, match="trap in @cooperative_sum"):
        run("cooperative_sum", grid=4, block=128, args=[x, partial, y, 900], seed=seed)


@SEEDS
@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 32), (72, 40, 96), (8, 136, 128)])
def test_gemm_on_tensor_cores(m: int, n: int, k: int, seed: int | None) -> None:
    a, b = normal(m, k).astype(ml_dtypes.bfloat16), normal(k, n).astype(ml_dtypes.bfloat16)
    c = np.zeros((m, n), np.float32)
    run("mma_gemm", grid=(-(-n // 64), -(-m // 64)), block=128, args=[a, b, c, m, n, k], undefined=[2], seed=seed)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), atol=1e-4)


@SEEDS
def test_tensor_copies_of_the_programming_guide(seed: int | None) -> None:
    x = normal(40, 96)
    wanted = x * np.float32(1.5)
    launch((FOREIGN / "tensor_copies.ptx").read_text(), grid=(3, 3), block=128, args=[row_major(x, (16, 32)), 1.5], seed=seed)
    np.testing.assert_array_equal(x, wanted)


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("fence.proxy.async.shared::cta;", "", "missing fence"),
        ("cp.async.bulk.wait_group.read 0;", "", "unwaited copy"),
        ("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %rd20, [%r19], %r21;", "mbarrier.arrive.shared.b64 %rd20, [%r19];", "unwaited copy"),
    ],
)  # fmt: skip
def test_mistakes_in_tensor_copies(old: str, new: str, kind: str) -> None:
    text = (FOREIGN / "tensor_copies.ptx").read_text()
    assert old in text
    reports = launch(text.replace(old, new), grid=(3, 3), block=128, args=[row_major(normal(40, 96), (16, 32)), 1.5], check=False)
    assert kind in {report.kind for report in reports.mistakes}
