"""`python -m bench.accuracy [names...] [--again] [--page-only]`: every f32 input of every function of one number; docs/status/accuracy.md.

The compiled function runs over all 2^32 inputs, in one thread, and is compared to f64 (`references`); a minute or two per function. A
result is kept in build/accuracy/NAME.json, with a digest of the machine code it belongs to: a second run measures only what is missing
or has changed. It needs scipy and mpmath (`pip install 'gradir[test]'`).
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from bench.accuracy.page import page
from bench.accuracy.references import REFERENCES, Reference
from bench.accuracy.sweep import BLOCKS, HALF, Compiled, Result, compiled, measure_block, measure_pair, settle

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "accuracy"
PAGE = ROOT / "docs" / "status" / "accuracy.md"


def load(name: str) -> Result | None:
    """The kept result of a function."""
    path = FOLDER / f"{name}.json"
    return Result(**json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None


def store(name: str, result: Result) -> None:
    """Keep a result."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{name}.json").write_text(json.dumps(result.plain(), indent=1) + "\n", encoding="utf-8")


def sweep(reference: Reference, function: Compiled, progress: Progress) -> Result:
    """All inputs of one function."""
    result = Result(reference.op, reference.bound, function.code)
    start = time.monotonic()
    blocks = HALF if reference.symmetry else BLOCKS
    step = measure_pair if reference.symmetry else measure_block
    task = progress.add_task(reference.name, total=blocks)
    for block in range(blocks):
        step(reference, function.call, block, result)
        progress.advance(task)
    settle(reference, function.call, result)
    result.seconds = round(time.monotonic() - start, 1)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.accuracy", description=__doc__)
    parser.add_argument("names", nargs="*", help="functions, by the name of the op without nd.; default: all")
    parser.add_argument("--again", action="store_true", help="measure even what has a result for the same code")
    parser.add_argument("--page-only", action="store_true", help="write the page from the results that are there")
    options = parser.parse_args()
    known = {reference.name: reference for reference in REFERENCES}
    unknown = [name for name in options.names if name not in known]
    if unknown:
        parser.error(f"no function {', '.join(unknown)}; there are {', '.join(known)}")
    console = Console()
    columns = (TextColumn("{task.description:12}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    if not options.page_only:
        with Progress(*columns, console=console, refresh_per_second=1) as progress:
            for name in options.names or known:
                function = compiled(known[name])
                found = load(name)
                if found is not None and found.code == function.code and not options.again:
                    console.print(f"{name:12} {found.max_ulp:.3f} ulp at {found.at} (kept)")
                    continue
                result = sweep(known[name], function, progress)
                store(name, result)
                verdict = "" if result.within else f"  [red]beyond {result.bound}[/red] {result.first_mismatch}"
                console.print(f"{name:12} {result.max_ulp:.3f} ulp at {result.at}, {result.mismatches} mismatches{verdict}")
    results = {name: load(name) for name in known}
    missing = [f"nd.{name}" for name, result in results.items() if result is None]
    PAGE.write_text(page([result for result in results.values() if result is not None], missing), encoding="utf-8")
    console.print(f"wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
