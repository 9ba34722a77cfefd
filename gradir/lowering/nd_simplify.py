"""Algebra of the tensor level; the identities themselves are in `gradir.lowering.folds`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import Operation

from gradir.ir.passes import Pass, PassContext
from gradir.lowering.canonicalize import canonicalize


@dataclass(frozen=True)
class NdSimplify(Pass):
    """Before and after: level 1. Identities of `nd` are applied until none holds, unused pure ops are gone; other dialects are left alone.

    Every identity holds bit for bit, NaN, infinities and the sign of zero included, or within the bounds of a declared reduction.
    Work grows linearly with the program.

    ```mlir
    %1 = nd.transpose %0 perm [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
    %2 = nd.transpose %1 perm [1, 0] : tensor<3x2xf32> -> tensor<2x3xf32>     // becomes %0
    ```
    """

    NAME: ClassVar[str] = "nd-simplify"
    ANCHOR: ClassVar[str | None] = None

    def apply(self, op: Operation, context: PassContext) -> None:
        canonicalize(op, dialects=("nd",))
