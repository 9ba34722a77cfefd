"""What a function computes from frozen arguments alone, as a function of its own that runs once.

`freeze` splits `@f(x, w)` into `@f.prepare(w) -> (w', ..)` and `@f(x, w', ..)`. What moves are pure ops of the function's own block whose
operands are frozen or constant. Views and fills stay with their readers, which read through them. A frozen matrix that is the right side
of products of few rows crosses in panels: `w[k, p * W + j]` as `w'[p, k, j]`, each panel the columns that one register tile reads,

    x @ w == reshape(dot_general(x, w', contract [last] x [1]), [.., N])   with N = P * W

so that no call packs it again. With many rows packing is a small part of the work, and `x @ w` keeps its blocks of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import DenseArrayBase, ModuleOp, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.irdl import IRDLOperation

from gradir.dialects import nd
from gradir.dialects.donation import DONATED, donated_arguments
from gradir.dialects.target import CpuTargetAttr
from gradir.dialects.types import element_of, rank_of, shape_of
from gradir.ir.builder import Builder, new_function
from gradir.ir.structure import function_named
from gradir.lowering.purity import Purity
from gradir.lowering.schedules.contraction import SKINNY
from gradir.lowering.schedules.machine import bytes_of

MOST_ROWS = 256
"""Rows of a product up to which packing its other side is a part of the time worth saving."""
LEAST_DEPTH = 16
READ_THROUGH: tuple[type[Operation], ...] = (nd.ConstantOp, nd.IotaOp, nd.BroadcastOp, nd.ReshapeOp, nd.SliceOp)
"""Views and fills: kernels read through them."""


@dataclass(frozen=True)
class Split:
    """`prepare`: a module with the public function of the same name, from the frozen arguments to what crosses; None when nothing does.

    `kept`: the positions of the arguments that the function in the given module still takes, in order; what crosses follows them.
    """

    prepare: ModuleOp | None
    kept: tuple[int, ...]


def freeze(module: ModuleOp, name: str, frozen: Sequence[int], target: CpuTargetAttr) -> Split:
    """Split `@name`, whose arguments at the positions `frozen` never change. The module is changed in place."""
    function = function_named(module, name)
    return _Freezing(module, function, frozenset(frozen), target).split()


class _Freezing:
    def __init__(self, module: ModuleOp, function: FuncOp, frozen: frozenset[int], target: CpuTargetAttr) -> None:
        self.module, self.function, self.frozen, self.target = module, function, frozen, target
        self.block = function.body.block
        self.known: set[SSAValue] = {a for a in self.block.args if a.index in frozen}
        self.moved: dict[SSAValue, SSAValue] = {}
        self.crossing: dict[SSAValue, SSAValue] = {}
        """Value of the preparation -> the argument that brings it."""
        self.panels: dict[tuple[SSAValue, int, int], SSAValue] = {}
        prepared = Block(arg_types=[self.block.args[k].type for k in sorted(frozen)])
        for k, argument in zip(sorted(frozen), prepared.args):
            self.moved[self.block.args[k]] = argument
            argument.name_hint = self.block.args[k].name_hint
        self.prepared = prepared

    def split(self) -> Split:
        purity = Purity(self.module)
        constants: set[SSAValue] = set()
        for op in self.block.ops:
            if op.regions or not op.name.startswith("nd.") or not purity.is_pure(op):
                continue
            if all(v in self.known or v in constants for v in op.operands):
                (self.known if any(v in self.known for v in op.operands) else constants).update(op.results)
        self.constants = constants
        self._products()
        for op in list(self.block.ops):
            if not op.results or op.results[0] not in self.known:
                self._readers(op)
        for op in reversed(list(self.block.ops)):
            if op.results and op.results[0] in self.known and not any(r.first_use for r in op.results):
                op.detach()
                op.erase()
        used = [k for k, a in enumerate(self.block.args[: self._originals]) if a.first_use is not None or k not in self.frozen]
        for k in reversed(range(self._originals)):
            if k not in used:
                self.block.erase_arg(self.block.args[k])
        self.function.update_function_type()
        donated = [used.index(k) for k in donated_arguments(self.function)]
        if donated:
            self.function.attributes[DONATED] = DenseArrayBase.from_list(i64, sorted(donated))
        if not self.crossing:
            return Split(None, tuple(used))
        Builder(self.prepared).op(ReturnOp, list(self.crossing))
        types = [v.type for v in self.crossing]
        prepare = new_function(self.function.sym_name.data, self.prepared, types, loc=self.function.location)
        return Split(ModuleOp([prepare], attributes=dict(self.module.attributes)), tuple(used))

    @property
    def _originals(self) -> int:
        return len(self.block.args) - len(self.crossing)

    def _readers(self, op: Operation) -> None:
        """Replace what `op`, or an op inside of it, reads of the preparation."""
        for reader in op.walk():
            for position, operand in enumerate(reader.operands):
                if operand in self.known and not isinstance(operand, BlockArgument):
                    reader.operands[position] = self._here(operand, op)

    def _here(self, value: SSAValue, before: Operation) -> SSAValue:
        """A prepared value in the function: an argument, or its view made again."""
        owner = value.owner
        if isinstance(owner, Block):
            return value
        if value not in self.known:
            return value
        if isinstance(owner, READ_THROUGH) and _elements(value) >= max((_elements(v) for v in owner.operands), default=0):
            for position, operand in enumerate(owner.operands):
                owner.operands[position] = self._here(operand, owner)
            self.known.discard(value)
            return value
        return self._cross(self._there(value))

    def _cross(self, made: SSAValue) -> SSAValue:
        found = self.crossing.get(made)
        if found is None:
            found = self.crossing[made] = self.block.insert_arg(made.type, len(self.block.args))
        return found

    def _there(self, value: SSAValue) -> SSAValue:
        """The value in the preparation; its op is copied, with what it needs."""
        found = self.moved.get(value)
        if found is None:
            owner = cast("Operation", value.owner)
            for operand in owner.operands:
                self._there(operand)
            new = owner.clone(self.moved)
            self.prepared.add_op(new)
            self.moved.update(zip(owner.results, new.results))
            found = self.moved[value]
        return found

    def _products(self) -> None:
        """Products whose right side is frozen read it in panels, where that pays."""
        for op in list(self.function.walk()):
            if isinstance(op, nd.DotGeneralOp) and op.rhs in self.known and op.lhs not in self.known:
                width = self._panel_width(op)
                if width:
                    self._in_panels(op, width)

    def _panel_width(self, op: Any) -> int:
        """Columns of a panel; 0 where the product is to stay as it is."""
        rhs, lhs, element = shape_of(op.rhs), shape_of(op.lhs), element_of(op.rhs)
        sizes = [*rhs, *lhs]
        if rank_of(op.rhs) != 2 or op.numbers("rhs_batch") or len(op.numbers("rhs_contract")) != 1:
            return 0
        if str(element) not in ("f32", "f64") or element_of(op.result) != element or not all(isinstance(n, int) for n in sizes):
            return 0
        (k,) = op.numbers("rhs_contract")
        depth, columns = cast("int", rhs[k]), cast("int", rhs[1 - k])
        rows = prod(cast("tuple[int, ...]", lhs)) // max(1, depth)
        width = 2 * max(1, self.target.vector * 4 // bytes_of(op.rhs))
        inside = op.parent is not self.block
        few = rows > SKINNY and (rows <= MOST_ROWS or inside)
        return width if few and depth >= LEAST_DEPTH and columns % width == 0 and columns >= 2 * width else 0

    def _in_panels(self, op: Any, width: int) -> None:
        (k,) = op.numbers("rhs_contract")
        key = (op.rhs, k, width)
        panels = self.panels.get(key)
        if panels is None:
            source = self._there(op.rhs)
            depth, columns = (cast("int", shape_of(op.rhs)[d]) for d in (k, 1 - k))
            shape = [depth, columns // width, width] if k == 0 else [columns // width, width, depth]
            parts = nd.ReshapeOp.make(source, shape)
            turned = nd.TransposeOp.make(parts.results[0], [1, 0, 2] if k == 0 else [0, 2, 1])
            self.prepared.add_ops([parts, turned])
            panels = self.panels[key] = self._cross(turned.results[0])
        made = nd.DotGeneralOp.make(op.lhs, panels, op.numbers("lhs_contract"), [1], (), (), element_of(op.result))
        shaped = nd.ReshapeOp.make(made.results[0], shape_of(op.result))
        for new in (made, shaped):
            new.location = op.location
            cast("Block", op.parent).insert_op_before(new, op)
        op.results[0].replace_all_uses_with(shaped.results[0])
        op.detach()
        cast("IRDLOperation", op).erase()


def _elements(value: SSAValue) -> int:
    """Elements of a tensor, a size of run time counted as 1."""
    return prod(n for n in shape_of(value) if isinstance(n, int))
