"""`make autodiff-status`: measures every program, a few minutes, and writes docs/status/autodiff.md. Needs JAX."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from io import StringIO

import jax

from tests.autodiff.table.against_jax import JaxErrors, against_jax
from tests.autodiff.table.cases import CASES
from tests.autodiff.table.jax_reasons import NO_COUNTERPART
from tests.autodiff.table.measure import Errors, against_differences, derivatives, module_of
from tests.autodiff.table.page import TARGET, Row, page


def measured(op: str) -> Row:
    """The worst over the programs of `op`."""
    own: list[Errors] = []
    theirs: list[JaxErrors] = []
    for case in CASES:
        if case.op == op:
            module = module_of(case)
            with redirect_stdout(StringIO()):  # programs that print
                found = derivatives(case, module)
                own.append(against_differences(found, module))
            if op not in NO_COUNTERPART:
                theirs.append(against_jax(found))
    worst = Errors(*(max(getattr(e, name) for e in own) for name in Errors.__dataclass_fields__))
    by_jax = (max(e.vjp for e in theirs), max(e.jvp for e in theirs), max(e.second for e in theirs)) if theirs else None
    return Row(worst, by_jax)


def main() -> int:
    """Write the page."""
    rows = {}
    for op in dict.fromkeys(case.op for case in CASES):
        rows[op] = measured(op)
        print(op, rows[op], file=sys.stderr, flush=True)
    TARGET.write_text(page(rows, jax.__version__), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
