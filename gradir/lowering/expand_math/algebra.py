"""Writing arithmetic on IR values as formulas: `Expression` overloads Python's operators and emits level-4 ops.

One formula serves scalars and vectors of any shape, f32 and f64: an expression knows its element type, constants adapt to it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

from xdsl.dialects.builtin import (
    AnyFloat,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    VectorType,
    f32,
    f64,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from gradir.dialects.upstream import arith, math, vector

Element = Attribute
_CMPF = {"eq": 1, "gt": 2, "ge": 3, "lt": 4, "le": 5, "ne": 13, "unordered": 14}
_CMPI = {"eq": 0, "ne": 1, "lt": 2, "le": 3, "gt": 4, "ge": 5, "ult": 6}
_TWO_CHAINS = 7
"""Number of coefficients from which on a polynomial is evaluated in two chains."""
_OR = vector.CombiningKindAttr(vector.CombiningKindFlag.OR)


@dataclass(frozen=True)
class Format:
    """The layout of a float type: its integer twin, mantissa bits, exponent bias, and 1.5 * 2^mantissa, whose sums round to integers."""

    element: Element
    integer: Element
    mantissa: int
    bias: int

    @property
    def magic(self) -> float:
        return 1.5 * 2.0**self.mantissa

    @property
    def magic_bits(self) -> int:
        if self.mantissa == 23:
            return struct.unpack("<i", struct.pack("<f", self.magic))[0]
        return struct.unpack("<q", struct.pack("<d", self.magic))[0]

    @property
    def smallest_normal(self) -> float:
        return 2.0 ** (1 - self.bias)


F32 = Format(f32, i32, 23, 127)
F64 = Format(f64, i64, 52, 1023)


@cache
def shaped(element: Element, shape: tuple[int, ...] | None) -> Attribute:
    """The (interned) vector type of a shape, or the scalar type for None."""
    return element if shape is None else VectorType(element, list(shape))


@dataclass
class Site:
    """Where ops go: before `before`, or at the end of `block`. Constants go to the start of the function, once each."""

    block: Block
    before: Operation | None
    loc: LocationAttr
    constants: dict[tuple[object, Attribute], SSAValue]
    entry: Block
    added: list[Operation] = field(default_factory=list[Operation])
    """Every op that was emitted, so that the pass can expand what the target lacks."""

    def emit(self, kind: type[Operation], operands: Sequence[SSAValue], types: Sequence[Attribute], **more: Any) -> Operation:
        op = kind.create(operands=operands, result_types=types, location=self.loc, **more)
        self.insert(op)
        return op

    def insert(self, op: Operation) -> None:
        if self.before is None:
            self.block.add_op(op)
        else:
            self.block.insert_op_before(op, self.before)
        self.added.append(op)

    def inside(self, block: Block) -> Site:
        """The same function, but ops go to the end of `block`."""
        return Site(block, None, self.loc, self.constants, self.entry, self.added)

    def constant(self, number: float, element: Element, shape: tuple[int, ...] | None) -> SSAValue:
        """A scalar, or a vector whose elements are all `number`."""
        t = shaped(element, shape)
        key = (struct.pack("<d", number) if isinstance(number, float) else number, t)
        found = self.constants.get(key)
        if found is None:
            if isinstance(t, VectorType):
                value: Attribute = DenseIntOrFPElementsAttr.from_list(t, [number])
            elif isinstance(element, IntegerType) or element.name == "index":
                value = IntegerAttr(int(number), cast("IntegerType", element))
            else:
                value = FloatAttr(float(number), cast("AnyFloat", element))
            op = arith.ConstantOp.create(result_types=[t], properties={"value": value}, location=self.loc)
            first = self.entry.first_op
            if first is None:
                self.entry.add_op(op)
            else:
                self.entry.insert_op_before(op, first)
            found = self.constants[key] = op.results[0]
        return found


class Expression:
    """A value at a site."""

    __slots__ = ("element", "shape", "site", "value")

    def __init__(self, site: Site, value: SSAValue) -> None:
        self.site, self.value = site, value
        t = value.type
        if isinstance(t, VectorType):
            self.element: Element = t.element_type
            self.shape: tuple[int, ...] | None = tuple(t.get_shape())
        else:
            self.element, self.shape = t, None

    # Construction

    @property
    def format(self) -> Format:
        return F32 if self.element == f32 else F64

    @property
    def is_float(self) -> bool:
        return self.element == f32 or self.element == f64

    def of(self, other: Expression | float) -> Expression:
        """`other` as an expression of this one's type."""
        if isinstance(other, Expression):
            return other
        number = float(other) if self.is_float else int(other)
        return Expression(self.site, self.site.constant(number, self.element, self.shape))

    def _op(self, kind: type[Operation], *operands: Expression, element: Element | None = None, **more: object) -> Expression:
        t = shaped(element or self.element, self.shape)
        op = self.site.emit(kind, [self.value, *(o.value for o in operands)], [t], **more)
        return Expression(self.site, op.results[0])

    # Arithmetic

    def __add__(self, other: Expression | float) -> Expression:
        return self._op(arith.AddfOp if self.is_float else arith.AddiOp, self.of(other))

    def __sub__(self, other: Expression | float) -> Expression:
        return self._op(arith.SubfOp if self.is_float else arith.SubiOp, self.of(other))

    def __rsub__(self, other: float) -> Expression:
        return self.of(other) - self

    def __mul__(self, other: Expression | float) -> Expression:
        return self._op(arith.MulfOp if self.is_float else arith.MuliOp, self.of(other))

    def __truediv__(self, other: Expression | float) -> Expression:
        return self._op(arith.DivfOp, self.of(other))

    def __rtruediv__(self, other: float) -> Expression:
        return self.of(other) / self

    def __neg__(self) -> Expression:
        return self._op(arith.NegfOp) if self.is_float else 0 - self

    def __abs__(self) -> Expression:
        return self._op(math.AbsFOp)

    def fma(self, factor: Expression | float, addend: Expression | float) -> Expression:
        """self * factor + addend, rounded once."""
        return self._op(math.FmaOp, self.of(factor), self.of(addend))

    def polynomial(self, coefficients: Sequence[float]) -> Expression:
        """Highest power first. Long ones in two chains, even and odd powers apart: half the latency for one more product."""
        return self._horner(coefficients) if len(coefficients) < _TWO_CHAINS else self.two_chains(coefficients)

    def two_chains(self, coefficients: Sequence[float]) -> Expression:
        """A polynomial as even and odd powers: what a power of the caller needs the square for comes in half the time for nothing."""
        square = self * self
        even, odd = square._horner(coefficients[-1::-2][::-1]), square._horner(coefficients[-2::-2][::-1])
        return odd.fma(self, even)

    def _horner(self, coefficients: Sequence[float]) -> Expression:
        """One chain of multiply-adds."""
        result = self.of(coefficients[0])
        for c in coefficients[1:]:
            result = result.fma(self, c)
        return result

    def sqrt(self) -> Expression:
        return self._op(math.SqrtOp)

    def round_even(self) -> Expression:
        return self._op(math.RoundEvenOp)

    def floor(self) -> Expression:
        return self._op(math.FloorOp)

    def copysign(self, sign: Expression) -> Expression:
        return self._op(math.CopySignOp, sign)

    # Bits

    def __and__(self, other: Expression | int) -> Expression:
        return self._op(arith.AndIOp, self.of(other))

    def __or__(self, other: Expression | int) -> Expression:
        return self._op(arith.OrIOp, self.of(other))

    def __xor__(self, other: Expression | int) -> Expression:
        return self._op(arith.XOrIOp, self.of(other))

    def __lshift__(self, by: Expression | int) -> Expression:
        return self._op(arith.ShLIOp, self.of(by))

    def __rshift__(self, by: Expression | int) -> Expression:
        """Arithmetic shift."""
        return self._op(arith.ShRSIOp, self.of(by))

    def logical_shift(self, by: Expression | int) -> Expression:
        return self._op(arith.ShRUIOp, self.of(by))

    def bits(self) -> Expression:
        """The integer of the same bits."""
        return self._op(arith.BitcastOp, element=self.format.integer)

    def as_float(self) -> Expression:
        """The float of the same bits."""
        return self._op(arith.BitcastOp, element=f32 if self.element == i32 else f64)

    def wide_product(self, other: Expression) -> tuple[Expression, Expression]:
        """Low and high half of the unsigned product."""
        t = shaped(self.element, self.shape)
        op = self.site.emit(arith.MulUIExtendedOp, [self.value, other.value], [t, t])
        return Expression(self.site, op.results[0]), Expression(self.site, op.results[1])

    # Conversions

    def to(self, element: Element) -> Expression:
        """The same number in another float format."""
        if self.element == element:
            return self
        return self._op(arith.ExtFOp if element == f64 else arith.TruncFOp, element=element)

    def integer(self, element: Element) -> Expression:
        """Integers of another width, sign-extended."""
        if self.element == element:
            return self
        return self._op(arith.ExtSIOp if element == i64 else arith.TruncIOp, element=element)

    def from_integer(self, element: Element) -> Expression:
        """A signed integer as a float."""
        return self._op(arith.SIToFPOp, element=element)

    # Comparisons

    def _compare(self, predicate: str, other: Expression | float) -> Expression:
        kind, table = (arith.CmpfOp, _CMPF) if self.is_float else (arith.CmpiOp, _CMPI)
        return self._op(kind, self.of(other), element=i1, properties={"predicate": IntegerAttr(table[predicate], i64)})

    def lt(self, other: Expression | float) -> Expression:
        return self._compare("lt", other)

    def le(self, other: Expression | float) -> Expression:
        return self._compare("le", other)

    def gt(self, other: Expression | float) -> Expression:
        return self._compare("gt", other)

    def ge(self, other: Expression | float) -> Expression:
        return self._compare("ge", other)

    def eq(self, other: Expression | float) -> Expression:
        return self._compare("eq", other)

    def ne(self, other: Expression | float) -> Expression:
        return self._compare("ne", other)

    def below_unsigned(self, other: Expression) -> Expression:
        return self._compare("ult", other)

    def is_nan(self) -> Expression:
        return self._compare("unordered", self)

    def select(self, yes: Expression | float, no: Expression | float) -> Expression:
        """Where this (i1) holds `yes`, else `no`; one of them is an expression."""
        like = yes if isinstance(yes, Expression) else no
        assert isinstance(like, Expression)
        a, b = like.of(yes), like.of(no)
        op = self.site.emit(arith.SelectOp, [self.value, a.value, b.value], [a.value.type])
        return Expression(self.site, op.results[0])

    def any(self) -> Expression:
        """Does this (i1) hold anywhere?"""
        if self.shape is None:
            return self
        properties: dict[str, Attribute] = {"kind": _OR}
        if len(self.shape) == 1:
            op = self.site.emit(vector.ReductionOp, [self.value], [i1], properties=properties)
        else:
            false = self.site.constant(0, i1, None)
            properties["reduction_dims"] = DenseArrayBase.from_list(i64, list(range(len(self.shape))))
            op = self.site.emit(vector.MultiReductionOp, [self.value, false], [i1], properties=properties)
        return Expression(self.site, op.results[0])


def two_sum(a: Expression, b: Expression) -> tuple[Expression, Expression]:
    """a + b as a rounded sum and its exact error (Knuth)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def fast_two_sum(a: Expression, b: Expression) -> tuple[Expression, Expression]:
    """a + b as a rounded sum and its exact error, for abs(a) >= abs(b) (Dekker)."""
    s = a + b
    return s, b - (s - a)


def two_product(a: Expression, b: Expression | float) -> tuple[Expression, Expression]:
    """a * b as a rounded product and its exact error."""
    p = a * b
    return p, a.fma(b, -p)
