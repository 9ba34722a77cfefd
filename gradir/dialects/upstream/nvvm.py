"""`nvvm` under upstream's names and custom syntax (LLVM 22), where `nvgpu` has no op: barriers of some warps, fences, registers."""

from __future__ import annotations

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, StringAttr, UnitAttr, i32
from xdsl.ir import Attribute, Data, Dialect
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    traits_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException


def _parse_word(parser: AttrParser, words: tuple[str, ...]) -> str:
    with parser.in_angle_brackets():
        start = parser.pos
        word = parser.parse_identifier()
        if word not in words:
            parser.raise_error(f"unknown word '{word}', expected one of: {', '.join(words)}", start, parser.pos)
        return word


@irdl_attr_definition
class ProxyKindAttr(Data[str]):
    """`#nvvm.proxy_kind<async.shared>`: between which kinds of accesses a fence stands."""

    name = "nvvm.proxy_kind"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        return _parse_word(parser, ("async.shared",))

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data}>")


@irdl_attr_definition
class SharedSpaceAttr(Data[str]):
    """`#nvvm.shared_space<cta>`: the workgroup memory of the block, or of its cluster."""

    name = "nvvm.shared_space"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        return _parse_word(parser, ("cta", "cluster"))

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data}>")


_EFFECTS = (MemoryReadEffect(), MemoryWriteEffect())


@irdl_op_definition
class FenceMbarrierInitOp(IRDLOperation):
    """Mbarriers that this thread has initialised are seen by copies of the cluster."""

    name = "nvvm.fence.mbarrier.init"
    traits = traits_def(*_EFFECTS)
    assembly_format = "attr-dict"


@irdl_op_definition
class FenceProxyOp(IRDLOperation):
    """What this thread wrote to workgroup memory is seen by tensor copies and products of warpgroups."""

    name = "nvvm.fence.proxy"
    kind = prop_def(ProxyKindAttr)
    space = prop_def(SharedSpaceAttr)
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(*_EFFECTS)
    assembly_format = "attr-dict"


@irdl_op_definition
class BarrierOp(IRDLOperation):
    """`numberOfThreads` threads (whole warps) wait for each other at barrier `barrierId`; what they wrote before is seen after."""

    name = "nvvm.barrier"

    barrierId = operand_def(i32)
    numberOfThreads = operand_def(i32)
    operandSegmentSizes = prop_def(DenseArrayBase)
    traits = traits_def(*_EFFECTS)

    @classmethod
    def parse(cls, parser: Parser) -> BarrierOp:
        parser.parse_keyword("id")
        parser.parse_punctuation("=")
        operands = [parser.parse_operand(i32)]
        parser.parse_keyword("number_of_threads")
        parser.parse_punctuation("=")
        operands.append(parser.parse_operand(i32))
        properties = {"operandSegmentSizes": DenseArrayBase.from_list(i32, [1, 1, 0])}
        return cls.create(operands=operands, properties=properties, attributes=parser.parse_optional_attr_dict())

    def print(self, printer: Printer) -> None:
        printer.print_string(" id = ")
        printer.print_ssa_value(self.barrierId)
        printer.print_string(" number_of_threads = ")
        printer.print_ssa_value(self.numberOfThreads)
        printer.print_op_attributes(self.attributes)


@irdl_op_definition
class BulkCommitGroupOp(IRDLOperation):
    """The bulk copies to global memory of this thread since its last group, as one group."""

    name = "nvvm.cp.async.bulk.commit.group"
    traits = traits_def(*_EFFECTS)
    assembly_format = "attr-dict"


@irdl_op_definition
class BulkWaitGroupOp(IRDLOperation):
    """Wait until at most `group` of this thread's groups are under way; with `read` until their sources may be written again."""

    name = "nvvm.cp.async.bulk.wait_group"

    group = prop_def(IntegerAttr.constr(i32))
    read = opt_prop_def(UnitAttr)
    traits = traits_def(*_EFFECTS)

    @classmethod
    def parse(cls, parser: Parser) -> BulkWaitGroupOp:
        properties: dict[str, Attribute] = {"group": IntegerAttr(parser.parse_integer(allow_negative=False), i32)}
        attributes = parser.parse_optional_attr_dict()
        if "read" in attributes:
            properties["read"] = attributes.pop("read")
        return cls.create(properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.group.value.data}")
        shown: dict[str, Attribute] = {"read": self.read} if self.read is not None else {}
        printer.print_op_attributes({**shown, **self.attributes})


@irdl_op_definition
class SetMaxRegisterOp(IRDLOperation):
    """A warpgroup gives registers back (`decrease`), or takes some that others gave back (`increase`); `regCount` a thread from now on."""

    name = "nvvm.setmaxregister"

    action = prop_def(StringAttr)
    regCount = prop_def(IntegerAttr.constr(i32))
    traits = traits_def(*_EFFECTS)

    def verify_(self) -> None:
        count = self.regCount.value.data
        if count % 8 or not 24 <= count <= 256:
            raise VerifyException(f"{self.name}: expected a multiple of 8 from 24 to 256, found {count}")

    @classmethod
    def parse(cls, parser: Parser) -> SetMaxRegisterOp:
        start = parser.pos
        word = parser.parse_identifier()
        if word not in ("increase", "decrease"):
            parser.raise_error(f"unknown word '{word}', expected increase or decrease", start, parser.pos)
        properties: dict[str, Attribute] = {"action": StringAttr(word), "regCount": IntegerAttr(parser.parse_integer(), i32)}
        return cls.create(properties=properties, attributes=parser.parse_optional_attr_dict())

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.action.data} {self.regCount.value.data}")
        printer.print_op_attributes(self.attributes)


NVVM = Dialect(
    "nvvm",
    [BarrierOp, BulkCommitGroupOp, BulkWaitGroupOp, FenceMbarrierInitOp, FenceProxyOp, SetMaxRegisterOp],
    [ProxyKindAttr, SharedSpaceAttr],
)
