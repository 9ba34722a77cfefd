"""The last word on a form that is about to be taken: does it compute what the reference evaluator says?

The child compares every form with the heuristic's (`gradir.runtime.trial`). A winner is also compared with the definition of its ops, under
the tolerance of docs/numerics.md, as long as the evaluator can do it in reasonable time.
"""

from __future__ import annotations

import numpy as np

from gradir.driver.tuning.alternatives import ENTRY, Subject
from gradir.driver.tuning.records import Choice
from gradir.reference import compare, expectations

MOST_POINTS = 1 << 20
"""Points of all loop nests together up to which the evaluator is asked; it takes some seconds for these."""


def differs_from_reference(subject: Subject, choice: Choice) -> str:
    """What differs; empty if nothing does, or if the kernel is too large for the evaluator."""
    if not 0 < subject.points <= MOST_POINTS:
        return ""
    expected = expectations(subject.program, ENTRY, [np.asarray(x) for x in subject.inputs])
    (function,) = subject.compiled(choice)
    for k, (wanted, found) in enumerate(zip(expected, function.flat(*subject.inputs))):
        difference = compare(wanted, found)
        if difference is not None:
            return f"result {k} at {list(difference.index or ())}: {difference.expected} expected, {difference.found} found"
    return ""


__all__ = ["MOST_POINTS", "differs_from_reference"]
