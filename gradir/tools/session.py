"""One module through one pipeline under `gradir-opt`: parse, verify, each pass with what the flags ask around it.

Everything that goes wrong becomes a diagnostic of the session's engine; the caller shows them or compares them with what
the file expects.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Protocol, TextIO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.utils.exceptions import ParseError

from gradir.autodiff.reverse.report import FACT
from gradir.driver.passes import load_pass
from gradir.errors import GradirError
from gradir.ir.diagnostics import DiagnosedError, Diagnostic, Engine
from gradir.ir.locations import Position
from gradir.ir.options import configure
from gradir.ir.parser import LocParser, parse_error_position
from gradir.ir.passes import Pass, PassContext
from gradir.ir.printer import print_op
from gradir.ir.verifier import verify
from gradir.tools.pass_manager import FUNCTION, MODULE, Step
from gradir.tools.timing import Timer


@dataclass(frozen=True)
class Settings:
    """What the command line asks for around each pass."""

    verify_each: bool = True
    print_after_all: bool = False
    print_after: frozenset[str] = frozenset()
    generic: bool = False
    debuginfo: bool = False


@dataclass(frozen=True)
class Input:
    """One chunk of a file: `line_offset` lines of the file precede `text`."""

    name: str
    text: str
    line_offset: int = 0


class SemanticCheck(Protocol):
    """Compares the meaning of a module before and after each pass (`gradir.reference.SemanticsChecker`)."""

    def start(self, module: ModuleOp) -> None:
        """Note what `module` means; raises GradirError if it has no meaning."""

    def after(self, pass_name: str, module: ModuleOp) -> GradirError | None:
        """The difference that the pass made, if any."""


class Session:
    """Runs one chunk; `done` counts the steps that are finished, for the reproducer."""

    def __init__(
        self,
        context: Context,
        source: Input,
        settings: Settings,
        timer: Timer,
        err: TextIO,
        check: SemanticCheck | None = None,
    ) -> None:
        self.context, self.source, self.settings, self.timer, self.err = context, source, settings, timer, err
        self.engine = Engine()
        self.engine.add_source(source.name, "\n" * source.line_offset + source.text)
        self.done = 0
        self.crashed = False
        self._check = check

    def run(self, steps: Sequence[Step]) -> ModuleOp | None:
        """The module after all of `steps`, or None when something was reported as an error."""
        try:
            with self.timer("Parser"):
                module = self.parse()
            with self.timer("Verifier"):
                self.verify(module)
            if self._check is not None:
                with self.timer("Semantics"):
                    self.report(self._check.start, module)
            self.run_steps(steps, module)
        except DiagnosedError:
            return None
        return module

    def text(self, op: Operation) -> str:
        """`op` as the flags ask to print it."""
        return print_op(op, generic=self.settings.generic, debuginfo=self.settings.debuginfo)

    # -- before the passes

    def parse(self) -> ModuleOp:
        source = self.source
        try:
            return LocParser(self.context, source.text, source.name, source.line_offset).parse_module()
        except ParseError as error:
            where, width = parse_error_position(error, source.name, source.line_offset)
            found = self.engine.add(Diagnostic("error", where, error.msg, width=width, code="GR010"))
            for span, message in getattr(error, "refs", ()):
                at = span.get_location()
                place = Position(source.name, at.line + source.line_offset, at.col)
                found.notes.append(Diagnostic("note", place, message or str(getattr(error, "ref_text", ""))))
        except GradirError as error:  # from an attribute or op that parses itself
            self.engine.exception(error)
        raise DiagnosedError

    def verify(self, op: Operation) -> None:
        if not verify(op, self.engine):
            raise DiagnosedError

    # -- passes

    def run_steps(self, steps: Sequence[Step], module: ModuleOp) -> None:
        for step in steps:
            with self._scopes(step.path):
                self.step(step, module)
            if step.path and step.path[0] in self.settings.print_after and _ends_pipeline(step, steps, self.done):
                self.dump(step.path[0], module)
            self.done += 1

    def step(self, step: Step, op: Operation) -> None:
        """Run one step of a pipeline on `op`."""
        if step.request is None:
            with self.timer(f"'{step.anchor}' Pipeline"):
                for target in [inner for inner in op.walk() if inner.name == step.anchor and inner is not op]:
                    for inner in step.body:
                        self.step(inner, target)
            return
        instance = configure(load_pass(step.name), step.request.options, step.name)
        with self.timer(step.name):
            self.apply(step.name, instance, op)
        if self.settings.print_after_all or step.name in self.settings.print_after:
            self.dump(step.name, op)
        if self.settings.verify_each:
            with self.timer(step.name), self.timer("(V) verify"):
                self.verify_after(step, op)
        if self._check is not None:
            with self.timer(step.name), self.timer("(S) semantics"):
                self.check_semantics(step, op)

    def apply(self, name: str, instance: Pass, op: Operation) -> None:
        """Apply one pass to `op`, or to the functions in it; what it raises or reports ends the session."""
        before = len(self.engine.errors)
        context = PassContext(diagnostics=self.engine)
        targets = [op]
        if instance.ANCHOR == FUNCTION and op.name == MODULE:
            targets = [inner for inner in op.walk() if inner.name == FUNCTION and inner.regions[0].first_block is not None]
        try:
            for target in targets:
                instance.apply(target, context)
        except GradirError as error:
            self.engine.exception(error)
        except DiagnosedError:
            pass
        except Exception as error:  # a bug of the pass, not of its input
            self.crashed = True
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{frame.filename.rpartition('/')[2]}:{frame.lineno}"
            found = self.engine.error(None, f"pass '{name}' crashed: {type(error).__name__}: {error} ({place})")
            found.notes.append(Diagnostic("note", None, "".join(traceback.format_exception(error)).rstrip()))
        if len(self.engine.errors) > before:
            raise DiagnosedError
        if FACT in context.facts:
            self.err.write(str(context.facts[FACT]))

    def dump(self, name: str, op: Operation) -> None:
        """Show the IR after a pass in MLIR's form, on stderr."""
        where = ""
        if op.name != MODULE:
            symbol = op.properties.get("sym_name")
            where = f" ('{op.name}' operation" + (f": @{symbol.data})" if isinstance(symbol, StringAttr) else ")")
        self.err.write(f"// -----// IR Dump After {name}{where} //----- //\n{self.text(op)}\n\n")

    def verify_after(self, step: Step, op: Operation) -> None:
        try:
            self.verify(op)
        except DiagnosedError:
            self.engine.diagnostics[-1].notes.append(Diagnostic("note", None, f"this IR was produced by the pass '{step.text}'"))
            raise

    def check_semantics(self, step: Step, op: Operation) -> None:
        """Compare the meaning of the whole module with its meaning before the pass."""
        check, top = self._check, op
        while (parent := top.parent_op()) is not None:
            top = parent
        assert check is not None and isinstance(top, ModuleOp)
        self.report(lambda module: check.after(step.name, module), top)

    def report(self, check: Callable[[ModuleOp], GradirError | None], module: ModuleOp) -> None:
        """Report what a semantic check raises or returns, and end the session then."""
        try:
            error = check(module)
        except GradirError as raised:
            error = raised
        if error is not None:
            self.engine.exception(error)
            raise DiagnosedError

    @contextmanager
    def _scopes(self, names: Sequence[str]) -> Generator[None]:
        with ExitStack() as stack:
            for name in names:
                stack.enter_context(self.timer(f"'{name}' Pipeline"))
            yield


def _ends_pipeline(step: Step, steps: Sequence[Step], index: int) -> bool:
    """Whether `step`, the one at `index`, is the last of the named pipeline that it came from."""
    following = steps[index + 1] if index + 1 < len(steps) else None
    return following is None or following.path[:1] != step.path[:1]
