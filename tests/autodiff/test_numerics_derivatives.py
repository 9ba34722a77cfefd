"""docs/numerics.md, "Derivatives": one test per row, run by the reference evaluator and compiled at every setting."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import gradir as gd
from gradir.autodiff.registry import VJP, load_rules
from gradir.dialects import nd

INF = np.inf


@pytest.fixture(params=["evaluated", "optimize=0", "optimize=1", "optimize=2"])
def gradient(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """gradient(f, *args, argnums=0): df/dargs of the sum of a function."""

    def take(f: Callable[..., Any], *args: Any, argnums: Any = 0) -> Any:
        arrays = [np.asarray(a, np.float32) if not isinstance(a, np.ndarray) else a for a in args]
        derivative = gd.grad(lambda *xs: gd.sum(f(*xs)), argnums)
        if request.param == "evaluated":
            with gd.eager():
                return gd.tree_map(np.asarray, derivative(*arrays))
        compiled = gd.jit(derivative, optimize=int(request.param[-1]), cache=False)
        return gd.tree_map(np.asarray, compiled(*arrays))

    return take


def test_where_does_not_poison(gradient: Any) -> None:
    f = lambda x: gd.where(x < 1, x, gd.sqrt(x))
    assert gradient(f, 0.0) == 1
    np.testing.assert_array_equal(gradient(f, [-1.0, -4.0]), [1, 1])


def test_strong_zero(gradient: Any) -> None:
    assert gradient(lambda x: 0.0 * gd.sqrt(x), 0.0) == 0
    assert gradient(lambda x: gd.sqrt(x * x), 0.0) == 0


@pytest.mark.parametrize("f", [gd.relu, gd.abs, gd.sign, gd.floor, gd.ceil, gd.round, gd.round_away, gd.trunc])
def test_kinks_are_flat(gradient: Any, f: Any) -> None:
    assert gradient(f, 0.0) == 0


def test_a_tie_is_shared(gradient: Any) -> None:
    for f in (gd.maximum, gd.minimum):
        a, b = gradient(f, 2.0, 2.0, argnums=(0, 1))
        assert (a, b) == (0.5, 0.5)
        a, b = gradient(f, np.nan, 2.0, argnums=(0, 1))
        assert (a, b) == (1, 0)


def test_clamp(gradient: Any) -> None:
    f = lambda x, lo, hi: gd.clip(x, lo, hi)
    cases = {
        (0.5, 0, 1): (1, 0, 0),
        (0, 0, 1): (1, 0, 0),
        (1, 0, 1): (1, 0, 0),
        (-1, 0, 1): (0, 1, 0),
        (2, 0, 1): (0, 0, 1),
        (0.5, 2, 1): (0, 0, 1),
    }
    for at, expected in cases.items():
        assert gradient(f, *map(float, at), argnums=(0, 1, 2)) == expected, at


def test_reduce_max_shares_ties(gradient: Any) -> None:
    np.testing.assert_array_equal(gradient(gd.max, [1.0, 3.0, 3.0]), [0, 0.5, 0.5])
    np.testing.assert_array_equal(gradient(gd.min, [1.0, np.nan, 3.0]), [0, 1, 0])


def test_infinite_slopes(gradient: Any) -> None:
    assert gradient(gd.sqrt, 0.0) == INF
    assert gradient(gd.log, 0.0) == INF
    assert gradient(lambda x: gd.grad(gd.sqrt)(x), 0.0) == -INF
    assert gradient(gd.cbrt, 0.0) == INF
    for x in (1.0, -1.0):
        assert (gradient(gd.arcsin, x), gradient(gd.arccos, x), gradient(gd.arctanh, x), gradient(gd.erf_inv, x)) == (INF, -INF, INF, INF)
        assert gradient(lambda x: 0.0 * gd.arcsin(x) + 0.0 * gd.arccos(x) + 0.0 * gd.arctanh(x), x) == 0
    assert gradient(gd.arccosh, 1.0) == INF


def test_a_cube_root_of_a_cube_pays_the_price(gradient: Any) -> None:
    assert gradient(lambda x: gd.cbrt(x * x * x), 0.0) == 0


def test_hypot_and_logaddexp(gradient: Any) -> None:
    assert gradient(gd.hypot, 0.0, 0.0, argnums=(0, 1)) == (0, 0)
    np.testing.assert_allclose(gradient(gd.hypot, 3e30, -4e30, argnums=(0, 1)), (0.6, -0.8), rtol=1e-6)
    np.testing.assert_allclose(gradient(gd.hypot, 1.0, 1.0, argnums=(0, 1)), (0.5**0.5, 0.5**0.5), rtol=1e-6)
    np.testing.assert_allclose(gradient(gd.logaddexp, 2.0, 2.0, argnums=(0, 1)), (0.5, 0.5), rtol=1e-6)
    np.testing.assert_allclose(gradient(gd.logaddexp, 100.0, 101.0, argnums=(0, 1)), (0.26894143, 0.7310586), rtol=1e-6)


def test_slopes_of_large_arguments(gradient: Any) -> None:
    np.testing.assert_allclose(gradient(gd.arcsinh, [3e30, -4e30]), [1 / 3e30, 1 / 4e30], rtol=1e-6)
    np.testing.assert_array_equal(gradient(gd.arctan, [3e30, -INF]), [0, 0])


def test_atan2_at_the_origin(gradient: Any) -> None:
    assert gradient(gd.arctan2, 0.0, 0.0, argnums=(0, 1)) == (0, 0)
    a, b = gradient(gd.arctan2, 3e30, 4e30, argnums=(0, 1))
    np.testing.assert_allclose([a, b], [0.16e-30, -0.12e-30], rtol=1e-5)


def test_pow(gradient: Any) -> None:
    for x in (-1.0, 0.0, 2.0):
        assert gradient(gd.power, x, 0.0) == 0
    assert gradient(gd.power, 0.0, 2.0, argnums=1) == 0
    assert gradient(gd.power, 0.0, 0.0, argnums=1) == 0
    assert gradient(gd.power, 0.0, -1.0, argnums=1) == -INF
    assert gradient(gd.power, -2.0, 3.0) == 12
    assert np.isnan(gradient(gd.power, -2.0, 3.0, argnums=1))
    assert gradient(lambda x: gd.grad(lambda t: gd.power(t, np.float32(1)))(x), 3.0) == 0


def test_rem_and_mod(gradient: Any) -> None:
    assert gradient(gd.fmod, -5.0, 3.0, argnums=(0, 1)) == (1, 1)
    assert gradient(gd.fmod, 7.0, 3.0, argnums=(0, 1)) == (1, -2)
    assert gradient(gd.mod, -5.0, 3.0, argnums=(0, 1)) == (1, 2)


def test_prod_with_zeros(gradient: Any) -> None:
    np.testing.assert_array_equal(gradient(gd.prod, [2.0, 0.0, 3.0, 4.0]), [0, 24, 0, 0])
    np.testing.assert_array_equal(gradient(gd.prod, [0.0, 0.0, 3.0]), [0, 0, 0])


def test_cumulative_product_with_zeros(gradient: Any) -> None:
    np.testing.assert_array_equal(gradient(gd.cumprod, [1.0, 2.0, 0.0, 3.0]), [3, 1, 8, 0])
    np.testing.assert_array_equal(gradient(lambda x: gd.cumprod(x, 0, True, True), [1.0, 2.0, 0.0, 3.0]), [0, 0, 9, 1])


def test_cumulative_extrema_go_to_the_first(gradient: Any) -> None:
    weights = np.array([1, 10, 100, 1000], np.float32)
    weigh = lambda scan, *more: lambda x: scan(x, 0, *more) * weights
    np.testing.assert_array_equal(gradient(weigh(gd.cummax), [1.0, 3.0, 3.0, 2.0]), [1, 1110, 0, 0])
    np.testing.assert_array_equal(gradient(weigh(gd.cummax, True), [1.0, 3.0, 3.0, 2.0]), [0, 0, 111, 1000])
    np.testing.assert_array_equal(gradient(weigh(gd.cummax, False, True), [-INF, 3.0, 3.0, 2.0]), [10, 1100, 0, 0])
    np.testing.assert_array_equal(gradient(weigh(gd.cummin), [1.0, np.nan, 0.0, np.nan]), [1, 1110, 0, 0])


def test_rows_of_minus_infinity(gradient: Any) -> None:
    row = np.full((1, 3), -INF, np.float32)
    np.testing.assert_array_equal(gradient(gd.logsumexp, row), np.zeros((1, 3)))
    np.testing.assert_array_equal(gradient(gd.softmax, row), np.zeros((1, 3)))


def test_gather_with_duplicates_and_clamping(gradient: Any) -> None:
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(gradient(lambda x: gd.take(x, np.array([1, 1, 9], np.int32)), x), [0, 2, 0, 1])


def test_gather_of_bf16_sums_in_f32(gradient: Any) -> None:
    table = np.ones((2, 1), ml_dtypes.bfloat16)
    out = gradient(lambda t: gd.take(t, np.zeros(512, np.int32)).astype(np.float32), table)
    assert out.astype(np.float32)[0, 0] == 512


def test_updates_that_lose_take_nothing(gradient: Any) -> None:
    x, u = np.zeros(3, np.float32), np.ones(2, np.float32)
    a, b = gradient(lambda x, u: gd.dynamic_update_slice(x, u, [np.int32(5)]), x, u, argnums=(0, 1))
    np.testing.assert_array_equal(a, [1, 0, 0])
    np.testing.assert_array_equal(b, [1, 1])


def test_max_pool_goes_to_the_first(gradient: Any) -> None:
    x = np.array([1, 1, 0, 2], np.float32).reshape(1, 4, 1)
    np.testing.assert_array_equal(gradient(lambda x: gd.max_pool(x, 2), x).ravel(), [1, 0, 0, 1])


def test_casts_through_integers_stop(gradient: Any) -> None:
    assert gradient(lambda x: x.astype(np.int32).astype(np.float32), 2.5) == 0


def test_zero_trip_loop_is_the_identity(gradient: Any) -> None:
    assert gradient(lambda x: gd.fori_loop(0, 0, lambda i, s: s * 0.0, x), 3.0) == 1


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
