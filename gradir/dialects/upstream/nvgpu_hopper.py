"""`nvgpu` for sm_90a under upstream's names and custom syntax (LLVM 22): mbarriers, tensor copies (TMA).

A copy counts its bytes at an mbarrier; who has waited for the phase may read them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    DenseArrayBase,
    IndexType,
    IntegerType,
    MemRefType,
    UnrankedMemRefType,
    i1,
    i32,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from gradir.dialects.upstream.nvgpu_types import (
    MBARRIER_TOKEN,
    MbarrierGroupType,
    MbarrierTokenType,
    TensorMapType,
    parse_elided,
)

_INDEX = IndexType()


def _parse_list(parser: Parser) -> list[UnresolvedOperand]:
    return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_unresolved_operand)


def _parse_place(parser: Parser) -> tuple[UnresolvedOperand, UnresolvedOperand]:
    """`%group[%number]`."""
    group = parser.parse_unresolved_operand()
    parser.parse_punctuation("[")
    number = parser.parse_unresolved_operand()
    parser.parse_punctuation("]")
    return group, number


def _parse_predicate(parser: Parser) -> list[SSAValue]:
    """`, predicate = %p`, where it is there."""
    if parser.parse_optional_punctuation(",") is None:
        return []
    parser.parse_keyword("predicate")
    parser.parse_punctuation("=")
    return [parser.parse_operand(i1)]


def print_parts(printer: Printer, *parts: str | SSAValue | Attribute | Sequence[SSAValue]) -> None:
    """Texts as they are, values, attributes, and lists of values between commas, one behind the other."""
    for part in parts:
        if isinstance(part, str):
            printer.print_string(part)
        elif isinstance(part, Attribute):
            printer.print_attribute(part)
        elif isinstance(part, SSAValue):
            printer.print_ssa_value(part)
        else:
            printer.print_list(part, printer.print_ssa_value)


def _predicate(value: SSAValue | None) -> tuple[str | SSAValue, ...]:
    return () if value is None else (", predicate = ", value)


@irdl_op_definition
class MbarrierCreateOp(IRDLOperation):
    """Mbarriers of the block, to be initialised before use."""

    name = "nvgpu.mbarrier.create"

    barriers = result_def(MbarrierGroupType)

    @classmethod
    def parse(cls, parser: Parser) -> MbarrierCreateOp:
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation("->")
        return cls.create(result_types=[parse_elided(parser, MbarrierGroupType)], attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_op_attributes(self.attributes)
        print_parts(printer, " -> ", self.barriers.type)


class _Mbarrier(IRDLOperation):
    """An op on mbarrier `mbarId` of a group with further operands, all in one list: `%group[%number], %a, %b`."""

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    FURTHER: ClassVar[tuple[IndexType | IntegerType, ...]] = ()
    RESULTS: ClassVar[tuple[Attribute, ...]] = ()

    @classmethod
    def parse(cls, parser: Parser) -> _Mbarrier:
        group, number = _parse_place(parser)
        more: list[SSAValue] = []
        for kind in cls.FURTHER:
            parser.parse_punctuation(",")
            more.append(parser.parse_operand(kind))
        predicate = _parse_predicate(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        kind = parse_elided(parser, MbarrierGroupType)
        for result in cls.RESULTS:
            parser.parse_punctuation("->")
            if parser.parse_type() != result:
                parser.raise_error(f"expected {result}")
        operands = [parser.resolve_operand(group, kind), *more, parser.resolve_operand(number, _INDEX), *predicate]
        return cls.create(operands=operands, result_types=list(cls.RESULTS), attributes=attributes)

    def print(self, printer: Printer) -> None:
        count = 1 + len(self.FURTHER)
        print_parts(printer, " ", self.operands[0], "[", self.operands[count], "]")
        for value in self.operands[1:count]:
            print_parts(printer, ", ", value)
        print_parts(printer, *(_predicate(self.operands[count + 1]) if len(self.operands) > count + 1 else ()))
        printer.print_op_attributes(self.attributes)
        print_parts(printer, " : ", self.operands[0].type)
        for result in self.RESULTS:
            print_parts(printer, " -> ", result)


@irdl_op_definition
class MbarrierInitOp(_Mbarrier):
    """Phase 0 begins; a phase is over when `count` have arrived and all expected bytes have come."""

    name = "nvgpu.mbarrier.init"

    barriers = operand_def(MbarrierGroupType)
    count = operand_def(_INDEX)
    mbarId = operand_def(_INDEX)
    predicate = opt_operand_def(i1)
    FURTHER: ClassVar[tuple[IndexType | IntegerType, ...]] = (_INDEX,)


@irdl_op_definition
class MbarrierArriveOp(_Mbarrier):
    """One arrival in the phase that runs."""

    name = "nvgpu.mbarrier.arrive"

    barriers = operand_def(MbarrierGroupType)
    mbarId = operand_def(_INDEX)
    token = result_def(MbarrierTokenType)
    RESULTS: ClassVar[tuple[Attribute, ...]] = (MBARRIER_TOKEN,)


@irdl_op_definition
class MbarrierArriveExpectTxOp(_Mbarrier):
    """One arrival; `txcount` more bytes have to come in this phase."""

    name = "nvgpu.mbarrier.arrive.expect_tx"

    barriers = operand_def(MbarrierGroupType)
    txcount = operand_def(_INDEX)
    mbarId = operand_def(_INDEX)
    predicate = opt_operand_def(i1)
    FURTHER: ClassVar[tuple[IndexType | IntegerType, ...]] = (_INDEX,)


@irdl_op_definition
class MbarrierTryWaitParityOp(_Mbarrier):
    """Wait until the phase of this parity is over; `ticks` is a hint how long one try may take."""

    name = "nvgpu.mbarrier.try_wait.parity"

    barriers = operand_def(MbarrierGroupType)
    phaseParity = operand_def(i1)
    ticks = operand_def(_INDEX)
    mbarId = operand_def(_INDEX)
    FURTHER: ClassVar[tuple[IndexType | IntegerType, ...]] = (i1, _INDEX)


@irdl_op_definition
class TmaCreateDescriptorOp(IRDLOperation):
    """On the host: the tensor map of a whole buffer, for copies of boxes of this size (in the buffer's order of dimensions)."""

    name = "nvgpu.tma.create.descriptor"

    tensor = operand_def(UnrankedMemRefType)
    boxDimensions = var_operand_def(_INDEX)
    tensorMap = result_def(TensorMapType)

    @classmethod
    def parse(cls, parser: Parser) -> TmaCreateDescriptorOp:
        tensor = parser.parse_unresolved_operand()
        parser.parse_keyword("box")
        box = [parser.resolve_operand(b, _INDEX) for b in _parse_list(parser)]
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        operand = parser.resolve_operand(tensor, parser.parse_type())
        parser.parse_punctuation("->")
        return cls.create(operands=[operand, *box], result_types=[parse_elided(parser, TensorMapType)], attributes=attributes)

    def print(self, printer: Printer) -> None:
        print_parts(printer, " ", self.tensor, " box[", self.boxDimensions, "]")
        printer.print_op_attributes(self.attributes)
        print_parts(printer, " : ", self.tensor.type, " -> ", self.tensorMap.type)


@irdl_op_definition
class TmaPrefetchOp(IRDLOperation):
    """A hint: the tensor map will be used."""

    name = "nvgpu.tma.prefetch.descriptor"

    tensorMapDescriptor = operand_def(TensorMapType)
    predicate = opt_operand_def(i1)

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @classmethod
    def parse(cls, parser: Parser) -> TmaPrefetchOp:
        name = parser.parse_unresolved_operand()
        predicate = _parse_predicate(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        tensor_map = parser.resolve_operand(name, parse_elided(parser, TensorMapType))
        return cls.create(operands=[tensor_map, *predicate], attributes=attributes)

    def print(self, printer: Printer) -> None:
        print_parts(printer, " ", self.tensorMapDescriptor, *_predicate(self.predicate))
        printer.print_op_attributes(self.attributes)
        print_parts(printer, " : ", self.tensorMapDescriptor.type)


def _check_box(name: str, memory: Attribute, tensor_map: Attribute, coordinates: Sequence[SSAValue]) -> None:
    assert isinstance(memory, MemRefType) and isinstance(tensor_map, TensorMapType)
    expected, found = tensor_map.tensor, memory
    if expected.get_shape() != found.get_shape() or expected.element_type != found.element_type:
        raise VerifyException(f"{name}: the box of the tensor map is {expected}, the memory {found}")
    if len(coordinates) != len(expected.get_shape()):
        raise VerifyException(f"{name}: expected a coordinate of each dimension of {expected}, found {len(coordinates)}")


@irdl_op_definition
class TmaAsyncLoadOp(IRDLOperation):
    """One thread: the box at these coordinates (the innermost first) comes to workgroup memory and counts its bytes at an mbarrier.

    Elements outside of the tensor come as zeros and count, too.
    """

    name = "nvgpu.tma.async.load"

    dst = operand_def(MemRefType)
    barriers = operand_def(MbarrierGroupType)
    tensorMapDescriptor = operand_def(TensorMapType)
    coordinates = var_operand_def(_INDEX)
    mbarId = operand_def(_INDEX)
    multicastMask = opt_operand_def(IntegerType(16))
    predicate = opt_operand_def(i1)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def verify_(self) -> None:
        _check_box(self.name, self.dst.type, self.tensorMapDescriptor.type, self.coordinates)

    @classmethod
    def parse(cls, parser: Parser) -> TmaAsyncLoadOp:
        tensor_map = parser.parse_unresolved_operand()
        places = [parser.resolve_operand(p, _INDEX) for p in _parse_list(parser)]
        parser.parse_punctuation(",")
        group, number = _parse_place(parser)
        parser.parse_keyword("to")
        target = parser.parse_unresolved_operand()
        mask: list[SSAValue] = []
        if parser.parse_optional_keyword("multicast_mask"):
            parser.parse_punctuation("=")
            mask = [parser.parse_operand(IntegerType(16))]
        predicate = _parse_predicate(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        map_type = parse_elided(parser, TensorMapType)
        parser.parse_punctuation(",")
        group_type = parse_elided(parser, MbarrierGroupType)
        parser.parse_punctuation("->")
        first = [
            parser.resolve_operand(target, parser.parse_type()),
            parser.resolve_operand(group, group_type),
            parser.resolve_operand(tensor_map, map_type),
        ]
        segments = DenseArrayBase.from_list(i32, [1, 1, 1, len(places), 1, len(mask), len(predicate)])
        operands = [*first, *places, parser.resolve_operand(number, _INDEX), *mask, *predicate]
        return cls.create(operands=operands, properties={"operandSegmentSizes": segments}, attributes=attributes)

    def print(self, printer: Printer) -> None:
        print_parts(
            printer, " ", self.tensorMapDescriptor, "[", self.coordinates, "], ", self.barriers, "[", self.mbarId, "] to ", self.dst
        )
        if self.multicastMask is not None:
            print_parts(printer, " multicast_mask = ", self.multicastMask)
        print_parts(printer, *_predicate(self.predicate))
        printer.print_op_attributes(self.attributes)
        print_parts(printer, " : ", self.tensorMapDescriptor.type, ", ", self.barriers.type, " -> ", self.dst.type)


@irdl_op_definition
class TmaAsyncStoreOp(IRDLOperation):
    """One thread: workgroup memory goes to the box at these coordinates (the innermost first); what is outside of the tensor is dropped."""

    name = "nvgpu.tma.async.store"

    src = operand_def(MemRefType)
    tensorMapDescriptor = operand_def(TensorMapType)
    coordinates = var_operand_def(_INDEX)
    predicate = opt_operand_def(i1)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def verify_(self) -> None:
        _check_box(self.name, self.src.type, self.tensorMapDescriptor.type, self.coordinates)

    @classmethod
    def parse(cls, parser: Parser) -> TmaAsyncStoreOp:
        source = parser.parse_unresolved_operand()
        parser.parse_keyword("to")
        tensor_map = parser.parse_unresolved_operand()
        places = [parser.resolve_operand(p, _INDEX) for p in _parse_list(parser)]
        predicate = _parse_predicate(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        memory = parser.resolve_operand(source, parser.parse_type())
        parser.parse_punctuation("->")
        target = parser.resolve_operand(tensor_map, parse_elided(parser, TensorMapType))
        segments = DenseArrayBase.from_list(i32, [1, 1, len(places), len(predicate)])
        operands = [memory, target, *places, *predicate]
        return cls.create(operands=operands, properties={"operandSegmentSizes": segments}, attributes=attributes)

    def print(self, printer: Printer) -> None:
        print_parts(printer, " ", self.src, " to ", self.tensorMapDescriptor, "[", self.coordinates, "]", *_predicate(self.predicate))
        printer.print_op_attributes(self.attributes)
        print_parts(printer, " : ", self.src.type, " -> ", self.tensorMapDescriptor.type)


OPS = [
    MbarrierArriveExpectTxOp, MbarrierArriveOp, MbarrierCreateOp, MbarrierInitOp, MbarrierTryWaitParityOp, TmaAsyncLoadOp, TmaAsyncStoreOp,
    TmaCreateDescriptorOp, TmaPrefetchOp,
]  # fmt: skip
