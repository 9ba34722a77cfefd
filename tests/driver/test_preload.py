"""preload() leaves nothing to import for a compilation."""

from __future__ import annotations

import subprocess
import sys


def test_preload_loads_passes_dialects_and_the_native_library():
    code = (
        "import sys, gradir; assert 'xdsl' not in sys.modules; gradir.preload()\n"
        "from gradir.runtime.native.library import native\n"
        "assert native.cache_info().currsize == 1\n"
        "for name in ('gradir.lowering.fuse', 'gradir.dialects.nd', 'gradir.autodiff.differentiate', 'xdsl.dialects.linalg'):\n"
        "    assert name in sys.modules, name"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
