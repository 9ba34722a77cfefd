"""Folds of `arith` on scalars: integer constants, and identities that hold bit for bit.

What upstream leaves undefined (division by zero, wide shifts) is not folded: the reference evaluator reports it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import Attribute, Operation, SSAValue

from gradir.dialects.upstream import arith
from gradir.lowering.folds.table import Folder, Rule, signed, unsigned, width

Values = Sequence[SSAValue] | None
Number = Callable[[int, int, Attribute], int | None]
"""The result for two signed operands of a type; None where upstream leaves it undefined."""


def _ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def _truncated_div(a: int, b: int) -> int:
    return -(-a // b) if (a < 0) != (b < 0) else a // b


def _div(of: Callable[[int, int], int], *, sign: bool) -> Number:
    def number(a: int, b: int, type: Attribute) -> int | None:
        if b == 0 or (sign and b == -1 and a == -(1 << (width(type) - 1))):
            return None
        return of(a, b) if sign else of(unsigned(a, type), unsigned(b, type))

    return number


def _shift(of: Callable[[int, int], int], *, sign: bool) -> Number:
    def number(a: int, b: int, type: Attribute) -> int | None:
        by = unsigned(b, type)
        return None if by >= width(type) else of(a if sign else unsigned(a, type), by)

    return number


def _unsigned(of: Callable[[int, int], int]) -> Number:
    return lambda a, b, type: of(unsigned(a, type), unsigned(b, type))


NUMBERS: dict[type[Operation], Number] = {
    arith.AddiOp: lambda a, b, _: a + b,
    arith.SubiOp: lambda a, b, _: a - b,
    arith.MuliOp: lambda a, b, _: a * b,
    arith.DivSIOp: _div(_truncated_div, sign=True),
    arith.FloorDivSIOp: _div(lambda a, b: a // b, sign=True),
    arith.CeilDivSIOp: _div(_ceil_div, sign=True),
    arith.RemSIOp: _div(lambda a, b: a - b * _truncated_div(a, b), sign=True),
    arith.DivUIOp: _div(lambda a, b: a // b, sign=False),
    arith.CeilDivUIOp: _div(_ceil_div, sign=False),
    arith.RemUIOp: _div(lambda a, b: a % b, sign=False),
    arith.MaxSIOp: lambda a, b, _: max(a, b),
    arith.MinSIOp: lambda a, b, _: min(a, b),
    arith.MaxUIOp: _unsigned(max),
    arith.MinUIOp: _unsigned(min),
    arith.AndIOp: lambda a, b, _: a & b,
    arith.OrIOp: lambda a, b, _: a | b,
    arith.XOrIOp: lambda a, b, _: a ^ b,
    arith.ShLIOp: _shift(lambda a, b: a << b, sign=False),
    arith.ShRSIOp: _shift(lambda a, b: a >> b, sign=True),
    arith.ShRUIOp: _shift(lambda a, b: a >> b, sign=False),
}

RIGHT_NEUTRAL: dict[type[Operation], int] = {
    arith.AddiOp: 0,
    arith.SubiOp: 0,
    arith.MuliOp: 1,
    arith.DivSIOp: 1,
    arith.DivUIOp: 1,
    arith.FloorDivSIOp: 1,
    arith.CeilDivSIOp: 1,
    arith.CeilDivUIOp: 1,
    arith.AndIOp: -1,
    arith.OrIOp: 0,
    arith.XOrIOp: 0,
    arith.ShLIOp: 0,
    arith.ShRSIOp: 0,
    arith.ShRUIOp: 0,
}
"""x op c == x."""

RIGHT_ABSORBING: dict[type[Operation], int] = {arith.MuliOp: 0, arith.AndIOp: 0, arith.OrIOp: -1}
"""x op c == c."""

SAME: dict[type[Operation], int | None] = {
    arith.SubiOp: 0,
    arith.XOrIOp: 0,
    arith.AndIOp: None,
    arith.OrIOp: None,
    arith.MaxSIOp: None,
    arith.MinSIOp: None,
    arith.MaxUIOp: None,
    arith.MinUIOp: None,
}
"""x op x == this number, or x for None."""

COMMUTATIVE = frozenset(
    {arith.AddiOp, arith.MuliOp, arith.AndIOp, arith.OrIOp, arith.XOrIOp, arith.MaxSIOp, arith.MinSIOp, arith.MaxUIOp, arith.MinUIOp}
)


def fold_integer(op: Operation, folder: Folder) -> Values:
    """c1 op c2 -> c;  x op neutral -> x;  x op absorbing -> absorbing;  c op x -> x op c;  (x + c1) + c2 -> x + (c1 + c2)."""
    kind, type = op.__class__, op.results[0].type
    if not isinstance(type, IntegerType | IndexType):
        return None
    lhs, rhs = op.operands
    a, b = folder.integer(lhs), folder.integer(rhs)
    if a is not None and b is not None:
        number = NUMBERS[kind](a, b, type)
        return None if number is None else [folder.make_integer(number, type)]
    if b is not None and signed(RIGHT_NEUTRAL.get(kind, b + 1), type) == b:
        return [lhs]
    if b is not None and RIGHT_ABSORBING.get(kind) == b:
        return [rhs]
    if lhs is rhs and kind in SAME:
        number = SAME[kind]
        return [lhs] if number is None else [folder.make_integer(number, type)]
    if a is not None and kind in COMMUTATIVE:
        op.operands = [rhs, lhs]
        folder.updated()
        return None
    return _reassociate(op, b, folder) if kind is arith.AddiOp and b is not None else None


def _reassociate(op: Operation, b: int, folder: Folder) -> Values:
    # (x + c1) + c2 == x + (c1 + c2)   in wrapping arithmetic, that is when neither promises not to overflow
    inner = op.operands[0].owner
    if not isinstance(inner, arith.AddiOp) or _promises(op) or _promises(inner):
        return None
    c = folder.integer(inner.operands[1])
    if c is None:
        return None
    type = op.results[0].type
    total = folder.make_integer(b + c, type)
    return folder.new(arith.AddiOp, (inner.operands[0], total), (type,), op.properties).results


def _promises(op: Operation) -> bool:
    flags = op.properties.get("overflowFlags")
    return isinstance(flags, arith.IntegerOverflowAttr) and bool(flags.data)


PREDICATES: tuple[Callable[[int, int], bool], ...] = (
    lambda a, b: a == b,
    lambda a, b: a != b,
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
)
"""eq ne slt sle sgt sge; the unsigned four follow in the same order."""


def fold_compare(op: Any, folder: Folder) -> Values:
    """c1 < c2 -> true or false;  x == x -> true, x < x -> false."""
    type = op.lhs.type
    if not isinstance(type, IntegerType | IndexType):
        return None
    number = op.predicate.value.data
    compare = PREDICATES[number if number < 6 else number - 4]
    if op.lhs is op.rhs:
        return [folder.make_integer(compare(0, 0), op.results[0].type)]
    a, b = folder.integer(op.lhs), folder.integer(op.rhs)
    if a is None or b is None:
        return None
    if number >= 6:
        a, b = unsigned(a, type), unsigned(b, type)
    return [folder.make_integer(compare(a, b), op.results[0].type)]


def fold_select(op: Any, folder: Folder) -> Values:
    """c ? a : a -> a;  true ? a : b -> a;  false ? a : b -> b."""
    condition, on_true, on_false = op.operands
    if on_true is on_false:
        return [on_true]
    truth = folder.truth(condition)
    return None if truth is None else [on_true if truth else on_false]


def fold_widen_signed(op: Any, folder: Folder) -> Values:
    """The signed value of a constant in another integer type (`extsi`, `trunci`, `index_cast`); index_cast of index_cast."""
    value = op.operands[0]
    type = op.results[0].type
    number = folder.integer(value)
    if number is not None and isinstance(type, IntegerType | IndexType):
        return [folder.make_integer(number, type)]
    if value.type == type:
        return [value]
    inner = value.owner
    if isinstance(op, arith.IndexCastOp) and isinstance(inner, arith.IndexCastOp) and inner.operands[0].type == type:
        if isinstance(type, IndexType):  # index -> iN -> index loses bits unless N is 64
            return [inner.operands[0]] if width(value.type) >= width(type) else None
        return [inner.operands[0]]  # iN -> index -> iN
    return None


def fold_widen_unsigned(op: Any, folder: Folder) -> Values:
    """The unsigned value of a constant in a wider type."""
    number = folder.integer(op.operands[0])
    type = op.results[0].type
    if number is None or not isinstance(type, IntegerType | IndexType):
        return None
    return [folder.make_integer(unsigned(number, op.operands[0].type), type)]


FLOAT_NEUTRAL: dict[type[Operation], str] = {arith.MulfOp: "1.0", arith.DivfOp: "1.0", arith.SubfOp: "0.0", arith.AddfOp: "-0.0"}
"""x op c == x for every x, -0.0 and NaN included."""


def fold_float(op: Operation, folder: Folder) -> Values:
    """x * 1 -> x;  x / 1 -> x;  x - 0 -> x;  x + -0 -> x."""
    lhs, rhs = op.operands
    neutral = FLOAT_NEUTRAL[op.__class__]
    if (number := folder.real(rhs)) is not None and repr(number) == neutral:
        return [lhs]
    commutes = isinstance(op, arith.MulfOp | arith.AddfOp)
    return [rhs] if commutes and (number := folder.real(lhs)) is not None and repr(number) == neutral else None


def fold_negate(op: Operation, _: Folder) -> Values:
    """-(-x) -> x."""
    inner = op.operands[0].owner
    return [inner.operands[0]] if isinstance(inner, arith.NegfOp) else None


FOLDS: dict[type[Operation], Rule] = {
    **dict.fromkeys(NUMBERS, fold_integer),
    **dict.fromkeys(FLOAT_NEUTRAL, fold_float),
    arith.CmpiOp: fold_compare,
    arith.SelectOp: fold_select,
    arith.ExtSIOp: fold_widen_signed,
    arith.TruncIOp: fold_widen_signed,
    arith.IndexCastOp: fold_widen_signed,
    arith.ExtUIOp: fold_widen_unsigned,
    arith.NegfOp: fold_negate,
}
