"""`gradir`: the front door. Explains error codes, passes and ops, and starts the other tools."""

from __future__ import annotations

import difflib
import importlib
import inspect
import sys
import textwrap
from collections.abc import Sequence

from gradir import __version__
from gradir.driver.passes import PASSES, load_pass
from gradir.driver.pipelines import PIPELINES, steps_of
from gradir.errors import CODES
from gradir.tools.listings import Option, options_of
from gradir.tools.process import OK, USAGE, exit_with

TOOLS = {
    "opt": ("gradir.tools.opt:run", "run passes on MLIR text (gradir-opt)"),
    "translate": ("gradir.tools.translate:run", "machine code from MLIR text (gradir-translate)"),
    "run": ("gradir.tools.run:run", "run a function on given arrays (gradir-run)"),
    "reduce": ("gradir.tools.reduce.command:run", "shrink a module while a command fails on it (gradir-reduce)"),
    "tune": ("gradir.tools.tune:run", "search schedules of kernels by measurement (gradir-tune)"),
    "ptx": ("gradir.tools.ptx:run", "run PTX text without a GPU (gradir-ptx)"),
}

USAGE_TEXT = """usage: gradir COMMAND ...

  gradir explain TOPIC       what an error code (GR010), a pass, a named pipeline or an op means
  gradir explain             all error codes
{tools}
  gradir --version
"""


def main() -> None:
    """Entry point of the console script."""
    exit_with(run)


def run(arguments: Sequence[str]) -> int:
    """Run the tool in this process; exit code 0, that of the tool started, or 2 for a wrong command line."""
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.stdout.write(_usage())
        return OK if arguments else USAGE
    command, *rest = arguments
    if command == "--version":
        sys.stdout.write(f"gradir {__version__}\n")
        return OK
    if command == "explain":
        return explain(rest)
    if command in TOOLS:
        module, _, name = TOOLS[command][0].partition(":")
        return getattr(importlib.import_module(module), name)(rest)
    sys.stderr.write(f"gradir: error: unknown command '{command}'{_near(command, ('explain', *TOOLS))}\n{_usage()}")
    return USAGE


def explain(topics: Sequence[str]) -> int:
    """Print the page of each topic; without any, one line for each error code."""
    if not topics:
        sys.stdout.write("".join(f"{code}  {row.part:9}  {row.title}\n" for code, row in sorted(CODES.items())))
        return OK
    code = OK
    for topic in topics:
        page = _page(topic)
        if page is None:
            names = (*CODES, *PASSES, *PIPELINES)
            near = _near_op(topic) or _near(topic, names) or "; a topic is an error code, a pass, a named pipeline or an op, as in docs/"
            sys.stderr.write(f"gradir: error: nothing is known about '{topic}'{near}\n")
            code = USAGE
        else:
            sys.stdout.write(page)
    return code


def _page(topic: str) -> str | None:
    if (row := CODES.get(topic.upper())) is not None:
        return f"{topic.upper()} ({row.part}): {row.title}\n\n{row.page}\n"
    if topic in PIPELINES:
        return _pipeline_page(topic)
    if topic in PASSES:
        return _pass_page(topic)
    return _op_page(topic) if "." in topic else None


def _pipeline_page(name: str) -> str:
    options, steps = PIPELINES[name][2], steps_of(name)
    width = max(len(step.pass_name) for step in steps) + 2
    lines = [f"{name}: the passes below, in this order", *(f"  {step.pass_name:{width}}{step.why}" for step in steps)]
    return "\n".join(lines) + "\n" + (f"\nOptions: {', '.join(options)}\n" if options else "")


def _pass_page(name: str) -> str:
    kind = load_pass(name)
    lines = [f"{name}: {PASSES[name][1]}", "", inspect.cleandoc(kind.__doc__ or "")]
    options = options_of(kind)
    if options:
        lines += ["", "Options:", *map(_option_line, options)]
    return "\n".join(lines) + "\n"


def _op_page(name: str) -> str | None:
    op = importlib.import_module("gradir.dialects.registry").make_context().get_optional_op(name)
    if op is None:
        return None
    own = vars(op).get("__doc__") or ""
    made = own.startswith((f"{op.__name__}(", "IRDLOperation("))  # a dataclass without a docstring shows its fields
    return f"{name}: {inspect.cleandoc(own) if own and not made else 'an op of upstream MLIR, https://mlir.llvm.org/docs/Dialects'}\n"


def _option_line(option: Option) -> str:
    line = f"  {option.name}: {option.type} = {option.default}"
    return line + textwrap.indent("\n" + option.summary, "      ") if option.summary else line


def _near_op(word: str) -> str:
    """The tensor op that somebody may mean who leaves the dialect out."""
    return f"; did you mean 'nd.{word}'?" if word.isidentifier() and _op_page(f"nd.{word}") else ""


def _near(word: str, words: Sequence[str]) -> str:
    near = difflib.get_close_matches(word, words, 1)
    return f"; did you mean '{near[0]}'?" if near else ""


def _usage() -> str:
    tools = "\n".join(f"  gradir {name + ' ...':19} {text}" for name, (_, text) in TOOLS.items())
    return USAGE_TEXT.format(tools=tools)


if __name__ == "__main__":
    main()
