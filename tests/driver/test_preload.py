"""preload() leaves nothing to import for a compilation."""

from __future__ import annotations

import subprocess
import sys


def _runs(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_preload_loads_passes_dialects_and_the_native_library():
    _runs(
        "import sys, gradir; assert 'xdsl' not in sys.modules; gradir.preload()\n"
        "from gradir.runtime.native.library import native\n"
        "assert native.cache_info().currsize == 1\n"
        "for name in ('gradir.lowering.fuse', 'gradir.dialects.nd', 'gradir.autodiff.differentiate', 'xdsl.dialects.linalg'):\n"
        "    assert name in sys.modules, name"
    )


def test_nothing_of_ours_is_imported_after_preload():
    _runs(
        "import sys, gradir as gd, numpy as np; gd.preload()\n"
        "before = set(sys.modules)\n"
        "loss = lambda w, x: gd.mean(gd.tanh(x @ w) ** 2)\n"
        "step = gd.jit(lambda w, x: w - 0.1 * gd.grad(loss)(w, x), cache=False, donate=[0])\n"
        "step(np.ones((8, 8), np.float32), np.ones((4, 8), np.float32))\n"
        "more = sorted(name for name in set(sys.modules) - before if name.startswith(('gradir', 'xdsl', 'numpy', 'llvmlite')))\n"
        "assert not more, more"
    )
