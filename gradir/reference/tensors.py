"""`nd`: each op's own `evaluate`. This module adds named sizes, and tensors that are not wholly defined.

An op that only moves elements moves "is defined" along with them: its `evaluate` runs once on the elements and once on the flags.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.ir import Operation

from gradir import printing, size_algebra
from gradir.dialects import nd
from gradir.dialects.nd import meaning
from gradir.dialects.types import is_static
from gradir.errors import GradirError
from gradir.ir.passes import function_name, location_text
from gradir.reference.machine import Machine, Value, evaluates
from gradir.reference.memory import sizes_of
from gradir.reference.sizes import check_result, two_sizes
from gradir.reference.values import Partial, dtype_of, partial, parts, undefined, whole

_MOVES: dict[str, tuple[int, ...]] = {
    "nd.broadcast": (0,),
    "nd.concatenate": (),
    "nd.dynamic_slice": (0,),
    "nd.dynamic_update_slice": (0, 1),
    "nd.gather": (0,),
    "nd.index_at": (0,),
    "nd.pad": (0, 1),
    "nd.reshape": (0,),
    "nd.reverse": (0,),
    "nd.select": (1, 2),
    "nd.slice": (0,),
    "nd.transpose": (0,),
    "nd.update_at": (0, 1),
}
"""Ops that only move elements, and the operands that hold them (empty: all)."""

ALIKE = ("elementwise", "mathematics", "bits", "special")
"""Families whose operands have one shape; numpy would stretch a run-time size 1."""

_OPERATORS = [kind for kind in nd.Nd.operations if hasattr(kind, "evaluate")]


def _plain(machine: Machine, op: Any, *values: Value) -> Value:
    if op.name in _MOVES and any(isinstance(value, Partial) for value in values):
        return _moved(machine, op, *values)
    if getattr(op, "FAMILY", "") in ALIKE and len({np.shape(value) for value in values if np.ndim(value)}) > 1:
        shapes = " and ".join(str(list(np.shape(value))) for value in values)
        machine.fail(op, "OP111", "operands have different shapes when it runs", expected="one shape", found=shapes)
    with np.errstate(all="ignore"):
        result = _evaluate(machine, op, *(whole(machine, op, value) for value in values))
    results = tuple(result) if isinstance(result, tuple | list) else (np.asarray(result),)
    for given, value in zip(op.results, results):
        check_result(op, given.type, np.shape(value), machine.sizes)
    return results


def _moved(machine: Machine, op: Any, *values: Value) -> Value:
    """Data and flags through the same op; the flags travel as 0 and 1 in the data's dtype."""
    dtype = dtype_of(op.results[0].type)
    carriers = _MOVES[op.name] or range(len(values))
    data = [value.array if isinstance(value, Partial) and k in carriers else whole(machine, op, value) for k, value in enumerate(values)]
    flags = [parts(value)[1].astype(dtype) if k in carriers else value for k, value in enumerate(values)]
    return partial(np.asarray(_evaluate(machine, op, *data)), np.asarray(_evaluate(machine, op, *flags)) != 0)


def _evaluate(machine: Machine, op: Any, *values: Value) -> Value:
    """The op's own meaning; shapes that name sizes of the function get their values."""
    try:
        return meaning.evaluate(op, values, machine.sizes) if op.name in meaning.SIZED else op.evaluate(*values)
    except IndexError as error:  # an index that the program promises to be in bounds
        machine.fail(op, "OP102", str(error).removeprefix(f"{op.name}: "))
    except ValueError as error:
        if all(is_static(value) for value in (*op.operands, *op.results) if isinstance(value.type, TensorType)):
            raise  # a mistake of the meaning, not of the program
        shapes = ", ".join(str(list(np.shape(value))) for value in values)
        machine.fail(op, "OP111", "the sizes of this run do not fit the op", expected=str(op.results[0].type), found=f"{shapes}: {error}")


evaluates(*_OPERATORS)(_plain)


@evaluates(nd.AssertOp)
def _assert(machine: Machine, op: nd.AssertOp, condition: Value) -> None:
    if not bool(whole(machine, op, condition)):
        raise GradirError(
            op.message.data,
            part="runtime",
            code="RT020",
            op=op.name,
            function=function_name(op),
            location=location_text(op.location),
            expected="the asserted condition",
            found="false",
            hint="check the inputs of this call",
        )


@evaluates(nd.PrintOp)
def _print(machine: Machine, op: nd.PrintOp, *values: Value) -> None:
    printing.emit(op.format.data, [whole(machine, op, value) for value in values])


@evaluates(nd.OptimizationBarrierOp)
def _barrier(_machine: Machine, _op: nd.OptimizationBarrierOp, *values: Value) -> Value:
    return values


@evaluates(nd.EmptyOp)
def _empty(_machine: Machine, op: nd.EmptyOp, *sizes: Value) -> Value:
    type_: Any = op.results[0].type
    return undefined(sizes_of(type_, sizes), dtype_of(type_))


@evaluates(nd.SymbolOp)
def _symbol(machine: Machine, op: nd.SymbolOp) -> Value:
    name = _name(op)
    for missing in size_algebra.names_in(name):
        if missing not in machine.sizes:
            machine.fail(op, "OP111", f"the size '{missing}' has no value: no argument's type mentions it and no nd.bind gives it")
    return np.int64(size_algebra.evaluate(name, machine.sizes))


@evaluates(nd.DimOp)
def _dim(_machine: Machine, op: nd.DimOp, value: Value) -> Value:
    return np.int64(np.shape(value.array if isinstance(value, Partial) else value)[op.number("dim")])


@evaluates(nd.BindOp)
def _bind(machine: Machine, op: nd.BindOp, value: Value) -> None:
    name, size = _name(op), int(value)
    if machine.sizes.setdefault(name, size) != size:
        raise two_sizes(op, name, machine.sizes[name], size)


def _name(op: Operation) -> str:
    name = op.properties["sym"]
    assert isinstance(name, StringAttr)
    return name.data
