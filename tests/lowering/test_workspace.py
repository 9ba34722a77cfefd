"""Buffers whose sizes follow from the arguments: one allocation, slots shared by buffers of equal bytes, bytes stated as a text."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.driver.lower import lower
from gradir.ir.text import print_module
from gradir.reference import check_semantics

W = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)


def chain(x: Any) -> Any:
    """Four products: three intermediates of one size, two of which are live at once."""
    for _ in range(4):
        x = x @ W
    return x


def two_sizes(x: Any) -> Any:
    """Intermediates of b and of 2*b rows in turn."""
    y = gd.concatenate([x @ W, x @ W]) @ W
    return gd.concatenate([y, y])[: x.shape[0]] @ W


def in_a_loop(x: Any) -> Any:
    return gd.fori_loop(0, 3, lambda _, s: gd.tanh((s @ W) @ W), x)


def in_a_branch(x: Any) -> Any:
    return gd.cond(x.sum() > 0, lambda v: (v @ W) @ W, lambda v: ((v[1:] @ W) @ W).sum() + v, x)


def gradient(x: Any) -> Any:
    return gd.grad(lambda v: (gd.tanh(gd.tanh(v @ W) @ W) ** 2).sum())(x)


PROGRAMS = {f.__name__: f for f in (chain, two_sizes, in_a_loop, in_a_branch, gradient)}


def planned(function: Any) -> tuple[Any, str]:
    """The module at level 1 and the text of its entry at level 3."""
    module = gd.jit(function).lower(gd.Spec(("b", 4)))
    lower(module, target="cpu", last="tensor")
    lowered = module.clone()
    lower(lowered, last="buffers")
    text = print_module(lowered)
    return (module, lowered), text[text.index(f"func.func @{function.__name__}") :]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_meaning_stays_at_every_size(name: str) -> None:
    (before, after), _ = planned(PROGRAMS[name])
    error = check_semantics(before, after, samples=5)
    assert error is None, error


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_programs_at_several_sizes(name: str) -> None:
    dynamic = gd.jit(PROGRAMS[name], dynamic={0: ("b", 4)}, cache=False)
    for b in (3, 0, 1, 70):
        x = np.random.default_rng(b).standard_normal((b, 4)).astype(np.float32)
        np.testing.assert_allclose(dynamic(x), gd.jit(PROGRAMS[name], cache=False)(x), rtol=1e-4, atol=1e-5)


def test_equal_sizes_share_slots() -> None:
    _, text = planned(chain)
    assert text.count("memref.alloc") == 1 and text.count("memref.view %workspace") == 3
    assert 'gradir.workspace = "128*floordiv(16*x_0+63,64)"' in text
    assert re.search(r"memref.dealloc %workspace : memref<\?xi8>\s+func.return", text)


def test_the_manifest_tells_the_bytes_of_a_call() -> None:
    function = gd.compile(chain, gd.Spec(("b", 4)), cache=False).module["chain"]
    assert function.spec.workspace == "128*floordiv(16*x_0+63,64)"
    assert [function.planned_bytes(np.zeros((b, 4), np.float32)) for b in (0, 1, 100)] == [0, 128, 2 * 1600]


def test_one_buffer_keeps_its_allocation() -> None:
    _, text = planned(lambda_two)
    assert "workspace" not in text and text.count("memref.alloc") == 1


def lambda_two(x: Any) -> Any:
    return (x @ W) @ W


def test_the_tape_of_a_loop_without_lanes() -> None:
    """Of buffers of 0 bytes in trips that nobody knows at the entry: 0 times an unknown size is 0, but the size itself has no text."""

    def root(a: Any) -> Any:
        return gd.while_loop(lambda s: gd.abs(s * s - a) > 1e-12, lambda s: 0.5 * (s + a / s), gd.ones_like(a))

    slopes = gd.jit(gd.vmap(gd.grad(root)), cache=False)
    for n in (0, 2):
        np.testing.assert_allclose(slopes(np.full(n, 4.0)), np.full(n, 0.25), rtol=1e-6)
