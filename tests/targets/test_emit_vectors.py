"""Vector ops of level 4, compiled and run against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.targets.jit import Compiled, undefined_symbols

RNG = np.random.default_rng(0)


def run(body: str, arguments: str, *arrays: np.ndarray) -> None:
    """Compile `@f(arguments)` with `body` and run it on the arrays."""
    compiled = Compiled(
        f"func.func @f({arguments}) {{\n  %c0 = arith.constant 0 : index\n  %pad = arith.constant -1.0 : f32\n{body}\n  return\n}}"
    )
    assert undefined_symbols(compiled.object) <= {"memcpy", "memmove", "memset"}
    assert compiled("f", *arrays) == 0


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("permutation", "result", "expected"),
    [
        ("(m, n) -> (m, n)", "4x8", lambda x: x[1:5, 2:10]),
        ("(m, n) -> (n, m)", "8x4", lambda x: x[1:5, 2:10].T),
        ("(m, n) -> (0, n)", "4x8", lambda x: np.broadcast_to(x[1, 2:10], (4, 8))),
        ("(m, n) -> (m, 0)", "4x8", lambda x: np.broadcast_to(x[1:5, 2:3], (4, 8))),
        ("(m, n) -> (0, 0)", "4x8", lambda x: np.broadcast_to(x[1, 2], (4, 8))),
    ],
)
def test_transfer_read_by_permutation_map(permutation: str, result: str, expected: object) -> None:
    x = floats(6, 16)
    rows, columns = map(int, result.split("x"))
    out = np.zeros((rows, columns), np.float32)
    run(
        f"""  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %v = vector.transfer_read %x[%c1, %c2], %pad {{in_bounds = [true, true], permutation_map = affine_map<{permutation}>}} : memref<6x16xf32>, vector<{result}xf32>
  vector.transfer_write %v, %o[%c0, %c0] {{in_bounds = [true, true], permutation_map = affine_map<(m, n) -> (m, n)>}} : vector<{result}xf32>, memref<{result}xf32>""",
        f"%x: memref<6x16xf32>, %o: memref<{result}xf32>",
        x,
        out,
    )
    assert_array_equal(out, expected(x))  # type: ignore[operator]


@pytest.mark.parametrize("permutation", ["(m, n) -> (m, n)", "(m, n) -> (n, m)", "(m, n) -> (m, 0)", "(m, n) -> (0, n)"])
@pytest.mark.parametrize("start", [(4, 5), (0, 0), (6, 9)])
def test_edges_at_run_time(permutation: str, start: tuple[int, int]) -> None:
    x = floats(7, 11)
    i, j = start
    out = np.full((8, 8), 7, np.float32)
    run(
        f"""  %i = memref.load %at[%c0] : memref<2xindex>
  %c1 = arith.constant 1 : index
  %j = memref.load %at[%c1] : memref<2xindex>
  %v = vector.transfer_read %x[%i, %j], %pad {{in_bounds = [false, false], permutation_map = affine_map<{permutation}>}} : memref<7x11xf32>, vector<8x8xf32>
  vector.transfer_write %v, %o[%c0, %c0] {{in_bounds = [true, true], permutation_map = affine_map<(m, n) -> (m, n)>}} : vector<8x8xf32>, memref<8x8xf32>""",
        "%x: memref<7x11xf32>, %at: memref<2xindex>, %o: memref<8x8xf32>",
        x,
        np.array([i, j], np.int64),
        out,
    )
    padded = np.full((32, 32), -1, np.float32)
    padded[:7, :11] = x
    tile = padded[i : i + 8, j : j + 8]
    expected = {
        "(m, n) -> (m, n)": tile, "(m, n) -> (n, m)": tile.T,
        "(m, n) -> (m, 0)": np.broadcast_to(tile[:, :1], (8, 8)), "(m, n) -> (0, n)": np.broadcast_to(tile[:1], (8, 8)),
    }[permutation]  # fmt: skip
    assert_array_equal(out, expected)


@pytest.mark.parametrize("permutation", ["(m, n) -> (m, n)", "(m, n) -> (n, m)"])
@pytest.mark.parametrize("start", [(4, 5), (0, 0)])
def test_write_at_edges(permutation: str, start: tuple[int, int]) -> None:
    v, out = floats(8, 8), floats(7, 11)
    expected = np.zeros((32, 32), np.float32)
    expected[:7, :11] = out
    i, j = start
    expected[i : i + 8, j : j + 8] = v if permutation == "(m, n) -> (m, n)" else v.T
    run(
        f"""  %i = memref.load %at[%c0] : memref<2xindex>
  %c1 = arith.constant 1 : index
  %j = memref.load %at[%c1] : memref<2xindex>
  %v = vector.load %x[%c0, %c0] : memref<8x8xf32>, vector<8x8xf32>
  vector.transfer_write %v, %o[%i, %j] {{in_bounds = [false, false], permutation_map = affine_map<{permutation}>}} : vector<8x8xf32>, memref<7x11xf32>""",
        "%x: memref<8x8xf32>, %at: memref<2xindex>, %o: memref<7x11xf32>",
        v,
        np.array(start, np.int64),
        out,
    )
    assert_array_equal(out, expected[:7, :11])


def test_constant_edges_and_booleans() -> None:
    x, out = RNG.integers(0, 2, 13).astype(bool), np.ones(13, bool)
    run(
        """  %false = arith.constant false
  %c8 = arith.constant 8 : index
  %a = vector.transfer_read %x[%c0], %false {in_bounds = [true], permutation_map = affine_map<(d) -> (d)>} : memref<13xi1>, vector<8xi1>
  %b = vector.transfer_read %x[%c8], %false {in_bounds = [false], permutation_map = affine_map<(d) -> (d)>} : memref<13xi1>, vector<8xi1>
  %t = arith.constant dense<true> : vector<8xi1>
  %na = arith.xori %a, %t : vector<8xi1>
  %nb = arith.xori %b, %t : vector<8xi1>
  vector.transfer_write %na, %o[%c0] {in_bounds = [true], permutation_map = affine_map<(d) -> (d)>} : vector<8xi1>, memref<13xi1>
  vector.transfer_write %nb, %o[%c8] {in_bounds = [false], permutation_map = affine_map<(d) -> (d)>} : vector<8xi1>, memref<13xi1>""",
        "%x: memref<13xi1>, %o: memref<13xi1>",
        x,
        out,
    )
    assert_array_equal(out, ~x)


def test_outer_product_of_columns_and_vectors() -> None:
    a, b, out = floats(4, 3), floats(3, 8), np.zeros((2, 4, 8), np.float32)
    run(
        """  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %none = arith.constant dense<0.0> : vector<4x8xf32>
  %s:2 = scf.for %k = %c0 to %c3 step %c1 iter_args(%p = %none, %q = %none) -> (vector<4x8xf32>, vector<4x8xf32>) {
    %col = vector.transfer_read %a[%c0, %k], %pad {in_bounds = [true], permutation_map = affine_map<(m, k) -> (m)>} : memref<4x3xf32>, vector<4xf32>
    %row = vector.load %b[%k, %c0] : memref<3x8xf32>, vector<8xf32>
    %p1 = vector.outerproduct %col, %row, %p {kind = #vector.kind<add>} : vector<4xf32>, vector<8xf32>
    %packed = arith.addf %col, %col : vector<4xf32>
    %q1 = vector.outerproduct %packed, %row, %q {kind = #vector.kind<add>} : vector<4xf32>, vector<8xf32>
    scf.yield %p1, %q1 : vector<4x8xf32>, vector<4x8xf32>
  }
  vector.store %s#0, %o[%c0, %c0, %c0] : memref<2x4x8xf32>, vector<4x8xf32>
  vector.store %s#1, %o[%c1, %c0, %c0] : memref<2x4x8xf32>, vector<4x8xf32>""",
        "%a: memref<4x3xf32>, %b: memref<3x8xf32>, %o: memref<2x4x8xf32>",
        a,
        b,
        out,
    )
    np.testing.assert_allclose(out[0], a @ b, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(out[1], 2 * (a @ b), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(8, 8), (4, 8), (16, 16)])
def test_transpose(shape: tuple[int, int]) -> None:
    m, n = shape
    x, out = floats(m, n), np.zeros((n, m), np.float32)
    run(
        f"""  %v = vector.load %x[%c0, %c0] : memref<{m}x{n}xf32>, vector<{m}x{n}xf32>
  %t = vector.transpose %v, [1, 0] : vector<{m}x{n}xf32> to vector<{n}x{m}xf32>
  vector.store %t, %o[%c0, %c0] : memref<{n}x{m}xf32>, vector<{n}x{m}xf32>""",
        f"%x: memref<{m}x{n}xf32>, %o: memref<{n}x{m}xf32>",
        x,
        out,
    )
    assert_array_equal(out, x.T)


@pytest.mark.parametrize(
    ("ops", "result", "expected"),
    [
        ("%r = vector.extract %v[1] : vector<8xf32> from vector<4x8xf32>", "8", lambda x: x[1]),
        ("%e = vector.extract %v[2, 3] : f32 from vector<4x8xf32>\n %r = vector.insert %e, %v[0, 1] : f32 into vector<4x8xf32>", "4x8",
         lambda x: np.concatenate([[np.r_[x[0, :1], x[2, 3], x[0, 2:]]], x[1:]])),
        ("%e = vector.extract %v[3] : vector<8xf32> from vector<4x8xf32>\n %r = vector.insert %e, %v[0] : vector<8xf32> into vector<4x8xf32>", "4x8",
         lambda x: np.concatenate([x[3:], x[1:]])),
        ("%r = vector.shape_cast %v : vector<4x8xf32> to vector<32xf32>", "32", lambda x: x.reshape(32)),
        ("%r = vector.shape_cast %v : vector<4x8xf32> to vector<8x4xf32>", "8x4", lambda x: x.reshape(8, 4)),
        ("%r = vector.shape_cast %v : vector<4x8xf32> to vector<2x2x8xf32>", "2x2x8", lambda x: x.reshape(2, 2, 8)),
        ("%e = vector.extract %v[1] : vector<8xf32> from vector<4x8xf32>\n %r = vector.broadcast %e : vector<8xf32> to vector<3x8xf32>", "3x8",
         lambda x: np.broadcast_to(x[1], (3, 8))),
        ("%e = vector.extract %v[1, 1] : f32 from vector<4x8xf32>\n %r = vector.broadcast %e : f32 to vector<3x4xf32>", "3x4", lambda x: np.full((3, 4), x[1, 1])),
        ("%a = vector.extract %v[0] : vector<8xf32> from vector<4x8xf32>\n %b = vector.extract %v[1] : vector<8xf32> from vector<4x8xf32>\n"
         " %r = vector.shuffle %a, %b [0, 9, 2, 11] : vector<8xf32>, vector<8xf32>", "4", lambda x: np.array([x[0, 0], x[1, 1], x[0, 2], x[1, 3]])),
        ("%r = vector.extract_strided_slice %v {offsets = [1, 2], sizes = [2, 4], strides = [1, 1]} : vector<4x8xf32> to vector<2x4xf32>", "2x4",
         lambda x: x[1:3, 2:6]),
        ("%z = arith.constant dense<0.0> : vector<4x8xf32>\n"
         "%s = vector.extract_strided_slice %v {offsets = [1, 2], sizes = [2, 4], strides = [1, 1]} : vector<4x8xf32> to vector<2x4xf32>\n"
         "%r = vector.insert_strided_slice %s, %z {offsets = [2, 1], strides = [1, 1]} : vector<2x4xf32> into vector<4x8xf32>", "4x8",
         lambda x: np.pad(x[1:3, 2:6], ((2, 0), (1, 3)))),
    ],
)  # fmt: skip
def test_lane_moves(ops: str, result: str, expected: object) -> None:
    x = floats(4, 8)
    shape = tuple(map(int, result.split("x")))
    out = np.zeros(shape, np.float32)
    zeros = ", ".join(["%c0"] * len(shape))
    run(
        f"""  %v = vector.load %x[%c0, %c0] : memref<4x8xf32>, vector<4x8xf32>
  {ops}
  vector.store %r, %o[{zeros}] : memref<{result}xf32>, vector<{result}xf32>""",
        f"%x: memref<4x8xf32>, %o: memref<{result}xf32>",
        x,
        out,
    )
    assert_array_equal(out, expected(x))  # type: ignore[operator]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("add", np.sum), ("mul", np.prod), ("maximumf", np.max), ("minimumf", np.min)],
)
def test_reductions(kind: str, expected: object) -> None:
    x, out = floats(4, 8), np.zeros(2 + 8, np.float32)
    fast = "" if kind.endswith("umf") else " fastmath<reassoc>"
    start = {"add": "0.0", "mul": "1.0", "maximumf": "-1.0e30", "minimumf": "1.0e30"}[kind]
    run(
        f"""  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %v = vector.load %x[%c0, %c0] : memref<4x8xf32>, vector<4x8xf32>
  %row = vector.extract %v[2] : vector<8xf32> from vector<4x8xf32>
  %e = vector.extract %v[0, 0] : f32 from vector<4x8xf32>
  %a = vector.reduction <{kind}>, %row{fast} : vector<8xf32> into f32
  %b = vector.reduction <{kind}>, %row, %e : vector<8xf32> into f32
  %init = arith.constant dense<{start}> : vector<8xf32>
  %m = vector.multi_reduction <{kind}>, %v, %init [0] : vector<4x8xf32> to vector<8xf32>
  memref.store %a, %o[%c0] : memref<10xf32>
  memref.store %b, %o[%c1] : memref<10xf32>
  vector.store %m, %o[%c2] : memref<10xf32>, vector<8xf32>""",
        "%x: memref<4x8xf32>, %o: memref<10xf32>",
        x,
        out,
    )
    reduce = expected
    want = [reduce(x[2]), reduce(np.r_[x[2], x[0, 0]]), *reduce(x, axis=0)]  # type: ignore[operator]
    np.testing.assert_allclose(out, want, rtol=2e-6)


def test_masks_gather_scatter() -> None:
    x, indices, out = floats(32), RNG.permutation(32)[:8].astype(np.int64), np.zeros(32, np.float32)
    run(
        """  %n = arith.constant 5 : index
  %count = memref.load %k[%c0] : memref<1xindex>
  %m = vector.create_mask %count : vector<8xi1>
  %i = vector.load %at[%c0] : memref<8xindex>, vector<8xindex>
  %zero = arith.constant dense<9.0> : vector<8xf32>
  %g = vector.gather %x[%c0] [%i], %m, %zero : memref<32xf32>, vector<8xindex>, vector<8xi1>, vector<8xf32> into vector<8xf32>
  vector.maskedstore %o[%c0], %m, %g : memref<32xf32>, vector<8xi1>, vector<8xf32>
  %c8 = arith.constant 8 : index
  vector.store %g, %o[%c8] : memref<32xf32>, vector<8xf32>
  %l = vector.maskedload %x[%c8], %m, %zero : memref<32xf32>, vector<8xi1>, vector<8xf32> into vector<8xf32>
  %c16 = arith.constant 16 : index
  vector.store %l, %o[%c16] : memref<32xf32>, vector<8xf32>""",
        "%x: memref<32xf32>, %at: memref<8xindex>, %k: memref<1xindex>, %o: memref<32xf32>",
        x,
        indices,
        np.array([5], np.int64),
        out,
    )
    gathered = np.where(np.arange(8) < 5, x[indices], 9)
    assert_array_equal(out[:8], np.where(np.arange(8) < 5, gathered, 0))
    assert_array_equal(out[8:16], gathered)
    assert_array_equal(out[16:24], np.where(np.arange(8) < 5, x[8:16], 9))
