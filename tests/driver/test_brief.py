"""Which functions run with the GIL held: those that take less time than releasing it."""

from __future__ import annotations

import numpy as np
import pytest

import gradir as gd

F = np.float32
SMALL, LARGE = np.ones(8, F), np.ones(1 << 16, F)
SQUARE = np.ones((8, 8), F)


def brief(function, *args, **options) -> bool:
    jitted = gd.jit(function, cache=False, **options)
    jitted(*args)
    return jitted.programs[0].function.spec.brief


@pytest.mark.parametrize(
    ("wanted", "function", "args"),
    [
        (True, lambda x: x + 1, (SMALL,)),
        (True, lambda x: gd.sum(gd.exp(x @ x)), (SQUARE,)),
        (False, lambda x: x + 1, (LARGE,)),
        (False, lambda x: x @ x, (np.ones((32, 32), F),)),
        (False, lambda x: gd.exp(gd.exp(gd.exp(x))), (np.ones(100, F),)),
        (True, lambda x: gd.fori_loop(0, 3, lambda i, v: v * v, x), (SMALL,)),
        (False, lambda x: gd.fori_loop(0, 3000, lambda i, v: v * v, x), (SMALL,)),
        (False, lambda x: gd.while_loop(lambda v: gd.all(v < 5), lambda v: v + 1, x), (SMALL,)),
    ],
)
def test_by_the_operations(wanted, function, args):
    assert brief(function, *args) is wanted


def test_sizes_of_the_run_are_not_brief():
    assert not brief(lambda x: x + 1, SMALL, dynamic={"x": ("n",)})


def test_it_travels_with_the_artefact(tmp_path):
    compiled = gd.compile(lambda x: x + 1, SMALL, cache=False)
    compiled.save(tmp_path / "add.gradir")
    function = gd.runtime.load(tmp_path / "add.gradir")[compiled.name]
    assert function.spec.brief and np.array_equal(function(SMALL), SMALL + 1)
