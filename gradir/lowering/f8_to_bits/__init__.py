"""8-bit floats become the integers of their bits: f32 wherever numbers are computed, i8 wherever they are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
from xdsl.dialects.builtin import FunctionType, ModuleOp, TensorType, f32, i8
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.traits import IsTerminator

from gradir.dialects import nd
from gradir.dialects.nd.gather_scatter import COMBINERS
from gradir.dialects.nd.regions import region_of
from gradir.dialects.types import element_of, shape_of, tensor
from gradir.dialects.upstream.func import CallOp, FuncOp
from gradir.ir.builder import Builder
from gradir.ir.passes import Pass, PassContext
from gradir.ir.structure import move_before
from gradir.lowering.f8_to_bits.numbers import Format, Numbers, format_of

MOVES: frozenset[type[Operation]] = frozenset(
    (
        *(nd.ReshapeOp, nd.TransposeOp, nd.BroadcastOp, nd.SliceOp, nd.PadOp, nd.ConcatenateOp, nd.ReverseOp, nd.GatherOp),
        *(nd.DynamicSliceOp, nd.DynamicUpdateSliceOp, nd.IndexAtOp, nd.UpdateAtOp, nd.SelectOp, nd.EmptyOp, nd.GatherGeneralOp),
        *(nd.OptimizationBarrierOp, nd.CustomCallOp, nd.BitcastConvertOp, nd.DimOp),
    )
)
"""They move or reinterpret elements, whatever their type."""

_SOURCES = (nd.ConstantOp, nd.ConvertOp, nd.IotaOp, nd.EmptyOp, nd.CustomCallOp, nd.BitcastConvertOp)
"""8-bit floats begin at one of these or at an argument."""


@dataclass(frozen=True)
class F8ToBits(Pass):
    """Before: level 1, without composites. After: no value is an 8-bit float. A module without any is left as it is.

    Ops that move elements move i8; all others compute in f32, from explicit conversions and into explicit conversions, each rounded once.

    ```mlir
    %r = nd.add %x, %y : tensor<4xf8E5M2>
    // becomes, of %x and %y in tensor<4xi8>: shifts, masks and nd.bitcast_convert to tensor<4xf32>, nd.add there, and the way back
    ```
    """

    NAME: ClassVar[str] = "f8-to-bits"

    def apply(self, op: Operation, context: PassContext) -> None:
        module = cast("ModuleOp", op)
        if not has_f8(module):
            return
        bits = Bits()
        for function in module.body.block.ops:
            if isinstance(function, FuncOp):
                bits.function(function)


def is_f8_type(kind: Attribute) -> bool:
    """Whether this is a tensor of 8-bit floats."""
    return isinstance(kind, TensorType) and format_of(kind.element_type) is not None


def has_f8(module: ModuleOp) -> bool:
    """Whether any value is an 8-bit float: looks at arguments and at the ops that make such values."""
    for op in module.walk():
        if isinstance(op, _SOURCES) and any(is_f8_type(result.type) for result in op.results):
            return True
        if isinstance(op, FuncOp) and any(map(is_f8_type, (*op.function_type.inputs.data, *op.function_type.outputs.data))):
            return True
    return False


def stored(kind: Attribute) -> Attribute:
    """The tensor of bits."""
    return tensor(i8, shape_of(kind)) if is_f8_type(kind) else kind


def computed(kind: Attribute) -> Attribute:
    """The tensor in which is computed."""
    return tensor(f32, shape_of(kind)) if is_f8_type(kind) else kind


class Bits:
    """One run: the format of each value that is now a tensor of bits."""

    def __init__(self) -> None:
        self.formats: dict[SSAValue, Format] = {}

    def function(self, function: FuncOp) -> None:
        """Type, arguments and body."""
        kind = function.function_type
        for block in function.body.blocks:
            self.block(block)
        outputs = list(map(stored, kind.outputs.data))
        function.properties["function_type"] = FunctionType.from_lists(list(map(stored, kind.inputs.data)), outputs)

    def block(self, block: Block) -> None:
        """The arguments, then every op."""
        for argument in list(block.args):
            self.retyped(argument)
        for op in list(block.ops):
            self.op(op)

    def retyped(self, value: SSAValue) -> None:
        """An 8-bit float is its bits from here on."""
        found = format_of(element_of(value)) if is_f8_type(value.type) else None
        if found is not None:
            self.formats[Rewriter.replace_value_with_new_type(value, stored(value.type))] = found

    def op(self, op: Operation) -> None:
        """One op and what is inside of it."""
        if not any(v in self.formats for v in op.operands) and not any(is_f8_type(r.type) for r in op.results):
            self.regions(op)
            return
        if isinstance(op, nd.ConstantOp):
            self._constant(op)
        elif isinstance(op, nd.ScatterGeneralOp) and op.combine in ("set", "mul"):
            self._scatter(op)
        elif type(op) in MOVES or op.regions or isinstance(op, CallOp) or op.has_trait(IsTerminator):
            for result in list(op.results):
                self.retyped(result)
            self.regions(op)
        else:
            self._compute(op)

    def regions(self, op: Operation) -> None:
        """The bodies of `op`."""
        for region in op.regions:
            for block in region.blocks:
                self.block(block)

    def _constant(self, op: nd.ConstantOp) -> None:
        values = np.asarray(op.evaluate()).view(np.int8)
        made = Block()
        self._replace(op, made, [Numbers(Builder(made, op.location)).emit(nd.ConstantOp.make(values))])

    def _scatter(self, op: nd.ScatterGeneralOp) -> None:
        """`set` moves bits; a product is rounded at each step, so it is a region on bits."""
        if op.combine == "mul":
            formats = [self.formats[value] for value in op.inputs]

            def body(builder: Builder, arguments: Sequence[SSAValue]) -> Sequence[SSAValue]:
                n = Numbers(builder)
                olds, updates = arguments[: len(formats)], arguments[len(formats) :]
                return [n.narrowed(n.mul(n.widened(a, f), n.widened(b, f)), f) for a, b, f in zip(olds, updates, formats)]

            op.properties["kind"] = COMBINERS["region"]
            op.add_region(region_of([i8] * (2 * len(formats)), body))
        for result in list(op.results):
            self.retyped(result)

    def _compute(self, op: Operation) -> None:
        """The op on f32, its 8-bit results rounded."""
        made = Block()
        n = Numbers(Builder(made, op.location))
        if isinstance(op, nd.ConvertOp):
            return self._replace(op, made, [self._converted(n, op)])
        operands = [n.widened(v, self.formats[v]) if v in self.formats else v for v in op.operands]
        new: Any = n.builder.op(type(op), operands, [computed(r.type) for r in op.results], op.properties, (), op.attributes)
        results = [self._narrowed(n, value, old) for value, old in zip(new.results, op.results)]
        return self._replace(op, made, results)

    def _converted(self, n: Numbers, op: nd.ConvertOp) -> SSAValue:
        source, target = self.formats.get(op.operand), format_of(element_of(op.result))
        if source is not None and source == target:
            return op.operand
        value = op.operand if source is None else n.widened(op.operand, source)
        return n.to(value, element_of(op.result)) if target is None else n.narrowed(value, target)

    def _narrowed(self, n: Numbers, value: SSAValue, old: SSAValue) -> SSAValue:
        target = format_of(element_of(old)) if is_f8_type(old.type) else None
        return value if target is None else n.narrowed(value, target)

    def _replace(self, op: Operation, made: Block, results: Sequence[SSAValue]) -> None:
        """`results`, computed by the ops of `made`, in place of the op."""
        move_before(made, op)
        for old, new in zip(op.results, results, strict=True):
            if is_f8_type(old.type):
                found = format_of(element_of(old))
                assert found is not None
                self.formats[new] = found
            new.name_hint = new.name_hint or old.name_hint
            old.replace_all_uses_with(new)
        op.detach()
        op.erase()
