"""Appending an op to a group of rows gives what building the group anew gives: the short way is no second opinion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from xdsl.ir import Operation

import gradir as gd
from gradir.lowering.groups import analysis
from gradir.lowering.groups.group import Group, RowsRoles
from gradir.lowering.groups.loops import Loops

X = np.linspace(-1, 2, 2 * 5 * 5 * 7, dtype=np.float32).reshape(2, 5, 5, 7)
V = np.linspace(0.5, 1, 7, dtype=np.float32)


def batch_norm(x: Any, scale: Any, shift: Any) -> Any:
    mean, var = gd.mean(x, (0, 1, 2)), gd.var(x, (0, 1, 2))
    return gd.sum(gd.tanh((x - mean) * (scale / gd.sqrt(var + 1e-5)) + shift))


def batch_norm_step(x: Any, scale: Any, shift: Any) -> Any:
    dx, dscale, dshift = gd.grad(batch_norm, (0, 1, 2))(x, scale, shift)
    return dx, scale - 0.1 * dscale, shift - 0.1 * dshift


def softmax_of_squares(x: Any, scale: Any, shift: Any) -> Any:
    return gd.softmax(x * x * scale + shift, -1) * gd.sum(x, -1, keepdims=True)


def layer_norm_gradient(x: Any, scale: Any, shift: Any) -> Any:
    def loss(x: Any) -> Any:
        return gd.sum(gd.layer_norm(x, scale, shift, 1e-5) ** 2)

    return gd.grad(loss)(x)


def square_of_one_extent(x: Any, scale: Any, shift: Any) -> Any:
    """Both dimensions have one extent: only the flow of values tells them apart."""
    y = gd.exp(gd.outer(scale, shift))
    rows = gd.sum(y, 1)
    return gd.tanh(gd.sqrt(y / rows[:, None]) * shift[None, :]), gd.tanh(rows * shift) + scale


@pytest.mark.parametrize("program", [batch_norm_step, softmax_of_squares, layer_norm_gradient, square_of_one_extent])
def test_appended_groups_are_those_that_build_gives(program: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    appended = 0
    original = analysis._append_to_rows

    def checked(group: Group, rows: RowsRoles, loops: Loops, order: Mapping[Operation, int]) -> Group | None:
        nonlocal appended
        short = original(group, rows, loops, order)
        if short is not None:
            appended += 1
            built = analysis.build(sorted([*(o.loops for o in group.ops), loops], key=lambda loops: order[loops.op]))
            assert built is not None
            assert (built.kind, built.rows, built.extents, built.space) == (short.kind, short.rows, short.extents, short.space)
            assert [o.dims for o in built.ops] == [o.dims for o in short.ops]
            assert list(built.produced) == list(short.produced)
        return short

    monkeypatch.setattr(analysis, "_append_to_rows", checked)
    gd.jit(program, cache=False)(X, V, V)
    assert appended
