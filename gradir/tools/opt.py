"""`gradir-opt`: read MLIR text, run passes on it, print what came out.

Only the standard library and tables of names are imported until the command line is known to be right: `--list-passes`
and a misspelt pass cost 30 ms, not the 200 ms that xDSL takes.
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
import time
from collections.abc import Sequence

from gradir.driver.passes import PASSES
from gradir.driver.pipelines import PIPELINES
from gradir.errors import GradirError
from gradir.ir.pipeline import pipeline_text
from gradir.tools.listings import list_dialects, list_passes
from gradir.tools.pass_manager import Step, check_anchors, plan, with_residual_report
from gradir.tools.plugins import load_file, load_installed
from gradir.tools.process import DIAGNOSED, OK, USAGE, exit_with
from gradir.tools.timing import Timer

CONFIGURATION = "// configuration: "
"""First line of a reproducer: the flags to run it with."""

_CHUNK = re.compile(r"^// -----.*\n", re.M)


def main() -> None:
    """Entry point of the console script."""
    exit_with(run)


def run(arguments: Sequence[str]) -> int:
    """Run the tool in this process; the exit code: 0 fine, 1 diagnostics, 2 the command line is wrong."""
    timer = Timer(time.perf_counter())
    parser = _parser()
    args = parser.parse_args(arguments)
    try:
        _load_plugins(args, timer)
        if args.list_passes or args.list_dialects:
            sys.stdout.write(list_passes() if args.list_passes else list_dialects())
            return OK
        text = _read(args.file)
        if args.run_reproducer:
            args = _reproduced(parser, args, text)
            _load_plugins(args, timer)
        _check_dumps(args.print_ir_after)
        steps = with_residual_report(plan(args.pass_pipeline)) if args.report_residuals else plan(args.pass_pipeline)
        seed_runs = _seed_and_runs(args.check_semantics)
        with timer("Start-up"):  # everything that xDSL needs, once the command line is known to be right
            from gradir.tools import opt_file

            check_anchors(steps)
    except (GradirError, OSError, UnicodeDecodeError, ValueError) as error:
        sys.stderr.write(f"gradir-opt: error: {error}\n")
        return USAGE
    good = opt_file.run_file(args, steps, _chunks(text, args.split_input_file), text, seed_runs, timer)
    if args.timing:
        sys.stderr.write(timer.report())
    return OK if good else DIAGNOSED


def _load_plugins(args: argparse.Namespace, timer: Timer) -> None:
    with timer("Plugins"):
        for path in args.load:
            load_file(path)
        load_installed()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gradir-opt", allow_abbrev=False, description="Run compiler passes on MLIR text.")
    add = parser.add_argument
    add("file", nargs="?", default="-", metavar="FILE", help="MLIR text; - reads standard input (default)")
    add("-o", dest="output", default="-", metavar="FILE", help="where the result goes; - is standard output (default)")
    add("-p", "--pass-pipeline", default="", metavar="PIPELINE", help="'a,b{x=1}' or 'builtin.module(a,func.func(b))'")
    add("--load", action="append", default=[], metavar="FILE.py", help="plugin with dialects, passes or rules; repeatable")
    add("--check-semantics", nargs="?", const="0,2", metavar="SEED,N", help="compare each pass on N generated inputs")
    add("--print-ir-after", action="append", default=[], metavar="PASS", help="dump the IR after this pass on stderr; repeatable")
    add("--crash-reproducer", default="", metavar="FILE", help="if a pass crashes, write the IR before it and how to rerun it")
    for flags, text in (
        (("--split-input-file",), "treat the pieces between '// -----' lines as files of their own"),
        (("--verify-diagnostics",), "compare diagnostics with the file's expected-... comments"),
        (("--print-ir-after-all",), "dump the IR after every pass on stderr"),
        (("--timing", "--mlir-timing"), "print a tree of wall times on stderr"),
        (("--report-residuals",), "print what derivatives keep for their backward parts on stderr; needs the pass differentiate"),
        (("--mlir-print-debuginfo", "--print-debuginfo"), "print the location of every op"),
        (("--print-op-generic", "--mlir-print-op-generic"), "print every op in generic form"),
        (("--allow-unregistered-dialect",), "accept ops of dialects that are not registered"),
        (("--no-verify-each",), "verify the input only, not the result of each pass"),
        (("--run-reproducer",), "take the flags from the first line of FILE"),
        (("--list-passes",), "print the passes and named pipelines"),
        (("--list-dialects",), "print the dialects"),
    ):
        add(*flags, action="store_true", help=text)
    return parser


def _read(path: str) -> str:
    if path == "-":
        return sys.stdin.read()
    with open(path, encoding="utf-8") as file:
        return file.read()


def _chunks(text: str, split: bool) -> list[tuple[str, int]]:
    """Pieces of the file with the number of lines that precede each."""
    if not split:
        return [(text, 0)]
    chunks: list[tuple[str, int]] = []
    line = 0
    for piece in _CHUNK.split(text):
        chunks.append((piece, line))
        line += piece.count("\n") + 1
    return chunks


def _reproduced(parser: argparse.ArgumentParser, args: argparse.Namespace, text: str) -> argparse.Namespace:
    """The arguments that the first line of a reproducer gives, with the output flags of this call."""
    first = text.partition("\n")[0]
    if not first.startswith(CONFIGURATION):
        raise ValueError(f"{args.file}: no '{CONFIGURATION.strip()}' on the first line")
    stored = parser.parse_args([*shlex.split(first[len(CONFIGURATION) :]), args.file])
    for flag in ("output", "timing", "print_ir_after_all", "print_ir_after", "crash_reproducer", "verify_diagnostics"):
        setattr(stored, flag, getattr(args, flag))
    return stored


def _check_dumps(names: Sequence[str]) -> None:
    for name in names:
        if name not in PASSES and name not in PIPELINES:
            raise ValueError(f"--print-ir-after={name}: no pass or pipeline has this name; see --list-passes")


def _seed_and_runs(value: str | None) -> tuple[int, int] | None:
    """`SEED,N` or `SEED`."""
    if value is None:
        return None
    if not re.fullmatch(r"\d+(,[1-9]\d*)?", value):
        raise ValueError(f"--check-semantics={value}: expected SEED,N, two whole numbers, N at least 1")
    seed, _, runs = value.partition(",")
    return int(seed), int(runs or 2)


def configuration_line(step: Step, args: argparse.Namespace) -> str:
    """First line of a reproducer that runs `step`."""
    flags = ["-p", pipeline_text([step.request] if step.request is not None else []) or step.text]
    if args.allow_unregistered_dialect:
        flags.append("--allow-unregistered-dialect")
    if args.no_verify_each:
        flags.append("--no-verify-each")
    for path in args.load:
        flags += ["--load", path]
    return CONFIGURATION + shlex.join(flags)


if __name__ == "__main__":
    main()
