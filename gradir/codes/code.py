"""What one error code says: a row of the tables beside this file."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Literal

Part = Literal["graph", "autodiff", "operator", "runtime"]
"""The part of the toolkit that failed."""

WIDTH = 100


@dataclass(frozen=True)
class Code:
    """A title, then what the code means, what usually causes it, and what to do next: whole sentences, one paragraph each."""

    part: Part
    title: str
    meaning: str
    cause: str
    next_step: str

    @property
    def page(self) -> str:
        """What `gradir explain` prints under the title."""
        paragraphs = (self.meaning, f"Usual cause: {self.cause}", f"Next step: {self.next_step}")
        return "\n\n".join(textwrap.fill(p, WIDTH, break_long_words=False, break_on_hyphens=False) for p in paragraphs)
