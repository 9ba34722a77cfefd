"""Which loops of a set of ops are one dimension: union of loops along the values that flow between them.

Three rules, in this order: a value that one op produces and another reads links their loops exactly; an operand that two ops read
the same way links theirs when nothing contradicts; loops left over pair up by equal extent, earliest first. Only the first rule
can make a set of ops illegal.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from gradir.lowering.groups.loops import Extent, Loops


class _Classes:
    """Disjoint sets of loops; a set knows (by bits) which ops take part, since no op may have two loops in one set."""

    def __init__(self, ops: Sequence[Loops]) -> None:
        self.first: list[int] = []
        self.extent: list[Extent] = []
        self.members: list[int] = []
        for position, loops in enumerate(ops):
            self.first.append(len(self.extent))
            self.extent += loops.extents
            self.members += [1 << position] * len(loops.extents)
        self.parent = list(range(len(self.extent)))

    def find(self, node: int) -> int:
        parent = self.parent
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    def join(self, a: int, b: int, *, exact: bool) -> bool:
        """Put two loops in one set; False (and no change) when an op would run one dimension twice or the extents differ.

        `exact`: the loops are one by the flow of data, so an unnamed extent is whatever the other one is.
        """
        a, b = self.find(a), self.find(b)
        if a == b:
            return True
        if a > b:
            a, b = b, a
        extent, other = self.extent[a], self.extent[b]
        if self.members[a] & self.members[b] or (extent != other and not (exact and (extent is None or other is None))):
            return False
        self.parent[b] = a
        self.members[a] |= self.members[b]
        if extent is None:
            self.extent[a] = other
        return True


def shared_dims(ops: Sequence[Loops], *, match_unnamed: bool = False) -> tuple[list[tuple[int, ...]], tuple[Extent, ...]] | None:
    """Group dimensions of every op's loops and the extents of the dimensions, or None when a flow cannot be followed.

    `match_unnamed` lets leftover loops of unnamed size pair up too: right for a finished kernel, whose ops are known to belong together.
    """
    classes = _Classes(ops)
    if not _link_flows(ops, classes):
        return None
    _link_shared_operands(ops, classes)
    _link_equal_extents(classes, match_unnamed)
    return _numbered(ops, classes)


def _numbered(ops: Sequence[Loops], classes: _Classes) -> tuple[list[tuple[int, ...]], tuple[Extent, ...]]:
    """Each op's loops as numbers of sets, and the extents of the sets."""
    number: dict[int, int] = {}
    for node in range(len(classes.parent)):
        number.setdefault(classes.find(node), len(number))
    dims = [tuple(number[classes.find(start + l)] for l in range(len(loops.extents))) for start, loops in zip(classes.first, ops)]
    return dims, tuple(classes.extent[root] for root in number)


def flow_dims(ops: Sequence[Loops]) -> tuple[list[tuple[int, ...]], tuple[Extent, ...]] | None:
    """As `shared_dims`, by the flow of values alone: two loops are one dimension only if a value that one op writes and another reads
    says so."""
    classes = _Classes(ops)
    return _numbered(ops, classes) if _link_flows(ops, classes) else None


def _link_flows(ops: Sequence[Loops], classes: _Classes) -> bool:
    producers: dict[SSAValue, int] = {}
    for position, loops in enumerate(ops):
        if any(v in producers for v in loops.captured):
            return False
        start = classes.first[position]
        for value, read in loops.reads:
            producer = producers.get(value)
            if producer is None:
                continue
            if read is None:
                return False
            for written, loop in zip(ops[producer].output_loops, read):
                if loop is None or not classes.join(classes.first[producer] + written, start + loop, exact=True):
                    return False
        producers[loops.output] = position
    return True


def _link_shared_operands(ops: Sequence[Loops], classes: _Classes) -> None:
    readers: dict[SSAValue, tuple[int | None, ...]] = {}
    for start, loops in zip(classes.first, ops):
        for value, read in loops.reads:
            if read is None:
                continue
            nodes = tuple(None if l is None else start + l for l in read)
            for a, b in zip(readers.setdefault(value, nodes), nodes):
                if a is not None and b is not None:
                    classes.join(a, b, exact=True)


def _link_equal_extents(classes: _Classes, match_unnamed: bool) -> None:
    roots = [n for n in range(len(classes.parent)) if classes.find(n) == n]
    for position, root in enumerate(roots):
        if classes.extent[root] is None and not match_unnamed:
            continue
        for earlier in roots[:position]:
            if classes.find(earlier) == earlier and classes.join(earlier, root, exact=False):
                break
