"""Remove ops whose results nobody uses, and blocks that control never reaches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import Operation, Region

from gradir.ir.dominance import dominator_tree
from gradir.ir.passes import Pass, PassContext
from gradir.lowering.purity import Purity


@dataclass(frozen=True)
class Dce(Pass):
    """Before and after: any level. No op is left whose results are unused and whose effects nobody sees.

    ```mlir
    %0 = nd.exp %x : tensor<4xf32>      // no use of %0: removed
    %1 = nd.neg %x : tensor<4xf32>
    return %1 : tensor<4xf32>
    ```
    """

    NAME: ClassVar[str] = "dce"
    ANCHOR: ClassVar[str | None] = None

    def apply(self, op: Operation, context: PassContext) -> None:
        remove_dead_ops(op, Purity(op))


def remove_dead_ops(op: Operation, purity: Purity) -> int:
    """Remove what is dead in the regions of `op`; how many ops went. One walk from the last op to the first suffices."""
    return sum(_region(region, purity) for region in op.regions)


def _region(region: Region, purity: Purity) -> int:
    count = _unreachable(region)
    for block in reversed(list(region.blocks)):
        op = block.last_op
        while op is not None:
            before = op.prev_op
            if all(result.first_use is None for result in op.results) and purity.is_removable(op):
                count += 1
                op.detach()
                op.erase(safe_erase=False)  # uses from unreachable code went with that code
            else:
                count += remove_dead_ops(op, purity)
            op = before
    return count


def _unreachable(region: Region) -> int:
    entry = region.first_block
    if entry is None or entry.next_block is None:
        return 0
    tree = dominator_tree(entry)
    dead = [block for block in region.blocks if id(block) not in tree.reachable]
    for block in dead:
        region.detach_block(block)
    for block in dead:  # they may use each other's values in a circle
        for op in block.ops:
            op.drop_all_references()
    for block in dead:
        block.erase(safe_erase=False)
    return len(dead)
