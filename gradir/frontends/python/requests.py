"""Checks of what a request is about, before anything is traced: the function, its arguments, their positions, a derivative that exists."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gradir.frontends.python import promotion
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.sizes import whole
from gradir.frontends.python.trace import user_error


def name_of(function: Callable[..., Any]) -> str:
    """What messages call it."""
    return getattr(function, "__name__", "f")


def needs_function(what: str, function: Any) -> None:
    """Raises GradirError GR119 where `what` was not given a function."""
    if callable(function):
        return
    raise user_error(
        f"{what}: a {type(function).__name__} is not a function",
        code="GR119",
        op=f"gradir.{what}",
        expected="a function",
        found=repr(function)[:80],
        hint=f"write {what}(f)(x), not {what}(f(x))",
    )


def needs_arguments(what: str, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any] | None = None) -> None:
    """Raises GradirError GR119 where `function` cannot be called with these arguments."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a callable without a signature
        return
    try:
        signature.bind(*args, **(kwargs or {}))
    except TypeError as error:
        raise user_error(
            f"{what}: {name_of(function)} cannot be called with these arguments: {error}",
            code="GR119",
            op=f"gradir.{what}",
            expected=f"{name_of(function)}{signature}",
            found=f"{len(args)} by position" + (f", {', '.join(kwargs)} by name" if kwargs else ""),
        ) from None


def needs_sequence(what: str, of: str, values: Any) -> None:
    """Raises GradirError GR107 where several values are not given as a tuple or a list."""
    if isinstance(values, tuple | list):
        return
    raise user_error(
        f"{what}: the {of} are not a tuple",
        code="GR107",
        op=f"gradir.{what}",
        expected=f"a tuple with one of the {of} per argument",
        found=type(values).__name__,
        hint="for one argument write (x,)",
    )


def needs_floats(what: str, of: str, found: Sequence[Array]) -> None:
    """Raises GradirError GR109 where none of these has a derivative."""
    if any(promotion.is_inexact(x.dtype) for x in found):
        return
    raise user_error(
        f"{what}: there is nothing to differentiate",
        code="GR109",
        op=f"gradir.{what}",
        expected=f"at least one floating-point array among the {of}",
        found=", ".join(str(x.type) for x in found) or "no arrays",
        hint="convert with astype",
    )


def needs_derivative(function: Callable[..., Any], argument: str, dtype: np.dtype[Any], op: str) -> None:
    """Raises GradirError GR109 where this argument of `function` has no derivative."""
    if promotion.is_inexact(dtype):
        return
    raise user_error(
        f"argument {argument} of {name_of(function)} has no derivative",
        code="GR109",
        op=op,
        expected="floating-point arrays",
        found=str(dtype),
        hint="choose other argnums, or convert it with astype",
    )


def positions(what: str, argnums: Any, count: int) -> tuple[int, ...]:
    """`argnums`, one number or several, as positions of `count` arguments. Raises GradirError GR104, GR112."""
    if isinstance(argnums, int | np.integer) and not isinstance(argnums, bool):
        numbers: Sequence[Any] = (argnums,)
    elif isinstance(argnums, tuple | list):
        numbers = argnums
    else:
        raise user_error(
            f"{what}: argnums is neither a number nor several",
            code="GR112",
            op=f"gradir.{what}",
            expected="the position of an argument, or a tuple of positions",
            found=repr(argnums)[:80],
        )
    found: list[int] = []
    for n in (whole("an element of argnums", n) for n in numbers):
        if not -count <= n < count:
            by_name = "no argument is given by position" if count == 0 else ""
            raise user_error(
                f"{what}: argnums names argument {n}",
                code="GR104",
                op=f"gradir.{what}",
                expected=by_name or (f"0 to {count - 1}" if count > 1 else "0, the only one"),
                found=str(n),
                hint="arguments that are given by name are not differentiated: give them by position" if by_name else "",
            )
        found.append(n % count)
    repeated = [n for n in found if found.count(n) > 1]
    if repeated or not found:
        raise user_error(
            f"{what}: argnums names argument {repeated[0]} twice" if repeated else f"{what}: argnums names no argument",
            code="GR104",
            op=f"gradir.{what}",
            expected="different arguments" if repeated else "at least one argument",
            found=repr(argnums),
        )
    return tuple(found)
