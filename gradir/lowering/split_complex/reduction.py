"""Families `reduction` and `cumulative`: sums are sums of parts; products are taken pair by pair.

Over static sizes that is log2(n) steps on whole tensors, over a run-time size a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from xdsl.ir import Block, Operation, Region, SSAValue

from gradir.dialects import nd
from gradir.dialects.nd.shape import TO_END
from gradir.dialects.text import INDEX
from gradir.dialects.types import element_of, shape_of, tensor
from gradir.dialects.upstream import scf
from gradir.lowering.split_complex.elementwise import product
from gradir.lowering.split_complex.parts import Pair, Parts, Rule, index_constant, partwise


def _on_both(z: Pair, function: Callable[[SSAValue], SSAValue]) -> Pair:
    return function(z[0]), function(z[1])


def _rows(parts: Parts, x: SSAValue, first: int, last: int) -> SSAValue:
    """Rows `first` to `last` of the leading dimension."""
    shape = shape_of(x)
    limits = [n if isinstance(n, int) else TO_END for n in shape[1:]]
    return parts.emit(nd.SliceOp.make(x, [first] + [0] * len(limits), [last, *limits]))


def _ones(parts: Parts, z: Pair, dim: int) -> Pair:
    """1 everywhere, in the shape of `z` without dimension `dim`."""
    shape = shape_of(z[0])
    one = parts.emit(nd.ConstantOp.splat(1.0, tensor(element_of(z[0]))))
    re = parts.broadcast(one, (), shape[:dim] + shape[dim + 1 :])
    return re, parts.zero(re)


def _product_of_rows(parts: Parts, z: Pair, count: int) -> Pair:
    """Halves of the leading dimension are multiplied until one row is left: `z[0..h] z[h..2h]`; an odd last row waits."""
    if count == 0:
        return _ones(parts, z, 0)
    while count > 1:
        half = count // 2
        low, high = (_on_both(z, lambda part, rows=rows: _rows(parts, part, *rows)) for rows in ((0, half), (half, 2 * half)))
        joined = product(parts, low, high)
        if count % 2:
            left = (_rows(parts, part, 2 * half, count) for part in z)
            re, im = (parts.emit(nd.ConcatenateOp.make([row, odd], 0)) for row, odd in zip(joined, left))
            joined = (re, im)
        z, count = joined, half + count % 2
    return _on_both(z, lambda part: parts.emit(nd.ReshapeOp.make(part, shape_of(part)[1:])))


def _loop(parts: Parts, z: Pair, dim: int, initial: Sequence[SSAValue], body: Callable[..., Sequence[SSAValue]]) -> Sequence[SSAValue]:
    """`carried = body(parts, i, carried)` for i from 0 to the size of dimension `dim` of `z`."""
    size = parts.emit(nd.DimOp.make(z[0], dim))
    block = Block(arg_types=[INDEX, *(value.type for value in initial)])
    inside = Parts(parts.builder.nested(block), parts.pairs)
    inside.builder.op(scf.YieldOp, body(inside, block.args[0], block.args[1:]))
    bounds = (index_constant(parts, 0), size, index_constant(parts, 1))
    made = parts.builder.op(scf.ForOp, (*bounds, *initial), [value.type for value in initial], {}, [Region(block)])
    return made.results


def _product_of_run_time_size(parts: Parts, z: Pair, dim: int) -> Pair:
    """One row after the other."""

    def step(inside: Parts, at: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        row = _on_both(z, lambda part: inside.emit(nd.IndexAtOp.make(part, at, dim)))
        return product(inside, (carried[0], carried[1]), row)

    re, im = _loop(parts, z, dim, _ones(parts, z, dim), step)
    return re, im


def split_reduce_prod(parts: Parts, op: nd.ReduceProdOp) -> Sequence[Pair]:
    """All static dimensions at once, each run-time one by a loop"""
    dims, shape = op.numbers("dims"), shape_of(op.operand)
    kept = [d for d in range(len(shape)) if d not in dims]
    static = [d for d in dims if isinstance(shape[d], int)]
    moving = [d for d in dims if d not in static]
    sizes = [n for d in static if isinstance(n := shape[d], int)]

    def flat(part: SSAValue) -> SSAValue:
        moved = parts.emit(nd.TransposeOp.make(part, [*static, *moving, *kept]))
        return parts.emit(nd.ReshapeOp.make(moved, (prod(sizes), *(shape[d] for d in (*moving, *kept)))))

    z = _product_of_rows(parts, _on_both(parts.pair(op.operand), flat), prod(sizes))
    for _ in moving:
        z = _product_of_run_time_size(parts, z, 0)
    return [z]


def split_cumprod(parts: Parts, op: nd.CumprodOp) -> Sequence[Pair]:
    """W. D. Hillis, G. L. Steele, "Data parallel algorithms" (1986): `z[i] = z[i] z[i - k]` for k = 1, 2, 4, ..."""
    dim, shape, z = op.number("dim"), shape_of(op.operand), parts.pair(op.operand)
    count = shape[dim]
    if not isinstance(count, int):
        return [_cumprod_of_run_time_size(parts, op, z)]
    toward = -1 if op.is_reverse else 1
    fills = [parts.emit(nd.ConstantOp.splat(number, tensor(element_of(z[0])))) for number in (1.0, 0.0)]

    def shifted(z: Pair, by: int) -> Pair:
        """`z` moved by so many places, away from the start; 1 comes in."""
        low, high = [0] * len(shape), [0] * len(shape)
        low[dim], high[dim] = toward * by, -toward * by
        re, im = (parts.emit(nd.PadOp.make(part, fill, low, high)) for part, fill in zip(z, fills))
        return re, im

    if op.is_exclusive and count:
        z = shifted(z, 1)
    step = 1
    while step < count:
        z = product(parts, z, shifted(z, step))
        step *= 2
    return [z]


def _cumprod_of_run_time_size(parts: Parts, op: nd.CumprodOp, z: Pair) -> Pair:
    """One row after the other, each result written as it is known."""
    dim = op.number("dim")
    if op.is_reverse:
        z = _on_both(z, lambda part: parts.emit(nd.ReverseOp.make(part, [dim])))

    def step(inside: Parts, at: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        total = (carried[0], carried[1])
        following = product(inside, total, _on_both(z, lambda part: inside.emit(nd.IndexAtOp.make(part, at, dim))))
        shown = total if op.is_exclusive else following
        written = [inside.emit(nd.UpdateAtOp.make(row, into, at, dim)) for row, into in zip(shown, carried[2:])]
        return (*following, *written)

    results = _loop(parts, z, dim, (*_ones(parts, z, dim), *z), step)
    found = (results[2], results[3])
    return _on_both(found, lambda part: parts.emit(nd.ReverseOp.make(part, [dim]))) if op.is_reverse else found


RULES: dict[type[Operation], Rule] = {
    nd.ReduceSumOp: partwise,
    nd.CumsumOp: partwise,
    nd.ReduceWindowOp: partwise,
    nd.ReduceProdOp: split_reduce_prod,
    nd.CumprodOp: split_cumprod,
}
