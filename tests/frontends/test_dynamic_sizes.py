"""One program for all sizes: `gradir.Dim`, `jit(dynamic=...)`, `Spec`. Every program runs at sizes 0, 1 and more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.errors import GradirError
from gradir.runtime import load

RNG = np.random.default_rng(0)


def data(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.standard_normal(shape).astype(np.float32)


def softmax(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


ROWS = {"x": ("b", 4)}
PAIRS = {"x": (gd.Dim("b", multiple=2), 4)}


def rows(b: int) -> tuple[np.ndarray[Any, Any], ...]:
    return (data(b, 4),)


W = data(4, 2)

PROGRAMS: dict[str, tuple[Callable[..., Any], dict[str, Any], Callable[[int], tuple[Any, ...]], Callable[..., Any]]] = {
    "matmul": (lambda x: gd.tanh(x @ W), ROWS, rows, lambda x: np.tanh(x @ W)),
    "a size as a number": (lambda x: x.sum(0) / (x.shape[0] + 1), ROWS, rows, lambda x: x.sum(0) / np.float32(len(x) + 1)),
    "softmax": (gd.softmax, ROWS, rows, softmax),
    "one row": (lambda x: x.reshape(-1), ROWS, rows, lambda x: x.reshape(-1)),
    "regrouped": (lambda x: x.reshape(x.shape[0] * 2, 2), ROWS, rows, lambda x: x.reshape(len(x) * 2, 2)),
    "halves": (lambda x: x.reshape(2, -1, 4), PAIRS, lambda b: (data(2 * b, 4),), lambda x: x.reshape(2, len(x) // 2, 4)),
    "split": (lambda x: gd.split(x, 2), PAIRS, lambda b: (data(2 * b, 4),), lambda x: np.split(x, 2)),
    "concatenate": (
        lambda x, y: gd.concatenate([x, y, x]),
        {"x": ("b", 4), "y": ("c", 4)},
        lambda b: (data(b, 4), data(b + 1, 4)),
        lambda x, y: np.concatenate([x, y, x]),
    ),
    "slices": (
        lambda x: (x[1:], x[:-1], x[::2], x[1::3], x[::-1], x[:, 1:3], x[:2], x[-2:], x[2:4], x[:-2:2], x[::-2]),
        ROWS,
        rows,
        lambda x: (x[1:], x[:-1], x[::2], x[1::3], x[::-1], x[:, 1:3], x[:2], x[-2:], x[2:4], x[:-2:2], x[::-2]),
    ),
    "pad": (lambda x: gd.pad(x, ((1, 2), (0, 1))), ROWS, rows, lambda x: np.pad(x, ((1, 2), (0, 1)))),
    "arange": (
        lambda x: (gd.arange(x.shape[0]), gd.arange(1, 2 * x.shape[0], 3)),
        ROWS,
        rows,
        lambda x: (np.arange(len(x), dtype=np.int32), np.arange(1, 2 * len(x), 3, dtype=np.int32)),
    ),
    "full": (lambda x: gd.full((x.shape[0], 2), x.shape[0]), ROWS, rows, lambda x: np.full((len(x), 2), len(x), np.int32)),
    "outer": (lambda x: x[:, None] * x, {"x": ("b",)}, lambda b: (data(b),), lambda x: x[:, None] * x),
    "lower triangle": (gd.tril, {"x": ("b", "b")}, lambda b: (data(b, b),), np.tril),
    "tile": (lambda x: gd.tile(x, (2, 1)), ROWS, rows, lambda x: np.tile(x, (2, 1))),
    "repeat": (lambda x: gd.repeat(x, 3, 0), ROWS, rows, lambda x: np.repeat(x, 3, 0)),
    "sort": (lambda x: gd.sort(x, 0), ROWS, rows, lambda x: np.sort(x, 0)),
    "cumsum": (lambda x: gd.cumsum(x, 0), ROWS, rows, lambda x: np.cumsum(x, 0)),
    "scan": (lambda x: gd.scan(lambda c, v: (c + v, c + v), np.zeros(4, np.float32), x)[1], ROWS, rows, lambda x: np.cumsum(x, 0)),
    "loop": (
        lambda x: gd.fori_loop(0, x.shape[0], lambda i, s: s + x[i], np.zeros(4, np.float32)),
        ROWS,
        rows,
        lambda x: x.sum(0),
    ),
    "attention scores": (
        lambda q, k: gd.softmax(q @ gd.swapaxes(k, 1, 2)),
        {"q": ("b", "t", 8), "k": ("b", "s", 8)},
        lambda b: (data(2, b, 8), data(2, b + 1, 8)),
        lambda q, k: softmax(q @ k.transpose(0, 2, 1)),
    ),
    "gradient of a concatenation": (
        lambda x, y: gd.grad(lambda x, y: (gd.concatenate([x, y * 2, x]) ** 2).sum(), (0, 1))(x, y),
        {"x": ("b", 4), "y": ("c", 4)},
        lambda b: (data(b, 4), data(b + 1, 4)),
        lambda x, y: (4 * x, 8 * y),
    ),
    "gradient of slices": (
        lambda x: gd.grad(lambda x: (x[1:] ** 2).sum() + (x[:2] ** 3).sum() + x[::2].sum())(x),
        {"x": ("b",)},
        lambda b: (data(b),),
        lambda x: 2 * x * (np.arange(len(x)) >= 1) + 3 * x * x * (np.arange(len(x)) < 2) + (np.arange(len(x)) % 2 == 0),
    ),
    "a loss reads the size of another function": (
        lambda w, x: gd.grad(lambda w: (w * w).sum() / (x.shape[0] + 1))(w),
        ROWS,
        lambda b: (W, data(b, 4)),
        lambda w, x: 2 * w / np.float32(len(x) + 1),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_program_serves_all_sizes(name: str) -> None:
    function, dynamic, inputs, expected = PROGRAMS[name]
    compiled = gd.jit(function, dynamic=dynamic, cache=False)
    for b in (3, 1, 0, 5):
        arrays = inputs(b)
        found, wanted = compiled(*arrays), expected(*arrays)
        for x, y in zip(found, wanted) if isinstance(wanted, tuple | list) else [(found, wanted)]:
            assert x.shape == y.shape
            np.testing.assert_allclose(x, y, rtol=2e-5, atol=1e-5)
    assert len(compiled.programs) == 1


KERNEL, TABLE = data(3, 3, 2, 4), data(7, 4)

TRAINED: dict[str, tuple[Callable[..., Any], dict[str, Any], Callable[[int], tuple[Any, ...]]]] = {
    "convolution and pooling": (
        lambda w, x: (gd.avg_pool(gd.max_pool(gd.relu(gd.conv(x, w, padding="SAME")), 2), 2) ** 2).sum(),
        {"x": ("b", 8, 8, 2)},
        lambda b: (KERNEL, data(b, 8, 8, 2)),
    ),
    "strided convolution of the input": (
        lambda x: (gd.conv(x, KERNEL, strides=2) ** 2).sum(),
        {"x": ("b", 9, 9, 2)},
        lambda b: (data(b, 9, 9, 2),),
    ),
    "embedding": (
        lambda table, at: (gd.take(table, at) ** 2).sum(),
        {"at": ("b", "t")},
        lambda b: (TABLE, RNG.integers(0, 7, (b, b + 1)).astype(np.int32)),
    ),
    "rows of run-time number": (lambda x: (gd.take(x, np.array([0, 1, 1])) ** 2).sum(), ROWS, lambda b: (data(b + 1, 4),)),
    "rows chosen by small numbers": (
        lambda x, at: (gd.take(x, at) ** 2).sum(),
        {"x": ("b", 4)},
        lambda b: (data(200 + b, 4), np.array([0, 127, -1], np.int8)),
    ),
    "along an axis": (
        lambda x, at: (gd.take_along_axis(x, at, 0) ** 2).sum(),
        {"x": ("b", 4), "at": ("n", 4)},
        lambda b: (data(b + 1, 4), np.zeros((b, 4), np.int32)),
    ),
    "product": (lambda x: gd.prod(x, 0).sum() + gd.prod(x, 1).sum(), ROWS, rows),
    "running maximum": (lambda x: (gd.cummax(x, 0) ** 2).sum(), ROWS, rows),
    "scan": (lambda x: gd.scan(lambda c, v: (gd.tanh(c + v), c), np.zeros(4, np.float32), x)[0].sum(), ROWS, rows),
    "normalisation": (lambda x: (gd.layer_norm(x, TABLE[0], TABLE[1]) ** 2).sum(), ROWS, rows),
    "loss": (lambda x, y: gd.cross_entropy(x, y).sum(), {"x": ("b", 4), "y": ("b",)}, lambda b: (data(b, 4), np.zeros(b, np.int32))),
    "update of a window": (
        lambda x, y: (gd.dynamic_update_slice(x, y, [0, 1]) ** 2).sum(),
        {"x": ("b", 4), "y": ("b", 2)},
        lambda b: (data(b, 4), data(b, 2)),
    ),
}


@pytest.mark.parametrize("name", TRAINED)
def test_gradients_are_those_of_the_static_program(name: str) -> None:
    function, dynamic, inputs = TRAINED[name]
    gradient = gd.value_and_grad(function)
    traced = gd.jit(gradient, dynamic=dynamic, cache=False)
    for b in (3, 1, 0):
        arrays = inputs(b)
        found, wanted = traced(*arrays), gd.jit(gradient, cache=False)(*arrays)
        for x, y in zip(found, wanted):
            assert x.shape == y.shape
            np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5)
    assert len(traced.programs) == 1


KEY = np.zeros(2, np.uint32)
HEADS = {"q": ("b", "t", 2, 8), "k": ("b", "s", 2, 8), "v": ("b", "s", 2, 8)}

ALIKE: dict[str, tuple[Callable[..., Any], dict[str, Any], Callable[[int], tuple[Any, ...]]]] = {
    "attention": (gd.attention, HEADS, lambda b: (data(2, b, 2, 8), data(2, b + 1, 2, 8), data(2, b + 1, 2, 8))),
    "rms_norm": (lambda x: gd.rms_norm(x, TABLE[0]), ROWS, rows),
    "random numbers": (lambda key, x: gd.random.normal(key, x.shape) + x, ROWS, lambda b: (KEY, data(b, 4))),
    "dropout": (lambda key, x: gd.random.dropout(key, x, 0.5), ROWS, lambda b: (KEY, data(b, 4))),
    "update": (lambda x: x.at[0].set(TABLE[1]).at[-1].add(TABLE[2]), ROWS, lambda b: (data(b + 1, 4),)),
    "updates of rows": (
        lambda x, at, v: x.at[at].add(v),
        {"x": ("b", 4), "at": ("n",), "v": ("n", 4)},
        lambda b: (data(b + 1, 4), np.zeros(b, np.int32), data(b, 4)),
    ),
    "top_k": (lambda x: gd.top_k(x, 2)[0], ROWS, rows),
    "one_hot": (lambda y: gd.one_hot(y, 5), {"y": ("b",)}, lambda b: (np.arange(b, dtype=np.int32),)),
    "along an axis": (
        lambda x, at: gd.take_along_axis(x, at, 1),
        {"x": ("b", 4), "at": ("b", 2)},
        lambda b: (data(b, 4), np.ones((b, 2), np.int32)),
    ),
    "while": (lambda x: gd.while_loop(lambda s: s.sum() < 10, lambda s: s + 1, gd.abs(x)), ROWS, lambda b: (data(b + 1, 4),)),
    "cond": (lambda x: gd.cond(x.sum() > 0, lambda v: v * 2, lambda v: v - 1, x), ROWS, rows),
    "nested jit": (lambda x: gd.jit(lambda v: v.sum(0) / (v.shape[0] + 1))(x), ROWS, rows),
}


@pytest.mark.parametrize("name", ALIKE)
def test_results_are_those_of_the_static_program(name: str) -> None:
    function, dynamic, inputs = ALIKE[name]
    traced = gd.jit(function, dynamic=dynamic, cache=False)
    for b in (3, 1, 0):
        arrays = inputs(b)
        found, wanted = traced(*arrays), gd.jit(function, cache=False)(*arrays)
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    assert len(traced.programs) == 1


def test_a_mean_over_nothing_is_nan() -> None:
    mean = gd.jit(lambda x: x.mean(), dynamic=ROWS, cache=False)
    assert mean(np.ones((2, 4), np.float32)) == 1 and np.isnan(mean(np.ones((0, 4), np.float32)))


def test_spec_and_saved_artefact(tmp_path: Path) -> None:
    program = gd.compile(lambda x: gd.concatenate([x, x]), gd.Spec((gd.Dim("b", min=1, max=8, multiple=2), 3)), cache=False)
    path = tmp_path / "f.gradir"
    program.save(path)
    function = next(iter(load(path)))
    assert function.spec.inputs[0].shape == ("b", 3) and function.spec.outputs[0].shape == ("2*b", 3)
    assert function(np.ones((2, 3), np.float32)).shape == (4, 3)
    with pytest.raises(GradirError) as caught:
        function(np.ones((3, 3), np.float32))
    error = caught.value
    assert (error.part, error.code) == ("runtime", "RT009")
    assert error.expected == "b >= 1, b <= 8, b a multiple of 2" and error.found.startswith("3 (dim 0 of ")


def refused(code: str, call: Callable[[], Any]) -> GradirError:
    with pytest.raises(GradirError) as caught:
        call()
    assert caught.value.code == code, str(caught.value)
    return caught.value


def test_sizes_of_a_call_fit_together() -> None:
    add = gd.jit(lambda x, y: x + y, dynamic={"x": ("b",), "y": ("b",)}, cache=False)
    assert add(np.ones(2, np.float32), np.ones(2, np.float32)).shape == (2,)
    error = refused("RT004", lambda: add(np.ones(2, np.float32), np.ones(3, np.float32)))
    assert error.expected == "b = 2 (dim 0 of 'x')" and error.found == "3 (dim 0 of 'y')"


def test_a_size_may_be_computed_from_another() -> None:
    b = gd.Dim("b", min=1)
    join = gd.jit(lambda x, y: x + y[: x.shape[0]], dynamic={"x": (b,), "y": (2 * b + 1,)}, cache=False)
    assert join(np.ones(2, np.float32), np.arange(5, dtype=np.float32)).tolist() == [1, 2]
    error = refused("RT004", lambda: join(np.ones(2, np.float32), np.ones(6, np.float32)))
    assert error.expected == "2*b+1 = 5 with b = 2 (dim 0 of 'x')" and error.found == "6 (dim 0 of 'y')"
    half = gd.jit(lambda y: y.reshape(2, -1), dynamic={"y": (2 * b,)}, cache=False)
    assert half(np.ones(6, np.float32)).shape == (2, 3)
    assert refused("RT004", lambda: half(np.ones(5, np.float32))).expected == "2*b for some b >= 0"
    assert refused("RT009", lambda: half(np.ones(0, np.float32))).expected == "b >= 1"


def test_a_reshape_that_may_not_fit_is_checked_when_it_runs() -> None:
    thirds = gd.jit(lambda x: x.reshape(3, -1), dynamic={"x": ("b",)}, cache=False)
    assert thirds(np.ones(6, np.float32)).shape == (3, 2)
    error = refused("RT020", lambda: thirds(np.ones(4, np.float32)))
    assert error.message == "reshape of (b,): the number of elements, b, is no multiple of 3"


def test_an_index_that_may_be_out_of_range_is_checked_when_it_runs() -> None:
    ends = gd.jit(lambda x: x[2] + x[-1], dynamic={"x": ("b",)}, cache=False)
    assert ends(np.arange(4, dtype=np.float32)) == 5
    assert "index 2 is out of range" in refused("RT020", lambda: ends(np.ones(2, np.float32))).message


def traced(function: Callable[[Any], Any], *size: Any) -> Callable[[], Any]:
    return lambda: gd.jit(function).lower(gd.Spec(size or ("b",)))


USES_OF_A_NUMBER: dict[str, Callable[[Any], Any]] = {
    "range": lambda x: [x for _ in range(x.shape[0])],
    "int": lambda x: x * int(x.shape[0]),
    "float": lambda x: x * float(x.shape[0]),
    "numpy": lambda x: x + np.zeros(x.shape),
    "comparison": lambda x: x if x.shape[0] > 3 else -x,
    "truth": lambda x: x if x.shape[0] else -x,
    "list": lambda x: list(x),
    "backward slice": lambda x: x[3::-1],
    "bound of either sign": lambda x: x[: x.shape[0] - 2],
}


@pytest.mark.parametrize("use", USES_OF_A_NUMBER)
def test_a_size_where_a_number_is_needed(use: str) -> None:
    error = refused("GR114", traced(USES_OF_A_NUMBER[use]))
    assert error.location.startswith("tests/") and "b" in error.found and error.hint


def test_limits_decide_comparisons() -> None:
    b = gd.Dim("b", min=4, max=9, multiple=2)
    module = gd.jit(lambda x: x[:4] if x.shape[0] > 3 and x.shape[0] - 2 < 8 and x.shape[0] % 2 == 0 else x).lower(gd.Spec((b,)))
    assert "tensor<4xf32>" in str(module)


BAD_SIZES: dict[str, Callable[[], Any]] = {
    "no name": lambda: gd.Dim("2*b+"),
    "a number": lambda: gd.Dim("3"),
    "limits": lambda: gd.Dim("b", min=4, max=2),
    "a negative size": lambda: gd.Spec((-1,)),
    "two sets of limits": lambda: gd.jit(lambda x, y: x).lower(gd.Spec((gd.Dim("b", min=1),)), gd.Spec((gd.Dim("b", min=2),))),
    "division by zero": traced(lambda x: x.reshape(x.shape[0] // 0)),
}


@pytest.mark.parametrize("case", BAD_SIZES)
def test_sizes_that_make_no_sense(case: str) -> None:
    assert refused("GR112", BAD_SIZES[case]).found


def test_shapes_that_do_not_fit() -> None:
    x = np.ones((2, 3), np.float32)
    assert refused("GR104", lambda: gd.jit(lambda x: x, dynamic={"y": ("b",)})).found == "y"
    assert refused("GR001", lambda: gd.jit(lambda x: x, dynamic={"x": ("b",)})(x)).found == "shape (2, 3)"
    assert refused("GR107", lambda: gd.jit(lambda x: x, dynamic={"x": ("b", "c")})([x])).code == "GR107"
    assert refused("GR001", traced(lambda x: x + gd.zeros(3, np.float32))).found == "3 and b"
    assert refused("GR001", traced(lambda x: x.reshape(x.shape[0] + 1))).expected == "b elements"


def test_containers_of_shapes() -> None:
    scale = gd.jit(lambda p, x: [p["w"] * v for v in x], dynamic={"p": {"w": ("b",)}, "x": [("b",), ("b",)]}, cache=False)
    for b in (2, 1, 0):
        assert [v.shape for v in scale({"w": np.ones(b, np.float32)}, [np.ones(b, np.float32)] * 2)] == [(b,), (b,)]
    assert len(scale.programs) == 1


def test_malformed_limits_in_text() -> None:
    text = 'func.func @f(%x: tensor<?xf32, ["b"]>) -> tensor<?xf32, ["b"]> attributes {{gradir.sizes = {}}} {{\n  return %x : tensor<?xf32, ["b"]>\n}}'
    ok = gd.compile(gd.parse(text.format("{b = {min = 2 : i64}}")))["f"]
    assert refused("RT009", lambda: ok(np.ones(1, np.float32))).expected == "b >= 2"
    nonsense = text.format("{}").replace('["b"]', '["b+"]')
    assert '"b+" is no size' in refused("GR051", lambda: gd.compile(gd.parse(nonsense))).message
    for bad in ("3 : i64", "{b = 3 : i64}", "{b = {least = 3 : i64}}", "{b = {multiple = 0 : i64}}"):
        assert refused("GR053", lambda bad=bad: gd.compile(gd.parse(text.format(bad)))).expected.startswith("{name = {min")
