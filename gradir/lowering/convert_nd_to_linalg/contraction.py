"""`nd.dot_general`: one nest over batch, m, n, k that multiplies and adds; the operands' transposes and slices are its index maps."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, SSAValue

from gradir.dialects import nd
from gradir.dialects.types import Shape, element_of, is_unsigned, shape_of
from gradir.dialects.upstream import arith
from gradir.lowering.convert_nd_to_linalg.conversions import convert
from gradir.lowering.convert_nd_to_linalg.function import Lowering
from gradir.lowering.convert_nd_to_linalg.layouts import Layout, layout_of
from gradir.lowering.convert_nd_to_linalg.reduction import accumulator_type
from gradir.lowering.convert_nd_to_linalg.rules import lowers
from gradir.lowering.convert_nd_to_linalg.scalars import Scalars
from gradir.lowering.convert_nd_to_linalg.views import View, dim


@lowers(nd.DotGeneralOp)
def lower_dot_general(lowering: Lowering, op: nd.DotGeneralOp) -> View:
    """`result[b, m, n] = sum over k of lhs[b, m, k] * rhs[b, n, k]`."""
    batch = list(zip(op.numbers("lhs_batch"), op.numbers("rhs_batch")))
    contract = list(zip(op.numbers("lhs_contract"), op.numbers("rhs_contract")))
    lhs_free, rhs_free = op.free_dims()
    shape = shape_of(op.result)
    layout = layout_of(op.result)
    loop_of = {d: loop for loop, d in enumerate(layout.order)}  # result dimension -> loop: the loops follow memory
    lhs_loop: dict[int, int] = {}
    rhs_loop: dict[int, int] = {}
    for position, (i, j) in enumerate(batch):
        lhs_loop[i] = rhs_loop[j] = loop_of[position]
    for position, i in enumerate(lhs_free):
        lhs_loop[i] = loop_of[len(batch) + position]
    for position, j in enumerate(rhs_free):
        rhs_loop[j] = loop_of[len(batch) + len(lhs_free) + position]
    for position, (i, j) in enumerate(contract):
        lhs_loop[i] = rhs_loop[j] = len(shape) + position
    lhs = _placed(lowering, op.lhs, lhs_loop)
    rhs = _placed(lowering, op.rhs, rhs_loop)
    return multiply_add(lowering, lhs, rhs, element_of(op.result), layout, shape, reductions=len(contract))


def _placed(lowering: Lowering, operand: SSAValue, loops: dict[int, int]) -> View:
    """The operand over the nest's loops; in memory, since a micro-kernel reads both factors."""
    view = lowering.view(operand)
    if not view.is_tensor or not all(view.uses(d) for d in loops):
        view = lowering.whole(lowering.tensor(operand), view.element)
    return view.over({d: dim(loop) for d, loop in loops.items()})


def multiply_add(lowering: Lowering, lhs: View, rhs: View, element: Attribute, layout: Layout, shape: Shape, *, reductions: int) -> View:
    """Sum of products over the last `reductions` loops, in f32 at least, rounded once to `element`; loops follow `layout`."""
    into = accumulator_type(element)
    signed = not is_unsigned(lhs.element)

    def product(s: Scalars, xs: Sequence[SSAValue]) -> SSAValue:
        if isinstance(into, IntegerType):
            x, y = (convert(s, v, view.element, into) for v, view in zip(xs, (lhs, rhs)))
            return s.i(arith.MuliOp, x, y)
        x, y = (convert(s, v, accumulator_type(view.element), into) for v, view in zip(xs, (lhs, rhs)))
        return s.f(arith.MulfOp, x, y)

    def body(s: Scalars, xs: list[SSAValue], accumulator: SSAValue) -> SSAValue:
        if not reductions:
            return product(s, xs)
        term = product(s, xs)
        return s.i(arith.AddiOp, accumulator, term) if isinstance(into, IntegerType) else s.f(arith.AddfOp, accumulator, term)

    memory = layout.shape(shape)
    result = lowering.nests.nest(
        [lhs, rhs],
        into,
        memory,
        body,
        kinds="p" * len(shape) + "r" * reductions,
        out=range(len(shape)),
        init=0 if reductions else None,
        unsigned=not signed,
        share=False,
    )
    return layout.view(lowering.nests.cast(result, into, element), element)
