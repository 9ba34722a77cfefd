"""Elements that have stopped do not change: the proof that lets each element leave a loop when it is done, not when all are.

Assume that the element's own condition is false and simplify what an iteration hands on (a select on a false condition, a sum with +0, ..).
The element is at rest if what decides and what is wanted depend only on carried values that are handed on as they are.

A condition that is carried, `live`, is computed anew in every iteration: `live' = f(x', y')`. Then "not live implies not f(x, y)" holds
from the second iteration on, and in the first if `live` starts as true: f(x, y) may be taken to be false as well.
"""

from __future__ import annotations

from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import SSAValue

from gradir.dialects.upstream import arith, scf
from gradir.lowering.sink_loops.terms import Terms


def stays_at_rest(loop: scf.WhileOp, own: SSAValue, wanted: int) -> bool:
    """Whether result `wanted` of a loop over numbers keeps its value from where the condition `own` is false, however often it goes on."""
    terms = Terms()
    carried = [terms.given(k) for k in range(len(loop.arguments))]
    before, after = loop.before_region.block, loop.after_region.block
    values: dict[SSAValue, int] = dict(zip(before.args, carried))
    decided = terms.of_block(before, values)
    if decided is None:
        return False
    condition, handed = values[own], decided[1:]
    next_ = terms.of_block(after, dict(zip(after.args, handed)))
    if next_ is None:
        return False
    inits = [v.owner.value if isinstance(v.owner, arith.ConstantOp) else None for v in loop.arguments]
    starts_true = {c for c, init in zip(carried, inits) if isinstance(init, IntegerAttr) and init.value.data != 0}
    signed = _never_minus_zero(terms, carried, next_, [c for c, init in zip(carried, inits) if _is_no_minus_zero(init)])

    known = _where_false(terms, condition, signed)
    while True:
        simple = terms.simplified(known, signed)
        rest = [simple[n] for n in next_]
        stopped = {c for c in starts_true if known.get(c) is False}
        implied = {t: False for c, n, t in zip(carried, next_, rest) if c in stopped and _returns(terms, t, carried, next_, n)}
        if implied.items() <= known.items():
            break
        known |= implied
    moving = {c for c, r in zip(carried, rest) if r not in (c, simple[c])}
    return not moving & terms.leaves([condition, simple[handed[wanted]]])


def _where_false(terms: Terms, condition: int, never_minus_zero: set[int]) -> dict[int, bool]:
    """What is known of terms where `condition` is false."""
    simple = terms.simplified({}, never_minus_zero)[condition]
    known = {condition: False, simple: False}
    opposite = terms.opposite_of(simple)
    return known if opposite is None else {**known, opposite: True}


def _returns(terms: Terms, term: int, carried: list[int], next_: list[int], expected: int) -> bool:
    """Whether `term` of the next iteration's values is `expected`."""
    return terms.replaced(dict(zip(carried, next_)))[term] == expected


def _never_minus_zero(terms: Terms, carried: list[int], next_: list[int], candidates: list[int]) -> set[int]:
    """Those of `candidates` that are no -0 in any iteration."""
    kept = set(candidates)
    while True:
        lost = {c for c, n in zip(carried, next_) if c in kept and not terms.is_never_minus_zero(n, kept)}
        if not lost:
            return kept
        kept -= lost


def _is_no_minus_zero(init: object) -> bool:
    return isinstance(init, FloatAttr) and str(init.value.data) != "-0.0"
