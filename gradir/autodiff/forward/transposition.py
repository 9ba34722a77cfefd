"""Forward rules from reverse rules: the transpose of the transpose of a linear map is the map.

A reverse rule is a linear program from the cotangent of a result to those of the operands. Reverse mode applied to *that* program,
seeded with the tangents of the operands, gives the tangent of the result. So every op that can go backwards can go forwards, with the
same weights at every kink, and the dot-product test between both modes holds by construction. Of the rule's ops only those remain that
the tangent reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import FunctionType, StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from gradir.autodiff.activity import free_in_block, free_values
from gradir.autodiff.linearity import require_linear
from gradir.autodiff.registry import VjpRule
from gradir.autodiff.reverse.functions import Program
from gradir.autodiff.reverse.sweep import clone
from gradir.autodiff.tensors import TensorBuilder, is_differentiable
from gradir.dialects.upstream import func
from gradir.dialects.upstream.effects import is_pure
from gradir.ir.builder import Builder


@dataclass(frozen=True)
class Linear:
    """A reverse rule as a function `(what it reads, cotangents of the results) -> cotangents of the operands in `operands``."""

    function: func.FuncOp
    reads: list[SSAValue]
    results: list[int]
    operands: list[int]


def tangents_of(
    program: Program, builder: Builder, op: Operation, rule: VjpRule, tangents: Mapping[int, SSAValue], request: str, *, own: str = ""
) -> list[SSAValue | None]:
    """The tangents of the results of `op`, which is in place, from those of its operands by position; None for one that is zero.

    `own`: the name of a rule that a user wrote, which may turn out not to be linear (error AD017).
    """
    found: list[SSAValue | None] = [None] * len(op.results)
    linear = _as_function(op, rule, tangents)
    if not linear.operands:
        return found
    first, count = len(linear.reads), len(linear.results)
    block, outputs = program.reversed_block(
        linear.function, range(first, first + count), seeds=range(len(linear.operands)), given=True, request=request, keep_results=False
    )
    if own:
        require_linear(op, own, block, block.args[first : first + count], program.resolve)
    given = [tangents[k] for k in linear.operands]
    values: dict[SSAValue, SSAValue] = dict(zip(block.args[:first], linear.reads))
    values.update(zip(block.args[first + count :], given))
    _append_needed(builder, block, values, block.args[first : first + count])
    for k, value in zip(linear.results, outputs):
        found[k] = values.get(value, value)
    block.drop_all_references()
    linear.function.drop_all_references()
    return found


def _as_function(op: Operation, rule: VjpRule, tangents: Mapping[int, SSAValue]) -> Linear:
    results = [k for k, r in enumerate(op.results) if is_differentiable(r.type)]
    block = Block(arg_types=[op.results[k].type for k in results])
    builder = Builder(block, op.location)
    cotangents = dict(zip(results, block.args))
    ct = block.args[0] if len(op.results) == 1 else tuple(cotangents.get(k) for k in range(len(op.results)))
    operands: list[int] = []
    returned: list[SSAValue] = []
    for k, contribution in enumerate(rule(TensorBuilder(builder), op, ct)):
        if k in tangents and contribution is not None:
            operands.append(k)
            returned.append(contribution() if callable(contribution) else contribution)
    builder.op(func.ReturnOp, returned)
    reads = free_in_block(block)
    for n, value in enumerate(reads):
        block.insert_arg(value.type, n)
    inside = dict(zip(reads, block.args))
    for inner in block.walk():
        for k, value in enumerate(inner.operands):
            if value in inside:
                inner.operands[k] = inside[value]
    kind = FunctionType.from_lists([a.type for a in block.args], [r.type for r in returned])
    properties = {"sym_name": StringAttr("linear"), "function_type": kind}
    function = func.FuncOp.create(properties=properties, regions=[Region(block)], location=op.location)
    return Linear(function, reads, results, operands)


def _append_needed(builder: Builder, block: Block, values: dict[SSAValue, SSAValue], cotangents: Sequence[SSAValue]) -> None:
    """Copies of the ops of `block` on which its terminator depends; `values` learns their results.

    What is linear in the cotangents has a transpose that does not depend on them. An op may have them among what it reads (a sort that
    takes them along) and then gets zeros.
    """
    *ops, last = block.ops
    needed: set[SSAValue] = set(last.operands)
    kept: list[Operation] = []
    for op in reversed(ops):
        if not is_pure(op) or any(r in needed for r in op.results):
            kept.append(op)
            needed.update(op.operands)
            needed.update(free_values(op))
    for cotangent in cotangents:
        if cotangent in needed:
            values[cotangent] = TensorBuilder(builder).zeros(cotangent.type)
    for op in reversed(kept):
        builder.block.add_op(clone(op, values))
