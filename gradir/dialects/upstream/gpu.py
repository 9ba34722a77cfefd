"""`gpu` under upstream's names and custom syntax (LLVM 22).

xDSL's ops have no custom format, carry no effects, and its `gpu.func` lacks workgroup buffers; `gpu.shuffle` and `#gpu.address_space` are
missing there. These are the ops that level 4 of CUDA uses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    MemRefType,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    i1,
    i32,
    i64,
)
from xdsl.dialects.gpu import DimensionAttr as DimensionAttr, DimensionEnum as DimensionEnum
from xdsl.ir import Attribute, Data, Dialect, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import (
    IsolatedFromAbove,
    IsTerminator,
    MemoryAllocEffect,
    MemoryFreeEffect,
    MemoryReadEffect,
    MemoryWriteEffect,
    NoTerminator,
    Pure,
    SymbolOpInterface,
    SymbolTable,
)

_INDEX = IndexType()
_SPACES = ("global", "workgroup", "private")


@irdl_attr_definition
class AddressSpaceAttr(Data[str]):
    """`#gpu.address_space<workgroup>`: where the memory of a memref lies."""

    name = "gpu.address_space"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        with parser.in_angle_brackets():
            start = parser.pos
            word = parser.parse_identifier()
            if word not in _SPACES:
                parser.raise_error(f"unknown address space '{word}', expected one of: {', '.join(_SPACES)}", start, parser.pos)
            return word

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data}>")


WORKGROUP = AddressSpaceAttr("workgroup")


class _Id(IRDLOperation):
    """One coordinate of a thread, a block, or of their counts."""

    dimension = prop_def(DimensionAttr)
    result = result_def(_INDEX)
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> _Id:
        dimension = DimensionAttr(DimensionEnum(parser.parse_identifier()))
        attributes = parser.parse_optional_attr_dict()
        return cls.create(result_types=[_INDEX], properties={"dimension": dimension}, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.dimension.data.value}")
        printer.print_op_attributes(self.attributes)


@irdl_op_definition
class ThreadIdOp(_Id):
    name = "gpu.thread_id"


@irdl_op_definition
class BlockIdOp(_Id):
    name = "gpu.block_id"


@irdl_op_definition
class BlockDimOp(_Id):
    name = "gpu.block_dim"


@irdl_op_definition
class GridDimOp(_Id):
    name = "gpu.grid_dim"


@irdl_op_definition
class BarrierOp(IRDLOperation):
    """All threads of a block wait for each other; what they wrote before is seen after."""

    name = "gpu.barrier"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"


@irdl_op_definition
class ReturnOp(IRDLOperation):
    name = "gpu.return"
    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict"


@irdl_op_definition
class ShuffleOp(IRDLOperation):
    """The value of the lane whose number is this one's xor `offset` (mode xor), and whether that lane takes part."""

    name = "gpu.shuffle"

    value = operand_def()
    offset = operand_def(i32)
    width = operand_def(i32)
    mode = prop_def(StringAttr)
    shuffleResult = result_def()
    valid = result_def(i1)

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @classmethod
    def parse(cls, parser: Parser) -> ShuffleOp:
        mode = parser.parse_identifier()
        names = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        t = parser.parse_type()
        operands = [parser.resolve_operand(n, o) for n, o in zip(names, (t, i32, i32))]
        return cls.create(operands=operands, result_types=[t, i1], properties={"mode": StringAttr(mode)}, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.mode.data} ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.value.type)


@irdl_op_definition
class ModuleOp(IRDLOperation):
    """The functions of a device."""

    name = "gpu.module"

    sym_name = prop_def(StringAttr)
    bodyRegion = region_def("single_block")

    traits = traits_def(IsolatedFromAbove(), NoTerminator(), SymbolOpInterface(), SymbolTable())

    @classmethod
    def parse(cls, parser: Parser) -> ModuleOp:
        name = parser.parse_symbol_name()
        attributes = parser.parse_optional_attr_dict_with_keyword()
        region = parser.parse_region()
        return cls.create(properties={"sym_name": name}, attributes=dict(attributes.data) if attributes else {}, regions=[region])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.bodyRegion)


@irdl_op_definition
class FuncOp(IRDLOperation):
    """A kernel: the block's arguments are the operands, then the workgroup buffers."""

    name = "gpu.func"

    sym_name = prop_def(StringAttr)
    function_type = prop_def(FunctionType)
    workgroup_attributions = opt_prop_def(IntegerAttr)
    known_block_size = opt_prop_def(DenseArrayBase.constr(i32))
    known_grid_size = opt_prop_def(DenseArrayBase.constr(i32))
    arg_attrs = opt_prop_def(ArrayAttr[DictionaryAttr])
    body = region_def()

    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())
    SIZES: ClassVar[tuple[str, ...]] = ("known_block_size", "known_grid_size")

    @property
    def operand_count(self) -> int:
        """Arguments that a launch passes."""
        return len(self.function_type.inputs.data)

    @classmethod
    def parse(cls, parser: Parser) -> FuncOp:
        name = parser.parse_symbol_name()
        dictionaries: list[DictionaryAttr] = []

        def parse_argument() -> Parser.Argument:
            argument = parser.parse_argument()
            dictionaries.append(DictionaryAttr(dict(parser.parse_optional_attr_dict())))
            return argument

        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parse_argument)
        count = len(arguments)
        if parser.parse_optional_keyword("workgroup"):
            arguments = [*arguments, *parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)]
        properties: dict[str, Attribute] = {
            "sym_name": name,
            "function_type": FunctionType.from_lists([a.type for a in arguments[:count]], []),
            "workgroup_attributions": IntegerAttr(len(arguments) - count, i64),
        }
        attributes: dict[str, Attribute] = {}
        if parser.parse_optional_keyword("kernel"):
            attributes["gpu.kernel"] = UnitAttr()
        given = parser.parse_optional_attr_dict_with_keyword()
        for key, value in (given.data if given else {}).items():
            (properties if key in cls.SIZES else attributes)[key] = value
        if any(d.data for d in dictionaries[:count]):
            properties["arg_attrs"] = ArrayAttr(dictionaries[:count])
        return cls.create(properties=properties, attributes=attributes, regions=[parser.parse_region(arguments)])

    def print(self, printer: Printer) -> None:
        block, count = self.body.block, self.operand_count
        dictionaries = self.arg_attrs.data if self.arg_attrs is not None else (DictionaryAttr({}),) * count
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)

        def print_argument(pair: tuple[SSAValue, DictionaryAttr | None]) -> None:
            printer.print_ssa_value(pair[0])
            printer.print_string(" : ")
            printer.print_attribute(pair[0].type)
            if pair[1] is not None and pair[1].data:
                printer.print_string(" ")
                printer.print_attribute(pair[1])

        printer.print_string("(")
        printer.print_list(list(zip(block.args[:count], dictionaries)), print_argument)
        printer.print_string(")")
        if len(block.args) > count:
            printer.print_string(" workgroup(")
            printer.print_list([(a, None) for a in block.args[count:]], print_argument)
            printer.print_string(")")
        if "gpu.kernel" in self.attributes:
            printer.print_string(" kernel")
        shown: dict[str, Attribute] = {k: self.properties[k] for k in self.SIZES if k in self.properties}
        shown.update((k, v) for k, v in self.attributes.items() if k != "gpu.kernel")
        printer.print_op_attributes(shown, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)


@irdl_op_definition
class LaunchFuncOp(IRDLOperation):
    """Run a kernel on a grid of blocks of threads, with so many bytes of dynamic workgroup memory for each block."""

    name = "gpu.launch_func"

    gridSize = var_operand_def(_INDEX)
    blockSize = var_operand_def(_INDEX)
    dynamicSharedMemorySize = opt_operand_def(i32)
    kernelOperands = var_operand_def()
    kernel = prop_def(SymbolRefAttr)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @staticmethod
    def make(
        kernel: SymbolRefAttr,
        grid: Sequence[SSAValue],
        block: Sequence[SSAValue],
        operands: Sequence[SSAValue],
        shared: SSAValue | None = None,
    ) -> LaunchFuncOp:
        """A launch with three sizes each for grid and block; `shared` is the size of its dynamic workgroup memory."""
        dynamic = [] if shared is None else [shared]
        segments = DenseArrayBase.from_list(i32, [len(grid), len(block), len(dynamic), len(operands)])
        properties: dict[str, Attribute] = {"kernel": kernel, "operandSegmentSizes": segments}
        return LaunchFuncOp.create(operands=[*grid, *block, *dynamic, *operands], properties=properties)

    @classmethod
    def parse(cls, parser: Parser) -> LaunchFuncOp:
        kernel = parser.parse_attribute()
        assert isinstance(kernel, SymbolRefAttr)
        sizes: list[list[SSAValue]] = []
        for word in ("blocks", "threads"):
            parser.parse_keyword(word)
            parser.parse_keyword("in")
            sizes.append(parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parser.parse_operand(_INDEX)))
        operands: list[SSAValue] = []
        shared = parser.parse_operand(i32) if parser.parse_optional_keyword("dynamic_shared_memory_size") else None
        if parser.parse_optional_keyword("args"):

            def parse_operand() -> SSAValue:
                name = parser.parse_unresolved_operand()
                parser.parse_punctuation(":")
                return parser.resolve_operand(name, parser.parse_type())

            operands = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parse_operand)
        op = cls.make(kernel, sizes[0], sizes[1], operands, shared)
        op.attributes.update(parser.parse_optional_attr_dict())
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.kernel)
        for word, values in (("blocks", self.gridSize), ("threads", self.blockSize)):
            printer.print_string(f" {word} in (")
            printer.print_list(values, printer.print_ssa_value)
            printer.print_string(")")
        if self.dynamicSharedMemorySize is not None:
            printer.print_string(" dynamic_shared_memory_size ")
            printer.print_ssa_value(self.dynamicSharedMemorySize)
        if self.kernelOperands:

            def print_operand(value: SSAValue) -> None:
                printer.print_ssa_value(value)
                printer.print_string(" : ")
                printer.print_attribute(value.type)

            printer.print_string(" args(")
            printer.print_list(self.kernelOperands, print_operand)
            printer.print_string(")")
        printer.print_op_attributes(self.attributes)


@irdl_op_definition
class DynamicSharedMemoryOp(IRDLOperation):
    """The bytes of workgroup memory whose number the launch says."""

    name = "gpu.dynamic_shared_memory"

    resultMemref = result_def(MemRefType)

    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($resultMemref)"


@irdl_op_definition
class AllocOp(IRDLOperation):
    """Memory of the device."""

    name = "gpu.alloc"

    dynamicSizes = var_operand_def(_INDEX)
    memref = result_def(MemRefType)
    operandSegmentSizes = prop_def(DenseArrayBase)

    traits = traits_def(MemoryAllocEffect())

    @staticmethod
    def make(t: MemRefType, sizes: Sequence[SSAValue] = ()) -> AllocOp:
        """Memory of type `t`; one size per `?`."""
        segments = DenseArrayBase.from_list(i32, [0, len(sizes), 0])
        return AllocOp.create(operands=list(sizes), result_types=[t], properties={"operandSegmentSizes": segments})

    @classmethod
    def parse(cls, parser: Parser) -> AllocOp:
        names = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        t = parser.parse_type()
        assert isinstance(t, MemRefType)
        op = cls.make(t, [parser.resolve_operand(n, _INDEX) for n in names])
        op.attributes.update(attributes)
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" (")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_string(")")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.memref.type)


@irdl_op_definition
class DeallocOp(IRDLOperation):
    name = "gpu.dealloc"

    memref = operand_def(MemRefType)

    traits = traits_def(MemoryFreeEffect())
    assembly_format = "$memref attr-dict `:` type($memref)"


def shared(element: Attribute, *shape: int) -> MemRefType:
    """A workgroup buffer's type."""
    return MemRefType(element, list(shape), memory_space=WORKGROUP)


def kernel_function(
    name: str, region: Region, operands: int, block_size: Sequence[int], attributes: Sequence[DictionaryAttr] | None = None
) -> FuncOp:
    """A `gpu.func` kernel whose block has `operands` arguments before its workgroup buffers."""
    arguments = region.block.args
    properties: dict[str, Attribute] = {
        "sym_name": StringAttr(name),
        "function_type": FunctionType.from_lists([a.type for a in arguments[:operands]], []),
        "workgroup_attributions": IntegerAttr(len(arguments) - operands, i64),
        "known_block_size": DenseArrayBase.from_list(i32, list(block_size)),
    }
    if attributes is not None and any(d.data for d in attributes):
        properties["arg_attrs"] = ArrayAttr(list(attributes))
    return FuncOp.create(properties=properties, attributes={"gpu.kernel": UnitAttr()}, regions=[region])


GPU = Dialect(
    "gpu",
    [
        AllocOp, BarrierOp, BlockDimOp, BlockIdOp, DeallocOp, DynamicSharedMemoryOp, FuncOp, GridDimOp, LaunchFuncOp, ModuleOp, ReturnOp,
        ShuffleOp, ThreadIdOp,
    ],
    [AddressSpaceAttr, DimensionAttr],
)  # fmt: skip
