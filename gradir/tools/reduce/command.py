"""`gradir-reduce FILE --test 'cmd'`: the command line.

The test runs in a shell with the name of a candidate file in place of `{}`, or behind the command if there is none. By default a candidate
is interesting while the command fails, that is while its exit status is not 0: what one writes as the test is the command that went wrong.
`--expect-status=0` gives llvm-reduce's reading (a script that exits with 0 when the candidate is interesting).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from gradir.errors import GradirError
from gradir.tools.plugins import load_file, load_installed
from gradir.tools.process import DIAGNOSED, INTERRUPTED, OK, USAGE, exit_with
from gradir.tools.reduce.lines import reduce_lines
from gradir.tools.reduce.search import Interesting, Progress, reduce_module

PLACE = "{}"


def main() -> None:
    """Entry point of the console script."""
    exit_with(run)


def run(arguments: Sequence[str]) -> int:
    """Run the tool in this process; the exit code: 0 reduced, 1 nothing to reduce, 2 the command line is wrong, 130 after Ctrl-C."""
    args = _parser().parse_args(arguments)
    try:
        pattern = re.compile(args.expect_output) if args.expect_output else None
        text = sys.stdin.read() if args.file == "-" else Path(args.file).read_text(encoding="utf-8")
        for path in args.load:
            load_file(path)
        load_installed()
    except (GradirError, OSError, UnicodeDecodeError, re.error) as error:
        sys.stderr.write(f"gradir-reduce: error: {error}\n")
        return USAGE
    suffix = Path(args.file).suffix if args.file != "-" else ".mlir"
    with tempfile.TemporaryDirectory(prefix="gradir-reduce-") as folder:
        question = _question(args, pattern, Path(folder) / f"candidate{suffix or '.mlir'}")
        return _reduce(args, text, question)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gradir-reduce", allow_abbrev=False, description="Shrink a module as long as a command fails on it."
    )
    add = parser.add_argument
    add("file", metavar="FILE", help="MLIR text at any level; - reads standard input")
    add("--test", required=True, metavar="CMD", help="shell command; {} stands for the file, which is added at the end if there is none")
    add("--expect-status", type=int, metavar="N", help="interesting is exit status N (default: any but 0); 128+S is an end by signal S")
    add("--expect-output", default="", metavar="REGEX", help="interesting is only what also prints this, on stdout or stderr")
    add("-o", dest="output", default="-", metavar="FILE", help="where the result goes, kept up to date; - is standard output (default)")
    add("--timeout", type=float, default=60.0, metavar="SECONDS", help="a test that takes longer is not interesting (default 60)")
    add("--max-tests", type=int, default=1_000_000, metavar="N", help="stop after N tests with the best result so far")
    add("--text", action="store_true", help="reduce lines, words and characters: for input that is no valid IR")
    add("--quiet", action="store_true", help="no progress on stderr")
    add("--load", action="append", default=[], metavar="FILE.py", help="plugin; repeatable")
    return parser


def _question(args: argparse.Namespace, pattern: re.Pattern[str] | None, path: Path) -> Interesting:
    quoted = shlex.quote(str(path))
    command = args.test.replace(PLACE, quoted) if PLACE in args.test else f"{args.test} {quoted}"

    def interesting(text: str) -> bool:
        path.write_text(text, encoding="utf-8")
        process = subprocess.Popen(
            command, shell=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            output, _ = process.communicate(timeout=args.timeout)
        except BaseException as error:  # a test that hangs, or Ctrl-C: what it started goes with it
            with contextlib.suppress(ProcessLookupError):  # it may have ended in this very moment
                os.killpg(process.pid, 9)
            process.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                return False
            raise
        status = process.returncode if process.returncode >= 0 else 128 - process.returncode
        if status != args.expect_status if args.expect_status is not None else status == 0:
            return False
        return pattern is None or pattern.search(output.decode("utf-8", "replace")) is not None

    return interesting


def _reduce(args: argparse.Namespace, text: str, question: Interesting) -> int:
    best = text
    show, close = _display(args.quiet)

    def report(progress: Progress) -> None:
        nonlocal best
        if progress.text != best and args.output != "-":
            _write(args.output, progress.text)
        best = progress.text
        show(progress)

    name, code = "<stdin>" if args.file == "-" else args.file, OK
    try:
        if args.text:
            best = reduce_lines(text, question, report=report, name=name)
        else:
            best = reduce_module(text, question, report=report, name=name, limit=args.max_tests)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except GradirError as error:
        hint = "gradir-reduce: note: --text reduces input that is no valid IR\n" if error.code in ("GR010", "GR011") else ""
        sys.stderr.write(f"gradir-reduce: error: {error}\n{hint}")
        return DIAGNOSED
    finally:
        close()
    _write(args.output, best)
    before, after = text.count("\n"), best.count("\n")
    sys.stderr.write(f"gradir-reduce: {before} lines became {after}{', interrupted' if code else ''}\n")
    return code


def _display(quiet: bool) -> tuple[Callable[[Progress], None], Callable[[], None]]:
    """A line on stderr that shows how far the search is, and what ends it."""
    if quiet or not sys.stderr.isatty():
        return lambda progress: None, lambda: None
    from rich.console import Console  # 40 ms, and only where somebody looks

    status = Console(stderr=True).status("reading")
    status.start()
    return (
        lambda progress: status.update(f"{progress.lines} lines after {progress.tests} tests; {progress.edit}"),
        status.stop,
    )


def _write(path: str, text: str) -> None:
    """The whole text or the one before: a file is never half written. What is no file (a device, a pipe) is written to as it is."""
    if path == "-":
        sys.stdout.write(text)
        return
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        target.write_text(text, encoding="utf-8")
        return
    part = target.with_name(f"{target.name}.part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, target)


if __name__ == "__main__":
    main()
