"""What reverse mode keeps, as Python says it: `residuals=` and `budget=` of loops, derivatives and whole programs become attributes."""

from __future__ import annotations

from xdsl.ir import Attribute

from gradir.dialects.residuals import choice, wrong_choice
from gradir.frontends.python.trace import user_error


def residual_choice(residuals: str | None, budget: int | None = None) -> dict[str, Attribute]:
    """The attributes that ask for a policy and a budget; GradirError AD020 at the user's line for what is none."""
    wrong = wrong_choice(residuals, budget)
    if wrong is not None:
        message, expected, found = wrong
        raise user_error(message, part="autodiff", code="AD020", expected=expected, found=found)
    return choice(residuals, budget)
