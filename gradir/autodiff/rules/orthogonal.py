"""Derivatives of factors with orthonormal columns: QR, eigenvectors, singular vectors.

Inside, the cotangents of complex values are conjugated: then they are gradients, `Re(tr(G* dA))`, and transposes become adjoints.

Vectors of real matrices have signs, which do not move. Those of complex matrices have phases: the decomposition leaves them open, the op
fixes them (docs/decisions/0013), and so the vectors turn with the matrix. What is computed first is the part of the derivative at which no
vector turns itself (`V* dV` has a zero diagonal); `_Phases` adds the rest. A function that does not depend on phases never sees it: its
cotangents make that part 0. Sources: J. Townsend, "Differentiating the singular value decomposition" (2016); Z. Wan, S. Zhang, "Automatic
differentiation for complex valued SVD" (2019); M. Seeger et al., "Auto-differentiating linear algebra" (2017).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, i32, i64
from xdsl.ir import Operation, SSAValue

from gradir.autodiff.registry import Contribution, vjp
from gradir.autodiff.rules.linalg import Matrices, MatrixSizes
from gradir.autodiff.tensors import TensorBuilder, needs_static_sizes
from gradir.dialects import nd
from gradir.dialects.nd.shape import TO_END
from gradir.dialects.types import element_of, is_complex, shape_of, tensor
from gradir.errors import GradirError
from gradir.ir.passes import error_at

Cotangents = Sequence[SSAValue | None]

LARGE = 0.5
"""The component of a vector that is made positive is the first of at least this part of the largest magnitude."""


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


@vjp(nd.QrOp)
def qr_vjp(t: TensorBuilder, op: nd.QrOp, cts: Cotangents) -> tuple[Contribution, ...]:
    """dA = (dQ + Q mirror(M)) R^-* with M = R dR* - dQ* Q; mirror: the lower triangle and its adjoint, a real diagonal as that of R"""
    sizes = MatrixSizes.of(op)
    if op.flag("full") and sizes.surplus > 0:
        raise unsupported(op, "reduced factors of a matrix with more rows than columns", str(op.operand.type))
    m = Matrices(t)
    by_q, by_r = (m.conj(ct if ct is not None else t.zeros(value.type)) for ct, value in zip(cts, op.results))
    if sizes.surplus >= 0:
        return (m.conj(_qr_cotangent(t, op.q, op.r, by_q, by_r)),)
    # [A1 A2] = Q [R1 R2]: A1 = Q R1 is square, R2 = Q* A2
    rows, batch, lead = sizes.rows, sizes.batch, [0] * len(sizes.batch)
    if not isinstance(rows, int):
        raise needs_static_sizes(op, "a number of rows, where there are more columns", op.operand)

    def left(x: SSAValue) -> SSAValue:
        return t.slice(x, [*lead, 0, 0], [*batch, rows, rows])

    def right(x: SSAValue) -> SSAValue:
        return t.slice(x, [*lead, 0, rows], [*batch, rows, TO_END])

    by_q = t.add(by_q, m.product(right(op.operand), m.adjoint(right(by_r))))
    square = _qr_cotangent(t, op.q, left(op.r), by_q, left(by_r))
    return (m.conj(t.concatenate([square, m.product(op.q, right(by_r))], len(batch) + 1)),)


def _qr_cotangent(t: TensorBuilder, q: SSAValue, r: SSAValue, by_q: SSAValue, by_r: SSAValue) -> SSAValue:
    """Of a matrix with no more columns than rows."""
    m = Matrices(t)
    inner = t.sub(m.product(r, m.adjoint(m.masked(by_r, "le"))), m.product(m.adjoint(by_q), q))
    below = m.masked(inner, "gt")
    mirrored = t.add(m.masked(t.convert(t.real(inner), element_of(inner)), "eq"), t.add(below, m.adjoint(below)))
    return m.solve(m.conj(r), t.add(by_q, m.product(q, mirrored)), left=False, lower=False, turned=True)


def _gaps(t: TensorBuilder, values: SSAValue, like: SSAValue) -> SSAValue:
    """`1 / (values[j] - values[i])` at (i, j) in the type of `like`, 0 on the diagonal, NaN where two of them are equal."""
    m = Matrices(t)
    kind = tensor(element_of(values), shape_of(like))
    difference = t.sub(m.columns(values, kind), m.rows(values, kind))
    equal = t.compare("eq", difference, t.full_like(0.0, difference))
    inverse = t.select(equal, t.full_like(float("nan"), difference), t.div(t.full_like(1.0, difference), difference))
    return t.convert(m.masked(inverse, "ne"), element_of(like))


class _Phases:
    """The component of each column of complex `vectors` that is kept positive."""

    def __init__(self, t: TensorBuilder, vectors: SSAValue) -> None:
        self.t, self.m = t, Matrices(t)
        self.rank = len(shape_of(vectors))
        size = t.abs(vectors)
        top = t.reduce(nd.ReduceMaxOp, size, [self.rank - 2])
        large = t.compare("ge", size, t.scale(t.expand(top, size.type, [self.rank - 2]), LARGE))
        columns = tensor(i32, (*shape_of(vectors)[:-2], shape_of(vectors)[-1]))
        first = t.emit(nd.ArgmaxOp, [t.convert(large, i32)], columns, dim=IntegerAttr(self.rank - 2, i64))
        rows = self.m.places(vectors)[0]
        self.at = t.compare("eq", rows, t.expand(first, rows.type, [self.rank - 2]))
        self.component = t.real(t.sum(t.where(self.at, vectors), [self.rank - 2]))

    def joined(self, gradient: SSAValue, by_turn: SSAValue) -> SSAValue:
        """`gradient` of the vectors with what their turns add: column j turns by -Im(dv[p, j]) / v[p, j], which changes the loss by
        `by_turn[j]` per radian."""
        share = self.t.div(self.t.neg(by_turn), self.component)
        return self.t.add(gradient, self.t.where(self.at, self.m.columns(self.m.turned(share), gradient.type)))


def _turns(t: TensorBuilder, inner: SSAValue) -> SSAValue:
    """What turning a column by one radian does to the loss: Re(conj(g) i v), which is the imaginary part on the diagonal of `V* G`."""
    part = t.imag(inner)
    return t.sum(Matrices(t).masked(part, "eq"), [len(shape_of(part)) - 2])


@vjp(nd.EighOp)
def eigh_vjp(t: TensorBuilder, op: nd.EighOp, cts: Cotangents) -> tuple[Contribution, ...]:
    """dA = V (diag(dw) + F o (V* dV)) V*, F[i, j] = 1 / (w[j] - w[i]): equal values give NaN unless what they divide is 0"""
    m = Matrices(t)
    by_values, by_vectors = cts
    vectors = op.vectors
    middle: SSAValue | None = None
    if by_values is not None:
        middle = m.diagonal(t.convert(by_values, element_of(vectors)), vectors)
    if by_vectors is not None:
        gradient = m.conj(by_vectors)
        if is_complex(element_of(vectors)):
            gradient = _Phases(t, vectors).joined(gradient, _turns(t, m.product(m.adjoint(vectors), gradient)))
        turned = t.mul_strong(_gaps(t, op.values, vectors), m.product(m.adjoint(vectors), gradient))
        middle = turned if middle is None else t.add(middle, turned)
    assert middle is not None, "a rule runs when some cotangent arrived"
    full = m.product(m.product(vectors, middle), m.adjoint(vectors))
    both = t.scale(t.add(full, m.adjoint(full)), 0.5)
    return (m.conj(m.folded(both, op.flag("lower"))),)


@vjp(nd.SvdOp)
def svd_vjp(t: TensorBuilder, op: nd.SvdOp, cts: Cotangents) -> tuple[Contribution, ...]:
    """dA = U (diag(ds) + F o (U* dU - dU* U) S + S F o (V* dV - dV* V)) V* + what leaves the spaces of U and V, over S;
    F[i, j] = 1 / (s[j]^2 - s[i]^2)"""
    m = Matrices(t)
    by_u, by_s, by_vh = cts
    u, s, vh = op.u, op.s, op.vh
    surplus = MatrixSizes.of(op).surplus
    if op.flag("full") and surplus:
        raise unsupported(op, "reduced factors, or a square matrix", str(op.operand.type))
    element = element_of(u)
    square = tensor(element, (*shape_of(s), shape_of(s)[-1]))
    core = m.diagonal(t.convert(by_s, element), t.full(0.0, square)) if by_s is not None else t.full(0.0, square)
    by_u = None if by_u is None else m.conj(by_u)
    by_v = None if by_vh is None else m.transposed(by_vh)
    inner_u = None if by_u is None else m.product(m.adjoint(u), by_u)
    inner_v = None if by_v is None else m.product(vh, by_v)
    if is_complex(element) and (inner_u is not None or inner_v is not None):
        # a pair (u, v) turns together; the diagonal of U* dA V over s turns v against u
        turns = [_turns(t, inner) for inner in (inner_u, inner_v) if inner is not None]
        together = turns[0] if len(turns) == 1 else t.add(*turns)
        by_u = _Phases(t, u).joined(t.zeros(u.type) if by_u is None else by_u, together)
        inner_u = m.product(m.adjoint(u), by_u)
        if inner_v is not None:
            share = t.div(t.neg(_turns(t, inner_v)), s)
            core = t.add(core, m.diagonal(m.turned(share), core))
    wide = t.convert(s, element)
    along_rows, along_columns = m.rows(wide, core.type), m.columns(wide, core.type)
    gaps = _gaps(t, t.mul(s, s), core)
    outside: list[SSAValue] = []
    if by_u is not None and inner_u is not None:
        core = t.add(core, t.mul(t.mul_strong(gaps, t.sub(inner_u, m.adjoint(inner_u))), along_columns))
        if surplus > 0:
            rest = t.sub(by_u, m.product(u, inner_u))
            outside.append(m.product(t.mul_strong(rest, _inverse(t, m.columns(wide, rest.type))), vh))
    if by_v is not None and inner_v is not None:
        core = t.add(core, t.mul(along_rows, t.mul_strong(gaps, t.sub(inner_v, m.adjoint(inner_v)))))
        if surplus < 0:
            rest = t.sub(m.adjoint(by_v), m.product(m.adjoint(inner_v), vh))
            outside.append(m.product(u, t.mul_strong(rest, _inverse(t, m.rows(wide, rest.type)))))
    found = m.product(m.product(u, core), vh)
    for part in outside:
        found = t.add(found, part)
    return (m.conj(found),)


def _inverse(t: TensorBuilder, x: SSAValue) -> SSAValue:
    return t.div(t.full_like(1.0, x), x)
