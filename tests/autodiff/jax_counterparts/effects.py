"""Prints and assertions are no part of a derivative."""

from __future__ import annotations

from typing import Any

from tests.autodiff.jax_counterparts.registry import counterpart


@counterpart("assert", "print")
def nothing(run: Any, op: Any, *xs: Any) -> tuple[Any, ...]:
    return ()
