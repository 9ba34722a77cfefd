"""One stage of a chain at one block of rows, as a level-3 kernel of its own on windows of the operands.

A window is a `memref.subview`: one index along batches, a block along rows, everything along the other dimensions. Unit dimensions stay,
so the ops keep their indexing maps; `linalg.index` of a dimension that the window cuts gets the window's place added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, IndexType, MemRefType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from gradir.dialects.kernel import KERNEL_ATTRIBUTE, KINDS, ContractionAttr
from gradir.dialects.upstream import arith, func, linalg, memref
from gradir.ir.builder import Builder, new_function
from gradir.lowering.groups import STAGE, Group, GroupOp, group_of_kernel
from gradir.lowering.lower_kernels.binding import Kernel
from gradir.lowering.lower_kernels.builder import Index, LoopBuilder, i32_array
from gradir.lowering.lower_kernels.tiles import subview
from gradir.lowering.schedules import HEURISTICS
from gradir.lowering.schedules.machine import Machine

Place: TypeAlias = dict[int, Index]
"""Group dimension -> index: where the window starts."""

Copies: TypeAlias = Mapping[tuple[int, int], tuple[SSAValue, AffineMap]]
"""(op, operand) -> what is read instead, and its map from the op's loops."""


def inline(b: LoopBuilder, function: func.FuncOp, actuals: Sequence[SSAValue]) -> None:
    """Append the body of a lowered kernel; its scratch memory on the stack goes to the function's, once for all iterations."""
    block = function.body.block
    for argument, actual in zip(block.args, actuals, strict=True):
        argument.replace_all_uses_with(actual)
    for op in list(block.ops):
        op.detach()
        if isinstance(op, func.ReturnOp):
            continue
        if isinstance(op, memref.AllocaOp):
            first = b.stack.first_op
            b.stack.add_op(op) if first is None else b.stack.insert_op_before(op, first)
        else:
            b.block.add_op(op)


class StageBuilder:
    """Collects ops of a stage; `actuals` are what the function's arguments stand for, values at `b`."""

    def __init__(
        self, kernel: Kernel, b: LoopBuilder, group: Group, at: Place, rows: int, strips: Mapping[SSAValue, SSAValue], copies: Copies
    ) -> None:
        assert group.chain is not None
        self.kernel, self.b, self.group, self.at, self.rows = kernel, b, group, at, rows
        self.row, self.shared = group.chain.row, {*group.chain.batch, *group.chain.summed, group.chain.row}
        self.strips, self.copies = strips, copies
        self.block = Block()
        self.builder = Builder(self.block, b.loc)
        self.actuals: list[SSAValue] = []
        self._arguments: dict[SSAValue, SSAValue] = {}
        self._windows: dict[object, SSAValue] = {}
        self._inner: dict[SSAValue, SSAValue] = {}

    def start(self, o: GroupOp) -> None:
        """Fill the window of a sum with what it starts from."""
        assert o.init is not None
        self.builder.loc = o.op.location
        target = self._window(o.op.outputs[0], o.op.indexing_maps.data[-1].data, o)
        self.builder.op(linalg.FillOp, [self._scalar(o.init), target], (), {"operandSegmentSizes": i32_array(1, 1)})

    def add(self, position: int, inside: set[SSAValue], *, continued: bool) -> None:
        """The next op of the stage; `inside` are the values that the stage makes."""
        o = self.group.ops[position]
        maps = [m.data for m in o.op.indexing_maps.data]
        operands: list[SSAValue] = []
        self.builder.loc = o.op.location
        for k, (value, map_) in enumerate(zip(o.op.inputs, maps)):
            if (position, k) in self.copies:
                memory, maps[k] = self.copies[position, k]
                operands.append(self._argument(memory if self._is_whole(memory, o, maps[k]) else self._cut(memory, o, maps[k])))
            elif not isinstance(value.type, MemRefType):
                operands.append(self._scalar(value))
            else:
                operands.append(self._inner[value] if value in self._inner else self._window(value, map_, o))
        target = self._target(o, maps[-1])
        if not continued and o.init is not None:
            self.builder.op(linalg.FillOp, [self._scalar(o.init), target], (), {"operandSegmentSizes": i32_array(1, 1)})
        new = o.op.clone()
        new.location = o.op.location
        new.attributes.pop(STAGE, None)
        new.operands = [*operands, target]
        new.properties["indexing_maps"] = ArrayAttr([AffineMapAttr(m) for m in maps])
        self._bind_body(new, o)
        self.block.add_op(new)

    def function(self, kind: str, machine: Machine, *, packed: bool) -> func.FuncOp:
        """The stage as a kernel with its schedule; `packed`: the column operand of its contraction lies well already."""
        self.builder(func.ReturnOp)
        attributes: dict[str, Attribute] = {KERNEL_ATTRIBUTE: KINDS[kind or "loops"].of()}
        function = new_function("stage", self.block, [], private=True, attributes=attributes, loc=self.b.loc)
        group = group_of_kernel(function)
        if group is not None and group.kind in HEURISTICS:
            schedule = HEURISTICS[group.kind](group, machine)
            if packed and isinstance(schedule, ContractionAttr):
                schedule = ContractionAttr.of(tile=schedule.field("tile"))
            function.attributes[KERNEL_ATTRIBUTE] = schedule
        return function

    # values

    def _argument(self, actual: SSAValue) -> SSAValue:
        if actual not in self._arguments:
            self._arguments[actual] = self.block.insert_arg(actual.type, len(self.block.args))
            self.actuals.append(actual)
        return self._arguments[actual]

    def _scalar(self, old: SSAValue) -> SSAValue:
        """A scalar of the kernel: constants are repeated, others are arguments."""
        value = self.kernel.value(old)
        if not isinstance(value.owner, arith.ConstantOp):
            return self._argument(value)
        if value not in self._arguments:
            self._arguments[value] = self.builder(arith.ConstantOp, (), (value.type,), {"value": value.owner.value})
        return self._arguments[value]

    def _place(self, map_: AffineMap, shape: Sequence[int], o: GroupOp, *, own: bool) -> tuple[list[Index], list[int]]:
        """Offsets and sizes of the window that `map_` reads of memory of `shape`; `own`: memory that holds the window alone."""
        offsets: list[Index] = []
        sizes: list[int] = []
        for expr, size in zip(map_.results, shape):
            dim = o.dims[expr.position] if isinstance(expr, AffineDimExpr) else None
            if dim not in self.shared:
                offsets.append(0)
                sizes.append(size if not own or dim is None else cast("int", self.group.extents[dim]))
                continue
            assert dim is not None
            offsets.append(0 if own else self.at[dim])
            sizes.append(self.rows if dim == self.row else 1)
        return offsets, sizes

    def _window(self, value: SSAValue, map_: AffineMap, o: GroupOp) -> SSAValue:
        """What `o` sees of an operand in memory: of a strip, or of an argument of the kernel."""
        strip = self.strips.get(value)
        memory = strip if strip is not None else self.kernel.value(value)
        shape = cast("MemRefType[Any]", memory.type).get_shape()
        offsets, sizes = self._place(map_, shape, o, own=strip is not None)
        key = (memory, *(n if isinstance(n, int) else id(n) for n in offsets), *sizes)
        if key not in self._windows:
            self._windows[key] = subview(self.b, memory, offsets, sizes)
        return self._argument(self._windows[key])

    def _is_whole(self, memory: SSAValue, o: GroupOp, map_: AffineMap) -> bool:
        shape = cast("MemRefType[Any]", memory.type).get_shape()
        return self._place(map_, shape, o, own=True)[1] == list(shape)

    def _cut(self, memory: SSAValue, o: GroupOp, map_: AffineMap) -> SSAValue:
        """A copy without its padding."""
        shape = cast("MemRefType[Any]", memory.type).get_shape()
        offsets, sizes = self._place(map_, shape, o, own=True)
        key = (memory, *sizes)
        if key not in self._windows:
            self._windows[key] = subview(self.b, memory, offsets, sizes)
        return self._windows[key]

    def _target(self, o: GroupOp, map_: AffineMap) -> SSAValue:
        """Where the op writes: a window of memory, or a value of the stage's own."""
        value = o.op.outputs[0]
        if value not in self.kernel.temporaries or value in self.strips:
            return self._window(value, map_, o)
        kind = cast("MemRefType[Any]", value.type)
        _, sizes = self._place(map_, kind.get_shape(), o, own=False)
        properties: dict[str, Attribute] = {"operandSegmentSizes": i32_array(0, 0)}
        made = self._inner[value] = self.builder(memref.AllocOp, (), (MemRefType(kind.element_type, sizes),), properties)
        return made

    def _bind_body(self, new: linalg.GenericOp, o: GroupOp) -> None:
        """Scalars from outside, and indices along dimensions that windows cut."""
        inside: set[SSAValue] = {a for region in new.regions for block in region.blocks for a in block.args}
        for op in new.body.walk():
            inside.update(op.results)
            inside.update(a for region in op.regions for block in region.blocks for a in block.args)
        ops = list(new.body.walk())
        for op in ops:
            for k, value in enumerate(op.operands):
                if value not in inside:
                    op.operands[k] = self._scalar(value)
        for op in ops:
            if isinstance(op, linalg.IndexOp) and (dim := o.dims[op.dim.value.data]) in self.shared:
                self._shift(op, self.at[dim])

    def _shift(self, op: linalg.IndexOp, start: Index) -> None:
        """`op` counts from the window's start."""
        if start == 0:
            return
        place = self._argument(self.b.value(start))
        flags: dict[str, Attribute] = {"overflowFlags": arith.IntegerOverflowAttr("none")}
        moved: Operation = arith.AddiOp.create(
            operands=[op.result, place], result_types=[IndexType()], properties=flags, location=op.location
        )
        assert op.parent is not None
        op.result.replace_all_uses_with(moved.results[0])
        moved.operands[0] = op.result
        op.parent.insert_op_after(moved, op)
