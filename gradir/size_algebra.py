"""Arithmetic of run-time sizes: a size is a number, a text such as `2*b+t-1`, or None (unknown).

The text is canonical: equal polynomials are equal strings, so that equal shapes stay equal types. Besides products and sums of names
there are `floordiv(a,b)` and `max(a,b)`, the shapes of strided slices and windows; `mod(a,b)` is written `a - b*floordiv(a,b)`. Names
stand for numbers >= 0. Pure Python without dependencies: the compiler, the evaluator and the runtime read the same texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar

Dim: TypeAlias = int | str | None
Monomial: TypeAlias = tuple[str, ...]
Polynomial: TypeAlias = tuple[tuple[Monomial, int], ...]
"""(sorted atoms, coefficient) in the order of the text: higher degrees first, the number last."""

T = TypeVar("T")
Interval: TypeAlias = tuple[int, int]

UNLIMITED = 1 << 62
"""Stands for a size without an upper limit in the arithmetic of bounds."""

_TOKEN = re.compile(r"\s*(?:(\d+)|([^\d\s*+\-(),][^\s*+\-(),]*)|([*+\-(),]))")
_FUNCTIONS = ("floordiv", "max", "mod")


def plus(a: Dim, b: Dim) -> Dim:
    """a + b"""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    return None if a is None or b is None else text_of(_add(polynomial(a), polynomial(b)))


def minus(a: Dim, b: Dim) -> Dim:
    """a - b"""
    return plus(a, times(b, -1))


def times(a: Dim, b: Dim) -> Dim:
    """a * b; 0 of anything is 0"""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if a == 0 or b == 0:
        return 0
    return None if a is None or b is None else text_of(_multiply(polynomial(a), polynomial(b)))


def product(sizes: Iterable[Dim]) -> Dim:
    """The product of all; 1 of none."""
    total: Dim = 1
    for size in sizes:
        total = times(total, size)
    return total


def floordiv(a: Dim, b: Dim) -> Dim:
    """The largest whole number not above a / b, for b > 0; terms that b divides leave the quotient."""
    if a is None or b is None:
        return None
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    if b == 1 or a == 0:
        return a
    divisor = polynomial(b)
    whole: Polynomial = ()
    rest: Polynomial = ()
    for term in polynomial(a):
        quotient = _divide_term(term, divisor)
        whole, rest = (_add(whole, (quotient,)), rest) if quotient is not None else (whole, _add(rest, (term,)))
    if rest and isinstance(b, int):  # floordiv(b + 5, 4) == floordiv(b + 1, 4) + 1
        number = dict(rest).get((), 0)
        whole, rest = _add(whole, _number(number // b)), _add(rest, _number(number % b - number))
    if (unpadded := _without_gaps(rest, b)) is not None:
        return plus(text_of(whole), unpadded)
    if not rest:
        return text_of(whole)
    if all(not atoms for atoms, _ in rest) and isinstance(b, int):
        return text_of(_add(whole, _number(rest[0][1] // b)))
    return text_of(_add(whole, (((f"floordiv({text_of(rest)},{b})",), 1),)))


def ceildiv(a: Dim, b: Dim) -> Dim:
    """The least whole number not below a / b, for b > 0."""
    return floordiv(plus(a, minus(b, 1)), b)


def mod(a: Dim, b: Dim) -> Dim:
    """a - b * floordiv(a, b)"""
    return minus(a, times(b, floordiv(a, b)))


def maximum(a: Dim, b: Dim) -> Dim:
    """The larger one."""
    if a is None or b is None:
        return None
    difference = minus(a, b)
    if difference is not None and (known := sign_of(difference)) is not None:
        return a if known >= 0 else b
    if sign_of(minus(b, a)) in (0, 1):
        return b
    first, second = (a, b) if isinstance(b, int) or (not isinstance(a, int) and str(a) <= str(b)) else (b, a)
    return f"max({first},{second})"


def quotient(a: Dim, b: Dim) -> Dim:
    """a / b where that is a polynomial, else None."""
    if a is None or b is None or b == 0:
        return None
    terms = [_divide_term(term, polynomial(b)) for term in polynomial(a)]
    result: Polynomial = ()
    for term in terms:
        if term is None:
            long = _long_division(polynomial(a), polynomial(b))
            return None if long is None else text_of(long)
        result = _add(result, (term,))
    return text_of(result)


def sign_of(a: Dim) -> int | None:
    """-1 where a < 0, 0 where a == 0, 1 where a >= 0 (for all values of its names); None where that depends, or is not seen."""
    if a is None:
        return None
    if isinstance(a, int):
        return (a > 0) - (a < 0)
    terms = polynomial(a)
    if all(coefficient >= 0 and all(map(_not_negative, atoms)) for atoms, coefficient in terms):
        return 1
    negated = [(atoms, -coefficient) for atoms, coefficient in terms]
    if dict(negated).get((), 0) > 0 and all(coefficient >= 0 and all(map(_not_negative, atoms)) for atoms, coefficient in negated):
        return -1
    return None


def bounds(size: Dim, of: Callable[[str], tuple[int, int]]) -> tuple[int, int]:
    """The least and the largest number that a size can be, when `of` says so of its names; beyond `UNLIMITED` nothing is told apart."""
    for atoms, number in polynomial(size) if isinstance(size, str) else ():
        call = _call(atoms[0]) if len(atoms) == 1 else None
        if call is not None and call[0] == "floordiv" and call[1][1] == -number and size == mod(*call[1]):
            return 0, -number - 1  # a remainder
    return build(size, of, _INTERVALS, lambda n: (n, n))


def names_in(size: Dim) -> tuple[str, ...]:
    """The names that the size depends on, sorted."""
    return _names(size) if isinstance(size, str) else ()


def is_name(size: Dim) -> bool:
    """A name by itself."""
    return isinstance(size, str) and _names(size) == (size,)


def evaluate(size: Dim, values: Mapping[str, int]) -> int:
    """The number that the size is; KeyError names what has no value."""
    return size if isinstance(size, int) else _function(size)(values)


@lru_cache(1 << 10)
def _function(size: str | None) -> Callable[[Mapping[str, int]], int]:
    """The size as Python code, compiled once: calls compute the sizes of their results with it."""
    code = build(size, lambda name: f"v[{name!r}]", _CODE, str)
    return eval(f"lambda v: {code}")  # the text is made here, from names in quotes, numbers and four operations


def build(size: Dim, value_of: Callable[[str], T], operations: Mapping[str, Callable[[T, T], T]], constant: Callable[[int], T]) -> T:
    """The size in another arithmetic: `operations` has `+`, `*`, `floordiv`, `max`; `constant` makes a number."""

    def atom(text: str) -> T:
        call = _call(text)
        if call is None:
            return value_of(text)
        name, (first, second) = call
        return operations[name](build(first, value_of, operations, constant), build(second, value_of, operations, constant))

    if size is None:
        raise KeyError("a size without a name")
    total: T | None = None
    for atoms, coefficient in polynomial(size):
        term: T | None = None
        for part in atoms:
            term = atom(part) if term is None else operations["*"](term, atom(part))
        if term is None:
            term = constant(coefficient)
        elif coefficient != 1:
            term = operations["*"](term, constant(coefficient))
        total = term if total is None else operations["+"](total, term)
    return constant(0) if total is None else total


def solve(sizes: Sequence[int | str], known: Iterable[str] = ()) -> list[tuple[str, int, Dim, int]]:
    """How names follow from the values of `sizes`: rows (name, k, rest, factor) with name = (value of sizes[k] - rest) / factor, in an
    order in which the names in `rest` come first. Names that nothing tells are left out.
    """
    rows: list[tuple[str, int, Dim, int]] = []
    found = set(known)
    for k, size in enumerate(sizes):
        if is_name(size) and size not in found:
            found.add(str(size))
            rows.append((str(size), k, 0, 1))
    while True:
        before = len(rows)
        for k, size in enumerate(sizes):
            missing = [name for name in names_in(size) if name not in found]
            terms = polynomial(size)
            factor = dict(terms).get((missing[0],)) if len(missing) == 1 else None
            rest = tuple(term for term in terms if term[0] != (missing[0],)) if factor else ()
            if factor and missing[0] not in names_in(text_of(rest)):
                found.add(missing[0])
                rows.append((missing[0], k, text_of(rest), factor))
        if len(rows) == before:
            return rows


def rename(size: Dim, names: Mapping[str, Dim]) -> Dim:
    """The size with names replaced by sizes."""
    if not isinstance(size, str) or not any(name in names for name in names_in(size)):
        return size
    return build(size, lambda name: names.get(name, name), _SIZES, lambda n: n)


def same_count(a: Dim, b: Dim) -> bool:
    """False where two numbers of elements are known to differ; `floordiv(a,b)` counts as a/b, because whoever writes it in a reshape
    says that it is whole.
    """
    if a is None or b is None or a == b:
        return True
    names = {atom for size in (a, b) for terms in (polynomial(size),) for atoms, _ in terms for atom in atoms}
    calls = {atom for atom in names if _call(atom) is not None}
    if not calls:
        return False
    if any((call := _call(atom)) is not None and call[0] != "floordiv" for atom in calls):
        return True
    scale = 1
    for atom in calls:
        call = _call(atom)
        if call is None or not isinstance(call[1][1], int):
            return True
        scale *= call[1][1]
    return _exact(a, scale) == _exact(b, scale)


@lru_cache(1 << 12)
def polynomial(size: int | str) -> Polynomial:
    """The terms of a size, in canonical order. ValueError for a text that is no size."""
    return _number(size) if isinstance(size, int) else _Reader(size).all()


def text_of(terms: Polynomial) -> int | str:
    """The canonical text; a number where there are no names."""
    if not terms:
        return 0
    if len(terms) == 1 and not terms[0][0]:
        return terms[0][1]
    text = ""
    for atoms, coefficient in terms:
        size = abs(coefficient)
        body = "*".join((*([str(size)] if size != 1 or not atoms else []), *atoms))
        text += ("-" if coefficient < 0 else "+" if text else "") + body
    return text


def canonical(size: str) -> Dim:
    """Any text of a size in canonical form: `b + b` is `2*b`. ValueError for what is no size."""
    return text_of(polynomial(size))


def _number(value: int) -> Polynomial:
    return (((), value),) if value else ()


def _ordered(terms: Mapping[Monomial, int]) -> Polynomial:
    kept = [(atoms, coefficient) for atoms, coefficient in terms.items() if coefficient]
    return tuple(sorted(kept, key=lambda term: (-len(term[0]), term[0])))


def _add(a: Polynomial, b: Polynomial) -> Polynomial:
    terms = dict(a)
    for atoms, coefficient in b:
        terms[atoms] = terms.get(atoms, 0) + coefficient
    return _ordered(terms)


def _multiply(a: Polynomial, b: Polynomial) -> Polynomial:
    terms: dict[Monomial, int] = {}
    for left, x in a:
        for right, y in b:
            atoms = tuple(sorted((*left, *right)))
            terms[atoms] = terms.get(atoms, 0) + x * y
    return _ordered(terms)


def _divide_term(term: tuple[Monomial, int], divisor: Polynomial) -> tuple[Monomial, int] | None:
    """The quotient of one term, where the divisor is one term that divides it."""
    if len(divisor) != 1:
        return None
    atoms, coefficient = list(term[0]), term[1]
    for atom in divisor[0][0]:
        if atom not in atoms:
            return None
        atoms.remove(atom)
    return None if coefficient % divisor[0][1] else (tuple(atoms), coefficient // divisor[0][1])


def _long_division(a: Polynomial, b: Polynomial) -> Polynomial | None:
    """a / b, None where something is left over."""
    rest, result = a, ()
    while rest:
        term = _divide_term(rest[0], b[:1])
        if term is None or len(result) > 16:
            return None
        result = _add(result, (term,))
        rest = _add(rest, _multiply(((term[0], -term[1]),), b))
    return result


def _without_gaps(rest: Polynomial, divisor: Dim) -> Dim:
    """floordiv(e + i*max(e-1,0) + i, i+1) == e: taking `i` elements out again that padding put between neighbours."""
    if not isinstance(divisor, int) or dict(rest).get((), 0) != divisor - 1:
        return None
    for atoms, number in rest:
        call = _call(atoms[0]) if len(atoms) == 1 and number == divisor - 1 else None
        if call is not None and call[0] == "max" and call[1][1] == 0:
            left = tuple(term for term in rest if term[0] not in (atoms, ()))
            if minus(text_of(left), 1) == call[1][0]:
                return text_of(left)
    return None


def _not_negative(atom: str) -> bool:
    call = _call(atom)
    if call is None:
        return True
    signs = [sign_of(part) for part in call[1]]
    return 1 in signs if call[0] == "max" and 0 not in signs else 0 in signs or all(s in (0, 1) for s in signs)


@lru_cache(1 << 12)
def _names(size: str) -> tuple[str, ...]:
    found: set[str] = set()
    for atoms, _ in polynomial(size):
        for atom in atoms:
            call = _call(atom)
            found.update((atom,) if call is None else (name for part in call[1] for name in names_in(part)))
    return tuple(sorted(found))


@lru_cache(1 << 12)
def _call(atom: str) -> tuple[str, tuple[Dim, Dim]] | None:
    """`floordiv(a,b)` as its name and operands; None for a name."""
    name, bracket, _ = atom.partition("(")
    return (name, _Reader(atom).arguments(name)) if bracket and name in _FUNCTIONS else None


def _exact(size: Dim, scale: int) -> Polynomial:
    """`scale * size` with every floordiv by a number taken as an exact quotient."""

    def divide(a: Polynomial, b: Polynomial) -> Polynomial:
        # operands travel scaled, so that quotients stay whole: (scale * x) / (scale * n) * scale
        return tuple((atoms, coefficient * scale // b[0][1]) for atoms, coefficient in a)

    def multiply(a: Polynomial, b: Polynomial) -> Polynomial:
        return tuple((atoms, coefficient // scale) for atoms, coefficient in _multiply(a, b))

    assert size is not None
    operations = {"+": _add, "*": multiply, "floordiv": divide}
    return build(size, lambda name: (((name,), scale),), operations, lambda n: _number(scale * n))


class _Reader:
    """A recursive-descent reader of size texts."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens, self.place = text, list[str](), 0
        at = 0
        while at < len(text.rstrip()):
            match = _TOKEN.match(text, at)
            if match is None:
                raise ValueError(f"'{text}' is no size")
            self.tokens.append(match[match.lastindex or 0])
            at = match.end()

    def all(self) -> Polynomial:
        result = self.sum()
        if self.place < len(self.tokens) or not self.tokens:
            raise ValueError(f"'{self.text}' is no size")
        return result

    def peek(self) -> str:
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def take(self, expected: str = "") -> str:
        token = self.peek()
        if not token or (expected and token != expected):
            raise ValueError(f"'{self.text}' is no size")
        self.place += 1
        return token

    def sum(self) -> Polynomial:
        result: Polynomial = ()
        sign = self.take() if self.peek() in ("+", "-") else "+"
        while True:
            term = self.product()
            result = _add(result, _multiply(term, _number(-1)) if sign == "-" else term)
            if self.peek() not in ("+", "-"):
                return result
            sign = self.take()

    def product(self) -> Polynomial:
        result = self.factor()
        while self.peek() == "*":
            self.take()
            result = _multiply(result, self.factor())
        return result

    def factor(self) -> Polynomial:
        token = self.take()
        if token.isdigit():
            return _number(int(token))
        if token == "(":
            result = self.sum()
            self.take(")")
            return result
        if token in "*+-),":
            raise ValueError(f"'{self.text}' is no size")
        if token in _FUNCTIONS and self.peek() == "(":
            self.place -= 1
            first, second = self.arguments(token)
            combine = {"floordiv": floordiv, "max": maximum, "mod": mod}[token]
            combined = combine(first, second)
            return () if combined is None else polynomial(combined) if not self._is_self(combined) else (((str(combined),), 1),)
        return (((token,), 1),)

    def _is_self(self, size: Dim) -> bool:
        """A call that no rule made simpler: an atom, not a text to be read again."""
        return isinstance(size, str) and any(size.startswith(f"{name}(") for name in _FUNCTIONS) and _closes_at_end(size)

    def arguments(self, name: str) -> tuple[Dim, Dim]:
        self.take(name)
        self.take("(")
        first = text_of(self.sum())
        self.take(",")
        second = text_of(self.sum())
        self.take(")")
        return first, second


def _closes_at_end(text: str) -> bool:
    """Whether the first bracket closes with the last character."""
    depth = 0
    for k, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0 and c == ")":
            return k == len(text) - 1
    return False


_CODE: dict[str, Callable[[str, str], str]] = {
    "+": lambda a, b: f"({a} + {b})",
    "*": lambda a, b: f"({a} * {b})",
    "floordiv": lambda a, b: f"({a} // {b})",
    "max": lambda a, b: f"max({a}, {b})",
}
_SIZES: dict[str, Callable[[Any, Any], Any]] = {"+": plus, "*": times, "floordiv": floordiv, "max": maximum}


def _multiplied(a: Interval, b: Interval) -> Interval:
    corners = [x * y for x in a for y in b]
    return max(min(corners), -UNLIMITED), min(max(corners), UNLIMITED)


def _divided(a: Interval, b: Interval) -> Interval:
    corners = [x // max(y, 1) for x in a for y in b]
    return min(corners), max(corners)


_INTERVALS: Mapping[str, Callable[[Interval, Interval], Interval]] = {
    "+": lambda a, b: (max(a[0] + b[0], -UNLIMITED), min(a[1] + b[1], UNLIMITED)),
    "*": _multiplied,
    "floordiv": _divided,
    "max": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
}
