"""`fuse`: which loop nests become one kernel. Marks them with equal `gradir.group` numbers; nothing moves yet.

Greedy, in the order of the text: each nest tries to join the groups that produce its inputs. Joining is legal iff the joined ops form
a group with a kind (`groups`), which is bounded in size, and no path of dependences leaves the joined group and comes back. Paths
are followed through slices, regions and overwritten tensors; the search has a fixed budget, so the pass is linear in program size.

Predicates (i1) are never worth storing: each consumer gets its own copy, and copies that find no home become one again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from xdsl.dialects.builtin import ModuleOp, i1
from xdsl.ir import Block, Operation

from gradir.dialects.kernel import KERNEL_ATTRIBUTE
from gradir.dialects.target import TARGET_ATTRIBUTE, CudaTargetAttr
from gradir.dialects.types import element_of, i64_attr
from gradir.dialects.upstream import func, linalg, scf
from gradir.ir.passes import Pass, PassContext
from gradir.lowering.attention_chains import find_attention
from gradir.lowering.chains import find_chains
from gradir.lowering.dependences import Dependences, dependences
from gradir.lowering.fold_widenings import fold_widenings
from gradir.lowering.groups import Group, is_generic, merge, single
from gradir.lowering.inline_predicates import inline_predicates
from gradir.lowering.schedules.gpu_rows import fits_a_launch
from gradir.lowering.schedules.machine import machine_of

GROUP_ATTRIBUTE = "gradir.group"
MAX_COPIES = 8
"""Consumers for which a predicate is recomputed; with more, it is stored."""
PATH_BUDGET = 256
"""Nodes that a search for a path may visit; then the path is taken to exist."""


@dataclass(frozen=True)
class Fuse(Pass):
    """Before: level 2 without kernels. After: every `linalg.generic` has a `gradir.group` number; equal numbers become one kernel.

    Example: `relu(x w + b)` is three nests (contraction, addition, maximum) with one number.
    """

    NAME: ClassVar[str] = "fuse"

    join: bool = True
    """Whether nests may share a kernel. Without, each is a kernel of its own: slower code that is easier to follow."""

    def apply(self, op: Operation, context: PassContext) -> None:
        count = 0
        target = op.attributes.get(TARGET_ATTRIBUTE)
        chains = self.join and not isinstance(target, CudaTargetAttr)
        machine = machine_of(op) if isinstance(op, ModuleOp) and chains else None
        for function in op.regions[0].block.ops:
            if isinstance(function, func.FuncOp) and KERNEL_ATTRIBUTE not in function.attributes:
                for block in _blocks(function):
                    on_gpu = target if self.join and isinstance(target, CudaTargetAttr) else None
                    if on_gpu is not None:
                        fold_widenings(block, on_gpu)
                    groups = fuse_block(block, on_gpu) if self.join else unfused(block)
                    if machine is not None:
                        groups = find_chains(block, groups, machine)
                    elif on_gpu is not None:
                        groups = find_attention(block, groups, on_gpu)
                    count = _mark(groups, count)


def _blocks(op: Operation) -> Iterator[Block]:
    """All blocks that hold whole tensors: not the bodies of loop nests."""
    if isinstance(op, linalg.GenericOp):
        return
    for region in op.regions:
        for block in region.blocks:
            yield block
            for inner in block.ops:
                yield from _blocks(inner)


def _mark(groups: Sequence[Group], first: int) -> int:
    for number, group in enumerate(groups, first):
        for member in group.ops:
            member.op.attributes[GROUP_ATTRIBUTE] = i64_attr(number)
    return first + len(groups)


def unfused(block: Block) -> list[Group]:
    """A group for every nest of one block."""
    return [single(op) for op in block.ops if is_generic(op)]


def fuse_block(block: Block, on_gpu: CudaTargetAttr | None = None) -> list[Group]:
    """The groups of one block, by the place of their first op. Predicates with several consumers are copied."""
    inline_predicates(block)
    copies = _copy_predicates(block)
    fusion = _Fusion(dependences(block), on_gpu)
    nests = [op for op in fusion.graph.ops if is_generic(op)]
    for op in nests:
        fusion.add(op)
    for group in {id(g): g for g in fusion.owner.values() if g.kind == "rows"}.values():
        if fusion.owner[group.ops[0].op] is group:  # not joined by an earlier one meanwhile
            fusion.revisit(group)
    _unite_homeless(fusion, copies)
    found = {id(group): group for group in fusion.owner.values()}
    return sorted(found.values(), key=lambda group: fusion.graph.place[group.ops[0].op])


_Node: TypeAlias = "Group | Operation"


@dataclass
class _Fusion:
    graph: Dependences
    on_gpu: CudaTargetAttr | None = None
    owner: dict[Operation, Group] = field(default_factory=dict[Operation, Group])
    _later: dict[_Node, list[Operation]] = field(default_factory=dict["_Node", "list[Operation]"])

    def add(self, op: Operation) -> None:
        """Give `op` a group of its own, then join it with its producers: predicates first, since others depend on where they went.

        A predicate waits for the nests that read it; one that no nest reads is stored, and joins like everything else.
        """
        self.owner[op] = single(op)
        if _is_predicate(op) and any(is_generic(use.operation) for use in op.results[0].uses):
            return
        taken = [op]
        todo = [p for p in self._producers(op) if _is_predicate(p)]
        for predicate in todo:
            if self._join(predicate, op):
                taken.append(predicate)
                todo += [p for p in self._producers(predicate) if _is_predicate(p)]
        self._join_producers(taken)

    def revisit(self, group: Group) -> None:
        """Try the producers of a finished group once more: values per row join rows only when a reduction has made them rows."""
        self._join_producers([member.op for member in group.ops])

    def _join_producers(self, ops: Sequence[Operation]) -> None:
        tried: set[int] = set()
        for op in ops:
            for producer in self._producers(op):
                owner = self.owner[producer]
                if id(owner) not in tried and not _is_predicate(producer):
                    tried.add(id(owner))
                    self._join(producer, op)

    def _producers(self, op: Operation) -> Iterator[Operation]:
        for operand in op.operands[:-1]:
            producer = operand.owner
            if isinstance(producer, Operation) and producer in self.owner:
                yield producer

    def _join(self, producer: Operation, consumer: Operation) -> bool:
        a, b = self.owner[producer], self.owner[consumer]
        if a is b:
            return True
        if holds_loop(producer) or holds_loop(consumer):  # its registers are taken, and nothing it computes is worth computing again
            return False
        if self._has_path(a, b) or self._has_path(b, a):
            return False
        joined = merge(a, b, self.graph.place)
        if joined is None or (self.on_gpu is not None and not fits_a_launch(joined)):
            return False
        for member in joined.ops:
            self.owner[member.op] = joined
        return True

    def _after(self, node: _Node) -> list[Operation]:
        """Everything that comes after an op, or after the members of a group, its own members included."""
        found = self._later.get(node)
        if found is None:
            members = [m.op for m in node.ops] if isinstance(node, Group) else [node]
            found = self._later[node] = list(dict.fromkeys(op for member in members for op in self.graph.after(member)))
        return found

    def _has_path(self, a: Group, b: Group) -> bool:
        """Whether a third node lies on a path from a to b. Nodes behind the end of b cannot."""
        end = self.graph.place[b.ops[-1].op]
        if self._first(a) > end:
            return False
        owner = self.owner
        seen: set[_Node] = {a}
        todo: list[_Node] = [a]
        while todo:
            node = todo.pop()
            for op in self._after(node):
                found = owner.get(op, op)
                if found is b:
                    if node is not a:
                        return True
                elif found not in seen and self._first(found) <= end:
                    if len(seen) > PATH_BUDGET:
                        return True
                    seen.add(found)
                    todo.append(found)
        return False

    def _first(self, node: _Node) -> int:
        return self.graph.place[node.ops[0].op if isinstance(node, Group) else node]


def holds_loop(op: Operation) -> bool:
    """A nest with a loop in its body, which `sink-loops` made."""
    return isinstance(op, linalg.GenericOp) and any(inner.regions and isinstance(inner, _LOOPS) for inner in op.body.block.ops)


_LOOPS = (scf.ForOp, scf.WhileOp)


def _is_predicate(op: Operation) -> bool:
    """An elementwise nest that yields i1, and costs little."""
    return (
        is_generic(op)
        and element_of(op.results[0]) == i1
        and not holds_loop(op)
        and all(t.data is linalg.IteratorType.PARALLEL for t in _iterators(op))
    )


def _iterators(op: Operation) -> Sequence[linalg.IteratorTypeAttr]:
    assert isinstance(op, linalg.GenericOp)
    return op.iterator_types.data


def _copy_predicates(block: Block) -> list[list[Operation]]:
    """One copy of each predicate for every op that reads it; returns the families of copies, each in the order of the text.

    From the last op to the first, so that the copies of a consumer count as consumers of its own inputs.
    """
    families: list[list[Operation]] = []
    for op in reversed(list(block.ops)):
        if not (is_generic(op) and _is_predicate(op)):
            continue
        users = [use for use in op.results[0].uses if is_generic(use.operation) and use.operation.parent is block]
        consumers = list(dict.fromkeys(use.operation for use in users))
        if len(consumers) < 2 or len(consumers) > MAX_COPIES:
            continue
        family = [op]
        for consumer in consumers[1:]:
            copy = op.clone()
            block.insert_op_after(copy, family[-1])
            copy.location = op.location
            family.append(copy)
            for index, operand in enumerate(consumer.operands):
                if operand is op.results[0]:
                    consumer.operands[index] = copy.results[0]
        families.append(family)
    return families


def _unite_homeless(fusion: _Fusion, families: Sequence[Sequence[Operation]]) -> None:
    """Copies of one predicate that joined nobody become one op."""
    for family in families:
        homeless = [op for op in family if len(fusion.owner[op].ops) == 1]
        for op in homeless[1:]:
            op.results[0].replace_all_uses_with(homeless[0].results[0])
            del fusion.owner[op]
            op.detach()
            op.erase()
