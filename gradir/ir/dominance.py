"""Dominator trees of multi-block regions, after Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm"."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Block


@dataclass(frozen=True)
class DominatorTree:
    """`children` of a block by `id(block)`; `reachable` holds the ids of the blocks that the entry reaches."""

    children: dict[int, list[Block]]
    reachable: set[int]


def dominator_tree(entry: Block) -> DominatorTree:
    """The tree of the region that `entry` begins; linear for reducible control flow."""
    order, predecessors = _reverse_postorder(entry)
    number = {id(block): i for i, block in enumerate(order)}
    incoming = [[number[id(p)] for p in predecessors.get(id(block), ())] for block in order]
    idom = [-1] * len(order)
    idom[0] = 0
    changed = True
    while changed:
        changed = False
        for i in range(1, len(order)):
            new = -1
            for p in incoming[i]:
                if idom[p] >= 0:
                    new = p if new < 0 else _meet(idom, new, p)
            if idom[i] != new:
                idom[i], changed = new, True
    children: dict[int, list[Block]] = {}
    for i in range(1, len(order)):
        children.setdefault(id(order[idom[i]]), []).append(order[i])
    return DominatorTree(children, set(number))


def _meet(idom: list[int], a: int, b: int) -> int:
    while a != b:
        while a > b:
            a = idom[a]
        while b > a:
            b = idom[b]
    return a


def _successors(block: Block) -> tuple[Block, ...]:
    return tuple(block.last_op.successors) if block.last_op is not None else ()


def _reverse_postorder(entry: Block) -> tuple[list[Block], dict[int, list[Block]]]:
    order: list[Block] = []
    seen = {id(entry)}
    predecessors: dict[int, list[Block]] = {}
    stack = [(entry, iter(_successors(entry)))]
    while stack:
        block, rest = stack[-1]
        successor = next(rest, None)
        if successor is None:
            order.append(block)
            stack.pop()
            continue
        predecessors.setdefault(id(successor), []).append(block)
        if id(successor) not in seen:
            seen.add(id(successor))
            stack.append((successor, iter(_successors(successor))))
    order.reverse()
    return order, predecessors
