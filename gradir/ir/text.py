"""Modules from text and to text: what tests, tools and frontends call.

The dialects are named here by text only (a lazy table): this folder stays below `gradir.dialects`.
"""

from __future__ import annotations

import importlib

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import ParseError

from gradir.errors import GradirError
from gradir.ir.diagnostics import Engine
from gradir.ir.parser import LocParser, parse_error_position
from gradir.ir.printer import print_op
from gradir.ir.verifier import verify

DEFAULT_CONTEXT = "gradir.dialects.registry:make_context"


def default_context() -> Context:
    """A fresh context with every dialect of Gradir, each loaded on first use."""
    module, name = DEFAULT_CONTEXT.split(":")
    return getattr(importlib.import_module(module), name)()


def parse_module(
    text: str, name: str = "<text>", context: Context | None = None, *, check: bool = True, parser: type[LocParser] = LocParser
) -> ModuleOp:
    """The module that `text` spells; verified unless `check` is false. `name` is the file that locations show.

    Raises GradirError GR010 (syntax) or GR011 (invalid IR).
    """
    try:
        module = parser(context if context is not None else default_context(), text, name).parse_module()
    except ParseError as error:
        where, _ = parse_error_position(error, name)
        line = text.split("\n")[where.line - 1] if where.line else ""
        found = f"{line}\n{' ' * (len('  found: ') + where.column - 1)}^" if line.strip() else ""
        raise GradirError(error.msg, part="graph", code="GR010", location=str(where), found=found) from error
    if check:
        verify_module(module)
    return module


def verify_module(module: Operation, *, classes: bool = True) -> None:
    """Raise GradirError GR011 with the first errors that the verifier finds in `module`; `classes` as in `verify`."""
    engine = Engine()
    if not verify(module, engine, classes=classes):
        raise engine.to_raise()


def print_module(module: Operation, *, generic: bool = False, debuginfo: bool = False) -> str:
    """The text of `module` with a final newline; with `debuginfo` every op shows its location."""
    return print_op(module, generic=generic, debuginfo=debuginfo) + "\n"
