"""while, case, if, calls and composites: regions become `scf` on tensors, calls stay calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import DenseArrayBase, DictionaryAttr, IndexType, StringAttr, SymbolRefAttr, i1, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from gradir.dialects import nd
from gradir.dialects.types import element_of
from gradir.dialects.upstream import arith, func, scf, tensor as upstream_tensor
from gradir.frontends.stablehlo.conversion import Conversion, Rule, UnsupportedError, Values
from gradir.frontends.stablehlo.dialect import attribute
from gradir.frontends.stablehlo.dynamic import inlined_call

OWN_COMPOSITE = "gradir."
"""A composite that the exporter wrote is called this and the name of the op without its dialect."""

_OWN: dict[str, type[Operation]] = {op.name: op for ops in nd.FAMILIES.values() for op in ops}


def while_op(conversion: Conversion, op: Operation) -> Values:
    """`while cond(state): state = body(state)`"""
    start = conversion.operands(op)
    types = [value.type for value in start]
    cond, body = (region.block for region in op.regions)
    before, (flag,) = conversion.block(cond, types)
    inside = conversion.builder.nested(before)
    inside.op(scf.ConditionOp, [inside(upstream_tensor.ExtractOp, [flag], [i1]), *before.args])
    after = _yielding(conversion, body, types)
    return conversion.builder.op(scf.WhileOp, start, types, regions=[Region(before), Region(after)]).results


def _yielding(conversion: Conversion, source: Block, types: Sequence[Any] = ()) -> Block:
    made, results = conversion.block(source, types)
    conversion.builder.nested(made).op(scf.YieldOp, results)
    return made


def if_op(conversion: Conversion, op: Operation) -> Values:
    """`on_true() if pred else on_false()`"""
    (pred,) = conversion.operands(op)
    flag = conversion.builder(upstream_tensor.ExtractOp, [pred], [i1])
    return _if(conversion, flag, op, (op.regions[0].block, op.regions[1].block))


def _if(conversion: Conversion, flag: SSAValue, op: Operation, branches: tuple[Block, Block]) -> Values:
    regions = [Region(_yielding(conversion, branch)) for branch in branches]
    return conversion.builder.op(scf.IfOp, [flag], _yielded(regions[0]), regions=regions).results


def _yielded(region: Region) -> list[Attribute]:
    """The types that a branch gives: those of the results, with names for run-time sizes."""
    last = region.block.last_op
    return [value.type for value in last.operands] if last is not None else []


def case(conversion: Conversion, op: Operation) -> Values:
    """`branches[i]()`; outside of 0..n the last branch."""
    (index,) = conversion.operands(op)
    branches = [region.block for region in op.regions]
    if len(branches) == 1:
        return conversion.inline(branches[0], ())
    builder = conversion.builder
    number = builder(upstream_tensor.ExtractOp, [index], [element_of(index)])
    at = builder(arith.IndexCastOp, [number], [IndexType()])
    if len(branches) == 2:
        zero = builder(arith.ConstantOp, (), [IndexType()], {"value": _index(0)})
        flag = builder(arith.CmpiOp, [at, zero], [i1], {"predicate": arith.integer_predicate("eq")})
        return _if(conversion, flag, op, (branches[0], branches[1]))
    *listed, last = (Region(_yielding(conversion, branch)) for branch in branches)
    cases = DenseArrayBase.from_list(i64, list(range(len(listed))))
    return builder.op(scf.IndexSwitchOp, [at], _yielded(last), {"cases": cases}, regions=[last, *listed]).results


def _index(value: int) -> Any:
    return arith.IntegerAttr(value, IndexType())


def call(conversion: Conversion, op: Operation) -> Values:
    """A call of a function of the module."""
    return _call(conversion, op, cast("SymbolRefAttr", attribute(op, "callee")))


def composite(conversion: Conversion, op: Operation) -> Values:
    """The op of level 1 that a composite of ours stands for; of any other a call of the decomposition that comes with it."""
    kind = own_composite(op)
    if kind is not None:
        given = attribute(op, "composite_attributes")
        properties = dict(given.data) if isinstance(given, DictionaryAttr) else {}
        types = [result.type for result in op.results]
        made = kind.create(operands=conversion.operands(op), result_types=types, properties=properties)
        conversion.emit(made)
        return made.results
    callee = attribute(op, "decomposition")
    if not isinstance(callee, SymbolRefAttr):
        name = attribute(op, "name")
        raise UnsupportedError(f"composite {name.data if isinstance(name, StringAttr) else ''} without a decomposition")
    return _call(conversion, op, callee)


def own_composite(op: Operation) -> type[Operation] | None:
    """The op that a composite called `gradir.NAME` stands for, if level 1 has it."""
    name = attribute(op, "name") if op.name == "stablehlo.composite" else None
    if not isinstance(name, StringAttr) or not name.data.startswith(OWN_COMPOSITE):
        return None
    return _OWN.get("nd." + name.data.removeprefix(OWN_COMPOSITE))


def _call(conversion: Conversion, op: Operation, callee: SymbolRefAttr) -> Values:
    if conversion.dynamic is not None:
        return inlined_call(conversion, op, callee)
    types = [result.type for result in op.results]
    return conversion.builder.op(func.CallOp, conversion.operands(op), types, {"callee": callee}).results


def sharding_constraint(conversion: Conversion, op: Operation) -> Values:
    """Its operand: the program runs on one device."""
    conversion.sharded.append(op)
    return conversion.operands(op)


RULES: dict[str, Rule] = {
    "stablehlo.while": while_op,
    "stablehlo.if": if_op,
    "stablehlo.case": case,
    "func.call": call,
    "stablehlo.composite": composite,
    "sdy.sharding_constraint": sharding_constraint,
}
