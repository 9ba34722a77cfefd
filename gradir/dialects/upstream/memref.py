"""`memref`: xDSL's ops, with upstream's custom syntax for `cast`, `copy` and `global` (xDSL has the generic form only), and `prefetch`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from xdsl.dialects import memref as xdsl_memref
from xdsl.dialects.builtin import (
    I64,
    BoolAttr,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    StringAttr,
    SymbolNameConstraint,
    TensorType,
    UnitAttr,
    UnrankedMemRefType,
    i32,
)
from xdsl.dialects.memref import (
    AllocaOp as AllocaOp,
    AllocaScopeOp as AllocaScopeOp,
    AllocaScopeReturnOp as AllocaScopeReturnOp,
    AllocOp as AllocOp,
    AlterShapeOperation as AlterShapeOperation,
    AssumeAlignmentOp as AssumeAlignmentOp,
    AtomicRMWOp as AtomicRMWOp,
    CollapseShapeOp as CollapseShapeOp,
    DeallocOp as DeallocOp,
    DimOp as DimOp,
    DmaStartOp as DmaStartOp,
    DmaWaitOp as DmaWaitOp,
    ExpandShapeOp as ExpandShapeOp,
    ExtractAlignedPointerAsIndexOp as ExtractAlignedPointerAsIndexOp,
    ExtractStridedMetaDataOp as ExtractStridedMetaDataOp,
    GetGlobalOp as GetGlobalOp,
    LoadOp as LoadOp,
    MemorySpaceCastOp as MemorySpaceCastOp,
    RankOp as RankOp,
    ReinterpretCastOp as ReinterpretCastOp,
    StoreOp as StoreOp,
    SubviewOp as SubviewOp,
    ViewOp as ViewOp,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, base, irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, NoMemoryEffect, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from .extend import extended


@irdl_op_definition
class CastOp(IRDLOperation):
    """The same buffer with sizes, strides or the offset made known or forgotten in the type."""

    name = "memref.cast"

    source = operand_def(base(MemRefType) | base(UnrankedMemRefType))
    dest = result_def(base(MemRefType) | base(UnrankedMemRefType))

    traits = traits_def(NoMemoryEffect())

    assembly_format = "$source attr-dict `:` type($source) `to` type($dest)"

    def __init__(self, source: SSAValue | Operation, dest: MemRefType | UnrankedMemRefType) -> None:
        super().__init__(operands=[source], result_types=[dest])

    @classmethod
    def get(cls, source: SSAValue | Operation, type: MemRefType | UnrankedMemRefType) -> Self:
        """xDSL's name of the constructor."""
        return cls(source, type)


@irdl_op_definition
class CopyOp(IRDLOperation):
    """`destination[i] = source[i]`; the two must not overlap unless they are equal."""

    name = "memref.copy"

    source = operand_def(MemRefType)
    destination = operand_def(MemRefType)

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    assembly_format = "$source `,` $destination attr-dict `:` type($source) `to` type($destination)"

    def __init__(self, source: SSAValue | Operation, destination: SSAValue | Operation) -> None:
        super().__init__(operands=[source, destination])

    def verify_(self) -> None:
        source, destination = self.source.type, self.destination.type
        assert isinstance(source, MemRefType) and isinstance(destination, MemRefType)
        if source.element_type != destination.element_type:
            raise VerifyException(f"{self.name}: element types differ: {source.element_type} and {destination.element_type}")
        pairs = zip(source.get_shape(), destination.get_shape())
        if source.get_num_dims() != destination.get_num_dims() or any(a >= 0 and b >= 0 and a != b for a, b in pairs):
            raise VerifyException(f"{self.name}: shapes differ: {source} and {destination}")


@irdl_op_definition
class PrefetchOp(IRDLOperation):
    """A hint that `memref[indices]` is wanted soon; the place may lie outside of the buffer. Upstream's op."""

    name = "memref.prefetch"

    memref = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    isWrite = prop_def(BoolAttr)
    localityHint = prop_def(IntegerAttr)
    isDataCache = prop_def(BoolAttr)

    def __init__(
        self, memref: SSAValue | Operation, indices: Sequence[SSAValue | Operation], locality: int = 3, *, write: bool = False
    ) -> None:
        properties = {
            "isWrite": BoolAttr.from_bool(write),
            "localityHint": IntegerAttr(locality, i32),
            "isDataCache": BoolAttr.from_bool(True),
        }
        super().__init__(operands=[memref, indices], properties=properties)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.memref)
        printer.print_string("[")
        printer.print_list(self.indices, printer.print_operand)
        access, cache = "write" if self.isWrite.value.data else "read", "data" if self.isDataCache.value.data else "instr"
        printer.print_string(f"], {access}, locality<{self.localityHint.value.data}>, {cache}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.memref.type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        memory = parser.parse_unresolved_operand()
        indices = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_unresolved_operand)
        parser.parse_punctuation(",")
        write = parser.parse_identifier() == "write"
        parser.parse_punctuation(",")
        parser.parse_keyword("locality")
        parser.parse_punctuation("<")
        locality = parser.parse_integer()
        parser.parse_punctuation(">")
        parser.parse_punctuation(",")
        data = parser.parse_identifier() == "data"
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        kind = parser.parse_type()
        new = cls(
            parser.resolve_operand(memory, kind),
            parser.resolve_operands(indices, [IndexType()] * len(indices), parser.pos),
            locality,
            write=write,
        )
        new.properties["isDataCache"] = BoolAttr.from_bool(data)
        new.attributes.update(attributes)
        return new

    def verify_(self) -> None:
        assert isinstance(self.memref.type, MemRefType)
        if len(self.indices) != self.memref.type.get_num_dims():
            raise VerifyException(f"{self.name}: {len(self.indices)} indices for {self.memref.type}")
        if not 0 <= self.localityHint.value.data <= 3:
            raise VerifyException(f"{self.name}: the locality is 0 to 3, not {self.localityHint.value.data}")


@irdl_op_definition
class GlobalOp(IRDLOperation):
    """A named buffer: external (no value), uninitialised, or with a constant's elements."""

    name = "memref.global"

    sym_name = prop_def(SymbolNameConstraint())
    sym_visibility = opt_prop_def(StringAttr)
    type = prop_def(MemRefType)
    initial_value = opt_prop_def()
    constant = opt_prop_def(UnitAttr)
    alignment = opt_prop_def(IntegerAttr[I64])

    traits = traits_def(SymbolOpInterface())

    def __init__(
        self,
        name: str,
        type: MemRefType,
        initial_value: Attribute | None,
        *,
        visibility: str | None = "private",
        constant: bool = False,
        alignment: int | None = None,
    ) -> None:
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "type": type,
                "initial_value": initial_value,
                "sym_visibility": StringAttr(visibility) if visibility else None,
                "constant": UnitAttr() if constant else None,
                "alignment": IntegerAttr(alignment, 64) if alignment else None,
            }
        )

    def print(self, printer: Printer) -> None:
        if self.sym_visibility is not None:
            printer.print_string(f' "{self.sym_visibility.data}"')
        if self.constant is not None:
            printer.print_string(" constant")
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(" : ")
        printer.print_attribute(self.type)
        if isinstance(self.initial_value, UnitAttr):
            printer.print_string(" = uninitialized")
        elif self.initial_value is not None:
            printer.print_string(" = ")
            _print_elements(printer, self.initial_value)
        named = {"alignment": self.alignment} if self.alignment is not None else {}
        printer.print_op_attributes({**named, **self.attributes})

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        properties: dict[str, Attribute] = {}
        if (literal := parser.parse_optional_str_literal()) is not None:
            properties["sym_visibility"] = StringAttr(literal)
        if parser.parse_optional_keyword("constant"):
            properties["constant"] = UnitAttr()
        properties["sym_name"] = parser.parse_symbol_name()
        parser.parse_punctuation(":")
        position = parser.pos
        type_ = parser.parse_type()
        if not isinstance(type_, MemRefType):
            parser.raise_error(f"expected a memref type, got {type_}", position)
        properties["type"] = type_
        if parser.parse_optional_punctuation("="):
            uninitialized = parser.parse_optional_keyword("uninitialized")
            properties["initial_value"] = UnitAttr() if uninitialized else _parse_elements(parser, type_)
        attributes = parser.parse_optional_attr_dict()
        if "alignment" in attributes:
            properties["alignment"] = attributes.pop("alignment")
        return cls.create(properties=properties, attributes=attributes)


def _print_elements(printer: Printer, value: Attribute) -> None:
    """The elements without their type, which upstream takes from the memref; a resource as its bytes in hex."""
    if isinstance(value, DenseIntOrFPElementsAttr):
        value.print_without_type(printer)
        return
    array = getattr(value, "array", None)
    if array is None:
        printer.print_attribute(value)
        return
    printer.print_string(f'dense<"0x{array.tobytes().hex().upper()}">')


def _parse_elements(parser: Parser, type_: MemRefType) -> Attribute:
    if parser.parse_optional_keyword("dense"):
        tensor: TensorType[Any] = TensorType(type_.element_type, type_.shape)
        return parser.parse_dense_int_or_fp_elements_attr(tensor)
    return parser.parse_attribute()


MemRef = extended(xdsl_memref.MemRef, [CastOp, CopyOp, GlobalOp, PrefetchOp])
