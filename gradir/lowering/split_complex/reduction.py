"""Families `reduction` and `cumulative`: sums are sums of parts; products are taken pair by pair, in log2(n) steps on whole tensors."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import Operation, SSAValue

from gradir.dialects import nd
from gradir.dialects.types import element_of, shape_of, tensor
from gradir.ir.passes import error_at
from gradir.lowering.split_complex.elementwise import product
from gradir.lowering.split_complex.parts import Pair, Parts, Rule, partwise


def _count(op: Operation, sizes: Sequence[object]) -> int:
    """How many factors one result has."""
    numbers = [n for n in sizes if isinstance(n, int)]
    if len(numbers) == len(sizes):
        return prod(numbers)
    raise error_at(
        op,
        "a product of complex numbers over a dimension of run-time size",
        part="operator",
        code="OP021",
        expected="static sizes of the dimensions that are multiplied over",
        found=str(op.operands[0].type),
        hint="multiply in a loop (scf.for)",
    )


def _rows(parts: Parts, x: SSAValue, first: int, last: int) -> SSAValue:
    """Rows `first` to `last` of the leading dimension."""
    shape = shape_of(x)
    limits = [n if isinstance(n, int) else -1 for n in shape[1:]]
    return parts.emit(nd.SliceOp.make(x, [first] + [0] * len(limits), [last, *limits]))


def split_reduce_prod(parts: Parts, op: nd.ReduceProdOp) -> Sequence[Pair]:
    """Halves are multiplied until one row is left: `z[0..h] z[h..2h]`; an odd last row waits."""
    dims, shape = op.numbers("dims"), shape_of(op.operand)
    kept = [d for d in range(len(shape)) if d not in dims]
    rest = tuple(shape[d] for d in kept)
    count = _count(op, [shape[d] for d in dims])

    def flat(part: SSAValue) -> SSAValue:
        moved = parts.emit(nd.TransposeOp.make(part, [*dims, *kept]))
        return parts.emit(nd.ReshapeOp.make(moved, (count, *rest)))

    z = (flat(parts.pair(op.operand)[0]), flat(parts.pair(op.operand)[1]))
    if count == 0:
        one = parts.emit(nd.ConstantOp.splat(1.0, tensor(element_of(z[0]))))
        re = parts.broadcast(one, (), rest)
        return [(re, parts.zero(re))]
    while count > 1:
        half = count // 2
        low, high, left = ([_rows(parts, part, *rows) for part in z] for rows in ((0, half), (half, 2 * half), (2 * half, count)))
        re, im = product(parts, (low[0], low[1]), (high[0], high[1]))
        if count % 2:
            re, im = (parts.emit(nd.ConcatenateOp.make([row, odd], 0)) for row, odd in zip((re, im), left))
        z, count = (re, im), half + count % 2
    return [(parts.emit(nd.ReshapeOp.make(z[0], rest)), parts.emit(nd.ReshapeOp.make(z[1], rest)))]


def split_cumprod(parts: Parts, op: nd.CumprodOp) -> Sequence[Pair]:
    """W. D. Hillis, G. L. Steele, "Data parallel algorithms" (1986): `z[i] = z[i] z[i - k]` for k = 1, 2, 4, ..."""
    dim, shape = op.number("dim"), shape_of(op.operand)
    count = _count(op, [shape[dim]])
    toward = -1 if op.is_reverse else 1

    def shifted(z: Pair, by: int) -> Pair:
        """`z` moved by so many places, away from the start; 1 comes in."""
        low, high = [0] * len(shape), [0] * len(shape)
        low[dim], high[dim] = toward * by, -toward * by
        fills = [parts.emit(nd.ConstantOp.splat(number, tensor(element_of(z[0])))) for number in (1.0, 0.0)]
        re, im = (parts.emit(nd.PadOp.make(part, fill, low, high)) for part, fill in zip(z, fills))
        return re, im

    z = parts.pair(op.operand)
    if op.is_exclusive and count:
        z = shifted(z, 1)
    step = 1
    while step < count:
        z = product(parts, z, shifted(z, step))
        step *= 2
    return [z]


RULES: dict[type[Operation], Rule] = {
    nd.ReduceSumOp: partwise,
    nd.CumsumOp: partwise,
    nd.ReduceWindowOp: partwise,
    nd.ReduceProdOp: split_reduce_prod,
    nd.CumprodOp: split_cumprod,
}
