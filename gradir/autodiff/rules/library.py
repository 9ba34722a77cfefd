"""The derivative of a call by name is the rule that was registered with the function; without one an active call is an error."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from gradir.autodiff.registry import Contribution, vjp
from gradir.autodiff.tensors import TensorBuilder
from gradir.dialects import custom_calls, nd
from gradir.ir.passes import error_at


@vjp(nd.CustomCallOp)
def custom_call_vjp(t: TensorBuilder, op: nd.CustomCallOp, ct: SSAValue | tuple[SSAValue | None, ...]) -> Sequence[Contribution]:
    """The registered rule, given the cotangents of all results."""
    row = custom_calls.find(op.callee.data)
    if row is None or row.vjp is None:
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
    return row.vjp(t, op, ct)
