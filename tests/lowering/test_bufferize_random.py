"""Random level-2 programs (calls, slices, loops, branches): levels 2 and 3 give the same numbers, before and after `plan-memory`.

The reference evaluator starts buffers as poison and refuses stale reads and writes to arguments: right numbers by luck fail all the same. Each
question of the analysis is needed: `test_a_broken_analysis_is_caught` answers it wrongly, and the program next to it goes wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from gradir.errors import GradirError
from gradir.lowering.bufferize import forwarding, loops, ownership
from gradir.lowering.bufferize.forwarding import Forwarding
from gradir.lowering.bufferize.ownership import Ownership
from tests.lowering.bufferize_checks import Checked
from tests.lowering.bufferize_programs import CELL, STACK, Generator, call, get, module, put

HEAD = "".join(f"%c{k} = arith.constant {k} : index\n" for k in range(5))


def inputs(n: int, seed: int) -> list[Any]:
    r = np.random.default_rng(seed)
    cells = [r.standard_normal((3, 3)).astype(np.float32) for _ in range(2)]
    return [*cells, r.standard_normal((5, 3, 3)).astype(np.float32), np.int64(n), np.bool_(n % 2)]


def check(seed: int, size: int) -> None:
    checked = Checked(Generator(seed, size).program())
    for n in (0, 2):
        checked.agrees(inputs(n, seed), upstream=False)


@settings(max_examples=12, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), size=st.integers(4, 16))
def test_levels_agree(seed: int, size: int) -> None:
    check(seed, size)


@pytest.mark.full
@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 10**6), size=st.integers(4, 40))
def test_levels_agree_on_many_programs(seed: int, size: int) -> None:
    check(seed, size)


@pytest.mark.parametrize("seed", [3, 8])
def test_upstream_agrees(seed: int) -> None:
    Checked(Generator(seed, 12).program()).agrees(inputs(2, seed))


def stack_of(name: str, cell: str) -> str:
    """A stack that the program owns, five times the same cell."""
    text, last = f"{name}_e = tensor.empty() : {STACK}\n", f"{name}_e"
    for k in range(5):
        new = name if k == 4 else f"{name}_{k}"
        text += put(new, cell, last, f"%c{k}")
        last = new
    return text


def saving_loop(at: str, head: str = "") -> str:
    """%h, %st: a recurrence whose states are saved in a stack at `at` (an index, or %j = %i + 1)."""
    step = call("%r", "product", "%a", "%y") + "%j = arith.addi %i, %c1 : index\n" + put("%b2", "%r", "%b", at)
    types = f"{CELL}, {STACK}"
    loop = (
        f"%h, %st = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %x, %b = %s0) -> ({types}) {{\n{step}scf.yield %r, %b2 : {types}\n}}\n"
    )
    return head + call("%z", "zeros") + stack_of("%s0", "%z") + loop


PAIR = f"({CELL}, {STACK})"
TWO_STEPS = call("%t", "scale", "%a") + call("%u", "product", "%b", "%y")


def always(*_: object) -> bool:
    return True


def never(*_: object) -> bool:
    return False


Break = tuple[Any, str, Callable[..., bool], str, str]
BREAKS: dict[str, Break] = {
    "contents that are live together share": (
        Ownership, "_collides", never,
        f"%h = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> ({CELL}) {{\n"
        + call("%t", "product", "%a", "%y") + call("%u", "mean", "%t", "%a") + f"scf.yield %u : {CELL}\n}}\n"
        + f"%g = scf.for %i = %c0 to %n step %c1 iter_args(%a = %h) -> ({CELL}) {{\n"
        + call("%t", "flip", "%a") + f"scf.yield %t : {CELL}\n}}\nreturn %g : {CELL}",
        CELL,
    ),
    "in-place updates at other indices": (
        ownership, "touch", always,
        f"%h = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> ({CELL}) {{\n"
        + call("%t", "flip", "%a") + f"scf.yield %t : {CELL}\n}}\nreturn %h : {CELL}",
        CELL,
    ),
    "the write of a slice overtakes a read": (
        Forwarding, "_untouched", always,
        call("%z", "zeros") + stack_of("%s0", "%z") + call("%t", "scale", "%x") + get("%old", "%s0", "%c1") + call("%u", "mean", "%old", "%y")
        + put("%s1", "%t", "%s0", "%c1") + f"return %u, %s1 : {CELL}, {STACK}",
        PAIR,
    ),
    "slices that meet count as disjoint": (
        forwarding, "disjoint", always,
        call("%z", "zeros") + stack_of("%s0", "%z") + call("%late", "scale", "%x") + call("%early", "scale", "%y")
        + put("%s1", "%early", "%s0", "%c2") + put("%s2", "%late", "%s1", "%c2") + f"return %z, %s2 : {CELL}, {STACK}",
        PAIR,
    ),
    "a source is read after its slice was overwritten": (
        Ownership, "stays", always,
        call("%z", "zeros") + stack_of("%s0", "%z") + call("%t", "scale", "%x") + put("%s1", "%t", "%s0", "%c1") + put("%s2", "%y", "%s1", "%c1")
        + call("%u", "mean", "%t", "%x") + f"return %u, %s2 : {CELL}, {STACK}",
        PAIR,
    ),
    "a slice that does not move is pointed to": (
        loops, "moves_with", always, saving_loop("%c1") + f"return %h, %st : {CELL}, {STACK}", PAIR,
    ),
    "a pointer's slice is overwritten behind the loop": (
        Ownership, "_meets_part", never,
        saving_loop("%j") + call("%t", "scale", "%x") + call("%u", "mean", "%h", "%y") + put("%s1", "%t", "%st", "%c4")
        + f"return %u, %s1 : {CELL}, {STACK}",
        PAIR,
    ),
    "an initial value behind a pointer is overwritten": (
        Ownership, "extend", always,
        call("%z", "scale", "%x") + f"%h, %g = scf.for %i = %c0 to %n step %c1 iter_args(%a = %z, %b = %z) -> ({CELL}, {CELL}) {{\n"
        + TWO_STEPS + f"scf.yield %t, %u : {CELL}, {CELL}\n}}\nreturn %h, %g : {CELL}, {CELL}",
        f"({CELL}, {CELL})",
    ),
    "an index is used before it is known": (
        forwarding, "available", always,
        call("%z", "zeros") + stack_of("%s0", "%z") + call("%t", "scale", "%x") + "%v = tensor.extract %z[%c0, %c0] : tensor<3x3xf32>\n"
        + "%w = arith.fptosi %v : f32 to i32\n%k = arith.index_cast %w : i32 to index\n" + put("%s1", "%t", "%s0", "%k")
        + f"return %z, %s1 : {CELL}, {STACK}",
        PAIR,
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BREAKS)
def test_a_broken_analysis_is_caught(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, name, broken, body, results = BREAKS[what]
    text = module(HEAD + body, results=results)
    Checked(text).agrees(inputs(3, 1), upstream=False)
    monkeypatch.setattr(where, name, broken)
    with pytest.raises((AssertionError, GradirError, KeyError)):
        Checked(text).agrees(inputs(3, 1), upstream=False)
