"""The table of error codes, as data: one file per part, one row per code.

A new code is a row in the file of its part, in the order of numbers; `docs/errors.md` is generated from the rows, and a test
compares them with the codes that the source uses. Relies on nothing: every layer may import it through `gradir.errors`.
"""

from __future__ import annotations

from gradir.codes.autodiff import AUTODIFF
from gradir.codes.code import Code, Part
from gradir.codes.graph import GRAPH
from gradir.codes.operator import OPERATOR
from gradir.codes.runtime import RUNTIME

CODES: dict[str, Code] = {**GRAPH, **AUTODIFF, **OPERATOR, **RUNTIME}

__all__ = ["CODES", "Code", "Part"]
