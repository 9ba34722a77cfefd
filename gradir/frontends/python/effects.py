"""What a program does besides computing its results: assertions, lines of output; and barriers, which forbid rewriting across them."""

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
from gradir.printing import emit, placeholders


def assert_(condition: Any, message: str) -> None:
    """Stop with `message` unless every element of `condition` holds: GradirError RT020 with this line, when the program runs.

    Never removed, checked in order with other effects; in a loop in every iteration, once under a derivative.
    """
    _text("an assertion needs a message", message, "nd.assert")
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


def print(template: str, *values: Any) -> None:
    """Write a line when the program runs: `template` with `{}` for each value, `{:.3f}` for its numbers that way; to stdout or the sink

    Lines come in the order of the program, in a loop in every iteration, once under a derivative. `gradir.set_print_sink` redirects them.
    """
    _text("print needs a format", template, "nd.print")
    try:
        count = placeholders(template)
    except ValueError as error:
        raise user_error(f"print: {error}", code="GR011", op="nd.print", expected="{} or {:spec} for each value", found=template) from None
    if count != len(values):
        raise user_error(
            "print: other values than the format shows", code="GR011", op="nd.print", expected=str(count), found=str(len(values))
        )
    arrays = [as_array(value) for value in values]
    if all(x.concrete is not None for x in arrays) and (STATE.function is None or STATE.function.recording):
        emit(template, [x.concrete for x in arrays])
    if STATE.function is None:
        return
    _, builder = current()
    builder.loc = python_location()
    builder.op(nd.PrintOp, [ssa(x) for x in arrays], [], {"format": StringAttr(template)})


def _text(problem: str, value: object, op: str) -> None:
    """GradirError GR011 unless it is a text; an assertion must have one that says something."""
    if not isinstance(value, str) or (op == "nd.assert" and not value):
        raise user_error(problem, code="GR011", op=op, expected="a text", found=repr(value)[:80])


def optimization_barrier(tree: Any) -> Any:
    """The arrays of `tree` as they are; nothing is computed across: no merging, folding or fusing, and all are ready before any is used"""
    leaves, structure = flatten(tree)
    arrays = [as_array(x) for x in leaves]
    return unflatten(structure, apply_several(nd.OptimizationBarrierOp, arrays, [x.type for x in arrays])) if arrays else tree
