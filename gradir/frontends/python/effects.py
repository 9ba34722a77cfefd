"""What a program does besides computing its results: assertions; and barriers, which forbid rewriting across them."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects.builtin import StringAttr

from gradir.dialects import nd
from gradir.errors import GradirError
from gradir.frontends.python.operands import as_array
from gradir.frontends.python.pytrees import flatten, unflatten
from gradir.frontends.python.reduction import all as all_of
from gradir.frontends.python.trace import STATE, apply_several, current, location_string, python_location, ssa, user_error


def assert_(condition: Any, message: str) -> None:
    """Stop with `message` unless every element of `condition` holds: GradirError RT020 with this line, when the program runs.

    Never removed, checked in order with other effects; in a loop in every iteration, once under a derivative.
    """
    if not message:
        raise user_error("an assertion needs a message", code="GR011", op="nd.assert", expected="a message", found='""')
    test = as_array(condition, np.dtype(np.bool_))
    if test.ndim:
        test = all_of(test)
    if test.concrete is not None and not bool(test.concrete):
        raise GradirError(
            message,
            part="runtime",
            code="RT020",
            op="nd.assert",
            location=location_string(),
            expected="the asserted condition",
            found="false",
            hint="check the inputs of this call",
        )
    if STATE.function is None:
        return
    _, builder = current()
    builder.loc = python_location()
    builder.op(nd.AssertOp, [ssa(test)], [], {"message": StringAttr(message)})


def optimization_barrier(tree: Any) -> Any:
    """The arrays of `tree` as they are; nothing is computed across: no merging, folding or fusing, and all are ready before any is used"""
    leaves, structure = flatten(tree)
    arrays = [as_array(x) for x in leaves]
    return unflatten(structure, apply_several(nd.OptimizationBarrierOp, arrays, [x.type for x in arrays])) if arrays else tree
