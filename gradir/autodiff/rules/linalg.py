"""Derivatives of linear algebra, of real matrices; products of matrices are contractions, inverses are triangular solves.

An argument of which one triangle is read gets its cotangent in that triangle. Sources: M. Giles, "An extended collection of matrix
derivative results" (2008); I. Murray, "Differentiation of the Cholesky decomposition" (2016); M. Seeger et al., "Auto-differentiating
linear algebra" (2017); J. Townsend, "Differentiating the singular value decomposition" (2016).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute, Operation, SSAValue

from gradir.autodiff.registry import Contribution, vjp
from gradir.autodiff.tensors import TensorBuilder, known_sizes
from gradir.dialects import nd
from gradir.dialects.text import flag_attr
from gradir.dialects.types import element_of, is_complex, shape_of, tensor
from gradir.errors import GradirError
from gradir.ir.passes import error_at

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


def refuse_complex(op: Operation) -> None:
    """These rules are for real matrices."""
    if is_complex(element_of(op.operands[0])):
        raise unsupported(op, "real matrices", str(op.operands[0].type))


def unsupported(op: Operation, expected: str, found: str) -> GradirError:
    """The error AD010."""
    return error_at(
        op,
        "this factorisation has no derivative rule",
        part="autodiff",
        code="AD010",
        expected=expected,
        found=found,
        hint="differentiate a function of another factorisation, or cut the path with ad.stop_gradient",
    )


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
    *batch, rows, columns = known_sizes(op, op.operand)
    k = min(rows, columns)
    lead = [0] * len(batch)
    left = t.slice(op.factors, [*lead, 0, 0], [*batch, rows, k])
    left = t.pad(m.masked(left, "gt"), 0.0, [*lead, 0, 0], [*lead, 0, rows - k])
    left = t.add(left, m.identity(left))
    upper = t.slice(op.factors, [*lead, 0, 0], [*batch, k, columns])
    upper = t.pad(m.masked(upper, "le"), 0.0, [*lead, 0, 0], [*lead, columns - k, 0])
    if k < columns:
        numbers = m.places(upper)[0]
        below = t.compare("ge", numbers, t.full(float(k), numbers.type))
        upper = t.add(upper, t.where(below, m.identity(upper)))
    inner = m.masked(m.product(m.transposed(left), ct), "gt")
    inner = t.add(inner, m.masked(m.product(ct, m.transposed(upper)), "le"))
    inner = m.solve(upper, inner, left=False, lower=False, turned=True)
    inner = m.solve(left, inner, left=True, lower=True, turned=True, unit=True)
    chosen = m.rows(op.permutation, tensor(i32, (*batch, rows, rows)))
    hits = t.compare("eq", chosen, m.places(chosen)[1])
    swaps = t.convert(hits, element_of(ct))
    return (m.product(m.transposed(swaps), inner),)


@vjp(nd.QrOp)
def qr_vjp(t: TensorBuilder, op: nd.QrOp, cts: Cotangents) -> tuple[Contribution, ...]:
    """dA = (dQ + Q copyltu(M)) R^-T with M = R dR^T - dQ^T Q, copyltu(M) = tril(M) + tril(M, -1)^T"""
    refuse_complex(op)
    *_, rows, columns = known_sizes(op, op.operand)
    if op.flag("full") and rows > columns:
        raise unsupported(op, "reduced factors of a matrix with more rows than columns", str(op.operand.type))
    by_q, by_r = (ct if ct is not None else t.zeros(value.type) for ct, value in zip(cts, op.results))
    if rows >= columns:
        return (_qr_cotangent(t, op.q, op.r, by_q, by_r),)
    # [A1 A2] = Q [R1 R2]: A1 = Q R1 is square, R2 = Q^T A2
    *batch, _, _ = known_sizes(op, op.operand)
    m, lead = Matrices(t), [0] * len(batch)

    def left(x: SSAValue) -> SSAValue:
        return t.slice(x, [*lead, 0, 0], [*batch, rows, rows])

    def right(x: SSAValue) -> SSAValue:
        return t.slice(x, [*lead, 0, rows], [*batch, rows, columns])

    by_q = t.add(by_q, m.product(right(op.operand), m.transposed(right(by_r))))
    square = _qr_cotangent(t, op.q, left(op.r), by_q, left(by_r))
    return (t.concatenate([square, m.product(op.q, right(by_r))], len(batch) + 1),)


def _qr_cotangent(t: TensorBuilder, q: SSAValue, r: SSAValue, by_q: SSAValue, by_r: SSAValue) -> SSAValue:
    """Of a matrix with no more columns than rows."""
    m = Matrices(t)
    inner = t.sub(m.product(r, m.transposed(m.masked(by_r, "le"))), m.product(m.transposed(by_q), q))
    mirrored = t.add(m.masked(inner, "ge"), m.transposed(m.masked(inner, "gt")))
    return m.solve(r, t.add(by_q, m.product(q, mirrored)), left=False, lower=False, turned=True)


def _gaps(t: TensorBuilder, values: SSAValue, like: SSAValue) -> SSAValue:
    """`1 / (values[j] - values[i])` at (i, j), 0 on the diagonal, NaN where two of them are equal."""
    m = Matrices(t)
    difference = t.sub(m.columns(values, like.type), m.rows(values, like.type))
    equal = t.compare("eq", difference, t.full_like(0.0, difference))
    inverse = t.select(equal, t.full_like(float("nan"), difference), t.div(t.full_like(1.0, difference), difference))
    return m.masked(inverse, "ne")


def _spanned(m: Matrices, left: SSAValue, weights: SSAValue, right: SSAValue) -> SSAValue:
    """`left diag(weights) right` of complex matrices and real weights."""
    wide = m.t.complex(weights, m.t.full_like(0.0, weights))
    return m.product(m.t.mul(left, m.columns(wide, left.type)), right)


@vjp(nd.EighOp)
def eigh_vjp(t: TensorBuilder, op: nd.EighOp, cts: Cotangents) -> tuple[Contribution, ...]:
    """dA = V (diag(dw) + F o (V^T dV)) V^T, F[i, j] = 1 / (w[j] - w[i]): equal values give NaN unless what they divide is 0"""
    m = Matrices(t)
    by_values, by_vectors = cts
    vectors = op.vectors
    if is_complex(element_of(vectors)):
        if by_vectors is not None or by_values is None:
            raise unsupported(op, "real matrices, or their values alone", str(op.operand.type))
        return (m.conj(m.folded(_spanned(m, vectors, by_values, m.adjoint(vectors)), op.flag("lower"))),)
    middle: SSAValue | None = None
    if by_values is not None:
        middle = m.diagonal(by_values, vectors)
    if by_vectors is not None:
        turned = t.mul_strong(_gaps(t, op.values, vectors), m.product(m.transposed(vectors), by_vectors))
        middle = turned if middle is None else t.add(middle, turned)
    assert middle is not None, "a rule runs when some cotangent arrived"
    full = m.product(m.product(vectors, middle), m.transposed(vectors))
    both = t.scale(t.add(full, m.transposed(full)), 0.5)
    return (m.folded(both, op.flag("lower")),)


@vjp(nd.SvdOp)
def svd_vjp(t: TensorBuilder, op: nd.SvdOp, cts: Cotangents) -> tuple[Contribution, ...]:
    """dA = U (diag(ds) + F o (U^T dU - dU^T U) S + S F o (V^T dV - dV^T V)) V^T + what leaves the spaces of U and V, over S;
    F[i, j] = 1 / (s[j]^2 - s[i]^2)"""
    m, (by_u, by_s, by_vh) = Matrices(t), cts
    u, s, vh = op.u, op.s, op.vh
    *_, rows, columns = known_sizes(op, op.operand)
    if op.flag("full") and rows != columns:
        raise unsupported(op, "reduced factors, or a square matrix", str(op.operand.type))
    if is_complex(element_of(u)):
        if by_u is not None or by_vh is not None or by_s is None:
            raise unsupported(op, "real matrices, or their singular values alone", str(op.operand.type))
        return (m.conj(_spanned(m, u, by_s, vh)),)
    square = tensor(element_of(u), (*shape_of(s), shape_of(s)[-1]))
    core = m.diagonal(by_s, t.full(0.0, square)) if by_s is not None else t.full(0.0, square)
    along_rows, along_columns = m.rows(s, core.type), m.columns(s, core.type)
    gaps = _gaps(t, t.mul(s, s), core)
    outside: list[SSAValue] = []
    if by_u is not None:
        inner = m.product(m.transposed(u), by_u)
        core = t.add(core, t.mul(t.mul_strong(gaps, t.sub(inner, m.transposed(inner))), along_columns))
        if rows > min(rows, columns):
            rest = t.sub(by_u, m.product(u, inner))
            outside.append(m.product(t.mul_strong(rest, _inverse(t, m.columns(s, rest.type))), vh))
    if by_vh is not None:
        inner = m.product(vh, m.transposed(by_vh))
        core = t.add(core, t.mul(along_rows, t.mul_strong(gaps, t.sub(inner, m.transposed(inner)))))
        if columns > min(rows, columns):
            rest = t.sub(by_vh, m.product(m.transposed(inner), vh))
            outside.append(m.product(u, t.mul_strong(rest, _inverse(t, m.rows(s, rest.type)))))
    found = m.product(m.product(u, core), vh)
    for part in outside:
        found = t.add(found, part)
    return (found,)


def _inverse(t: TensorBuilder, x: SSAValue) -> SSAValue:
    return t.div(t.full_like(1.0, x), x)
