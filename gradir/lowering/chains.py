"""Chains: groups that run over the same rows become one kernel, so that what lies between them is never a whole tensor.

Part of `fuse`, after its groups are known. A chain grows from a group of row reductions (a softmax) over a space of scores: groups that
produce tensors of that space for members, and groups that read such tensors, join as long as the rows stay rows, nothing leaves the chain
and comes back, and the cost model (`schedules.chain`) finds that it pays. What is read outside of the chain afterwards (by the backward
pass) is computed a second time in a chain of the readers, if that makes one: `q k^T` and its softmax cost less than keeping the scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue

from gradir.dialects.types import Shape, i64_attr, shape_of
from gradir.lowering.dependences import Dependences, dependences
from gradir.lowering.groups import STAGE, Group, GroupOp, build, chain_group, is_generic, loops_of
from gradir.lowering.groups.kinds import is_contraction
from gradir.lowering.schedules.chain import crossing, pays
from gradir.lowering.schedules.machine import Machine, bytes_of

MOST_STAGES = 10
PATH_BUDGET = 1024
"""Nodes that a search for a path may visit; then the path is taken to exist."""


SMALL = 8
"""What lives longer for a second computation (a mask) is at most this part of what need not be kept."""


def find_chains(block: Block, groups: Sequence[Group], machine: Machine) -> list[Group]:
    """`groups` of one block, with chains in place of their members; ops of chains carry the numbers of their stages."""
    if not any(_is_seed(g) for g in groups):
        return list(groups)
    search = _Search(dependences(block), list(groups), machine)
    copies = [copy for chain in search.all_chains() if (copy := _copy_for_readers(chain, search.graph)) is not None]
    if copies:
        search = _Search(dependences(block), [*search.groups, *(g for copy in copies for g in copy.groups)], machine)
        for copy in copies:
            search.rebuild(copy.readers)
            found = search.grow(next(g for g in copy.groups if _is_seed(g)))
            if found is None or any(_escapes(found)):
                search.drop(copy)
            else:
                search.settle(found)
    search.all_chains(storing=True)
    for group in search.groups:
        if group.chain is not None:
            for number, stage in enumerate(group.chain.stages):
                for position in stage:
                    group.ops[position].op.attributes[STAGE] = i64_attr(number)
    return sorted(search.groups, key=lambda g: search.graph.place[g.ops[0].op])


def _is_seed(group: Group) -> bool:
    """Something that looks along rows, of which there are several."""
    return group.rows is not None and bool(group.rows.outer) and any(s.form == "reduce_inner" for s in group.rows.sections)


def _elements(value: SSAValue) -> int | None:
    return _product(shape_of(value))


@lru_cache(maxsize=1 << 12)
def _product(shape: Shape) -> int | None:
    sizes = [n for n in shape if isinstance(n, int)]
    return prod(sizes) if len(sizes) == len(shape) else None


def _escapes(chain: Group) -> Iterator[SSAValue]:
    """Strips that somebody outside of the chain reads, too."""
    inside = {o.op for o in chain.ops}
    for o in crossing(chain):
        if any(use.operation not in inside for use in o.output.uses):
            yield o.output


@dataclass
class _Search:
    graph: Dependences
    groups: list[Group]
    machine: Machine
    owner: dict[Operation, Group] = field(default_factory=dict[Operation, Group])

    def __post_init__(self) -> None:
        self.owner.update((o.op, group) for group in self.groups for o in group.ops)

    def all_chains(self, *, storing: bool = False) -> list[Group]:
        """Grow a chain from every seed that no earlier one took. What reads a strip of a chain waits: maybe it is computed again for it;
        `storing`: it is not."""
        found: list[Group] = []
        stored: set[SSAValue] = set()
        for seed in [g for g in self.groups if _is_seed(g)]:
            if self.owner[seed.ops[0].op] is not seed or (not storing and any(v in stored for o in seed.ops for v, _ in o.inputs)):
                continue
            if (chain := self.grow(seed)) is not None:
                self.settle(chain)
                found.append(chain)
                stored.update(_escapes(chain))
        return found

    def rebuild(self, ops: Sequence[Operation]) -> None:
        """The groups of `ops` anew: their operands have changed."""
        for group in {id(g): g for op in ops if (g := self.owner.get(op)) is not None and g.chain is None}.values():
            new = build([loops_of(o.op) for o in group.ops])
            assert new is not None, "the same ops on equal types"
            self.groups = [new if g is group else g for g in self.groups]
            self.owner.update((o.op, new) for o in new.ops)

    def settle(self, chain: Group) -> None:
        """Let `chain` stand in place of its members."""
        inside = {o.op for o in chain.ops}
        self.groups = [g for g in self.groups if g.ops[0].op not in inside]
        self.groups.append(chain)
        self.owner.update((op, chain) for op in inside)

    def drop(self, copy: _Copy) -> None:
        """Undo a copy: its readers read the original again."""
        gone = set(copy.originals.values())
        self.groups = [g for g in self.groups if g.ops[0].op not in gone]
        for original, new in copy.originals.items():
            new.results[0].replace_all_uses_with(original.results[0])
        for new in reversed(list(copy.originals.values())):
            self.owner.pop(new, None)
            new.detach()
            new.erase()
        self.rebuild(copy.readers)

    def grow(self, seed: Group) -> Group | None:
        """The chain around `seed`; None when there is none that pays."""
        size = _elements(max((o.output for o in seed.ops), key=lambda v: _elements(v) or 0))
        if size is None:
            return None
        size = max(size, *(_elements(v) or 0 for o in seed.ops for v, _ in o.inputs), 0)
        if MOST_STAGES * size * bytes_of(seed.ops[0].output) <= self.machine.l2:
            return None
        members, chain = [seed], None
        refused: set[int] = set()
        while len(members) < MOST_STAGES:
            candidates = [g for g in self._neighbours(members, size) if id(g) not in refused]
            if not candidates:
                break
            for candidate in candidates:
                joined = self._joined([*members, candidate])
                if joined is None:
                    refused.add(id(candidate))
                    continue
                if not _all_small(candidate.ops, size):
                    return None  # it would stay, and the chain not narrow
                members, chain = [*members, candidate], joined
                break
        if chain is None or not self._narrows(chain, size) or not pays(chain, self.machine):
            return None
        return chain

    def _neighbours(self, members: Sequence[Group], size: int) -> list[Group]:
        """Groups that produce or read a tensor of `size` elements of the members, in the order of the text."""
        inside = {id(g) for g in members}
        found: dict[int, Group] = {}
        for group in members:
            for o in group.ops:
                near = [v.owner for v, _ in o.inputs if _elements(v) == size]
                if _elements(o.output) == size:
                    near += [use.operation for use in o.output.uses]
                for op in near:
                    other = self.owner.get(op) if isinstance(op, Operation) else None
                    if other is not None and id(other) not in inside and other.kind in ("contraction", "rows", "elementwise"):
                        found[id(other)] = other
        return sorted(found.values(), key=lambda g: self.graph.place[g.ops[0].op])

    def _joined(self, members: Sequence[Group]) -> Group | None:
        """One chain of `members`, if it is legal."""
        if sum(len(g.ops) for g in members) > 4 * MOST_STAGES:
            return None
        joined = chain_group([[o.loops for o in g.ops] for g in self._ordered(members)])
        return None if joined is None or self._comes_back(members) else joined  # following paths costs more than most refusals

    def _ordered(self, members: Sequence[Group]) -> list[Group]:
        """Members such that each comes after what it reads; no two of them depend on each other both ways (fuse's invariant)."""
        waiting = sorted(members, key=lambda g: self.graph.place[g.ops[-1].op])
        done: list[Group] = []
        while waiting:
            outputs = {o.output for g in waiting for o in g.ops}
            ready = next(
                (g for g in waiting if not any(v in outputs and v not in g.produced for o in g.ops for v, _ in o.inputs)), waiting[0]
            )
            waiting.remove(ready)
            done.append(ready)
        return done

    def _comes_back(self, members: Sequence[Group]) -> bool:
        """Does a path leave `members` and return?"""
        inside = {id(g) for g in members}
        end = max(self.graph.place[o.op] for g in members for o in g.ops)
        seen: set[int] = set()
        todo: list[Group | Operation] = list(members)
        while todo:
            node = todo.pop()
            for op in [o.op for o in node.ops] if isinstance(node, Group) else [node]:
                for later in self.graph.after(op):
                    other = self.owner.get(later, later)
                    if id(other) in inside:
                        if id(node) not in inside:
                            return True
                    elif id(other) not in seen and self._first(other) <= end:
                        if len(seen) > PATH_BUDGET:
                            return True
                        seen.add(id(other))
                        todo.append(other)
        return False

    def _first(self, node: Group | Operation) -> int:
        return min(self.graph.place[o.op] for o in node.ops) if isinstance(node, Group) else self.graph.place[node]

    def _narrows(self, chain: Group, size: int) -> bool:
        """Are what goes in at the contractions and what comes out smaller than the tensors between them, which a reduction looks along?"""
        sizes = {_elements(o.output) == size for o in chain.ops if is_contraction(o)}
        return sizes == {True, False} and _all_small(chain.ops, size)


def _all_small(ops: Sequence[GroupOp], size: int) -> bool:
    """Whether contractions among `ops` read less than `size` elements where they make so many, and make less where they do not."""
    products = [o for o in ops if is_contraction(o)]
    outside = [v for o in products for v in ([v for v, _ in o.inputs] if _elements(o.output) == size else [o.output])]
    return all((_elements(v) or size) < size for v in outside)


@dataclass
class _Copy:
    """Copies of what a chain computes for readers outside: by the original ops, and as groups."""

    originals: dict[Operation, Operation]
    groups: list[Group]
    readers: list[Operation]


def _copy_for_readers(chain: Group, graph: Dependences) -> _Copy | None:
    """Copies of the ops behind the strips that others read, which then read the copies; None where that costs more than it saves."""
    escaping = list(_escapes(chain))
    inside = {o.op for o in chain.ops}
    readers = [use for value in escaping for use in value.uses if use.operation not in inside]
    if not readers or not all(is_generic(u.operation) and u.operation in graph.place for u in readers):
        return None
    needed = _behind(chain, escaping)
    if sum(is_contraction(o) for o in chain.ops if o.op in needed) != 1:
        return None
    first = min((u.operation for u in readers), key=lambda op: graph.place[op])
    inputs = {v for o in chain.ops if o.op in needed for v, _ in o.inputs if v not in chain.produced}
    kept = sum(_elements(v) or 0 for v in inputs if not _lives_until(v, first, needed, graph))
    if kept * SMALL > sum(_elements(v) or 0 for v in escaping):
        return None
    originals: dict[Operation, Operation] = {}
    mapping: dict[SSAValue, SSAValue] = {}
    block = first.parent
    assert block is not None
    for o in chain.ops:
        if o.op in needed:
            new = originals[o.op] = o.op.clone(mapping)
            new.location = o.op.location
            block.insert_op_before(new, first)
            mapping[o.op.results[0]] = new.results[0]
    groups = _groups_of_copies(chain, originals)
    if groups is None:
        for new in reversed(list(originals.values())):
            new.detach()
            new.erase()
        return None
    for use in readers:
        use.operation.operands[use.index] = mapping[use.operation.operands[use.index]]
    return _Copy(originals, groups, [use.operation for use in readers])


def _groups_of_copies(chain: Group, originals: Mapping[Operation, Operation]) -> list[Group] | None:
    assert chain.chain is not None
    groups: list[Group] = []
    for stage in chain.chain.stages:
        ops = [originals[op] for position in stage if (op := chain.ops[position].op) in originals]
        group = build([loops_of(op) for op in ops]) if ops else None
        if ops and group is None:
            return None
        groups += [group] if group is not None else []
    return groups if any(_is_seed(g) for g in groups) else None


def _behind(chain: Group, values: Sequence[SSAValue]) -> set[Operation]:
    """The ops of the chain that `values` are computed from."""
    todo = [chain.produced[v] for v in values]
    found: set[Operation] = set()
    while todo:
        o = todo.pop()
        if o.op not in found:
            found.add(o.op)
            todo += [chain.produced[v] for v, _ in o.inputs if v in chain.produced]
    return found


def _lives_until(value: SSAValue, first: Operation, needed: set[Operation], graph: Dependences) -> bool:
    """Is `value` there at `first` anyway: an argument, or read by others from there on?"""
    if not isinstance(value.type, TensorType) or not isinstance(value.owner, Operation):
        return True
    place = graph.place[first]
    users = [use.operation for use in value.uses if use.operation not in needed]
    return any(graph.place.get(op, -1) >= place for op in users)
