"""The tutorials run as they stand: each block of Python, one after the other, prints the block of text that follows it.

`python -m tests.test_tutorials` writes what the blocks print into the pages.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterable
from contextlib import redirect_stdout
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "docs" / "tutorials"
PAGES = sorted(FOLDER.glob("*.md"))
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n^```text\n(.*?)^```\n)?", re.M | re.S)


def executed(page: Path) -> str:
    """The text of the page with what its blocks print."""
    names: dict[str, object] = {"__name__": page.stem}
    lines = page.read_text().count

    def run(match: re.Match[str]) -> str:
        code = "\n" * lines("\n", 0, match.start(1)) + match[1]  # errors name the line of the page
        found = io.StringIO()
        with redirect_stdout(found):
            exec(compile(code, page.name, "exec"), names)
        text = found.getvalue()
        return f"```python\n{match[1]}```\n" + (f"\n```text\n{text}```\n" if text else "")

    return BLOCK.sub(run, page.read_text())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_tutorial_prints(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert executed(page) == page.read_text(), "run python -m tests.test_tutorials"


def test_a_tutorial_checks_itself() -> None:
    """Each one asserts or prints numbers, and says what to do when it goes wrong."""
    for page in PAGES:
        text = page.read_text()
        assert "```text\n" in text and "## When it goes wrong\n" in text, page.name
        assert 80 <= text.count("\n") <= 175, page.name


def main(pages: Iterable[Path]) -> int:
    """Rewrite the pages."""
    os.chdir(FOLDER)
    for page in pages:
        page.write_text(executed(page))
    return 0


if __name__ == "__main__":
    sys.exit(main([FOLDER / f"{name}.md" for name in sys.argv[1:]] or PAGES))
