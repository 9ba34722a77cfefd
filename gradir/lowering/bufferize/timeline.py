"""The ops of one function on a line: what "before", "after" and "live" mean for the analysis of buffers.

Every op takes two positions: its operands are read at the first, or at the second where the op may have begun to write; its results exist
from the second. An op with regions spans the positions of all that is in it. Bodies of `linalg` ops are not looked into: such an op is one
point in time. Control flow is structured, so that reachability follows from nesting: two branches exclude each other, a loop repeats.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation

from gradir.dialects.upstream import scf

LOOPS = (scf.ForOp, scf.WhileOp)
BRANCHES = (scf.IfOp, scf.IndexSwitchOp)
CONTROL = (*LOOPS, *BRANCHES)


class Timeline:
    """Positions of the ops and blocks in the body of a function, in program order."""

    def __init__(self, body: Block) -> None:
        self.body = body
        self.start: dict[Operation, int] = {}
        self.end: dict[Operation, int] = {}
        self.block_start: dict[Block, int] = {}
        self.depth: dict[Block, int] = {}
        self._next = 0
        self._block(body, 0)

    def _block(self, block: Block, depth: int) -> None:
        self.depth[block] = depth
        self.block_start[block] = self._next
        self._next += 2
        for op in block.ops:
            self.start[op] = self._next
            self._next += 2
            if isinstance(op, CONTROL):
                for region in op.regions:
                    if region.first_block is not None:
                        self._block(region.block, depth + 1)
                self._next += 2
            self.end[op] = self._next - 1

    def late(self, op: Operation) -> int:
        """When `op` may have begun to write; for an op with regions the moment before it enters them."""
        return self.start[op] + 1

    def anchor(self, op: Operation) -> Operation:
        """The op on the line that contains `op`: itself, or the `linalg` op whose body it is in."""
        while op not in self.start:
            parent = op.parent_op()
            assert parent is not None
            op = parent
        return op

    def lift(self, op: Operation, block: Block | None) -> Operation | None:
        """The op of `block` that is or contains `op`; None when `op` is not in `block`."""
        while op.parent is not block:
            parent = op.parent_op()
            if parent is None or parent not in self.start:
                return None
            op = parent
        return op

    def common_block(self, ops: Sequence[Operation]) -> Block:
        """The innermost block that contains all of `ops`."""
        found = ops[0].parent
        assert found is not None
        for op in ops[1:]:
            block = op.parent
            assert block is not None
            while block is not found:
                if self.depth[block] > self.depth[found]:
                    block = _outer(block)
                else:
                    found = _outer(found)
        return found


def _outer(block: Block) -> Block:
    parent = block.parent_op()
    assert parent is not None and parent.parent is not None
    return parent.parent
