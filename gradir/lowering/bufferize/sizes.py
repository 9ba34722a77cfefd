"""Sizes of tensors as index values of the buffer form.

A named size that some argument has is computed once, at the top of the function; other sizes follow from the op that makes the tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerAttr, TensorType
from xdsl.ir import Block, Operation, SSAValue

from gradir.dialects.slices import kept_dims
from gradir.dialects.types import ints, shape_of
from gradir.dialects.upstream import arith, func, memref, scf, tensor
from gradir.ir.builder import Builder
from gradir.ir.passes import error_at
from gradir.ir.structure import move_to_start
from gradir.lowering.bufferize.contents import LINALG
from gradir.lowering.bufferize.layouts import type_of
from gradir.lowering.bufferize.slices import constant_of

if TYPE_CHECKING:
    from gradir.lowering.bufferize.memory import Memory

_INDEX = IndexType()


class Sizes:
    """Answers for one function; values are made at the point where it stands, or in the prologue."""

    def __init__(self, emitter: Memory) -> None:
        self.emitter = emitter
        self._prologue = Builder(Block(), emitter.contents.function.location)
        self._named: dict[str, SSAValue | None] = {}

    def finish(self, block: Block) -> None:
        """Put the prologue at the top of `block`."""
        move_to_start(self._prologue.block, block)

    def of_type_of(self, value: SSAValue) -> list[SSAValue]:
        """The sizes that the type of `value` leaves open."""
        shape = cast("TensorType[Any]", value.type).get_shape()
        return [self.size(value, d) for d, n in enumerate(shape) if n == DYNAMIC_INDEX]

    def of_dim(self, op: tensor.DimOp) -> SSAValue:
        """The value of a `tensor.dim`."""
        dim = constant_of(op.index)
        if dim is None:
            return self.emitter.builder(memref.DimOp, [self.emitter.at(op.source), self.emitter.scalar(op.index)], [_INDEX])
        return self.size(op.source, dim)

    def dim(self, memory: SSAValue, dim: int) -> SSAValue:
        """The size of a memref."""
        return self.emitter.builder(memref.DimOp, [memory, self.emitter.index(dim)], [_INDEX])

    def size(self, value: SSAValue, dim: int) -> SSAValue:
        """The size of a tensor value."""
        emitter = self.emitter
        known = shape_of(value)[dim]
        if isinstance(known, int):
            return emitter.index(known)
        if isinstance(value.owner, tensor.CastOp | func.CallOp):  # a shared kernel has the names of its first call
            return self._by_owner(value, dim)
        if known is not None and (named := self._entry(known)) is not None:
            return named
        memory = emitter.memrefs.get(value)
        if memory is not None and type_of(memory).get_shape()[dim] == DYNAMIC_INDEX:
            return self.dim(memory, dim)
        return self._by_owner(value, dim)

    def _entry(self, name: str) -> SSAValue | None:
        """A named size of an argument."""
        if name not in self._named:
            self._named[name] = None
            for old, new in zip(self.emitter.contents.body.args, self.emitter.block.args):
                if isinstance(old.type, TensorType) and name in (shape := shape_of(old)):
                    index = self._prologue(arith.ConstantOp, (), [_INDEX], {"value": IntegerAttr(shape.index(name), _INDEX)})
                    size = self._named[name] = self._prologue(memref.DimOp, [new, index], [_INDEX])
                    size.name_hint = name if name.isidentifier() else None
                    break
        return self._named[name]

    def _by_owner(self, value: SSAValue, dim: int) -> SSAValue:
        owner = value.owner
        if isinstance(owner, Block):
            return self._carried(value, owner, dim)
        if isinstance(owner, tensor.EmptyOp):
            return self._listed(owner.dynamic_sizes, shape_of(value), dim)
        if isinstance(owner, tensor.SplatOp):
            return self._listed(owner.dynamicSizes, shape_of(value), dim)
        if isinstance(owner, func.CallOp):
            return self.size(owner.operands[len(owner.operands) - len(owner.results) + owner.results.index(value)], dim)
        if isinstance(owner, LINALG):
            return self.size(cast("Any", owner).outputs[owner.results.index(value)], dim)
        if isinstance(owner, tensor.InsertSliceOp | tensor.InsertOp):
            return self.size(owner.dest, dim)
        if isinstance(owner, tensor.ExtractSliceOp):
            return self._sliced(owner, dim)
        if isinstance(owner, tensor.CastOp):
            return self.size(owner.source, dim)
        if isinstance(owner, tensor.ExpandShapeOp):
            return self._listed(owner.dynamic_output_shape, ints(owner.static_output_shape), dim)
        if isinstance(owner, tensor.CollapseShapeOp):
            return self._product(owner, dim)
        if isinstance(owner, scf.ForOp):
            return self.size(owner.iter_args[owner.results.index(value)], dim)
        if isinstance(owner, scf.WhileOp):
            condition = cast("Operation", owner.before_region.block.last_op)
            return self.size(condition.operands[1 + owner.results.index(value)], dim)
        if isinstance(owner, scf.IfOp | scf.IndexSwitchOp):
            stated = _stated_outside(owner, owner.results.index(value), dim)
            if stated is not None:
                return self.emitter.scalar(stated)
        raise error_at(
            owner,
            f"the size of dimension {dim} of {value.type} is not known before the op runs",
            part="graph",
            code="GR062",
            expected="a size with the name of an argument's size, or one that an op states",
            found=str(value.type),
            hint="name the size in the types of the arguments (`gradir.Dim`)",
        )

    def _carried(self, value: SSAValue, block: Block, dim: int) -> SSAValue:
        loop = block.parent_op()
        index = block.args.index(value)
        if isinstance(loop, scf.ForOp):
            return self.size(loop.iter_args[index - 1], dim)
        assert isinstance(loop, scf.WhileOp)
        if block is loop.before_region.block:
            return self.size(loop.arguments[index], dim)
        condition = cast("Operation", loop.before_region.block.last_op)
        return self.size(condition.operands[1 + index], dim)

    def _listed(self, sizes: Sequence[SSAValue], shape: Sequence[object], dim: int) -> SSAValue:
        position = sum(1 for n in shape[:dim] if not isinstance(n, int) or n == DYNAMIC_INDEX)
        size = shape[dim]
        return self.emitter.index(size) if isinstance(size, int) and size != DYNAMIC_INDEX else self.emitter.scalar(sizes[position])

    def _sliced(self, op: tensor.ExtractSliceOp, dim: int) -> SSAValue:
        sizes = ints(op.static_sizes)
        kept = kept_dims(sizes, cast("TensorType[Any]", op.result.type).get_shape())
        return self._listed(op.sizes, sizes, kept[dim])

    def _product(self, op: tensor.CollapseShapeOp, dim: int) -> SSAValue:
        group = [n.value.data for n in cast("Any", op.reassociation).data[dim].data]
        total = self.size(op.src, group[0])
        for d in group[1:]:
            total = self.emitter.builder(arith.MuliOp, [total, self.size(op.src, d)], [_INDEX])
        return total


def _stated_outside(op: scf.IfOp | scf.IndexSwitchOp, index: int, dim: int) -> SSAValue | None:
    """The size of result `index` of `op`, where some branch makes the result with a size that is known in front of `op`."""
    for region in op.regions:
        if region.first_block is None:
            continue
        found = _stated(cast("Operation", region.block.last_op).operands[index], dim)
        if found is not None and not op.is_ancestor(found.owner):
            return found
    return None


def _stated(value: SSAValue, dim: int) -> SSAValue | None:
    """The operand of the op behind `value` that states its size, followed through ops that keep the size; None if none does."""
    while True:
        owner = value.owner
        if isinstance(owner, tensor.EmptyOp):
            shape = shape_of(value)
            return owner.dynamic_sizes[sum(1 for n in shape[:dim] if not isinstance(n, int))] if not isinstance(shape[dim], int) else None
        if isinstance(owner, tensor.InsertSliceOp | tensor.InsertOp):
            value = owner.dest
        elif isinstance(owner, LINALG):
            value = cast("Any", owner).outputs[owner.results.index(value)]
        elif isinstance(owner, func.CallOp):
            value = owner.operands[len(owner.operands) - len(owner.results) + owner.results.index(value)]
        elif isinstance(owner, scf.ForOp):
            value = owner.iter_args[owner.results.index(value)]
        else:
            return None
