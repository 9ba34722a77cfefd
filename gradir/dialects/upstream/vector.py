"""`vector`: xDSL's ops, those that it lacks (see `vector_ops`), and replacements where its traits or types are wrong."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects import vector as xdsl_vector
from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import IndexType, VectorType
from xdsl.dialects.vector import (
    BroadcastOp as BroadcastOp,
    CombiningKindAttr as CombiningKindAttr,
    CombiningKindFlag as CombiningKindFlag,
    ExtractOp as ExtractOp,
    FMAOp as FMAOp,
    InsertOp as InsertOp,
    LoadOp as LoadOp,
    MaskedLoadOp as MaskedLoadOp,
    MaskedStoreOp as MaskedStoreOp,
    PrintOp as PrintOp,
    ShuffleOp as ShuffleOp,
    StoreOp as StoreOp,
    TransferReadOp as TransferReadOp,
    TransferWriteOp as TransferWriteOp,
    VectorTransferOperation as VectorTransferOperation,
)
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .extend import extended
from .vector_contraction import (
    ContractionOp,
    IteratorTypeAttr,
    MultiReductionOp,
    OuterProductOp,
    contract_properties as contract_properties,
)
from .vector_memory import GatherOp, ScatterOp
from .vector_shape import (
    ConstantMaskOp,
    DeinterleaveOp,
    ExtractStridedSliceOp,
    FromElementsOp,
    InsertStridedSliceOp,
    InterleaveOp,
    ShapeCastOp,
    StepOp,
    ToElementsOp,
    TransposeOp,
)


@irdl_op_definition
class ReductionOp(IRDLOperation):
    """`dest = combine(acc, vector[0], .., vector[n-1])`; in index order unless `fastmath<reassoc>`."""

    name = "vector.reduction"

    T: ClassVar = VarConstraint("T", AnyAttr())

    vector = operand_def(VectorType.constr(T))
    acc = opt_operand_def(T)
    dest = result_def(T)
    kind = prop_def(CombiningKindAttr)
    fastmath = prop_def(FastMathFlagsAttr, default_value=FastMathFlagsAttr("none"))

    traits = traits_def(Pure())

    assembly_format = "$kind `,` $vector (`,` $acc^)? (`fastmath` `` $fastmath^)? attr-dict `:` type($vector) `into` type($dest)"

    def __init__(
        self,
        vector: SSAValue | Operation,
        kind: CombiningKindAttr,
        acc: SSAValue | Operation | None = None,
        fastmath: FastMathFlagsAttr | None = None,
    ) -> None:
        value = SSAValue.get(vector, type=VectorType)
        super().__init__(operands=[value, acc], result_types=[value.type.element_type], properties={"kind": kind, "fastmath": fastmath})


@irdl_op_definition
class BitcastOp(IRDLOperation):
    """The same bits read as another element type: the last dimension's size times its width is unchanged."""

    name = "vector.bitcast"

    source = operand_def(VectorType)
    result = result_def(VectorType)

    traits = traits_def(Pure())

    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    def __init__(self, source: SSAValue | Operation, result_type: VectorType) -> None:
        super().__init__(operands=[source], result_types=[result_type])

    verify_ = xdsl_vector.BitcastOp.verify_


@irdl_op_definition
class CreateMaskOp(IRDLOperation):
    """`mask[i0, i1, ..] = i0 < size0 and i1 < size1 and ..`"""

    name = "vector.create_mask"

    mask_dim_sizes = var_operand_def(IndexType)
    mask_vector = result_def(VectorType)

    traits = traits_def(Pure())

    assembly_format = "$mask_dim_sizes attr-dict `:` type(results)"

    def __init__(self, sizes: list[Operation | SSAValue], result_type: VectorType) -> None:
        super().__init__(operands=(sizes,), result_types=(result_type,))

    def verify_(self) -> None:
        rank = len(self.mask_vector.type.get_shape())
        if rank != len(self.mask_dim_sizes):
            raise VerifyException(f"{self.name}: expected {rank} sizes for {self.mask_vector.type}, got {len(self.mask_dim_sizes)}")


Vector = extended(
    xdsl_vector.Vector,
    [
        BitcastOp,
        ConstantMaskOp,
        ContractionOp,
        CreateMaskOp,
        DeinterleaveOp,
        ExtractStridedSliceOp,
        FromElementsOp,
        GatherOp,
        InsertStridedSliceOp,
        InterleaveOp,
        MultiReductionOp,
        OuterProductOp,
        ReductionOp,
        ScatterOp,
        ShapeCastOp,
        StepOp,
        ToElementsOp,
        TransposeOp,
    ],
    [IteratorTypeAttr],
)
