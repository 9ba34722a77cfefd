"""PTX that Triton makes without a GPU: `python make_triton.py FOLDER` with Triton installed."""

import re
import sys
from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def triton_softmax(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    value = tl.load(x + row * columns + at, mask=inside, other=-float("inf"))
    value = tl.exp(value - tl.max(value, axis=0))
    tl.store(y + row * columns + at, value / tl.sum(value, axis=0), mask=inside)


@triton.jit
def triton_gemm(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    total = tl.zeros((M, N), tl.float32)
    for step in range(tl.cdiv(k, K)):
        depth = step * K + tl.arange(0, K)
        left = tl.load(a + rows[:, None] * k + depth[None, :], mask=(rows[:, None] < m) & (depth[None, :] < k), other=0.0)
        right = tl.load(b + depth[:, None] * n + columns[None, :], mask=(depth[:, None] < k) & (columns[None, :] < n), other=0.0)
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(tl.float16), mask=(rows[:, None] < m) & (columns[None, :] < n))


@triton.jit
def triton_tma_gemm(a, b, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    row = tl.program_id(0) * M
    column = tl.program_id(1) * N
    total = tl.zeros((M, N), tl.float32)
    for step in range(tl.cdiv(k, K)):
        total = tl.dot(a.load([row, step * K]), b.load([step * K, column]), total)
    c.store([row, column], total.to(tl.float16))


@triton.jit
def triton_cumsum(x, y, total, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=0.0)
    tl.store(y + at, tl.cumsum(value, axis=0), mask=at < n)
    tl.atomic_add(total, tl.sum(value, axis=0))


KERNELS = {
    "triton_softmax": (triton_softmax, {"x": "*fp32", "y": "*fp32", "columns": "i32"}, {"BLOCK": 256}, 80),
    "triton_gemm": (
        triton_gemm,
        {"a": "*fp16", "b": "*fp16", "c": "*fp16", "m": "i32", "n": "i32", "k": "i32"},
        {"M": 64, "N": 64, "K": 32},
        80,
    ),
    "triton_gemm_sm90": (
        triton_gemm,
        {"a": "*fp16", "b": "*fp16", "c": "*fp16", "m": "i32", "n": "i32", "k": "i32"},
        {"M": 64, "N": 128, "K": 64},
        90,
    ),
    "triton_tma_gemm": (
        triton_tma_gemm,
        {"a": "tensordesc<fp16[128,64]>", "b": "tensordesc<fp16[64,128]>", "c": "tensordesc<fp16[128,128]>", "k": "i32"},
        {"M": 128, "N": 128, "K": 64},
        90,
    ),
    "triton_cumsum": (triton_cumsum, {"x": "*fp32", "y": "*fp32", "total": "*fp32", "n": "i32"}, {"BLOCK": 512}, 90),
}

if __name__ == "__main__":
    for name, (kernel, signature, constants, capability) in KERNELS.items():
        aligned = {(k,): [["tt.divisibility", 16]] for k, kind in enumerate(signature.values()) if kind.startswith("*")}
        if kernel is triton_gemm:
            aligned |= {(4,): [["tt.divisibility", 16]], (5,): [["tt.divisibility", 16]]}
        source = ASTSource(kernel, {**signature, **dict.fromkeys(constants, "constexpr")}, constants, aligned)
        built = triton.compile(
            source, target=GPUTarget("cuda", capability, 32), options={"num_warps": 8 if kernel is triton_tma_gemm else 4, "num_stages": 3}
        )
        print(name, built.metadata.shared, built.metadata.num_warps, built.metadata.global_scratch_size)
        text = built.asm["ptx"].partition("\t.section\t.debug_abbrev")[0]
        text = re.sub(r'(\.file\s+\d+ ")[^"]*/', r"\1", text)  # names of files without their folders
        (Path(sys.argv[1]) / f"{name}.ptx").write_text(text)
