"""Frozen arguments: results stay, packed forms are made once for each set of buffers, and what could change is refused."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.errors import GradirError
from gradir.runtime import Buffer

RNG = np.random.default_rng(5)


def uniform(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def layer(x: Any, w: Any, b: Any) -> Any:
    return gd.relu(x @ w + b)


def jitted(function: Any = layer, **options: Any) -> Any:
    return gd.jit(function, cache=False, **{"frozen": (1, 2), **options})


@pytest.mark.parametrize(
    ("rows", "depth", "columns"),
    [(12, 40, 64), (9, 16, 32), (256, 20, 48), (8, 40, 64), (300, 40, 64), (12, 40, 60), (12, 15, 64), (1, 40, 64), (0, 40, 64)],
    ids=["panels", "least", "most rows", "few rows", "many rows", "no whole panels", "short", "one row", "no row"],
)
def test_the_numbers_are_those_of_the_plain_function(rows: int, depth: int, columns: int) -> None:
    x, w, b = uniform(rows, depth), uniform(depth, columns), uniform(columns)
    for threads in (1, 2):
        got = np.asarray(jitted(threads=threads)(x, *gd.freeze((w, b))))
        np.testing.assert_allclose(got, np.maximum(x @ w + b, 0), rtol=1e-4, atol=1e-5)


def test_products_of_few_rows_read_panels_that_are_packed_once() -> None:
    f, frozen = jitted(), gd.freeze((uniform(40, 64), uniform(64)))
    program = f.compile(uniform(12, 40), *frozen)
    lanes = program.preparation.function.spec.outputs[0].shape[-1]
    assert f"tensor<{64 // lanes}x40x{lanes}xf32>" in program.ir()
    (first,) = program.preparation._prepared([frozen[0], frozen[1]])
    assert program.preparation._prepared([frozen[0], frozen[1]])[0] is first
    assert program.preparation._prepared(gd.freeze([np.asarray(frozen[0]), uniform(64)]))[0] is not first


def test_transposed_weights_and_weights_in_containers() -> None:
    def model(p: Any, x: Any) -> Any:
        return gd.tanh(x @ gd.transpose(p["w"], (1, 0)) + 2.0 * p["b"])

    p, x = {"w": uniform(64, 40), "b": uniform(64)}, uniform(12, 40)
    got = jitted(model, frozen=("p",))(gd.freeze(p), x)
    np.testing.assert_allclose(got, np.tanh(x @ p["w"].T + 2 * p["b"]), rtol=1e-4, atol=1e-5)


def test_weights_in_loops_nested_functions_and_results() -> None:
    inner = gd.jit(lambda h, w: gd.tanh(h @ w))

    def model(x: Any, w: Any, b: Any) -> Any:
        def step(h: Any, _: Any) -> tuple[Any, Any]:
            return inner(h, w) + b, gd.sum(h)

        return gd.scan(step, x, np.zeros((3, 1), np.float32)), w * 2.0, w

    x, w, b = uniform(12, 64), uniform(64, 64) / 8, uniform(64)
    (h, sums), twice, same = jitted(model)(x, *gd.freeze((w, b)))
    want, expected = x, []
    for _ in range(3):
        expected.append(want.sum())
        want = np.tanh(want @ w) + b
    np.testing.assert_allclose(h, want, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(np.asarray(sums).reshape(-1), expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(twice, 2 * w)
    np.testing.assert_array_equal(same, w)


def test_gradients_with_respect_to_the_other_arguments() -> None:
    x, w, b = uniform(12, 40), uniform(40, 64), uniform(64)

    def loss(x: Any, w: Any, b: Any) -> Any:
        return gd.grad(lambda x: gd.sum(gd.square(x @ w + b)))(x)

    np.testing.assert_allclose(jitted(loss)(x, *gd.freeze((w, b))), 2 * (x @ w + b) @ w.T, rtol=1e-3, atol=1e-4)


def test_new_weights_are_new_buffers() -> None:
    f, x = jitted(), uniform(12, 40)
    for _ in range(3):
        w, b = uniform(40, 64), uniform(64)
        np.testing.assert_allclose(f(x, *gd.freeze((w, b))), np.maximum(x @ w + b, 0), rtol=1e-4, atol=1e-5)
    gc.collect()
    (program,) = f.programs
    assert len(program.preparation._known) <= 1, "entries go with their buffers"


def test_out_and_named_arguments() -> None:
    x, w, b = uniform(12, 40), uniform(40, 64), uniform(64)
    fw, fb = gd.freeze((w, b))
    f, out = jitted(frozen=("w", "b")), np.empty((12, 64), np.float32)
    f(x, w=fw, b=fb, out=out)
    np.testing.assert_allclose(out, np.maximum(x @ w + b, 0), rtol=1e-4, atol=1e-5)


def test_frozen_buffers_are_copies_that_nobody_writes() -> None:
    w = uniform(3, 4)
    frozen = gd.freeze(w)
    assert isinstance(frozen, Buffer) and frozen.is_frozen and gd.freeze(frozen) is frozen
    before, w[...] = w.copy(), 0
    np.testing.assert_array_equal(frozen, before)
    with pytest.raises(ValueError, match="read-only"):
        frozen.numpy()[0, 0] = 1
    assert not Buffer.from_array(w).is_frozen


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_no_view_can_be_made_writable_again(shape: tuple[int, ...]) -> None:
    weights = gd.freeze(np.ones(shape, np.float32))
    for view in (weights.numpy(), np.asarray(weights), weights.numpy()[...], weights.numpy().view(np.int32)):
        with pytest.raises(ValueError, match="WRITEABLE"):
            view.flags.writeable = True
    assert weights.is_frozen and weights.address % 64 == 0


def test_a_frozen_buffer_that_is_donated_is_copied_and_stays() -> None:
    w = gd.freeze(np.ones(4, np.float32))
    np.testing.assert_array_equal(gd.jit(lambda x: x + 1, cache=False, donate=(0,))(w), np.full(4, 2.0))
    np.testing.assert_array_equal(gd.jit(lambda x: x * 3, cache=False, frozen=(0,))(w), np.full(4, 3.0))


@pytest.mark.parametrize("given", [np.ones(64, np.float32), Buffer.from_array(np.ones(64, np.float32))], ids=["array", "buffer"])
def test_what_could_change_is_refused(given: Any) -> None:
    with pytest.raises(GradirError, match="its elements can change") as caught:
        jitted()(uniform(12, 40), gd.freeze(uniform(40, 64)), given)
    assert caught.value.code == "RT066" and "gradir.freeze" in str(caught.value)


def test_an_argument_is_not_frozen_and_donated() -> None:
    with pytest.raises(GradirError, match="both frozen and donated") as caught:
        jitted(donate=("w",))
    assert caught.value.code == "GR133"


def test_a_name_that_the_function_lacks() -> None:
    with pytest.raises(GradirError, match="frozen names an argument that layer lacks"):
        jitted(frozen=("weights",))


def test_saving_is_refused(tmp_path: Any) -> None:
    program = gd.compile(layer, uniform(12, 40), *gd.freeze((uniform(40, 64), uniform(64))), cache=False, frozen=(1, 2))
    with pytest.raises(GradirError, match="cannot be saved") as caught:
        program.save(tmp_path / "f.gradir")
    assert caught.value.code == "RT067"
