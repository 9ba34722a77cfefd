"""Parts, and numbers made of parts: nothing to compute."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from gradir.dialects import nd
from gradir.lowering.split_complex.parts import Pair, Parts, Rule


def split_real(parts: Parts, op: nd.RealOp) -> Sequence[SSAValue]:
    """`re(x + iy) = x`"""
    return [parts.pair(op.operand)[0]]


def split_imag(parts: Parts, op: nd.ImagOp) -> Sequence[SSAValue]:
    """`im(x + iy) = y`"""
    return [parts.pair(op.operand)[1]]


def split_complex(parts: Parts, op: nd.ComplexOp) -> Sequence[Pair]:
    """`x + iy`"""
    return [(op.re, op.im)]


def split_conj(parts: Parts, op: nd.ConjOp) -> Sequence[Pair]:
    """`conj(x + iy) = x - iy`"""
    x, y = parts.pair(op.operand)
    return [(x, parts.neg(y))]


RULES: dict[type[Operation], Rule] = {
    nd.RealOp: split_real,
    nd.ImagOp: split_imag,
    nd.ComplexOp: split_complex,
    nd.ConjOp: split_conj,
}
