"""`nvgpu` under upstream's names and custom syntax (LLVM 22): fragments of matrices, asynchronous copies to workgroup memory.

xDSL has no such dialect. Fragments are vectors of what one lane holds: `vector<4x2xbf16>` is four registers of two halves (PTX ISA,
"Matrix fragments for mma.m16n8k16"). Ops on fragments are done by all lanes of a warp together.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    MemRefType,
    UnitAttr,
    VectorType,
    i32,
    i64,
)
from xdsl.ir import Attribute, Dialect, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from gradir.dialects.upstream import nvgpu_hopper, nvgpu_types, nvgpu_warpgroup

_INDEX = IndexType()


@irdl_attr_definition
class TokenType(ParametrizedAttribute, TypeAttribute):
    """`!nvgpu.device.async.token`: copies that may still be under way."""

    name = "nvgpu.device.async.token"


TOKEN = TokenType()


def _parse_indexed(parser: Parser) -> tuple[UnresolvedOperand, list[UnresolvedOperand]]:
    memory = parser.parse_unresolved_operand()
    return memory, parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_unresolved_operand)


def _print_indexed(printer: Printer, memory: SSAValue, indices: Sequence[SSAValue]) -> None:
    printer.print_ssa_value(memory)
    printer.print_string("[")
    printer.print_list(indices, printer.print_ssa_value)
    printer.print_string("]")


def _print_properties(printer: Printer, shown: dict[str, Attribute], attributes: dict[str, Attribute]) -> None:
    printer.print_op_attributes({**shown, **attributes})


@irdl_op_definition
class LdMatrixOp(IRDLOperation):
    """`numTiles` (1, 2 or 4) matrices of 8 rows of 16 bytes: lane l names the row l % 8 of matrix l / 8, and receives of every matrix
    the 4 bytes at column l % 4 of row l / 4; with `transpose` (2-byte elements) the elements of its transpose there."""

    name = "nvgpu.ldmatrix"

    srcMemref = operand_def(MemRefType)
    indices = var_operand_def(_INDEX)
    transpose = prop_def(BoolAttr)
    numTiles = prop_def(IntegerAttr.constr(i32))
    res = result_def(VectorType)

    traits = traits_def(MemoryReadEffect())

    @staticmethod
    def make(memory: SSAValue, indices: Sequence[SSAValue], result: VectorType, transpose: bool) -> LdMatrixOp:
        """The fragments of type `result`, one matrix for each of its rows."""
        tiles = IntegerAttr(result.get_shape()[0], i32)
        properties: dict[str, Attribute] = {"transpose": BoolAttr.from_bool(transpose), "numTiles": tiles}
        return LdMatrixOp.create(operands=[memory, *indices], result_types=[result], properties=properties)

    def verify_(self) -> None:
        shape = self.res.type.get_shape()
        width = getattr(self.res.type.element_type, "bitwidth", 0)
        if self.numTiles.value.data not in (1, 2, 4):
            raise VerifyException(f"nvgpu.ldmatrix: numTiles: expected 1, 2 or 4, found {self.numTiles.value.data}")
        if len(shape) != 2 or shape[0] != self.numTiles.value.data or shape[1] * width != 32:
            raise VerifyException(f"nvgpu.ldmatrix: expected one row of 32 bits for each matrix, found {self.res.type}")
        if bool(self.transpose) and width != 16:
            raise VerifyException(f"nvgpu.ldmatrix: transpose takes elements of 16 bits, found {self.res.type}")

    @classmethod
    def parse(cls, parser: Parser) -> LdMatrixOp:
        name, places = _parse_indexed(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        memory = parser.parse_type()
        parser.parse_punctuation("->")
        result = parser.parse_type()
        properties = {k: attributes.pop(k) for k in ("numTiles", "transpose") if k in attributes}
        operands = [parser.resolve_operand(name, memory), *(parser.resolve_operand(p, _INDEX) for p in places)]
        return cls.create(operands=operands, result_types=[result], properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        _print_indexed(printer, self.srcMemref, self.indices)
        _print_properties(printer, {"numTiles": self.numTiles, "transpose": self.transpose}, self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.srcMemref.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.res.type)


SHAPES: dict[tuple[int, int, int], tuple[tuple[int, int], tuple[int, int]]] = {
    (16, 8, 16): ((4, 2), (2, 2)),
    (16, 8, 8): ((4, 1), (2, 1)),
    (16, 8, 32): ((4, 4), (2, 4)),
}
"""(m, n, k) of a product -> the shapes of a lane's left and right fragments; results are always 2x2."""


@irdl_op_definition
class MmaSyncOp(IRDLOperation):
    """`res = matrixA @ matrixB + matrixC` of m x k, k x n and m x n elements that the lanes of a warp hold together.

    16x8x16 of f16 or bf16 into f32, 16x8x8 of f32 rounded to tf32 into f32 (`tf32Enabled`), 16x8x32 of i8 into i32.
    """

    name = "nvgpu.mma.sync"

    matrixA = operand_def(VectorType)
    matrixB = operand_def(VectorType)
    matrixC = operand_def(VectorType)
    mmaShape = prop_def(ArrayAttr[IntegerAttr])
    tf32Enabled = opt_prop_def(UnitAttr)
    res = result_def(VectorType)

    traits = traits_def(Pure())

    @staticmethod
    def make(a: SSAValue, b: SSAValue, c: SSAValue, shape: Sequence[int], *, tf32: bool = False) -> MmaSyncOp:
        """One product of fragments."""
        properties: dict[str, Attribute] = {"mmaShape": ArrayAttr([IntegerAttr(n, i64) for n in shape])}
        if tf32:
            properties["tf32Enabled"] = UnitAttr()
        return MmaSyncOp.create(operands=[a, b, c], result_types=[c.type], properties=properties)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(m, n, k)."""
        m, n, k = (i.value.data for i in self.mmaShape.data)
        return m, n, k

    def verify_(self) -> None:
        if len(self.mmaShape.data) != 3 or self.shape not in SHAPES:
            raise VerifyException(f"nvgpu.mma.sync: mmaShape: expected one of {[list(s) for s in SHAPES]}, found {self.mmaShape}")
        expected = (*SHAPES[self.shape], (2, 2), (2, 2))
        values = (self.matrixA, self.matrixB, self.matrixC, self.res)
        found = tuple(v.type.get_shape() for v in values if isinstance(v.type, VectorType))
        if found != expected:
            raise VerifyException(f"nvgpu.mma.sync: fragments of {list(self.shape)} have shapes {expected}, found {found}")
        if self.res.type != self.matrixC.type:
            raise VerifyException(f"nvgpu.mma.sync: the result is of type {self.res.type}, the accumulator of {self.matrixC.type}")

    @classmethod
    def parse(cls, parser: Parser) -> MmaSyncOp:
        names = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
        parser.parse_punctuation("->")
        result = parser.parse_type()
        properties = {k: attributes.pop(k) for k in ("mmaShape", "tf32Enabled") if k in attributes}
        operands = [parser.resolve_operand(n, t) for n, t in zip(names, types)]
        return cls.create(operands=operands, result_types=[result], properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string("(")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_string(")")
        # upstream writes the sizes without their type
        printer.print_string(" {mmaShape = [" + ", ".join(map(str, self.shape)) + "]")
        printer.print_string(", tf32Enabled}" if self.tf32Enabled is not None else "}")
        printer.print_string(" : (")
        printer.print_list([o.type for o in self.operands], printer.print_attribute)
        printer.print_string(") -> ")
        printer.print_attribute(self.res.type)


@irdl_op_definition
class DeviceAsyncCopyOp(IRDLOperation):
    """`dstElements` consecutive elements (4, 8 or 16 bytes) from global to workgroup memory, seen there after a wait for the copy's group.

    With `srcElements` only so many are read, from 0 to all; the others become zero.
    """

    name = "nvgpu.device_async_copy"

    dst = operand_def(MemRefType)
    dstIndices = var_operand_def(_INDEX)
    src = operand_def(MemRefType)
    srcIndices = var_operand_def(_INDEX)
    srcElements = opt_operand_def(_INDEX)
    dstElements = prop_def(IntegerAttr.constr(_INDEX))
    bypassL1 = opt_prop_def(UnitAttr)
    asyncToken = result_def(TokenType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @staticmethod
    def make(
        src: SSAValue,
        src_indices: Sequence[SSAValue],
        dst: SSAValue,
        dst_indices: Sequence[SSAValue],
        elements: int,
        src_elements: SSAValue | None = None,
        *,
        bypass: bool = False,
    ) -> DeviceAsyncCopyOp:
        """A copy of `elements` elements; `bypass`: not through L1 (16 bytes only)."""
        last = [] if src_elements is None else [src_elements]
        segments = DenseArrayBase.from_list(i32, [1, len(dst_indices), 1, len(src_indices), len(last)])
        properties: dict[str, Attribute] = {"dstElements": IntegerAttr(elements, _INDEX), "operandSegmentSizes": segments}
        if bypass:
            properties["bypassL1"] = UnitAttr()
        operands = [dst, *dst_indices, src, *src_indices, *last]
        return DeviceAsyncCopyOp.create(operands=operands, result_types=[TOKEN], properties=properties)

    @property
    def bytes(self) -> int:
        """Bytes that are written."""
        element = self.src.type.element_type if isinstance(self.src.type, MemRefType) else None
        return self.dstElements.value.data * getattr(element, "bitwidth", 0) // 8

    def verify_(self) -> None:
        if self.bytes not in (4, 8, 16):
            raise VerifyException(f"nvgpu.device_async_copy: expected 4, 8 or 16 bytes, found {self.bytes}")
        if self.bypassL1 is not None and self.bytes != 16:
            raise VerifyException(f"nvgpu.device_async_copy: bypassL1 takes copies of 16 bytes, found {self.bytes}")

    @classmethod
    def parse(cls, parser: Parser) -> DeviceAsyncCopyOp:
        source, source_places = _parse_indexed(parser)
        parser.parse_punctuation(",")
        target, target_places = _parse_indexed(parser)
        parser.parse_punctuation(",")
        elements = parser.parse_integer()
        count = parser.parse_unresolved_operand() if parser.parse_optional_punctuation(",") else None
        attributes = parser.parse_optional_attr_dict()
        bypass = attributes.pop("bypassL1", None) is not None
        parser.parse_punctuation(":")
        source_type = parser.parse_type()
        parser.parse_keyword("to")
        target_type = parser.parse_type()
        resolve = parser.resolve_operand
        op = cls.make(
            resolve(source, source_type),
            [resolve(p, _INDEX) for p in source_places],
            resolve(target, target_type),
            [resolve(p, _INDEX) for p in target_places],
            elements,
            resolve(count, _INDEX) if count is not None else None,
            bypass=bypass,
        )
        op.attributes.update(attributes)
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        _print_indexed(printer, self.src, self.srcIndices)
        printer.print_string(", ")
        _print_indexed(printer, self.dst, self.dstIndices)
        printer.print_string(f", {self.dstElements.value.data}")
        if self.srcElements is not None:
            printer.print_string(", ")
            printer.print_ssa_value(self.srcElements)
        shown: dict[str, Attribute] = {"bypassL1": self.bypassL1} if self.bypassL1 is not None else {}
        _print_properties(printer, shown, self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.src.type)
        printer.print_string(" to ")
        printer.print_attribute(self.dst.type)


@irdl_op_definition
class DeviceAsyncCreateGroupOp(IRDLOperation):
    """The copies of this thread since its last group, as one group."""

    name = "nvgpu.device_async_create_group"

    inputTokens = var_operand_def(TokenType)
    asyncToken = result_def(TokenType)

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @staticmethod
    def make(tokens: Sequence[SSAValue] = ()) -> DeviceAsyncCreateGroupOp:
        """A group of all copies so far; the tokens name them for readers."""
        return DeviceAsyncCreateGroupOp.create(operands=list(tokens), result_types=[TOKEN])

    @classmethod
    def parse(cls, parser: Parser) -> DeviceAsyncCreateGroupOp:
        names = parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
        )
        op = cls.make([parser.resolve_operand(n, TOKEN) for n in names or ()])
        op.attributes.update(parser.parse_optional_attr_dict())
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.inputTokens, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)


@irdl_op_definition
class DeviceAsyncWaitOp(IRDLOperation):
    """Wait until at most `numGroups` (0 where absent) of this thread's groups, the latest ones, are under way."""

    name = "nvgpu.device_async_wait"

    asyncDependencies = operand_def(TokenType)
    numGroups = opt_prop_def(IntegerAttr.constr(i32))

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @staticmethod
    def make(token: SSAValue, groups: int) -> DeviceAsyncWaitOp:
        """Wait for all but the last `groups` groups."""
        return DeviceAsyncWaitOp.create(operands=[token], properties={"numGroups": IntegerAttr(groups, i32)})

    @property
    def groups(self) -> int:
        """Groups that may still be under way."""
        return self.numGroups.value.data if self.numGroups is not None else 0

    @classmethod
    def parse(cls, parser: Parser) -> DeviceAsyncWaitOp:
        token = parser.resolve_operand(parser.parse_unresolved_operand(), TOKEN)
        attributes = parser.parse_optional_attr_dict()
        properties = {k: attributes.pop(k) for k in ("numGroups",) if k in attributes}
        return cls.create(operands=[token], properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.asyncDependencies)
        _print_properties(printer, {"numGroups": self.numGroups} if self.numGroups is not None else {}, self.attributes)


NVGPU = Dialect(
    "nvgpu",
    [DeviceAsyncCopyOp, DeviceAsyncCreateGroupOp, DeviceAsyncWaitOp, LdMatrixOp, MmaSyncOp, *nvgpu_hopper.OPS, *nvgpu_warpgroup.OPS],
    [TokenType, *nvgpu_types.TYPES],
)
