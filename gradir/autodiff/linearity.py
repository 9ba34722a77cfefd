"""Whether a rule of the user's own is linear in its (co)tangents, as its transpose needs: a derivative is never guessed.

The transposed program of a linear one does not read what the program is linear in. Where it does, the rule multiplies two of them,
branches on one, or runs a loop until one is small, and there is no transpose to take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from xdsl.ir import Block, Operation, SSAValue

from gradir.autodiff.activity import free_values
from gradir.dialects import nd
from gradir.dialects.upstream import func, scf
from gradir.ir.passes import error_at

Resolve: TypeAlias = "Callable[[func.CallOp], func.FuncOp]"


def require_linear(op: Operation, rule: str, block: Block, arguments: Sequence[SSAValue], resolve: Resolve) -> None:
    """`block` is the transposed program of `rule`, whose (co)tangents are `arguments`. GradirError AD017 at `op` if it reads them."""
    last = block.last_op
    read = _read(block, () if last is None else last.operands, resolve)
    if not any(argument in read for argument in arguments):
        return
    reverse = op.name != "ad.custom_jvp"
    raise error_at(
        op,
        f"@{rule} is not linear in its {'cotangents' if reverse else 'tangents'}, so it has no transpose",
        part="autodiff",
        code="AD017",
        expected="products with values of the primals, and sums",
        found="a product of two of them, or a comparison, a branch or a loop that depends on them",
        hint="solve with gradir.linalg.solve or in a fixed number of trips; or stay in "
        + ("reverse mode, which differentiates the rule" if reverse else "forward mode, which calls the rule"),
    )


def _read(block: Block, wanted: Iterable[SSAValue], resolve: Resolve) -> set[SSAValue]:
    """What these values at the end of the block depend on, inside and outside of it."""
    read = set(wanted)
    for op in reversed(list(block.ops)):
        results = {k for k, r in enumerate(op.results) if r in read}
        if results:
            read |= _READ.get(type(op), _anything)(op, results, resolve)
    return read


def _anything(op: Operation, _results: set[int], _resolve: Resolve) -> set[SSAValue]:
    return {*op.operands, *free_values(op)}


def _sort(op: nd.SortOp, results: set[int], _resolve: Resolve) -> set[SSAValue]:
    """The keys; the others are taken along, not read."""
    return {v for k, v in enumerate(op.operands) if k < op.number("keys") or k in results} | set(free_values(op))


def _barrier(op: nd.OptimizationBarrierOp, results: set[int], _resolve: Resolve) -> set[SSAValue]:
    """It waits for all of its operands, but each result is one of them."""
    return {op.operands[k] for k in results}


def _call(op: func.CallOp, results: set[int], resolve: Resolve) -> set[SSAValue]:
    """Those arguments that the results of the callee depend on."""
    body = resolve(op).body.block
    inside = _read(body, _handed_on(body, results), resolve)
    return {v for v, argument in zip(op.operands, body.args) if argument in inside}


def _branches(op: Operation, results: set[int], resolve: Resolve) -> set[SSAValue]:
    """The condition, and what the branches read for these results."""
    inside = (_read(region.block, _handed_on(region.block, results), resolve) for region in op.regions)
    return {op.operands[0]}.union(*inside)


def _for(op: scf.ForOp, results: set[int], resolve: Resolve) -> set[SSAValue]:
    """The bounds, and of the carried values those that these results depend on after any number of trips."""
    body, carried = op.body.block, set(results)
    while True:
        inside = _read(body, _handed_on(body, carried), resolve)
        more = {k for k, argument in enumerate(body.args[1:]) if argument in inside} - carried
        if not more:
            return {*op.operands[:3], *(op.operands[3 + k] for k in carried)} | inside
        carried |= more


def _while(op: scf.WhileOp, results: set[int], resolve: Resolve) -> set[SSAValue]:
    """Likewise, and what the condition reads."""
    before, after, leaving, entering = op.before_region.block, op.after_region.block, set(results), set[int]()
    while True:
        first = _read(before, _handed_on(before, {0, *(k + 1 for k in leaving)}), resolve)
        entering |= {k for k, argument in enumerate(before.args) if argument in first}
        second = _read(after, _handed_on(after, entering), resolve)
        more = {k for k, argument in enumerate(after.args) if argument in second} - leaving
        if not more:
            return {op.operands[k] for k in entering} | first | second
        leaving |= more


def _handed_on(block: Block, which: set[int]) -> list[SSAValue]:
    """These operands of the terminator."""
    assert block.last_op is not None
    return [block.last_op.operands[k] for k in which]


_READ: dict[type[Operation], Callable[[Any, set[int], Resolve], set[SSAValue]]] = {
    nd.SortOp: _sort,
    nd.OptimizationBarrierOp: _barrier,
    func.CallOp: _call,
    scf.IfOp: _branches,
    scf.IndexSwitchOp: _branches,
    scf.ForOp: _for,
    scf.WhileOp: _while,
}
