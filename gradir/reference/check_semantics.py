"""`--check-semantics`: the same inputs through the module before and after every pass; the first pass that changes a result is named.

Relies on `run` for the meaning, on `inputs` for the inputs and on `compare` for equality. Functions that cannot be evaluated yet (requests
of the `ad` dialect) join as soon as a pass has resolved them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from gradir import printing
from gradir.dialects.size_limits import limits_of
from gradir.dialects.upstream.func import FuncOp
from gradir.errors import GradirError
from gradir.ir.passes import function_name, location_text
from gradir.ir.structure import public_functions
from gradir.reference.blame import blame
from gradir.reference.check_derivatives import DerivativeChecks
from gradir.reference.compare import Expectation, compare, expectations, unstable_share
from gradir.reference.inputs import generate, has_run_time_sizes
from gradir.reference.run import input_types, run

Array = np.ndarray[Any, Any]

UNSTABLE_LIMIT = 0.01


@dataclass(frozen=True)
class Case:
    """One sample of inputs of one function, and what it must give."""

    sample: int
    inputs: list[Array]
    results: list[Expectation]


@dataclass
class SemanticsChecker:
    """Feed it the module before the first pass (`start`) and after each pass (`after`)."""

    seed: int = 0
    samples: int = 3
    special: bool = False
    cases: dict[str, list[Case]] = field(default_factory=dict[str, list[Case]])
    skipped: dict[str, GradirError] = field(default_factory=dict[str, GradirError])
    before: ModuleOp | None = None
    """The module as the last pass left it, for naming the op."""
    derivatives: DerivativeChecks = field(init=False)
    """What `differentiate{check}` left to be checked."""

    def __post_init__(self) -> None:
        self.derivatives = DerivativeChecks(self.seed, self.samples)

    def start(self, module: ModuleOp) -> None:
        """Evaluate every public function of `module`. Raises `GradirError` where the module itself has no meaning. Prints nothing."""
        with printing.silent():
            for function in public_functions(module):
                self._admit(module, function)
            if (error := self.derivatives.after("the input", module)) is not None:
                raise error
        self.before = module.clone()

    def after(self, pass_name: str, module: ModuleOp) -> GradirError | None:
        """The difference that `pass_name` made, if any; functions that only now have a meaning are admitted."""
        with printing.silent():
            error = self.derivatives.after(f"pass {pass_name}", module) or self._difference(pass_name, module)
        self.before = module.clone()
        return error

    def _difference(self, pass_name: str, module: ModuleOp) -> GradirError | None:
        functions = {function.sym_name.data: function for function in public_functions(module)}
        for name, cases in self.cases.items():
            if name not in functions:
                return _report(pass_name, f"public function @{name} is gone", name)
            for case in cases:
                if (error := self._check(pass_name, module, functions[name], case)) is not None:
                    return error
        for name, function in functions.items():
            if name not in self.cases:
                try:
                    self._admit(module, function)
                except GradirError as error:
                    return _report(pass_name, f"@{name} has no meaning: {error.message}", name, error)
        return None

    def _admit(self, module: ModuleOp, function: FuncOp) -> None:
        name, types, limits = function.sym_name.data, input_types(function), limits_of(function)
        cases: list[Case] = []
        for sample in range(self.samples):
            inputs: list[Array] = []
            try:
                inputs = generate(types, self.seed, sample, special=self.special, limits=limits)
                cases.append(Case(sample, inputs, expectations(module, name, inputs, seed=self.seed)))
            except GradirError as error:
                if error.code == "OP100":
                    self.skipped[name] = error
                    return
                if error.code == "RT020":
                    continue  # an assertion of the program refuses these inputs
                if error.code == "OP111" and has_run_time_sizes(function):
                    continue  # sizes that do not fit together: so do these
                if has_run_time_sizes(function) and any(0 in array.shape for array in inputs):
                    continue  # this program refuses empty tensors: not a mistake of a pass
                raise
        unstable, elements = (sum(counts) for counts in zip(*(unstable_share(case.results) for case in cases))) if cases else (0, 0)
        if unstable > max(1, UNSTABLE_LIMIT * elements):
            message = f"@{name}: {unstable} of {elements} elements depend on comparisons closer than their rounding error"
            raise GradirError(message, part="operator", code="OP110", function=f"@{name}", hint="try another seed or other inputs")
        self.skipped.pop(name, None)
        self.cases[name] = cases

    def _check(self, pass_name: str, module: ModuleOp, function: FuncOp, case: Case) -> GradirError | None:
        name = function.sym_name.data
        shapes = [result.value.shape for result in case.results]
        try:
            found = run(module, name, case.inputs, result_shapes=shapes, seed=self.seed + case.sample)
        except GradirError as error:
            return _report(pass_name, f"@{name} has no meaning any more: {error.message}", name, error)
        if len(found) != len(case.results):
            return _report(pass_name, f"@{name} has {len(found)} results, before {len(case.results)}", name)
        for k, (expected, array) in enumerate(zip(case.results, found)):
            if (difference := compare(expected, array)) is not None:
                where = "shape or element type" if difference.index is None else f"element {list(difference.index)}"
                scope = f"{difference.count} of {max(1, array.size)} elements, sample {case.sample}, seed {self.seed}"
                message = f"result {k} of @{name} differs at {where} ({scope})"
                last = producer(function, k)
                found_at = blame(self.before or module, module, name, case.inputs, shapes, self.seed + case.sample, last)
                culprit = found_at.op if found_at is not None else last
                return GradirError(
                    f"pass {pass_name}: {message}",
                    part="operator",
                    code="OP110",
                    op=culprit.name if culprit is not None else "",
                    function=function_name(culprit) if culprit is not None else f"@{name}",
                    location=location_text(culprit.location) if culprit is not None else "",
                    expected=difference.expected,
                    found=difference.found + (f"; {found_at.text}" if found_at is not None else ""),
                    hint="gradir-reduce FILE --test 'gradir-opt --check-semantics -p PIPELINE' makes the program small",
                )
        return None


def check_semantics(before: ModuleOp, after: ModuleOp, *, pass_name: str = "after", seed: int = 0, samples: int = 3) -> GradirError | None:
    """Whether `after` means the same as `before`: the difference, or None."""
    checker = SemanticsChecker(seed, samples)
    checker.start(before)
    return checker.after(pass_name, after)


def producer(function: FuncOp, result: int) -> Operation | None:
    """The op that computes a result: the owner of the returned value, or the last writer of the output buffer."""
    last = function.body.block.last_op
    if last is not None and result < len(last.operands):
        owner = last.operands[result].owner
        return owner if isinstance(owner, Operation) else None
    outputs = list(function.body.block.args)[_inputs(function) + result :][:1]
    users = [use.operation for output in outputs for use in _uses(output)]
    return users[-1] if users else None


def _inputs(function: FuncOp) -> int:
    value = function.attributes.get("gradir.inputs")
    return int(value.value.data) if value is not None else 0  # pyright: ignore[reportAttributeAccessIssue] (an integer attribute)


def _uses(value: SSAValue) -> list[Any]:
    return list(value.uses)


def _report(pass_name: str, message: str, name: str, cause: GradirError | None = None) -> GradirError:
    return GradirError(
        f"pass {pass_name}: {message}",
        part="operator",
        code="OP110" if cause is None else cause.code,
        op=cause.op if cause else "",
        function=cause.function if cause else f"@{name}",
        location=cause.location if cause else "",
        expected=cause.expected if cause else "",
        found=cause.found if cause else "",
        hint=cause.hint if cause else "",
    )
