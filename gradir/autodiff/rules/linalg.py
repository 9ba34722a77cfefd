"""Derivatives of linear algebra; products of matrices are contractions, inverses are triangular solves. Orthogonal factors: orthogonal.py.

An argument of which one triangle is read gets its cotangent in that triangle. Sources: M. Giles, "An extended collection of matrix
derivative results" (2008); I. Murray, "Differentiation of the Cholesky decomposition" (2016); M. Seeger et al., "Auto-differentiating
linear algebra" (2017).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute, Operation, SSAValue

from gradir import size_algebra
from gradir.autodiff.registry import Contribution, vjp
from gradir.autodiff.tensors import TensorBuilder, named_size, needs_static_sizes
from gradir.dialects import nd
from gradir.dialects.nd.shape import TO_END
from gradir.dialects.text import flag_attr
from gradir.dialects.types import element_of, is_complex, shape_of, tensor

Cotangents = Sequence[SSAValue | None]


class Matrices:
    """What the rules write with: the last two dimensions are matrices."""

    def __init__(self, t: TensorBuilder) -> None:
        self.t = t

    def product(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """`a b`"""
        rank = len(shape_of(a))
        batch = tuple(range(rank - 2))
        return self.t.dot_general(a, b, ((rank - 1,), (rank - 2,)), (batch, batch), element_of(a))

    def transposed(self, a: SSAValue) -> SSAValue:
        """`a^T`"""
        rank = len(shape_of(a))
        return self.t.transpose(a, [*range(rank - 2), rank - 1, rank - 2])

    def conj(self, a: SSAValue) -> SSAValue:
        """Each element conjugated; a real one is itself."""
        return self.t.unary(nd.ConjOp, a) if is_complex(element_of(a)) else a

    def adjoint(self, a: SSAValue) -> SSAValue:
        """`conj(a)^T`"""
        return self.conj(self.transposed(a))

    def solve(self, a: SSAValue, b: SSAValue, *, left: bool, lower: bool, turned: bool, unit: bool = False) -> SSAValue:
        """x with `op(a) x = b`, from the right `x op(a) = b`; `turned`: op(a) is the transpose."""
        flags = {"left": left, "lower": lower, "unit_diagonal": unit, "transpose": turned, "adjoint": False}
        return self.t.emit(nd.TriangularSolveOp, [a, b], b.type, **{name: flag_attr(value) for name, value in flags.items()})

    def places(self, like: SSAValue) -> tuple[SSAValue, SSAValue]:
        """Row and column number of every element."""
        kind = tensor(i32, shape_of(like))
        rank = len(shape_of(like))
        return self.t.iota(kind, rank - 2), self.t.iota(kind, rank - 1)

    def masked(self, x: SSAValue, direction: str) -> SSAValue:
        """The elements with `row direction column`, zeros elsewhere: `ge` is the lower triangle."""
        rows, columns = self.places(x)
        return self.t.where(self.t.compare(direction, rows, columns), x)

    def scaled(self, x: SSAValue, weights: SSAValue) -> SSAValue:
        """Each element of `x` times a real weight."""
        return self.t.mul(x, self.t.convert(weights, element_of(x)))

    def turned(self, x: SSAValue) -> SSAValue:
        """`i x` of real x."""
        return self.t.complex(self.t.zeros(x.type), x)

    def identity(self, like: SSAValue) -> SSAValue:
        """Ones on the diagonal."""
        return self.masked(self.t.full_like(1.0, like), "eq")

    def diagonal(self, values: SSAValue, like: SSAValue) -> SSAValue:
        """The matrix, shaped like `like`, with `values` [.., k] on its diagonal."""
        rank = len(shape_of(like))
        return self.masked(self.t.broadcast(values, like.type, [*range(rank - 2), rank - 1]), "eq")

    def rows(self, values: SSAValue, kind: Attribute) -> SSAValue:
        """`values` [.., k], one per row of the matrices of type `kind`."""
        return self.t.broadcast(values, kind, [*range(len(shape_of(kind)) - 1)])

    def columns(self, values: SSAValue, kind: Attribute) -> SSAValue:
        """`values` [.., k], one per column of the matrices of type `kind`."""
        rank = len(shape_of(kind))
        return self.t.broadcast(values, kind, [*range(rank - 2), rank - 1])

    def folded(self, full: SSAValue, lower: bool) -> SSAValue:
        """The cotangent of a symmetric matrix as that of one triangle: off the diagonal both halves count."""
        both = self.t.add(full, self.adjoint(full))
        return self.t.sub(self.masked(both, "ge" if lower else "le"), self.t.scale(self.masked(both, "eq"), 0.5))


@dataclass(frozen=True)
class MatrixSizes:
    """The sizes of matrices: those of the batch as limits of slices, rows and columns, and how many rows there are more."""

    batch: tuple[int, ...]
    rows: int | str
    columns: int | str
    surplus: int

    @classmethod
    def of(cls, op: Operation) -> MatrixSizes:
        """Of the operand of `op`. Error AD008 where nothing tells by how much rows and columns differ."""
        sizes = [named_size(op, op.operands[0], d) for d in range(len(shape_of(op.operands[0])))]
        *batch, rows, columns = sizes
        surplus = size_algebra.minus(rows, columns)
        if not isinstance(surplus, int):
            raise needs_static_sizes(op, "numbers of rows and columns, or a known difference", op.operands[0])
        return cls(tuple(n if isinstance(n, int) else TO_END for n in batch), rows, columns, surplus)


@vjp(nd.CholeskyOp)
def cholesky_vjp(t: TensorBuilder, op: nd.CholeskyOp, ct: SSAValue) -> tuple[Contribution, ...]:
    """dA = L^-T phi(L^T dL) L^-1, phi: the lower triangle with half the diagonal"""
    return (cholesky_cotangent(t, op.result, ct, op.flag("lower")),)


def cholesky_cotangent(t: TensorBuilder, factor: SSAValue, ct: SSAValue, lower: bool) -> SSAValue:
    """The cotangent of the matrix with this factor; of complex ones the conjugates are gradients, and L^T is the adjoint."""
    m = Matrices(t)
    gradient = m.conj(ct)
    factor, gradient = (factor, gradient) if lower else (m.adjoint(factor), m.adjoint(gradient))
    inner = m.product(m.adjoint(factor), m.masked(gradient, "ge"))
    phi = t.add(m.masked(inner, "gt"), t.scale(m.masked(inner, "eq"), 0.5))
    half = m.solve(m.conj(factor), phi, left=True, lower=True, turned=True)
    found = m.folded(m.solve(factor, half, left=False, lower=True, turned=False), True)
    return m.conj(found) if lower else m.transposed(found)


@vjp(nd.TriangularSolveOp)
def triangular_solve_vjp(t: TensorBuilder, op: nd.TriangularSolveOp, ct: SSAValue) -> tuple[Contribution, ...]:
    """x = op(A)^-1 b: db = op(A)^-T dx, d op(A) = -db x^T; from the right -x^T db"""
    m = Matrices(t)
    left, lower, unit, turned = (op.flag(name) for name in ("left", "lower", "unit_diagonal", "transpose"))
    adjoint = op.flag("adjoint")
    a, turned = (m.conj(op.a), True) if adjoint else (op.a, turned)
    by_b = m.solve(a, ct, left=left, lower=lower, turned=not turned, unit=unit)

    def by_a() -> SSAValue:
        outer = m.product(by_b, m.transposed(op.result)) if left else m.product(m.transposed(op.result), by_b)
        found = t.neg(m.transposed(outer) if turned else outer)
        found = m.conj(found) if adjoint else found
        return m.masked(found, ("gt" if unit else "ge") if lower else ("lt" if unit else "le"))

    return (by_a, by_b)


@vjp(nd.LuOp)
def lu_vjp(t: TensorBuilder, op: nd.LuOp, cts: Cotangents) -> tuple[Contribution, ...]:
    """P A = L U: with X = L^-1 P dA U^-1, dL = L tril(X, -1), dU = triu(X) U; all of it transposed"""
    ct = cts[0]
    assert ct is not None, "permutation and pivots carry no cotangent"
    m = Matrices(t)
    sizes = MatrixSizes.of(op)
    batch, lead, more, wider = sizes.batch, [0] * len(sizes.batch), max(sizes.surplus, 0), max(-sizes.surplus, 0)
    left = t.slice(op.factors, [*lead, 0, 0], [*batch, TO_END, TO_END - wider])
    left = t.pad(m.masked(left, "gt"), 0.0, [*lead, 0, 0], [*lead, 0, more])
    left = t.add(left, m.identity(left))
    upper = t.slice(op.factors, [*lead, 0, 0], [*batch, TO_END - more, TO_END])
    upper = t.pad(m.masked(upper, "le"), 0.0, [*lead, 0, 0], [*lead, wider, 0])
    if wider:
        numbers = m.places(upper)[0]
        below = t.compare("ge", numbers, t.full_size(sizes.rows, numbers.type))
        upper = t.add(upper, t.where(below, m.identity(upper)))
    inner = m.masked(m.product(m.transposed(left), ct), "gt")
    inner = t.add(inner, m.masked(m.product(ct, m.transposed(upper)), "le"))
    inner = m.solve(upper, inner, left=False, lower=False, turned=True)
    inner = m.solve(left, inner, left=True, lower=True, turned=True, unit=True)
    chosen = m.rows(op.permutation, tensor(i32, (*shape_of(op.operand)[:-1], sizes.rows)))
    hits = t.compare("eq", chosen, m.places(chosen)[1])
    swaps = t.convert(hits, element_of(ct))
    return (m.product(m.transposed(swaps), inner),)
