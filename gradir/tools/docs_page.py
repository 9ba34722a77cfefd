"""`python -m gradir.tools.docs_page`: writes every generated page of docs/ anew; run from the root of the repository.

The generators, `docs_ops`, `docs_python`, `docs_passes`, `docs_errors`, `docs_architecture`, `docs_autodiff`, run alone too.
tests/test_docs.py compares.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

GENERATORS = ("docs_ops", "docs_python", "docs_passes", "docs_errors", "docs_architecture", "docs_autodiff")
"""Modules beside this one, each with `page()`, the text, and `TARGET`, where it belongs."""


def write_page(text: str, arguments: Sequence[str], default: Path) -> int:
    """Write `text` to the file named first in `arguments`, `default` without any; the exit code."""
    target = Path(arguments[0]) if arguments else default
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    return 0


def main() -> int:
    """Write all pages to their places."""
    for name in GENERATORS:
        module = importlib.import_module(f"gradir.tools.{name}")
        write_page(module.page(), (), module.TARGET)
    return 0


if __name__ == "__main__":
    sys.exit(main())
