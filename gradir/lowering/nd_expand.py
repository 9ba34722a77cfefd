"""Composites become primitives, for targets that do not take them whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import Block, Operation, SSAValue

from gradir.dialects.ad import StopGradientOp
from gradir.dialects.nd.composite import Composite
from gradir.dialects.nd.effects import PrintOp
from gradir.dialects.nd.elementwise import ConvertOp
from gradir.dialects.nd.saturation import saturated
from gradir.dialects.target import TargetAttr, target_of
from gradir.dialects.target.implementations import choose, implemented_ops
from gradir.ir.builder import Builder
from gradir.ir.passes import Pass, PassContext
from gradir.ir.structure import move_before


@dataclass(frozen=True)
class NdExpand(Pass):
    """Before: level 1, without `ad` requests. After: no composite and no `ad.stop_gradient` is left; ops that the operator library has
    several implementations of are what its table chose for the target: themselves, or a call by name.

    ```mlir
    %1 = nd.gelu %0 approximate : tensor<4xf32>
    // becomes nd.mul, nd.add, nd.tanh and constants
    ```
    """

    NAME: ClassVar[str] = "nd-expand"
    ANCHOR: ClassVar[str | None] = None

    keep: tuple[str, ...] = ()
    """Composites that stay (`nd.softmax`), for a target that has an implementation of its own."""

    def apply(self, op: Operation, context: PassContext) -> None:
        rows, target = implemented_ops(), target_of(op)
        for inner in list(op.walk()):
            if isinstance(inner, StopGradientOp):
                replace(inner, [inner.operand])
            elif isinstance(inner, Composite | PrintOp) and inner.name not in self.keep:
                expand(inner, self.keep)
            elif isinstance(inner, ConvertOp) and inner.saturates:
                expand_saturation(inner)
            elif inner.name in rows:
                choose_implementation(inner, target)


def expand(op: Composite | PrintOp, keep: Sequence[str] = ()) -> None:
    """Replace `op` by its decomposition, at its place and location; composites in it that are not kept are replaced too."""
    parts = Block()
    results = op.decompose(Builder(parts, op.location), op.operands)
    assert op.parent is not None, "composites stand in functions"
    inner: list[Composite] = []
    for part in list(parts.ops):
        if isinstance(part, StopGradientOp):
            results = [part.operand if value is part.result else value for value in results]
            replace(part, [part.operand])
        else:
            part.detach()
            op.parent.insert_op_before(part, op)
            if isinstance(part, Composite) and part.name not in keep:
                inner.append(part)
    replace(op, results)
    for part in inner:
        expand(part, keep)


def expand_saturation(op: ConvertOp) -> None:
    """A clamp and a cast in place of a saturating cast."""
    parts = Block()
    result = saturated(op, Builder(parts, op.location), op.operand)
    move_before(parts, op)
    replace(op, [result])


def choose_implementation(op: Operation, target: TargetAttr) -> None:
    """Let `op` become what the table of implementations says; a row without an expansion leaves it to its lowering rule."""
    row = choose(op, target)
    if row is None or row.expand is None:
        return
    parts = Block()
    results = row.expand(Builder(parts, op.location), op, op.operands)
    move_before(parts, op)
    replace(op, results)


def replace(op: Operation, values: Sequence[SSAValue]) -> None:
    """Use `values` in place of the op's results and remove it."""
    for old, new in zip(op.results, values, strict=True):
        if new.name_hint is None:
            new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    op.detach()
    op.erase()
