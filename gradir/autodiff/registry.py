"""Tables of derivative rules: which op has which vector-Jacobian product, and which op has none on purpose."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, TypeAlias

from xdsl.ir import Operation, SSAValue

from gradir.autodiff.tensors import TensorBuilder
from gradir.dialects.types import element_of, is_complex

Contribution: TypeAlias = "SSAValue | Callable[[], SSAValue] | None"
VjpRule: TypeAlias = "Callable[[TensorBuilder, Any, Any], Sequence[Contribution]]"
"""`rule(t, op, ct)`: one contribution per operand of `op`, whose result has the cotangent `ct`. For an op of several results `ct` is the
tuple of their cotangents, None where nothing arrived.

None means "no derivative"; a callable is built only if that operand is active.
"""

JvpRule: TypeAlias = "Callable[[TensorBuilder, Any, Mapping[int, SSAValue]], Sequence[SSAValue | None]]"
"""`rule(t, op, tangents)`: the tangent of each result of `op` from those of its operands by position; None for one that is zero."""

VJP: dict[type[Operation], VjpRule] = {}
JVP: dict[type[Operation], JvpRule] = {}
"""Forward rules. An op without one goes forward by its reverse rule, transposed."""
SKIPPED: dict[type[Operation], str] = {}
"""Ops without a derivative by meaning (integer results, piecewise constant), with the reason."""

_FAMILIES = (
    "elementwise",
    "mathematics",
    "complex",
    "bits",
    "special",
    "reduction",
    "cumulative",
    "contraction",
    "convolution",
    "shape",
    "indexing",
    "gather_scatter",
    "creation",
    "composite",
    "activation",
    "sorting",
    "arrangement",
    "effects",
    "random",
    "linalg",
    "orthogonal",
    "fourier",
    "library",
)

_STRUCTURED = ("scalar_rules", "tensor_rules", "padding", "reverse", "forward")
"""The rules of level 2, in `autodiff/structured`."""


def vjp(kind: type[Operation]) -> Callable[[VjpRule], VjpRule]:
    """Register the reverse rule of `kind`; plugins use it too."""

    def register(rule: VjpRule) -> VjpRule:
        VJP[kind] = rule
        return rule

    return register


def jvp(kind: type[Operation]) -> Callable[[JvpRule], JvpRule]:
    """Register a forward rule of `kind`: for an op whose reverse rule has no cheap transpose."""

    def register(rule: JvpRule) -> JvpRule:
        JVP[kind] = rule
        return rule

    return register


def skip(kind: type[Operation], reason: str) -> None:
    """`kind` has derivative zero everywhere or none at all; `reason` is printed in the op reference."""
    SKIPPED[kind] = reason


def has_no_derivative(op: Operation) -> bool:
    """Whether nothing flows through `op`. An op that is skipped and has a rule too is skipped on real elements alone."""
    kind = type(op)
    return kind in SKIPPED and not (kind in VJP and is_complex(element_of(op.results[0])))


def load_rules() -> None:
    """Import every family once; importing registers."""
    for family in _FAMILIES:
        import_module(f"gradir.autodiff.rules.{family}")
    for name in _STRUCTURED:
        import_module(f"gradir.autodiff.structured.{name}")
