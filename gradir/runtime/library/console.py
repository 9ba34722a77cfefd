"""`print`: a line of a running program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradir import printing
from gradir.runtime.library import Array, register


def write_line(config: Mapping[str, Any], _outputs: Sequence[Array], *values: Array) -> None:
    """The line that the format and the operands make."""
    printing.emit(str(config["format"]), values)


register("print", write_line, into=True)
