"""Kernels that are loops already (scatter, sort, scan): loops whose trips write apart are launches of a thread per trip.

A template is a sequence of loops. Each that carries `gradir.parallel` is a launch, in the order of the text, nests of such loops one launch
over all their trips; what stands between them runs on one thread. Index arithmetic and constants are computed again in every launch.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects.builtin import DYNAMIC_INDEX, DictionaryAttr, IntegerAttr, StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from gradir.dialects.kernel import PARALLEL
from gradir.dialects.upstream import arith, func, gpu, memref, scf
from gradir.ir.passes import error_at
from gradir.lowering.lower_kernels.builder import INDEX, Frame, LoopBuilder
from gradir.lowering.lower_kernels.lower import lower_in_place
from gradir.lowering.lower_kernels.tiles import Tile
from gradir.lowering.lower_kernels_gpu.launch import compare, place
from gradir.lowering.schedules.machine import Machine

THREADS = 128
"""Threads of a block: trips are long and differ, small blocks end earlier."""
_VIEWS = (memref.DimOp, memref.SubviewOp, memref.CollapseShapeOp, memref.ExpandShapeOp, memref.CastOp)


@dataclass
class Sequential:
    """One launch of a template: `loops`, nested, a thread per trip; or `ops` on one thread. Top-level allocations are operands."""

    source: func.FuncOp
    kept: list[SSAValue]
    shared: list[Operation]
    """Pure ops of the template's top level, in order."""
    ops: list[Operation] = field(default_factory=list[Operation])
    loops: list[scf.ForOp] = field(default_factory=list[scf.ForOp])
    threads: tuple[int, int] = (1, 1)
    blocks: int = 1
    dynamic_bytes: int = 0

    @classmethod
    def launches_of(cls, source: func.FuncOp) -> tuple[list[SSAValue], list[Sequential]]:
        """The buffers of a template and its launches."""
        lower_in_place(source, Machine())
        kept: list[SSAValue] = [op.memref for op in source.body.block.ops if isinstance(op, memref.AllocOp)]
        shared: list[Operation] = []
        found: list[Sequential] = []
        for op in source.body.block.ops:
            if isinstance(op, func.ReturnOp | memref.AllocOp) or (isinstance(op, memref.DeallocOp) and op.memref in kept):
                continue
            if not op.regions and (op.name.startswith(("arith.", "math.")) or isinstance(op, _VIEWS)):
                shared.append(op)
                continue
            loops = _nest(op)
            if loops:
                found.append(cls(source, kept, shared, [op], loops))
                found[-1]._spread()
            elif found and not found[-1].loops:
                found[-1].ops.append(op)
            else:
                found.append(cls(source, kept, shared, [op]))
        return kept, found

    def _spread(self) -> None:
        """Threads and blocks for the trips of the loops."""
        trips = 1
        for loop in self.loops:
            count = _constant(loop.ub)
            trips = trips * count if count is not None else trips * (1 << 10)
        self.threads = (min(THREADS, max(32, -(-trips // 32) * 32)), 1)
        self.blocks = min(-(-trips // self.threads[0]), (1 << 31) - 1)

    def finish(self, name: str) -> gpu.FuncOp:
        """The device function."""
        old = self.source.body.block
        block = Block(arg_types=[a.type for a in (*old.args, *self.kept)])
        values: dict[SSAValue, SSAValue] = dict(zip((*old.args, *self.kept), block.args))
        for op in self.shared:
            _copy(op, block, values)
        if self.loops:
            self._trips(block, values)
        else:
            for op in self.ops:
                _copy(op, block, values)
        for op in list(block.walk()):
            _localise(op)
        block.add_op(gpu.ReturnOp.create())
        given = self.source.arg_attrs
        own = list(given.data) if given is not None else [DictionaryAttr({}) for _ in old.args]
        own += [DictionaryAttr({"gradir.access": StringAttr("readwrite")}) for _ in self.kept]
        return gpu.kernel_function(name, Region(block), len(block.args), (*self.threads, 1), own)

    def _trips(self, block: Block, values: dict[SSAValue, SSAValue]) -> None:
        """A grid-stride loop over the trips of the nest; the body is that of its innermost loop."""
        b = LoopBuilder(block, self.source.location, Frame(block))
        extents = [n if (n := _constant(loop.ub)) is not None else values.get(loop.ub, loop.ub) for loop in self.loops]
        total = extents[0]
        for extent in extents[1:]:
            total = b.mul(total, extent)
        ids = [b(kind, [], [INDEX], {"dimension": gpu.DimensionAttr(gpu.DimensionEnum.X)}) for kind in (gpu.ThreadIdOp, gpu.BlockIdOp)]
        first = b.add(b.mul(ids[1], self.threads[0]), ids[0])

        def trip(c: LoopBuilder, number: SSAValue) -> None:
            at = place(c, Tile((0,) * len(extents)), range(len(extents)), extents, number).at
            inner = {**values, **{loop.body.block.args[0]: c.value(i) for loop, i in zip(self.loops, at)}}
            for loop in self.loops:
                for op in loop.body.block.ops:
                    if op not in self.loops and not isinstance(op, scf.YieldOp):
                        _copy(op, c.block, inner)

        if isinstance(total, int) and total <= self.blocks * self.threads[0]:
            body = Block()
            inside = b.nested(body)
            assert not isinstance(first, int)
            trip(inside, first)
            inside.op(scf.YieldOp)
            b.op(scf.IfOp, [compare(b, "slt", first, total)], [], regions=[Region(body), Region()])
            return
        body = Block(arg_types=[INDEX])
        inside = b.nested(body)
        trip(inside, body.args[0])
        inside.op(scf.YieldOp)
        b.op(scf.ForOp, b.values([first, total, self.blocks * self.threads[0]]), [], regions=[Region(body)])


def _nest(op: Operation) -> list[scf.ForOp]:
    """The loops whose trips write apart, from `op` inwards while there is nothing but the next one (and index arithmetic) in the body."""
    found: list[scf.ForOp] = []
    at: Operation | None = op
    while (
        isinstance(at, scf.ForOp) and PARALLEL in at.attributes and not at.iter_args and _constant(at.lb) == 0 and _constant(at.step) == 1
    ):
        found.append(at)
        inner = [o for o in at.body.block.ops if not isinstance(o, scf.YieldOp) and not (not o.regions and o.name.startswith("arith."))]
        at = inner[0] if len(inner) == 1 else None
        if at is not None and isinstance(at, scf.ForOp) and not _from_outside(at.ub, op):
            break
    return found


def _from_outside(value: SSAValue, nest: Operation) -> bool:
    """Is the bound of an inner loop known before the nest begins?"""
    owner = value.owner
    if _constant(value) is not None:
        return True
    at = owner if isinstance(owner, Operation) else owner.parent_op()
    while at is not None:
        if at is nest:
            return False
        at = at.parent_op()
    return True


def _constant(value: SSAValue) -> int | None:
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return None


def _copy(op: Operation, block: Block, values: dict[SSAValue, SSAValue]) -> None:
    new = op.clone(values)
    block.add_op(new)
    values.update(zip(op.results, new.results))


def _localise(op: Operation) -> None:
    """A buffer of one iteration lies in the thread's own memory."""
    parent = op.parent
    assert parent is not None
    if isinstance(op, memref.DeallocOp) and isinstance(op.memref.owner, memref.AllocaOp | memref.AllocOp):
        parent.erase_op(op)
    elif isinstance(op, memref.AllocOp):
        if DYNAMIC_INDEX in op.memref.type.get_shape():
            raise error_at(
                op,
                "a buffer of dynamic size inside a loop of a kernel",
                part="operator",
                code="OP040",
                expected="a static size",
                found=str(op.memref.type),
                hint="allocate it before the loop",
            )
        new = memref.AllocaOp.create(result_types=[op.memref.type], properties=dict(op.properties), location=op.location)
        parent.insert_op_before(new, op)
        op.memref.replace_all_uses_with(new.results[0])
        parent.erase_op(op)
