"""Rebuilding one function at level 2: values become views, regions are converted in place, sizes get their run-time values.

Every op is visited once and rebuilt through the table of rules; ops of `func`, `scf`, `arith` and `tensor` are copied with their
operands in memory. What several functions share (templates) is in `templates.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import FunctionType, IntegerAttr, StringAttr, TensorType, i1
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from gradir import size_algebra
from gradir.dialects.size_limits import limits_of
from gradir.dialects.types import Dim, Shape, element_of, shape_of
from gradir.dialects.upstream import arith, cf, func, tensor as tensors
from gradir.ir.builder import Builder
from gradir.ir.passes import error_at
from gradir.ir.structure import single_block
from gradir.lowering.convert_nd_to_linalg.elements import lowered, number, number_of
from gradir.lowering.convert_nd_to_linalg.layouts import Layout, followed_layout
from gradir.lowering.convert_nd_to_linalg.nests import INDEX, Nests
from gradir.lowering.convert_nd_to_linalg.reassociation import reshape_in_memory
from gradir.lowering.convert_nd_to_linalg.rules import RULES
from gradir.lowering.convert_nd_to_linalg.size_arithmetic import SizeArithmetic
from gradir.lowering.convert_nd_to_linalg.templates import Templates
from gradir.lowering.convert_nd_to_linalg.views import Iota, View, dims

COPIED_DIALECTS = frozenset({"func", "scf", "arith", "tensor", "linalg", "cf", "math"})


class Lowering:
    """The state of one function's conversion; rules receive it."""

    def __init__(self, function: func.FuncOp, templates: Templates) -> None:
        self.function = function
        self.templates = templates
        source = single_block(function)
        self.entry = Block(arg_types=[lowered(a.type) for a in source.args])
        self.builder = Builder(self.entry, function.location)
        self.nests = Nests(self.builder, self.size_of, self.index)
        self.values: dict[SSAValue, View | SSAValue] = {}
        self.laid_out: set[SSAValue] = set()
        """Results in an order of memory that was chosen for them: what is computed from them follows."""
        self.sizes: dict[str, SSAValue] = {}
        self.limits = limits_of(function)
        self._indices: dict[int, SSAValue] = {}
        self._constants: dict[Attribute, SSAValue] = {}
        self._at_entry: Operation | None = None
        self._current: Operation = function
        self._enter(source.args, self.entry.args)

    # -- values --

    def view(self, value: SSAValue) -> View:
        """A tensor of level 1 as a view."""
        return cast("View", self.values[value])

    def scalar(self, value: SSAValue) -> SSAValue:
        """A scalar (index, i1, ...) of level 1."""
        return cast("SSAValue", self.values[value])

    def whole(self, value: SSAValue, element: Attribute) -> View:
        """The view of a tensor that is in memory in its own order; `element` is its level-1 element type."""
        return View(value, dims(*range(len(shape_of(value)))), element)

    def tensor(self, value: SSAValue) -> SSAValue:
        """A tensor of level 1 in memory, in its own order."""
        return self.materialized(self.view(value), shape_of(value))

    def materialized(self, view: View, shape: Shape) -> SSAValue:
        """The elements of a view in memory."""
        if view.is_identity(len(shape)):
            return cast("SSAValue", view.base)
        if view.differs_in_units(shape):
            base = cast("SSAValue", view.base)
            return reshape_in_memory(self.nests, base, shape_of(base), shape)
        return self.nests.copy(view, shape)

    def operand(self, value: SSAValue) -> SSAValue:
        """Any value of level 1 for an op that is copied."""
        found = self.values[value]
        return self.materialized(found, shape_of(value)) if isinstance(found, View) else found

    def element_at_origin(self, view: View) -> SSAValue:
        """The one element of a rank-0 view as a scalar value."""
        if isinstance(view.base, Iota):
            return self.builder(
                arith.ConstantOp, (), (lowered(view.element),), {"value": number(view.index[0].const, lowered(view.element))}
            )
        if not isinstance(view.base, SSAValue):
            value = number(number_of(view.base), lowered(view.element))
            return self.builder(arith.ConstantOp, (), (lowered(view.element),), {"value": value})
        if not view.is_tensor:
            return view.base
        at = [self.index(form.const) for form in view.index]
        return self.builder(tensors.ExtractOp, (view.base, *at), (lowered(view.element),))

    def elementwise(
        self, op: Operation, inputs: Sequence[View], body: Callable[..., SSAValue], *, compute: bool = True, unsigned: bool = False
    ) -> View:
        """One nest over the result of `op`, in the memory order of its operands."""
        result = op.results[0]
        element, shape = element_of(result), shape_of(result)
        layout = followed_layout(inputs, shape, self.laid_out)
        if not layout.is_plain:
            loops, shape = layout.loops(), layout.shape(shape)
            inputs = [view.over(loops) for view in inputs]
        return self.laid(self.nests.elementwise(inputs, element, shape, body, compute=compute, unsigned=unsigned), layout, element)

    def laid(self, value: SSAValue, layout: Layout, element: Attribute) -> View:
        """The value that was computed in memory order `layout`; `element` is its level-1 element type."""
        if layout.is_plain:
            return self.whole(value, element)
        self.laid_out.add(value)
        return layout.view(value, element)

    # -- constants and sizes --

    def index(self, value: int) -> SSAValue:
        """A constant index, defined once at the function's entry."""
        found = self._indices.get(value)
        if found is None:
            found = self._indices[value] = self.at_entry(arith.ConstantOp, (), (INDEX,), {"value": IntegerAttr(value, INDEX)})
        return found

    def at_entry(
        self,
        kind: type[Operation],
        operands: Sequence[SSAValue],
        types: Sequence[Attribute],
        properties: dict[str, Attribute] | None = None,
    ) -> SSAValue:
        """An op before all others of the function, so that every region sees it."""
        op = kind.create(operands=operands, result_types=types, properties=properties or {}, location=self.builder.loc)
        after = self._at_entry.next_op if self._at_entry is not None else self.entry.first_op
        if after is None:
            self.entry.add_op(op)
        else:
            self.entry.insert_op_before(op, after)
        self._at_entry = op
        return op.results[0]

    def constant(self, value: Attribute) -> SSAValue:
        """A dense constant at the function's entry; equal ones are one."""
        found = self._constants.get(value)
        if found is None:
            found = self._constants[value] = self.at_entry(arith.ConstantOp, (), (cast("Any", value).type,), {"value": value})
        return found

    def learn_sizes(self, shape: Shape, sizes: Sequence[SSAValue]) -> None:
        """Note the values of names that an op's `sizes` operands give."""
        unknown = [n for n in shape if not isinstance(n, int)]
        for name, value in zip(unknown, sizes):
            if name is not None:
                self.sizes.setdefault(name, self.scalar(value))

    def size_of(self, size: Dim) -> SSAValue:
        """The run-time value of a size, computed from the names in it. GR020 where nothing tells one."""
        if isinstance(size, int):
            return self.index(size)
        if size is None or (found := self.sizes.get(size)) is None:
            if size is None or size_algebra.is_name(size):
                raise self._unknown_size(size)
            found = size_algebra.build(size, self.size_of, SizeArithmetic(self), self.index)
        return found

    def _unknown_size(self, size: Dim) -> Exception:
        return error_at(
            self._current,
            "a run-time size is not known here",
            part="graph",
            code="GR020",
            expected="a size that an argument's type names, or one that nd.bind introduced",
            found=f"size {size!r}" if size is not None else "a `?` without a name",
            hint="name the size in the types, or introduce it with nd.bind",
        )

    def size(self, value: SSAValue, d: int) -> SSAValue:
        """The run-time size of dimension `d` of a level-1 tensor."""
        size = shape_of(value)[d]
        if size is None:
            return self.builder(tensors.DimOp, (self.tensor(value), self.index(d)), (INDEX,))
        return self.size_of(size)

    def require_within(self, part: Dim, whole: Dim, what: str) -> None:
        """The program asserts that `part` elements are within `whole`, unless the texts or the limits of names prove it."""
        room = size_algebra.minus(whole, part)
        if room is None or size_algebra.bounds(room, self._limits)[0] >= 0:
            return
        flag = self.builder(arith.CmpiOp, (self.size_of(room), self.index(0)), (i1,), {"predicate": arith.integer_predicate("sge")})
        self.builder(cf.AssertOp, (flag,), (), {"msg": StringAttr(f"{what}: {part} does not fit in {whole}")})

    def within(self, offset: int, size: Dim) -> int | SSAValue:
        """`min(offset, size)`: where a slice of no elements begins, unless the texts or the limits of names prove that there are enough."""
        room = size_algebra.minus(size, offset)
        if offset == 0 or room is None or size_algebra.bounds(room, self._limits)[0] >= 0:
            return offset
        return self.builder(arith.MinSIOp, (self.index(offset), self.size_of(size)), (INDEX,))

    def _limits(self, name: str) -> tuple[int, int]:
        limits = self.limits.get(name)
        return (0, size_algebra.UNLIMITED) if limits is None else (limits.min, limits.max or size_algebra.UNLIMITED)

    def _enter(self, old: Sequence[BlockArgument], new: Sequence[BlockArgument]) -> None:
        for before, after in zip(old, new):
            after.name_hint = before.name_hint
            self.values[before] = self.whole(after, element_of(before)) if isinstance(before.type, TensorType) else after

    def _name_sizes(self) -> None:
        """The names in the types of arguments: sizes themselves first, then those that `2*b+1` and the like tell."""
        for argument in self.entry.args:
            if not isinstance(argument.type, TensorType):
                continue
            for d, size in enumerate(shape_of(argument)):
                if isinstance(size, str) and size not in self.sizes:
                    self.sizes[size] = self.at_entry(tensors.DimOp, (argument, self.index(d)), (INDEX,))
        given = tuple(self.sizes)
        for name, k, rest, factor in size_algebra.solve(given):
            if name not in self.sizes:
                arithmetic = SizeArithmetic(self)
                value = arithmetic.minus(self.sizes[given[k]], self.size_of(rest))
                self.sizes[name] = value if factor == 1 else arithmetic["floordiv"](value, self.index(factor))

    # -- ops --

    def run(self) -> func.FuncOp:
        """The converted function."""
        self._name_sizes()
        self.block(self.function.body.block)
        results = [lowered(t) for t in self.function.function_type.outputs]
        type_ = FunctionType.from_lists([a.type for a in self.entry.args], results)
        return func.FuncOp.create(
            properties={**self.function.properties, "function_type": type_},
            attributes=dict(self.function.attributes),
            regions=[Region(self.entry)],
            location=self.function.location,
        )

    def block(self, source: Block) -> None:
        """Convert the ops of one block into the builder's block."""
        for op in source.ops:
            self._current = op
            self.builder.loc = op.location
            rule = RULES.get(type(op))
            if rule is not None:
                value = rule(self, op)
                if isinstance(value, tuple):
                    for result, one in zip(op.results, value, strict=True):
                        self._define(result, one)
                elif value is not None:
                    self._define(op.results[0], value)
            elif op.dialect_name() in COPIED_DIALECTS:
                self.copy(op)
            else:
                raise self._no_rule(op)

    def _define(self, result: SSAValue, value: View | SSAValue) -> None:
        self.values[result] = value
        base = value.base if isinstance(value, View) else value
        if isinstance(base, SSAValue) and base.name_hint is None:
            base.name_hint = result.name_hint

    def copy(self, op: Operation) -> None:
        """The same op on lowered values, its regions converted."""
        operands = [self.operand(v) for v in op.operands]
        regions = [self.region(region) for region in op.regions]
        self.builder.loc = op.location
        new = self.builder.op(type(op), operands, [lowered(r.type) for r in op.results], op.properties, regions, op.attributes)
        for before, after in zip(op.results, new.results):
            after.name_hint = before.name_hint
            self.values[before] = self.whole(after, element_of(before)) if isinstance(before.type, TensorType) else after

    def region(self, source: Region) -> Region:
        """A converted copy of a region with at most one block; names bound inside end with it."""
        if not source.blocks:
            return Region()
        block = Block(arg_types=[lowered(a.type) for a in source.block.args])
        self._enter(source.block.args, block.args)
        outer, names = self.builder.block, dict(self.sizes)
        self.builder.block = block
        self.block(source.block)
        self.builder.block, self.sizes = outer, names
        return Region(block)

    def _no_rule(self, op: Operation) -> Exception:
        if op.name.startswith("ad."):
            hint = "run differentiate before convert-nd-to-linalg"
        else:
            hint = "run nd-expand first if the op is a composite; else add a rule with @lowers in gradir/lowering/convert_nd_to_linalg"
        return error_at(op, "no rule lowers this op to linalg", part="operator", code="OP020", found=op.name, hint=hint)
