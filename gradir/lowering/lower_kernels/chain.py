"""Kind `chain`: loops over batches and blocks of rows; in them the stages one after the other, each lowered by the generator of its kind.

    for batch: [copy what all rows share]  [start the sums]  for block of rows: stage 0; stage 1; ...

A stage is a small function on windows of the operands (`chain_stage`), so every strategy of contractions and rows holds inside of chains.
What a stage writes and a later one reads is a strip: a block of rows of it, in scratch memory that stays in the cache. A column operand of
a contraction that all rows share and that does not lie well (keys: the product runs along their rows) is copied once per batch, columns
side by side, rows apart by an odd number of cache lines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap

from gradir.dialects.upstream import arith, func
from gradir.lowering.groups import Group, GroupOp
from gradir.lowering.groups.kinds import is_contraction
from gradir.lowering.lower_kernels.binding import Kernel, Space
from gradir.lowering.lower_kernels.builder import INDEX, LoopBuilder, strides_of
from gradir.lowering.lower_kernels.chain_stage import Place, StageBuilder, inline
from gradir.lowering.lower_kernels.strips import each, strips
from gradir.lowering.lower_kernels.tiles import NotCovered, Operand, Tile, read, subview, write
from gradir.lowering.schedules.chain import crossing, rows_of_block
from gradir.lowering.schedules.contraction import CONFLICT_BYTES, PAGE_BYTES, even_split
from gradir.lowering.schedules.machine import LINE_BYTES, Machine, element_bytes

Lower = Callable[[func.FuncOp, Machine], func.FuncOp]
"""From the level-3 form of a kernel to its level-4 form."""


@dataclass(frozen=True)
class Shared:
    """A copied operand of a contraction: by op and number of the operand, the copy and its map from the op's loops."""

    memory: SSAValue
    map: AffineMap


def lower_chain(kernel: Kernel, group: Group, machine: Machine, lower: Lower) -> None:
    """Build the whole kernel into `kernel.b`; `lower` lowers a stage."""
    _Chain(kernel, group, machine, lower).run()


class _Chain:
    def __init__(self, kernel: Kernel, group: Group, machine: Machine, lower: Lower) -> None:
        if group.chain is None:
            raise NotCovered("a kernel that says chain and holds none")
        self.kernel, self.group, self.roles = kernel, group, group.chain
        self.machine = replace(machine, threads=1)
        self.lower = lower
        block = kernel.schedule.field("block")
        self.rows = block[0] if block and block[0] > 0 else rows_of_block(group, machine)
        self.parallel = set(kernel.schedule.field("parallel"))
        self.strips = [o for o in crossing(group) if o.output in kernel.temporaries]

    def extent(self, dim: int) -> int:
        found = self.group.extents[dim]
        assert isinstance(found, int), "chains are of known sizes"
        return found

    def run(self) -> None:
        b, batch = self.kernel.b, [d for d in self.roles.batch if self.extent(d) > 1]
        origin: Place = dict.fromkeys((*self.roles.batch, *self.roles.summed, self.roles.row), 0)
        if not batch or not self.parallel & set(batch):
            self._nest(b, batch, origin, self._batch)
            return
        sizes = [self.extent(d) for d in batch]

        def one(c: LoopBuilder, number: SSAValue) -> None:
            at = dict(origin)
            for k, (d, n) in enumerate(zip(batch, sizes)):
                inner = prod(sizes[k + 1 :])
                place = c(arith.DivUIOp, [number, c.value(inner)], [INDEX]) if inner > 1 else number
                at[d] = c(arith.RemUIOp, [place, c.value(n)], [INDEX]) if k else place
            self._batch(c, at)

        b.parallel(0, prod(sizes), 1, one)

    def _nest(self, b: LoopBuilder, dims: Sequence[int], at: Place, inside: Callable[[LoopBuilder, Place], None]) -> None:
        if not dims:
            inside(b, at)
            return
        d, rest = dims[0], dims[1:]
        each(b, 0, self.extent(d), 1, lambda c, i: self._nest(c, rest, {**at, d: i}, inside))

    def _batch(self, b: LoopBuilder, at: Place) -> None:
        """Everything of one batch."""
        shared = self._copy_shared(b, at)
        for position in sorted(self.roles.sums):
            stage = StageBuilder(self.kernel, b, self.group, at, 0, {}, {})
            stage.start(self.group.ops[position])
            inline(b, self.lower(stage.function("loops", self.machine, packed=False), self.machine), stage.actuals)
        self._nest(b, [d for d in self.roles.summed if self.extent(d) > 1], at, lambda c, p: self._all_rows(c, p, shared))
        for copy in {id(s.memory): s.memory for s in shared.values()}.values():
            b.release(copy)

    def _all_rows(self, b: LoopBuilder, at: Place, shared: Mapping[tuple[int, int], Shared]) -> None:
        row = self.roles.row
        spread = row in self.parallel
        memory = {} if spread else self._make_strips(b)
        for start, count, size in even_split(self.extent(row), self.rows, self.rows):

            def block(c: LoopBuilder, i: SSAValue, size: int = size) -> None:
                strip = self._make_strips(c) if spread else memory
                self._stages(c, {**at, row: i}, size, strip, shared)
                if spread:
                    self._release(c, strip)

            if spread and count > 1:
                b.parallel(start, start + count * size, size, block)
            else:
                each(b, start, start + count * size, size, block)
        self._release(b, memory)

    def _stages(
        self, b: LoopBuilder, at: Place, rows: int, strip: Mapping[SSAValue, SSAValue], shared: Mapping[tuple[int, int], Shared]
    ) -> None:
        """All stages of one block of rows."""
        for stage in self.roles.stages:
            copies = {(position, k): (s.memory, s.map) for (position, k), s in shared.items() if position in stage}
            builder = StageBuilder(self.kernel, b, self.group, at, rows, strip, copies)
            inside = {self.group.ops[position].output for position in stage}
            for position in stage:
                builder.add(position, inside, continued=position in self.roles.sums)
            product = any(is_contraction(self.group.ops[position]) for position in stage)
            function = builder.function("contraction" if product else "", self.machine, packed=bool(copies))
            inline(b, self.lower(function, self.machine), builder.actuals)

    # strips

    def _make_strips(self, b: LoopBuilder) -> dict[SSAValue, SSAValue]:
        """Scratch for a block of rows of each value between stages; rows lie apart so that they do not fall on the same cache sets."""
        found: dict[SSAValue, SSAValue] = {}
        around = {*self.roles.batch, *self.roles.summed}
        for o in self.strips:
            kind = cast("MemRefType[Any]", o.output.type)
            sizes = [1 if d in around else self.rows if d == self.roles.row else self.extent(d) for d in o.output_dims]
            if len(sizes) > 1 and o.output_dims[-1] not in (self.roles.row, *around):
                sizes[-1] += _padding(sizes[-1], element_bytes(kind.element_type))
            found[o.output] = b.scratch(kind.element_type, sizes)
        return found

    @staticmethod
    def _release(b: LoopBuilder, memory: Mapping[SSAValue, SSAValue]) -> None:
        for scratch in memory.values():
            b.release(scratch)

    # operands that all rows share

    def _copy_shared(self, b: LoopBuilder, at: Place) -> dict[tuple[int, int], Shared]:
        """Copies of the column operands that need one, by op and operand; one copy serves equal reads."""
        found: dict[tuple[int, int], Shared] = {}
        made: dict[object, SSAValue] = {}
        for position, o in enumerate(self.group.ops):
            if not is_contraction(o):
                continue
            for k, (value, map_) in enumerate(zip(o.op.inputs, [m.data for m in o.op.indexing_maps.data])):
                plan = self._columns(o, value, map_)
                if plan is None:
                    continue
                deep, across = plan
                copy_map = AffineMap(map_.num_dims, 0, (AffineDimExpr(deep), AffineDimExpr(across)))
                key = (value, map_.results.index(AffineDimExpr(deep)), map_.results.index(AffineDimExpr(across)))
                if key not in made:
                    made[key] = self._copy(b, o, value, map_, deep, across, at)
                found[position, k] = Shared(made[key], copy_map)
        return found

    def _columns(self, o: GroupOp, value: SSAValue, map_: AffineMap) -> tuple[int, int] | None:
        """(loop along the sum, loop along the columns) of an operand of which all rows of a batch read one matrix, if it lies badly."""
        if (
            value in self.group.produced
            or not isinstance(value.type, MemRefType)
            or not all(isinstance(e, AffineDimExpr) for e in map_.results)
        ):
            return None
        loops = [cast("AffineDimExpr", e).position for e in map_.results]
        around = {*self.roles.batch, *self.roles.summed}
        own = [l for l in loops if o.dims[l] not in around]
        across = o.loops.output_loops[-1]
        if len(own) != 2 or across not in own or self.roles.row in {o.dims[l] for l in own}:
            return None
        (deep,) = [l for l in own if l != across]
        strides = strides_of(cast("MemRefType[Any]", self.kernel.value(value).type))
        size = element_bytes(cast("MemRefType[Any]", value.type).element_type)
        step, apart = strides[loops.index(across)], strides[loops.index(deep)]
        if not o.loops.reduced[deep] or step is None or apart is None:
            return None
        return (deep, across) if step != 1 or apart * size % CONFLICT_BYTES == 0 or apart * size >= PAGE_BYTES else None

    def _copy(self, b: LoopBuilder, o: GroupOp, value: SSAValue, map_: AffineMap, deep: int, across: int, at: Place) -> SSAValue:
        """The matrix of one batch as `[along the sum, columns]`."""
        kind = cast("MemRefType[Any]", value.type)
        size = element_bytes(kind.element_type)
        depth, width = self.extent(o.dims[deep]), self.extent(o.dims[across])
        memory = b.scratch(kind.element_type, [depth, width + _padding(width, size)])
        loops = [cast("AffineDimExpr", e).position for e in map_.results]
        own = {deep: AffineDimExpr(0), across: AffineDimExpr(1)}
        window = subview(
            b,
            self.kernel.value(value),
            [0 if l in own else at[o.dims[l]] for l in loops],
            [self.extent(o.dims[l]) if l in own else 1 for l in loops],
        )
        source = Operand(window, AffineMap(2, 0, tuple(own.get(l, AffineConstantExpr(0)) for l in loops)))
        target = Operand(memory, AffineMap.identity(2))

        def columns(c: LoopBuilder, tile: Tile) -> None:
            def one(e: LoopBuilder, k: SSAValue) -> None:
                here = tile.moved(0, k)
                write(e, read(e, source, here), target, here)

            each(c, 0, depth, 1, one)

        space = Space((depth, width), ())
        strips(b, space.origin, 1, 0, width, self.machine.lanes_of(size), columns)
        return memory


def _padding(columns: int, size: int) -> int:
    """Elements after a row such that neighbouring rows start an odd number of cache lines apart."""
    lines = -(-columns * size // LINE_BYTES)
    return (lines + 1 - lines % 2) * LINE_BYTES // size - columns if columns * size >= CONFLICT_BYTES // 2 else 0
