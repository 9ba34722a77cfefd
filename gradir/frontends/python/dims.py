"""`Dim`: a size that is known only when a program runs, as Python code of a traced function computes with it.

A `Dim` is its own text, `b` or `2*b+1`, so that shapes of `Dim`s and numbers compare, hash and become tensor types as they are.
Arithmetic with whole numbers gives `Dim`s again (`gradir.size_algebra`); arithmetic with arrays and floats gives arrays. What needs a
number (`range`, `if`, numpy) is an error at the user's line.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Self, cast

import numpy as np
from xdsl.ir import Attribute

from gradir import size_algebra
from gradir.dialects.size_limits import Limits, limits_attribute
from gradir.frontends.python.arrays import OPERATORS, operator as array_function
from gradir.frontends.python.trace import STATE, user_error

Size = int | str

UNLIMITED = size_algebra.UNLIMITED


class Dim(str):
    """A named size: `gradir.Dim("b", min=1, max=64, multiple=8)`. In shapes of `Spec` and of `jit(dynamic=...)`.

    Equal names are equal sizes in one call; `min`, `max` and `multiple` are checked when it is called. `x.shape` of a traced array holds
    `Dim`s where a size is named. GradirError GR112 for a name or a limit that makes no sense.
    """

    __slots__ = ("max", "min", "multiple", "sources")

    min: int
    max: int | None
    multiple: int
    sources: tuple[Dim, ...]
    """The sizes with limits that this one was computed from."""

    def __new__(cls, name: str, min: int = 0, max: int | None = None, multiple: int = 1) -> Self:
        try:
            text = size_algebra.canonical(cast("Any", name)) if isinstance(cast("Any", name), str) else 0
        except ValueError:
            text = 0
        if not isinstance(text, str):
            raise user_error(
                "a size needs a name", code="GR112", expected='a name such as "b", or a text such as "2*b+1"', found=repr(name)
            )
        limits: tuple[Any, ...] = (min, multiple, *(() if max is None else (max,)))
        if any(not isinstance(n, int) for n in limits) or min < 0 or multiple < 1 or (max is not None and max < min):
            found = f"min={min}, max={max}, multiple={multiple}"
            raise user_error(
                f"limits of the size '{text}' make no sense", code="GR112", expected="0 <= min <= max, multiple >= 1", found=found
            )
        self = str.__new__(cls, text)
        self.min, self.max, self.multiple = min, max, multiple
        self.sources = (self,) if self.is_limited else ()
        return self

    @property
    def is_limited(self) -> bool:
        """Whether a call has anything to check."""
        return self.min > 0 or self.max is not None or self.multiple > 1

    # Arithmetic ----------------------------------------------------------------------------------------------------

    def _with(self, other: Any, combine: Callable[[Size, Size], Size | None], name: str, *, reflected: bool = False) -> Any:
        if isinstance(other, np.integer) or (isinstance(other, int) and not isinstance(other, bool)):
            other = int(other)
        elif isinstance(other, float):
            pair = (other, array_function("as_array")(self)) if reflected else (array_function("as_array")(self), other)
            return array_function(name)(*pair)
        elif not isinstance(other, str):
            return NotImplemented
        made = sized(combine(other, self) if reflected else combine(self, other))
        if isinstance(made, Dim):
            made.sources = (*self.sources, *(other.sources if isinstance(other, Dim) else ()))
        return made

    def __add__(self, other: Any) -> Any:
        return self._with(other, size_algebra.plus, "add")

    def __radd__(self, other: Any) -> Any:
        return self._with(other, size_algebra.plus, "add", reflected=True)

    def __sub__(self, other: Any) -> Any:
        return self._with(other, size_algebra.minus, "subtract")

    def __rsub__(self, other: Any) -> Any:
        return self._with(other, size_algebra.minus, "subtract", reflected=True)

    def __mul__(self, other: Any) -> Any:
        return self._with(other, size_algebra.times, "multiply")

    def __rmul__(self, other: Any) -> Any:
        return self._with(other, size_algebra.times, "multiply", reflected=True)

    def __floordiv__(self, other: Any) -> Any:
        return self._with(other, _floordiv, "floor_divide")

    def __rfloordiv__(self, other: Any) -> Any:
        return self._with(other, _floordiv, "floor_divide", reflected=True)

    def __mod__(self, other: Any) -> Any:
        return self._with(other, _mod, "mod")

    def __rmod__(self, other: Any) -> Any:
        return self._with(other, _mod, "mod", reflected=True)

    def __truediv__(self, other: Any) -> Any:
        return array_function("divide")(array_function("as_array")(self), other)

    def __rtruediv__(self, other: Any) -> Any:
        return array_function("divide")(other, array_function("as_array")(self))

    def __pow__(self, other: Any) -> Any:
        return array_function("power")(array_function("as_array")(self), other)

    def __neg__(self) -> Any:
        return sized(size_algebra.times(self, -1))

    # Comparison ----------------------------------------------------------------------------------------------------

    def __lt__(self, other: Any) -> bool:
        return _decided(self, "<", other, lambda low, high: True if high < 0 else False if low >= 0 else None)

    def __le__(self, other: Any) -> bool:
        return _decided(self, "<=", other, lambda low, high: True if high <= 0 else False if low > 0 else None)

    def __gt__(self, other: Any) -> bool:
        return _decided(self, ">", other, lambda low, high: True if low > 0 else False if high <= 0 else None)

    def __ge__(self, other: Any) -> bool:
        return _decided(self, ">=", other, lambda low, high: True if low >= 0 else False if high < 0 else None)

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other) if isinstance(other, str) else False

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    # Numbers: there is none ----------------------------------------------------------------------------------------

    def __index__(self) -> int:
        raise _no_number(self, "a whole number")

    def __int__(self) -> int:
        raise _no_number(self, "int()")

    def __float__(self) -> float:
        raise _no_number(self, "float()")

    def __bool__(self) -> bool:
        return _decided(self, "!=", 0, lambda low, high: True if low > 0 else False if high == 0 else None)

    def __repr__(self) -> str:
        return str.__str__(self)


def sized(size: Size | None) -> Any:
    """A size as Python sees it: a number or a `Dim`."""
    if isinstance(size, int):
        return size
    assert size is not None
    made = str.__new__(Dim, size)
    made.min, made.max, made.multiple, made.sources = 0, None, 1, ()
    return made


def bounds(size: Size) -> tuple[int, int]:
    """The least and the largest number that a size can be, by the limits of its names in the current trace."""

    def of(name: str) -> tuple[int, int]:
        known = limits().get(name)
        return (0, UNLIMITED) if known is None else (known.min, UNLIMITED if known.max is None else known.max)

    return size_algebra.bounds(size, of)


def at_least(size: Size | None, least: int) -> Any:
    """The larger of the two, as a size; the bound goes where the limits of names prove it."""
    assert size is not None
    return (
        size if isinstance(size, int) and size >= least else sized(size if bounds(size)[0] >= least else size_algebra.maximum(size, least))
    )


def at_most(size: Size, most: Size) -> Any:
    """The smaller of the two, as a size: min(a, b) == a + b - max(a, b)."""
    difference = size_algebra.minus(size, most)
    assert difference is not None
    low, high = bounds(difference)
    if low >= 0 or high <= 0:
        return sized(most if low >= 0 else size)
    return sized(size_algebra.minus(size_algebra.plus(size, most), size_algebra.maximum(size, most)))


def divides(divisor: int, size: Size) -> bool:
    """Whether every value of the size is a multiple of `divisor`, by the multiples of its names."""
    for atoms, number in size_algebra.polynomial(size):
        factor = number
        for atom in atoms:
            factor *= known.multiple if (known := limits().get(atom)) is not None else 1
        if factor % divisor:
            return False
    return True


def limits() -> Mapping[str, Dim]:
    """The limits of the names in the current trace."""
    return STATE.function.module.sizes if STATE.function is not None else {}


def note_limits(size: Any) -> None:
    """Remember what the current module says about a `Dim`; GradirError GR112 when it said something else before."""
    if STATE.function is not None:
        learn(STATE.function.module.sizes, size)


def learn(sizes: dict[str, Dim], size: Any) -> None:
    """Add the limits of a `Dim`, or of those that it was computed from, to `sizes`."""
    for source in size.sources if isinstance(size, Dim) else ():
        known = sizes.setdefault(str(source), source)
        if (known.min, known.max, known.multiple) != (source.min, source.max, source.multiple):
            raise user_error(
                f"two sets of limits for the size '{source}'",
                code="GR112",
                expected=f"min={known.min}, max={known.max}, multiple={known.multiple}",
                found=f"min={source.min}, max={source.max}, multiple={source.multiple}",
            )


def limits_as_attribute(sizes: Mapping[str, Dim]) -> Attribute:
    """The attribute `gradir.sizes` of an entry."""
    return limits_attribute({name: Limits(size.min, size.max, size.multiple) for name, size in sizes.items()})


def _floordiv(a: Size, b: Size) -> Size | None:
    if isinstance(b, int) and b <= 0:
        raise user_error("a size is divided by a number below 1", code="GR112", expected="at least 1", found=str(b))
    return size_algebra.floordiv(a, b)


def _mod(a: Size, b: Size) -> Size | None:
    if isinstance(b, int) and b > 0 and divides(b, a):
        return 0
    return size_algebra.minus(a, size_algebra.times(b, _floordiv(a, b)))


def _decided(size: Dim, sign: str, other: Any, decide: Callable[[int, int], bool | None]) -> bool:
    """A comparison whose outcome is the same for all sizes; GradirError GR114 otherwise."""
    if not isinstance(other, str):
        try:
            other = operator.index(other)
        except TypeError:
            return NotImplemented
    difference = size_algebra.minus(size, other)
    assert difference is not None
    answer = decide(*bounds(difference))
    if answer is None:
        raise user_error(
            f"whether {size} {sign} {other} is known only when the compiled program runs",
            code="GR114",
            expected="a comparison that holds for all sizes, or for none",
            found=f"{size} between {bounds(size)[0]} and {_limit_text(bounds(size)[1])}",
            hint="state the limits, gradir.Dim(name, min=.., max=..), or use gradir.where on an array",
        )
    return answer


def _limit_text(limit: int) -> str:
    return "no limit" if limit >= UNLIMITED else str(limit)


def _no_number(size: Dim, what: str) -> Exception:
    return user_error(
        f"the size {size} is known only when the compiled program runs, {what} is needed here",
        code="GR114",
        expected="a number",
        found=f"the run-time size {size}",
        hint="compute with it as it is (+, -, *, //), pass it to functions of gradir, or compile for one size",
    )


OPERATORS["sized"] = sized
