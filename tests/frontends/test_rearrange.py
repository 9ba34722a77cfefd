"""Functions that move data, `einsum` and `x.at`: numpy's results, element for element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.errors import GradirError

A = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 7
M = A[0]
V = np.array([3, 1, 2], np.int32)

SAME_AS_NUMPY: dict[str, Callable[[Any, Any], Any]] = {
    "ravel": lambda g, a: g.ravel(a),
    "broadcast_to": lambda g, a: g.broadcast_to(a[0, 0], (2, 5, 4)),
    "moveaxis": lambda g, a: g.moveaxis(a, 0, -1),
    "moveaxis of two": lambda g, a: g.moveaxis(a, (0, 2), (1, 0)),
    "hstack": lambda g, a: g.hstack([a[0], a[1]]),
    "hstack of vectors": lambda g, a: g.hstack([a[0, 0], a[1, 1]]),
    "vstack": lambda g, a: g.vstack([a[0], a[1]]),
    "vstack of vectors": lambda g, a: g.vstack([a[0, 0], a[1, 1]]),
    "tile": lambda g, a: g.tile(a, 2),
    "tile of two": lambda g, a: g.tile(a, (2, 1, 3)),
    "tile in front": lambda g, a: g.tile(a[0, 0], (2, 3)),
    "tile of none": lambda g, a: g.tile(a, 0),
    "repeat": lambda g, a: g.repeat(a, 3),
    "repeat along": lambda g, a: g.repeat(a, 2, 1),
    "roll": lambda g, a: g.roll(a, 5),
    "roll along": lambda g, a: g.roll(a, -1, 2),
    "roll by nothing": lambda g, a: g.roll(a, 4, 2),
    "roll of nothing": lambda g, a: g.roll(a[:, :0], 1, 1),
    "fliplr": lambda g, a: g.fliplr(a),
    "flipud": lambda g, a: g.flipud(a),
    "tril": lambda g, a: g.tril(a),
    "tril above": lambda g, a: g.tril(a, 1),
    "triu": lambda g, a: g.triu(a),
    "triu below": lambda g, a: g.triu(a, -1),
    "trace": lambda g, a: g.trace(a[0]),
    "trace of first dimensions": lambda g, a: g.trace(a),
    "trace above": lambda g, a: g.trace(a, 2, 1, 2),
    "diagonal": lambda g, a: g.diagonal(a),
    "diagonal above": lambda g, a: g.diagonal(a, 2, 1, 2),
    "diagonal below": lambda g, a: g.diagonal(a, -1, 2, 1),
    "diagonal outside": lambda g, a: g.diagonal(a, 5),
    "diagonal keeps -0": lambda g, a: g.diagonal(a * -0.0),
    "diag of a vector": lambda g, a: g.diag(a[0, 0]),
    "diag of a vector above": lambda g, a: g.diag(a[0, 0], 2),
    "diag of a vector below": lambda g, a: g.diag(a[0, 0], -1),
    "diag of a matrix": lambda g, a: g.diag(a[0], 1),
    "outer": lambda g, a: g.outer(a, a[0]),
    "method transpose": lambda g, a: a.transpose(),
    "method transpose by numbers": lambda g, a: a.transpose(2, 0, -2),
    "method transpose by a tuple": lambda g, a: a.transpose((1, 0, 2)),
    "method transpose of a vector": lambda g, a: a[0, 0].transpose(0),
    "method diagonal": lambda g, a: a.diagonal(1),
    "method trace": lambda g, a: a[0].trace(),
    "method cumsum": lambda g, a: a.cumsum(1),
    "method cumprod": lambda g, a: a.cumprod(2),
    "method round": lambda g, a: (a / 4).round(),
    "method argsort": lambda g, a: a.argsort(1).astype(np.int32),
    "meshgrid": lambda g, a: g.meshgrid(a[0, 0], a[0, :, 0])[1],
    "meshgrid of rows": lambda g, a: g.meshgrid(a[0, 0], a[0, :, 0], indexing="ij")[0],
    "full_like": lambda g, a: g.full_like(a, 3),
    "einsum product": lambda g, a: g.einsum("bij,bkj->bik", a, a),
    "einsum without arrow": lambda g, a: g.einsum("ij,kj", a[0], a[1]),
    "einsum transpose": lambda g, a: g.einsum("ijk->kij", a),
    "einsum sum": lambda g, a: g.einsum("ijk->j", a),
    "einsum outer": lambda g, a: g.einsum("i,j->ji", a[0, 0], a[0, :, 0]),
    "einsum elementwise": lambda g, a: g.einsum("ij,ij->ij", a[0], a[1]),
    "einsum of three": lambda g, a: g.einsum("ij,kj,kl->il", a[0], a[1], a[1]),
    "einsum sums early": lambda g, a: g.einsum("ij,kl->k", a[0], a[1]),
    "einsum to a number": lambda g, a: g.einsum("ij,ij", a[0], a[1]),
}


@pytest.mark.parametrize("name", SAME_AS_NUMPY)
def test_numpys_result(name: str) -> None:
    function = SAME_AS_NUMPY[name]
    expected = function(np, A)
    found = np.asarray(function(gd, gd.asarray(A)))
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype


def test_numpys_result_compiled() -> None:
    names = ["moveaxis", "tile of two", "repeat along", "roll along", "tril", "diagonal below", "einsum product", "einsum of three"]
    found = gd.jit(lambda a: [SAME_AS_NUMPY[name](gd, a) for name in names], cache=False)(A)
    for name, value in zip(names, found):
        np.testing.assert_array_equal(value, SAME_AS_NUMPY[name](np, A), name)


@pytest.mark.parametrize("arguments", [(5,), (2, 7), (7, 2, -2), (1, 9, 3), (5, 2), (0,)], ids=str)
def test_arange(arguments: tuple[int, ...]) -> None:
    np.testing.assert_array_equal(np.asarray(gd.arange(*arguments)), np.arange(*arguments, dtype=np.int32))
    np.testing.assert_array_equal(np.asarray(gd.arange(*arguments, dtype=gd.float32)), np.arange(*arguments, dtype=np.float32))


def test_eye_and_linspace() -> None:
    np.testing.assert_array_equal(np.asarray(gd.eye(3, 4, 1)), np.eye(3, 4, 1, dtype=np.float32))
    np.testing.assert_array_equal(np.asarray(gd.eye(2, dtype=gd.int64)), np.eye(2, dtype=np.int64))
    np.testing.assert_array_equal(np.asarray(gd.linspace(-1, 2, 7, gd.float64)), np.linspace(-1, 2, 7))


INDICES: dict[str, Any] = {
    "row": 1,
    "last": -1,
    "element": (1, 2, 3),
    "window": (slice(None), slice(1, 3)),
    "column": (..., 0),
    "nothing": slice(1, 1),
    "negative": (0, slice(-2, None), slice(None, -1)),
}


@pytest.mark.parametrize("name", INDICES)
def test_at_is_numpys_assignment(name: str) -> None:
    index = INDICES[name]
    x = gd.asarray(A)
    for method, update in (
        ("set", lambda old: 5.0),
        ("add", lambda old: old + 5),
        ("multiply", lambda old: old * 5),
        ("max", lambda old: np.maximum(old, 5)),
        ("min", lambda old: np.minimum(old, 5)),
    ):
        expected = A.copy()
        expected[index] = update(expected[index])
        np.testing.assert_array_equal(np.asarray(getattr(x.at[index], method)(5)), expected, method)
    np.testing.assert_array_equal(np.asarray(x), A)


def test_at_with_run_time_and_many_indices() -> None:
    step = gd.jit(lambda x, k: (x.at[k].set(1), x.at[:, k, 1:].add(2)), cache=False)
    for k in (0, 1, -1):
        row, window = A.copy(), A.copy()
        row[k], window[:, k, 1:] = 1, window[:, k, 1:] + 2
        found = step(A, np.int32(k))
        np.testing.assert_array_equal(found[0], row)
        np.testing.assert_array_equal(found[1], window)
    expected = M.copy()
    np.add.at(expected, [0, 2, 0, -1], np.float32(1.5))
    np.testing.assert_array_equal(np.asarray(gd.asarray(M).at[[0, 2, 0, -1]].add(1.5)), expected)


def test_gradient_of_at() -> None:
    def loss(x: Any, v: Any) -> Any:
        return gd.sum(x.at[:, 1].set(v) ** 2)

    of_x, of_v = gd.jit(gd.grad(loss, (0, 1)), cache=False)(M, np.array([1, 2, 3], np.float32))
    expected = 2 * M
    expected[:, 1] = 0
    np.testing.assert_array_equal(of_x, expected)
    np.testing.assert_array_equal(of_v, [2, 4, 6])


def test_functions_of_elements_of_numpy_are_ours() -> None:
    scaled = gd.jit(lambda x: (np.tanh(x), M @ x, np.float32(2) * x, M[0] - x, np.remainder(x, 2)), cache=False)(M[1])
    for found, expected in zip(scaled, (np.tanh(M[1]), M @ M[1], 2 * M[1], M[0] - M[1], M[1] % 2)):
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert gd.jit(lambda x: x * np.ndim(x) * np.shape(x)[0], cache=False)(M[1]).tolist() == (4 * M[1]).tolist()
    with gd.eager():
        np.testing.assert_allclose(gd.grad(lambda x: gd.sum(np.tanh(x)))(M[1]).tolist(), 1 - np.tanh(M[1]) ** 2, atol=1e-6)


def test_other_functions_of_numpy_take_values() -> None:
    x = gd.asarray(M)
    assert np.sum(x) == M.sum() and np.allclose(x, M) and np.concatenate([x, x]).shape == (6, 4)
    for function in (np.sum, np.linalg.norm, np.add.reduce, lambda x: np.concatenate([x, x])):
        with pytest.raises(GradirError, match="of a traced array") as caught:
            gd.jit(function, cache=False)(M)
        assert caught.value.code == "GR111" and "gradir" in caught.value.hint
    with pytest.raises(GradirError, match=r"numpy\.add of a traced array") as caught:
        gd.jit(lambda x: np.add(M, x, out=M.copy()), cache=False)(M)
    assert "a = a + x" in caught.value.hint
    with gd.eager(), pytest.raises(GradirError, match=r"numpy\.sum of a traced array"):
        gd.grad(lambda x: np.sum(x))(M)  # its gradient would be lost


def test_repr_shows_the_values() -> None:
    assert repr(gd.asarray(np.array([1, 2], np.float32))) == "Array([1., 2.], dtype=float32)"
    assert gd.exp.__name__ == "exp" and gd.maximum.__name__ == "maximum"


def test_names_of_types() -> None:
    assert gd.asarray(M).astype(gd.bfloat16).dtype == "bfloat16" and gd.zeros(2, gd.float64).dtype == np.float64
    assert gd.Spec(3, "bfloat16").dtype == gd.bfloat16 and gd.Spec(3).shape == (3,)


def test_vjp() -> None:
    def f(w: Any, p: dict[str, Any]) -> Any:
        y = p["x"] @ w
        return y, {"total": gd.sum(y), "count": gd.asarray(np.int32(3))}

    rng = np.random.default_rng(0)
    w, x, ct = rng.standard_normal((4, 2)), rng.standard_normal((3, 4)), rng.standard_normal((3, 2))

    def program(w: Any, x: Any, ct: Any) -> Any:
        results, pullback = gd.vjp(f, w, {"x": x})
        return results, pullback((ct, {"total": 2.0, "count": 0}))

    for run in (gd.jit(program, cache=False), program):
        (y, _), (dw, dp) = run(w, x, ct)
        np.testing.assert_allclose(np.asarray(y), x @ w, rtol=1e-12)
        np.testing.assert_allclose(np.asarray(dw), x.T @ (ct + 2), rtol=1e-12)
        np.testing.assert_allclose(np.asarray(dp["x"]), (ct + 2) @ w.T, rtol=1e-12)
    with pytest.raises(GradirError, match="another structure than the results"):
        gd.vjp(lambda x: (x, x), x)[1](x)
