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


def _trsm(config: Config, a: Any, b: Any) -> Any:
    return linalg.triangular_solve(a, b, config["left"], config["lower"], config["unit"], config["transpose"])


_row("potrf", lambda config, a: linalg.cholesky(a, config["lower"]))
_row("trsm", _trsm)
_row("getrf", lambda _config, a: linalg.lu(a))
_row("geqrf", lambda _config, a: linalg.geqrf(a))
_row("orgqr", lambda _config, a, tau: linalg.orgqr(a, tau))
_row("qr", lambda config, a: linalg.qr(a, config["full"]))
_row("syevd", lambda config, a: linalg.eigh(a, config["lower"]))
_row("gesdd", lambda config, a: linalg.svd(a, config["full"]))
