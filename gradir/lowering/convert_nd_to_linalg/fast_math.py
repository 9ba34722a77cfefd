"""`gradir.fastmath = "fast"` on a function: its float arithmetic may be reassociated, divided by reciprocals, freed of NaN and infinity.

Off by default (docs/numerics.md, row `fastmath`). The permission becomes a flag of each op of `arith` in the function's loop nests, where
LLVM finds it; it never changes which nests there are. What a call runs is the callee's own choice unless it was inlined.
"""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from gradir.dialects.upstream import arith, func, linalg
from gradir.ir.passes import error_at

ATTRIBUTE = "gradir.fastmath"
SETTINGS = ("none", "fast")

FAST = arith.FastMathFlagsAttr("fast")
_FLAGGED = (arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp, arith.NegfOp)


def mark_fast_math(function: func.FuncOp) -> None:
    """Give the function's float arithmetic the flag that its attribute asks for. Error OP045 for another setting."""
    setting = function.attributes.get(ATTRIBUTE)
    if setting is None:
        return
    if not isinstance(setting, StringAttr) or setting.data not in SETTINGS:
        raise error_at(
            function,
            "no such setting of floating-point arithmetic",
            part="operator",
            code="OP045",
            expected=f"{ATTRIBUTE} = one of {', '.join(SETTINGS)}",
            found=setting.data if isinstance(setting, StringAttr) else str(setting),
        )
    if setting.data == "fast":
        for op in function.walk():
            if isinstance(op, linalg.GenericOp):
                _mark(op)


def _mark(nest: Operation) -> None:
    for op in nest.regions[0].block.ops:
        if isinstance(op, _FLAGGED):
            op.properties["fastmath"] = FAST
