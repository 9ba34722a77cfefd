"""Linear algebra on the last two dimensions; the dimensions before them are a batch. Elements: f32, f64, complex<f32>, complex<f64>.

Each op has several implementations (`nd/implementations.py`): loops of our own, and LAPACK. What LAPACK leaves open is decided in
`nd/meaning/linalg.py`: signs of eigenvectors and singular vectors, NaN where there is no factor, zeros in the triangle that is not written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, Self

from xdsl.dialects.builtin import IntegerAttr, i1, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from gradir.dialects.nd.base import TENSOR, NdOp
from gradir.dialects.nd.checks import check_same_element, check_same_types, check_shape
from gradir.dialects.text import (
    Clause,
    flag_attr,
)
from gradir.dialects.types import Dim, Shape, element_of, real_of, shape_of, shape_text, sizes_agree, tensor

ELEMENTS = ("f32", "f64", "complex<f32>", "complex<f64>")
FLAG = IntegerAttr.constr(type=i1)

_LOWER = Clause("lower", "lower", "flag", optional=True)
_FULL = Clause("full", "full", "flag", optional=True)


def smaller(m: Dim, n: Dim) -> Dim:
    """min(m, n); unknown unless both are numbers or one name."""
    if isinstance(m, int) and isinstance(n, int):
        return min(m, n)
    return m if m == n else None


class Factorisation(NdOp):
    """An op of this family: any number of results, types `operands -> results`."""

    FAMILY: ClassVar[str] = "linalg"
    TYPES: ClassVar[str] = "several"

    def flag(self, name: str) -> bool:
        """A truth value among the properties."""
        return bool(self.number(name))

    def check_matrix(self, what: str, value: SSAValue, *, square: bool = False) -> Shape:
        """Elements and rank of an operand; its shape."""
        if str(element_of(value)) not in ELEMENTS:
            self.fail(f"{what} must have one of {', '.join(ELEMENTS)}, found {element_of(value)}")
        shape = shape_of(value)
        if len(shape) < 2:
            self.fail(f"{what} must have at least 2 dimensions, found {shape_text(shape)}")
        if square and not sizes_agree(shape[-2], shape[-1]):
            self.fail(f"{what} must be square in its last two dimensions, found {shape_text(shape)}")
        return shape

    def check_results(self, expected: Sequence[Attribute]) -> None:
        """The results have the types that `infer` gives, as far as sizes are known."""
        names = [name for name, _ in self.get_irdl_definition().results]
        for name, kind, value in zip(names, expected, self.results):
            if element_of(value) != element_of(kind):
                self.fail(f"{name} must have elements of type {element_of(kind)}, found {element_of(value)}")
            check_shape(self, shape_of(kind), value, name)


@irdl_op_definition
class CholeskyOp(Factorisation):
    """`result = L` with `L L* = operand`, L lower triangular; without `lower`: U with `U* U = operand`, U upper triangular.

    operand [.., n, n], of which one triangle is read (its diagonal as real); the other triangle of the result is 0. A matrix that is not
    positive definite gives NaN in the whole triangle. StableHLO: cholesky. numpy: linalg.cholesky. torch: linalg.cholesky.
    """

    name = "nd.cholesky"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (_LOWER,)

    operand = operand_def(TENSOR)
    lower = prop_def(FLAG)
    result = result_def(TENSOR)

    def verify_(self) -> None:
        self.check_matrix("operand", self.operand, square=True)
        check_same_types(self, ("operand", "result"), (self.operand, self.result))

    @classmethod
    def make(cls, operand: SSAValue, lower: bool = True) -> Self:
        """The factor of each matrix."""
        return cls.create(operands=(operand,), result_types=(operand.type,), properties={"lower": flag_attr(lower)})


@irdl_op_definition
class TriangularSolveOp(Factorisation):
    """`op(a) result = b` with `left`, else `result op(a) = b`, a triangular; op(a) is a, its transpose or its adjoint.

    a [.., n, n], of which the triangle `lower` (else the upper one) is read, without its diagonal if `unit_diagonal`: that is taken as 1.
    b [.., n, m] with `left`, else [.., m, n]. A zero on the diagonal gives inf or NaN. StableHLO: triangular_solve.
    scipy: linalg.solve_triangular. torch: linalg.solve_triangular.
    """

    name = "nd.triangular_solve"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (
        Clause("left", "left", "flag", optional=True),
        _LOWER,
        Clause("unit_diagonal", "unit_diagonal", "flag", optional=True),
        Clause("transpose", "transpose", "flag", optional=True),
        Clause("adjoint", "adjoint", "flag", optional=True),
    )

    a = operand_def(TENSOR)
    b = operand_def(TENSOR)
    left = prop_def(FLAG)
    lower = prop_def(FLAG)
    unit_diagonal = prop_def(FLAG)
    transpose = prop_def(FLAG)
    adjoint = prop_def(FLAG)
    result = result_def(TENSOR)

    def verify_(self) -> None:
        a, b = self.check_matrix("a", self.a, square=True), self.check_matrix("b", self.b)
        check_same_element(self, "b", self.b, "a", self.a)
        if len(a) != len(b) or not all(map(sizes_agree, a[:-2], b[:-2])):
            self.fail(f"batch dimensions differ: a has {shape_text(a[:-2])}, b has {shape_text(b[:-2])}")
        side = -2 if self.flag("left") else -1
        if not sizes_agree(a[-1], b[side]):
            self.fail(f"a has {a[-1]} rows, b has {b[side]} {'rows' if side == -2 else 'columns'}")
        if self.flag("transpose") and self.flag("adjoint"):
            self.fail("expected transpose or adjoint, found both")
        check_same_types(self, ("b", "result"), (self.b, self.result))

    @property
    def transposition(self) -> Literal["N", "T", "C"]:
        """What op(a) is, by LAPACK's letter."""
        return "T" if self.flag("transpose") else "C" if self.flag("adjoint") else "N"

    @classmethod
    def make(
        cls,
        a: SSAValue,
        b: SSAValue,
        *,
        left: bool = True,
        lower: bool = True,
        unit_diagonal: bool = False,
        transposition: Literal["N", "T", "C"] = "N",
    ) -> Self:
        """The solution x, of the type of b."""
        flags = {
            "left": left,
            "lower": lower,
            "unit_diagonal": unit_diagonal,
            "transpose": transposition == "T",
            "adjoint": transposition == "C",
        }
        return cls.create(operands=(a, b), result_types=(b.type,), properties={k: flag_attr(v) for k, v in flags.items()})


@irdl_op_definition
class LuOp(Factorisation):
    """`operand[permutation] = L U`: L with a unit diagonal below, U on and above the diagonal of `factors`, by partial pivoting.

    operand [.., m, n], factors alike, pivots i32 [.., min(m, n)] (row k was swapped with row pivots[k] >= k, counted from 0), permutation
    i32 [.., m]. The pivot is the first of the largest |re| + |im|; a column of zeros is left as it is. JAX: lax.linalg.lu. LAPACK: getrf.
    """

    name = "nd.lu"

    operand = operand_def(TENSOR)
    factors = result_def(TENSOR)
    pivots = result_def(TENSOR)
    permutation = result_def(TENSOR)

    def verify_(self) -> None:
        self.check_matrix("operand", self.operand)
        self.check_results(self.infer(self.operand.type))

    @classmethod
    def infer(cls, operand: Attribute) -> list[Attribute]:
        """Types of factors, pivots, permutation."""
        *batch, m, n = shape_of(operand)
        return [operand, tensor(i32, (*batch, smaller(m, n))), tensor(i32, (*batch, m))]

    @classmethod
    def make(cls, operand: SSAValue) -> Self:
        """The factors of each matrix."""
        return cls.create(operands=(operand,), result_types=cls.infer(operand.type))


@irdl_op_definition
class QrOp(Factorisation):
    """`operand = q r`, q with orthonormal columns, r upper triangular, by Householder reflections with LAPACK's signs.

    operand [.., m, n]; q [.., m, k], r [.., k, n] with k = min(m, n), or m if `full`. NaN and infinities in a matrix give NaN.
    numpy: linalg.qr. JAX: lax.linalg.qr. torch: linalg.qr. LAPACK: geqrf, orgqr.
    """

    name = "nd.qr"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (_FULL,)

    operand = operand_def(TENSOR)
    full = prop_def(FLAG)
    q = result_def(TENSOR)
    r = result_def(TENSOR)

    def verify_(self) -> None:
        self.check_matrix("operand", self.operand)
        self.check_results(self.infer(self.operand.type, self.flag("full")))

    @classmethod
    def infer(cls, operand: Attribute, full: bool) -> list[Attribute]:
        """Types of q and r."""
        *batch, m, n = shape_of(operand)
        k = m if full else smaller(m, n)
        return [tensor(element_of(operand), (*batch, m, k)), tensor(element_of(operand), (*batch, k, n))]

    @classmethod
    def make(cls, operand: SSAValue, full: bool = False) -> Self:
        """The factors of each matrix."""
        return cls.create(operands=(operand,), result_types=cls.infer(operand.type, full), properties={"full": flag_attr(full)})


@irdl_op_definition
class EighOp(Factorisation):
    """`operand vectors = vectors diag(values)` for a Hermitian matrix, values ascending and real, vectors orthonormal columns.

    operand [.., n, n], of which the triangle `lower` (else the upper one) is read. In each vector the first component of at least half the
    largest magnitude is positive. NaN and infinities in a matrix give NaN. numpy: linalg.eigh. JAX: lax.linalg.eigh. LAPACK: syevd.
    """

    name = "nd.eigh"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (_LOWER,)

    operand = operand_def(TENSOR)
    lower = prop_def(FLAG)
    values = result_def(TENSOR)
    vectors = result_def(TENSOR)

    def verify_(self) -> None:
        self.check_matrix("operand", self.operand, square=True)
        self.check_results(self.infer(self.operand.type))

    @classmethod
    def infer(cls, operand: Attribute) -> list[Attribute]:
        """Types of values and vectors."""
        return [tensor(real_of(element_of(operand)), shape_of(operand)[:-1]), operand]

    @classmethod
    def make(cls, operand: SSAValue, lower: bool = True) -> Self:
        """Values and vectors of each matrix."""
        return cls.create(operands=(operand,), result_types=cls.infer(operand.type), properties={"lower": flag_attr(lower)})


@irdl_op_definition
class SvdOp(Factorisation):
    """`operand = u diag(s) vh`, s descending and not negative, u and vh* with orthonormal columns.

    operand [.., m, n]; u [.., m, k], s [.., k], vh [.., k, n], k = min(m, n); with `full` u is [.., m, m] and vh [.., n, n]. Signs as in
    `nd.eigh`, fixed in u. NaN and infinities in a matrix give NaN. numpy: linalg.svd. JAX: lax.linalg.svd. LAPACK: gesdd.
    """

    name = "nd.svd"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (_FULL,)

    operand = operand_def(TENSOR)
    full = prop_def(FLAG)
    u = result_def(TENSOR)
    s = result_def(TENSOR)
    vh = result_def(TENSOR)

    def verify_(self) -> None:
        self.check_matrix("operand", self.operand)
        self.check_results(self.infer(self.operand.type, self.flag("full")))

    @classmethod
    def infer(cls, operand: Attribute, full: bool) -> list[Attribute]:
        """Types of u, s, vh."""
        *batch, m, n = shape_of(operand)
        element, k = element_of(operand), smaller(m, n)
        return [
            tensor(element, (*batch, m, m if full else k)),
            tensor(real_of(element), (*batch, k)),
            tensor(element, (*batch, n if full else k, n)),
        ]

    @classmethod
    def make(cls, operand: SSAValue, full: bool = False) -> Self:
        """The factors of each matrix."""
        return cls.create(operands=(operand,), result_types=cls.infer(operand.type, full), properties={"full": flag_attr(full)})


OPS: tuple[type[Factorisation], ...] = (CholeskyOp, TriangularSolveOp, LuOp, QrOp, EighOp, SvdOp)
