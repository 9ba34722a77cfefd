"""`outline-kernels`: each group of loop nests becomes a private function in destination-passing style; equal ones become one.

What a kernel looks like is `kernel_plan`. The ops move, nothing is cloned; a group whose kernel exists already just disappears.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import ClassVar, TypeAlias, cast

from xdsl.dialects.builtin import IntegerAttr, SymbolRefAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from gradir.dialects.kernel import KERNEL_ATTRIBUTE
from gradir.dialects.upstream import arith, func, linalg, tensor
from gradir.errors import GradirError
from gradir.ir.builder import Builder
from gradir.ir.passes import Pass, PassContext, error_at
from gradir.lowering.dependences import Dependences, dependences
from gradir.lowering.fuse import GROUP_ATTRIBUTE
from gradir.lowering.groups import STAGE, Group, build, is_generic, loops_of, marked_chain
from gradir.lowering.kernel_key import Interner, Key
from gradir.lowering.kernel_plan import KernelPlan, build_kernel, empty_of, kernel_key, plan_kernel

HELPERS = (tensor.EmptyOp, linalg.FillOp, arith.ConstantOp)


@dataclass(frozen=True)
class OutlineKernels(Pass):
    """Before: level 2, loop nests marked by `fuse` (unmarked ones are groups of one). After: every loop nest is in a private function
    with `gradir.kernel`, no two of these are equal, and the rest of the module calls them.

    Example: `%y = linalg.generic .. ins(%x) outs(%e)` becomes `%y = func.call @elementwise_0(%x, %e)`.
    """

    NAME: ClassVar[str] = "outline-kernels"

    def apply(self, op: Operation, context: PassContext) -> None:
        top = op.regions[0].block
        functions = [f for f in top.ops if isinstance(f, func.FuncOp)]
        outliner = _Outliner({f.sym_name.data for f in functions})
        for function in functions:
            if KERNEL_ATTRIBUTE not in function.attributes:
                for block in function.body.blocks:
                    outliner.block(block)
        for kernel in outliner.kernels:
            top.insert_op_before(kernel, functions[0])


_Node: TypeAlias = "int | Operation"


class _Outliner:
    """The kernels of a module by their keys."""

    def __init__(self, taken: set[str]) -> None:
        self.kernels: list[func.FuncOp] = []
        self._by_key: dict[Key, func.FuncOp] = {}
        self._intern = Interner()
        self._taken = taken
        self._counts: dict[str, int] = {}

    def block(self, block: Block) -> None:
        """Outline the groups of a block and of the blocks inside its ops."""
        for op in block.ops:
            if not isinstance(op, linalg.GenericOp):
                for region in op.regions:
                    for inner in region.blocks:
                        self.block(inner)
        groups = _groups(block)
        if not groups:
            return
        order = _order(block, groups)
        for op in list(block.ops):
            op.detach()
        builder = Builder(block)
        for node in order:
            if isinstance(node, Operation):
                block.add_op(node)
            elif (plan := plan_kernel(groups[node])).outputs:
                self._call(builder, plan)
            else:  # nobody uses it: what an insert of no elements took from, for example
                for op in reversed(plan.ops):
                    op.erase()
        _remove_unused(block)

    def _call(self, builder: Builder, plan: KernelPlan) -> None:
        """Append a call of the group's kernel; the users of its results now use the call's."""
        builder.loc = plan.ops[-1].location
        members: set[Operation] = set(plan.ops)
        outside = [[(u.operation, u.index) for u in value.uses if u.operation not in members] for value in plan.outputs]
        results: list[tuple[Attribute, str | None]] = [(value.type, value.name_hint) for value in plan.outputs]
        operands: list[SSAValue] = [*plan.tensors, *plan.scalars]
        operands += [builder(arith.ConstantOp, (), (number.type,), {"value": number}) for number in plan.lifted_numbers()]
        for value in plan.outputs:
            empty = empty_of(cast("linalg.GenericOp", value.owner))
            operands.append(builder(tensor.EmptyOp, empty.operands if empty is not None else (), (value.type,)))
        kernel = self._kernel(plan)
        call = builder.op(
            func.CallOp,
            [_cast(builder, v, a.type) for v, a in zip(operands, kernel.body.block.args)],
            kernel.function_type.outputs.data,
            {"callee": SymbolRefAttr(kernel.sym_name.data)},
        )
        for (type_, hint), result, uses in zip(results, call.results, outside):
            result.name_hint = hint
            replacement = _cast(builder, result, type_)
            for operation, index in uses:
                operation.operands[index] = replacement
        for op in reversed(plan.ops):
            if op.parent is None:  # not moved into a new kernel: an equal one exists
                op.erase()

    def _kernel(self, plan: KernelPlan) -> func.FuncOp:
        key = kernel_key(plan, self._intern)
        kernel = self._by_key.get(key)
        if kernel is None:
            for op in plan.ops:
                op.attributes.pop(GROUP_ATTRIBUTE, None)
            kernel = self._by_key[key] = build_kernel(plan, self._fresh(plan.group.kind))
            self.kernels.append(kernel)
        return kernel

    def _fresh(self, kind: str) -> str:
        while True:
            count = self._counts[kind] = self._counts.get(kind, -1) + 1
            name = f"{kind}_{count}"
            if name not in self._taken:
                return name


def _cast(builder: Builder, value: SSAValue, type_: Attribute) -> SSAValue:
    """A tensor under the names of sizes that a shared kernel has."""
    return value if value.type == type_ else builder(tensor.CastOp, (value,), (type_,))


def _groups(block: Block) -> list[Group]:
    """The groups that `fuse` marked, in the order of their first ops."""
    members: dict[int, list[Operation]] = {}
    for position, op in enumerate(block.ops):
        if is_generic(op):
            mark = op.attributes.get(GROUP_ATTRIBUTE)
            members.setdefault(mark.value.data if isinstance(mark, IntegerAttr) else -1 - position, []).append(op)
    groups: list[Group] = []
    for number, ops in members.items():
        loops = [loops_of(op) for op in ops]
        group = marked_chain(loops) if any(STAGE in op.attributes for op in ops) else build(loops)
        if group is None:
            raise _bad_group(ops, number, "no kind of kernel computes these loop nests together")
        groups.append(group)
    return groups


def _bad_group(ops: Sequence[Operation], number: int, message: str) -> GradirError:
    return error_at(
        ops[0],
        message,
        part="graph",
        code="GR021",
        expected="groups as fuse marks them",
        found=f"{len(ops)} loop nests with {GROUP_ATTRIBUTE} = {number}",
        hint=f"remove {GROUP_ATTRIBUTE} from them and run fuse",
    )


def _order(block: Block, groups: Sequence[Group]) -> list[_Node]:
    """Ops and groups (by position) such that everything comes after what it uses; a group stands where its last op stood."""
    graph = dependences(block)
    node_of: dict[Operation, _Node] = {op: op for op in graph.ops}
    for position, group in enumerate(groups):
        node_of.update((member.op, position) for member in group.ops)
    priority: dict[_Node, int] = {}
    for op in graph.ops:
        priority[node_of[op]] = graph.place[op]  # the last member's place wins
    order = _sorted(graph, node_of, priority, anti=True)
    if len(order) < len(priority):
        order = _sorted(graph, node_of, priority, anti=False)
    if len(order) < len(priority):
        done = set(order)
        number = next(position for position in range(len(groups)) if position not in done)
        raise _bad_group([m.op for m in groups[number].ops], number, "a path leaves this group of loop nests and comes back")
    return order


def _sorted(graph: Dependences, node_of: dict[Operation, _Node], priority: dict[_Node, int], *, anti: bool) -> list[_Node]:
    """As much of a topological order as there is, by priority."""
    after: dict[_Node, list[_Node]] = {node: [] for node in priority}
    waiting = dict.fromkeys(priority, 0)
    for op in graph.ops:
        node = node_of[op]
        for later in graph.after(op) if anti else graph.users.get(op, ()):
            other = node_of[later]
            if other is not node and other != node:
                after[node].append(other)
                waiting[other] += 1
    by_priority = {place: node for node, place in priority.items()}
    ready = [priority[node] for node, count in waiting.items() if not count]
    heapify(ready)
    order: list[_Node] = []
    while ready:
        node = by_priority[heappop(ready)]
        order.append(node)
        for other in after[node]:
            waiting[other] -= 1
            if not waiting[other]:
                heappush(ready, priority[other])
    return order


def _remove_unused(block: Block) -> None:
    """Destinations, fills and constants that moved into kernels."""
    for op in reversed(list(block.ops)):
        if isinstance(op, HELPERS) and op.results[0].first_use is None:
            op.detach()
            op.erase()
