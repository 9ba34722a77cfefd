"""Scalar code inside a loop nest: what each elementwise op does to one element, guarded so that nothing is undefined upstream.

Floats arrive here in f32 or f64 (f16 and bf16 are widened by the nest). Meaning: docs/numerics.md, "Elementwise".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, i1, i64
from xdsl.ir import Attribute, Operation, SSAValue

from gradir.dialects.types import i64_attr
from gradir.dialects.upstream import arith, math
from gradir.ir.builder import Builder
from gradir.lowering.convert_nd_to_linalg.elements import number, width

INDEX = IndexType()
FASTMATH = {"fastmath": arith.FastMathFlagsAttr("none")}
_FLOAT_PREDICATES = {"oeq": 1, "ogt": 2, "oge": 3, "olt": 4, "ole": 5, "one": 6, "ord": 7, "une": 13, "uno": 14}
_INTEGER_PREDICATES = {name: arith.integer_predicate(name) for name in arith.CMPI_COMPARISON_OPERATIONS}


class Scalars:
    """Emits scalar ops through `builder`; every operand of an op has one type, which is the result's too unless stated."""

    __slots__ = ("builder", "unsigned")

    def __init__(self, builder: Builder, unsigned: bool = False) -> None:
        self.builder = builder
        self.unsigned = unsigned

    def constant(self, value: float, type_: Attribute) -> SSAValue:
        return self.builder(arith.ConstantOp, (), (type_,), {"value": number(value, type_)})

    def like(self, value: float, x: SSAValue) -> SSAValue:
        """A constant of the type of `x`."""
        return self.constant(value, x.type)

    def f(self, kind: type[Operation], *xs: SSAValue) -> SSAValue:
        """A float op of arith or math."""
        return self.builder(kind, xs, (xs[0].type,), FASTMATH)

    def i(self, kind: type[Operation], *xs: SSAValue) -> SSAValue:
        """An integer op of arith."""
        return self.builder(kind, xs, (xs[0].type,))

    def to(self, kind: type[Operation], x: SSAValue, type_: Attribute) -> SSAValue:
        """A conversion; none when the type is right already."""
        return x if x.type == type_ else self.builder(kind, (x,), (type_,))

    def cmpf(self, predicate: str, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.builder(arith.CmpfOp, (x, y), (i1,), {"predicate": i64_attr(_FLOAT_PREDICATES[predicate]), **FASTMATH})

    def cmpi(self, predicate: str, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.builder(arith.CmpiOp, (x, y), (i1,), {"predicate": _INTEGER_PREDICATES[predicate]})

    def select(self, condition: SSAValue, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.builder(arith.SelectOp, (condition, x, y), (x.type,))

    def any(self, *conditions: SSAValue) -> SSAValue:
        """The or of bits."""
        found = conditions[0]
        for c in conditions[1:]:
            found = self.i(arith.OrIOp, found, c)
        return found


Body: TypeAlias = Callable[..., SSAValue]
"""`body(scalars, *operands)`"""


def float_op(kind: type[Operation]) -> Body:
    """The body that is one op of arith or math on floats."""

    def body(s: Scalars, *xs: SSAValue) -> SSAValue:
        return s.f(kind, *xs)

    return body


def integer_op(signed: type[Operation], unsigned: type[Operation] | None = None) -> Body:
    """The body that is one op of arith on integers, another one for unsigned ones."""

    def body(s: Scalars, *xs: SSAValue) -> SSAValue:
        return s.i(unsigned if s.unsigned and unsigned is not None else signed, *xs)

    return body


def relu_float(s: Scalars, x: SSAValue) -> SSAValue:
    return s.f(arith.MaximumfOp, x, s.like(0, x))


def relu_integer(s: Scalars, x: SSAValue) -> SSAValue:
    return x if s.unsigned else s.i(arith.MaxSIOp, x, s.like(0, x))


def negate_integer(s: Scalars, x: SSAValue) -> SSAValue:
    return s.i(arith.SubiOp, s.like(0, x), x)


def abs_integer(s: Scalars, x: SSAValue) -> SSAValue:
    """Not math.absi: |MIN| is MIN, not undefined."""
    return x if s.unsigned else s.select(s.cmpi("slt", x, s.like(0, x)), negate_integer(s, x), x)


def sign_float(s: Scalars, x: SSAValue) -> SSAValue:
    """Zeros and NaN are their own sign."""
    zero = s.like(0, x)
    below = s.select(s.cmpf("olt", x, zero), s.like(-1, x), x)
    return s.select(s.cmpf("ogt", x, zero), s.like(1, x), below)


def sign_integer(s: Scalars, x: SSAValue) -> SSAValue:
    zero = s.like(0, x)
    if s.unsigned:
        return s.select(s.cmpi("ne", x, zero), s.like(1, x), zero)
    return s.select(s.cmpi("sgt", x, zero), s.like(1, x), s.select(s.cmpi("slt", x, zero), s.like(-1, x), zero))


def rsqrt(s: Scalars, x: SSAValue) -> SSAValue:
    return s.f(arith.DivfOp, s.like(1, x), s.f(math.SqrtOp, x))


def logistic(s: Scalars, x: SSAValue) -> SSAValue:
    """StableHLO's formula, so 0 at f32 -90."""
    one = s.like(1, x)
    return s.f(arith.DivfOp, one, s.f(arith.AddfOp, one, s.f(math.ExpOp, s.f(arith.NegfOp, x))))


def is_finite(s: Scalars, x: SSAValue) -> SSAValue:
    return s.cmpf("olt", s.f(math.AbsFOp, x), s.like(float("inf"), x))


def complement(s: Scalars, x: SSAValue) -> SSAValue:
    return s.i(arith.XOrIOp, x, s.like(-1, x))


def mul_strong_float(s: Scalars, x: SSAValue, y: SSAValue) -> SSAValue:
    """0 * anything = 0."""
    zero = s.like(0, x)
    return s.select(s.any(s.cmpf("oeq", x, zero), s.cmpf("oeq", y, zero)), zero, s.f(arith.MulfOp, x, y))


def _safe_divisor(s: Scalars, x: SSAValue, y: SSAValue, is_zero: SSAValue) -> SSAValue:
    """y, or 1 where dividing x by y would be undefined: MIN / 1 = MIN and MIN % 1 = 0 are what MIN / -1 and MIN % -1 mean."""
    bad = is_zero
    if not s.unsigned:
        overflows = s.i(arith.AndIOp, s.cmpi("eq", x, s.like(-(1 << (width(x.type) - 1)), x)), s.cmpi("eq", y, s.like(-1, y)))
        bad = s.any(is_zero, overflows)
    return s.select(bad, s.like(1, y), y)


def divide_integer(s: Scalars, x: SSAValue, y: SSAValue) -> SSAValue:
    is_zero = s.cmpi("eq", y, s.like(0, y))
    quotient = s.i(arith.DivUIOp if s.unsigned else arith.DivSIOp, x, _safe_divisor(s, x, y, is_zero))
    return s.select(is_zero, s.like(-1, x), quotient)


def remainder_integer(s: Scalars, x: SSAValue, y: SSAValue) -> SSAValue:
    is_zero = s.cmpi("eq", y, s.like(0, y))
    rest = s.i(arith.RemUIOp if s.unsigned else arith.RemSIOp, x, _safe_divisor(s, x, y, is_zero))
    return s.select(is_zero, x, rest)


def power_integer(s: Scalars, x: SSAValue, y: SSAValue) -> SSAValue:
    """Square and multiply over the bits of y; a negative y leaves only the powers of 1 and -1."""
    one, zero = s.like(1, x), s.like(0, x)
    bits = width(x.type) if s.unsigned else width(x.type) - 1
    result, square = one, x
    for bit in range(bits):
        taken = s.cmpi("ne", s.i(arith.AndIOp, y, s.like(1 << bit, y)), zero)
        result = s.select(taken, s.i(arith.MuliOp, result, square), result)
        if bit + 1 < bits:
            square = s.i(arith.MuliOp, square, square)
    if s.unsigned:
        return result
    minus = s.like(-1, x)
    alternating = s.select(s.cmpi("ne", s.i(arith.AndIOp, y, one), zero), minus, one)
    inverse = s.select(s.cmpi("eq", x, one), one, s.select(s.cmpi("eq", x, minus), alternating, zero))
    return s.select(s.cmpi("slt", y, zero), inverse, result)


def shift(kind: type[Operation]) -> Body:
    """shl and logical shr: 0 when the amount, read as unsigned, is at least the width."""

    def body(s: Scalars, x: SSAValue, y: SSAValue) -> SSAValue:
        zero = s.like(0, x)
        fits = s.cmpi("ult", y, s.like(width(x.type), y))
        return s.select(fits, s.i(kind, x, s.select(fits, y, zero)), zero)

    return body


def shift_right_signed(s: Scalars, x: SSAValue, y: SSAValue) -> SSAValue:
    return s.i(arith.ShRSIOp, x, s.i(arith.MinUIOp, y, s.like(width(x.type) - 1, y)))


def clamp_float(s: Scalars, low: SSAValue, x: SSAValue, high: SSAValue) -> SSAValue:
    return s.f(arith.MinimumfOp, s.f(arith.MaximumfOp, x, low), high)


def clamp_integer(s: Scalars, low: SSAValue, x: SSAValue, high: SSAValue) -> SSAValue:
    if s.unsigned:
        return s.i(arith.MinUIOp, s.i(arith.MaxUIOp, x, low), high)
    return s.i(arith.MinSIOp, s.i(arith.MaxSIOp, x, low), high)


def clamp_bit(s: Scalars, low: SSAValue, x: SSAValue, high: SSAValue) -> SSAValue:
    return s.i(arith.AndIOp, s.i(arith.OrIOp, x, low), high)


_FLOAT_DIRECTIONS = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}


def compare(s: Scalars, direction: str, x: SSAValue, y: SSAValue) -> SSAValue:
    """A comparison of two elements; i1 and `uiN` compare as unsigned."""
    if not isinstance(x.type, IntegerType):
        return s.cmpf(_FLOAT_DIRECTIONS[direction], x, y)
    prefix = "" if direction in ("eq", "ne") else "u" if s.unsigned or x.type == i1 else "s"
    return s.cmpi(prefix + direction, x, y)


def to_index(s: Scalars, x: SSAValue, size: SSAValue) -> SSAValue:
    """An integer as an index in [0, size), clamped as a mathematical number whatever its type; size > 0."""
    if x.type == i64 and s.unsigned:  # beyond the range of index: clamp first
        last = s.i(arith.SubiOp, s.to(arith.IndexCastOp, size, i64), s.constant(1, i64))
        return s.to(arith.IndexCastOp, s.i(arith.MinUIOp, x, last), INDEX)
    x = s.to(arith.IndexCastUIOp if s.unsigned else arith.IndexCastOp, x, INDEX)
    last = s.i(arith.SubiOp, size, index_constant(s.builder, 1))
    return s.i(arith.MinSIOp, s.i(arith.MaxSIOp, x, index_constant(s.builder, 0)), last)


def index_constant(builder: Builder, value: int) -> SSAValue:
    """A constant of type `index`."""
    return builder(arith.ConstantOp, (), (INDEX,), {"value": IntegerAttr(value, INDEX)})
