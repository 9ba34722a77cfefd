"""Family `gather_scatter`: windows move both parts; a product of complex numbers is a region on their parts."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from gradir.dialects import nd
from gradir.dialects.nd.gather_scatter import COMBINERS
from gradir.dialects.nd.regions import region_of
from gradir.dialects.types import element_of, is_complex
from gradir.ir.builder import Builder
from gradir.lowering.split_complex.boundaries import joined, split_op, split_operands, split_types
from gradir.lowering.split_complex.elementwise import product
from gradir.lowering.split_complex.parts import Pair, Parts, Rule, partwise


def split_scatter(parts: Parts, op: nd.ScatterGeneralOp) -> Sequence[SSAValue | Pair]:
    """`set` and `add` work on each part, a region gets the parts of its arguments, `mul` becomes such a region"""
    if op.combine != "mul":
        return split_op(parts, op)
    kinds = [result.type for result in op.results]
    elements = [element_of(kind) for kind in split_types(kinds)]
    widths = [2 if is_complex(element_of(kind)) else 1 for kind in kinds]

    def body(builder: Builder, arguments: Sequence[SSAValue]) -> Sequence[SSAValue]:
        inside = Parts(builder, {})
        olds, updates = arguments[: len(elements)], arguments[len(elements) :]
        found: list[SSAValue] = []
        for width in widths:
            at = len(found)
            a, b = olds[at : at + width], updates[at : at + width]
            found += product(inside, (a[0], a[1]), (b[0], b[1])) if width == 2 else (inside.mul(a[0], b[0]),)
        return found

    made = parts.builder.op(
        type(op),
        split_operands(parts, op.operands),
        split_types(kinds),
        {**op.properties, "kind": COMBINERS["region"]},
        [region_of([*elements, *elements], body)],
        op.attributes,
    )
    return joined(made.results, kinds)


RULES: dict[type[Operation], Rule] = {nd.GatherGeneralOp: partwise, nd.ScatterGeneralOp: split_scatter}
