"""How the command lines start and end.

A tool runs once and exits: the garbage collector only costs time, and tearing down the interpreter takes longer than many
runs. Under coverage the normal way out is taken, so that the data gets written.
"""

from __future__ import annotations

import gc
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import NoReturn

OK, DIAGNOSED, USAGE, INTERRUPTED = 0, 1, 2, 130
"""Exit codes: nothing to report; diagnostics were reported; the command line itself is wrong; Ctrl-C (as shells count it)."""

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
    except KeyboardInterrupt:
        code = INTERRUPTED
    except Exception as error:
        code = report_crash(error)
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        os._exit(DIAGNOSED)
    if "coverage" in sys.modules:
        sys.exit(code)
    os._exit(code)


def report_crash(error: Exception) -> int:
    """Say that the tool itself failed: a bug of ours, or of a plugin, for which the traceback is a note."""
    tool = os.path.basename(sys.argv[0])
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{os.path.basename(frame.filename)}:{frame.lineno}"
    sys.stderr.write(f"{tool}: error: internal error: {type(error).__name__}: {error} ({place})\n")
    sys.stderr.write(f"{tool}: note: {''.join(traceback.format_exception(error)).rstrip()}\n")
    return DIAGNOSED
