"""Ops built from Python have the types that upstream gives them: what is built prints, and upstream accepts it."""

from __future__ import annotations

from typing import Any

import pytest
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    MemRefType,
    ModuleOp,
    TensorType,
    UnitAttr,
    VectorType,
    f32,
    i1,
    i32,
)
from xdsl.dialects.vector import CombiningKindAttr, CombiningKindFlag
from xdsl.ir import Block
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.utils.exceptions import VerifyException

from gradir.dialects.upstream import arith, linalg, math, memref, scf, vector
from gradir.dialects.upstream.func import ReturnOp
from gradir.ir.builder import new_function
from gradir.ir.printer import print_op
from tests.upstream.roundtrip import reprint, upstream

ADD = CombiningKindAttr(CombiningKindFlag.ADD)
V4, V8, V48 = VectorType(f32, [4]), VectorType(f32, [8]), VectorType(f32, [4, 8])
M48 = MemRefType(f32, [4, 8])
ARGUMENTS: dict[str, Any] = {
    "a": V4,
    "b": V8,
    "m": V48,
    "s": f32,
    "k": VectorType(i1, [4]),
    "ids": VectorType(i32, [4]),
    "x": M48,
    "y": MemRefType(f32, [4]),
    "t": TensorType(f32, [4]),
}


def maps(*texts: str) -> ArrayAttr[AffineMapAttr]:
    return ArrayAttr(AffineMapAttr(AffineMap(2, 0, tuple(AffineDimExpr("ij".index(name)) for name in text))) for text in texts)


def built(make: Any) -> str:
    block = Block(arg_types=list(ARGUMENTS.values()))
    values = dict(zip(ARGUMENTS, block.args))
    zero = arith.ConstantOp.from_int_and_width(0, 64)
    index = arith.IndexCastOp(zero, arith.IndexType())
    ops = make(**values, i=index.result)
    for op in (zero, index, *ops):
        block.add_op(op)
    block.add_op(ReturnOp())
    module = ModuleOp([new_function("f", block, [])])
    module.verify()
    return print_op(module)


MAKERS: dict[str, Any] = {
    "arith": lambda a, k, s, **_: [
        arith.CmpfOp(a, a, "olt"),
        arith.CmpfOp(s, s, 1),
        arith.SelectOp(k, a, a),
        arith.FPToSIOp(a, VectorType(i32, [4])),
        arith.ExtUIOp(k, VectorType(i32, [4])),
    ],
    "integers": lambda ids, **_: [arith.CmpiOp(ids, ids, "slt"), arith.SIToFPOp(ids, V4)],
    "math": lambda a, s, **_: [math.IsNaNOp(a), math.IsFiniteOp(s), math.ClampFOp(s, s, s)],
    "contractions": lambda a, b, m, s, **_: [
        vector.OuterProductOp(a, b, m),
        vector.OuterProductOp(a, s),
        vector.MultiReductionOp(ADD, m, a, [1]),
        vector.ContractionOp(m, b, a, maps("ij", "j", "i"), ["parallel", "reduction"]),
        vector.ReductionOp(a, ADD),
        vector.ReductionOp(a, ADD, s),
    ],
    "shapes": lambda a, b, m, s, **_: [
        vector.TransposeOp(m, [1, 0]),
        vector.ShapeCastOp(m, VectorType(f32, [32])),
        vector.ConstantMaskOp([2], VectorType(i1, [4])),
        vector.ExtractStridedSliceOp(m, [1], [2], [1]),
        vector.InsertStridedSliceOp(a, b, [1], [1]),
        vector.FromElementsOp([s, s], VectorType(f32, [2])),
        vector.ToElementsOp(a),
        vector.InterleaveOp(a, a),
        vector.DeinterleaveOp(b),
        vector.BitcastOp(a, VectorType(i32, [4])),
    ],
    "memory": lambda a, k, i, ids, x, y, **_: [
        vector.CreateMaskOp([i], VectorType(i1, [4])),
        vector.StepOp(VectorType(arith.IndexType(), [4])),
        vector.GatherOp(x, [i, i], ids, k, a),
        vector.ScatterOp(y, [i], ids, k, a),
        memref.CopyOp(y, y),
        memref.CastOp(y, MemRefType(f32, [DYNAMIC_INDEX])),
        memref.CastOp.get(x, MemRefType(f32, [DYNAMIC_INDEX, 8])),
    ],
    "linalg": lambda s, t, y, **_: [
        linalg.FillOp([s], [t]),
        linalg.FillOp([s], [y]),
        linalg.CopyOp([t], [t]),
    ],
    "scf": lambda i, s, **_: [
        scf.ParallelOp([i], [i], [i], [Block([scf.ReduceOp()], arg_types=[arith.IndexType()])]),
    ],
}


@pytest.mark.parametrize("name", MAKERS)
def test_built_ops_print_parse_and_pass_upstream(name: str) -> None:
    text = built(MAKERS[name])
    assert reprint(text) == reprint(reprint(text))
    upstream(text)


def test_globals() -> None:
    dense = DenseIntOrFPElementsAttr.from_list(TensorType(f32, [2]), [1.0, 2.0])
    kind = MemRefType(f32, [2])
    ops = [
        memref.GlobalOp("w", kind, dense, constant=True, alignment=64),
        memref.GlobalOp("u", kind, UnitAttr()),
        memref.GlobalOp("e", kind, None, visibility=None),
    ]
    text = str(ModuleOp(ops))
    assert 'memref.global "private" constant @w : memref<2xf32> = dense<[1.000000e+00, 2.000000e+00]> {alignment = 64 : i64}' in text
    upstream(text)


def test_maps_of_whole_ops() -> None:
    block = Block(arg_types=[f32, TensorType(f32, [2, 3])])
    scalar, tensor = block.args
    fill, copy = linalg.FillOp([scalar], [tensor]), linalg.CopyOp([tensor], [tensor])
    assert [len(each.data.results) for each in fill.get_indexing_maps()] == [0, 2]
    assert [len(each.data.results) for each in copy.get_indexing_maps()] == [2, 2]


INVALID: dict[str, Any] = {
    "expected one input and one output": lambda s, t, **_: linalg.FillOp([s, s], [t]),
    "results must be the types of the tensor outputs": lambda s, t, **_: linalg.FillOp([s], [t], res=[]),
    "element types differ": lambda y, **_: memref.CopyOp(y, Block(arg_types=[MemRefType(i32, [4])]).args[0]),
    "needs 3 elements": lambda s, **_: vector.FromElementsOp([s], VectorType(f32, [3])),
    "indices, mask and values must have one shape": lambda a, k, ids, y, i, **_: vector.ScatterOp(
        y, [i], ids, k, Block(arg_types=[V8]).args[0]
    ),
    "expected a vector": lambda s, **_: vector.OuterProductOp(s, s),
    "exceed vector<8xf32>": lambda a, b, **_: vector.InsertStridedSliceOp(a, b, [6], [1]),
}


@pytest.mark.parametrize("message", INVALID)
def test_invalid_ops_are_refused(message: str) -> None:
    block = Block(arg_types=list(ARGUMENTS.values()))
    index = Block(arg_types=[arith.IndexType()]).args[0]
    with pytest.raises(VerifyException) as caught:
        INVALID[message](**dict(zip(ARGUMENTS, block.args)), i=index).verify_()
    assert message in str(caught.value)
