"""The search for one kernel: many forms a little, the best few thoroughly, and a change only for a significant gain.

Within one child the forms take turns, so that a machine that is busy is busy for all of them; what is compared are ratios within a round.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from gradir.driver.tuning.alternatives import Subject
from gradir.driver.tuning.records import Choice, Record
from gradir.driver.tuning.semantics import differs_from_reference
from gradir.driver.tuning.trials import Job, Measure, Outcome

BATCH = 8
"""Forms measured together in one child."""
FINALISTS = 3
SCREENING, FINAL = 5, 25
"""Rounds of the screening and of the final."""
LEAST_GAIN = 0.03
"""A form is taken when it is faster by this part at least, in nearly every round."""
CHANCE = 0.001
"""So likely may it be that a form as fast as the default one wins as many rounds."""

Tell = Callable[[str, int, int], None]
"""`tell(kernel, tried, of)`: progress."""


@dataclass(frozen=True)
class Found:
    """What a search found: the decision, and why forms were refused."""

    record: Record
    refused: dict[str, str] = field(default_factory=dict[str, str])


def search(subject: Subject, measure: Measure, *, seconds: float, sets: int = 1, location: str = "", tell: Tell | None = None) -> Found:
    """Try the forms of `subject` for about so many seconds (the final comes on top)."""
    until = time.monotonic() + seconds
    forms = list(subject.others)
    ratios: dict[int, float] = {}
    refused: dict[str, str] = {}
    tried = 0
    for first in range(0, len(forms), BATCH):
        if first and time.monotonic() > until:
            break
        batch = forms[first : first + BATCH]
        reference, *outcomes = _measured(subject, batch, measure, SCREENING, sets)
        for k, (form, outcome) in enumerate(zip(batch, outcomes), first):
            tried += 1
            if outcome.refused:
                refused[str(form)] = outcome.refused
            else:
                ratios[k] = _ratio(outcome, reference)
        if tell is not None:
            tell(subject.name, tried, len(forms))
    best = sorted((k for k, ratio in ratios.items() if ratio < 1 - LEAST_GAIN / 2), key=lambda k: ratios[k])[:FINALISTS]
    record = Record(subject.key, subject.name, location, subject.default, subject.default, 0.0, 0.0, tried + 1, len(refused))
    if not best:
        reference, *_ = _measured(subject, [], measure, SCREENING, sets)
        each = statistics.median(reference.seconds)
        return Found(replace(record, default_seconds=each, seconds=each), refused)
    finalists = [forms[k] for k in best]
    reference, *outcomes = _measured(subject, finalists, measure, FINAL, sets)
    default = statistics.median(reference.seconds)
    record = replace(record, default_seconds=default, seconds=default)
    winners: list[tuple[float, Choice]] = []
    for form, outcome in zip(finalists, outcomes):
        if outcome.refused:
            refused[str(form)] = outcome.refused
        elif significant(outcome.seconds, reference.seconds):
            winners.append((_ratio(outcome, reference), form))
    for ratio, form in sorted(winners, key=lambda row: row[0]):
        wrong = differs_from_reference(subject, form)
        if not wrong:
            record = replace(record, choice=form, seconds=default * ratio)
            break
        refused[str(form)] = wrong
    return Found(replace(record, refused=len(refused)), refused)


def _measured(subject: Subject, forms: Sequence[Choice], measure: Measure, rounds: int, sets: int) -> list[Outcome]:
    makers = [lambda choice=choice: subject.compiled(choice) for choice in (subject.default, *forms)]
    return measure(Job(makers, subject.inputs, sets, rounds))


def _ratio(outcome: Outcome, reference: Outcome) -> float:
    """Median over the rounds of the form's time over the default's in that round."""
    return statistics.median(a / b for a, b in zip(outcome.seconds, reference.seconds))


def significant(seconds: Sequence[float], reference: Sequence[float]) -> bool:
    """Is a form faster by `LEAST_GAIN`? A sign test over the rounds: wins are rounds in which it is, by that much."""
    wins = sum(a < b * (1 - LEAST_GAIN) for a, b in zip(seconds, reference))
    rounds = min(len(seconds), len(reference))
    if not rounds or statistics.median(a / b for a, b in zip(seconds, reference)) >= 1 - LEAST_GAIN:
        return False
    return sum(math.comb(rounds, k) for k in range(wins, rounds + 1)) / 2**rounds <= CHANCE


__all__ = ["Found", "Tell", "search", "significant"]
