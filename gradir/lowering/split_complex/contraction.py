"""Families `contraction` and `convolution`: four real products."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from gradir.dialects import nd
from gradir.lowering.split_complex.parts import Pair, Parts, Rule, real_type


def split_product(parts: Parts, op: Operation) -> Sequence[Pair]:
    """`(A + iB) * (C + iD) = (A * C - B * D) + i (A * D + B * C)` of a bilinear `*`"""
    lhs, rhs = (parts.pair(value) for value in op.operands)
    kind = real_type(op.results[0].type)

    def times(a: SSAValue, b: SSAValue) -> SSAValue:
        return parts.builder.op(type(op), (a, b), (kind,), op.properties, (), op.attributes).results[0]

    re = parts.sub(times(lhs[0], rhs[0]), times(lhs[1], rhs[1]))
    return [(re, parts.add(times(lhs[0], rhs[1]), times(lhs[1], rhs[0])))]


RULES: dict[type[Operation], Rule] = {nd.DotGeneralOp: split_product, nd.ConvGeneralOp: split_product}
