"""Mistakes of a user of the frontend: a GradirError with part, code, the user's line, expected and found, traced and eager alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.autodiff.registry import VJP, load_rules
from gradir.dialects import nd
from gradir.errors import GradirError

A = np.ones((3, 4), np.float32)
B = np.ones((5, 2), np.float32)
X, W = np.ones((1, 5, 5, 3), np.float32), np.ones((3, 3, 3, 4), np.float32)
INDICES, UNSIGNED, TRUTHS = np.arange(3), np.ones(3, np.uint8), np.array([True, False, True])

MISTAKES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "add": ("GR001", lambda a: a + B),
    "matmul": ("GR001", lambda a: a @ B),
    "matmul of a scalar": ("GR001", lambda a: a @ gd.asarray(np.float32(1))),
    "dot_general axes": ("GR001", lambda a: gd.dot_general(a, B, ((0, 1), (0,)))),
    "tensordot axis": ("GR104", lambda a: gd.tensordot(a, B, ((9,), (0,)))),
    "where": ("GR001", lambda a: gd.where(a > 0, a, B)),
    "concatenate": ("GR001", lambda a: gd.concatenate([a, B], 0)),
    "concatenate nothing": ("GR001", lambda a: gd.concatenate([])),
    "stack nothing": ("GR001", lambda a: gd.stack([])),
    "reshape": ("GR001", lambda a: a.reshape(5)),
    "reshape to a float": ("GR112", lambda a: a.reshape(6.0, 2)),
    "reshape to text": ("GR112", lambda a: a.reshape("x")),
    "reshape to two unknowns": ("GR001", lambda a: a.reshape(-1, -1)),
    "transpose": ("GR104", lambda a: gd.transpose(a, (0, 0))),
    "transpose axis": ("GR104", lambda a: gd.transpose(a, (0, 3))),
    "swapaxes": ("GR104", lambda a: gd.swapaxes(a, 0, 7)),
    "expand_dims": ("GR104", lambda a: gd.expand_dims(a, 9)),
    "squeeze": ("GR001", lambda a: gd.squeeze(a, 0)),
    "split": ("GR001", lambda a: gd.split(a, 2, 0)),
    "split into none": ("GR112", lambda a: gd.split(a, 0)),
    "broadcast": ("GR001", lambda a: gd.broadcast(a, (2, 2))),
    "pad": ("GR112", lambda a: gd.pad(a, [(1, 1)])),
    "pad with half a pair": ("GR112", lambda a: gd.pad(a, [(1, 1), (1,)])),
    "pad away": ("GR011", lambda a: gd.pad(a, -5)),
    "axis": ("GR104", lambda a: a.sum(7)),
    "axis twice": ("GR104", lambda a: a.sum((0, 0))),
    "axis of text": ("GR112", lambda a: a.sum("x")),
    "max of nothing": ("GR104", lambda a: gd.max(gd.zeros((0,)))),
    "conv shapes": ("GR001", lambda a: gd.conv(a, a)),
    "conv channels": ("GR001", lambda a: gd.conv(X, W[:, :, :2])),
    "conv padding": ("GR105", lambda a: gd.conv(X, W, padding="FULL")),
    "conv padding of one dimension": ("GR105", lambda a: gd.conv(X, W, padding=[(1, 1)])),
    "conv padding of a number": ("GR105", lambda a: gd.conv(X, W, padding=3)),
    "conv stride": ("GR112", lambda a: gd.conv(X, W, strides=0)),
    "conv strides": ("GR001", lambda a: gd.conv(X, W, strides=(1, 2, 3))),
    "conv dilation": ("GR112", lambda a: gd.conv(X, W, dilations=-1)),
    "conv groups": ("GR112", lambda a: gd.conv(X, W, groups=0)),
    "pool window": ("GR112", lambda a: gd.max_pool(X, 0)),
    "pool of a matrix": ("GR001", lambda a: gd.max_pool(a, (2, 2))),
    "window kind": ("GR112", lambda a: gd.reduce_window(a, "median", (1, 1), (1, 1))),
    "window rank": ("GR001", lambda a: gd.reduce_window(a, "max", (1,), (1, 1))),
    "take": ("GR002", lambda a: gd.take(a, a)),
    "dynamic_slice starts": ("GR011", lambda a: gd.dynamic_slice(a, [0], [1, 1])),
    "dynamic_slice size": ("GR011", lambda a: gd.dynamic_slice(a, [0, 0], [9, 1])),
    "dynamic_update_slice": ("GR011", lambda a: gd.dynamic_update_slice(a, B, [0, 0])),
    "scatter_add": ("GR011", lambda a: gd.scatter_add(a, INDICES, B)),
    "index": ("GR104", lambda a: a[5]),
    "indices": ("GR104", lambda a: a[0, 0, 0]),
    "ellipses": ("GR104", lambda a: a[..., ...]),
    "mask": ("GR002", lambda a: a[a > 0]),
    "index of text": ("GR103", lambda a: a["x"]),
    "slice of text": ("GR112", lambda a: a[1:"x"]),
    "slice without a step": ("GR112", lambda a: a[::0]),
    "layer_norm": ("GR001", lambda a: gd.layer_norm(a, B, 0)),
    "cross_entropy": ("GR001", lambda a: gd.cross_entropy(a, np.arange(7))),
    "one_hot": ("GR112", lambda a: gd.one_hot(INDICES, -3)),
    "iota": ("GR104", lambda a: gd.iota((3,), 5)),
    "arange": ("GR112", lambda a: gd.arange(-3)),
    "arange step": ("GR112", lambda a: gd.arange(0, 3, 0)),
    "moveaxis": ("GR104", lambda a: gd.moveaxis(a, (0, 1), (0,))),
    "moveaxis twice": ("GR104", lambda a: gd.moveaxis(a, (0, 0), (0, 1))),
    "tril of a vector": ("GR104", lambda a: gd.tril(a[0])),
    "trace of a vector": ("GR104", lambda a: gd.trace(a[0])),
    "diagonal of a vector": ("GR104", lambda a: gd.diagonal(a[0])),
    "diag of a number": ("GR104", lambda a: gd.diag(a[0, 0])),
    "Jacobian by an integer": ("GR109", lambda a: gd.jacrev(lambda t: t["a"] * t["n"])({"a": a, "n": 3})),
    "Jacobian of an integer by rows": ("GR109", lambda a: gd.jacrev(lambda x: (x, gd.argmax(x)))(a)),
    "axes of another container": ("GR107", lambda a: gd.vmap(lambda t: t["a"], in_axes=({"b": 0},))({"a": a})),
    "tile": ("GR112", lambda a: gd.tile(a, -1)),
    "repeat": ("GR112", lambda a: gd.repeat(a, -1)),
    "roll": ("GR112", lambda a: gd.roll(a, 0.5)),
    "meshgrid": ("GR001", lambda a: gd.meshgrid(a, a)),
    "einsum sizes": ("GR001", lambda a: gd.einsum("ij,ij->i", a, a[:, :2])),
    "einsum ranks": ("GR001", lambda a: gd.einsum("ijk->i", a)),
    "einsum operands": ("GR001", lambda a: gd.einsum("ij,jk->ik", a)),
    "einsum diagonal": ("GR001", lambda a: gd.einsum("ii->i", a)),
    "einsum ellipsis": ("GR001", lambda a: gd.einsum("...ijk->i", a)),
    "einsum result": ("GR001", lambda a: gd.einsum("ij->k", a)),
    "item assignment": ("GR113", lambda a: a.__setitem__(0, 1)),
    "at out of range": ("GR104", lambda a: a.at[3].set(1)),
    "at with a mask in a row": ("GR104", lambda a: a.at[0, a[0] > 0].set(1)),
    "at with an array behind a part": ("GR104", lambda a: a.at[1:, INDICES].set(1)),
    "at with None": ("GR104", lambda a: a.at[0, None].set(1)),
    "at with a step in a row": ("GR104", lambda a: a.at[0, ::2].set(1)),
    "at with a float": ("GR104", lambda a: a.at[0.5].set(1)),
    "at of another shape": ("GR001", lambda a: a.at[0].set(np.ones(7))),
    "spec of a name": ("GR112", lambda a: gd.Spec(("n+", 2))),
    "spec of a type": ("GR103", lambda a: gd.Spec(2, "longdouble")),
    "full": ("GR112", lambda a: gd.full((-1,), 0)),
    "element type": ("GR103", lambda a: gd.zeros(3, "quaternion")),
    "long double": ("GR103", lambda a: a.astype(np.longdouble)),
    "ragged": ("GR103", lambda a: gd.asarray([[1], [1, 2]])),
    "text": ("GR103", lambda a: a + "x"),
    "nothing": ("GR103", lambda a: gd.exp(None)),
    "a number too large": ("GR103", lambda a: gd.asarray(np.int32(1)) + 10**12),
    "relu of unsigned": ("GR011", lambda a: gd.relu(UNSIGNED)),
    "minus a truth": ("GR011", lambda a: -gd.asarray(TRUTHS)),
    "difference of truths": ("GR002", lambda a: gd.subtract(TRUTHS, TRUTHS)),
    "shift of floats": ("GR011", lambda a: gd.right_shift(a, a)),
    "xor of floats": ("GR002", lambda a: a ^ a),
    "loop bound": ("GR112", lambda a: gd.fori_loop(0, 3.5, lambda i, s: s, a)),
    "scan lengths": ("GR001", lambda a: gd.scan(lambda c, x: (c, x), a, (a, B))),
    "scan backwards": ("GR112", lambda a: gd.scan(lambda c, x: (c, c), a, length=-1)),
    "grad of a matrix": ("GR108", lambda a: gd.grad(lambda x: x)(A)),
    "grad of an integer": ("GR109", lambda a: gd.grad(lambda x: gd.sum(x * 1.0))(INDICES)),
    "argnums": ("GR104", lambda a: gd.grad(lambda x: x.sum(), 3)(A)),
    "argnums of text": ("GR112", lambda a: gd.grad(lambda x: x.sum(), "x")(A)),
    "has_aux": ("GR108", lambda a: gd.grad(lambda x: x.sum(), has_aux=True)(A)),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.parametrize("mode", ["traced", "eager"])
def test_mistakes_are_errors_at_the_users_line(name: str, mode: str) -> None:
    code, function = MISTAKES[name]
    with pytest.raises(GradirError) as caught:
        if mode == "traced":
            gd.jit(function, cache=False)(A)
        else:
            with gd.eager():
                function(gd.asarray(A))
    error = caught.value
    assert error.code == code and error.part == "graph"
    assert error.found
    assert f"test_bad_use.py:{function.__code__.co_firstlineno}:" in error.location
    assert error.expected or code == "GR011"  # a verifier's message holds both


def test_an_op_without_a_rule_on_an_active_path(monkeypatch: pytest.MonkeyPatch) -> None:
    load_rules()
    load_rules()
    monkeypatch.delitem(VJP, nd.SinOp)

    def loss(x: Any) -> Any:
        return gd.sum(gd.sin(x))

    with pytest.raises(GradirError) as caught:
        gd.jit(gd.grad(loss), cache=False)(A)
    error = caught.value
    assert error.part == "autodiff" and error.code == "AD001" and error.op == "nd.sin"
    assert f"test_bad_use.py:{loss.__code__.co_firstlineno + 1}:" in error.location
    assert "ad.value_and_grad @loss" in error.found and "wrt [0]" in error.found


def test_extrema_of_truths() -> None:
    for mask in (TRUTHS, ~TRUTHS | TRUTHS, TRUTHS & ~TRUTHS):
        assert gd.jit(gd.max, cache=False)(mask) == mask.max()
        assert gd.jit(gd.min, cache=False)(mask) == mask.min()
