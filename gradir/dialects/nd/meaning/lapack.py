"""The rows of LAPACK: what a call of `lapack.*` means, whoever computes it; the functions are those of `linalg`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradir.dialects.custom_calls import Config, CustomCall, define
from gradir.dialects.nd.meaning import linalg


def _row(name: str, function: Callable[..., Any]) -> None:
    def evaluate(config: Config, _shapes: Sequence[Any], *arrays: Any) -> Sequence[Any]:
        found = function(config, *arrays)
        return found if isinstance(found, tuple) else (found,)

    define(CustomCall(f"lapack.{name}", evaluate))


def potrf(config: Config, a: Any) -> Any:
    """One triangle of the factor, zeros in the other."""
    return linalg.cholesky(a, config["lower"])


def trsm(config: Config, a: Any, b: Any) -> Any:
    """The solution."""
    return linalg.triangular_solve(a, b, config["left"], config["lower"], config["unit"], config["transpose"])


def getrf(_config: Config, a: Any) -> Any:
    """(factors, pivots, permutation)"""
    return linalg.lu(a)


def geqrf(_config: Config, a: Any) -> Any:
    """(packed, tau)"""
    return linalg.geqrf(a)


def orgqr(_config: Config, a: Any, tau: Any) -> Any:
    """The product of reflections."""
    return linalg.orgqr(a, tau)


def qr(config: Config, a: Any) -> Any:
    """(q, r)"""
    return linalg.qr(a, config["full"])


def syevd(config: Config, a: Any) -> Any:
    """(values, vectors)"""
    return linalg.eigh(a, config["lower"])


def gesdd(config: Config, a: Any) -> Any:
    """(u, s, vh)"""
    return linalg.svd(a, config["full"])


for _function in (potrf, trsm, getrf, geqrf, orgqr, qr, syevd, gesdd):
    _row(_function.__name__, _function)
