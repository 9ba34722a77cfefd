"""Level 4: every vector op against numpy, transfers at the edges, masks that keep lanes from touching memory."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from gradir.reference import run
from tests.reference.programs import parse, refused

M = np.arange(32, dtype=np.float32).reshape(4, 8)
MEM = "memref<4x8xf32>"
V, W, A = "vector<4xf32>", "vector<8xf32>", "vector<4x8xf32>"
PRELUDE = f"""%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c2 = arith.constant 2 : index
%c6 = arith.constant 6 : index
%pad = arith.constant -1.0 : f32
%m = vector.load %x[%c0, %c0] : {MEM}, {A}
%row = vector.load %x[%c1, %c0] : {MEM}, {W}
%col = vector.transfer_read %x[%c0, %c1], %pad {{in_bounds = [true], permutation_map = affine_map<(i, j) -> (i)>}} : {MEM}, {V}
"""
ROW, COL = M[1], M[:, 1]


def text_of(body: str, result: str, element: str = "f32", rank: int = 1) -> str:
    dims = "x".join(re.findall(r"(\d+)x", result))
    out = f"memref<{dims}x{element}>"
    index = ", ".join(["%c0"] * rank)
    store = f"vector.store %r, %o[{index}] : {out}, {result}"
    return f"func.func @f(%x: {MEM}, %o: {out}) {{\n{PRELUDE}{body}\n{store}\nreturn\n}}"


def vector(body: str, result: str, element: str = "f32", rank: int = 1) -> Any:
    return run(parse(text_of(body, result, element, rank)), "f", [M, None])[0]


def matrix(body: str, result: str, element: str = "f32") -> Any:
    return vector(body, result, element, 2)


def broadcast(scalar: str, count: int = 2) -> str:
    return f"%r = vector.broadcast {scalar} : f32 to vector<{count}xf32>"


def test_outer_products() -> None:
    kind = "{kind = #vector.kind<add>}"
    np.testing.assert_array_equal(matrix(f"%r = vector.outerproduct %col, %row, %m {kind} : {V}, {W}", A), np.outer(COL, ROW) + M)
    np.testing.assert_array_equal(matrix(f"%r = vector.outerproduct %col, %row {kind} : {V}, {W}", A), np.outer(COL, ROW))
    found = matrix(f"%r = vector.outerproduct %col, %row, %m {{kind = #vector.kind<maximumf>}} : {V}, {W}", A)
    np.testing.assert_array_equal(found, np.maximum(np.outer(COL, ROW), M))
    np.testing.assert_array_equal(vector(f"%r = vector.outerproduct %col, %pad, %col {kind} : {V}, f32", V), COL - COL)


REDUCTIONS = [
    ("add", ROW.sum()),
    ("mul", ROW.prod()),
    ("maximumf", ROW.max()),
    ("minimumf", ROW.min()),
    ("maxnumf", ROW.max()),
    ("minnumf", ROW.min()),
]


@pytest.mark.parametrize(("kind", "expected"), REDUCTIONS)
def test_reduction(kind: str, expected: Any) -> None:
    np.testing.assert_allclose(
        vector(f"%s = vector.reduction <{kind}>, %row : {W} into f32\n{broadcast('%s')}", "vector<2xf32>")[0], expected, rtol=1e-6
    )


def test_reduction_with_accumulator_and_of_integers() -> None:
    body = f"%s = vector.reduction <add>, %row, %pad : {W} into f32\n{broadcast('%s')}"
    assert vector(body, "vector<2xf32>")[0] == ROW.sum() - 1
    body = """%k = arith.constant dense<[3, -5, 7]> : vector<3xi8>
    %a = vector.reduction <{kind}>, %k : vector<3xi8> into i8
    %r = vector.broadcast %a : i8 to vector<2xi8>"""
    for kind, expected in [("minui", 3), ("maxui", -5), ("minsi", -5), ("maxsi", 7), ("and", 3), ("or", -1), ("xor", 3 ^ -5 ^ 7)]:
        assert vector(body.format(kind=kind), "vector<2xi8>", "i8")[0] == expected


def test_multi_reduction_and_contract() -> None:
    np.testing.assert_array_equal(vector(f"%r = vector.multi_reduction <add>, %m, %col [1] : {A} to {V}", V), M.sum(1) + COL)
    body = f"%s = vector.multi_reduction <maximumf>, %m, %pad [0, 1] : {A} to f32\n{broadcast('%s')}"
    assert vector(body, "vector<2xf32>")[0] == M.max()
    maps = ", ".join(f"affine_map<(i, j, k) -> ({m})>" for m in ("i, k", "j, k", "j, i"))
    kinds = '["parallel", "parallel", "reduction"]'
    zero = "%z = arith.constant dense<1.0> : vector<4x4xf32>\n"
    body = f"{zero}%r = vector.contract {{indexing_maps = [{maps}], iterator_types = {kinds}, kind = #vector.kind<add>}} %m, %m, %z : {A}, {A} into vector<4x4xf32>"
    np.testing.assert_array_equal(matrix(body, "vector<4x4xf32>"), (M @ M.T).T + 1)


def test_fma_rounds_once() -> None:
    body = """%a = arith.constant dense<1.00024414> : vector<2xf32>
    %b = arith.constant dense<-1.0> : vector<2xf32>
    %r = vector.fma %a, %a, %b : vector<2xf32>"""
    x = np.float64(np.float32(1.00024414))
    assert vector(body, "vector<2xf32>")[0] == np.float32(x * x - 1)


SHAPES = [
    (f"%r = vector.transpose %m, [1, 0] : {A} to vector<8x4xf32>", "vector<8x4xf32>", M.T),
    (f"%r = vector.shape_cast %m : {A} to vector<2x16xf32>", "vector<2x16xf32>", M.reshape(2, 16)),
    (f"%r = vector.broadcast %row : {W} to {A}", A, np.broadcast_to(ROW, (4, 8))),
    (f"%r = vector.broadcast %pad : f32 to {A}", A, np.full((4, 8), -1)),
    (f"%r = vector.insert %row, %m [%c2] : {W} into {A}", A, np.concatenate([M[:2], [ROW], M[3:]])),
    (
        f"%r = vector.extract_strided_slice %m {{offsets = [1], sizes = [2], strides = [1]}} : {A} to vector<2x8xf32>",
        "vector<2x8xf32>",
        M[1:3],
    ),
]


@pytest.mark.parametrize(("body", "result", "expected"), SHAPES)
def test_shape(body: str, result: str, expected: Any) -> None:
    np.testing.assert_array_equal(matrix(body, result), expected)


LANES = [
    (f"%r = vector.extract %m[2] : {W} from {A}", W, M[2]),
    (f"%e = vector.extract %m[%c2, 3] : f32 from {A}\n{broadcast('%e')}", "vector<2xf32>", [19, 19]),
    (f"%r = vector.shuffle %col, %col [0, 5, 2, 7] : {V}, {V}", V, COL),
    (f"%r = vector.interleave %col, %col : {V} -> {W}", W, np.repeat(COL, 2)),
    (f"%q, %r = vector.deinterleave %row : {W} -> {V}", V, ROW[1::2]),
    (f"%e:4 = vector.to_elements %col : {V}\n%r = vector.from_elements %e#3, %e#0 : vector<2xf32>", "vector<2xf32>", COL[[3, 0]]),
    (f"%s = vector.insert %pad, %row [%c6] : f32 into {W}\n%r = vector.bitcast %s : {W} to {W}", W, [*ROW[:6], -1, ROW[7]]),
]


@pytest.mark.parametrize(("body", "result", "expected"), LANES)
def test_lanes(body: str, result: str, expected: Any) -> None:
    np.testing.assert_array_equal(vector(body, result), expected)


def test_insert_strided_slice_step_and_bitcast() -> None:
    body = f"%r = vector.insert_strided_slice %col, %m {{offsets = [2, 3], strides = [1]}} : {V} into {A}"
    expected = M.copy()
    expected[2, 3:7] = COL
    np.testing.assert_array_equal(matrix(body, A), expected)
    np.testing.assert_array_equal(vector("%r = vector.step : vector<5xindex>", "vector<5xindex>", "index"), range(5))
    assert vector(f"%r = vector.bitcast %row : {W} to vector<8xi32>", "vector<8xi32>", "i32")[0] == ROW.view(np.int32)[0]


def test_masks() -> None:
    found = matrix(
        "%k = vector.create_mask %c2, %c6 : vector<4x8xi1>\n%r = arith.extui %k : vector<4x8xi1> to vector<4x8xi32>",
        "vector<4x8xi32>",
        "i32",
    )
    expected = np.zeros((4, 8))
    expected[:2, :6] = 1
    np.testing.assert_array_equal(found, expected)
    constant = "%k = vector.constant_mask [2, 6] : vector<4x8xi1>\n%r = arith.extui %k : vector<4x8xi1> to vector<4x8xi32>"
    np.testing.assert_array_equal(matrix(constant, "vector<4x8xi32>", "i32"), expected)


MASK = "%k = vector.create_mask %c2 : vector<4xi1>\n"


def test_masked_access_touches_only_its_lanes() -> None:
    load = MASK + f"%r = vector.maskedload %x[%c2, %c6], %k, %col : {MEM}, vector<4xi1>, {V} into {V}"
    np.testing.assert_array_equal(vector(load, V), [22, 23, COL[2], COL[3]])
    body = MASK + f"vector.maskedstore %o[%c2], %k, %col : memref<4xf32>, vector<4xi1>, {V}"
    text = f"func.func @f(%x: {MEM}, %o: memref<4xf32>) {{\n{PRELUDE}{body}\nreturn\n}}"
    found = run(parse(text), "f", [M, np.zeros(4, np.float32)])[1]
    np.testing.assert_array_equal(found, [0, 0, COL[0], COL[1]])
    refused("OP102", text_of(load.replace("create_mask %c2", "create_mask %c6"), V), [M, None])


def test_gather_and_scatter() -> None:
    indices = (
        "%i = arith.constant dense<[7, 0, 99, 3]> : vector<4xindex>\n%k = arith.constant dense<[true, true, false, true]> : vector<4xi1>\n"
    )
    body = indices + f"%r = vector.gather %x[%c1, %c0] [%i], %k, %col : {MEM}, vector<4xindex>, vector<4xi1>, {V} into {V}"
    np.testing.assert_array_equal(vector(body, V), [15, 8, COL[2], 11])
    refused("OP102", text_of(body.replace("false", "true"), V), [M, None])
    body = indices + f"vector.scatter %o[%c0] [%i], %k, %col : memref<8xf32>, vector<4xindex>, vector<4xi1>, {V}"
    text = f"func.func @f(%x: {MEM}, %o: memref<8xf32>) {{\n{PRELUDE}{body}\nreturn\n}}"
    np.testing.assert_array_equal(run(parse(text), "f", [M, np.zeros(8, np.float32)])[1], [COL[1], 0, 0, COL[3], 0, 0, 0, COL[0]])


def test_transfer_read_pads_what_is_outside() -> None:
    body = f"%r = vector.transfer_read %x[%c2, %c6], %pad {{in_bounds = [false, false]}} : {MEM}, {A}"
    expected = np.full((4, 8), -1.0)
    expected[:2, :2] = M[2:, 6:]
    np.testing.assert_array_equal(matrix(body, A), expected)
    default = body.replace(" {in_bounds = [false, false]}", "")
    np.testing.assert_array_equal(matrix(default, A), expected)
    error = refused("OP102", text_of(body.replace("[false, false]", "[false, true]"), A, rank=2), [M, None])
    assert error.op == "vector.transfer_read"


def test_transfer_read_maps_and_masks() -> None:
    rows = f"%r = vector.transfer_read %x[%c1, %c0], %pad {{in_bounds = [true, true], permutation_map = affine_map<(i, j) -> (0, j)>}} : {MEM}, {A}"
    np.testing.assert_array_equal(matrix(rows, A), np.broadcast_to(ROW, (4, 8)))
    turned = f"%r = vector.transfer_read %x[%c0, %c0], %pad {{in_bounds = [true, true], permutation_map = affine_map<(i, j) -> (j, i)>}} : {MEM}, vector<8x4xf32>"
    np.testing.assert_array_equal(matrix(turned, "vector<8x4xf32>"), M.T)
    masked = "%k = vector.constant_mask [2, 5] : vector<4x8xi1>\n" + turned.replace("%pad {", "%pad, %k {")
    expected = np.full((8, 4), -1.0)
    expected[:5, :2] = M.T[:5, :2]
    np.testing.assert_array_equal(matrix(masked, "vector<8x4xf32>"), expected)


def write_text(op: str, size: str = MEM) -> str:
    return f"func.func @f(%x: {MEM}, %o: {size}) {{\n{PRELUDE}{op}\nreturn\n}}"


def test_transfer_write() -> None:
    zeros = np.zeros((4, 8), np.float32)
    edge = write_text(f"vector.transfer_write %m, %o[%c2, %c6] {{in_bounds = [false, false]}} : {A}, {MEM}")
    expected = zeros.copy()
    expected[2:, 6:] = M[:2, :2]
    np.testing.assert_array_equal(run(parse(edge), "f", [M, zeros])[1], expected)
    refused("OP102", edge.replace("[false, false]", "[true, false]"), [M, zeros])
    column = write_text(
        f"vector.transfer_write %col, %o[%c0, %c2] {{in_bounds = [true], permutation_map = affine_map<(i, j) -> (i)>}} : {V}, {MEM}"
    )
    expected = zeros.copy()
    expected[:, 2] = COL
    np.testing.assert_array_equal(run(parse(column), "f", [M, zeros])[1], expected)
    mask = "%k = vector.constant_mask [2, 5] : vector<4x8xi1>\n"
    masked = write_text(mask + f"vector.transfer_write %m, %o[%c0, %c0], %k {{in_bounds = [true, true]}} : {A}, {MEM}")
    expected = zeros.copy()
    expected[:2, :5] = M[:2, :5]
    np.testing.assert_array_equal(run(parse(masked), "f", [M, zeros])[1], expected)


def test_transfers_on_tensors() -> None:
    text = f"""func.func @f(%t: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {{
    %c2 = arith.constant 2 : index
    %c6 = arith.constant 6 : index
    %pad = arith.constant -1.0 : f32
    %v = vector.transfer_read %t[%c2, %c6], %pad : tensor<4x8xf32>, {A}
    %w = vector.transfer_write %v, %t[%c2, %c6] {{in_bounds = [false, false]}} : {A}, tensor<4x8xf32>
    %e = tensor.empty() : tensor<4x8xf32>
    %c0 = arith.constant 0 : index
    %z = vector.transfer_write %v, %e[%c0, %c0] {{in_bounds = [true, true]}} : {A}, tensor<4x8xf32>
    return %w, %z : tensor<4x8xf32>, tensor<4x8xf32>
    }}"""
    same, padded = run(parse(text), "f", [M])
    np.testing.assert_array_equal(same, M)
    assert padded[0, 0] == M[2, 6] and padded[3, 7] == -1


def test_poison_lanes_of_a_shuffle() -> None:
    refused("OP103", text_of(f"%r = vector.shuffle %col, %col [0, -1] : {V}, {V}", "vector<2xf32>"), [M, None])
