"""`nvgpu.warpgroup.*` for sm_90a under upstream's names and custom syntax (LLVM 22): products of factors in workgroup memory.

All are done by the 128 threads of a warpgroup together.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, IntegerAttr, MemRefType, UnitAttr, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, opt_prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from gradir.dialects.upstream.nvgpu_hopper import print_parts
from gradir.dialects.upstream.nvgpu_types import TensorMapType, WarpgroupAccumulatorType, WarpgroupDescriptorType, parse_elided

WARPGROUP = 128
"""Threads of a warpgroup."""
SWIZZLE = 128
"""Bytes of a row of a box."""


@irdl_op_definition
class WarpgroupGenerateDescriptorOp(IRDLOperation):
    """A factor in workgroup memory as copies by `tensorMap` left it: boxes with rows of one swizzle each.

    Wider memory is several boxes with all of its rows each, one behind the other: a factor that lies across the depth has them.
    """

    name = "nvgpu.warpgroup.generate.descriptor"

    tensor = operand_def(MemRefType)
    tensorMap = operand_def(TensorMapType)
    descriptor = result_def(WarpgroupDescriptorType)

    traits = traits_def(Pure())

    def verify_(self) -> None:
        tensor_map, tensor = self.tensorMap.type, self.tensor.type
        assert isinstance(tensor_map, TensorMapType) and isinstance(tensor, MemRefType)
        if tensor_map.swizzle.data != "swizzle_128b" or tensor_map.interleave.data != "none":
            raise VerifyException(f"{self.name}: expected a swizzle of 128 bytes without interleaving, found {tensor_map}")
        shape, box = tensor.get_shape(), tensor_map.tensor.get_shape()
        row = shape[-1] * getattr(tensor.element_type, "bitwidth", 0) // 8
        if len(shape) != 2 or len(box) != 2 or row == 0 or row % SWIZZLE:
            raise VerifyException(f"{self.name}: expected rows of a multiple of {SWIZZLE} bytes, found {tensor}")
        if row != SWIZZLE and shape[0] != box[0]:
            raise VerifyException(f"{self.name}: {tensor} has several boxes of the tensor map side by side, whose {box[0]} rows are others")

    @classmethod
    def parse(cls, parser: Parser) -> WarpgroupGenerateDescriptorOp:
        tensor = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        tensor_map = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        memory = parser.resolve_operand(tensor, parser.parse_type())
        parser.parse_punctuation(",")
        described = parser.resolve_operand(tensor_map, parse_elided(parser, TensorMapType))
        parser.parse_punctuation("->")
        result = parse_elided(parser, WarpgroupDescriptorType)
        return cls.create(operands=[memory, described], result_types=[result], attributes=attributes)

    def print(self, printer: Printer) -> None:
        print_parts(printer, " ", self.tensor, ", ", self.tensorMap)
        printer.print_op_attributes(self.attributes)
        print_parts(printer, " : ", self.tensor.type, ", ", self.tensorMap.type, " -> ", self.descriptor.type)


@irdl_op_definition
class WarpgroupMmaInitAccumulatorOp(IRDLOperation):
    """Zeros."""

    name = "nvgpu.warpgroup.mma.init.accumulator"

    matrixC = result_def(WarpgroupAccumulatorType)

    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> WarpgroupMmaInitAccumulatorOp:
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation("->")
        return cls.create(result_types=[parse_elided(parser, WarpgroupAccumulatorType)], attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_op_attributes(self.attributes)
        print_parts(printer, " -> ", self.matrixC.type)


@irdl_op_definition
class WarpgroupMmaOp(IRDLOperation):
    """`matrixD = A @ B + matrixC`; afterwards at most `waitGroup` (1 where absent) products of the warpgroup are under way.

    Both factors lie with the product's inner dimension contiguous; A or B the other way with `transposeA`, `transposeB`.
    """

    name = "nvgpu.warpgroup.mma"

    descriptorA = operand_def(WarpgroupDescriptorType)
    descriptorB = operand_def(WarpgroupDescriptorType)
    matrixC = operand_def(WarpgroupAccumulatorType)
    waitGroup = opt_prop_def(IntegerAttr.constr(i64))
    transposeA = opt_prop_def(UnitAttr)
    transposeB = opt_prop_def(UnitAttr)
    matrixD = result_def(WarpgroupAccumulatorType)

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    WORDS: ClassVar[tuple[str, ...]] = ("waitGroup", "transposeA", "transposeB")

    @staticmethod
    def make(a: SSAValue, b: SSAValue, c: SSAValue, *, turned: tuple[bool, bool] = (False, False), groups: int = 0) -> WarpgroupMmaOp:
        """`a @ b + c`; `turned`: which factors lie across the depth."""
        properties: dict[str, Attribute] = {"waitGroup": IntegerAttr(groups, i64)}
        properties.update((word, UnitAttr()) for word, there in zip(("transposeA", "transposeB"), turned) if there)
        return WarpgroupMmaOp.create(operands=[a, b, c], result_types=[c.type], properties=properties)

    @property
    def groups(self) -> int:
        """Products that may be under way afterwards."""
        return self.waitGroup.value.data if self.waitGroup is not None else 1

    @property
    def shape(self) -> tuple[int, int, int]:
        """(m, n, k)."""
        a, b = self.descriptorA.type, self.descriptorB.type
        assert isinstance(a, WarpgroupDescriptorType) and isinstance(b, WarpgroupDescriptorType)
        (m, k), (_, n) = a.tensor.get_shape(), b.tensor.get_shape()
        return m, n, k

    def verify_(self) -> None:
        a, b, c = self.descriptorA.type, self.descriptorB.type, self.matrixC.type
        assert isinstance(a, WarpgroupDescriptorType) and isinstance(b, WarpgroupDescriptorType) and isinstance(c, WarpgroupAccumulatorType)
        m, n, k = self.shape
        if b.tensor.get_shape()[0] != k or c.shape != (m, n) or c != self.matrixD.type:
            raise VerifyException(f"{self.name}: factors {a.tensor}, {b.tensor} do not give {c.fragmented}")
        kind = a.tensor.element_type
        if not isinstance(kind, Float16Type | BFloat16Type) or b.tensor.element_type != kind or c.fragmented.element_type != Float32Type():
            raise VerifyException(f"{self.name}: expected factors of f16 or of bf16 and f32 sums, found {a.tensor}, {b.tensor}")
        if m % 64 or n % 8 or not 0 < n <= 256 or k % 16:
            raise VerifyException(f"{self.name}: expected m % 64 = 0, n % 8 = 0 up to 256, k % 16 = 0, found {m}, {n}, {k}")

    @classmethod
    def parse(cls, parser: Parser) -> WarpgroupMmaOp:
        names = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        properties = {word: attributes.pop(word) for word in cls.WORDS if word in attributes}
        parser.parse_punctuation(":")
        types: list[Attribute] = [parse_elided(parser, WarpgroupDescriptorType)]
        parser.parse_punctuation(",")
        types.append(parse_elided(parser, WarpgroupDescriptorType))
        parser.parse_punctuation(",")
        types.append(parse_elided(parser, WarpgroupAccumulatorType))
        parser.parse_punctuation("->")
        result = parse_elided(parser, WarpgroupAccumulatorType)
        operands = parser.resolve_operands(names, types, parser.pos)
        return cls.create(operands=operands, result_types=[result], properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        print_parts(printer, " ", self.operands)
        shown: dict[str, Attribute] = {word: self.properties[word] for word in self.WORDS if word in self.properties}
        printer.print_op_attributes({**shown, **self.attributes})
        print_parts(printer, " : ", self.descriptorA.type, ", ", self.descriptorB.type, ", ", self.matrixC.type, " -> ", self.matrixD.type)


@irdl_op_definition
class WarpgroupMmaStoreOp(IRDLOperation):
    """The matrix goes to memory, element by element of each thread."""

    name = "nvgpu.warpgroup.mma.store"

    matrixD = operand_def(WarpgroupAccumulatorType)
    dstMemref = operand_def(MemRefType)

    traits = traits_def(MemoryWriteEffect())

    def verify_(self) -> None:
        matrix, memory = self.matrixD.type, self.dstMemref.type
        assert isinstance(matrix, WarpgroupAccumulatorType) and isinstance(memory, MemRefType)
        if matrix.shape != memory.get_shape() or matrix.fragmented.element_type != memory.element_type:
            raise VerifyException(f"{self.name}: expected memory like {matrix.fragmented}, found {memory}")

    @classmethod
    def parse(cls, parser: Parser) -> WarpgroupMmaStoreOp:
        matrix = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        memory = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        value = parser.resolve_operand(matrix, parse_elided(parser, WarpgroupAccumulatorType))
        parser.parse_keyword("to")
        return cls.create(operands=[value, parser.resolve_operand(memory, parser.parse_type())], attributes=attributes)

    def print(self, printer: Printer) -> None:
        print_parts(printer, " ", self.matrixD, ", ", self.dstMemref)
        printer.print_op_attributes(self.attributes)
        print_parts(printer, " : ", self.matrixD.type, " to ", self.dstMemref.type)


OPS = [WarpgroupGenerateDescriptorOp, WarpgroupMmaInitAccumulatorOp, WarpgroupMmaOp, WarpgroupMmaStoreOp]
