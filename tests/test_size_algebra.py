"""Run-time sizes as texts: canonical, evaluated, solved."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from gradir import size_algebra as sizes


def test_equal_polynomials_are_equal_texts() -> None:
    assert sizes.plus("b", "b") == "2*b"
    assert sizes.times("t", "b") == sizes.times("b", "t") == "b*t"
    assert sizes.minus(sizes.plus("b", 3), 3) == "b"
    assert sizes.minus("b", "b") == 0
    assert sizes.canonical("1 + (b - 1) * 2") == "2*b-1"
    assert sizes.product(["b", 4, "t"]) == "4*b*t"


def test_quotients() -> None:
    assert sizes.floordiv("4*b+2*t+1", 2) == "2*b+t"
    assert sizes.floordiv("b*t", "t") == "b"
    assert sizes.ceildiv(sizes.minus("b", 1), 2) == "floordiv(b,2)"
    assert sizes.mod("b", 2) == "b-2*floordiv(b,2)"
    assert sizes.quotient("8*b", 4) == "2*b"
    assert sizes.quotient("8*b", 3) is None
    assert sizes.quotient("b*b+2*b+1", "b+1") == "b+1"


def test_bounds() -> None:
    assert sizes.maximum("b", 0) == "b"
    assert sizes.maximum(sizes.minus("b", 1), 0) == "max(b-1,0)"
    assert (sizes.sign_of("b*t+1"), sizes.sign_of("-b-1"), sizes.sign_of("b-1")) == (1, -1, None)


def test_names_follow_from_sizes() -> None:
    assert sizes.solve(["b*t", "b", "2*t+b"]) == [("b", 1, 0, 1), ("t", 2, "b", 2)]
    assert sizes.solve(["b*t"]) == []


def test_counts_of_elements() -> None:
    assert sizes.same_count("b", sizes.times(8, sizes.floordiv("b", 8)))
    assert not sizes.same_count("b", "t")
    assert not sizes.same_count("t", sizes.times(8, sizes.floordiv("b", 8)))


@pytest.mark.parametrize("text", ["", "b+", "2**b", "(b", "max(b)", "b)"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no size"):
        sizes.canonical(text)


OPERATIONS: dict[str, tuple[Callable[..., sizes.Dim], Callable[[int, int], int]]] = {
    "+": (sizes.plus, lambda a, b: a + b),
    "-": (sizes.minus, lambda a, b: a - b),
    "*": (sizes.times, lambda a, b: a * b),
    "max": (sizes.maximum, max),
}


@pytest.mark.parametrize("seed", range(8))
def test_random_expressions(seed: int) -> None:
    """The text of an expression evaluates to what the expression does, and is its own canonical form."""
    rng = random.Random(seed)

    def expression(depth: int, values: dict[str, int]) -> tuple[sizes.Dim, int]:
        kind = rng.choice([*OPERATIONS, "floordiv"]) if depth else "leaf"
        if kind == "leaf":
            leaf = rng.choice([*values, rng.randint(0, 5)])
            return leaf, values[leaf] if isinstance(leaf, str) else leaf
        text, value = expression(depth - 1, values)
        if kind == "floordiv":
            divisor = rng.randint(1, 4)
            return sizes.floordiv(text, divisor), value // divisor
        other, second = expression(depth - 1, values)
        build, compute = OPERATIONS[kind]
        return build(text, other), compute(value, second)

    for _ in range(200):
        values = {name: rng.randint(0, 6) for name in "abc"}
        text, value = expression(4, values)
        assert sizes.evaluate(text, values) == value
        assert not isinstance(text, str) or sizes.canonical(text) == text
