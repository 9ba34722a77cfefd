"""The pass: every math op that the target lacks is replaced by arithmetic, on scalars and on vectors of any shape alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.dialects.builtin import BFloat16Type, Float16Type, VectorType, f32
from xdsl.ir import Attribute, Block, Operation, SSAValue

from gradir.dialects.target import CpuTargetAttr, TargetAttr, target_of
from gradir.dialects.upstream import arith
from gradir.dialects.upstream.math import NONPOSITIVE
from gradir.ir.passes import Pass, PassContext, error_at
from gradir.lowering.expand_math import error_function, exponential, inverse, logarithm, power, rounding, trigonometric
from gradir.lowering.expand_math.algebra import Expression, Site, shaped

Rule = Callable[..., Expression]

EXPANSIONS: dict[str, Rule] = {
    "math.exp": exponential.exp,
    "math.exp2": exponential.exp2,
    "math.expm1": exponential.expm1,
    "math.tanh": exponential.tanh,
    "math.sinh": exponential.sinh,
    "math.cosh": exponential.cosh,
    "math.log": logarithm.log,
    "math.log2": logarithm.log2,
    "math.log10": logarithm.log10,
    "math.log1p": logarithm.log1p,
    "math.powf": power.pow,
    "math.cbrt": power.cbrt,
    "math.ipowi": power.integer_power,
    "math.fpowi": power.float_to_integer_power,
    "math.sin": trigonometric.sin,
    "math.cos": trigonometric.cos,
    "math.tan": trigonometric.tan,
    "math.atan": trigonometric.atan,
    "math.atan2": trigonometric.atan2,
    "math.asin": inverse.asin,
    "math.acos": inverse.acos,
    "math.asinh": inverse.asinh,
    "math.acosh": inverse.acosh,
    "math.atanh": inverse.atanh,
    "math.erf": error_function.erf,
    "math.erfc": error_function.erfc,
    "math.rsqrt": rounding.rsqrt,
    "math.round": rounding.round_away,
    "math.isnan": rounding.is_nan,
    "math.isinf": rounding.is_inf,
    "math.isfinite": rounding.is_finite,
    "math.isnormal": rounding.is_normal,
    "arith.remf": rounding.remainder,
}
"""Ops that no target has, by name; plugins may add theirs."""

NATIVE = frozenset(
    "math." + name for name in ("sqrt", "fma", "floor", "ceil", "trunc", "roundeven", "absf", "copysign", "absi", "ctlz", "cttz", "ctpop")
)
"""Math ops that the emitter takes."""

_WITHOUT_SSE41: dict[str, Rule] = {
    "math.floor": rounding.floor,
    "math.ceil": rounding.ceil,
    "math.trunc": rounding.trunc,
    "math.roundeven": rounding.round_even,
}


def expansions_for(target: TargetAttr) -> Mapping[str, Rule]:
    """What has to be expanded for a target: `EXPANSIONS`, and what an old CPU lacks."""
    rules = dict(EXPANSIONS)
    if isinstance(target, CpuTargetAttr):
        if not target.has("sse4.1"):
            rules.update(_WITHOUT_SSE41)
        if not target.has("fma"):
            rules["math.fma"] = rounding.fma
    return rules


@dataclass(frozen=True)
class ExpandMath(Pass):
    """Before: level 4. After: the only math ops are those of `NATIVE` that the target has; no library call is needed.

    `%e = math.exp %x : vector<8xf32>` becomes a reduction by ln 2, a polynomial (`math.fma`), and a scaling by 2^n through integer ops.
    f16 and bf16 are computed in f32 and rounded once. Accuracy: docs/numerics.md, "Elementwise".
    """

    NAME: ClassVar[str] = "expand-math"

    def apply(self, op: Operation, context: PassContext) -> None:
        rules = expansions_for(target_of(op))
        for function in [f for f in op.walk() if f.name in ("func.func", "gpu.func") and f.regions[0].blocks]:
            _expand_function(function, rules)


def _expand_function(function: Operation, rules: Mapping[str, Rule]) -> None:
    entry = function.regions[0].blocks[0]
    constants: dict[tuple[object, Attribute], SSAValue] = {}
    pending = [o for o in function.walk() if o.name in rules or (o.name.startswith("math.") and o.name not in NATIVE)]
    while pending:
        op = pending.pop()
        rule = rules.get(op.name) if NONPOSITIVE not in op.attributes else exponential.exp_of_nonpositive
        if rule is None:
            raise error_at(
                op, "no expansion", part="operator", code="OP040", expected="an op of " + ", ".join(sorted(rules)), found=op.name,
                hint="add a rule to EXPANSIONS",
            )  # fmt: skip
        block = op.parent
        assert isinstance(block, Block)
        site = Site(block, op, op.location, constants, entry)
        result = _apply(rule, site, op)
        op.results[0].replace_all_uses_with(result)
        block.erase_op(op)
        pending += [o for o in site.added if o.name in rules]


def _apply(rule: Rule, site: Site, op: Operation) -> SSAValue:
    """Run a rule, 16-bit floats through f32."""
    result_type = op.results[0].type
    operands = [Expression(site, v) for v in op.operands]
    narrow = any(_is_narrow(e.element) for e in operands)
    if narrow:
        operands = [_widened(site, e) if _is_narrow(e.element) else e for e in operands]
    result = rule(*operands)
    if narrow and result.value.type != result_type:
        return site.emit(arith.TruncFOp, [result.value], [result_type]).results[0]
    return result.value


def _is_narrow(t: Attribute) -> bool:
    return isinstance(t, Float16Type | BFloat16Type)


def _widened(site: Site, e: Expression) -> Expression:
    shape: Any = tuple(e.value.type.get_shape()) if isinstance(e.value.type, VectorType) else None
    return Expression(site, site.emit(arith.ExtFOp, [e.value], [shaped(f32, shape)]).results[0])
