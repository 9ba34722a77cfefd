"""`gradir-translate`: a module at any level down to LLVM IR, assembly, object code, PTX, cubin or SASS; StableHLO in and out."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gradir.errors import GradirError
from gradir.tools.plugins import load_file, load_installed
from gradir.tools.process import DIAGNOSED, OK, USAGE, exit_with

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

FORMATS = {"llvm-ir": "to_llvm_ir", "asm": "to_assembly", "obj": "to_object", "ptx": "to_ptx", "cubin": "to_cubin", "sass": "to_sass"}
"""`--to` -> function of `gradir.targets.translate`."""

OURS = "gradir"
"""Our own text, as a format: what is read unless `--from` says otherwise; written, it is the level of the module that was read."""


OF_A_GPU = ("ptx", "cubin", "sass")
"""Formats that only a module for CUDA has: its target where it names none."""

STABLEHLO = "stablehlo"
"""StableHLO's text, as a format in both directions."""


def main() -> None:
    """Entry point of the console script."""
    exit_with(run)


def run(arguments: Sequence[str]) -> int:
    """Run the tool in this process; the exit code: 0 fine, 1 diagnostics, 2 the command line is wrong."""
    args = _parser().parse_args(arguments)
    try:
        for path in args.load:
            load_file(path)
        load_installed()
        text = "" if _is_mapped(args) else _read(args.file)
    except (GradirError, OSError, UnicodeDecodeError) as error:
        return _fail(error, USAGE)
    try:
        translated = translate(text, args)
    except GradirError as error:
        return _fail(error, DIAGNOSED)
    except (OSError, UnicodeDecodeError) as error:  # of a file that the importer reads
        return _fail(error, USAGE)
    try:
        _write(args.output, translated)
    except OSError as error:
        return _fail(error, USAGE)
    return OK


def _is_mapped(args: argparse.Namespace) -> bool:
    """Whether the importer reads the file itself: one with large constants is never in memory as a whole."""
    return args.source == STABLEHLO and args.file != "-"


def translate(text: str, args: argparse.Namespace) -> str | bytes:
    """The module in `text` in the format that the arguments ask for; runs what is left of the road."""
    from gradir.driver.lower import lower  # the compiler, once the command line is known to be right
    from gradir.ir.checks import drop_checks
    from gradir.ir.text import parse_module, print_module
    from gradir.targets import translate as targets

    name = "<stdin>" if args.file == "-" else args.file
    module = _import_stablehlo(text, args) if args.source == STABLEHLO else parse_module(text, name)
    if args.to == OURS:
        return print_module(module)
    if args.to == STABLEHLO:
        return _export_stablehlo(module)
    drop_checks(module)
    target = args.target or ("cuda" if args.to in OF_A_GPU and "gradir.target" not in module.attributes else "")
    lowered = lower(module, target=target, cpu=args.cpu, threads=args.threads)
    return getattr(targets, FORMATS[args.to])(lowered)


def _import_stablehlo(text: str, args: argparse.Namespace) -> ModuleOp:
    """The module at level 1; what was ignored goes to standard error."""
    from gradir.frontends.stablehlo import import_file, import_text  # as above: only once the command line asks for it
    from gradir.ir.diagnostics import Engine

    engine = Engine()
    module = import_file(args.file, engine) if _is_mapped(args) else import_text(text, "<stdin>", engine)
    for diagnostic in engine.diagnostics[:1]:  # one remark says it for all
        sys.stderr.write(f"{diagnostic.where or args.file}: {diagnostic.severity}: {diagnostic.message}\n")
    return module


def _export_stablehlo(module: ModuleOp) -> str:
    from gradir.frontends.stablehlo.export import export_text  # as above

    return export_text(module)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gradir-translate", allow_abbrev=False, description="Translate MLIR text to machine code.")
    add = parser.add_argument
    add("file", nargs="?", default="-", metavar="FILE", help="MLIR text at any level; - reads standard input (default)")
    add("--to", required=True, choices=sorted([*FORMATS, OURS, STABLEHLO]), help="what to write")
    add("--from", dest="source", default=OURS, choices=(OURS, STABLEHLO), help="what FILE holds (gradir: MLIR text at any level)")
    add("-o", dest="output", default="-", metavar="FILE", help="where the result goes; - is standard output (default)")
    add(
        "--target",
        default="",
        choices=("", "host", "cpu", "cuda"),
        help="machine, if the module names none (host; for ptx, cubin and sass cuda)",
    )
    add("--cpu", "-mcpu", default="", metavar="NAME", help="processor or sm_NN, as LLVM calls it")
    add("--threads", type=int, default=0, metavar="N", help="threads to schedule for (default: all of the target)")
    add("--load", action="append", default=[], metavar="FILE.py", help="plugin; repeatable")
    return parser


def _read(path: str) -> str:
    if path == "-":
        return sys.stdin.read()
    with open(path, encoding="utf-8") as file:
        return file.read()


def _write(path: str, result: str | bytes) -> None:
    data = result.encode() if isinstance(result, str) else result
    if path == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    with open(path, "wb") as file:
        file.write(data)


def _fail(error: Exception, code: int) -> int:
    sys.stderr.write(f"gradir-translate: error: {error}\n")
    return code


if __name__ == "__main__":
    main()
