"""The region of an op as scalar code: each of its ops through its own lowering rule, on views that are scalars instead of nests.

Wherever a rule asks for a nest over elements of rank 0, the nest's body is emitted in place. So an op that can be lowered on tensors can
stand in a region, with the same guards and the same rounding after each op.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from typing import Any

from xdsl.dialects.builtin import BFloat16Type, Float16Type
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.printer import Printer

from gradir.dialects.nd.regions import YieldOp
from gradir.dialects.types import Shape, element_of
from gradir.dialects.upstream import arith
from gradir.ir.builder import Builder
from gradir.lowering.convert_nd_to_linalg.conversions import convert, widen
from gradir.lowering.convert_nd_to_linalg.elements import lowered, number, number_of
from gradir.lowering.convert_nd_to_linalg.function import Lowering
from gradir.lowering.convert_nd_to_linalg.nests import NestBody, Nests
from gradir.lowering.convert_nd_to_linalg.rules import RULES
from gradir.lowering.convert_nd_to_linalg.scalars import Scalars, index_constant
from gradir.lowering.convert_nd_to_linalg.views import View


class ScalarNests(Nests):
    """Nests without loops: the body of each, in place, gives a scalar."""

    def __init__(self, builder: Builder) -> None:
        super().__init__(builder, _no_size, lambda value: index_constant(builder, value))

    def nest(self, inputs: Sequence[View], element: Attribute, shape: Shape, body: NestBody, **options: Any) -> SSAValue:
        """`body` on the scalars that the inputs are."""
        compute, scalars = options.get("compute", True), Scalars(self.builder, options.get("unsigned", False))
        xs = [self._scalar(scalars, view, compute) for view in inputs]
        if compute:
            xs = [widen(scalars, x) for x in xs]
        value = body(scalars, xs, xs[0] if xs else scalars.constant(0, lowered(element)))
        if compute and isinstance(lowered(element), Float16Type | BFloat16Type):
            value = scalars.to(arith.TruncFOp, value, lowered(element))
        return value

    def cast(self, value: SSAValue, source: Attribute, target: Attribute) -> SSAValue:
        """A scalar in another level-1 element type."""
        return value if source == target else convert(Scalars(self.builder), value, source, target)


def _no_size(size: Any) -> SSAValue:
    raise AssertionError(f"a single element has no size {size}")


class ScalarLowering(Lowering):
    """What rules see inside a region."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.nests = ScalarNests(builder)
        self.values: dict[SSAValue, View | SSAValue] = {}
        self.laid_out: set[SSAValue] = set()
        self.sizes: dict[str, SSAValue] = {}

    def whole(self, value: SSAValue, element: Attribute) -> View:
        """A scalar as a view of rank 0."""
        return View(value, (), element)

    def element(self, value: SSAValue) -> SSAValue:
        """What a value of the region became, as a scalar."""
        view = self.view(value)
        if isinstance(view.base, SSAValue):
            return view.base
        kind = lowered(view.element)
        assert isinstance(view.base, Attribute), "a region counts nothing"
        return self.builder(arith.ConstantOp, (), (kind,), {"value": number(number_of(view.base), kind)})


def scalar_code(builder: Builder, block: Block, arguments: Sequence[SSAValue]) -> list[SSAValue]:
    """Append what the region computes from scalar arguments; the scalars that it yields."""
    lowering = ScalarLowering(builder)
    outer = builder.loc
    for formal, actual in zip(block.args, arguments, strict=True):
        lowering.values[formal] = View(actual, (), element_of(formal))
    for op in block.ops:
        if isinstance(op, YieldOp):
            builder.loc = outer
            return [lowering.element(value) for value in op.values]
        builder.loc = op.location
        _one(lowering, op)
    raise AssertionError("a region without nd.yield passed the verifier")


def code_of(*regions: Region | None) -> str:
    """The text of regions, by which equal templates are one."""
    text = StringIO()
    for region in regions:
        if region is not None:
            Printer(text).print_region(region)
    return text.getvalue()


def _one(lowering: ScalarLowering, op: Operation) -> None:
    found = RULES[type(op)](lowering, op)
    lowering.values[op.results[0]] = found if isinstance(found, View) else View(found, (), element_of(op.results[0]))  # pyright: ignore[reportArgumentType]
