"""`vector` ops that access memory element by element and that xDSL lacks: gather and scatter.

https://mlir.llvm.org/docs/Dialects/Vector/
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, MemRefType, TensorType, VectorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, base, irdl_op_definition, operand_def, result_def, traits_def, var_operand_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException


@irdl_op_definition
class GatherOp(IRDLOperation):
    """`result[i] = mask[i] ? base[offsets with indices[i] added to the last] : pass_thru[i]`"""

    name = "vector.gather"

    base = operand_def(base(MemRefType) | base(TensorType))
    offsets = var_operand_def(IndexType)
    indices = operand_def(VectorType)
    mask = operand_def(VectorType)
    pass_thru = operand_def(VectorType)
    result = result_def(VectorType)

    traits = traits_def(MemoryReadEffect())

    assembly_format = (
        "$base `[` $offsets `]` `[` $indices `]` `,` $mask `,` $pass_thru attr-dict "
        "`:` type($base) `,` type($indices) `,` type($mask) `,` type($pass_thru) `into` type($result)"
    )

    def __init__(self, source: SSAValue, offsets: Sequence[SSAValue], indices: SSAValue, mask: SSAValue, pass_thru: SSAValue) -> None:
        super().__init__(operands=[source, offsets, indices, mask, pass_thru], result_types=[pass_thru.type])

    def verify_(self) -> None:
        _verify_lanes(self, self.base.type, len(self.offsets), [self.indices.type, self.mask.type, self.pass_thru.type])


@irdl_op_definition
class ScatterOp(IRDLOperation):
    """`base[offsets with indices[i] added to the last] = valueToStore[i]` where `mask[i]`, in index order."""

    name = "vector.scatter"

    base = operand_def(MemRefType)
    offsets = var_operand_def(IndexType)
    indices = operand_def(VectorType)
    mask = operand_def(VectorType)
    valueToStore = operand_def(VectorType)

    traits = traits_def(MemoryWriteEffect())

    assembly_format = (
        "$base `[` $offsets `]` `[` $indices `]` `,` $mask `,` $valueToStore attr-dict "
        "`:` type($base) `,` type($indices) `,` type($mask) `,` type($valueToStore)"
    )

    def __init__(self, dest: SSAValue, offsets: Sequence[SSAValue], indices: SSAValue, mask: SSAValue, value: SSAValue) -> None:
        super().__init__(operands=[dest, offsets, indices, mask, value])

    def verify_(self) -> None:
        _verify_lanes(self, self.base.type, len(self.offsets), [self.indices.type, self.mask.type, self.valueToStore.type])


def _verify_lanes(op: IRDLOperation, memory: Attribute, offsets: int, lanes: Sequence[Attribute]) -> None:
    assert isinstance(memory, MemRefType | TensorType)
    if offsets != len(memory.get_shape()):
        raise VerifyException(f"{op.name}: expected {len(memory.get_shape())} offsets for {memory}, got {offsets}")
    shapes = {tuple(type_.get_shape()) for type_ in lanes if isinstance(type_, VectorType)}
    if len(shapes) != 1:
        raise VerifyException(f"{op.name}: indices, mask and values must have one shape, got {', '.join(map(str, lanes))}")
