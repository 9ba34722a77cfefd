"""What xDSL's verifiers of `scf` leave out: the terminator of each region carries the types that the op around it promises, and a
constant step of a loop is positive.

The verifier (`gradir.ir.verifier`) runs these checks beside the one of the op's class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException


def check_regions(op: Operation) -> None:
    """Raise VerifyException when a region of an `scf` op does not fit the op's operands or results."""
    check = _CHECKS.get(type(op))
    if check is not None:
        check(op)


def _if(op: scf.IfOp) -> None:
    if op.output and not op.false_region.blocks:
        raise VerifyException(f"has {len(op.output)} results and needs an else region that yields them")
    _yields(op.true_region, op.output, "the then region")
    if op.false_region.blocks:
        _yields(op.false_region, op.output, "the else region")


def _while(op: scf.WhileOp) -> None:
    _agree([a.type for a in op.before_region.block.args], op.arguments, "arguments of the before region", "the operands")
    _agree([a.type for a in op.after_region.block.args], op.res, "arguments of the after region", "the results")
    condition = op.before_region.block.last_op
    if not isinstance(condition, scf.ConditionOp):
        found = condition.name if condition is not None else "nothing"
        raise VerifyException(f"needs a before region that ends in scf.condition, found {found}")
    _agree([v.type for v in condition.operands[1:]], op.res, "values of scf.condition", "the results")
    _yields(op.after_region, op.arguments, "the after region", "the operands")


def _for(op: scf.ForOp) -> None:
    step = op.step.owner
    value = step.properties.get("value") if isinstance(step, Operation) and step.name == "arith.constant" else None
    if isinstance(value, IntegerAttr) and value.value.data < 1:
        raise VerifyException(f"constant step must be at least 1, found {value.value.data}")
    _agree([a.type for a in op.body.block.args[1:]], op.iter_args, "arguments of the body after the first", "the initial values")
    _yields(op.body, op.iter_args, "the body", "the initial values")
    _agree([r.type for r in op.res], op.iter_args, "the results", "the initial values")


def _switch(op: scf.IndexSwitchOp) -> None:
    for number, region in enumerate((*op.case_regions, op.default_region)):
        _yields(region, op.output, f"region {number}")


def _yields(region: Region, values: Sequence[SSAValue], where: str, what: str = "the results") -> None:
    if len(region.blocks) != 1:
        raise VerifyException(f"{where} must be one block, found {len(region.blocks)}")
    last = region.block.last_op
    if not isinstance(last, scf.YieldOp):
        raise VerifyException(f"{where} must end in scf.yield, found {last.name if last is not None else 'nothing'}")
    _agree([v.type for v in last.operands], values, f"values that {where} yields", what)


def _agree(types: Sequence[Attribute], values: Sequence[SSAValue], what: str, promised: str) -> None:
    wanted = [value.type for value in values]
    if list(types) != wanted:
        raise VerifyException(f"{what} must have the types of {promised}: expected {_text(wanted)}, found {_text(types)}")


def _text(types: Sequence[Attribute]) -> str:
    return f"({', '.join(map(str, types))})"


_CHECKS: dict[type[Operation], Callable[..., None]] = {
    scf.IfOp: _if,
    scf.WhileOp: _while,
    scf.ForOp: _for,
    scf.IndexSwitchOp: _switch,
}
