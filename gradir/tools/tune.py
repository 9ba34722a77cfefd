"""`gradir-tune`: search schedules for the kernels of modules by measurement, and look after what was found.

Measuring happens in child processes; Ctrl-C ends the search and keeps what was decided by then.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradir.errors import GradirError
from gradir.tools.arrays import Array, read_array
from gradir.tools.plugins import load_file, load_installed
from gradir.tools.process import DIAGNOSED, INTERRUPTED, OK, USAGE, exit_with

if TYPE_CHECKING:
    from gradir.driver.tuning.records import Records


def main() -> None:
    """Entry point of the console script."""
    exit_with(run)


def run(arguments: Sequence[str]) -> int:
    """Run the tool in this process; the exit code: 0 fine, 1 a program cannot be tuned, 2 the command line is wrong, 130 after Ctrl-C."""
    args = _parser().parse_args(arguments)
    actions = (args.show, args.clear, args.export is not None, args.take is not None)
    if sum(actions) + bool(args.files) != 1:
        sys.stderr.write("gradir-tune: error: expected files to tune, or one of --show, --clear, --export, --import\n")
        return USAGE
    try:
        inputs = [read_array(text) for text in args.input]
        records = _records(args.cache)
        for path in args.load:
            load_file(path)
        load_installed()
    except (GradirError, OSError) as error:
        return _fail(error, USAGE)
    try:
        return _look_after(args, records) if any(actions) else _tune(args, inputs)
    except GradirError as error:
        return _fail(error, DIAGNOSED)
    except (OSError, UnicodeDecodeError) as error:
        return _fail(error, USAGE)
    except KeyboardInterrupt:
        sys.stderr.write("gradir-tune: interrupted: what was decided is kept\n")
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gradir-tune", allow_abbrev=False, description="Search schedules of kernels by measurement.")
    add = parser.add_argument
    add("files", nargs="*", metavar="FILE", help="MLIR text at any level; - reads standard input")
    add("-e", "--entry", default="", metavar="NAME", help="public function to tune; may be left out if there is only one")
    add("--input", action="append", default=[], metavar="ARRAY", help="arguments as for gradir-run (default: random ones)")
    add("--seconds", type=float, default=60.0, metavar="S", help="time for each file (default 60)")
    add("--again", action="store_true", help="also kernels that were tuned before")
    add("--threads", type=int, default=None, metavar="N", help="threads that a parallel kernel may use")
    add("--cpu", default="", metavar="NAME", help="processor to compile for, as LLVM calls it")
    add("--cache", default="", metavar="DIR", help="cache directory (default: the user's, GRADIR_CACHE_DIR)")
    add("--quiet", action="store_true", help="no progress on stderr")
    add("--json", action="store_true", help="the result as JSON")
    add("--show", action="store_true", help="print what was decided so far")
    add("--clear", action="store_true", help="forget everything that was decided")
    add("--export", metavar="FILE", help="write the decisions of this compiler to a file; - is standard output")
    add("--import", dest="take", metavar="FILE", help="take decisions from a file that --export wrote on an equal machine")
    add("--load", action="append", default=[], metavar="FILE.py", help="plugin; repeatable")
    return parser


def _records(directory: str) -> Records:
    from gradir.driver.cache import open_cache  # the compiler, once the command line is known to be right
    from gradir.driver.tuning.records import Records
    from gradir.driver.tuning.tune import no_cache

    store = open_cache(directory or True)
    if store is None:
        raise no_cache()
    return Records(store.directory)


def _look_after(args: argparse.Namespace, records: Records) -> int:
    if args.show:
        sys.stdout.write(json.dumps(_listed(records), indent=1) + "\n" if args.json else _shown(records))
    elif args.clear:
        sys.stdout.write(f"{records.clear()} decisions forgotten\n")
    elif args.export is not None:
        _write(args.export, records.export())
    else:
        text = sys.stdin.read() if args.take == "-" else Path(args.take).read_text(encoding="utf-8")
        sys.stdout.write(f"{records.take(text, args.take)} decisions taken\n")
    return OK


def _listed(records: Records) -> list[dict[str, Any]]:
    return [
        {"target": target, "current": current, "decisions": [record.to_json() for record in found]}
        for target, current, found in records.all()
    ]


def _shown(records: Records) -> str:
    """One decision a line, by target; those of another version of the compiler are of no use and say so."""
    from gradir.driver.explain.explanation import short_place  # as above

    lines: list[str] = []
    for target, current, found in records.all():
        lines.append(f"{target}{'' if current else ' (by another version of the compiler: not used)'}")
        for record in found:
            now = f"{record.choice}, {record.gain:.2f}x" if record.changed else f"{record.default}, as it was"
            lines.append(f"  {record.key[:12]}  {record.kernel:16} {short_place(record.location):20} {now} ({record.tried} tried)")
    return "\n".join(lines or ["no decisions"]) + "\n"


def _tune(args: argparse.Namespace, inputs: Sequence[Array]) -> int:
    from gradir.driver.tuning.tune import tune  # as above
    from gradir.ir.text import parse_module

    results: list[Any] = []
    for path in args.files:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
        module = parse_module(text, "<stdin>" if path == "-" else path)
        with _Progress(quiet=args.quiet, seconds=args.seconds, name=path) as progress:
            report = tune(
                module,
                inputs or None,
                entry=args.entry.removeprefix("@") or None,
                target=f"cpu:{args.cpu}" if args.cpu else "host",
                threads=args.threads,
                cache=args.cache or True,
                seconds=args.seconds,
                again=args.again,
                tell=progress.tell,
            )
        if args.json:
            results.append(report.to_json())
        else:
            sys.stdout.write(str(report))
    if args.json:
        sys.stdout.write(json.dumps(results, indent=1) + "\n")
    return OK


class _Progress:
    """A bar of the kernel that is being tuned, on stderr."""

    def __init__(self, *, quiet: bool, seconds: float, name: str) -> None:
        self._quiet, self._seconds, self._name = quiet, seconds, name
        self._bar: Any = None
        self._tasks: dict[str, Any] = {}

    def __enter__(self) -> _Progress:
        if not self._quiet:
            from rich.console import Console  # 60 ms, only for a terminal
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            self._bar = Progress(*columns, console=Console(stderr=True))
            self._bar.start()
            self._tasks[""] = self._bar.add_task(f"{self._name} ({self._seconds:g} s)", total=None)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def tell(self, kernel: str, tried: int, of: int) -> None:
        """`tried` forms of a kernel, of so many."""
        if self._bar is None:
            return
        if kernel not in self._tasks:
            self._tasks[kernel] = self._bar.add_task(f"  {kernel}", total=of)
        self._bar.update(self._tasks[kernel], completed=tried)


def _write(path: str, text: str) -> None:
    if path == "-":
        sys.stdout.write(text)
    else:
        Path(path).write_text(text, encoding="utf-8")


def _fail(error: Exception, code: int) -> int:
    sys.stderr.write(f"gradir-tune: error: {error}\n")
    return code


if __name__ == "__main__":
    main()
