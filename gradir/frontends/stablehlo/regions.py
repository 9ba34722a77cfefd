"""Regions for single elements (comparators, combiners) as regions of `nd` ops: calls are inlined, constants from outside are copied in."""

from __future__ import annotations

from xdsl.ir import Block, Operation, Region, SSAValue

from gradir.dialects import nd
from gradir.frontends.stablehlo.conversion import Conversion, UnsupportedError, Values, is_return


def converted(conversion: Conversion, source: Block) -> Region:
    """The region that computes what `source` does, ending in nd.yield."""
    made = Block(arg_types=[argument.type for argument in source.args])
    outer, conversion.builder = conversion.builder, conversion.builder.nested(made)
    try:
        conversion.builder.op(nd.YieldOp, _inline(conversion, source, made.args))
    finally:
        conversion.builder = outer
    _enclose(made)
    return Region(made)


def _inline(conversion: Conversion, block: Block, arguments: Values) -> list[SSAValue]:
    conversion.values.update(zip(block.args, arguments, strict=True))
    for op in block.ops:
        if is_return(op):
            return conversion.operands(op)
        callee = conversion.callee(op)
        if callee is None:
            conversion.convert(op)
        else:
            conversion.values.update(zip(op.results, _inline(conversion, callee, conversion.operands(op)), strict=True))
    raise UnsupportedError("a region without stablehlo.return")


def _enclose(block: Block) -> None:
    """Copy constants that the block reads from outside into it; anything else from there is refused."""
    inside: set[SSAValue] = set(block.args)
    for op in list(block.ops):
        for k, value in enumerate(op.operands):
            if value not in inside:
                copy = _constant(value)
                block.insert_op_before(copy, op)
                op.operands[k] = copy.results[0]
        inside.update(op.results)
        inside.update(op.operands)


def _constant(value: SSAValue) -> Operation:
    if not isinstance(value.owner, nd.ConstantOp):
        raise UnsupportedError("a region that reads values from outside of it")
    return value.owner.clone()
