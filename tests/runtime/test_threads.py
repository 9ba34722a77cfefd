"""The thread pool: results, nesting, concurrent callers, forks, one thread."""

from __future__ import annotations

import os
import threading

import llvmlite.binding as llvm
import numpy as np
import pytest

from gradir.runtime.native.library import native_ir
from gradir.runtime.native.memory import memory_symbols
from gradir.runtime.native.system import system_of
from gradir.runtime.native.wrapper import PYTHON_SYMBOLS
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


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity") or available_threads() < 2, reason="needs two processors, and sets of them")
def test_workers_leave_the_processor_to_their_caller():
    def check() -> bool:
        allowed = os.sched_getaffinity(0)
        before = set(os.listdir("/proc/self/task"))
        rows = programs.rows(2)["rows"]
        rows(X)
        (worker,) = set(os.listdir("/proc/self/task")) - before
        while (elsewhere := os.sched_getaffinity(int(worker))) == allowed:  # the call after the worker's start moves it
            rows(X)
        return len(elsewhere) == len(allowed) - 1 and elsewhere < allowed

    assert _in_child(check)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs sets of processors")
def test_workers_stay_where_the_caller_may_run():
    def check() -> bool:
        one = {min(os.sched_getaffinity(0))}
        os.sched_setaffinity(0, one)
        before = set(os.listdir("/proc/self/task"))
        rows = programs.rows(3)["rows"]
        right = all(np.array_equal(rows(X), 2 * X + 10) for _ in range(20))
        workers = set(os.listdir("/proc/self/task")) - before
        return right and len(workers) == 2 and all(os.sched_getaffinity(int(worker)) == one for worker in workers)

    assert _in_child(check)


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


SYSTEMS = {
    "x86_64-unknown-linux-gnu": "@syscall(i64 202",
    "aarch64-unknown-linux-gnu": "@syscall(i64 98",
    "x86_64-apple-macosx11.0.0": "@__ulock_wait(",
    "arm64-apple-macosx11.0.0": "@__ulock_wait(",
    "x86_64-pc-windows-msvc": "@WaitOnAddress(",
    "aarch64-pc-windows-msvc": "@WaitOnAddress(",
    "x86_64-unknown-freebsd14": "@usleep(",
}


@pytest.mark.parametrize("triple", SYSTEMS)
def test_waiting_on_every_system(triple):
    """The text fits the system and becomes an object for it whose undefined symbols are the ones that are given at link time."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    text = native_ir(triple)
    assert f"call i{32 if 'linux' not in triple else 64} " + ("(i64, ...) " if "linux" in triple else "") + SYSTEMS[triple] in text
    module = llvm.parse_assembly(text)
    module.triple = triple
    module.verify()
    machine = llvm.Target.from_triple(triple).create_target_machine(opt=0, reloc="pic", codemodel="default")
    code = machine.emit_object(module)
    assert len(code) > 4000
    declared = {f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")}
    given = {*system_of(triple).imports, *memory_symbols(triple), *PYTHON_SYMBOLS}
    assert declared <= given and set(system_of(triple).imports) <= declared


def _in_child(check) -> bool:
    """Whether `check` holds in a forked child (a crash or a hang of ten seconds does not)."""
    child = os.fork()
    if child == 0:
        import signal

        signal.alarm(10)
        os._exit(0 if check() else 1)
    return os.waitpid(child, 0)[1] == 0
