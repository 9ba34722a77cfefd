"""Matrices in registers: fragments of every `mma.sync` against the formulas of the PTX ISA, `ldmatrix` and its kin, `wmma`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gradir.ptx.launch import launch
from tests.ptx.kernels import HEAD

Array = np.ndarray[Any, Any]
PLACES: dict[tuple[str, int], tuple[Callable[[int, int, int], tuple[int, int]], Callable[[int, int, int], tuple[int, int]]]] = {
    # (shape, elements of a register): (group, thread in group, element) -> (row, column) of A and of B, as the ISA's pages write it
    ("m16n8k16", 2): (
        lambda g, t, i: (g if 0 <= i < 2 or 4 <= i < 6 else g + 8, t * 2 + (i & 1) + (0 if i < 4 else 8)),
        lambda g, t, i: (t * 2 + (i & 1) + (0 if i < 2 else 8), g),
    ),
    ("m16n8k8", 2): (
        lambda g, t, i: (g if i < 2 else g + 8, t * 2 + (i & 1)),
        lambda g, t, i: (t * 2 + i, g),
    ),
    ("m16n8k8", 1): (
        lambda g, t, i: (g if i in (0, 2) else g + 8, t if i < 2 else t + 4),
        lambda g, t, i: (t if i == 0 else t + 4, g),
    ),
    ("m16n8k4", 1): (lambda g, t, i: (g if i == 0 else g + 8, t), lambda g, t, i: (t, g)),
    ("m16n8k16", 1): (
        lambda g, t, i: (g if i % 2 == 0 else g + 8, i * 2 + t if i % 2 == 0 else i * 2 - 2 + t),
        lambda g, t, i: (t + 4 * i, g),
    ),
    ("m16n8k16", 4): (lambda g, t, i: (g if i < 4 else g + 8, t * 4 + (i & 3)), lambda g, t, i: (t * 4 + (i & 3), g)),
    ("m16n8k32", 4): (
        lambda g, t, i: (g if 0 <= i < 4 or 8 <= i < 12 else g + 8, t * 4 + (i & 3) + (0 if i < 8 else 16)),
        lambda g, t, i: (t * 4 + (i & 3) + (0 if i < 4 else 16), g),
    ),
    ("m16n8k64", 8): (
        lambda g, t, i: (g if 0 <= i < 8 or 16 <= i < 24 else g + 8, t * 8 + (i & 7) + (0 if i < 16 else 32)),
        lambda g, t, i: (t * 8 + (i & 7) + (0 if i < 8 else 32), g),
    ),
    ("m8n8k4", 1): (lambda g, t, i: (g, t), lambda g, t, i: (t, g)),
    ("m8n8k16", 4): (lambda g, t, i: (g, t * 4 + i), lambda g, t, i: (t * 4 + i, g)),
}  # fmt: skip
CASES = [
    ("m16n8k16", "f32", "bf16", "bf16"), ("m16n8k16", "f32", "f16", "f16"), ("m16n8k16", "f16", "f16", "f16"), ("m16n8k8", "f32", "f16", "f16"),
    ("m16n8k8", "f16", "f16", "f16"), ("m16n8k8", "f32", "bf16", "bf16"), ("m16n8k8", "f32", "tf32", "tf32"), ("m16n8k4", "f32", "tf32", "tf32"),
    ("m16n8k32", "s32", "s8", "s8"), ("m16n8k32", "s32", "u8", "s8"), ("m16n8k16", "s32", "s8", "u8"), ("m8n8k16", "s32", "u8", "u8"),
    ("m16n8k64", "s32", "s4", "u4"), ("m16n8k32", "f32", "e4m3", "e5m2"), ("m16n8k16", "f32", "e5m2", "e4m3"), ("m16n8k32", "f16", "e4m3", "e4m3"),
    ("m8n8k4", "f64", "f64", "f64"), ("m16n8k4", "f64", "f64", "f64"), ("m16n8k8", "f64", "f64", "f64"), ("m16n8k16", "f64", "f64", "f64"),
]  # fmt: skip
DTYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "f32": np.float32, "f64": np.float64, "s8": np.int8, "u8": np.uint8,
    "s4": np.int8, "u4": np.uint8, "s32": np.int32, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
}  # fmt: skip


def sample(random: np.random.Generator, kind: str, shape: tuple[int, int]) -> Array:
    if kind in ("s8", "u8", "s4", "u4", "s32"):
        low, high = {"s8": (-128, 128), "u8": (0, 256), "s4": (-8, 8), "u4": (0, 16), "s32": (-1000, 1000)}[kind]
        return random.integers(low, high, shape).astype(DTYPES[kind])
    values = random.standard_normal(shape).astype(DTYPES[kind])
    return (values.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32) if kind == "tf32" else values


def registers(matrix: Array, kind: str, place: Callable[[int, int, int], tuple[int, int]], count: int) -> Array:
    """[lane, register] bits of a fragment of `count` elements."""
    lanes = [[matrix[place(lane >> 2, lane % 4, i)] for i in range(count)] for lane in range(32)]
    values = np.array(lanes, matrix.dtype)
    if kind in ("s4", "u4"):
        four = values.astype(np.int64) & 15
        return (four.reshape(32, -1, 8) << (np.arange(8) * 4)).sum(-1).astype(np.uint32)
    return np.ascontiguousarray(values).view(np.uint64 if kind == "f64" else np.uint32)


def accumulator(i: int, lane: int) -> tuple[int, int]:
    return (lane >> 2) + 8 * (i // 2), (lane % 4) * 2 + (i & 1)


def vector(name: str, count: int) -> str:
    return "{" + ", ".join(f"%{name}{k}" for k in range(count)) + "}"


def mma_kernel(opcode: str, counts: tuple[int, int, int], wide: bool, result_wide: bool) -> str:
    kinds = ["b64" if wide else "b32"] * 2 + ["b64" if result_wide else "b32"]
    text = f"{HEAD}.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c)\n{{\n.reg .b64 %p<4>; .reg .b32 %t; .reg .b64 %o<4>;\n"
    text += "".join(f".reg .{kind} %{name}<{n}>;\n" for name, kind, n in zip("abc", kinds, counts)) + "mov.u32 %t, %tid.x;\n"
    for k, (name, kind, n) in enumerate(zip("abc", kinds, counts)):
        size = 8 if kind == "b64" else 4
        text += f"ld.param.u64 %p{k}, [{name}]; mul.wide.u32 %o{k}, %t, {n * size}; add.s64 %p{k}, %p{k}, %o{k};\n"
        text += "".join(f"ld.global.{kind} %{name}{i}, [%p{k}+{i * size}];\n" for i in range(n))
    a, b, c = (vector(name, n) for name, n in zip("abc", counts))
    text += f"{opcode} {c}, {a}, {b}, {c};\n"
    size = 8 if result_wide else 4
    text += "".join(f"st.global.{kinds[2]} [%p2+{i * size}], %c{i};\n" for i in range(counts[2]))
    return text + "ret;\n}\n"


@pytest.mark.parametrize(("shape", "to", "left", "right"), CASES, ids="-".join)
def test_products_of_every_shape_and_type(shape: str, to: str, left: str, right: str) -> None:
    m, k = (int(part) for part in shape[1:].split("n8k"))
    random = np.random.default_rng(3)
    a, b, c = sample(random, left, (m, k)), sample(random, right, (k, 8)), sample(random, to, (m, 8))
    bits = {"f64": 64, "tf32": 32, "f16": 16, "bf16": 16, "s4": 4, "u4": 4}.get(left, 8)
    place_a, place_b = PLACES[shape, max(1, 32 // bits)]
    wide = left == "f64"
    ra = registers(a, left, place_a, m * k // 32)
    rb = registers(b, right, place_b, k * 8 // 32)
    rc = registers(c, to, lambda g, t, i: accumulator(i, g * 4 + t), m * 8 // 32)
    opcode = f"mma.sync.aligned.{shape}.row.col.{to}.{left}.{right}.{to}"
    found = rc.copy()
    launch(mma_kernel(opcode, (ra.shape[1], rb.shape[1], rc.shape[1]), wide, to == "f64"), grid=1, block=32, args=[ra, rb, found])
    values = found.view(DTYPES[to])
    result = np.zeros((m, 8), DTYPES[to])
    for lane in range(32):
        for i in range(values.shape[1]):
            result[accumulator(i, lane)] = values[lane, i]
    exact = a.astype(np.float64) @ b.astype(np.float64) + c.astype(np.float64)
    if to == "s32":
        np.testing.assert_array_equal(result, exact.astype(np.int32))
    else:
        tolerance = {"f16": 4e-3, "f32": 2e-6, "f64": 1e-14}[to]
        np.testing.assert_allclose(result.astype(np.float64), exact, rtol=tolerance, atol=tolerance * max(1.0, np.abs(exact).max()))


@pytest.mark.parametrize("layouts", ["row.row", "row.col", "col.row", "col.col"])
@pytest.mark.parametrize("to", ["f16", "f32"])
def test_four_small_products_of_quads(layouts: str, to: str) -> None:
    """The formulas of `mma.m8n8k4`: lanes 4q..4q+3 and 16+4q..16+4q+3 multiply on their own."""
    random = np.random.default_rng(5)
    a, b = random.standard_normal((4, 8, 4)).astype(np.float16), random.standard_normal((4, 4, 8)).astype(np.float16)
    c = random.standard_normal((4, 8, 8)).astype(DTYPES[to])
    row_a, row_b = (layout == "row" for layout in layouts.split("."))

    def at_a(lane: int, i: int) -> tuple[int, int]:
        high = 4 * (lane >= 16)
        return (lane % 4 + high, i) if row_a else (i % 4 + high, lane % 4)

    def at_b(lane: int, i: int) -> tuple[int, int]:
        high = 4 * (lane >= 16)
        return (lane % 4, i + high) if row_b else (i, lane % 4 + high)

    def at_c(lane: int, i: int) -> tuple[int, int]:
        high = 4 * (lane >= 16)
        return (lane % 4 + high, i) if to == "f16" else ((lane & 1) + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1))

    def bits(matrices: Array, at: Callable[[int, int], tuple[int, int]], count: int) -> Array:
        values = [[matrices[lane % 16 // 4][at(lane, i)] for i in range(count)] for lane in range(32)]
        return np.array(values, matrices.dtype).view(np.uint32)

    ra, rb, rc = bits(a, at_a, 4), bits(b, at_b, 4), bits(c, at_c, 8)
    text = mma_kernel(f"mma.sync.aligned.m8n8k4.{layouts}.{to}.f16.f16.{to}", (2, 2, rc.shape[1]), wide=False, result_wide=False)
    launch(text, grid=1, block=32, args=[ra, rb, rc])
    exact = a.astype(np.float64) @ b.astype(np.float64) + c.astype(np.float64)
    values = rc.view(DTYPES[to])
    for lane in range(32):
        for i in range(8):
            assert abs(float(values[lane, i]) - exact[lane % 16 // 4][at_c(lane, i)]) < 0.01


MATRICES = """%HEAD%.visible .entry k(.param .u64 x, .param .u64 y)
{
  .reg .b64 %d<8>; .reg .b32 %r<16>; .reg .b32 %s<8>;
  .shared .align 16 .b8 tile[512];
  ld.param.u64 %d0, [x]; ld.param.u64 %d1, [y]; mov.u32 %r0, %tid.x; mul.wide.u32 %d2, %r0, 16; add.s64 %d3, %d0, %d2;
  ld.global.v4.u32 {%s0, %s1, %s2, %s3}, [%d3]; mov.u32 %r1, tile; shl.b32 %r2, %r0, 4; add.u32 %r3, %r1, %r2;
  %BODY%
  add.s64 %d4, %d1, %d2; st.global.v4.u32 [%d4], {%s4, %s5, %s6, %s7};
  ret;
}
""".replace("%HEAD%", HEAD)
"""Rows of 16 bytes: lane l has row l of four matrices of 8 x 8 halves; its address in the tile is %r3."""


def pairs(x: Array, transposed: bool) -> Array:
    """[lane, matrix] what `ldmatrix` gives of [32, 8] halves, by the ISA's words."""
    matrices = x.reshape(4, 8, 8).transpose(0, 2, 1) if transposed else x.reshape(4, 8, 8)
    return np.stack([np.ascontiguousarray(m).view(np.uint32).reshape(32) for m in matrices], 1)


@pytest.mark.parametrize("transposed", [False, True])
def test_ldmatrix_stmatrix_movmatrix(transposed: bool) -> None:
    x, y = np.arange(256, dtype=np.uint16).reshape(32, 8), np.zeros((32, 4), np.uint32)
    trans = ".trans" if transposed else ""
    stored = "st.shared.v4.u32 [%r3], {%s0, %s1, %s2, %s3}; bar.sync 0;\n"
    load = f"ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 {{%s4, %s5, %s6, %s7}}, [%r3];"
    launch(MATRICES.replace("%BODY%", stored + load), grid=1, block=32, args=[x, y])
    np.testing.assert_array_equal(y, pairs(x, transposed))
    two = f"{stored} mov.u32 %s6, 0; mov.u32 %s7, 0; ldmatrix.sync.aligned.m8n8.x2{trans}.shared.b16 {{%s4, %s5}}, [%r3];"
    launch(MATRICES.replace("%BODY%", two), grid=1, block=32, args=[x, y])
    np.testing.assert_array_equal(y[:, :2], pairs(x, transposed)[:, :2])
    back = f"stmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 [%r3], {{%s0, %s1, %s2, %s3}}; bar.sync 0; ld.shared.v4.u32 {{%s4, %s5, %s6, %s7}}, [%r3];"
    launch(MATRICES.replace("%BODY%", back), grid=1, block=32, args=[pairs(x, transposed), y])
    np.testing.assert_array_equal(y.view(np.uint16), x)
    turn = "".join(f"movmatrix.sync.aligned.m8n8.trans.b16 %s{k + 4}, %s{k};" for k in range(4))
    launch(MATRICES.replace("%BODY%", turn), grid=1, block=32, args=[pairs(x, False), y])
    np.testing.assert_array_equal(y, pairs(x, True))


def test_products_of_part_of_a_warp_are_reported() -> None:
    text = MATRICES.replace("%BODY%", "st.shared.v4.u32 [%r3], {%s0, %s1, %s2, %s3}; bar.sync 0;\n%LOAD%")
    load = ".reg .pred %p; setp.lt.u32 %p, %r0, 16; @%p ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%s4}, [%r3];"
    x, y = np.zeros((32, 8), np.uint16), np.zeros((32, 4), np.uint32)
    found = launch(text.replace("%LOAD%", load), grid=1, block=32, args=[x, y], check=False).mistakes
    assert [report.kind for report in found] == ["divergent sync"]


@pytest.mark.parametrize(
    ("name", "m", "n", "k", "kind", "to", "columns"),
    [
        ("wmma_bf16", 32, 8, 16, "bf16", "f32", ""),
        ("wmma_f16", 16, 16, 16, "f16", "f16", "ac"),
        ("wmma_tf32", 16, 16, 8, "tf32", "f32", "b"),
        ("wmma_s8", 8, 32, 16, "s8", "s32", "b"),
        ("wmma_f64", 8, 8, 4, "f64", "f64", "b"),
    ],
)
def test_wmma_of_every_type(name: str, m: int, n: int, k: int, kind: str, to: str, columns: str) -> None:
    """As nvcc writes it; matrices named in `columns` are stored column by column."""
    random = np.random.default_rng(2)
    a, b, c = sample(random, kind, (m, k)), sample(random, kind, (k, n)), sample(random, to, (m, n))
    given = {key: np.array(x.T if key in columns else x, order="C") for key, x in zip("abc", (a, b, c))}
    launch((Path(__file__).parent / "foreign" / "wmma_types.ptx").read_text(), name, grid=1, block=32, args=list(given.values()))
    found = given["c"].T if "c" in columns else given["c"]
    exact = a.astype(np.float64) @ b.astype(np.float64) + c.astype(np.float64)
    np.testing.assert_allclose(found.astype(np.float64), exact, atol={"f16": 0.02, "f32": 1e-5, "f64": 1e-14, "s32": 0}[to])
