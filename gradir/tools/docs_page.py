"""How the generators of reference pages end: the page goes to the file that the command line names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def write_page(text: str, arguments: Sequence[str], default: Path) -> int:
    """Write `text` to the file named first in `arguments`, `default` without any; the exit code."""
    target = Path(arguments[0]) if arguments else default
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    return 0
