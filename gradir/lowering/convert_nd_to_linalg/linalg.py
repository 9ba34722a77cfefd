"""Factorisations as loops of our own: templates that work element by element, for any size and any target.

They are what `loops` stands for in the table of implementations; LAPACK takes over from some size on where it is installed.
Algorithms: G. Golub, C. Van Loan, Matrix Computations, 4th ed., sections 3.1 (substitution), 3.4 (LU), 4.2 (Cholesky).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from gradir.dialects import nd
from gradir.dialects.types import element_of, rank_of, shape_of
from gradir.dialects.upstream import arith, math
from gradir.lowering.convert_nd_to_linalg.function import Lowering
from gradir.lowering.convert_nd_to_linalg.nests import INDEX
from gradir.lowering.convert_nd_to_linalg.rules import lowers
from gradir.lowering.convert_nd_to_linalg.scalars import Scalars
from gradir.lowering.convert_nd_to_linalg.templates import LoopBuilder
from gradir.lowering.convert_nd_to_linalg.views import View

Place = Callable[[SSAValue, SSAValue], list[SSAValue]]
"""The position of element (i, j) of the matrix at hand."""


@lowers(nd.CholeskyOp)
def lower_cholesky(lowering: Lowering, op: nd.CholeskyOp) -> View:
    """Column by column: `L[j, j] = sqrt(a[j, j] - |L[j, :j]|^2)`, `L[i, j] = (a[i, j] - L[i, :j] L[j, :j]) / L[j, j]`."""
    element, lower = element_of(op.operand), op.flag("lower")
    destination = lowering.nests.empty(element, shape_of(op.operand))

    def body(loops: LoopBuilder, arguments: Sequence[SSAValue]) -> SSAValue:
        a, out = arguments
        sizes = loops.sizes(a)

        def one(inner: LoopBuilder, batch: list[SSAValue], carried: list[SSAValue]) -> list[SSAValue]:
            def place(i: SSAValue, j: SSAValue) -> list[SSAValue]:
                return [*batch, i, j] if lower else [*batch, j, i]

            return [_cholesky(inner, a, carried[0], sizes[-1], place)]

        return loops.loops(sizes[:-2], [out], one)[0]

    operands = (lowering.tensor(op.operand),)
    return lowering.whole(lowering.templates.call(lowering.builder, "cholesky", lower, operands, destination, body), element)


def _cholesky(loops: LoopBuilder, a: SSAValue, out: SSAValue, n: SSAValue, place: Place) -> SSAValue:
    def column(inner: LoopBuilder, at: list[SSAValue], carried: list[SSAValue]) -> list[SSAValue]:
        (j,), (out,) = at, carried
        s = Scalars(inner.builder)
        zero = s.constant(0.0, element_of(out))
        (out,) = inner.loops([j], [out], lambda deep, i, c: [deep.store(zero, c[0], place(i[0], j))])
        square = _minus_products(
            inner, inner.load(a, place(j, j)), j, lambda deep, k: (deep.load(out, place(j, k)), deep.load(out, place(j, k)))
        )
        good = s.i(arith.AndIOp, s.cmpf("ogt", square, zero), s.cmpf("olt", square, s.constant(float("inf"), element_of(out))))
        root = s.select(good, s.f(math.SqrtOp, square), s.constant(float("nan"), element_of(out)))
        out = inner.store(root, out, place(j, j))

        def below(deep: LoopBuilder, at: list[SSAValue], carried: list[SSAValue]) -> list[SSAValue]:
            t, i = Scalars(deep.builder), _behind(deep, j, at[0])
            rest = _minus_products(
                deep, deep.load(a, place(i, j)), j, lambda d, k: (d.load(carried[0], place(i, k)), d.load(carried[0], place(j, k)))
            )
            return [deep.store(t.f(arith.DivfOp, rest, root), carried[0], place(i, j))]

        return inner.loops([_after(inner, n, j)], [out], below)

    (out,) = loops.loops([n], [out], column)

    def spread(inner: LoopBuilder, at: list[SSAValue], carried: list[SSAValue]) -> list[SSAValue]:
        """Without a factor the last diagonal element is NaN: then so is the triangle."""
        last = _minus(inner, n, inner.index(1))

        def element(deep: LoopBuilder, column: list[SSAValue], state: list[SSAValue]) -> list[SSAValue]:
            t, corner = Scalars(deep.builder), deep.load(state[0], place(last, last))
            here = place(at[0], column[0])
            kept = t.select(t.cmpf("uno", corner, corner), corner, deep.load(state[0], here))
            return [deep.store(kept, state[0], here)]

        return inner.loops([_plus(inner, at[0], inner.index(1))], carried, element)

    return loops.loops([n], [out], spread)[0]


@lowers(nd.TriangularSolveOp)
def lower_triangular_solve(lowering: Lowering, op: nd.TriangularSolveOp) -> View:
    """Row by row: `x[i] = (b[i] - sum over known k of a[i, k] x[k]) / a[i, i]`; from the right, the same for the transposes."""
    element = element_of(op.b)
    left, unit, turned = op.flag("left"), op.flag("unit_diagonal"), op.transposition != "N"
    swap = turned == left  # from the right the rows of x are its columns, and a is transposed once more
    forward = op.flag("lower") == (not swap)
    destination = lowering.nests.empty(element, shape_of(op.b))

    def body(loops: LoopBuilder, arguments: Sequence[SSAValue]) -> SSAValue:
        a, b, out = arguments
        sizes = loops.sizes(b)
        n, m = (sizes[-2], sizes[-1]) if left else (sizes[-1], sizes[-2])

        def one(inner: LoopBuilder, batch: list[SSAValue], carried: list[SSAValue]) -> list[SSAValue]:
            def of_a(i: SSAValue, k: SSAValue) -> list[SSAValue]:
                return [*batch, k, i] if swap else [*batch, i, k]

            def of_x(i: SSAValue, c: SSAValue) -> list[SSAValue]:
                return [*batch, i, c] if left else [*batch, c, i]

            def row(deep: LoopBuilder, at: list[SSAValue], state: list[SSAValue]) -> list[SSAValue]:
                def number(where: LoopBuilder, step: SSAValue) -> SSAValue:
                    return step if forward else _after(where, n, step)

                i = number(deep, at[0])

                def element_of_row(d: LoopBuilder, column: list[SSAValue], values: list[SSAValue]) -> list[SSAValue]:
                    def pair(e: LoopBuilder, step: SSAValue) -> tuple[SSAValue, SSAValue]:
                        k = number(e, step)
                        return e.load(a, of_a(i, k)), e.load(values[0], of_x(k, column[0]))

                    here = of_x(i, column[0])
                    rest = _minus_products(d, d.load(b, here), at[0], pair)
                    found = rest if unit else Scalars(d.builder).f(arith.DivfOp, rest, d.load(a, of_a(i, i)))
                    return [d.store(found, values[0], here)]

                return deep.loops([m], state, element_of_row)

            return inner.loops([n], carried, row)

        return loops.loops(sizes[:-2], [out], one)[0]

    key = (left, op.flag("lower"), unit, turned)
    operands = (lowering.tensor(op.a), lowering.tensor(op.b))
    return lowering.whole(lowering.templates.call(lowering.builder, "triangular_solve", key, operands, destination, body), element)


@lowers(nd.LuOp)
def lower_lu(lowering: Lowering, op: nd.LuOp) -> tuple[View, ...]:
    """Column by column: find the pivot, swap its row up, divide the column by it, subtract its row from those below."""
    rank = rank_of(op.operand)
    destinations = [lowering.nests.empty(element_of(value), shape_of(value)) for value in op.results]

    def body(loops: LoopBuilder, arguments: Sequence[SSAValue]) -> Sequence[SSAValue]:
        a, factors, pivots, permutation = arguments
        sizes = loops.sizes(a)
        (factors,) = loops.loops(sizes, [factors], lambda inner, at, c: [inner.store(inner.load(a, at), c[0], at)])

        def numbered(inner: LoopBuilder, at: list[SSAValue], carried: list[SSAValue]) -> list[SSAValue]:
            return [inner.store(_i32(inner, at[-1]), carried[0], at)]

        (permutation,) = loops.loops(sizes[:-1], [permutation], numbered)
        steps = loops.sizes(pivots)[-1]

        def one(inner: LoopBuilder, batch: list[SSAValue], carried: list[SSAValue]) -> list[SSAValue]:
            return inner.loops([steps], carried, lambda d, at, state: _eliminate(d, batch, at[0], state, sizes[rank - 2], sizes[rank - 1]))

        return loops.loops(sizes[:-2], [factors, pivots, permutation], one)

    results = lowering.templates.call_all(lowering.builder, "lu", (), (lowering.tensor(op.operand),), destinations, body)
    return tuple(lowering.whole(value, element_of(old)) for value, old in zip(results, op.results))


def _eliminate(
    loops: LoopBuilder, batch: list[SSAValue], k: SSAValue, state: list[SSAValue], rows: SSAValue, columns: SSAValue
) -> list[SSAValue]:
    factors, pivots, permutation = state
    s = Scalars(loops.builder)
    element = element_of(factors)

    def larger(inner: LoopBuilder, at: list[SSAValue], best: list[SSAValue]) -> list[SSAValue]:
        t, i = Scalars(inner.builder), _plus(inner, k, at[0])
        size = t.f(math.AbsFOp, inner.load(factors, [*batch, i, k]))
        better = t.cmpf("ogt", size, best[0])
        return [t.select(better, size, best[0]), t.select(better, i, best[1])]

    _, p = loops.loops([_minus(loops, rows, k)], [s.constant(-1.0, element), k], larger)
    pivots = loops.store(_i32(loops, p), pivots, [*batch, k])
    permutation = _swap(loops, permutation, [*batch, k], [*batch, p])

    def swap(inner: LoopBuilder, at: list[SSAValue], carried: list[SSAValue]) -> list[SSAValue]:
        return [_swap(inner, carried[0], [*batch, k, at[0]], [*batch, p, at[0]])]

    (factors,) = loops.loops([columns], [factors], swap)
    pivot = loops.load(factors, [*batch, k, k])
    divides = s.cmpf("une", pivot, s.constant(0.0, element))

    def below(inner: LoopBuilder, at: list[SSAValue], carried: list[SSAValue]) -> list[SSAValue]:
        t, i = Scalars(inner.builder), _behind(inner, k, at[0])
        old = inner.load(carried[0], [*batch, i, k])
        factor = t.select(divides, t.f(arith.DivfOp, old, pivot), old)
        out = inner.store(factor, carried[0], [*batch, i, k])

        def subtract(deep: LoopBuilder, column: list[SSAValue], c: list[SSAValue]) -> list[SSAValue]:
            u, j = Scalars(deep.builder), _behind(deep, k, column[0])
            product = u.f(arith.MulfOp, factor, deep.load(c[0], [*batch, k, j]))
            here = [*batch, i, j]
            return [deep.store(u.f(arith.SubfOp, deep.load(c[0], here), product), c[0], here)]

        return inner.loops([_after(inner, columns, k)], [out], subtract)

    (factors,) = loops.loops([_after(loops, rows, k)], [factors], below)
    return [factors, pivots, permutation]


def _minus_products(
    loops: LoopBuilder, start: SSAValue, count: SSAValue, pair: Callable[[LoopBuilder, SSAValue], tuple[SSAValue, SSAValue]]
) -> SSAValue:
    """`start - sum over k < count of x(k) y(k)`"""

    def step(inner: LoopBuilder, at: list[SSAValue], carried: list[SSAValue]) -> list[SSAValue]:
        s = Scalars(inner.builder)
        return [s.f(arith.SubfOp, carried[0], s.f(arith.MulfOp, *pair(inner, at[0])))]

    return loops.loops([count], [start], step)[0]


def _swap(loops: LoopBuilder, tensor: SSAValue, one: list[SSAValue], other: list[SSAValue]) -> SSAValue:
    x, y = loops.load(tensor, one), loops.load(tensor, other)
    return loops.store(x, loops.store(y, tensor, one), other)


def _plus(loops: LoopBuilder, x: SSAValue, y: SSAValue) -> SSAValue:
    return Scalars(loops.builder).i(arith.AddiOp, x, y)


def _minus(loops: LoopBuilder, x: SSAValue, y: SSAValue) -> SSAValue:
    return Scalars(loops.builder).i(arith.SubiOp, x, y)


def _behind(loops: LoopBuilder, j: SSAValue, step: SSAValue) -> SSAValue:
    """j + 1 + step"""
    return _plus(loops, _plus(loops, j, step), loops.index(1))


def _after(loops: LoopBuilder, n: SSAValue, j: SSAValue) -> SSAValue:
    """n - 1 - j: how many come after number j."""
    return _minus(loops, _minus(loops, n, loops.index(1)), j)


def _i32(loops: LoopBuilder, x: SSAValue) -> SSAValue:
    return x if x.type != INDEX else loops.builder(arith.IndexCastOp, (x,), (i32,))
