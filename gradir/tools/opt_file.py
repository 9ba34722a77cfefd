"""The part of `gradir-opt` that needs xDSL: each chunk of a file through the pipeline, output, reproducer."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from gradir.dialects.registry import make_context
from gradir.errors import GradirError
from gradir.ir.expectations import read_expectations, unmet
from gradir.tools.opt import configuration_line
from gradir.tools.pass_manager import Step
from gradir.tools.session import Input, SemanticCheck, Session, Settings
from gradir.tools.timing import Timer

SEPARATOR = "// -----\n"


def run_file(
    args: argparse.Namespace,
    steps: Sequence[Step],
    chunks: Sequence[tuple[str, int]],
    whole: str,
    seed_runs: tuple[int, int] | None,
    timer: Timer,
) -> bool:
    """Run `steps` on every chunk, print the results; whether all went as it should."""
    settings = Settings(
        verify_each=not args.no_verify_each,
        print_after_all=args.print_ir_after_all,
        print_after=frozenset(args.print_ir_after),
        generic=args.print_op_generic,
        debuginfo=args.mlir_print_debuginfo,
    )
    name = "<stdin>" if args.file == "-" else args.file
    good, outputs = True, list[str]()
    for text, line_offset in chunks:
        source = Input(name, text, line_offset)
        context = make_context(allow_unregistered=args.allow_unregistered_dialect)
        session = Session(context, source, settings, timer, sys.stderr, _semantic_check(seed_runs))
        session.engine.add_source(name, whole)
        module = session.run(steps)
        if session.crashed and args.crash_reproducer:
            _write_reproducer(args, steps, session, source)
        good &= _report(args, session, source)
        if module is not None:
            with timer("Output"):
                outputs.append(session.text(module) + "\n")
    if not args.verify_diagnostics and (outputs or good):
        _write(args.output, SEPARATOR.join(outputs))
    return good


def _report(args: argparse.Namespace, session: Session, source: Input) -> bool:
    """Show diagnostics, or compare them with what the file expects."""
    engine = session.engine
    if not args.verify_diagnostics:
        sys.stderr.write("".join(engine.show(diagnostic) + "\n" for diagnostic in engine.diagnostics))
        return not engine.errors
    try:
        problems = unmet(read_expectations(source.text, source.name, source.line_offset), engine, source.name)
    except GradirError as error:
        problems = [str(error)]
    sys.stderr.write("".join(problem + "\n" for problem in problems))
    return not problems


def _write(path: str, text: str) -> None:
    if path == "-":
        sys.stdout.write(text)
        return
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _semantic_check(seed_runs: tuple[int, int] | None) -> SemanticCheck | None:
    if seed_runs is None:
        return None
    from gradir.reference import SemanticsChecker  # numpy and the evaluator: only when asked for

    return SemanticsChecker(*seed_runs)


def _write_reproducer(args: argparse.Namespace, steps: Sequence[Step], session: Session, source: Input) -> None:
    """The IR before the step that crashed, made by running the steps before it again: no cost as long as nothing crashes."""
    quiet = Settings(verify_each=False, debuginfo=True)
    again = Session(make_context(allow_unregistered=args.allow_unregistered_dialect), source, quiet, Timer(0.0), sys.stderr)
    module = again.run(steps[: session.done])
    if module is None:
        sys.stderr.write("gradir-opt: error: no reproducer: the passes before the crash do not repeat\n")
        return
    before = ",".join(step.text for step in steps[: session.done]) or "(nothing)"
    header = f"{configuration_line(steps[session.done], args)}\n// ran before: {before}\n"
    _write(args.crash_reproducer, header + again.text(module) + "\n")
    sys.stderr.write(f"gradir-opt: note: reproducer written: gradir-opt --run-reproducer {args.crash_reproducer}\n")
