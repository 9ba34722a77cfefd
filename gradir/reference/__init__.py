"""The oracle: a slow, obvious evaluator of levels 1 to 4 with numpy, and the comparison of two results.

It shares no code with the lowering. What upstream leaves undefined is an error here, as are reads of uninitialised memory, accesses out of
bounds, writes to arguments and stale reads.

    from gradir.reference import run
    (y,) = run(module, "layer", [x, w, b])
"""

from gradir.reference.check_semantics import SemanticsChecker, check_semantics
from gradir.reference.compare import Difference, Expectation, compare, expectations
from gradir.reference.machine import evaluates
from gradir.reference.run import run

__all__ = ["Difference", "Expectation", "SemanticsChecker", "check_semantics", "compare", "evaluates", "expectations", "run"]
