"""Folds of the elementwise ops of `nd`: identities that hold for NaN, infinities and both zeros.

Not here, because they do not hold: `x + 0 == x` (x = -0), `x * 0 == 0` and `x - x == 0` of floats, `0 - x == -x` (x = +0), `max(x, 0)
== relu(x)` (different derivatives at 0).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import frexp, isfinite
from typing import Any

from xdsl.ir import Operation, SSAValue

from gradir.dialects.nd import elementwise as el
from gradir.dialects.types import element_of, is_bool, is_complex, is_float, is_inexact, is_integer, is_static, is_unsigned, numpy_dtype
from gradir.lowering.folds.nd_values import Values, fill, fold_constants, is_finite, is_one, is_splat, place, splat
from gradir.lowering.folds.table import Folder, Rule

NARROWEST_NORMAL = {"f64": -1022, "f32": -126, "f16": -14, "bf16": -126}
"""Exponent of the least normal number."""


def first(*rules: Rule) -> Rule:
    """The first rule that applies, constants before all."""

    def rule(op: Any, folder: Folder) -> Values:
        return next((values for r in (fold_constants, *rules) if (values := r(op, folder)) is not None), None)

    return rule


def _produced(value: SSAValue, kind: type[Operation]) -> Any:
    return value.owner if isinstance(value.owner, kind) else None


def _involution(kind: type[el.Unary]) -> Rule:
    """f(f(x)) -> x."""

    def rule(op: Any, _: Folder) -> Values:
        inner = _produced(op.operand, kind)
        return [inner.operand] if inner else None

    return rule


def _idempotent(*kinds: type[el.Unary]) -> Rule:
    """f(f(x)) -> f(x), not of complex numbers; also f(g(x)) -> f(x) in `abs_of_neg`."""

    def rule(op: Any, _: Folder) -> Values:
        if is_complex(element_of(op.operand)):  # the sign of a complex number is 1 in absolute value but for rounding
            return None
        return [op.operand] if any(_produced(op.operand, kind) for kind in kinds) else None

    return rule


def abs_of_neg(op: Any, folder: Folder) -> Values:
    """|-x| -> |x|."""
    inner = _produced(op.operand, el.NegOp)
    return [place(folder, el.AbsOp.make(inner.operand))] if inner else None


def not_of_equality(op: Any, folder: Folder) -> Values:
    """not (x == y) -> x != y and the other way round; orders are not turned: both `lt` and `ge` are false of NaN."""
    inner = _produced(op.operand, el.CompareOp)
    turned = {"eq": "ne", "ne": "eq"}.get(inner.direction.data.value) if inner else None
    return [place(folder, el.CompareOp.make(turned, inner.lhs, inner.rhs))] if turned else None


def convert_nothing(op: Any, _: Folder) -> Values:
    """convert x : t -> t  ->  x."""
    return [op.operand] if op.operand.type == op.result.type and not op.saturates else None


def convert_there_and_back(op: Any, _: Folder) -> Values:
    """convert (convert x : s -> wide) : wide -> s  ->  x, where wide holds every value of s."""
    inner = _produced(op.operand, el.ConvertOp)
    if not inner or inner.operand.type != op.result.type or inner.saturates or op.saturates:
        return None
    return [inner.operand] if _holds(element_of(inner.result), element_of(op.result)) else None


def _holds(wide: Any, narrow: Any) -> bool:
    if is_bool(narrow):
        return True
    if is_float(narrow):
        return is_float(wide) and numpy_dtype(wide).itemsize > numpy_dtype(narrow).itemsize
    return is_integer(wide) and numpy_dtype(wide).itemsize > numpy_dtype(narrow).itemsize and (is_unsigned(narrow) or not is_unsigned(wide))


def neutral(*, left: Callable[[SSAValue], bool] | None = None, right: Callable[[SSAValue], bool] | None = None) -> Rule:
    """e . x -> x where e is neutral on the left, x . e -> x where e is neutral on the right."""

    def rule(op: Any, _: Folder) -> Values:
        if right is not None and right(op.rhs):
            return [op.lhs]
        return [op.rhs] if left is not None and left(op.lhs) else None

    return rule


def _neutral_of_add(value: SSAValue) -> bool:
    """x + (-0.0) == x of floats, x + 0 == x of integers; x | false == x."""
    return is_splat(value, -0.0 if is_float(element_of(value)) else 0)


def _positive_zero(value: SSAValue) -> bool:
    return is_splat(value, 0.0 if is_float(element_of(value)) else 0)


def _all_ones(value: SSAValue) -> bool:
    elem, found = element_of(value), splat(value)
    if is_float(elem) or found is None:
        return False
    return bool(found) if is_bool(elem) else found in (-1, (1 << 8 * numpy_dtype(elem).itemsize) - 1)


def _integer_zero(value: SSAValue) -> bool:
    return not is_float(element_of(value)) and is_splat(value, 0)


def add_of_neg(op: Any, folder: Folder) -> Values:
    """x + (-y) -> x - y;  (-x) + y -> y - x."""
    if right := _produced(op.rhs, el.NegOp):
        return [place(folder, el.SubOp.make(op.lhs, right.operand))]
    left = _produced(op.lhs, el.NegOp)
    return [place(folder, el.SubOp.make(op.rhs, left.operand))] if left else None


def sub_of_neg(op: Any, folder: Folder) -> Values:
    """x - (-y) -> x + y."""
    right = _produced(op.rhs, el.NegOp)
    return [place(folder, el.AddOp.make(op.lhs, right.operand))] if right else None


def sub_of_integers(op: Any, folder: Folder) -> Values:
    """x - x -> 0;  0 - x -> -x, of integers."""
    if is_inexact(element_of(op.lhs)):
        return None
    if op.lhs is op.rhs and is_static(op.result):
        return [fill(folder, op.result.type, 0)]
    return [place(folder, el.NegOp.make(op.rhs))] if is_splat(op.lhs, 0) else None


def mul_by_integer_zero(op: Any, _: Folder) -> Values:
    """x * 0 -> 0 of integers and i1 (of floats: x may be inf or NaN)."""
    if _integer_zero(op.rhs):
        return [op.rhs]
    return [op.lhs] if _integer_zero(op.lhs) else None


def mul_of_negs(op: Any, folder: Folder) -> Values:
    """(-x) * (-y) -> x * y."""
    left, right = _produced(op.lhs, el.NegOp), _produced(op.rhs, el.NegOp)
    return [place(folder, el.MulOp.make(left.operand, right.operand))] if left and right else None


def strong_zero(op: Any, folder: Folder) -> Values:
    """mul_strong(x, 0) -> +0 whatever x is."""
    for value in (op.lhs, op.rhs):
        if splat(value) == 0 and is_static(op.result):
            return [fill(folder, op.result.type, 0)]
    return None


def strong_is_plain(op: Any, folder: Folder) -> Values:
    """mul_strong(x, y) -> x * y, if both are finite, if one is a finite number other than 0, or if x is y (0 * 0 = 0)."""
    safe = op.lhs is op.rhs or (is_finite(op.lhs) and is_finite(op.rhs))
    for value in (op.lhs, op.rhs):
        number = splat(value)
        safe = safe or (number is not None and number != 0 and isfinite(number))
    return [place(folder, el.MulOp.make(op.lhs, op.rhs))] if safe else None


def div_by_power_of_two(op: Any, folder: Folder) -> Values:
    """x / 2**n -> x * 2**-n: both are exact up to one rounding, as long as 2**-n is a normal number."""
    number = splat(op.rhs)
    if not is_float(element_of(op.rhs)) or not number or not isfinite(number) or not is_static(op.rhs):
        return None
    mantissa, exponent = frexp(number)  # number == mantissa * 2**exponent
    narrowest = NARROWEST_NORMAL.get(str(element_of(op.rhs)))
    if narrowest is None or abs(mantissa) != 0.5 or min(exponent - 1, 1 - exponent) < narrowest:
        return None
    return [place(folder, el.MulOp.make(op.lhs, fill(folder, op.rhs.type, 1.0 / number)))]


def pow_of_number(op: Any, folder: Folder) -> Values:
    """x ** 0 -> 1;  x ** 2 -> x * x;  x ** -1 -> 1 / x, of floats."""
    number = splat(op.rhs)
    if number is None or not is_float(element_of(op.lhs)) or not is_static(op.result):
        return None
    if number == 0:
        return [fill(folder, op.result.type, 1.0)]
    if number == 2:
        return [place(folder, el.MulOp.make(op.lhs, op.lhs))]
    return [place(folder, el.DivOp.make(fill(folder, op.result.type, 1.0), op.lhs))] if number == -1 else None


def same_operands(op: Any, _: Folder) -> Values:
    """x . x -> x."""
    return [op.lhs] if op.lhs is op.rhs else None


def xor_of_same(op: Any, folder: Folder) -> Values:
    """x ^ x -> 0."""
    return [fill(folder, op.result.type, 0)] if op.lhs is op.rhs and is_static(op.result) else None


def absorbing(absorbs: Callable[[SSAValue], bool]) -> Rule:
    """x . e -> e and e . x -> e."""

    def rule(op: Any, _: Folder) -> Values:
        return next(([value] for value in (op.lhs, op.rhs) if absorbs(value)), None)

    return rule


def compare_with_itself(op: Any, folder: Folder) -> Values:
    """x == x, x <= x, x >= x -> true, the others false, of integers."""
    if op.lhs is not op.rhs or is_inexact(element_of(op.lhs)) or not is_static(op.result):
        return None
    return [fill(folder, op.result.type, op.direction.data.value in ("eq", "le", "ge"))]


def select_known(op: Any, _: Folder) -> Values:
    """select true, x, y -> x;  select false, x, y -> y;  select p, x, x -> x."""
    if op.on_true is op.on_false:
        return [op.on_true]
    number = splat(op.pred)
    return None if number is None else [op.on_true if number else op.on_false]


def select_by_not(op: Any, folder: Folder) -> Values:
    """select not p, x, y -> select p, y, x."""
    inner = _produced(op.pred, el.NotOp)
    return [place(folder, el.SelectOp.make(inner.operand, op.on_false, op.on_true))] if inner else None


def _rules() -> dict[type[Operation], Rule]:
    special: dict[type[Operation], Sequence[Rule]] = {
        el.NegOp: [_involution(el.NegOp)],
        el.NotOp: [_involution(el.NotOp), not_of_equality],
        el.AbsOp: [_idempotent(el.AbsOp, el.ReluOp), abs_of_neg],
        el.ReluOp: [_idempotent(el.ReluOp)],
        el.SignOp: [_idempotent(el.SignOp)],
        el.FloorOp: [_idempotent(el.FloorOp, el.CeilOp)],
        el.CeilOp: [_idempotent(el.FloorOp, el.CeilOp)],
        el.ConvertOp: [convert_nothing, convert_there_and_back],
        el.AddOp: [neutral(left=_neutral_of_add, right=_neutral_of_add), add_of_neg],
        el.SubOp: [neutral(right=_positive_zero), sub_of_neg, sub_of_integers],
        el.MulOp: [neutral(left=is_one, right=is_one), mul_by_integer_zero, mul_of_negs],
        el.MulStrongOp: [strong_zero, neutral(left=is_one, right=is_one), strong_is_plain],
        el.DivOp: [neutral(right=is_one), div_by_power_of_two],
        el.PowOp: [neutral(right=is_one), pow_of_number],
        el.MaxOp: [same_operands],
        el.MinOp: [same_operands],
        el.AndOp: [same_operands, neutral(left=_all_ones, right=_all_ones), absorbing(_integer_zero)],
        el.OrOp: [same_operands, neutral(left=_integer_zero, right=_integer_zero), absorbing(_all_ones)],
        el.XorOp: [xor_of_same, neutral(left=_integer_zero, right=_integer_zero)],
        el.ShlOp: [neutral(right=_integer_zero)],
        el.ShrSOp: [neutral(right=_integer_zero)],
        el.ShrUOp: [neutral(right=_integer_zero)],
        el.CompareOp: [compare_with_itself],
        el.SelectOp: [select_known, select_by_not],
    }
    return {op: first(*special.get(op, ())) for op in el.OPS}


FOLDS: dict[type[Operation], Rule] = _rules()
