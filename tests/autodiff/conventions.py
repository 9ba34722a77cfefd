"""The conventions of derivatives as data: functions, points, and what comes out here, in JAX and in PyTorch.

`test_numerics_derivatives.py` computes the first value at every setting, `test_conventions.py` the other two where these frameworks are
installed; `conventions_page.py` writes docs/derivative-conventions.md. A function is an expression of x, y and z with numpy's names; its
derivative is that of the sum of its results by every argument. A value is a number, a list, or a word for what has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

INF, NAN = float("inf"), float("nan")
SAME, ABSENT, ERROR = "same", "no such function", "error"
"""As here; and what stands in place of a value."""
JAX, TORCH = "0.10.2", "2.14.1"
"""The versions whose values these are."""


@dataclass(frozen=True)
class Row:
    """The derivative of `function` at `at`, one entry per argument."""

    function: str
    at: tuple[Any, ...]
    here: tuple[Any, ...]
    jax: Any = SAME
    torch: Any = SAME
    dtype: str = "float32"

    def call(self, names: Mapping[str, Any], *arguments: Any) -> Any:
        """The function, its names looked up in `names`."""
        code = compile(self.function, "<convention>", "eval")
        found = dict(zip("xyz", arguments))
        found |= {name: names[name] for name in _names_in(code) if name not in found}
        return eval(code, {"__builtins__": {}, **found})

    def arguments(self, asarray: Callable[[Any, str], Any]) -> list[Any]:
        return [asarray(value, self.dtype) for value in self.at]


def _names_in(code: CodeType) -> set[str]:
    """The names that the expression looks up, in its lambdas too."""
    inner = (one for one in code.co_consts if isinstance(one, CodeType))
    return set(code.co_names).union(*(_names_in(one) for one in inner))


@dataclass(frozen=True)
class Group:
    """Rows under one heading, with the reason for what happens here."""

    title: str
    why: str
    rows: tuple[Row, ...]


ROW = [1.0, 3.0, 3.0, 2.0]

GROUPS: dict[str, Group] = {
    "where_does_not_poison": Group(
        "The branch that was not taken",
        "A product with an exact 0 is 0 in a derivative, so an infinite slope that nothing asks for stays out. The way around it elsewhere, "
        "`where` inside and outside of the function, is not needed.",
        (
            Row("where(x < 1, x, sqrt(x))", (0.0,), (1,), (NAN,), (NAN,)),
            Row("where(x < 1, x, sqrt(x))", ([-1.0, -4.0],), ([1, 1],), ([NAN, NAN],), ([NAN, NAN],)),
            Row("where(x > 0, log(x), 0 * x)", (0.0,), (0,), (NAN,), (NAN,)),
        ),
    ),
    "strong_zero": Group(
        "Zero times infinity",
        "The same rule where a factor is written out. It is a product in its turn, so second derivatives come out right where a first one is 0. The price is in the last two rows: a limit that is finite comes out as 0. "
        "`--check-nan` reports every such product.",
        (
            Row("0 * sqrt(x)", (0.0,), (0,), (NAN,), (NAN,)),
            Row("sqrt(x * x)", (0.0,), (0,), (NAN,), (NAN,)),
            Row("0 * arcsin(x)", (1.0,), (0,), (NAN,), (NAN,)),
            Row("grad(lambda t: (sqrt(t) - 1) ** 2)(x)", (1.0,), (0.5,)),
            Row("sqrt(x) * sqrt(x)", (0.0,), (0,), (NAN,), (NAN,)),
            Row("cbrt(x * x * x)", (0.0,), (0,), (NAN,), ABSENT),
        ),
    ),
    "kinks_are_flat": Group(
        "Kinks and steps",
        "At a kink every slope between those of both sides is a subgradient. 0 is one for `abs` and `relu`, and it leaves alone what is exactly "
        "at rest. Steps are flat.",
        (
            Row("relu(x)", (0.0,), (0,)),
            Row("abs(x)", (0.0,), (0,), (1,)),
            Row("sign(x)", (0.0,), (0,)),
            Row("floor(x)", (0.0,), (0,)),
            Row("ceil(x)", (0.0,), (0,)),
            Row("round(x)", (0.0,), (0,)),
            Row("trunc(x)", (0.0,), (0,)),
        ),
    ),
    "a_tie_is_shared": Group(
        "Ties of two",
        "The slopes of both sides, averaged, whatever the order of the arguments. A NaN wins a maximum, so it takes the cotangent.",
        (
            Row("maximum(x, y)", (2.0, 2.0), (0.5, 0.5)),
            Row("minimum(x, y)", (2.0, 2.0), (0.5, 0.5)),
            Row("maximum(x, y)", (NAN, 2.0), (1, 0), (0, 0), (1, 1)),
            Row("minimum(x, y)", (NAN, 2.0), (1, 0), (0, 0), (1, 1)),
        ),
    ),
    "clamp": Group(
        "Clamp",
        "A value that has just reached its bound can still move away from it, so the slope there is that of the inside. Elsewhere it depends on the call: `jax.lax.clamp` gives 0, "
        "`jnp.clip` one half. With crossed bounds the value is the upper bound, so that is what moves.",
        (
            Row("clip(x, y, z)", (0.5, 0.0, 1.0), (1, 0, 0)),
            Row("clip(x, y, z)", (0.0, 0.0, 1.0), (1, 0, 0), (0.5, 0.5, 0), (0.5, 0.5, 0)),
            Row("clip(x, y, z)", (1.0, 0.0, 1.0), (1, 0, 0), (0.5, 0, 0.5), (0.5, 0, 0.5)),
            Row("clip(x, 0, 1)", (0.0,), (1,), (0.5,), (0,)),
            Row("clip(x, y, z)", (-1.0, 0.0, 1.0), (0, 1, 0)),
            Row("clip(x, y, z)", (2.0, 0.0, 1.0), (0, 0, 1)),
            Row("clip(x, y, z)", (0.5, 2.0, 1.0), (0, 0, 1)),
        ),
    ),
    "reduce_max_shares_ties": Group(
        "The largest of many",
        "All that are equal to it share the cotangent evenly. They are counted in integers, so that 70000 ties in f16 are 1/70000 each.",
        (
            Row("max(x)", ([1.0, 3.0, 3.0],), ([0, 0.5, 0.5],)),
            Row("min(x)", ([1.0, NAN, 3.0],), ([0, 1, 0],), ([NAN, NAN, NAN],)),
        ),
    ),
    "cumulative_extrema_go_to_the_first": Group(
        "The largest so far",
        "The cotangent goes to one position, the first of a tie, as `argmax` names it. Weights tell the positions apart.",
        (
            Row(
                "cummax(x) * y",
                (ROW, [1.0, 10.0, 100.0, 1000.0]),
                ([1, 1110, 0, 0], [1, 3, 3, 3]),
                ([1, 560, 550, 0], [1, 3, 3, 3]),
                ([1, 10, 1100, 0], [1, 3, 3, 3]),
            ),
        ),
    ),
    "infinite_slopes": Group(
        "Slopes that are infinite",
        "Where the slope is infinite and something asks for it, it is infinite.",
        (
            Row("sqrt(x)", (0.0,), (INF,)),
            Row("log(x)", (0.0,), (INF,)),
            Row("cbrt(x)", (0.0,), (INF,), SAME, ABSENT),
            Row("grad(sqrt)(x)", (0.0,), (-INF,)),
            Row("arcsin(x)", (1.0,), (INF,)),
            Row("arccos(x)", (1.0,), (-INF,)),
            Row("arctanh(x)", (1.0,), (INF,)),
            Row("arccosh(x)", (1.0,), (INF,)),
            Row("erf_inv(x)", (1.0,), (INF,)),
        ),
    ),
    "norms_are_flat_at_zero": Group(
        "Lengths at the origin",
        "A norm has a kink there in every direction; 0 is in the middle of its subgradients, and `norm(x) ** 2` comes out right.",
        (
            Row("norm(x)", ([0.0, 0.0],), ([0, 0],), ([NAN, NAN],)),
            Row("norm(x) ** 2", ([0.0, 0.0],), ([0, 0],), ([NAN, NAN],)),
            Row("hypot(x, y)", (0.0, 0.0), (0, 0), (0.5, 0.5), (NAN, NAN)),
            Row("std(x)", ([1.0, 1.0],), ([0, 0],), ([NAN, NAN],)),
            Row("arctan2(x, y)", (0.0, 0.0), (0, 0), (NAN, NAN)),
        ),
    ),
    "hypot_and_logaddexp": Group(
        "Sums of powers and exponentials",
        "No intermediate overflows where the result does not.",
        (
            Row("hypot(x, y)", (3e30, -4e30), (0.6, -0.8), (0.6, -1.25)),
            Row("logaddexp(x, y)", (2.0, 2.0), (0.5, 0.5)),
            Row("logaddexp(x, y)", (100.0, 101.0), (0.26894143, 0.7310586)),
        ),
    ),
    "pow": Group(
        "Powers",
        "`x ** 0` is 1 for every x, so its slope is 0. `0 ** y` is 0 for every y > 0; at y = 0 the slope from the right is taken. The slope by y at a negative x "
        "is not a real number.",
        (
            Row("power(x, y)", (2.0, 0.0), (0, 0.6931472)),
            Row("power(x, y)", (0.0, 0.0), (0, 0), (NAN, 0)),
            Row("power(x, y)", (0.0, 2.0), (0, 0)),
            Row("power(x, y)", (-2.0, 3.0), (12, NAN)),
        ),
    ),
    "rem_and_mod": Group(
        "Remainders",
        "x - y * trunc(x / y), or floor for `mod`, with the quotient held fixed.",
        (
            Row("fmod(x, y)", (-5.0, 3.0), (1, 1)),
            Row("fmod(x, y)", (7.0, 3.0), (1, -2)),
            Row("mod(x, y)", (-5.0, 3.0), (1, 2)),
        ),
    ),
    "prod_with_zeros": Group(
        "Products with zeros",
        "The product of the others, never a division.",
        (
            Row("prod(x)", ([2.0, 0.0, 3.0, 4.0],), ([0, 24, 0, 0],)),
            Row("prod(x)", ([0.0, 0.0, 3.0],), ([0, 0, 0],)),
            Row("cumprod(x)", ([1.0, 2.0, 0.0, 3.0],), ([3, 1, 8, 0],)),
        ),
    ),
    "rows_of_minus_infinity": Group(
        "Rows of -inf",
        "What is masked out completely takes no cotangent.",
        (
            Row("logsumexp(x)", ([-INF, -INF],), ([0, 0],), ([NAN, NAN],), ([NAN, NAN],)),
            Row("softmax(x)", ([-INF, -INF],), ([0, 0],), ([NAN, NAN],), ([NAN, NAN],)),
        ),
    ),
    "gather_with_duplicates_and_clamping": Group(
        "Reading by index",
        "Every read adds to the cotangent of what it read, in f32 and rounded once. An index beyond the end reads the last element, which takes the cotangent.",
        (
            Row("take(x, [1, 1, 9])", ([0.0, 1.0, 2.0, 3.0],), ([0, 2, 0, 1],), ([0, 2, 0, 0],), ERROR),
            Row("take(x, [0] * 512)", ([1.0, 1.0],), ([512, 0],), ([256, 0],), ([256, 0],), dtype="bfloat16"),
        ),
    ),
    "sorted_cotangents_go_home": Group(
        "Order",
        "Sorting moves numbers; cotangents move back. Ties keep their order.",
        (
            Row("sort(x) * y", ([3.0, 1.0, 3.0, 2.0], [1.0, 10.0, 100.0, 1000.0]), ([100, 1, 1000, 10], [1, 2, 3, 3])),
            Row("top_k(x, 2)[0] * y", ([3.0, 1.0, 3.0, 2.0], [1.0, 10.0]), ([1, 0, 10, 0], [3, 3])),
        ),
    ),
    "max_pool_goes_to_the_first": Group(
        "Pooling",
        "One position of a window takes its cotangent, the first of a tie.",
        (Row("max_pool(x, 2)", ([1.0, 1.0, 0.0, 2.0],), ([1, 0, 0, 1],)),),
    ),
    "updates_that_lose_take_nothing": Group(
        "Writing by index",
        "What was overwritten takes nothing; of two values for one place, the last won.",
        (
            Row("set_at(x, [1, 1, 0], y)", ([0.0, 0.0, 0.0], [5.0, 6.0, 7.0]), ([0, 0, 1], [0, 1, 1]), SAME, ([0, 0, 1], [1, 1, 1])),
            Row("dynamic_update_slice(x, y, 5)", ([0.0, 0.0, 0.0], [1.0, 1.0]), ([1, 0, 0], [1, 1]), SAME, ABSENT),
        ),
    ),
    "casts_through_integers_stop": Group(
        "Through integers",
        "An integer does not move when its source moves a little.",
        (Row("to_float(to_int(x))", (2.5,), (0,)),),
    ),
    "zero_trip_loop_is_the_identity": Group(
        "Loops without a trip",
        "The carried value passes through, and so does its cotangent.",
        (Row("fori_loop(0, 0, lambda i, s: 0 * s, x)", (3.0,), (1,), SAME, ABSENT),),
    ),
    "complex_derivatives": Group(
        "Complex numbers",
        "The transpose without conjugation, as `jax.vjp`: the pairing is Re(sum(w * v)). torch returns the conjugate of the same number.",
        (
            Row("real(x * y)", (3 + 4j, 2 - 1j), (2 - 1j, 3 + 4j), SAME, (2 + 1j, 3 - 4j), dtype="complex64"),
            Row("abs(x)", (3 + 4j,), (0.6 - 0.8j,), SAME, (0.6 + 0.8j,), dtype="complex64"),
            Row("abs(x)", (0j,), (0,), dtype="complex64"),
        ),
    ),
}
