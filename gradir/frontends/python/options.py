"""The options of `jit` and `compile` as a user writes them, checked where they are given."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from gradir.frontends.python.program import EVALUATED
from gradir.frontends.python.trace import user_error


def arguments_in(option: str, listed: Any) -> frozenset[int | str]:
    """The names and positions that `donate=`, `frozen=` or `static=` lists; None lists none. GradirError GR134 for anything else."""
    words: Any = () if listed is None else listed
    found: list[Any] = [*words] if isinstance(words, Iterable) and not isinstance(words, str | bytes) else [None]
    if any(not isinstance(word, int | str) or isinstance(word, bool) for word in found):
        raise user_error(
            f"{option}= is no list of arguments",
            code="GR134",
            expected="names or positions of arguments in a tuple or list, or None",
            found=repr(listed)[:80],
            hint=f"{option}=({listed!r},)" if isinstance(listed, int | str) else f'{option}=("params",) or {option}=(0,)',
        )
    return frozenset(found)


def seconds_in(tune: Any) -> bool | float:
    """How long `tune=` may search: False (or None, or 0) not at all, True for as long as it likes. GradirError GR134 for anything else."""
    if tune is None or isinstance(tune, bool):
        return bool(tune)
    try:
        seconds = math.nan if isinstance(tune, str | bytes) else float(tune)
    except (TypeError, ValueError):
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise user_error(
            "tune= is no time",
            code="GR134",
            expected="True, False or a number of seconds",
            found=repr(tune)[:80],
            hint="tune=10 searches for ten seconds",
        )
    return seconds


def machine_in(target: Any) -> str:
    """A machine to compile for; GradirError OP041 for what is no name, or names an evaluator: these take modules."""
    if not isinstance(target, str):
        raise user_error(
            "a target is a name",
            part="operator",
            code="OP041",
            expected="host, cpu, cpu:NAME, cuda:NAME",
            found=repr(target)[:80],
            hint="leave target= out to compile for this machine",
        )
    if target == EVALUATED:
        raise user_error(
            f"a function is compiled for a machine, not for '{target}'",
            part="operator",
            code="OP041",
            expected="host, cpu, cpu:NAME, cuda:NAME",
            found=target,
            hint=f"take its module, gradir.compile(gradir.jit(f).lower(*args), target='{target}'), or `with gradir.eager():`",
        )
    return target


__all__ = ["arguments_in", "machine_in", "seconds_in"]
