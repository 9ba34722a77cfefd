"""The table of passes: where each one lives and what it does, loaded on first use.

Plugins add rows through `register_pass`, the same way as the rows below; naming a pass costs no import of xDSL.
"""

from __future__ import annotations

import difflib
import importlib
from typing import TYPE_CHECKING

from gradir.errors import GradirError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradir.ir.passes import Pass

PassRow = tuple["str | type[Pass]", str]
"""`("module:Class", summary)`; a plugin may give the class itself."""

PASSES: dict[str, PassRow] = {
    "set-target": ("gradir.lowering.set_target:SetTarget", "write the description of the machine to compile for on the module"),
    "name-sizes": ("gradir.lowering.name_sizes:NameSizes", "sizes without a name get one; sizes of results follow"),
    "inline": ("gradir.lowering.inline:Inline", "replace calls of private functions by their bodies"),
    "canonicalize": ("gradir.lowering.canonicalize:Canonicalize", "fold constants and apply the local identities of every op"),
    "cse": ("gradir.lowering.cse:Cse", "merge ops that compute the same value"),
    "dce": ("gradir.lowering.dce:Dce", "remove ops whose results nobody uses"),
    "loop-invariant-code-motion": (
        "gradir.lowering.loop_invariants:LoopInvariantCodeMotion",
        "compute before a loop what is the same in all of its iterations",
    ),
    "symbol-dce": ("gradir.lowering.symbol_dce:SymbolDce", "remove private functions that nobody calls"),
    "nd-simplify": ("gradir.lowering.nd_simplify:NdSimplify", "algebraic identities of the tensor level"),
    "count-flops": ("gradir.lowering.count_flops:CountFlops", "write on each function how many floating-point operations a run takes"),
    "differentiate": ("gradir.autodiff.differentiate:Differentiate", "replace ad requests by generated tensor-level functions"),
    "nd-expand": ("gradir.lowering.nd_expand:NdExpand", "decompose composite ops (softmax, layer_norm, gelu, ...)"),
    "split-complex": ("gradir.lowering.split_complex:SplitComplex", "complex tensors become pairs of real ones"),
    "f8-to-bits": ("gradir.lowering.f8_to_bits:F8ToBits", "8-bit floats become the integers of their bits, computed in f32"),
    "convert-nd-to-linalg": ("gradir.lowering.convert_nd_to_linalg:ConvertNdToLinalg", "tensor ops become loop nests with scalar bodies"),
    "normalize-nests": ("gradir.lowering.normalize_nests:NormalizeNests", "loop nests as people write them become those of kernels"),
    "sink-loops": ("gradir.lowering.sink_loops:SinkLoops", "loops around elementwise nests move into the nests"),
    "fuse": ("gradir.lowering.fuse:Fuse", "mark the loop nests that become one kernel"),
    "outline-kernels": ("gradir.lowering.outline_kernels:OutlineKernels", "move each group into a private function, equal ones once"),
    "schedule-kernels": ("gradir.lowering.schedule_kernels:ScheduleKernels", "write tiles, vector width, parallel loops on each kernel"),
    "hoist-packing": ("gradir.lowering.hoist_packing:HoistPacking", "weights that a loop multiplies by are packed once, before it"),
    "order-kernels": ("gradir.lowering.order_kernels:OrderKernels", "readers before writers, then the order with the least live bytes"),
    "bufferize": ("gradir.lowering.bufferize:Bufferize", "tensors become memrefs, results become destinations"),
    "plan-memory": ("gradir.lowering.plan_memory:PlanMemory", "place every buffer at an offset of one arena"),
    "lower-kernels": ("gradir.lowering.lower_kernels:LowerKernels", "each kernel becomes loops over vectors by its schedule"),
    "expand-math": ("gradir.lowering.expand_math:ExpandMath", "math ops that the target lacks become polynomials"),
}


def register_pass(name: str, target: str | type[Pass], summary: str) -> None:
    """Add a pass of a plugin under `name`; `target` is `"module:Class"` or the class.

    Registering the same target twice is fine; taking the name of another pass is a `GradirError` GR031.
    """
    known = PASSES.get(name)
    if known is not None and known[0] != target:
        raise GradirError(
            f"pass name '{name}' is taken",
            part="graph",
            code="GR031",
            expected="a name that no other pass has",
            found=f"{known[0]} is registered as '{name}'",
            hint="rename the pass of the plugin",
        )
    PASSES[name] = (target, summary)


def load_pass(name: str) -> type[Pass]:
    """The class of pass `name`, imported now; `GradirError` GR030 with the nearest names when there is none."""
    row = PASSES.get(name)
    if row is None:
        raise unknown_pass(name)
    target = row[0]
    if not isinstance(target, str):
        return target
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)


def unknown_pass(name: str, pipelines: Sequence[str] = ()) -> GradirError:
    """The error for a name that neither a pass nor one of the named `pipelines` has."""
    near = difflib.get_close_matches(name, [*PASSES, *pipelines], n=3)
    return GradirError(
        f"unknown pass '{name}'",
        part="graph",
        code="GR030",
        expected="one of " + ", ".join(near) if near else "a name of `gradir-opt --list-passes`",
        found=name,
        hint=f"did you mean '{near[0]}'?" if near else "see `gradir-opt --list-passes`",
    )
