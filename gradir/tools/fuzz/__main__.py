"""`python -m gradir.tools.fuzz`: a campaign, or one question asked again.

python -m gradir.tools.fuzz --seconds 600                      random seeds
python -m gradir.tools.fuzz --seconds 60 --seed 4000           from seed 4000 on
python -m gradir.tools.fuzz --gradients --seconds 600          derivatives of programs full of control flow
python -m gradir.tools.fuzz --oracle compiled --seed 7 build/fuzz/1.mlir
python -m gradir.tools.fuzz --ops                              which ops take part, and which do not
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from gradir.tools.fuzz import campaign
from gradir.tools.fuzz.campaign import Tally
from gradir.tools.fuzz.oracles import ORACLES, ask
from gradir.tools.fuzz.refusal import RefusedError
from gradir.tools.fuzz.templates import ops, templates_of, unusable
from gradir.tools.process import DIAGNOSED, OK, USAGE, exit_with

SHOWN_EVERY = 10.0
"""Seconds between progress lines where nobody watches a terminal."""


def main() -> None:
    """Entry point."""
    exit_with(run)


def run(arguments: Sequence[str]) -> int:
    """Run the tool in this process; 0 nothing found, 1 a find, 2 the command line is wrong."""
    args = _parser().parse_args(arguments)
    if args.ops:
        sys.stdout.write(_ops())
        return OK
    if args.file is not None:
        return _again(args)
    first = args.seed if args.seed is not None else int(time.time()) % 1_000_000 * 1000
    sys.stderr.write(f"fuzz: seeds from {first} for {args.seconds:g} s\n")
    tally = campaign.run(
        args.seconds, first, Path(args.output), _display(), seeds=args.count, reduce_for=args.reduce_for, gradients=args.gradients
    )
    sys.stderr.write("\n" + _summary(tally))
    return DIAGNOSED if tally.finds else OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m gradir.tools.fuzz", allow_abbrev=False, description="Random programs against oracles.")
    add = parser.add_argument
    add("file", nargs="?", metavar="FILE", help="ask --oracle about this file instead")
    add("--seconds", type=float, default=60.0, metavar="N", help="how long (default 60)")
    add("--seed", type=int, default=None, metavar="N", help="first seed (default: from the clock); with FILE the seed of the question")
    add("--count", type=int, default=None, metavar="N", help="stop after so many seeds")
    add("--gradients", action="store_true", help="programs full of control flow, and questions about their derivatives alone")
    add("--oracle", default="semantics", choices=sorted(ORACLES), help="with FILE: what to ask")
    add("--output", default="build/fuzz", metavar="DIR", help="where finds go (default build/fuzz)")
    add("--reduce-for", type=float, default=60.0, metavar="N", help="seconds that the reduction of a find may take (default 60)")
    add("--ops", action="store_true", help="list the ops that random programs use, and the others with the reason")
    return parser


def _again(args: argparse.Namespace) -> int:
    try:
        text = Path(args.file).read_text(encoding="utf-8")
        complaint = ask(args.oracle, text, args.seed or 0)
    except OSError as error:
        sys.stderr.write(f"fuzz: error: {error}\n")
        return USAGE
    except RefusedError as error:
        sys.stdout.write(f"refused: {error}\n")
        return OK
    sys.stdout.write(f"{complaint or 'right'}\n")
    return DIAGNOSED if complaint else OK


def _ops() -> str:
    lines = [f"{name}: {len(templates_of(name))} samples" for name in ops() if name not in unusable()]
    return "\n".join([*lines, *(f"{name}: skipped, {reason}" for name, reason in unusable().items())]) + "\n"


def _display() -> Callable[[Tally, float], None]:
    watched, shown = sys.stderr.isatty(), 0.0

    def show(tally: Tally, seconds: float) -> None:
        nonlocal shown
        if seconds - shown < (0.2 if watched else SHOWN_EVERY):
            return
        shown = seconds
        line = f"fuzz: {sum(tally.asked.values())} questions, {len(tally.finds)} finds, {seconds:.0f} s, seed {tally.last}"
        sys.stderr.write(f"\r{line}" if watched else f"{line}\n")

    return show


def _summary(tally: Tally) -> str:
    refused = {name: sum(n for key, n in tally.refused.items() if key.startswith(f"{name}:")) for name in tally.asked}
    lines = [f"  {name}: {count} questions, {refused[name]} refused" for name, count in sorted(tally.asked.items())]
    lines += [f"  find: {path}: {path.read_text().splitlines()[0][3:]}" for path in tally.finds]
    return "\n".join(["fuzz: done" if not tally.finds else f"fuzz: {len(tally.finds)} finds", *lines]) + "\n"


if __name__ == "__main__":
    main()
