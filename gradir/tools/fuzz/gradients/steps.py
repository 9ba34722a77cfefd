"""Straight-line steps. What a step computes from values around 1 is around 1 again, and smooth but for lone points."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import f64
from xdsl.ir import SSAValue

from gradir.dialects import nd
from gradir.dialects.types import shape_of
from gradir.tools.fuzz.gradients.scope import Scope, is_real, real

Unary = Callable[[Scope, SSAValue], SSAValue]
Binary = Callable[[Scope, SSAValue, SSAValue], SSAValue]


def _op(kind: type) -> Unary:
    return lambda s, x: s.t.unary(kind, x)


def _one_more(s: Scope, x: SSAValue) -> SSAValue:
    """1 + x*x"""
    return s.t.add(s.t.full_like(1.0, x), s.t.mul(x, x))


UNARY: tuple[Unary, ...] = (
    _op(nd.SinOp),
    _op(nd.CosOp),
    _op(nd.TanhOp),
    _op(nd.LogisticOp),
    _op(nd.ErfOp),
    _op(nd.AbsOp),
    _op(nd.ReluOp),
    _op(nd.NegOp),
    _op(nd.AtanOp),
    lambda s, x: s.t.scale(x, 0.6),
    lambda s, x: s.t.mul(x, s.bounded(x)),
    lambda s, x: s.emit(nd.SqrtOp.make(_one_more(s, x))),
    lambda s, x: s.emit(nd.RsqrtOp.make(_one_more(s, x))),
    lambda s, x: s.emit(nd.LogOp.make(_one_more(s, x))),
    lambda s, x: s.emit(nd.ExpOp.make(s.t.neg(s.t.mul(x, x)))),
    lambda s, x: s.emit(nd.Expm1Op.make(s.bounded(x))),
    lambda s, x: s.emit(nd.GeluOp.make(x, s.program.chance(0.5))),
    lambda s, x: s.emit(nd.OptimizationBarrierOp.make([x])),
    lambda s, x: s.t.add(s.emit(nd.FloorOp.make(x)), s.bounded(x)),
)  # fmt: skip


def _untaken(s: Scope, x: SSAValue, y: SSAValue) -> SSAValue:
    """`where(x > 0, sqrt(x), y)`: the side that is not taken is NaN."""
    root = s.emit(s.program.one_of([nd.SqrtOp, nd.LogOp]).make(x))
    inside = s.t.compare("gt", x, s.t.full_like(0.05, x))
    return s.bounded(s.t.select(inside, root, y))


BINARY: tuple[Binary, ...] = (
    lambda s, x, y: s.t.scale(s.t.add(x, y), 0.55),
    lambda s, x, y: s.t.add(s.t.scale(x, 0.5), s.bounded(y)),
    lambda s, x, y: s.t.scale(s.t.sub(x, y), 0.55),
    lambda s, x, y: s.t.mul(x, s.bounded(y)),
    lambda s, x, y: s.t.mul_strong(s.bounded(x), s.bounded(y)),
    lambda s, x, y: s.t.div(x, _one_more(s, y)),
    lambda s, x, y: s.t.binary(nd.MaxOp, x, y),
    lambda s, x, y: s.t.binary(nd.MinOp, x, y),
    lambda s, x, y: s.t.binary(nd.Atan2Op, x, _one_more(s, y)),
    lambda s, x, y: s.t.binary(nd.PowOp, s.t.add(s.t.full_like(0.5, x), s.bounded(_one_more(s, x))), s.bounded(y)),
    lambda s, x, y: s.t.select(s.t.compare("lt", x, y), s.bounded(x), s.t.scale(y, 0.9)),
    lambda s, x, y: s.emit(nd.ClampOp.make(s.t.full_like(-0.8, x), x, s.bounded(y))),
    _untaken,
)


def unary(s: Scope) -> None:
    s.add(s.program.one_of(UNARY)(s, s.float_()))


def binary(s: Scope) -> None:
    x = s.float_()
    y = x if s.program.chance(0.08) else s.float_(shape_of(x))
    s.add(s.program.one_of(BINARY)(s, x, y))


def reduction(s: Scope) -> None:
    """Sums, extrema, products, log-sum-exp; as a matrix again or as they are."""
    value = s.latest(lambda v: is_real(v) and len(shape_of(v)) > 0)
    if value is None:
        unary(s)
        return
    rank = len(shape_of(value))
    dims = (s.program.below(rank),) if s.program.chance(0.6) else tuple(range(rank))
    draw = s.program.below(5)
    if draw == 0:
        found = s.t.scale(s.t.sum(value, dims), 0.4)
    elif draw == 1:
        found = s.t.reduce(nd.ReduceProdOp, s.bounded(value), dims)
    elif draw == 2:
        found = s.t.scale(s.emit(nd.LogsumexpOp.make(s.bounded(value), dims[0])), 0.5)
    else:
        found = s.t.reduce(s.program.one_of([nd.ReduceMaxOp, nd.ReduceMinOp]), s.bounded(value), dims)
    s.add(found)


def along(s: Scope) -> None:
    """Softmax, cumulative sums and products, reversal along one dimension."""
    value = s.latest(lambda v: is_real(v) and len(shape_of(v)) > 0)
    if value is None:
        unary(s)
        return
    dim = s.program.below(len(shape_of(value)))
    draw = s.program.below(6)
    if draw == 0:
        found = s.emit(nd.SoftmaxOp.make(value, dim))
    elif draw == 1:
        found = s.t.scale(s.emit(nd.CumsumOp.make(value, dim, s.program.chance(0.5), s.program.chance(0.3))), 0.4)
    elif draw == 2:
        found = s.emit(nd.CumprodOp.make(s.bounded(value), dim, s.program.chance(0.5)))
    elif draw == 3:
        found = s.emit(nd.CummaxOp.make(s.bounded(value), dim))
    elif draw == 4:
        found = s.t.scale(s.emit(nd.LogSoftmaxOp.make(s.bounded(value), dim)), 0.4)
    else:
        found = s.t.reverse(value, (dim,))
    s.add(found)


def contraction(s: Scope) -> None:
    """Products of matrices and vectors, with and without batch dimensions."""
    program = s.program
    rows, columns = program.rows, program.columns
    x = s.float_((rows, columns))
    draw = program.below(4)
    if draw == 0:
        found = s.emit(nd.DotGeneralOp.make(x, s.float_((columns,)), [1], [0]))
    elif draw == 1:
        y = s.float_((columns, rows))
        found = s.emit(nd.DotGeneralOp.make(s.emit(nd.DotGeneralOp.make(x, y, [1], [0])), s.float_((rows,)), [0], [0]))
    elif draw == 2:
        found = s.emit(nd.DotGeneralOp.make(x, s.float_((rows, columns)), [1], [1], [0], [0]))
    else:
        found = s.emit(nd.DotGeneralOp.make(s.float_((columns,)), x, [0], [1]))
    s.add(s.bounded(s.t.scale(found, 0.5)))


def shape(s: Scope) -> None:
    """Transposition, a part with the rest put back, interior padding cut again, concatenation and a half of it."""
    program = s.program
    value = s.latest(lambda v: is_real(v) and len(shape_of(v)) > 0)
    if value is None:
        unary(s)
        return
    sizes = shape_of(value)
    numbers = [n for n in sizes if isinstance(n, int)]
    draw = program.below(4)
    if draw == 0 or len(numbers) < len(sizes):
        s.add(s.t.transpose(value, tuple(reversed(range(len(sizes))))))
        return
    dim = program.below(len(sizes))
    start = [0] * len(sizes)
    if draw == 1:
        other = s.float_(sizes)
        both = s.t.concatenate([value, other], dim)
        start[dim] = program.below(numbers[dim] + 1)
        s.add(s.t.slice(both, start, [a + n for a, n in zip(start, numbers)]))
    elif draw == 2:
        low = [program.below(3) - 1 if k == dim else 0 for k in range(len(sizes))]
        high = [-a for a in low]
        s.add(s.t.pad(value, 0.3, low, high))
    else:
        flat = s.t.reshape(value, (int(numbers[0] * (numbers[1] if len(numbers) > 1 else 1)),))
        s.add(s.t.reshape(s.t.reverse(flat, (0,)), sizes))


def weight(s: Scope) -> None:
    """A float times an integer that became a float: no derivative flows through the integer."""
    x = s.float_()
    k = s.bounded(s.t.convert(s.number(), f64))
    s.add(s.t.mul(x, s.t.broadcast(k, real(shape_of(x)), ())))


def integers(s: Scope) -> None:
    """Arithmetic of integers."""
    a, b = s.number(), s.number()
    s.add(s.t.binary(s.program.one_of([nd.AddOp, nd.SubOp, nd.MaxOp, nd.XorOp]), a, b))
