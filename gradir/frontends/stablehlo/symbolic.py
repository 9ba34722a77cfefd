"""What a StableHLO program knows about its run-time sizes: small integer tensors as texts of sizes, op by op.

JAX computes shapes with ordinary ops on `tensor<i32>` that begin at `get_dimension_size`. Each such value is followed here, beside the
conversion: elements, row by row, are sizes (`2*b+1`), truth values, comparisons that the sizes leave open, or None where nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import lcm, prod
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerType, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from gradir import size_algebra
from gradir.dialects.size_limits import Limits
from gradir.dialects.types import Dim, element_of, is_static, rank_of, static_shape
from gradir.frontends.stablehlo.attributes import word_of
from gradir.frontends.stablehlo.dialect import attribute, number, numbers

LONGEST = 16
"""Elements of a value that is followed: a shape has no more."""


@dataclass(frozen=True)
class Comparison:
    """`left direction right`, which the limits of sizes do not decide."""

    direction: str
    left: int | str
    right: int | str


Element: TypeAlias = "Dim | Comparison"
"""A number or a text of a size (a bool is a truth value), an open comparison, or None."""

Elements: TypeAlias = tuple[Element, ...]


@dataclass
class Symbolic:
    """The elements of values seen so far; `limits` of names; `dims_of` gives the sizes of a value's dimensions."""

    dims_of: Callable[[SSAValue], Sequence[Dim]]
    limits: dict[str, Limits] = field(default_factory=dict[str, Limits])
    known: dict[SSAValue, Elements] = field(default_factory=dict[SSAValue, Elements])

    def of(self, value: SSAValue) -> Elements | None:
        """The elements of a value, if it is followed."""
        return self.known.get(value)

    def sizes(self, value: SSAValue) -> list[Dim]:
        """The elements of a value as sizes, None where unknown."""
        count = prod(static_shape(value))
        found = self.known.get(value) or (None,) * count
        return [element if isinstance(element, int | str) and not isinstance(element, bool) else None for element in found]

    def bounds(self, size: Dim) -> tuple[int, int]:
        """What a size lies between."""

        def of(name: str) -> tuple[int, int]:
            limits = self.limits.get(name, Limits())
            return limits.min, size_algebra.UNLIMITED if limits.max is None else limits.max

        return size_algebra.bounds(size, of)

    def follow(self, op: Operation) -> None:
        """Note the elements of the op's result, where they follow from those of its operands."""
        rule = _RULES.get(op.name)
        if rule is None or len(op.results) != 1 or not _is_followed(op.results[0].type):
            return
        found = rule(self, op, [self.known.get(value) for value in op.operands])
        if found is not None:
            self.known[op.results[0]] = found
        else:
            self.known.pop(op.results[0], None)

    def learn(self, holds: Comparison) -> bool:
        """Take over what an assertion says about one name as its limit; False where it is no such limit."""
        difference = size_algebra.minus(holds.left, holds.right)
        names = size_algebra.names_in(difference)
        if difference is None or len(names) != 1:
            return False
        (name,) = names
        limits = self.limits.get(name, Limits())
        rest = size_algebra.minus(difference, name)
        if holds.direction == "GE" and isinstance(rest, int):
            self.limits[name] = Limits(max(limits.min, -rest), limits.max, limits.multiple)
            return True
        rest = size_algebra.plus(difference, name)
        if holds.direction == "GE" and isinstance(rest, int) and rest >= 0:
            self.limits[name] = Limits(limits.min, rest if limits.max is None else min(limits.max, rest), limits.multiple)
            return True
        for size in (difference, size_algebra.times(difference, -1)):
            multiple = next((n for n in range(2, 1025) if size == size_algebra.mod(name, n)), None) if holds.direction == "EQ" else None
            if multiple is not None:
                self.limits[name] = Limits(limits.min, limits.max, lcm(limits.multiple, multiple))
                return True
        return False


def _is_followed(kind: Attribute) -> bool:
    if not isinstance(kind, TensorType) or not isinstance(element_of(cast("Attribute", kind)), IntegerType):
        return False
    shaped = cast("TensorType[Any]", kind)
    return is_static(shaped) and rank_of(shaped) <= 2 and prod(static_shape(shaped)) <= LONGEST


Operands: TypeAlias = "Sequence[Elements | None]"


def _constant(_: Symbolic, op: Operation, __: Operands) -> Elements | None:
    value = attribute(op, "value")
    if not isinstance(value, DenseIntOrFPElementsAttr):
        return None
    items = tuple(cast("Sequence[int]", value.get_values()))
    count = prod(static_shape(op.results[0]))
    boolean = cast("IntegerType", element_of(op.results[0])).width.data == 1
    return tuple(bool(n) if boolean else int(n) for n in (items * count if len(items) == 1 else items))


def _dimension(state: Symbolic, op: Operation, _: Operands) -> Elements | None:
    return (state.dims_of(op.operands[0])[number(op, "dimension")],)


def _same(_: Symbolic, op: Operation, operands: Operands) -> Elements | None:
    (x,) = operands
    narrowed = x is not None and any(isinstance(e, bool | Comparison) for e in x) and op.name == "stablehlo.convert"
    return None if narrowed else x


def _repeat(_: Symbolic, op: Operation, operands: Operands) -> Elements | None:
    (x,) = operands
    count = prod(static_shape(op.results[0]))
    same = x is not None and len(x) == count and rank_of(op.operands[0]) == rank_of(op.results[0])
    return x * count if x is not None and len(x) == 1 else x if same else None


def _join(_: Symbolic, op: Operation, operands: Operands) -> Elements | None:
    if number(op, "dimension"):
        return None
    parts = [x or (None,) * prod(static_shape(value)) for x, value in zip(operands, op.operands)]
    return tuple(e for part in parts for e in part)


def _slice(_: Symbolic, op: Operation, operands: Operands) -> Elements | None:
    (x,) = operands
    start, limit, stride = (numbers(op, name) for name in ("start_indices", "limit_indices", "strides"))
    return x[start[0] : limit[0] : (stride or (1,))[0]] if x is not None and start and limit and len(start) == 1 else None


def _elementwise(combine: Callable[..., Element]) -> Callable[[Symbolic, Operation, Operands], Elements | None]:
    def rule(state: Symbolic, op: Operation, operands: Operands) -> Elements | None:
        known = [x for x in operands if x is not None]
        if len(known) < len(operands):
            return None
        return tuple(combine(state, op, *row) for row in zip(*known))

    return rule


def _sizes_only(function: Callable[..., Dim]) -> Callable[..., Element]:
    def combine(_: Symbolic, __: Operation, *row: Element) -> Element:
        return function(*row) if all(isinstance(e, int | str) and not isinstance(e, bool) for e in row) else None

    return combine


def _least(a: Dim, b: Dim) -> Dim:
    return size_algebra.minus(size_algebra.plus(a, b), size_algebra.maximum(a, b))


def _negated(a: Dim) -> Dim:
    return size_algebra.times(a, -1)


def _divide(remainder: bool) -> Callable[..., Element]:
    """Division rounds to zero: of what is not negative, down."""

    def combine(state: Symbolic, _: Operation, a: Any, b: Any) -> Element:
        if not isinstance(a, int | str) or not isinstance(b, int | str) or state.bounds(a)[0] < 0 or state.bounds(b)[0] < 1:
            return None
        if not remainder:
            return size_algebra.floordiv(a, b)
        known = state.limits.get(a) if isinstance(a, str) else None
        return 0 if known is not None and isinstance(b, int) and known.multiple % b == 0 else size_algebra.mod(a, b)

    return combine


def _sign(state: Symbolic, _: Operation, a: Any) -> Element:
    if not isinstance(a, int | str):
        return None
    low, high = state.bounds(a)
    return 1 if low > 0 else -1 if high < 0 else 0 if low == high == 0 else None


_DECIDE: Mapping[str, Callable[[int, int], bool | None]] = {
    "EQ": lambda low, high: True if low == high == 0 else False if low > 0 or high < 0 else None,
    "NE": lambda low, high: False if low == high == 0 else True if low > 0 or high < 0 else None,
    "LT": lambda low, high: True if high < 0 else False if low >= 0 else None,
    "LE": lambda low, high: True if high <= 0 else False if low > 0 else None,
    "GT": lambda low, high: True if low > 0 else False if high <= 0 else None,
    "GE": lambda low, high: True if low >= 0 else False if high < 0 else None,
}


def _compare(state: Symbolic, op: Operation, a: Any, b: Any) -> Element:
    if isinstance(a, bool) and isinstance(b, bool):
        a, b = int(a), int(b)
    if not isinstance(a, int | str) or not isinstance(b, int | str):
        return None
    direction = word_of(attribute(op, "comparison_direction"))
    decided = _DECIDE[direction](*state.bounds(size_algebra.minus(a, b)))
    return Comparison(direction, a, b) if decided is None else decided


def _select(_: Symbolic, __: Operation, pred: Any, a: Any, b: Any) -> Element:
    return a if pred is True or a == b else b if pred is False else None


def _and(_: Symbolic, __: Operation, a: Any, b: Any) -> Element:
    return False if a is False or b is False else b if a is True else a if b is True else None


def _or(_: Symbolic, __: Operation, a: Any, b: Any) -> Element:
    return True if a is True or b is True else b if a is False else a if b is False else None


def _not(_: Symbolic, __: Operation, a: Any) -> Element:
    return not a if isinstance(a, bool) else None


_RULES: Mapping[str, Callable[[Symbolic, Operation, Operands], Elements | None]] = {
    "stablehlo.constant": _constant,
    "stablehlo.get_dimension_size": _dimension,
    "stablehlo.convert": _same,
    "stablehlo.reshape": _same,
    "stablehlo.broadcast_in_dim": _repeat,
    "stablehlo.concatenate": _join,
    "stablehlo.slice": _slice,
    "stablehlo.add": _elementwise(_sizes_only(size_algebra.plus)),
    "stablehlo.subtract": _elementwise(_sizes_only(size_algebra.minus)),
    "stablehlo.multiply": _elementwise(_sizes_only(size_algebra.times)),
    "stablehlo.maximum": _elementwise(_sizes_only(size_algebra.maximum)),
    "stablehlo.minimum": _elementwise(_sizes_only(_least)),
    "stablehlo.negate": _elementwise(_sizes_only(_negated)),
    "stablehlo.divide": _elementwise(_divide(remainder=False)),
    "stablehlo.remainder": _elementwise(_divide(remainder=True)),
    "stablehlo.sign": _elementwise(_sign),
    "stablehlo.compare": _elementwise(_compare),
    "stablehlo.select": _elementwise(_select),
    "stablehlo.and": _elementwise(_and),
    "stablehlo.or": _elementwise(_or),
    "stablehlo.not": _elementwise(_not),
}
