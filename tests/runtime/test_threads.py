"""The thread pool: results, nesting, concurrent callers, forks, one thread."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

from gradir.runtime.native.threads import threads_ir
from gradir.runtime.threads import available_threads, worker_count
from tests.runtime import compiled_programs as programs

X = np.arange(1000)


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_every_index_once_also_nested(threads):
    rows = programs.rows(threads)["rows"]
    for _ in range(50):
        assert np.array_equal(rows(X), 2 * X + 10)
    assert worker_count() >= threads - 1


def test_one_thread_creates_no_worker():
    done = _in_child(lambda: bool(np.array_equal(programs.rows(1)["rows"](X), 2 * X + 10)) and worker_count() == 0)
    assert done


def test_concurrent_callers():
    rows = programs.rows(2)["rows"]
    wrong = []

    def work() -> None:
        wrong.extend(1 for _ in range(200) if not np.array_equal(rows(X), 2 * X + 10))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_forked_child_gets_its_own_workers():
    rows = programs.rows(2)["rows"]
    rows(X)
    assert worker_count() > 0

    def child() -> bool:
        none_yet = worker_count() == 0
        right = all(np.array_equal(rows(X), 2 * X + 10) for _ in range(20))
        return none_yet and right and worker_count() == 1

    assert _in_child(child)
    assert np.array_equal(rows(X), 2 * X + 10)


def test_fork_while_other_threads_call():
    rows = programs.rows(2)["rows"]
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            rows(X)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            assert _in_child(lambda: bool(np.array_equal(rows(X), 2 * X + 10)))
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_available_threads():
    assert 1 <= available_threads() <= (os.cpu_count() or 1)


def test_waiting_on_systems_without_futex():
    assert "@syscall(i64 202" in threads_ir("x86_64", "linux") and "@syscall(i64 98" in threads_ir("aarch64", "linux")
    assert "call i32 @usleep" in threads_ir("arm64", "darwin") and "@syscall(i64 " not in threads_ir("arm64", "darwin").replace(
        "declare", ""
    )


def _in_child(check) -> bool:
    """Whether `check` holds in a forked child (a crash or a hang of ten seconds does not)."""
    child = os.fork()
    if child == 0:
        import signal

        signal.alarm(10)
        os._exit(0 if check() else 1)
    return os.waitpid(child, 0)[1] == 0
