"""custom_call: assertions about shapes, placement on devices, LAPACK, and functions registered by name."""

from __future__ import annotations

import re
from typing import Any

from xdsl.dialects.builtin import DictionaryAttr, StringAttr
from xdsl.ir import Operation

from gradir.dialects import custom_calls, nd
from gradir.frontends.stablehlo import lapack
from gradir.frontends.stablehlo.conversion import Conversion, Rule, UnsupportedError, Values
from gradir.frontends.stablehlo.dialect import attribute, number
from gradir.frontends.stablehlo.dynamic import shape_assertion
from gradir.frontends.stablehlo.dynamic_windows import dynamic_reduce_window

IGNORED_CALLS = ("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement", "LayoutConstraint")
"""Calls that say where values lie, which is one place here."""

_LAPACK = re.compile(r"lapack_([sdcz])(\w+?)_ffi")


def custom_call(conversion: Conversion, op: Operation) -> Values:
    """Placement on devices is the operand; LAPACK becomes ops; a registered name becomes `nd.custom_call`."""
    target = attribute(op, "call_target_name")
    name = target.data if isinstance(target, StringAttr) else ""
    if name == "shape_assertion":
        return shape_assertion(conversion, op)
    if name == "stablehlo.dynamic_reduce_window" and conversion.dynamic is not None:
        return dynamic_reduce_window(conversion, op)
    if name in IGNORED_CALLS:
        conversion.sharded.append(op)
        return conversion.operands(op)
    settings = _settings(op)
    if custom_calls.find(name) is not None:
        effects = bool(number(op, "has_side_effect"))
        made = nd.CustomCallOp.make(name, conversion.operands(op), [r.type for r in op.results], settings, effects=effects)
        made.location = op.location
        conversion.builder.block.add_op(made)
        return made.results
    match = _LAPACK.fullmatch(name)
    rule = lapack.RULES.get(match[2]) if match is not None else None
    if rule is None:
        raise UnsupportedError(f"custom call @{name}, which is not registered (gradir.register_custom_call)")
    return rule(conversion, op, settings)


def _settings(op: Operation) -> dict[str, Any]:
    """The options of the call as Python values."""
    for key in ("mhlo.backend_config", "backend_config"):
        found = attribute(op, key)
        if isinstance(found, DictionaryAttr):
            return custom_calls.config_value(found)
        if isinstance(found, StringAttr) and found.data:
            return {"backend_config": found.data}
    return {}


RULES: dict[str, Rule] = {"stablehlo.custom_call": custom_call}
