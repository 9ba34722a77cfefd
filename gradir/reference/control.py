"""`func`, `scf`, `cf`: calls, branches and loops. `scf.parallel` runs in a random order, with a check for races."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from xdsl.ir import Operation

from gradir.dialects.kernel import LIBRARY_ATTRIBUTE
from gradir.dialects.upstream import cf, scf
from gradir.dialects.upstream.func import CallOp
from gradir.ir.structure import single_block
from gradir.reference.buffers import Race, check_call
from gradir.reference.library import call_library
from gradir.reference.machine import Machine, Value, evaluates
from gradir.reference.sizes import named_sizes
from gradir.reference.values import whole


@evaluates(CallOp)
def _call(machine: Machine, op: CallOp, *arguments: Value) -> Value:
    name = op.callee.string_value()
    function = machine.function(name)
    if function is not None and LIBRARY_ATTRIBUTE in function.attributes:
        return call_library(machine, op, function, arguments)
    if function is None or not function.body.blocks:
        machine.fail(op, "OP100", f"function @{name} has no body")
    single_block(function)
    values = check_call(machine, op, function, arguments)
    return tuple(machine.invoke(function, values, named_sizes(op, function, values)))


@evaluates(cf.AssertOp)
def _assert(machine: Machine, op: cf.AssertOp, condition: Value) -> None:
    if not condition:
        machine.fail(op, "OP113", f"assertion failed: {op.msg.data}")


@evaluates(scf.IfOp)
def _if(machine: Machine, op: scf.IfOp, condition: Value) -> Value:
    if np.ndim(condition):
        machine.fail(op, "OP100", "a branch needs one condition")
    if condition:
        return tuple(machine.enter(op.true_region))
    return tuple(machine.enter(op.false_region)) if op.false_region.blocks else ()


@evaluates(scf.IndexSwitchOp)
def _switch(machine: Machine, op: scf.IndexSwitchOp, chosen: Value) -> Value:
    for case, region in zip(op.cases.get_values(), op.case_regions, strict=True):
        if int(chosen) == case:
            return tuple(machine.enter(region))
    return tuple(machine.enter(op.default_region))


@evaluates(scf.ExecuteRegionOp)
def _region(machine: Machine, op: scf.ExecuteRegionOp) -> Value:
    return tuple(machine.enter(op.region))


def _range(machine: Machine, op: Operation, low: Value, high: Value, step: Value) -> range:
    if int(step) <= 0:
        machine.fail(op, "OP103", f"step must be positive, got {int(step)}")
    return range(int(low), int(high), int(step))


@evaluates(scf.ForOp)
def _for(machine: Machine, op: scf.ForOp, low: Value, high: Value, step: Value, *carried: Value) -> Value:
    kind = np.asarray(low).dtype.type
    values = list(carried)
    for i in _range(machine, op, low, high, step):
        values = machine.enter(op.body, [kind(i), *values])
    return tuple(values)


@evaluates(scf.WhileOp)
def _while(machine: Machine, op: scf.WhileOp, *carried: Value) -> Value:
    values, going = list(carried), np.True_
    for _ in range(machine.MAX_ITERATIONS):
        goes_on, *handed = machine.enter(op.before_region, values)
        going = going & whole(machine, op, goes_on)  # in the body of a nest: one condition per point
        if not np.any(going):
            return tuple(handed)
        next_ = machine.enter(op.after_region, handed)
        values = next_ if np.ndim(going) == 0 else [np.where(going, new, old) for new, old in zip(next_, values, strict=True)]
    machine.fail(op, "OP112", f"no end after {machine.MAX_ITERATIONS} iterations")


@evaluates(scf.ParallelOp)
def _parallel(machine: Machine, op: scf.ParallelOp, *_operands: Value) -> Value:
    bounds = zip(op.lowerBound, op.upperBound, op.step, strict=True)
    ranges = [_range(machine, op, *(machine.values[value] for value in bound)) for bound in bounds]
    points = list(product(*ranges))
    machine.rng.shuffle(points)
    totals: list[Value] = [machine.values[value] for value in op.initVals]
    outer = machine.race
    race = outer if outer is not None else Race(int(machine.rng.integers(1, 1 << 30)))
    machine.race = race
    reduce: Any = op.body.block.last_op
    try:
        for number, point in enumerate(points):
            if outer is None:
                race.iteration = number
            values = machine.enter(op.body, [np.int64(i) for i in point])
            for k, (value, region) in enumerate(zip(values, reduce.reductions, strict=True)):
                pair = [totals[k], value] if machine.rng.integers(2) else [value, totals[k]]
                (totals[k],) = machine.enter(region, pair)
    finally:
        machine.race = outer
    return tuple(totals)
