"""What it costs to compute a value a second time, next to keeping it. The one table that residual selection reads.

    keep v  costs  bytes(v)                                    (written once, read once, and alive in between)
    redo v  costs  sum over the ops u of its chain of  share(u) * bytes(u)

and a value is redone iff `redo v <= keep v`. `share(u)` estimates the time of one op on a vector in registers over that of a store and a
load of it: a core that moves 10 GB/s does some 32 additions, 8 divisions or 2 exponentials of a vector in that time. Views and constants
are free: they never reach memory.
"""

from __future__ import annotations

from functools import lru_cache

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation

from gradir.dialects import nd
from gradir.dialects.types import element_of, numpy_dtype, shape_of

LARGE = 1 << 14
"""Bytes from which on a value is worth the trouble of choosing: half of a first-level cache."""

NOMINAL_SIZE = 64
"""What a run-time size counts as."""

SLOW = 1 / 2
"""The share of a transcendental function."""

VIEWS: frozenset[type[Operation]] = frozenset({nd.BroadcastOp, nd.TransposeOp, nd.ReshapeOp, nd.ReverseOp, nd.SliceOp})
"""Another order of elements that are there."""

FREE: frozenset[type[Operation]] = VIEWS | {nd.ConstantOp, nd.IotaOp, nd.SymbolOp}
"""Ops of level 1 that never reach memory."""

_SLOW: dict[type[Operation], float] = {
    **dict.fromkeys((nd.DivOp, nd.SqrtOp, nd.RsqrtOp), 1 / 8),
    **dict.fromkeys((nd.ExpOp, nd.Expm1Op, nd.LogOp, nd.Log1pOp, nd.TanhOp, nd.LogisticOp, nd.ErfOp, nd.SinOp, nd.CosOp), SLOW),
}
FAST: frozenset[type[Operation]] = frozenset(
    {
        nd.ReluOp, nd.NegOp, nd.AbsOp, nd.SignOp, nd.FloorOp, nd.CeilOp, nd.NotOp, nd.IsFiniteOp, nd.ConvertOp, nd.AddOp, nd.SubOp,
        nd.MulOp, nd.MulStrongOp, nd.MaxOp, nd.MinOp, nd.AndOp, nd.OrOp, nd.XorOp, nd.CompareOp, nd.SelectOp, nd.ClampOp,
    }
)  # fmt: skip


def share_of(op: Operation) -> float | None:
    """The cost of redoing `op`, relative to keeping its result; None for an op that is never redone."""
    kind = type(op)
    if kind in FREE:
        return 0.0
    return 1 / 32 if kind in FAST else _SLOW.get(kind)


@lru_cache(maxsize=1 << 12)
def weight(kind: Attribute) -> int:
    """Bytes of a value as they are weighed, with a nominal number for sizes that only the run knows."""
    if not isinstance(kind, TensorType):
        return 8
    total = numpy_dtype(element_of(kind)).itemsize
    for size in shape_of(kind):
        total *= size if isinstance(size, int) else NOMINAL_SIZE
    return total
