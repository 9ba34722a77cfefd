"""What a loop keeps for its backward part: the policies, by name, and the attributes that choose one.

    all    what the backward body reads, of every iteration
    none   the carried values of every iteration; the body runs again
    sqrt   the carried values of every ceil(sqrt(N))-th iteration; a segment of as many iterations runs again

`gradir.residuals = "sqrt"` on a loop is its policy; on a request (`ad.grad`, ..) or on the module it is that of all loops below that have
none. `gradir.budget = 1048576 : i64` on a request or the module: so many bytes for all loops together. `differentiate` writes a fourth
policy, `segment`, on the loops over a segment: `all` where an iteration saves at most twice its carried values, `none` otherwise.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Operation

from gradir.errors import GradirError
from gradir.ir.passes import error_at

POLICY = "gradir.residuals"
BUDGET = "gradir.budget"
POLICIES = ("all", "none", "sqrt")
"""From the least work to the least memory."""
SEGMENT = "segment"

_POLICY_EXPECTED = f"one of {', '.join(POLICIES)}"
_BUDGET_EXPECTED = "a whole number of bytes of 64 bits, at least 0 (0: no limit)"


def policy_of(op: Operation, default: str) -> str:
    """The policy that `op` asks for, else `default`. Error AD020 for another name."""
    own = op.attributes.get(POLICY)
    if own is None:
        return default
    if not isinstance(own, StringAttr) or own.data not in (*POLICIES, SEGMENT):
        found = own.data if isinstance(own, StringAttr) else str(own)
        raise error_at(op, f"{POLICY} is no policy", part="autodiff", code="AD020", expected=_POLICY_EXPECTED, found=found)
    return own.data


def budget_of(op: Operation, default: int) -> int:
    """The bytes that `op` allows, else `default`; 0 is no limit. Error AD020 for what is no number of bytes."""
    own = op.attributes.get(BUDGET)
    if own is None:
        return default
    if not isinstance(own, IntegerAttr) or own.value.data < 0:
        raise error_at(op, f"{BUDGET} is no budget", part="autodiff", code="AD020", expected=_BUDGET_EXPECTED, found=str(own))
    return own.value.data


def wrong_choice(policy: Any, budget: Any) -> tuple[str, str, str] | None:
    """(message, expected, found) where one of the two makes no sense."""
    if policy is not None and policy not in POLICIES:
        return "no such policy of residuals", _POLICY_EXPECTED, repr(policy)
    if budget is not None and (not isinstance(budget, int) or isinstance(budget, bool) or not 0 <= budget < 1 << 63):
        return "no such budget of residuals", _BUDGET_EXPECTED, repr(budget)
    return None


def check_choice(policy: str, budget: int) -> None:
    """Raise GradirError AD020 unless both make sense."""
    wrong = wrong_choice(policy, budget)
    if wrong is not None:
        raise GradirError(wrong[0], part="autodiff", code="AD020", expected=wrong[1], found=wrong[2])


def choice(policy: str | None = None, budget: int | None = None) -> dict[str, Attribute]:
    """The attributes that ask for these."""
    asked: dict[str, Attribute] = {}
    if policy is not None:
        asked[POLICY] = StringAttr(policy)
    if budget is not None:
        asked[BUDGET] = IntegerAttr(budget, i64)
    return asked


def marked(op: Operation, policy: str) -> dict[str, Attribute]:
    """Attributes of a loop that stands for `op`: derivatives of it have the same policy. `all` is not written where nobody wrote it."""
    own = dict(op.attributes)
    if policy != POLICIES[0]:
        own[POLICY] = StringAttr(policy)
    return own


__all__ = ["BUDGET", "POLICIES", "POLICY", "SEGMENT", "budget_of", "check_choice", "choice", "marked", "policy_of", "wrong_choice"]
