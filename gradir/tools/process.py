"""How the command lines start and end.

A tool runs once and exits: the garbage collector only costs time, and tearing down the interpreter takes longer than many
runs. Under coverage the normal way out is taken, so that the data gets written.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

OK, DIAGNOSED, USAGE = 0, 1, 2
"""Exit codes: nothing to report; diagnostics were reported; the command line itself is wrong."""

Run = Callable[[Sequence[str]], int]


def exit_with(run: Run) -> NoReturn:
    """Run a tool on the process's arguments and end the process with its exit code."""
    gc.disable()
    try:
        code = run(sys.argv[1:])
    except SystemExit as end:  # argparse: 0 after --help, 2 for a wrong command line
        code = end.code if isinstance(end.code, int) else USAGE
    except BrokenPipeError:  # the reader of our output has gone, as in `| head`
        os._exit(DIAGNOSED)
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        os._exit(DIAGNOSED)
    if "coverage" in sys.modules:
        sys.exit(code)
    os._exit(code)
