"""`hoist-packing`: weights that a loop multiplies by in every step are packed once, before the loop.

A contraction whose schedule copies its column operand into panels pays for the copy in each call. In a loop (the cell of a recurrent
network) an operand from outside is the same in all steps: panels are made of it once, and a variant of the kernel reads those, through the
indexing map that says how they lie. The packed weights live as long as the loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, cast

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, FunctionType, ModuleOp, StringAttr, SymbolRefAttr, TensorType, f32, f64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from gradir.dialects.kernel import KERNEL_ATTRIBUTE, REASON_ATTRIBUTE, ContractionAttr, ElementwiseAttr
from gradir.dialects.target import TARGET_ATTRIBUTE, CudaTargetAttr
from gradir.dialects.types import element_of, reassociation, segments, shape_of
from gradir.dialects.upstream import func, linalg, scf, tensor
from gradir.ir.builder import Builder, new_function
from gradir.ir.passes import Pass, PassContext
from gradir.ir.structure import is_inside
from gradir.lowering.groups import Group, group_of_kernel
from gradir.lowering.lower_kernels.panels import packed_map
from gradir.lowering.schedules import HEURISTICS, Machine, machine_of
from gradir.lowering.schedules.reasons import REASONS


@dataclass(frozen=True)
class HoistPacking(Pass):
    """Before and after: level 2, kernels with schedules. No kernel that a loop calls packs an operand that is the same in all steps.

    ```mlir
    scf.for .. { %y = func.call @contraction_0(%x, %w, %e) }      // pack = [1]
    // becomes
    %p = func.call @panels_0(%w, %f)
    scf.for .. { %y = func.call @contraction_0_packed(%x, %p, %e) }
    ```
    """

    NAME: ClassVar[str] = "hoist-packing"

    def apply(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, ModuleOp)
        if not isinstance(op.attributes.get(TARGET_ATTRIBUTE), CudaTargetAttr):
            _Hoister(op).run()


@dataclass(frozen=True)
class Weights:
    """The column operand of a contraction kernel: argument `index`, read by operand `operand` of `core` along loops `deep` and `across`."""

    index: int
    core: linalg.GenericOp
    operand: int
    deep: int
    across: int
    width: int

    def panels(self, type_: TensorType[Any]) -> tuple[int, int, int]:
        """(panels, depth, width) of an operand of that type."""
        read = self.core.indexing_maps.data[self.operand].data
        place = {cast("AffineDimExpr", e).position: k for k, e in enumerate(read.results)}
        shape = type_.get_shape()
        return shape[place[self.across]] // self.width, shape[place[self.deep]], self.width


class _Hoister:
    def __init__(self, module: ModuleOp) -> None:
        self.module, self.machine = module, machine_of(module)
        self.functions = {f.sym_name.data: f for f in module.body.block.ops if isinstance(f, func.FuncOp)}
        self._weights: dict[str, Weights | None] = {}
        self._variants: dict[str, str] = {}
        self._packers: dict[object, str] = {}

    def run(self) -> None:
        for function in list(self.functions.values()):
            if KERNEL_ATTRIBUTE not in function.attributes:
                packed: dict[object, SSAValue] = {}
                for call in [c for c in function.walk() if isinstance(c, func.CallOp)]:
                    self._call(call, packed)
        called = {c.callee.root_reference.data for c in self.module.walk() if isinstance(c, func.CallOp)} if self._variants else set[str]()
        for name in self._variants:
            if name not in called:
                kernel = self.functions.pop(name)
                kernel.detach()
                kernel.erase()

    def _call(self, call: func.CallOp, packed: dict[object, SSAValue]) -> None:
        """Let one call read panels, if it is in a loop and the operand is not made there."""
        name = call.callee.root_reference.data
        if name not in self._weights:
            self._weights[name] = self._find(self.functions[name]) if name in self.functions else None
        weights = self._weights[name]
        loop = _outermost_loop(call, call.operands[weights.index]) if weights is not None else None
        if weights is None or loop is None:
            return
        value = call.operands[weights.index]
        key = (value, loop, *weights.panels(cast("TensorType[Any]", value.type)), weights.core.indexing_maps.data[weights.operand])
        if key not in packed:
            packed[key] = self._pack(weights, value, loop)
        if name not in self._variants:
            self._variants[name] = self._variant(name, weights, packed[key].type)
        call.operands[weights.index] = packed[key]
        call.properties["callee"] = SymbolRefAttr(self._variants[name])

    def _find(self, kernel: func.FuncOp) -> Weights | None:
        """The operand that the kernel packs, if panels of it can be made apart from the kernel."""
        schedule = kernel.attributes.get(KERNEL_ATTRIBUTE)
        group = group_of_kernel(kernel) if isinstance(schedule, ContractionAttr) and not kernel.is_declaration else None
        if group is None or group.contraction is None or not isinstance(schedule, ContractionAttr):
            return None
        tile = schedule.field("tile")
        return _weights_of(group, kernel.body.block, tile[1]) if schedule.field("pack") == (1,) and len(tile) == 2 else None

    def _pack(self, weights: Weights, value: SSAValue, loop: Operation) -> SSAValue:
        """Panels of `value`, made before `loop`."""
        type_ = cast("TensorType[Any]", value.type)
        panels, depth, width = weights.panels(type_)
        read = weights.core.indexing_maps.data[weights.operand].data
        first = cast("AffineDimExpr", read.results[0]).position == weights.deep
        name = self._packers.get((type_, first, width))
        made = TensorType(type_.element_type, [panels, depth, width])
        if name is None:
            name = self._packers[type_, first, width] = self._packer(type_, made, first)
        parent, block = loop.parent, Block()
        assert parent is not None
        builder = Builder(block, loop.location)
        empty = builder(tensor.EmptyOp, (), (made,))
        copy = builder(func.CallOp, (value, empty), (made,), {"callee": SymbolRefAttr(name)})
        flat = TensorType(type_.element_type, [panels * depth, width])
        result = builder(tensor.CollapseShapeOp, (copy,), (flat,), {"reassociation": reassociation([(0, 1), (2,)])})
        result.name_hint = copy.name_hint = value.name_hint
        for op in list(block.ops):
            op.detach()
            parent.insert_op_before(op, loop)
        return result

    def _packer(self, source: TensorType[Any], made: TensorType[Any], along_rows: bool) -> str:
        """The kernel that copies weights, [depth, columns] or [columns, depth], to panels."""
        panel, deep, lane = (AffineDimExpr(k) for k in range(3))
        column = panel * made.get_shape()[2] + lane
        maps = [AffineMap(3, 0, (deep, column) if along_rows else (column, deep)), AffineMap.identity(3)]
        block, body = Block(arg_types=[source, made]), Block(arg_types=[source.element_type, source.element_type])
        Builder(body).op(linalg.YieldOp, [body.args[0]])
        builder = Builder(block)
        parallel = linalg.IteratorTypeAttr(linalg.IteratorType.PARALLEL)
        properties: dict[str, Attribute] = {
            "indexing_maps": ArrayAttr([AffineMapAttr(m) for m in maps]),
            "iterator_types": ArrayAttr([parallel] * 3),
            "operandSegmentSizes": segments(1, 1),
        }
        result = builder(linalg.GenericOp, block.args, (made,), properties, regions=[Region(body)])
        builder(func.ReturnOp, [result])
        name = self._fresh("panels")
        function = new_function(name, block, [made], private=True, attributes={KERNEL_ATTRIBUTE: ElementwiseAttr.of()})
        _schedule(function, self.machine)
        self._add(function)
        return name

    def _variant(self, name: str, weights: Weights, panels: Attribute) -> str:
        """The kernel `name` on panels."""
        kernel = self.functions[name]
        new = kernel.clone()
        _, depth, width = weights.panels(cast("TensorType[Any]", kernel.body.block.args[weights.index].type))
        argument = new.body.block.args[weights.index]
        new.body.block.args[weights.index]._type = panels  # as xDSL's own rewriter does
        (core,) = [u.operation for u in argument.uses]
        assert isinstance(core, linalg.GenericOp)
        maps = [m.data for m in core.indexing_maps.data]
        maps[weights.operand] = packed_map(maps[0].num_dims, weights.deep, weights.across, depth, width)
        core.properties["indexing_maps"] = ArrayAttr([AffineMapAttr(m) for m in maps])
        old = cast("ContractionAttr", kernel.attributes[KERNEL_ATTRIBUTE])
        rows = (*old.field("block"), 0)[0]
        block = [rows, 0, 0] if rows else []
        schedule = ContractionAttr.of(tile=old.field("tile"), block=block, pack=[], parallel=old.field("parallel"))
        new.attributes[KERNEL_ATTRIBUTE] = schedule
        group = group_of_kernel(new)
        if group is not None:
            reason = REASONS[schedule.kind](group, self.machine, schedule)
            new.attributes[REASON_ATTRIBUTE] = StringAttr(f"{reason}; operand {weights.index} packed before the loop")
        inputs = [a.type for a in new.body.block.args]
        new.properties["function_type"] = FunctionType.from_lists(inputs, list(kernel.function_type.outputs.data))
        new.properties["sym_name"] = StringAttr(self._fresh(f"{name}_packed"))
        self._add(new)
        return new.sym_name.data

    def _fresh(self, stem: str) -> str:
        count = 0
        while (found := f"{stem}_{count}") in self.functions:
            count += 1
        return found

    def _add(self, function: func.FuncOp) -> None:
        first = self.module.body.block.first_op
        assert first is not None
        self.module.body.block.insert_op_before(function, first)
        self.functions[function.sym_name.data] = function


def _schedule(function: func.FuncOp, machine: Machine) -> None:
    group = group_of_kernel(function)
    assert group is not None
    schedule = HEURISTICS[group.kind](group, machine)
    function.attributes[KERNEL_ATTRIBUTE] = schedule
    function.attributes[REASON_ATTRIBUTE] = StringAttr(REASONS[schedule.kind](group, machine, schedule))


def _weights_of(group: Group, block: Block, width: int) -> Weights | None:
    """The column operand: a matrix [depth, columns] or [columns, depth] that is an argument of the kernel and read by the product alone."""
    assert group.contraction is not None
    core = group.ops[group.contraction.index]
    across = core.loops.output_loops[-1] if core.loops.output_loops else None
    if across is None:
        return None
    maps = [m.data for m in core.op.indexing_maps.data]
    readers = [k for k in range(len(core.op.inputs)) if across in maps[k].used_dims()]
    if len(readers) != 1:
        return None
    (operand,) = readers
    value, read = core.op.inputs[operand], maps[operand]
    loops = [e.position for e in read.results if isinstance(e, AffineDimExpr)]
    shape = shape_of(value)
    if value.owner is not block or len(list(value.uses)) != 1 or len(loops) != 2 or len(shape) != 2:
        return None
    if element_of(value) not in (f32, f64) or element_of(value) != element_of(core.op.outputs[0]):
        return None
    deep = loops[1 - loops.index(across)]
    columns = shape[loops.index(across)]
    if not core.loops.reduced[deep] or sum(core.loops.reduced) != 1 or not isinstance(columns, int) or columns % width or not columns:
        return None
    if not all(isinstance(n, int) and n > 0 for n in shape):
        return None
    return Weights(block.args.index(cast("Any", value)), core.op, operand, deep, across, width)


def _outermost_loop(call: func.CallOp, value: SSAValue) -> Operation | None:
    """The outermost loop around `call` in which `value` is the same in all steps."""
    found: Operation | None = None
    op = call.parent_op()
    while op is not None and not is_inside(value, op):
        if isinstance(op, scf.ForOp | scf.WhileOp):
            found = op
        op = op.parent_op()
    return found
