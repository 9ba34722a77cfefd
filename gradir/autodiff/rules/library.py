"""The derivative of a call by name is the rule that was registered with the function; without one an active call is an error."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from gradir.autodiff.registry import Contribution, VjpRule, vjp
from gradir.autodiff.rules.linalg import cholesky_cotangent
from gradir.autodiff.tensors import TensorBuilder
from gradir.dialects import custom_calls, nd
from gradir.ir.passes import error_at


@vjp(nd.CustomCallOp)
def custom_call_vjp(t: TensorBuilder, op: nd.CustomCallOp, ct: SSAValue | tuple[SSAValue | None, ...]) -> Sequence[Contribution]:
    """The registered rule, given the cotangents of all results."""
    row = custom_calls.find(op.callee.data)
    rule = RULES.get(op.callee.data) or (row.vjp if row is not None else None)
    if rule is None:
        raise error_at(
            op,
            f"@{op.callee.data} lies on an active path and has no derivative rule",
            part="autodiff",
            code="AD009",
            expected="a rule that was registered with the function",
            found="none",
            hint=f'gradir.register_custom_call("{op.callee.data}", function, vjp=rule), where rule(inputs, results, cotangents, **config) '
            "gives one cotangent (or None) per input; or cut the path with gradir.stop_gradient",
        )
    return rule(t, op, ct)


def potrf_vjp(t: TensorBuilder, op: nd.CustomCallOp, ct: SSAValue) -> tuple[Contribution, ...]:
    """As `nd.cholesky`."""
    return (cholesky_cotangent(t, op.results[0], ct, bool(op.settings["lower"])),)


RULES: dict[str, VjpRule] = {"lapack.potrf": potrf_vjp}
"""Rules of functions that come with us."""
