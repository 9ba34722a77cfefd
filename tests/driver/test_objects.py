"""Objects that worker processes make while the passes go on: the same bytes in the same order, whoever made them, whatever gets lost."""

from __future__ import annotations

import io
import os
import signal
import threading

import numpy as np
import pytest

from gradir.dialects.target import host_target
from gradir.driver import objects as driver_objects
from gradir.driver.compile import compile_module
from gradir.driver.objects import WORTH_A_WORKER, Objects, compiling_objects
from gradir.driver.report import CompileReport
from gradir.errors import GradirError
from gradir.targets import object_worker, workers
from gradir.targets.cpu import compile_object

LARGE = WORTH_A_WORKER // 2
"""Kernels of a program that is worth a worker: sums of rows count twice."""

HOST = host_target()
TEXTS = [f"define i64 @f{n}(i64 %x) {{ %y = mul i64 %x, {n}\nret i64 %y }}" for n in range(9)]


@pytest.fixture
def one_worker(monkeypatch):
    """One worker, whatever this machine has; none is left behind."""
    monkeypatch.setattr(workers, "worker_limit", lambda: 1)
    workers.close_workers()
    yield
    workers.close_workers()


def many_kernels(count: int) -> str:
    """A function of `count` different kernels: row sums of growing rows."""
    lines, results = [], []
    for n in range(2, count + 2):
        lines.append(f"  %s{n} = nd.reduce_sum %x{n} dims [1] : tensor<3x{n}xf32> -> tensor<3xf32>")
        results.append(f"%s{n}")
    arguments = ", ".join(f"%x{n}: tensor<3x{n}xf32>" for n in range(2, count + 2))
    types = ", ".join(["tensor<3xf32>"] * count)
    return f"func.func @f({arguments}) -> ({types}) {{\n" + "\n".join(lines) + f"\n  return {', '.join(results)} : {types}\n}}"


def test_objects_come_in_the_order_of_the_texts(one_worker):
    with compiling_objects(HOST, helped=True) as objects:
        assert [objects.add(text) for text in TEXTS] == list(range(9))
        assert objects.finish() == [compile_object(text, HOST) for text in TEXTS]


def test_a_worker_makes_what_this_process_would_make(one_worker):
    (worker,) = workers.take_workers()
    assert [worker.compile(text, HOST) for text in TEXTS] == [compile_object(text, HOST) for text in TEXTS]
    assert worker.compile("define i32 @f() { ret i64 0 }", HOST) is None and worker.alive
    workers.return_workers([worker])
    assert workers.take_workers() == [worker]
    assert workers.take_workers() == []
    workers.return_workers([worker])


@pytest.mark.parametrize("when", ["before", "between"])
def test_a_lost_worker_loses_nothing(one_worker, when):
    (worker,) = workers.take_workers()
    workers.return_workers([worker])
    objects = Objects(HOST)
    if when == "before":
        os.kill(worker._process.pid, signal.SIGKILL)
    objects.hire()
    for number, text in enumerate(TEXTS):
        objects.add(text)
        if when == "between" and number == 4:
            os.kill(worker._process.pid, signal.SIGKILL)
    assert objects.finish() == [compile_object(text, HOST) for text in TEXTS]


def test_a_text_that_llvm_rejects_is_reported_as_without_workers(one_worker):
    with pytest.raises(GradirError) as caught, compiling_objects(HOST, helped=True) as objects:
        objects.add(TEXTS[0])
        objects.add("define i32 @f() { ret i64 0 }")
        objects.finish()
    assert caught.value.code == "OP043"
    (free,) = workers.take_workers()
    workers.return_workers([free])


def test_workers_are_free_again_when_a_pass_fails(one_worker):
    with pytest.raises(RuntimeError), compiling_objects(HOST, helped=True):
        raise RuntimeError("a pass")
    (worker,) = workers.take_workers()
    workers.return_workers([worker])


def test_one_processor_needs_no_worker(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    assert workers.worker_limit() == 0


def test_no_process_can_be_started(monkeypatch):
    def refuse(*_args, **_options):
        raise OSError("no more processes")

    monkeypatch.setattr(workers.subprocess, "Popen", refuse)
    monkeypatch.setattr(workers, "worker_limit", lambda: 1)
    workers.close_workers()
    with compiling_objects(HOST, helped=True) as objects:
        objects.add(TEXTS[0])
        assert objects.finish() == [compile_object(TEXTS[0], HOST)]


def test_a_large_program_is_the_same_with_and_without_workers(one_worker, monkeypatch, tmp_path):
    text = many_kernels(LARGE + 3)
    inputs = [np.arange(3 * n, dtype=np.float32).reshape(3, n) for n in range(2, LARGE + 5)]
    helped = compile_module(text, cache=tmp_path / "helped")
    monkeypatch.setattr(workers, "worker_limit", lambda: 0)
    alone = compile_module(text, cache=tmp_path / "alone")
    uncached = compile_module(text, cache=False)
    kept = [sorted(path.name for path in (tmp_path / name / "objects").iterdir()) for name in ("helped", "alone")]
    assert kept[0] == kept[1] and len(kept[0]) > 3
    for module in (helped, alone, uncached):
        for result, x in zip(module["f"](*inputs), inputs, strict=True):
            np.testing.assert_array_equal(result, x.sum(1))


def test_kernels_of_several_objects_are_found_again(one_worker, tmp_path):
    compile_module(many_kernels(LARGE), cache=tmp_path)
    report = CompileReport()
    compile_module(many_kernels(LARGE + 1), cache=tmp_path, report=report)
    assert (report.kernels_cached, report.kernels_compiled) == (LARGE, 1)


def test_two_threads_compile_at_once(one_worker):
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(3):
                with compiling_objects(HOST, helped=True) as objects:
                    for text in TEXTS:
                        objects.add(text)
                    assert objects.finish() == expected
        except BaseException as error:
            errors.append(error)

    expected = [compile_object(text, HOST) for text in TEXTS]
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors and not any(thread.is_alive() for thread in threads)


def test_a_worker_without_work_ends(monkeypatch):
    monkeypatch.setattr(object_worker, "IDLE_SECONDS", 0.01)
    there, here = os.pipe()
    with open(there, "rb") as requests, open(here, "wb"):  # the other end stays open: silence, not the end
        object_worker.serve(requests, io.BytesIO())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_starts_its_own(one_worker):
    parents = workers.take_workers()
    workers.return_workers(parents)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            (mine,) = workers.take_workers()
            code = 0 if mine not in parents and mine.compile(TEXTS[1], HOST) else 2
            mine.close()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert parents[0].compile(TEXTS[1], HOST) == compile_object(TEXTS[1], HOST)


def test_the_compiler_hires_for_large_programs_only(monkeypatch):
    hired: list[bool] = []
    original = driver_objects.Objects.hire
    monkeypatch.setattr(driver_objects.Objects, "hire", lambda self: (hired.append(True), original(self)))
    compile_module(many_kernels(2), cache=False)
    assert not hired
    compile_module(many_kernels(LARGE), cache=False)
    assert hired
