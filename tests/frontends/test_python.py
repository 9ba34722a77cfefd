"""The Python frontend means what numpy means; evaluated op by op, so that a mistake here is the frontend's."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import gradir as gd
from gradir.errors import CODES, GradirError
from gradir.frontends.python.promotion import promote, with_scalar
from gradir.ir.text import print_module


@pytest.fixture
def eager() -> Iterator[None]:
    with gd.eager():
        yield


def value(x: Any) -> np.ndarray:
    return np.asarray(x)


A = np.arange(-12, 12, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize(
    "index",
    [
        0, -1, (1, 2), (slice(None), 1), (slice(1, None), slice(None, None, 2)), (slice(None), slice(9, 0, -1)), (slice(None), slice(5, 5)),
        (..., 0), (None, 1, ..., None), (0, slice(None, None, -2)), (slice(None), np.array([2, 0, -1])), (slice(None), [[0, 1], [2, 2]], 1),
        (slice(0, 5, -1),), np.int64(1),
    ],
    ids=str,
)  # fmt: skip
def test_indexing_is_numpys(index: Any, eager: None) -> None:
    np.testing.assert_array_equal(value(gd.asarray(A)[index]), A[index])


def test_run_time_index_wraps_and_clamps(eager: None) -> None:
    x = gd.asarray(A)
    for k, expected in ((1, 1), (-1, -1), (7, 1), (-9, 0)):
        np.testing.assert_array_equal(value(x[gd.asarray(np.int32(k))]), A[expected])
    np.testing.assert_array_equal(value(x[:, gd.asarray(np.int8(-2)), 1:]), A[:, -2, 1:])


BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "maximum": np.maximum, "minimum": np.minimum,
    "floor_divide": np.floor_divide, "mod": np.mod, "fmod": np.fmod, "arctan2": np.arctan2,
}  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
def test_binary_functions_broadcast(name: str, eager: None) -> None:
    x, y = A, np.array([[3.0], [-2.5], [0.75]], np.float32)
    np.testing.assert_allclose(value(getattr(gd, name)(x, y)), BINARY[name](x, y), rtol=2e-6, atol=1e-6)


def test_floor_division_is_exact(eager: None) -> None:
    assert float(gd.floor_divide(np.float32(1), np.float32(0.1))) == 9
    a, b = np.array([-7, 7, -7, 7], np.int32), np.array([2, -2, -2, 2], np.int32)
    np.testing.assert_array_equal(value(gd.asarray(a) // b), a // b)
    np.testing.assert_array_equal(value(gd.asarray(a) % b), a % b)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "var", "any", "all"])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions(name: str, axis: Any, keepdims: bool, eager: None) -> None:
    x = A / 8
    expected = getattr(np, name)(x, axis=axis, keepdims=keepdims)
    np.testing.assert_allclose(value(getattr(gd, name)(x, axis, keepdims)), expected, rtol=1e-5, atol=1e-6)


def test_arguments_of_extrema(eager: None) -> None:
    x = np.array([[1, np.nan, 3], [2, 2, 0]], np.float32)
    np.testing.assert_array_equal(value(gd.argmax(x, 1)), [1, 0])
    np.testing.assert_array_equal(value(gd.argmin(x, -1)), [1, 2])
    assert int(gd.argmax(A)) == 23


def test_shapes(eager: None) -> None:
    x = gd.asarray(A)
    np.testing.assert_array_equal(value(x.T), A.T)
    np.testing.assert_array_equal(value(x.reshape(4, -1)), A.reshape(4, -1))
    np.testing.assert_array_equal(value(gd.swapaxes(x, 0, -1)), np.swapaxes(A, 0, -1))
    np.testing.assert_array_equal(value(gd.stack([x, x], 1)), np.stack([A, A], 1))
    np.testing.assert_array_equal(value(gd.concatenate([A, A[:, :1]], 1)), np.concatenate([A, A[:, :1]], 1))
    np.testing.assert_array_equal(value(gd.pad(x, 1, 7)), np.pad(A, 1, constant_values=7))
    np.testing.assert_array_equal(value(gd.flip(x, (0, 2))), np.flip(A, (0, 2)))
    for mine, theirs in zip(gd.split(x, 2, 2), np.split(A, 2, 2)):
        np.testing.assert_array_equal(value(mine), theirs)
    np.testing.assert_array_equal(value(gd.one_hot(np.array([2, 0, 5]), 3)), [[0, 0, 1], [1, 0, 0], [0, 0, 0]])


@pytest.mark.parametrize(
    ("left", "right"),
    [((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 2)), ((3, 4), (4, 2)), ((5, 3, 4), (4, 2)), ((2, 1, 3, 4), (5, 4, 2)), ((4,), (5, 4, 2))],
)
def test_matmul(left: tuple[int, ...], right: tuple[int, ...], eager: None) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal(left), rng.standard_normal(right)
    np.testing.assert_allclose(value(gd.asarray(x) @ y), x @ y, rtol=1e-12)


def test_promotion() -> None:
    f16, bf16, f32, f64 = (np.dtype(d) for d in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64))
    i8, i32, i64, u8, u32, b = (np.dtype(d) for d in (np.int8, np.int32, np.int64, np.uint8, np.uint32, np.bool_))
    table = {
        (f16, bf16): f32,
        (f16, f32): f32,
        (f32, f64): f64,
        (i32, f16): f16,
        (b, i8): i8,
        (i8, u8): np.dtype(np.int16),
        (u32, i8): i64,
        (i8, i32): i32,
    }
    for (x, y), expected in table.items():
        assert promote(x, y) == promote(y, x) == expected
    assert with_scalar(f16, 2.5) == f16
    assert with_scalar(i8, 2) == i8
    assert with_scalar(i32, 2.5) == f32
    assert with_scalar(b, 1) == i32


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass
class Box:
    inner: Any
    scale: Any


def test_containers_go_in_and_out(eager: None) -> None:
    @gd.jit
    def f(tree: Any, *, k: Any) -> Any:
        return {"b": tree["b"].inner * k, "a": [tree["a"].right, None], "c": Box(tree["a"].left, tree["b"].scale)}

    out = f({"a": Pair(np.float32(1), np.arange(2)), "b": Box(A, 3)}, k=2.0)
    np.testing.assert_array_equal(out["b"], A * 2)
    assert out["a"][1] is None and isinstance(out["c"], Box)
    assert out["c"].scale == 3 and out["c"].scale.dtype == np.int32


def test_dictionaries_with_keys_of_several_types(eager: None) -> None:
    f = gd.jit(lambda tree: gd.tree_map(lambda x: x + 1, tree))
    assert f({"a": 2.0, 1: 1.0}) == f({1: 1.0, "a": 2.0}) == {1: 2.0, "a": 3.0}


def test_a_compiled_program_shows_its_names_and_types() -> None:
    program = gd.compile(lambda tree: tree["w"] * 2, {"w": np.ones(3, np.float32)}, cache=False)
    assert repr(program) == "Compiled(name='_lambda_', module=<gradir module: <gradir function @_lambda_(tree_w: 3xf32) -> (3xf32)>>)"


def test_tree_map_wants_the_structure_of_the_first_tree() -> None:
    assert gd.tree_map(lambda x, y: x - y, {"a": [3, None], "b": 4}, {"b": 1, "a": [2, None]}) == {"a": [1, None], "b": 3}
    assert gd.tree_map(lambda x, pair: x + pair[1], Box(1, [2]), Box((5, 6), [(7, 8)])) == Box(7, [10])
    for tree, other in (({"a": 1}, {"b": 1}), ([1, 2], [1]), ([1], (1,)), ([None], [1]), (Pair(1, 2), Pair(1, None)[:1])):
        with pytest.raises(gd.GradirError, match="the trees have different structures") as caught:
            gd.tree_map(lambda x, y: x, tree, other)
        assert caught.value.code == "GR107"


def test_eager_runs_python(eager: None, capsys: pytest.CaptureFixture[str]) -> None:
    @gd.jit
    def f(x: Any) -> Any:
        print("x is", float(x))
        return x * 2 if x > 0 else x - 1

    assert f(3.0) == 6 and f(-3.0) == -4
    assert capsys.readouterr().out == "x is 3.0\nx is -3.0\n"


def test_eager_gradient_of_a_python_branch(eager: None) -> None:
    def f(x: Any) -> Any:
        for _ in range(int(x)):
            x = x * x
        return x if x > 1 else -x

    assert float(gd.grad(f)(np.float32(2))) == 32
    assert float(gd.grad(f)(np.float32(0.5))) == -1
    assert float(gd.grad(gd.grad(lambda x: x**3))(np.float32(2))) == 12


def test_ops_carry_the_users_line() -> None:
    def model(x: Any) -> Any:
        y = gd.exp(x)
        return y + 1

    text = print_module(gd.jit(model).lower(A), debuginfo=True)
    first = model.__code__.co_firstlineno
    assert f'test_python.py":{first + 1}:13)' in text
    assert f'test_python.py":{first + 2}:16)' in text
    assert "loc(unknown)" not in text.replace("} loc(unknown)", "")


def test_control_flow_does_not_unroll() -> None:
    def f(n: int) -> str:
        return print_module(gd.jit(lambda x: gd.fori_loop(0, n, lambda i, s: gd.sin(s) + i, x)).lower(A))

    assert len(f(10)) == len(f(99))
    assert "scf.for" in f(10) and f(10).count("nd.sin") == 1


def test_nested_jit_is_one_function() -> None:
    inner = gd.jit(lambda x: gd.tanh(x) * 2)
    text = print_module(gd.jit(lambda x: inner(inner(inner(x)))).lower(A))
    assert text.count("func.call") == 3 and text.count("nd.tanh") == 1


def test_closures_over_traced_arrays_become_arguments() -> None:
    def f(x: Any, y: Any) -> Any:
        return gd.grad(lambda w: gd.sum(w * y))(x)

    module = gd.jit(f).lower(A, A)
    assert "wrt [0]" in print_module(module)
    with gd.eager():
        np.testing.assert_array_equal(gd.jit(f)(A, A), A)


# Errors ------------------------------------------------------------------------------------------------------------


def raised(f: Any, *args: Any) -> GradirError:
    with pytest.raises(GradirError) as caught:
        gd.jit(f).lower(*args)
    error = caught.value
    assert error.part == "graph" and error.code in CODES and "test_python.py" in error.location
    assert error.expected and error.found
    return error


def test_shape_mismatch() -> None:
    error = raised(lambda x, y: x + y, np.ones((2, 3), "f"), np.ones((2, 4), "f"))
    assert error.code == "GR001" and "(2, 3) and (2, 4)" in error.message
    error = raised(lambda x, y: x @ y, np.ones((2, 3), "f"), np.ones((4, 5), "f"))
    assert "lhs dim 1 has 3, rhs dim 0 has 4" in error.message


def test_dtype_mismatch() -> None:
    assert raised(lambda x: x & 1, np.ones(2, "f")).code == "GR002"
    assert raised(lambda x: gd.take(x, np.ones(2, "f")), A).code == "GR002"
    assert raised(lambda x: x + np.array(["a"]), A).code == "GR103"


def test_python_branch_on_a_traced_value() -> None:
    error = raised(lambda x: x if x[0] > 0 else -x, np.ones(2, "f"))
    assert error.code == "GR111"
    for name in ("gradir.cond", "gradir.fori_loop", "gradir.while_loop", "gradir.scan", "gradir.eager()"):
        assert name in error.hint
    assert raised(lambda x: list(range(int(x))), np.float32(2)).code == "GR111"
    assert raised(lambda x: np.asarray(x), A).code == "GR111"


def test_loops_keep_their_state() -> None:
    error = raised(lambda x: gd.fori_loop(0, 3, lambda i, s: gd.sum(s), x), A)
    assert error.code == "GR107" and "tensor<2x3x4xf32>" in error.expected
    assert not error.hint
    assert "write float(np.sqrt(2))" in raised(lambda x: gd.fori_loop(0, 3, lambda i, s: s * np.sqrt(2), x), A).hint
    assert raised(lambda x: gd.cond(x[0] > 0, lambda: x, lambda: (x, x)), np.ones(2, "f")).code == "GR107"
    assert "a list stays a list" in raised(lambda x: gd.fori_loop(0, 3, lambda i, s: (s[0], x), [x, x]), A).hint
    assert raised(lambda x: gd.while_loop(lambda s: s > 0, lambda s: s, x), A).code == "GR106"
    number = raised(lambda x: gd.while_loop(lambda s: gd.sum(s), lambda s: s, x), A)
    assert (number.code, number.found) == ("GR106", "float32")
    with pytest.raises(GradirError, match=r"GR106.* no truth value"):
        gd.while_loop(lambda s: s - 1.0, lambda s: s, 3.0)


def discounted(x: Any, length: int | None = None) -> Any:
    """Sums of what follows, each step counting half, and the position that each was made at."""
    step = lambda c, v: ((c[0] * 0.5 + v, c[1] + 1), (c[0] * 0.5 + v, c[1]))
    return gd.scan(step, (gd.zeros(x.shape[1:]), 0), x, length, reverse=True)


@pytest.mark.parametrize("n", [0, 1, 4])
def test_scan_from_the_end(n: int) -> None:
    x = np.arange(3.0 * n, dtype=np.float32).reshape(n, 3)
    expected = np.zeros((n + 1, 3), np.float32)
    for k in reversed(range(n)):
        expected[k] = expected[k + 1] * 0.5 + x[k]
    run = gd.jit(discounted, dynamic={"x": ("n", 3)}, cache=False)
    for (last, count), (sums, places) in (run(x), gd.jit(discounted, cache=False)(x)):
        np.testing.assert_array_equal(last, expected[0])
        np.testing.assert_array_equal(sums, expected[:-1])
        assert int(count) == n and np.asarray(places).tolist() == [*range(n)][::-1]
    loss = lambda x: gd.sum(discounted(x)[1][0])
    slope = gd.jit(gd.grad(loss), cache=False)(x)
    np.testing.assert_allclose(slope, np.repeat(2 - 0.5 ** np.arange(n), 3).reshape(n, 3), rtol=1e-6)
    if n:
        with gd.eager():
            (last, _), (sums, places) = discounted(gd.asarray(x))
        np.testing.assert_array_equal(np.asarray(last), expected[0])
        np.testing.assert_array_equal(np.asarray(sums), expected[:-1])
        assert np.asarray(places).tolist() == [*range(n)][::-1]


def test_only_modules_are_evaluated() -> None:
    for compiled in (lambda: gd.jit(gd.tanh, target="reference"), lambda: gd.compile(gd.tanh, A, target="reference")):
        with pytest.raises(GradirError, match="take its module") as caught:
            compiled()
        assert (caught.value.part, caught.value.code) == ("operator", "OP041")
    module = gd.jit(gd.tanh).lower(A)
    np.testing.assert_allclose(gd.compile(module, target="reference")["tanh"](A), np.tanh(A), rtol=1e-6)


def test_conditions_are_scalars_in_eager_mode_too() -> None:
    """They were errors of numpy."""
    for f in (
        lambda x: gd.cond(x > 0, lambda: x, lambda: -x),
        lambda x: gd.while_loop(lambda s: s > 0, lambda s: s - 1, x),
        lambda x: gd.value_and_grad(lambda y: gd.sum(gd.cond(y > 0, lambda: y, lambda: -y)))(x),
    ):
        with gd.eager(), pytest.raises(GradirError) as caught:
            f(gd.asarray(np.ones(2, np.float32)))
        assert caught.value.code == "GR106" and caught.value.found in ("an array of shape [2]", "tensor<2xi1>")
    with gd.eager():
        assert float(gd.cond(np.float32(1) > 0, lambda: np.float32(2), lambda: np.float32(3))) == 2


def test_bad_axes_and_indices() -> None:
    for f in (
        lambda x: gd.sum(x, 3),
        lambda x: x[2],
        lambda x: x[0, 0, 0, 0],
        lambda x: gd.transpose(x, (0, 0, 1)),
        lambda x: gd.max(x[:0]),
    ):
        assert raised(f, A).code == "GR104"
    assert raised(lambda x: gd.conv(x, A, padding="HALF"), A).code in ("GR001", "GR105")


def test_gradients_ask_for_a_real_scalar() -> None:
    assert raised(gd.grad(lambda x: x), A).code == "GR108"
    assert raised(gd.grad(lambda x: gd.sum(x)), np.ones(3, np.int32)).code == "GR109"
    assert raised(gd.grad(lambda x: gd.sum(x), 4), A).code == "GR104"


def test_an_array_that_escaped() -> None:
    kept: list[Any] = []
    gd.jit(lambda x: kept.append(gd.exp(x)) or x).lower(A)
    assert raised(lambda x: x + kept[0], A).code == "GR110"
    with pytest.raises(GradirError, match="return it from the traced function"):
        kept[0] + 1
    assert "gradir.dynamic_slice" in raised(lambda x, k: x[k : k + 1], A, np.int32(0)).hint


def test_packing_builds_what_was_flattened() -> None:
    from gradir.frontends.python.packing import packer
    from gradir.frontends.python.pytrees import flatten

    tree = {"b": [A, None], "a": Pair(1.5, Box(np.float32(2), (A[0],)))}
    leaves, structure = flatten(tree)
    again = packer(structure)(leaves)
    assert flatten(again)[1] == structure and all(x is y for x, y in zip(flatten(again)[0], leaves, strict=True))
