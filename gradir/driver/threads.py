"""How many threads compiled code may use where nobody says: `GRADIR_NUM_THREADS`, else all that this process may run on."""

from __future__ import annotations

import os

from gradir.errors import GradirError

THREADS_VARIABLE = "GRADIR_NUM_THREADS"
MOST = 4096


def chosen_threads(asked: int | None) -> int | None:
    """`asked`, else the number in `GRADIR_NUM_THREADS`, else None.

    GradirError RT017 when `asked` is no number of threads, RT018 when the variable holds none.
    """
    if asked is not None and not (type(asked) is int and 1 <= asked <= MOST):
        raise GradirError(
            "no such number of threads",
            part="runtime",
            code="RT017",
            expected=f"a whole number from 1 to {MOST}",
            found=repr(asked),
            hint="leave it out to use every processor that the process may run on",
        )
    text = os.environ.get(THREADS_VARIABLE, "").strip()
    if asked is not None or not text:
        return asked
    if text.isascii() and text.isdigit() and 1 <= int(text) <= MOST:
        return int(text)
    raise GradirError(
        f"{THREADS_VARIABLE} holds no number of threads",
        part="runtime",
        code="RT018",
        expected=f"a whole number from 1 to {MOST}, or an unset variable",
        found=repr(text),
        hint=f"`export {THREADS_VARIABLE}=2`, or `unset {THREADS_VARIABLE}` to use every processor that the process may run on",
    )
