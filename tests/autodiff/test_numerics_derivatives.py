"""docs/numerics.md, "Derivatives": one test per row, run by the reference evaluator and compiled at every setting."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import gradir as gd
from gradir.autodiff.registry import VJP, load_rules
from gradir.dialects import nd
from tests.autodiff.conventions import GROUPS, Row
from tests.autodiff.other_frameworks import array, here
from tests.frontends.numerics_settings import SETTINGS, run_function

INF = np.inf
Table = Callable[[str], None]


@pytest.fixture(params=SETTINGS)
def setting(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def gradient(setting: str) -> Callable[..., Any]:
    """gradient(f, *args, argnums=0): df/dargs of the sum of a function."""

    def take(f: Callable[..., Any], *args: Any, argnums: Any = 0) -> Any:
        arrays = [np.asarray(a, np.float32) if not isinstance(a, np.ndarray) else a for a in args]
        derivative = gd.grad(lambda *xs: gd.sum(f(*xs)), argnums)
        if setting == "evaluated":
            with gd.eager():
                return gd.tree_map(np.asarray, derivative(*arrays))
        compiled = gd.jit(derivative, optimize=int(setting[-1]), cache=False)
        return gd.tree_map(np.asarray, compiled(*arrays))

    return take


@pytest.fixture
def table(setting: str) -> Table:
    """table(name): the rows of a group of `conventions.py` come out as they say, all in one program."""

    def check(name: str) -> None:
        rows, names = GROUPS[name].rows, here()
        inputs = [row.arguments(array) for row in rows]

        def gradients(*flat: Any) -> Any:
            given = iter(flat)
            return [gd.grad(total(row), tuple(range(len(row.at))))(*(next(given) for _ in row.at)) for row in rows]

        def total(row: Row) -> Callable[..., Any]:
            return lambda *xs: gd.real(gd.sum(row.call(names, *xs)))

        for row, found in zip(rows, run_function(setting, gradients, *(x for xs in inputs for x in xs))):
            for x, value in zip(found, row.here, strict=True):
                wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
                np.testing.assert_allclose(wide, value, rtol=1e-6, err_msg=f"{row.function} at {row.at}")

    return check


@pytest.mark.parametrize("name", ["norms_are_flat_at_zero", "sorted_cotangents_go_home", "complex_derivatives"])
def test_rows_whose_other_tests_are_with_those_of_indexing(table: Table, name: str) -> None:
    table(name)


def test_where_does_not_poison(table: Table) -> None:
    table("where_does_not_poison")


def test_strong_zero(table: Table) -> None:
    table("strong_zero")


def test_kinks_are_flat(table: Table, gradient: Any) -> None:
    table("kinks_are_flat")
    assert gradient(gd.round_away, 0.0) == 0


def test_a_tie_is_shared(table: Table) -> None:
    table("a_tie_is_shared")


def test_clamp(table: Table) -> None:
    table("clamp")


def test_reduce_max_shares_ties(table: Table) -> None:
    table("reduce_max_shares_ties")


def test_infinite_slopes(table: Table, gradient: Any) -> None:
    table("infinite_slopes")
    both = lambda x: gd.arcsin(x) - gd.arccos(x) + gd.arctanh(x) + gd.erf_inv(x)
    assert gradient(both, -1.0) == INF


def test_a_cube_root_of_a_cube_pays_the_price(gradient: Any) -> None:
    assert gradient(lambda x: gd.cbrt(x * x * x), 0.0) == 0


def test_hypot_and_logaddexp(table: Table, gradient: Any) -> None:
    table("hypot_and_logaddexp")
    np.testing.assert_allclose(gradient(gd.hypot, 1.0, 1.0, argnums=(0, 1)), (0.5**0.5, 0.5**0.5), rtol=1e-6)


def test_slopes_of_large_arguments(gradient: Any) -> None:
    np.testing.assert_allclose(gradient(gd.arcsinh, [3e30, -4e30]), [1 / 3e30, 1 / 4e30], rtol=1e-6)
    np.testing.assert_array_equal(gradient(gd.arctan, [3e30, -INF]), [0, 0])


def test_atan2_at_the_origin(gradient: Any) -> None:
    assert gradient(gd.arctan2, 0.0, 0.0, argnums=(0, 1)) == (0, 0)
    a, b = gradient(gd.arctan2, 3e30, 4e30, argnums=(0, 1))
    np.testing.assert_allclose([a, b], [0.16e-30, -0.12e-30], rtol=1e-5)


def test_pow(table: Table, gradient: Any) -> None:
    table("pow")
    for x in (-1.0, 0.0):
        assert gradient(gd.power, x, 0.0) == 0
    assert gradient(gd.power, 0.0, -1.0, argnums=1) == -INF
    assert gradient(lambda x: gd.grad(lambda t: gd.power(t, np.float32(1)))(x), 3.0) == 0


def test_rem_and_mod(table: Table) -> None:
    table("rem_and_mod")


def test_prod_with_zeros(table: Table) -> None:
    table("prod_with_zeros")


def test_cumulative_product_with_zeros(gradient: Any) -> None:
    np.testing.assert_array_equal(gradient(lambda x: gd.cumprod(x, 0, True, True), [1.0, 2.0, 0.0, 3.0]), [0, 0, 9, 1])


def test_cumulative_extrema_go_to_the_first(table: Table, gradient: Any) -> None:
    table("cumulative_extrema_go_to_the_first")
    weights = np.array([1, 10, 100, 1000], np.float32)
    weigh = lambda scan, *more: lambda x: scan(x, 0, *more) * weights
    np.testing.assert_array_equal(gradient(weigh(gd.cummax, True), [1.0, 3.0, 3.0, 2.0]), [0, 0, 111, 1000])
    np.testing.assert_array_equal(gradient(weigh(gd.cummax, False, True), [-INF, 3.0, 3.0, 2.0]), [10, 1100, 0, 0])
    np.testing.assert_array_equal(gradient(weigh(gd.cummin), [1.0, np.nan, 0.0, np.nan]), [1, 1110, 0, 0])


def test_rows_of_minus_infinity(table: Table) -> None:
    table("rows_of_minus_infinity")


def test_gather_with_duplicates_and_clamping(table: Table) -> None:
    table("gather_with_duplicates_and_clamping")


def test_gather_of_bf16_sums_in_f32(gradient: Any) -> None:
    rows = np.ones((2, 1), ml_dtypes.bfloat16)
    out = gradient(lambda t: gd.take(t, np.zeros(512, np.int32)).astype(np.float32), rows)
    assert out.astype(np.float32)[0, 0] == 512


def test_updates_that_lose_take_nothing(table: Table) -> None:
    table("updates_that_lose_take_nothing")


def test_max_pool_goes_to_the_first(table: Table) -> None:
    table("max_pool_goes_to_the_first")


def test_casts_through_integers_stop(table: Table) -> None:
    table("casts_through_integers_stop")


def test_zero_trip_loop_is_the_identity(table: Table) -> None:
    table("zero_trip_loop_is_the_identity")


def test_without_a_trip_a_value_that_the_body_replaces_passes_on(gradient: Any) -> None:
    f = lambda x, n: gd.sin(gd.fori_loop(2, n, lambda i, s: gd.full((), 2.0, np.float32), x))
    for n, expected in ((1, np.cos(0.3)), (2, np.cos(0.3)), (3, 0)):
        np.testing.assert_allclose(gradient(f, 0.3, np.asarray(n, np.int32)), expected, rtol=1e-6)


def test_branch_in_a_loop(gradient: Any) -> None:
    """Loop + cond, 130 trips, odd trips *1.001."""
    step = lambda i, s: gd.cond(i % 2 == 1, lambda s: s * 1.001, lambda s: s, s)
    np.testing.assert_allclose(gradient(lambda x: gd.fori_loop(0, 130, step, x), 1.0), 1.001**65, rtol=1e-5)


def test_loop_index_in_the_body(gradient: Any) -> None:
    """X = a*ones(4); for t = 1..20: X = a*X + .1; l += t*sum(X)."""

    def loss(a: Any) -> Any:
        def step(t: Any, state: Any) -> Any:
            x, total = state
            x = a * x + 0.1
            return x, total + t.astype(np.float32) * gd.sum(x)

        return gd.fori_loop(1, 21, step, (a * np.ones(4, np.float32), np.float32(0)))[1]

    np.testing.assert_allclose(gradient(loss, 0.5), 355.198837, rtol=1e-5)


def test_dynamic_trip_count(gradient: Any) -> None:
    f = lambda x, n: gd.fori_loop(0, n, lambda i, s: s * x, np.float32(1))
    for n in (0, 1, 5):
        out = gradient(lambda x, n: f(x, n), 1.5, np.asarray(n, np.int32))
        np.testing.assert_allclose(out, n * 1.5 ** (n - 1) if n else 0, rtol=1e-5)


def test_stop_gradient(gradient: Any) -> None:
    assert gradient(lambda x: x * gd.stop_gradient(x), 3.0) == 3


def test_ties_are_counted_in_integers(gradient: Any) -> None:
    """70000 is infinite in f16: the number of ties is an integer."""
    out = gradient(lambda x: gd.max(x).astype(np.float32), np.ones(70000, np.float16))
    np.testing.assert_array_equal(out, np.full(70000, 1 / 70000, np.float16))


def test_casts_and_broadcasts(gradient: Any) -> None:
    x = np.array([1, 2], np.float16)
    out = gradient(lambda x: x.astype(np.float64) * 3.0, x)
    assert out.dtype == np.float16
    np.testing.assert_array_equal(out, [3, 3])
    one = np.ones((), ml_dtypes.bfloat16)
    assert gradient(lambda x: gd.broadcast_to(x, (512,)).astype(np.float32), one).astype(np.float32) == 512


def test_cotangents_of_loops_add_in_f32(gradient: Any) -> None:
    """512 additions of 1 stop at 256 in bf16."""
    w = np.ones((), ml_dtypes.bfloat16)
    f = lambda w: gd.fori_loop(0, 512, lambda i, s: s + w.astype(np.float32), np.float32(0))
    assert gradient(f, w).astype(np.float32) == 512


def test_integers_have_no_derivative(gradient: Any) -> None:
    k = np.array([3, 4], np.int32)
    with pytest.raises((gd.GradirError, TypeError), match=r"int|i32"):
        gradient(lambda k: k * 1.0, k)
    np.testing.assert_array_equal(gradient(lambda x, k: x * k.astype(np.float32), [1.0, 2.0], k), [3, 4])


def test_numerics_an_op_without_a_rule_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither mode guesses: the error names op, line and request."""
    load_rules()
    monkeypatch.delitem(VJP, nd.SinOp)
    for request in (gd.grad(gd.sin), lambda x: gd.jvp(gd.sin, (x,), (x,))):
        with pytest.raises(gd.GradirError, match=r"AD001.*nd.sin(.|\n)*ad\.(value_and_grad|jvp) @"):
            gd.jit(request, cache=False)(np.float32(1))
