"""Names of functions as text: bare where MLIR reads them so, else in quotation marks (JAX calls a function `<lambda>`)."""

from __future__ import annotations

import re

_BARE = re.compile(r"[A-Za-z_][\w$.]*", re.ASCII)


def symbol_text(name: str) -> str:
    """`@name`, or `@"name"`."""
    if _BARE.fullmatch(name):
        return f"@{name}"
    inside = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'@"{inside}"'
