"""Programs in StableHLO, the text that JAX and others print, as modules of level 1.

`import_text` reads, converts and verifies; what is supported: docs/stablehlo.md.
"""

from __future__ import annotations

from os import PathLike

from gradir.driver.lower import collector_paused
from gradir.frontends.python.program import Program
from gradir.frontends.stablehlo.blobs import Extracted, extract, extract_file
from gradir.frontends.stablehlo.convert import convert
from gradir.frontends.stablehlo.dialect import stablehlo_context
from gradir.frontends.stablehlo.lines import LineParser
from gradir.ir.diagnostics import Engine
from gradir.ir.text import parse_module, verify_module


def import_text(text: str, name: str = "<stablehlo>", engine: Engine | None = None) -> Program:
    """The module of level 1 that computes what the StableHLO module in `text` does; verified. `module["main"]` is its function.

    `name` is the file that locations show where the text has none of its own. Remarks about what was ignored (sharding) go to `engine`.
    Raises GradirError GR010 (syntax), GR120 (all that has no counterpart, at once).
    """
    return import_extracted(extract(text), name, engine)


def import_file(path: str | PathLike[str], engine: Engine | None = None) -> Program:
    """`import_text` of a file, which is not read as a whole: large constants go straight into the arrays of the module."""
    return import_extracted(extract_file(path), str(path), engine)


def import_extracted(source: Extracted, name: str = "<stablehlo>", engine: Engine | None = None) -> Program:
    """`import_text` of a text whose large constants were taken out already."""
    with collector_paused():
        context = stablehlo_context(source.blobs)
        read = parse_module(source.text, name, context, check=False, parser=LineParser)
        module = Program.of(convert(read, context, engine if engine is not None else Engine()))
        verify_module(module)
        return module


__all__ = ["import_file", "import_text"]
