"""`donate=`: results in the memory of arguments, with the numbers of the program that keeps them; what is refused, copied, reported."""

from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.errors import GradirError
from gradir.runtime import Buffer
from gradir.runtime.certificate import measure
from tests.cpu.random_programs import ARGUMENTS, program

RNG = np.random.default_rng(0)


def array(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def train(params: Any, x: Any, y: Any) -> Any:
    def loss(p: Any) -> Any:
        return gd.mean((gd.tanh(x @ p["w1"]) @ p["w2"] - y) ** 2)

    value, gradients = gd.value_and_grad(loss)(params)
    return value, {k: params[k] - 0.1 * gradients[k] for k in params}


def data() -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    return {"w1": array(32, 64), "w2": array(64, 8)}, array(16, 32), array(16, 8)


def copies(tree: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {k: v.copy() for k, v in tree.items()}


def test_a_training_step_updates_parameters_in_place() -> None:
    params, x, y = data()
    kept, given = copies(params), copies(params)
    plain, step = gd.jit(train, cache=False), gd.jit(train, cache=False, donate=("params",))
    for _ in range(3):
        value, kept = plain(kept, x, y)
        same, new = step(given, x, y)
        assert value == same and all(new[k] is given[k] and np.array_equal(new[k], kept[k]) for k in kept)
        given = new
    (plan,) = step.programs[0].memory_report().functions
    assert plan.donated == ("params_w1: result 1", "params_w2: result 2")
    assert "donated params_w1: result 1" in str(step.programs[0].memory_report())


def test_positions_names_and_keywords_mean_the_same() -> None:
    def update(a: Any, b: Any, *, state: Any) -> Any:
        return b * 2, a + b + state

    a, b, state = array(6), array(6), array(6)
    for donate, target in (((0,), "a"), (("a",), "a"), (("state",), "state")):
        arguments = {"a": a.copy(), "b": b.copy(), "state": state.copy()}
        first, second = gd.jit(update, cache=False, donate=donate)(arguments["a"], arguments["b"], state=arguments["state"])
        assert any(result is arguments[target] for result in (first, second))
        np.testing.assert_array_equal(first, b * 2)
        np.testing.assert_array_equal(second, a + b + state)


def test_compile_takes_it_too_and_saved_programs_keep_it(tmp_path: Any) -> None:
    compiled = gd.compile(lambda x: x + 1, array(5), cache=False, donate=(0,))
    x = array(5)
    expected = x + 1
    assert compiled(x) is x and np.array_equal(x, expected)
    compiled.save(tmp_path / "f")
    loaded = gd.runtime.load(tmp_path / "f")
    again = loaded[compiled.name](x)
    assert again is x and np.array_equal(x, expected + 1)


def test_a_cache_row_is_written_in_place() -> None:
    step = gd.jit(lambda cache, row, i: gd.dynamic_update_slice(cache, row, (i, 0)), cache=False, donate=(0,))
    cache = np.zeros((8, 4), np.float32)
    for i in range(3):
        cache_after = step(cache, np.full((1, 4), i + 1, np.float32), np.int32(i))
        assert cache_after is cache
    np.testing.assert_array_equal(cache[:, 0], [1, 2, 3, 0, 0, 0, 0, 0])
    compiled = gd.jit(step.function, cache=False, donate=(0,)).compile(cache, array(1, 4), np.int32(0), keep_ir=True)
    assert "memref<8x4xf32> to" not in "".join(line for line in compiled.report.ir["3 buffers"].splitlines() if "memref.copy" in line)


def test_loops_update_a_donated_state() -> None:
    def scatter(table: Any, rows: Any) -> Any:
        return gd.fori_loop(0, 5, lambda i, t: gd.dynamic_update_slice(t, gd.dynamic_slice(rows, (i, 0), (1, 4)) * 2, (i, 0)), table)

    table, rows = array(5, 4), array(5, 4)
    expected = gd.jit(scatter, cache=False)(table.copy(), rows)
    mine = table.copy()
    assert gd.jit(scatter, cache=False, donate=(0,))(mine, rows) is mine
    np.testing.assert_array_equal(mine, expected)


def test_what_cannot_be_overwritten_is_copied() -> None:
    step = gd.jit(lambda x: x * 3, cache=False, donate=(0,))
    frozen = array(4)
    frozen.flags.writeable = False
    before = frozen.copy()
    np.testing.assert_array_equal(step(frozen), before * 3)
    np.testing.assert_array_equal(frozen, before)
    wide = array(4, 2)
    column, expected = wide[:, 0], wide[:, 0] * 3
    np.testing.assert_array_equal(step(column), expected)
    np.testing.assert_array_equal(wide[:, 0] * 3, expected)
    x, out = array(4), np.empty(4, np.float32)
    before = x.copy()
    assert step(x, out=out) is out
    np.testing.assert_array_equal(out, before * 3)
    np.testing.assert_array_equal(x, before)


def test_reports_say_what_could_not_be_reused() -> None:
    def f(a: Any, b: Any, c: Any) -> Any:
        return gd.sum(a), b + 1, b * (b + 1).T

    compiled = gd.compile(f, array(3), array(4, 4), array(4, 4), cache=False, donate=(0, 1, 2))
    (plan,) = compiled.memory_report().functions
    assert plan.donated[0].startswith("a: kept, no result is") and "3xf32" in plan.donated[0]
    assert sum("result" in note.split(":")[1][:8] for note in plan.donated) == 2


def test_memory_that_is_another_argument_too_is_refused() -> None:
    step = gd.jit(lambda x, y: x + gd.sum(y), cache=False, donate=("x",))
    x = array(6)
    with pytest.raises(GradirError, match="'x' is given away and is the memory of 'y' too") as caught:
        step(x, x)
    assert caught.value.code == "RT022"
    with pytest.raises(GradirError) as caught:
        gd.jit(lambda x, y: x[:3] + y, cache=False, donate=("y",))(x, x[3:])
    assert caught.value.code == "RT022"


def test_a_donated_buffer_is_not_used_again() -> None:
    step = gd.jit(lambda x: x + 1, cache=False, donate=(0,))
    buffer = Buffer.from_array(array(4))
    address = buffer.address
    result = step(buffer)
    assert result.ctypes.data == address
    for use in (buffer.numpy, lambda: np.asarray(buffer), buffer.__dlpack__, lambda: step(buffer)):
        with pytest.raises(GradirError, match="was given away") as caught:
            use()
        assert caught.value.code == "RT023" and "argument 'x' of a call of @_lambda_" in caught.value.found


def test_an_argument_that_is_not_there() -> None:
    with pytest.raises(GradirError, match="donate names an argument that f lacks") as caught:

        def f(x: Any) -> Any:
            return x

        gd.jit(f, donate=("y",))
    assert caught.value.code == "GR104"
    for position in (1, -2):
        with pytest.raises(GradirError, match="donate names an argument that <lambda> lacks"):
            gd.jit(lambda x: x, donate=(position,))
    np.testing.assert_array_equal(gd.jit(lambda x, y: x - y, cache=False, donate=(-2,))(np.ones(3), np.ones(3)), np.zeros(3))


def test_measured_memory_is_planned_memory() -> None:
    params, x, y = data()
    compiled = gd.compile(train, params, x, y, cache=False, donate=(0,), threads=1)
    (plan,) = compiled.memory_report().functions
    found = measure(compiled.module[compiled.name], params["w1"], params["w2"], x, y)
    assert found.intact and found.clean and -(-found.arena // 64) * 64 == plan.arena and found.allocated == plan.scratch


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_give_the_same_numbers(seed: int) -> None:
    """Loops, branches, swaps, arguments as results: all arguments given away, bit for bit."""
    choices = np.random.default_rng(seed)
    made = program(lambda n: int(choices.integers(n)))
    inputs = made.inputs(seed)
    function = made.function()
    expected = gd.jit(function, cache=False)(*[np.array(x) for x in inputs])
    found = gd.jit(function, cache=False, donate=tuple(range(len(ARGUMENTS))))(*[np.array(x) for x in inputs])
    many = isinstance(expected, tuple)
    for a, b in zip(expected if many else [expected], found if many else [found], strict=True):
        np.testing.assert_array_equal(a, b)


def test_repeated_calls_with_donated_arrays_need_no_python(monkeypatch: pytest.MonkeyPatch) -> None:
    params, x, y = data()
    plain, step = gd.jit(train, cache=False), gd.jit(train, cache=False, donate=("params",))
    expected = plain(plain(params, x, y)[1], x, y)
    given = step(copies(params), x, y)[1]

    def never(*_: Any) -> Any:
        raise AssertionError("a call in Python")

    monkeypatch.setattr("gradir.runtime.module.take_over", never)
    value, new = step(given, x, y)
    assert value == expected[0] and all(new[k] is given[k] and np.array_equal(new[k], expected[1][k]) for k in new)
    with pytest.raises(AssertionError, match="a call in Python"):  # what cannot be overwritten is looked at again
        step({k: np.asfortranarray(v) for k, v in given.items()}, x, y)
    with pytest.raises(AssertionError, match="a call in Python"):
        step(given, given["w1"].reshape(-1)[:512].reshape(16, 32), y)
