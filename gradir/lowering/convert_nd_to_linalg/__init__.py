"""`convert-nd-to-linalg`: ops on tensors become loop nests with scalar bodies.

Broadcasts, transposes, reversals, splats and counters become index maps and scalars (views), slices become slices, so none of them
is a loop nest. One file per op family; the table of rules (`rules.py`) is open to plugins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from gradir.dialects.kernel import KERNEL_ATTRIBUTE
from gradir.dialects.upstream import func
from gradir.ir.passes import Pass, PassContext
from gradir.lowering.convert_nd_to_linalg import (
    bits,
    contraction,
    convolution,
    creation,
    cumulative,
    effects,
    elementwise,
    gather_scatter,
    indexing,
    library,
    linalg,
    mathematics,
    random,
    reduction,
    region_reduction,
    select_and_scatter,
    shape,
    sorting,
    special,
)
from gradir.lowering.convert_nd_to_linalg.fast_math import mark_fast_math
from gradir.lowering.convert_nd_to_linalg.function import Lowering
from gradir.lowering.convert_nd_to_linalg.rules import RULES, lowers
from gradir.lowering.convert_nd_to_linalg.templates import Templates
from gradir.lowering.convert_nd_to_linalg.views import View

FAMILIES = (
    sorting,
    region_reduction,
    elementwise,
    mathematics,
    bits,
    special,
    reduction,
    cumulative,
    contraction,
    convolution,
    select_and_scatter,
    shape,
    indexing,
    gather_scatter,
    creation,
    effects,
    random,
    library,
    linalg,
)


@dataclass(frozen=True)
class ConvertNdToLinalg(Pass):
    """Before: functions at level 1, composites expanded, requests of `ad` resolved. After: level 2, no kernels yet.

    Example: `nd.add %x, %y : tensor<4xf32>` becomes

        %e = tensor.empty() : tensor<4xf32>
        %z = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%x, %y : ..) outs(%e : ..) {
        ^bb0(%a: f32, %b: f32, %_: f32):
          %s = arith.addf %a, %b : f32
          linalg.yield %s : f32
        } -> tensor<4xf32>
    """

    NAME: ClassVar[str] = "convert-nd-to-linalg"

    def apply(self, op: Operation, context: PassContext) -> None:
        block = op.regions[0].block
        functions = [f for f in block.ops if isinstance(f, func.FuncOp)]
        names = [name.data for f in functions if isinstance(name := f.properties.get("sym_name"), StringAttr)]
        templates = Templates(names)
        for function in functions:
            if KERNEL_ATTRIBUTE in function.attributes or not function.body.blocks:
                continue
            lowered = Lowering(function, templates).run()
            mark_fast_math(lowered)
            block.insert_op_before(lowered, function)
            function.detach()
        first = block.first_op
        for template in templates.functions:
            if first is None:
                block.add_op(template)
            else:
                block.insert_op_before(template, first)


__all__ = ["FAMILIES", "RULES", "ConvertNdToLinalg", "View", "lowers"]
