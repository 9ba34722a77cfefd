"""The whole module of one seed: a public `@main` of numbers, vectors and matrices of f64, integers and truth values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.dialects.builtin import ModuleOp, TensorType, i1
from xdsl.ir import Block

from gradir.dialects import nd
from gradir.dialects.types import tensor
from gradir.dialects.upstream import func
from gradir.ir.builder import new_function
from gradir.ir.text import print_module
from gradir.tools.fuzz.gradients import calls, control, indexing, steps
from gradir.tools.fuzz.gradients.scope import Program, Scope, real

STEPS: tuple[Callable[[Scope], None], ...] = (
    steps.unary, steps.unary, steps.unary, steps.binary, steps.binary, steps.binary, steps.reduction, steps.along, steps.contraction,
    steps.shape, steps.weight, steps.integers, indexing.gather, indexing.chosen, indexing.scatter, indexing.element, indexing.element,
    indexing.moving_slice, indexing.sorted_, indexing.along,
)  # fmt: skip


def smooth_program(seed: int) -> str:
    """The text of the program with that seed."""
    rng = np.random.default_rng(seed)
    rows = "n" if rng.random() < 0.15 else int(rng.choice([1, 2, 3, 3, 4, 0], p=[0.15, 0.25, 0.2, 0.2, 0.17, 0.03]))
    program = Program(rng, ModuleOp([]), rows, int(rng.integers(1, 4)))
    program.deepest = int(rng.choice([2, 3, 4], p=[0.2, 0.35, 0.45]))
    block = Block()
    scope = Scope(program, block, [], 0, block)
    scope.add(block.insert_arg(real((rows,)) if isinstance(rows, str) else real(()), 0))
    scope.fresh = 0
    for _ in range(2 + program.below(3)):
        grow(scope, 1.0)
    _finish(scope)
    return print_module(program.module)


def grow(scope: Scope, share: float | None = None) -> None:
    """A few steps; the first of them is control flow with a probability that falls with depth."""
    program = scope.program
    inward = share if share is not None else (0.75, 0.7, 0.6, 0.5)[min(scope.depth, 3)]
    if scope.depth < program.deepest and program.chance(inward):
        draw = program.rng.random()
        if draw < 0.75:
            program.one_of(control.CONTROL)(scope, grow)
        elif draw < 0.93:
            calls.call(scope, grow)
        else:
            calls.ruled(scope, grow)
    for _ in range(1 + program.below(3)):
        program.one_of(STEPS)(scope)
    if program.chance(0.04):
        finite = scope.t.emit(nd.IsFiniteOp, [scope.float_(())], tensor(i1, ()))
        scope.builder.op(nd.AssertOp, [finite], properties=nd.AssertOp.make(finite, "finite").properties)


def _finish(scope: Scope) -> None:
    """Up to four results: the last value, others, now and then an argument, one twice."""
    program = scope.program
    results = [scope.of_type(scope.float_().type)]
    for _ in range(program.below(3)):
        results.append(program.one_of([v for v in scope.values if isinstance(v.type, TensorType)]))
    if program.chance(0.15):
        results.append(program.one_of(scope.block.args))
    scope.builder.op(func.ReturnOp, results)
    program.module.body.block.add_op(new_function("main", scope.block, [v.type for v in results]))
