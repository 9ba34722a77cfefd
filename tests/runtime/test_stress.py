"""Compiled functions under many Python threads, forks, new processes and exits: right results, no deadlock.

The short versions run for some seconds in all; those of a minute each have the mark `full`.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import gradir as gd
from gradir.errors import GradirError

RANDOM = np.random.default_rng(7)
A = RANDOM.standard_normal((192, 192)).astype(np.float32)
B = RANDOM.standard_normal((192, 192)).astype(np.float32)
V = RANDOM.standard_normal(8).astype(np.float32)

SECONDS = [pytest.param(1.0, id="short"), pytest.param(60.0, id="minute", marks=pytest.mark.full)]
CALLERS = 8


@gd.jit(threads=2)
def product(x, y):
    return x @ y


@gd.jit(threads=2)
def rows(x, y):
    return gd.softmax(x + y, -1), gd.sum(x, 0)


@gd.jit(threads=2)
def tiny(x):
    return {"double": x * 2, "more": [x + 1]}


@gd.jit(threads=2)
def loss(x, y):
    return gd.value_and_grad(lambda w: gd.mean(gd.tanh(w @ y)))(x)


PROGRAMS = {"product": (product, (A, B)), "rows": (rows, (A, B)), "tiny": (tiny, (V,)), "loss": (loss, (A, B))}


def flat(result) -> list:
    return gd.frontends.python.pytrees.flatten(result)[0]


def check(name: str) -> list:
    """Results of one program, to the bit the same in every thread and process."""
    function, arguments = PROGRAMS[name]
    return [np.asarray(x).copy() for x in flat(function(*arguments))]


def run(names, seconds: float, extra=()) -> int:
    """Call from `CALLERS` threads for so long; how many calls were made. Any wrong bit or exception of a thread fails."""
    wanted = {name: check(name) for name in set(names)}
    stop, problems, calls = threading.Event(), [], [0] * CALLERS

    def work(k: int) -> None:
        name = names[k % len(names)]
        function, arguments = PROGRAMS[name]
        try:
            while not stop.is_set():
                found = flat(function(*arguments))
                if not all(np.array_equal(a, b) for a, b in zip(found, wanted[name], strict=True)):
                    raise AssertionError(f"{name}: other results")
                calls[k] += 1
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(k,), daemon=True) for k in range(CALLERS)]
    threads += [threading.Thread(target=one, args=(stop, problems), daemon=True) for one in extra]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    stop.set()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads), "a deadlock"
    assert not problems, problems[0]
    assert min(calls) > 0
    return sum(calls)


@pytest.mark.parametrize("seconds", SECONDS)
def test_one_function_from_many_threads(seconds):
    run(["product"], seconds)


@pytest.mark.parametrize("seconds", SECONDS)
def test_four_functions_from_many_threads(seconds):
    run(list(PROGRAMS), seconds)


@pytest.mark.parametrize("seconds", SECONDS)
def test_failures_of_some_callers_are_theirs(seconds):
    """An assertion that does not hold in one thread, arguments of wrong shapes in another, while eight others compute."""

    @gd.jit
    def positive(x):
        gd.assert_(gd.all(x > 0), "all x are positive")
        return x * 2

    def fails(stop, problems) -> None:
        while not stop.is_set():
            try:
                positive(-V * V)
                problems.append(AssertionError("no error"))
            except GradirError as error:
                if error.code != "RT020":
                    problems.append(error)
            if not np.array_equal(positive(V * V), V * V * 2):
                problems.append(AssertionError("a wrong result"))

    def misused(stop, problems) -> None:
        compiled = gd.compile(lambda x: x + 1, V)
        while not stop.is_set():
            try:
                compiled(V[:3])
                problems.append(AssertionError("no error"))
            except GradirError as error:
                if error.code != "RT002":
                    problems.append(error)

    run(["product", "tiny"], seconds, extra=(fails, misused))


@pytest.mark.parametrize("seconds", SECONDS)
def test_children_of_forks_compute_while_others_call(seconds):
    wanted = {name: check(name) for name in PROGRAMS}

    def forks(stop, problems) -> None:
        while not stop.is_set():
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                right = all(np.array_equal(a, b) for name in wanted for a, b in zip(check(name), wanted[name], strict=True))
                os._exit(0 if right else 1)
            if os.waitpid(child, 0)[1] != 0:
                problems.append(AssertionError("a child failed"))

    run(["product", "rows"], seconds, extra=(forks,))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(method):
    """Processes of every kind give the results of this one, also for a compiled function that is passed by its name."""
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    wanted = {name: check(name) for name in PROGRAMS}
    with multiprocessing.get_context(method).Pool(2) as pool:
        found = pool.map_async(check, list(PROGRAMS)).get(240)
        (sent,) = pool.starmap_async(product, [(A, B)]).get(240)
    for name, results in zip(PROGRAMS, found):
        assert all(np.array_equal(a, b) for a, b in zip(results, wanted[name], strict=True))
    assert np.array_equal(sent, wanted["product"][0])


def test_first_calls_of_one_function_compile_once():
    traced: list[int] = []

    def slow(x):
        traced.append(1)
        time.sleep(0.05)
        return gd.exp(x) + 1

    function, start, found = gd.jit(slow, cache=False), threading.Barrier(CALLERS), []

    def call() -> None:
        start.wait()
        found.append(function(V))

    threads = [threading.Thread(target=call) for _ in range(CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == CALLERS and len(traced) == 1 and len(function.programs) == 1
    assert all(np.array_equal(one, found[0]) for one in found)


def test_first_calls_of_several_functions_at_once():
    def make(k: int):
        return gd.jit(lambda x: gd.sum(gd.tanh(x * k) @ x.T, 0) + k, cache=False)

    functions, start, found = [make(k) for k in range(CALLERS)], threading.Barrier(CALLERS), {}

    def call(k: int) -> None:
        start.wait()
        try:
            found[k] = functions[k](A[:16, :24])
        except BaseException as error:
            found[k] = error

    threads = [threading.Thread(target=call, args=(k,)) for k in range(CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for k in range(CALLERS):
        x = A[:16, :24].astype(np.float64)
        assert not isinstance(found[k], BaseException), found[k]
        assert np.allclose(found[k], (np.tanh(x * k) @ x.T).sum(0) + k, atol=1e-3)


def test_a_failed_first_call_lets_the_next_one_compile():
    tries: list[int] = []

    def fails_once(x):
        tries.append(1)
        if len(tries) == 1:
            raise ValueError("not yet")
        return x + 1

    function = gd.jit(fails_once, cache=False)
    with pytest.raises(ValueError, match="not yet"):
        function(V)
    assert np.array_equal(function(V), V + 1)


def test_exit_while_threads_compute():
    code = (
        "import threading, numpy as np, gradir as gd\n"
        "f = gd.jit(lambda x: x @ x, threads=2); x = np.ones((256, 256), np.float32); f(x)\n"
        "def work():\n"
        "    while True: f(x)\n"
        "for _ in range(4): threading.Thread(target=work, daemon=True).start()\n"
        "import time; time.sleep(0.2); print('done', flush=True)"
    )
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", code], timeout=60, capture_output=True, text=True, check=False)
        assert done.returncode == 0 and done.stdout == "done\n" and not done.stderr, done


def test_results_do_not_depend_on_who_computes_them():
    """Alone, inline beside another caller, and with the pool: to the bit."""
    alone = check("loss")
    stop = threading.Event()

    def keep_busy() -> None:
        while not stop.is_set():
            product(A, B)

    threads = [threading.Thread(target=keep_busy) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(30):
            assert all(np.array_equal(a, b) for a, b in zip(check("loss"), alone, strict=True))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
