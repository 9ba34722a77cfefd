"""Where in the user's code a call of the runtime stands: the location of errors about arguments and files."""

from __future__ import annotations

import os
import sys

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def caller_location() -> str:
    """`file:line` of the innermost frame outside this package, or an empty string when there is none."""
    frame = sys._getframe(1)  # the only way to the caller
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""
