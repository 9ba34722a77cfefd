"""Running the checks that `differentiate{check}` left in a module: after every pass a derivative still has to be one.

Each check is a function of random inputs that returns two numbers, a tolerance, and whether the numbers agree (`gradir.autodiff.checks`).
An infinite tolerance says that the point decides nothing: a kink, a value that is not finite.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from gradir.dialects.size_limits import limits_of
from gradir.dialects.upstream.func import FuncOp
from gradir.errors import GradirError
from gradir.ir.checks import Check, check_of, checks
from gradir.ir.passes import location_text
from gradir.reference.inputs import generate, has_run_time_sizes
from gradir.reference.run import input_types, run

Array = np.ndarray[Any, Any]

NO_POINT = ("RT020", "OP111", "OP114")
"""Errors of a program that refuses its inputs: an assertion of its own, or sizes that do not fit together or are not allowed."""


@dataclass(frozen=True)
class Outcome:
    """What a check gave at one point."""

    sample: int
    inputs: list[Array]
    derivative: float
    other: float
    tolerance: float
    agrees: bool

    @property
    def decided(self) -> bool:
        return math.isfinite(self.tolerance)


@dataclass
class DerivativeChecks:
    """The checks met so far. `outcomes` has those of the last run, by the name of the check."""

    seed: int = 0
    samples: int = 3
    outcomes: dict[str, list[Outcome]] = field(default_factory=dict[str, list[Outcome]])

    def after(self, where: str, module: ModuleOp) -> GradirError | None:
        """Run all checks in `module`; the first that fails. `where` says which pass the module comes from."""
        found = {function.sym_name.data: function for function in checks(module)}
        for name in self.outcomes:
            if name not in found:
                return GradirError(f"{where}: the check @{name} is gone", part="autodiff", code="AD015", function=f"@{name}")
        for name, function in found.items():
            outcomes: list[Outcome] = []
            for sample, inputs in self._points(name, function):
                outcome = self._outcome(where, module, function, sample, inputs, known=name in self.outcomes)
                if isinstance(outcome, GradirError):
                    return outcome
                if outcome is not None:
                    outcomes.append(outcome)
            for before, now in zip(self.outcomes.get(name, ()), outcomes):
                if (error := _judge(where, function, now, before, self.seed)) is not None:
                    return error
            for now in outcomes[len(self.outcomes.get(name, ())) :]:
                if (error := _judge(where, function, now, None, self.seed)) is not None:
                    return error
            self.outcomes[name] = outcomes
        return None

    def _points(self, name: str, function: FuncOp) -> list[tuple[int, list[Array]]]:
        """The inputs of a check: those that it was admitted with. Every second point is positive: a logarithm has to meet one."""
        if name in self.outcomes:
            return [(outcome.sample, outcome.inputs) for outcome in self.outcomes[name]]
        types, limits = input_types(function), limits_of(function)
        points = [(sample, generate(types, self.seed, sample, limits=limits)) for sample in range(self.samples)]
        return [(sample, _positive(point) if sample % 2 else point) for sample, point in points]

    def _outcome(
        self, where: str, module: ModuleOp, function: FuncOp, sample: int, inputs: list[Array], *, known: bool
    ) -> Outcome | GradirError | None:
        name = function.sym_name.data
        try:
            values = run(module, name, inputs, result_shapes=[()] * 4, seed=self.seed + sample)
        except GradirError as error:
            if not known and (error.code in NO_POINT or (has_run_time_sizes(function) and any(0 in x.shape for x in inputs))):
                return None
            error.message = f"{where}: the check @{name} has no meaning: {error.message}"
            return error
        derivative, other, tolerance, agrees = (value.item() for value in values)
        return Outcome(sample, inputs, float(derivative), float(other), float(tolerance), bool(agrees))


def _positive(point: list[Array]) -> list[Array]:
    """The absolute values of all but complex numbers."""
    return [x if x.dtype.kind in "cb" else np.abs(x) for x in point]


def _judge(where: str, function: FuncOp, now: Outcome, before: Outcome | None, seed: int) -> GradirError | None:
    """Whether the outcome of a check is a violation; a point that was decided before has to keep its numbers finite."""
    lost = before is not None and before.decided and not (math.isfinite(now.derivative) and math.isfinite(now.other))
    if now.agrees and not lost:
        return None
    check = check_of(function) or Check("", "", "")
    slope = check.kind == "fd"
    problem = f"is not the slope of @{check.function}" if slope else "has other numbers in forward than in reverse mode"
    by = f"by differences of @{check.function}" if slope else "in forward mode"
    tolerance = before.tolerance if before is not None and not now.decided else now.tolerance
    return GradirError(
        f"{where}: {check.request} {problem} (sample {now.sample}, seed {seed})",
        part="autodiff",
        code="AD015",
        function=f"@{check.function}",
        location=location_text(function.location),
        expected=f"{now.other!r} {by}, within {tolerance:.3g}",
        found=f"{now.derivative!r}" + ("" if slope else " in reverse mode"),
        hint=f"the check is @{function.sym_name.data}; run the passes one by one, or look at the rules of the ops in @{check.function}",
    )
