"""Calls of compiled functions that native code recognises, and those that it must leave to Python: containers, numbers, keywords, `out=`."""

from __future__ import annotations

import gc
import pickle
import sys
import threading
import weakref
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import gradir as gd
from gradir.errors import GradirError
from gradir.runtime import memory

A = np.arange(6, dtype=np.float32).reshape(2, 3)


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass
class Box:
    value: Any
    scale: Any = 1.0


class Watched:
    """A compiled function, and how many of its calls Python saw."""

    def __init__(self, function, *args, **kwargs) -> None:
        self.jitted, self.seen = gd.jit(function, cache=False), 0
        self.jitted(*args, **kwargs)
        look = self.jitted._any_call

        def counted(*args, **kwargs):
            self.seen += 1
            return look(*args, **kwargs)

        dispatch = gd.runtime.dispatch.Dispatch(
            counted, out=None if self.jitted._takes_out else "out", modes=gd.frontends.python.trace.MODES.word
        )
        for entry in self.jitted._dispatch._known.values():
            dispatch.add(entry)
        self.jitted._dispatch = dispatch
        self.jitted.__call__ = dispatch.builtin()

    def __call__(self, *args, **kwargs):
        return self.jitted(*args, **kwargs)


def same(found, wanted) -> bool:
    one, other = gd.frontends.python.pytrees.flatten(found), gd.frontends.python.pytrees.flatten(wanted)
    return one[1] == other[1] and all(np.array_equal(a, b) for a, b in zip(one[0], other[0], strict=True))


TREES = {
    "array": lambda x: x * 2,
    "tuple": lambda x: (x * 2, x + 1),
    "list and dict": lambda x: [x + 1, {"b": x, "a": [x * 2, None]}],
    "named tuple": lambda x: Pair(x * 2, (x + 1,)),
    "dataclass": lambda x: Box(x * 2, {"c": x - 1}),
    "nothing": lambda x: None,
    "empty": lambda x: ((), {}),
}


@pytest.mark.parametrize("name", TREES)
def test_results_in_containers(name):
    function = Watched(TREES[name], A)
    wanted = TREES[name](A)
    assert all(same(function(A), wanted) for _ in range(3)) and function.seen == 0
    if name not in ("nothing", "empty"):
        out = gd.frontends.python.pytrees.tree_map(np.zeros_like, wanted)
        returned = function(A, out=out)
        assert same(out, wanted) and function.seen == 0
        firsts = [gd.frontends.python.pytrees.flatten(tree)[0] for tree in (returned, out)]
        assert all(a is b for a, b in zip(*firsts, strict=True))


def test_arguments_in_containers():
    def total(tree, pair, *, scale, box):
        return tree["w"][0] * scale + tree["b"][1] + pair.left - pair.right[0] + box.value * box.scale

    tree = {"w": [A], "b": (None, A + 1)}
    arguments = (tree, Pair(A * 3, [A]))
    function = Watched(total, *arguments, scale=2.0, box=Box(A, np.float32(4)))
    wanted = A * 2 + A + 1 + A * 3 - A + A * 4
    assert np.array_equal(function(*arguments, scale=2.0, box=Box(A, np.float32(4))), wanted) and function.seen == 0
    out = np.zeros_like(A)
    assert function(*arguments, scale=2.0, box=Box(A, np.float32(4)), out=out) is out and function.seen == 0
    assert np.array_equal(out, wanted)
    assert np.array_equal(function(*arguments, box=Box(A, np.float32(4)), scale=2.0), wanted) and function.seen == 1
    assert np.array_equal(function(*arguments, box=Box(A, np.float32(4)), scale=2.0), wanted) and function.seen == 1
    others = [
        ({"w": [A], "b": (None, A + 1), "c": A}, arguments[1]),
        ({"w": (A,), "b": (None, A + 1)}, arguments[1]),
        ({"w": [A], "b": (A, A + 1)}, arguments[1]),
        ({"w": [A], "b": (None, A.astype(np.float64))}, arguments[1]),
        (tree, (A * 3, [A])),
        (tree, Pair(A * 3, A[None])),
    ]
    for n, other in enumerate(others):
        with suppress(AttributeError, GradirError):  # the function itself cannot use some of them
            function(*other, scale=2.0, box=Box(A, np.float32(4)))
        assert function.seen == 2 + n


def test_what_containers_hold_outlives_their_change():
    """Another thread empties the list while compiled code reads its array."""
    big = np.ones((256, 256), np.float32)
    function = gd.jit(lambda xs: (xs[0] @ xs[0]) @ xs[0], cache=False)
    wanted = function([big])
    held = [[big.copy()] for _ in range(40)]
    stop = threading.Event()

    def empty() -> None:
        while not stop.is_set():
            for row in held:
                row[:] = [big.copy()]

    thread = threading.Thread(target=empty)
    thread.start()
    try:
        assert all(np.array_equal(function(row), wanted) for row in held)
    finally:
        stop.set()
        thread.join()


def test_numbers_and_numpy_scalars():
    def f(x, k):
        return x * k

    function = Watched(f, A, 2.0)
    assert np.array_equal(function(A, 3.5), A * np.float32(3.5)) and function.seen == 0
    assert np.array_equal(function(A, -0.0), A * np.float32(-0.0)) and np.isnan(function(A, float("nan"))).all() and function.seen == 0
    function(A, np.float32(1))
    seen = function.seen
    assert np.array_equal(function(A, np.float32(5)), A * 5) and function.seen == seen
    whole = np.arange(3, dtype=np.int32)
    counted = Watched(f, whole, 2)
    assert np.array_equal(counted(whole, -7), whole * -7) and counted.seen == 0
    with pytest.raises(GradirError) as caught:
        counted(whole, 1 << 40)
    assert caught.value.code == "RT003"
    with pytest.raises(GradirError) as caught:
        counted(whole, -(1 << 80))
    assert caught.value.code == "RT003"
    assert np.array_equal(counted(whole, -1), -whole)
    logical = Watched(lambda x, k: gd.where(k, x, -x), A, True)
    assert np.array_equal(logical(A, False), -A) and np.array_equal(logical(A, np.True_), A)
    scaled = np.float64(0.1)
    double = Watched(f, A.astype(np.float64), scaled)
    assert np.array_equal(double(A.astype(np.float64), scaled), A.astype(np.float64) * scaled) and double.seen == 0


def test_a_number_for_an_argument_of_another_type_is_converted():
    compiled = gd.compile(lambda x, k: x * k, gd.Spec(3, np.float64), gd.Spec((), np.float64), cache=False)
    x = np.arange(3.0)
    for _ in range(3):
        assert np.array_equal(compiled(x, 0.1), x * 0.1)
    for _ in range(2):
        assert np.array_equal(compiled(x, np.float64(0.1)), x * 0.1)


def test_static_arguments_select():
    function = gd.jit(lambda x, n, *, mode="add": x + n if mode == "add" else x * n, static=("n", "mode"), cache=False)
    for _ in range(3):
        for n, wanted in ((2, A + 2), (3, A + 3), (2.5, A + np.float32(2.5)), (0.0, A + 0), (True, A + 1), (1, A + 1)):
            assert np.array_equal(function(A, n), wanted)
        assert np.array_equal(function(A, 2, mode="mul"), A * 2) and np.array_equal(function(A, n=3, mode="mul"), A * 3)
    signs = gd.jit(lambda x, n: 1 / ((x + 1) * n), static=("n",), cache=False)
    for _ in range(3):
        assert np.all(signs(A, 0.0) == np.inf) and np.all(signs(A, -0.0) == -np.inf)


def test_many_shapes_and_default_arguments():
    function = gd.jit(lambda x, y=2.0: x * y, cache=False)
    for _ in range(2):
        for n in range(12):
            x = np.arange(n, dtype=np.float32)
            assert np.array_equal(function(x), x * 2) and np.array_equal(function(x, y=np.float32(3)), x * 3)
    assert len(function.programs) == 24


def test_named_sizes_are_checked_on_every_call():
    function = gd.jit(lambda x, y: x + y, dynamic={"x": ("n", 3), "y": ("n", 3)}, cache=False)
    for n in (2, 5, 0, 7):
        x = np.ones((n, 3), np.float32)
        assert np.array_equal(function(x, x), 2 * x)
        out = np.empty_like(x)
        assert function(x, x, out=out) is out and np.array_equal(out, 2 * x)
    with pytest.raises(GradirError) as caught:
        function(np.ones((2, 3), np.float32), np.ones((4, 3), np.float32))
    assert caught.value.code == "RT004"
    with pytest.raises(GradirError) as caught:
        function(x, x, out=np.empty((6, 3), np.float32))
    assert caught.value.code == "RT006"
    assert len(function.programs) == 1


class TestOut:
    def test_mistakes(self):
        function = gd.jit(lambda x: (x + 1, x * 2), cache=False)
        good = np.zeros_like(A), np.zeros_like(A)
        assert function(A, out=good)[1] is good[1]
        frozen = np.zeros_like(A)
        frozen.flags.writeable = False
        for code, out in (
            ("RT006", (good[0], np.zeros(4, np.float32))),
            ("RT006", (good[0], np.zeros((2, 3)))),
            ("RT006", (good[0], frozen)),
            ("RT006", (good[0], good[0])),
            ("RT006", (good[0], 3)),
            ("GR107", good[0]),
            ("GR107", {"a": good[0], "b": good[1]}),
            ("GR107", (good[0],)),
        ):
            for callee in (function, function.programs[0]):
                with pytest.raises(GradirError) as caught:
                    callee(A, out=out)
                assert caught.value.code == code, out
        assert np.array_equal(function(A, out=list(good))[0], A + 1)
        assert np.array_equal(function(A, out=None)[0], A + 1)

    def test_of_a_function(self):
        function = gd.compile(lambda x: x + 1, A, cache=False).function
        with pytest.raises(GradirError) as caught:
            function(A, out="here")
        assert caught.value.code == "RT006" and caught.value.found == "str" and caught.value.expected == "an array 2x3xf32"
        out = np.zeros_like(A)
        assert function(A, out=out) is out and function(A, out=[out]) is out and np.array_equal(out, A + 1)

    def test_layouts_that_need_a_copy(self):
        function = gd.jit(lambda x: gd.transpose(x, (1, 0)), cache=False)
        square = np.arange(9, dtype=np.float32).reshape(3, 3)
        for _ in range(2):
            strided = np.zeros((3, 6), np.float32)
            assert np.shares_memory(function(square, out=strided[:, ::2]), strided)
            assert np.array_equal(strided[:, ::2], square.T) and not strided[:, 1::2].any()
            same_memory = square.copy()
            assert np.array_equal(function(same_memory, out=same_memory), square.T)
            raw = np.zeros(37, np.uint8)[1:].view(np.float32).reshape(3, 3)
            assert np.array_equal(function(square, out=raw), square.T)

    def test_belongs_to_a_function_that_has_such_an_argument(self):
        assert np.array_equal(gd.jit(lambda x, out: x + out, cache=False)(A, out=A), A + A)
        kept = gd.jit(lambda x, **kw: x + kw["out"], cache=False)
        assert all(np.array_equal(kept(A, out=A), A + A) for _ in range(2)) and np.array_equal(A[0], [0, 1, 2])

    def test_in_a_trace_and_in_eager_mode(self):
        inner = gd.jit(lambda x: x + 1, cache=False)
        with pytest.raises(GradirError) as caught:
            gd.jit(lambda x: inner(x, out=np.zeros_like(A)), cache=False)(A)
        assert caught.value.code == "GR132"
        out = np.zeros_like(A)
        with gd.eager():
            assert inner(A, out=out) is out and np.array_equal(out, A + 1)


def test_a_call_inside_of_a_trace_or_of_eager_code_is_not_taken_for_one_from_outside():
    printed: list[int] = []

    def inner(x):
        printed.append(1)
        return x + 1

    jitted = gd.jit(inner, cache=False)
    assert np.array_equal(jitted(A), A + 1) and len(printed) == 1
    text = str(gd.jit(lambda x: jitted(A) * x).lower(A))
    assert "call @inner" in text.replace("func.call", "call") and len(printed) == 2
    with gd.eager():
        jitted(A)
    assert len(printed) == 3
    other = threading.Thread(target=lambda: jitted(A))
    with gd.eager():  # of this thread alone
        other.start()
        other.join()
    assert len(printed) == 3 and gd.frontends.python.trace.MODES.word.value == 0


def test_results_own_blocks_of_the_pool():
    function = gd.jit(lambda x: x + 1, cache=False)
    function(A)
    gc.collect()
    before = memory.statistics().live_bytes
    results = [function(A) for _ in range(3)]
    assert all(r.flags.owndata and r.base is None and r.ctypes.data % 64 == 0 for r in results)
    assert memory.statistics().live_bytes == before + 3 * 64
    results[0].resize((100, 3), refcheck=False)
    assert np.array_equal(results[0][:2], A + 1) and not results[0][2:].any()
    del results
    assert memory.statistics().live_bytes == before


def test_nothing_keeps_arrays_alive():
    function = gd.jit(lambda tree: {"y": tree["x"] + 1}, cache=False)
    x = A.copy()
    tree = {"x": x}
    for _ in range(3):
        result = function(tree)
        function(tree, out=result)
        with pytest.raises(GradirError):
            function(tree, out={"y": np.zeros(3)})
    counts = sys.getrefcount(x), sys.getrefcount(tree), sys.getrefcount(result), sys.getrefcount(result["y"])
    assert counts == (3, 2, 2, 2)
    seen = weakref.ref(x)
    del x, tree, result
    assert seen() is None


def doubled(x):
    return x * 2


doubled = gd.jit(doubled, cache=False)


def test_pickled_by_name():
    assert pickle.loads(pickle.dumps(doubled)) is doubled
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(gd.jit(lambda x: x))


def test_dlpack_and_other_arrays():
    class Exporter:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    class Kind(np.ndarray):
        pass

    function = gd.jit(lambda x: x + 1, cache=False)
    for _ in range(2):
        for value in (A, Exporter(A), A.view(Kind), np.asfortranarray(A), np.broadcast_to(A[:1], (2, 3)), gd.runtime.Buffer.from_array(A)):
            assert np.array_equal(function(value), np.asarray(getattr(value, "array", value)) + 1)
    assert type(function(A.view(Kind))) is np.ndarray
    assert np.array_equal(np.from_dlpack(function(A)), A + 1)
    frozen = A.copy()
    frozen.flags.writeable = False
    assert np.array_equal(function(frozen), A + 1) and len(function.programs) == 1
    long_long = np.arange(3, dtype=np.longlong)
    assert np.array_equal(gd.jit(lambda x: x * 2, cache=False)(long_long), long_long * 2)
    target = np.zeros_like(A)
    function(A, out=Exporter(target))
    assert np.array_equal(target, A + 1)
