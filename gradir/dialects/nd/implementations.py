"""The rows of the operator library that come with us: see `gradir.dialects.target.implementations`.

Linear algebra: loops of our own (`convert_nd_to_linalg/linalg.py`) need nothing and cost no call; LAPACK is faster from some size on, and
the only one for complex numbers and for qr, eigh, svd, where numpy stands in when `scipy-openblas32` is not installed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any

from xdsl.ir import SSAValue

from gradir.dialects.nd.library import CustomCallOp
from gradir.dialects.target.implementations import Implementation, implement
from gradir.dialects.types import shape_of
from gradir.ir.builder import Builder

Settings = Callable[[Any], dict[str, Any]]

REAL = frozenset({"f32", "f64"})
ALL = frozenset({"f32", "f64", "complex<f32>", "complex<f64>"})

SMALL = 1 << 16
"""Multiply-adds of one matrix up to which our own loops beat a call of LAPACK: Cholesky of 73 rows, LU of 58 (measured on AVX2)."""


@cache
def has_openblas() -> bool:
    """Whether the package with LAPACK is installed here."""
    return find_spec("scipy_openblas32") is not None


def _without_openblas(op: Any) -> str:
    """LAPACK for real numbers, where our own loops exist too, only if it is there: numpy has no better ones."""
    if has_openblas() or (op is not None and str(op.operands[0].type.element_type).startswith("complex")):
        return ""
    return "the package scipy-openblas32 is not installed (pip install gradir[lapack])"


def by_name(callee: str, settings: Settings) -> Any:
    """An expansion into one call of `callee` that gives all results."""

    def expand(builder: Builder, op: Any, operands: Sequence[SSAValue]) -> list[SSAValue]:
        call = CustomCallOp.make(callee, operands, [value.type for value in op.results], settings(op))
        call.location = builder.loc
        builder.block.add_op(call)
        return list(call.results)

    return expand


def _cost_of_loops(op: Any) -> int:
    """Less than LAPACK's where the work is little; much where nobody knows how much it is."""
    sizes = [n for value in op.operands for n in shape_of(value)[-2:] if isinstance(n, int)]
    if len(sizes) < 2 * len(op.operands):
        return 20
    work = sizes[0] * sizes[1] * min(sizes[:2]) // (6 if op.name == "nd.cholesky" else 3)
    if op.name == "nd.triangular_solve":
        work = sizes[0] * sizes[2] * sizes[3] // 2
    return 5 if work <= SMALL else 20


def _triangular(op: Any) -> dict[str, Any]:
    flags = {name: op.flag(name) for name in ("left", "lower")}
    return {**flags, "unit": op.flag("unit_diagonal"), "transpose": op.transposition}


def _nothing(_op: Any) -> dict[str, Any]:
    return {}


def _lower(op: Any) -> dict[str, Any]:
    return {"lower": op.flag("lower")}


def _full(op: Any) -> dict[str, Any]:
    return {"full": op.flag("full")}


for _op, _callee, _settings in (
    ("nd.cholesky", "lapack.potrf", _lower),
    ("nd.triangular_solve", "lapack.trsm", _triangular),
    ("nd.lu", "lapack.getrf", _nothing),
):
    implement(Implementation(_op, "loops", "template", "any", REAL, cost=_cost_of_loops))
    implement(Implementation(_op, "lapack", "library", "cpu", ALL, refuses=_without_openblas, expand=by_name(_callee, _settings)))
for _op in ("fft", "ifft", "rfft", "irfft"):
    _transform = by_name(f"fft.{_op}", lambda op: {"dims": op.number("dims")})
    implement(Implementation(f"nd.{_op}", "numpy", "library", "cpu", expand=_transform))
for _op, _callee, _settings in (
    ("nd.qr", "lapack.qr", _full),
    ("nd.eigh", "lapack.syevd", _lower),
    ("nd.svd", "lapack.gesdd", _full),
):
    implement(Implementation(_op, "lapack", "library", "cpu", ALL, expand=by_name(_callee, _settings)))
