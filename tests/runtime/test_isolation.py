"""The runtime alone: without xDSL, without the compiler, cheap to import; its ABI is the emitter's."""

from __future__ import annotations

import subprocess
import sys

from gradir.dialects.target import abi as emitted
from gradir.runtime import abi
from tests.runtime import compiled_programs as programs

BANNED = """
import sys
class No:
    def find_spec(self, name, *_):
        if name.split('.')[0] == 'xdsl': raise ImportError('xdsl is banned here')
sys.meta_path.insert(0, No())
import gradir.runtime
assert 'numpy' not in sys.modules and 'llvmlite' not in sys.modules
module = gradir.runtime.load(sys.argv[1])
import numpy
x = numpy.ones((5, 3), numpy.float32)
doubled, count = module['twice'](x)
assert (doubled == 2).all() and count == 15
bad = [m for m in sys.modules if m.startswith(('gradir.dialects', 'gradir.lowering', 'gradir.targets', 'gradir.driver', 'gradir.ir'))]
assert not bad, bad
"""


def test_an_artefact_runs_without_xdsl(tmp_path):
    path = tmp_path / "twice.gradir"
    programs.twice().save(path)
    done = subprocess.run([sys.executable, "-c", BANNED, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_exit_with_sleeping_workers_is_clean(tmp_path):
    path = tmp_path / "rows.gradir"
    programs.rows(4).save(path)
    code = "import sys, numpy, gradir.runtime as r; m = r.load(sys.argv[1]); m['rows'](numpy.arange(1000)); assert m.threads == 4"
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_first_use_by_several_threads_makes_one_library():
    code = (
        "import threading; from gradir.runtime.native.library import native\n"
        "found, start = [], threading.Barrier(4)\n"
        "def use(): start.wait(); found.append(native())\n"
        "threads = [threading.Thread(target=use) for _ in range(4)]\n"
        "for t in threads: t.start()\n"
        "for t in threads: t.join()\n"
        "assert len(found) == 4 and len(set(map(id, found))) == 1"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_first_calls_by_several_threads_share_what_points_into_it():
    """A builtin points to the definition of its method for ever: one that a second thread replaced was freed, and the next call crashed."""
    code = (
        "import threading, time; from gradir.runtime import dispatch\n"
        "real, found, start = dispatch.native, [], threading.Barrier(4)\n"
        "dispatch.native = lambda: (time.sleep(0.05), real())[1]\n"
        "def use(): start.wait(); found.append(dispatch._method())\n"
        "threads = [threading.Thread(target=use) for _ in range(4)]\n"
        "for t in threads: t.start()\n"
        "for t in threads: t.join()\n"
        "assert len(found) == 4 and len(set(map(id, found))) == 1"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_abi_is_the_emitters():
    shared = {name: value for name, value in vars(emitted).items() if name.isupper() and hasattr(abi, name)}
    assert len(shared) >= 10
    assert all(getattr(abi, name) == value for name, value in shared.items())
    assert emitted.ARENA_ALIGNMENT == abi.ALIGNMENT


def test_unknown_name_of_the_package():
    import gradir.runtime

    try:
        _ = gradir.runtime.nothing
    except AttributeError as error:
        assert "nothing" in str(error)
    else:
        raise AssertionError("no error")
