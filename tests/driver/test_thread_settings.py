"""How many threads compiled code uses: what the caller says, else `GRADIR_NUM_THREADS`, else what the process may run on."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import gradir as gd
from gradir.driver.threads import chosen_threads
from gradir.errors import GradirError

X = np.ones(4, np.float32)


def threads_of(**options) -> int:
    return gd.jit(lambda x: x + 1, cache=False, **options).compile(X).module.threads


def test_the_variable_is_the_default(monkeypatch):
    monkeypatch.setenv("GRADIR_NUM_THREADS", " 3 ")
    assert threads_of() == 3 and threads_of(threads=2) == 2
    monkeypatch.setenv("GRADIR_NUM_THREADS", "")
    assert threads_of() == gd.runtime.threads.available_threads()
    monkeypatch.delenv("GRADIR_NUM_THREADS")
    assert chosen_threads(None) is None and chosen_threads(5) == 5


@pytest.mark.parametrize("text", ["many", "0", "-1", "2.0", "99999", "٣"])
def test_a_variable_that_is_no_number(monkeypatch, text):
    monkeypatch.setenv("GRADIR_NUM_THREADS", text)
    with pytest.raises(GradirError) as caught:
        threads_of()
    assert caught.value.code == "RT018" and caught.value.part == "runtime" and caught.value.found == repr(text)
    assert "GRADIR_NUM_THREADS" in caught.value.message and "from 1" in caught.value.expected
    assert threads_of(threads=2) == 2


@pytest.mark.parametrize("count", [-1, 1.5, "2", 1 << 40])
def test_a_number_of_threads_that_there_is_not(count):
    with pytest.raises(GradirError, match="no such number of threads") as caught:
        threads_of(threads=count)
    assert caught.value.code == "RT017" and caught.value.found == repr(count)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="a system without processor sets")
def test_the_processors_of_the_process():
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "import numpy as np, gradir as gd\n"
        "f = gd.jit(lambda x: x @ x, cache=False); x = np.ones((256, 256), np.float32); assert (f(x) == 256).all()\n"
        "assert f.programs[0].module.threads == 1 and gd.runtime.threads.worker_count() == 0"
    )
    environment = {name: value for name, value in os.environ.items() if name != "GRADIR_NUM_THREADS"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
