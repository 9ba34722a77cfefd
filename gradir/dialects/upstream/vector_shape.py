"""`vector` ops that move elements and that xDSL lacks: transpose, shape_cast, strided slices, masks, (de)interleave, step.

https://mlir.llvm.org/docs/Dialects/Vector/
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import ClassVar, Self

from xdsl.dialects.builtin import I64, ArrayAttr, DenseArrayBase, IntegerAttr, VectorType, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .extend import parse_types, print_operands, print_types


def i64_list(values: Sequence[int]) -> ArrayAttr[IntegerAttr[I64]]:
    """The `I64ArrayAttr` of upstream's strided slices."""
    return ArrayAttr([IntegerAttr(value, i64) for value in values])


def int_list(attribute: ArrayAttr[IntegerAttr[I64]]) -> list[int]:
    """The numbers of an `I64ArrayAttr`."""
    return [value.value.data for value in attribute]


def _vector(type_: Attribute) -> VectorType:
    """`type_`, which the operand's constraint has checked to be a vector."""
    assert isinstance(type_, VectorType)
    return type_


@irdl_op_definition
class TransposeOp(IRDLOperation):
    """`result[i[permutation[0]], ..] = vector[i[0], ..]`: result dim `k` is operand dim `permutation[k]`."""

    name = "vector.transpose"

    T: ClassVar = VarConstraint("T", AnyAttr())

    vector = operand_def(VectorType.constr(T))
    permutation = prop_def(DenseArrayBase.constr(i64))
    result = result_def(VectorType.constr(T))

    traits = traits_def(Pure())

    assembly_format = "$vector `,` $permutation attr-dict `:` type($vector) `to` type($result)"

    def __init__(self, vector: SSAValue, permutation: Sequence[int]) -> None:
        type_ = vector.type
        assert isinstance(type_, VectorType)
        shape = [type_.get_shape()[dim] for dim in permutation]
        super().__init__(
            operands=[vector],
            result_types=[VectorType(type_.element_type, shape)],
            properties={"permutation": DenseArrayBase.from_list(i64, permutation)},
        )

    def verify_(self) -> None:
        permutation = self.permutation.get_values()
        shape = _vector(self.vector.type).get_shape()
        if sorted(permutation) != list(range(len(shape))):
            raise VerifyException(f"{self.name}: {list(permutation)} is no permutation of {len(shape)} dims")
        if [shape[dim] for dim in permutation] != list(self.result.type.get_shape()):
            raise VerifyException(f"{self.name}: result shape must be {[shape[dim] for dim in permutation]}, got {self.result.type}")


@irdl_op_definition
class ShapeCastOp(IRDLOperation):
    """The same elements in row-major order under another shape."""

    name = "vector.shape_cast"

    T: ClassVar = VarConstraint("T", AnyAttr())

    source = operand_def(VectorType.constr(T))
    result = result_def(VectorType.constr(T))

    traits = traits_def(Pure())

    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    def __init__(self, source: SSAValue | Operation, result_type: VectorType) -> None:
        super().__init__(operands=[source], result_types=[result_type])

    def verify_(self) -> None:
        if prod(_vector(self.source.type).get_shape()) != prod(self.result.type.get_shape()):
            raise VerifyException(f"{self.name}: {self.source.type} and {self.result.type} have different numbers of elements")


@irdl_op_definition
class StepOp(IRDLOperation):
    """`result[i] = i`"""

    name = "vector.step"

    result = result_def(VectorType)

    traits = traits_def(Pure())

    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, result_type: VectorType) -> None:
        super().__init__(result_types=[result_type])


@irdl_op_definition
class ConstantMaskOp(IRDLOperation):
    """`result[i0, i1, ..] = i0 < mask_dim_sizes[0] and i1 < mask_dim_sizes[1] and ..`"""

    name = "vector.constant_mask"

    mask_dim_sizes = prop_def(DenseArrayBase.constr(i64))
    result = result_def(VectorType)

    traits = traits_def(Pure())

    assembly_format = "$mask_dim_sizes attr-dict `:` type($result)"

    def __init__(self, sizes: Sequence[int], result_type: VectorType) -> None:
        super().__init__(result_types=[result_type], properties={"mask_dim_sizes": DenseArrayBase.from_list(i64, sizes)})

    def verify_(self) -> None:
        sizes, shape = self.mask_dim_sizes.get_values(), self.result.type.get_shape()
        if len(sizes) != len(shape) or any(not 0 <= size <= bound for size, bound in zip(sizes, shape)):
            raise VerifyException(f"{self.name}: sizes {list(sizes)} do not fit {self.result.type}")


@irdl_op_definition
class ExtractStridedSliceOp(IRDLOperation):
    """The elements `offsets + strides * i` of the leading dims, `i < sizes`; trailing dims are kept whole."""

    name = "vector.extract_strided_slice"

    source = operand_def(VectorType)
    offsets = prop_def(ArrayAttr[IntegerAttr[I64]])
    sizes = prop_def(ArrayAttr[IntegerAttr[I64]])
    strides = prop_def(ArrayAttr[IntegerAttr[I64]])
    result = result_def(VectorType)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)

    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    def __init__(self, source: SSAValue, offsets: Sequence[int], sizes: Sequence[int], strides: Sequence[int]) -> None:
        type_ = source.type
        assert isinstance(type_, VectorType)
        super().__init__(
            operands=[source],
            result_types=[VectorType(type_.element_type, [*sizes, *type_.get_shape()[len(sizes) :]])],
            properties={"offsets": i64_list(offsets), "sizes": i64_list(sizes), "strides": i64_list(strides)},
        )

    def verify_(self) -> None:
        shape, sizes = _vector(self.source.type).get_shape(), int_list(self.sizes)
        counts = len(self.offsets), len(sizes), len(self.strides)
        if len(set(counts)) > 1 or len(sizes) > len(shape):
            found = f"found {counts[0]}, {counts[1]} and {counts[2]}"
            raise VerifyException(f"{self.name}: offsets, sizes and strides must be equally many, at most {len(shape)}, {found}")
        expected = [*sizes, *shape[len(sizes) :]]
        if list(self.result.type.get_shape()) != expected:
            raise VerifyException(f"{self.name}: result shape must be {expected}, got {self.result.type}")
        for dim, (offset, size) in enumerate(zip(int_list(self.offsets), sizes, strict=True)):
            if offset < 0 or offset + size > shape[dim]:
                raise VerifyException(f"{self.name}: elements {offset} to {offset + size} of dim {dim} exceed {self.source.type}")


@irdl_op_definition
class InsertStridedSliceOp(IRDLOperation):
    """`dest` with `source` at `offsets + strides * i`; a `source` of smaller rank lies in the trailing dims."""

    name = "vector.insert_strided_slice"

    T: ClassVar = VarConstraint("T", AnyAttr())

    source = operand_def(VectorType)
    dest = operand_def(T)
    offsets = prop_def(ArrayAttr[IntegerAttr[I64]])
    strides = prop_def(ArrayAttr[IntegerAttr[I64]])
    result = result_def(T)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)

    assembly_format = "$source `,` $dest attr-dict `:` type($source) `into` type($dest)"

    def __init__(self, source: SSAValue, dest: SSAValue, offsets: Sequence[int], strides: Sequence[int]) -> None:
        super().__init__(
            operands=[source, dest],
            result_types=[dest.type],
            properties={"offsets": i64_list(offsets), "strides": i64_list(strides)},
        )

    def verify_(self) -> None:
        dest = self.dest.type
        assert isinstance(dest, VectorType) and isinstance(self.source.type, VectorType)
        shape, source = dest.get_shape(), self.source.type.get_shape()
        sizes = [1] * (len(shape) - len(source)) + list(source)
        if len(self.offsets) != len(sizes):
            raise VerifyException(f"{self.name}: expected {len(sizes)} offsets for {dest}, got {len(self.offsets)}")
        for dim, (offset, size) in enumerate(zip(int_list(self.offsets), sizes, strict=True)):
            if offset < 0 or offset + size > shape[dim]:
                raise VerifyException(f"{self.name}: elements {offset} to {offset + size} of dim {dim} exceed {dest}")


@irdl_op_definition
class FromElementsOp(IRDLOperation):
    """A vector of scalars in row-major order."""

    name = "vector.from_elements"

    T: ClassVar = VarConstraint("T", AnyAttr())

    elements = var_operand_def(T)
    dest = result_def(VectorType.constr(T))

    traits = traits_def(Pure())

    assembly_format = "$elements attr-dict `:` type($dest)"

    def __init__(self, elements: Sequence[SSAValue], result_type: VectorType) -> None:
        super().__init__(operands=[elements], result_types=[result_type])

    def verify_(self) -> None:
        expected = prod(self.dest.type.get_shape())
        if len(self.elements) != expected:
            raise VerifyException(f"{self.name}: {self.dest.type} needs {expected} elements, got {len(self.elements)}")


@irdl_op_definition
class ToElementsOp(IRDLOperation):
    """The scalars of a vector in row-major order."""

    name = "vector.to_elements"

    T: ClassVar = VarConstraint("T", AnyAttr())

    source = operand_def(VectorType.constr(T))
    elements = var_result_def(T)

    traits = traits_def(Pure())

    def __init__(self, source: SSAValue) -> None:
        type_ = source.type
        assert isinstance(type_, VectorType)
        super().__init__(operands=[source], result_types=[[type_.element_type] * prod(type_.get_shape())])

    def print(self, printer: Printer) -> None:
        print_operands(printer, self.operands)
        printer.print_op_attributes(self.attributes)
        print_types(printer, [self.source.type])

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        position = parser.pos
        name = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        (type_,) = parse_types(parser)
        if not isinstance(type_, VectorType):
            parser.raise_error(f"expected a vector type, got {type_}", position)
        results = [type_.element_type] * prod(type_.get_shape())
        return cls.create(operands=[parser.resolve_operand(name, type_)], result_types=results, attributes=attributes)


@irdl_op_definition
class InterleaveOp(IRDLOperation):
    """`result[.., 2i] = lhs[.., i]`, `result[.., 2i+1] = rhs[.., i]`"""

    name = "vector.interleave"

    T: ClassVar = VarConstraint("T", AnyAttr())

    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(VectorType)

    traits = traits_def(Pure())

    assembly_format = "$lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)"

    def __init__(self, lhs: SSAValue, rhs: SSAValue) -> None:
        type_ = lhs.type
        assert isinstance(type_, VectorType)
        *outer, inner = type_.get_shape()
        super().__init__(operands=[lhs, rhs], result_types=[VectorType(type_.element_type, [*outer, 2 * inner])])


@irdl_op_definition
class DeinterleaveOp(IRDLOperation):
    """`res1[.., i] = source[.., 2i]`, `res2[.., i] = source[.., 2i+1]`"""

    name = "vector.deinterleave"

    T: ClassVar = VarConstraint("T", AnyAttr())

    source = operand_def(VectorType)
    res1 = result_def(T)
    res2 = result_def(T)

    traits = traits_def(Pure())

    assembly_format = "$source attr-dict `:` type($source) `->` type($res1)"

    def __init__(self, source: SSAValue) -> None:
        type_ = source.type
        assert isinstance(type_, VectorType)
        *outer, inner = type_.get_shape()
        half = VectorType(type_.element_type, [*outer, inner // 2])
        super().__init__(operands=[source], result_types=[half, half])
