"""Views: a level-1 value as `base[index(d)]`, so that broadcasts, transposes and reversals never reach memory.

The index of each dimension of the base is a linear form in the dimensions of the value. A base without dimensions is a scalar
(a splat); the base `IOTA` has one dimension and holds its own index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeAlias, cast

from xdsl.dialects.builtin import AffineMapAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from gradir.dialects.types import Shape, shape_of


class Linear(NamedTuple):
    """`const + sum of coefficient * dimension`; terms are sorted by dimension, coefficients are not 0."""

    terms: tuple[tuple[int, int], ...]
    const: int = 0

    @property
    def dim(self) -> int | None:
        """The dimension that this form is, when it is one and nothing else."""
        return self.terms[0][0] if len(self.terms) == 1 and self.const == 0 and self.terms[0][1] == 1 else None

    def over(self, dims: Mapping[int, Linear] | Sequence[Linear]) -> Linear:
        """This form with every dimension d replaced by `dims[d]`."""
        total: dict[int, int] = {}
        const = self.const
        for d, c in self.terms:
            inner = dims[d]
            const += c * inner.const
            for e, k in inner.terms:
                total[e] = total.get(e, 0) + c * k
        return Linear(tuple(sorted((d, c) for d, c in total.items() if c)), const)

    def plus(self, other: Linear) -> Linear:
        """The sum of two forms over the same dimensions."""
        total = dict(self.terms)
        for d, c in other.terms:
            total[d] = total.get(d, 0) + c
        return Linear(tuple(sorted((d, c) for d, c in total.items() if c)), self.const + other.const)


@lru_cache(None)
def dim(position: int, coefficient: int = 1, const: int = 0) -> Linear:
    """`coefficient * d<position> + const`."""
    return Linear(((position, coefficient),), const)


@lru_cache(None)
def dims(*positions: int) -> tuple[Linear, ...]:
    """One plain dimension each."""
    return tuple(dim(p) for p in positions)


def constant(value: int) -> Linear:
    """The same index everywhere."""
    return Linear((), value)


@lru_cache(1 << 12)
def map_attr(rank: int, index: tuple[Linear, ...]) -> AffineMapAttr:
    """The affine map of a view in a loop nest of `rank` loops."""
    return AffineMapAttr(AffineMap(rank, 0, tuple(_expr(form) for form in index)))


def _expr(form: Linear) -> AffineExpr:
    expr: AffineExpr | None = None
    for d, c in form.terms:
        term: AffineExpr = AffineDimExpr(d) if c == 1 else AffineDimExpr(d) * c
        expr = term if expr is None else expr + term
    if expr is None:
        return AffineConstantExpr(form.const)
    return expr + form.const if form.const else expr


class Iota:
    """The base whose element i is i."""

    __slots__ = ()


IOTA = Iota()
Base: TypeAlias = SSAValue | Attribute | Iota


@dataclass(frozen=True, slots=True)
class View:
    """A level-1 value. `base`: a tensor, a scalar (value or attribute) or `IOTA`; `index`: one form per dimension of the base.

    `element` is the level-1 element type: it alone still knows that an integer is unsigned.
    """

    base: Base
    index: tuple[Linear, ...]
    element: Attribute

    @property
    def is_splat(self) -> bool:
        """True when every element is one scalar."""
        return not self.is_tensor and not isinstance(self.base, Iota)

    @property
    def is_tensor(self) -> bool:
        """True when the elements are in memory."""
        return isinstance(self.base, SSAValue) and isinstance(self.base.type, TensorType)

    def over(self, forms: Mapping[int, Linear] | Sequence[Linear]) -> View:
        """The view whose dimensions are those of `forms`, the old dimension d being `forms[d]`."""
        return View(self.base, tuple(form.over(forms) for form in self.index), self.element)

    def is_identity(self, rank: int) -> bool:
        """True when the value is its base."""
        return self.is_tensor and self.index == dims(*range(rank))

    def differs_in_units(self, shape: Shape) -> bool:
        """True when the base holds the elements in the order of `shape`, and only dimensions of size 1 come or go."""
        if not self.is_tensor:
            return False
        sizes = shape_of(cast("SSAValue", self.base))
        walked = [form.dim for n, form in zip(sizes, self.index) if n != 1]
        return walked == [d for d, n in enumerate(shape) if n != 1]

    def position_of(self, d: int) -> int | None:
        """The base dimension that dimension d of the value walks alone; None when there is no such."""
        found = [k for k, form in enumerate(self.index) if any(e == d for e, _ in form.terms)]
        return found[0] if len(found) == 1 and self.index[found[0]].dim == d else None

    def uses(self, d: int) -> bool:
        """True when some index depends on dimension d."""
        return any(e == d for form in self.index for e, _ in form.terms)
