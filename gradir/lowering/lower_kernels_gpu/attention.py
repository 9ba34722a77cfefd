"""Attention on tensor cores: a block takes 64 queries through all keys, scores live in registers (Dao, 2023: FlashAttention-2).

A warp has 16 queries. For every step of keys: scores by `mma.sync`, the ops between them and the softmax on pairs of lanes, the row's
maximum over the four lanes that share it, exponentials, and their product with the values: the fragment of scores is the left fragment of
that product as it is. Sums that were made with another maximum are scaled. Weights that the program keeps in f32 are the sum of two
narrow ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, MemRefType, f32
from xdsl.ir import Attribute, SSAValue

from gradir.dialects.target import CudaTargetAttr
from gradir.dialects.target.cuda_facts import WARP
from gradir.dialects.types import i64_array
from gradir.dialects.upstream import arith, gpu, linalg, memref, nvgpu, vector
from gradir.lowering.groups import Group
from gradir.lowering.groups.attention import Attention, attention_of
from gradir.lowering.lower_kernels.binding import BoundOp
from gradir.lowering.lower_kernels.bodies import KINDS, combine, is_plain
from gradir.lowering.lower_kernels.builder import Index, LoopBuilder, vector_type
from gradir.lowering.lower_kernels.tiles import Axis, NotCovered, Operand, Tile
from gradir.lowering.lower_kernels_gpu.contraction import ALIGN
from gradir.lowering.lower_kernels_gpu.epilogue import save, tile_results
from gradir.lowering.lower_kernels_gpu.launch import Launch, across_warp, compare, divide, place
from gradir.lowering.lower_kernels_gpu.matrix_units import COLUMNS, ROWS, Fragments, Warps, visit, zeros
from gradir.lowering.lower_kernels_gpu.product import Product, Side, is_zero
from gradir.lowering.lower_kernels_gpu.staging import Copies, Staged, append, pipelined, stage, staged_type
from gradir.lowering.schedules.gpu_attention import KEYS, QUERIES, STAGES, fits, padded
from gradir.lowering.schedules.gpu_contraction import RESULT_PAD
from gradir.lowering.schedules.machine import element_bytes

THREADS = QUERIES // ROWS * WARP
_SHAPE = (16, 8, 16)


def lower_attention(launch: Launch, group: Group, target: CudaTargetAttr) -> None:
    """The whole launch. Raises `NotCovered` for a chain that is no attention, and for types and sizes that the kernel does not take."""
    roles = attention_of(group)
    if roles is None or not fits(roles, group, target):
        raise NotCovered("a chain that is no attention on tensor cores")
    _Kernel(launch, group, roles).run()


class _Kernel:
    def __init__(self, launch: Launch, group: Group, roles: Attention) -> None:
        space = launch.space
        self.launch = launch
        made = {
            name: space.produced[getattr(roles, name).output] for name in ("scores", "score", "maximum", "shift", "exponential", "total")
        }
        self.ops: dict[str, BoundOp] = {
            **made,
            "factor": space.produced[roles.factor.output],
            "product": space.produced[roles.product.output],
        }
        self.narrow_weights = space.produced[roles.weight.output].element != f32
        place_of = space.place
        batch, depth, columns = (tuple(place_of[d] for d in dims) for dims in (roles.batch, roles.depth, roles.columns))
        self.query, self.key = place_of[roles.query], place_of[roles.key]
        extents = [cast("int", e) for e in space.extents]
        self.queries, self.keys = extents[self.query], extents[self.key]
        sizes = [prod(extents[d] for d in dims) for dims in (batch, depth, columns)]
        scores, product = self.ops["scores"], self.ops["product"]
        for op in (scores, self.ops["total"], product):
            if op.init is None or not is_zero(op.init):
                raise NotCovered("sums that do not start at 0")
        inputs = [i for i in scores.used if i is not None]
        left = 0 if self.query in inputs[0].map.used_dims() else 1
        (values,) = [i for i in product.used if i is not None and i.memory not in space.produced]
        weights = next(i for i in product.used if i is not None and i.memory in space.produced)
        stores = tuple(op for op in space.ops if op.stored)

        def side(operand: Operand, dims: tuple[int, ...], extent: int) -> Side:
            return Side(operand, dims, extent, ())

        q, k = side(inputs[left], (self.query,), self.queries), side(inputs[1 - left], (self.key,), self.keys)
        v = side(values, columns, sizes[2])
        self.first = Product(launch, scores, (), batch, sizes[0], q, k, depth, sizes[1])
        self.second = Product(
            launch, product, stores, batch, sizes[0], side(weights, (self.query,), self.queries), v, (self.key,), self.keys
        )
        self.depth, self.columns = padded(sizes[1]), padded(sizes[2])
        self.element = q.operand.element
        self.pairs = self.keys % 2 == 0 and all(not isinstance(op.op, linalg.GenericOp) or is_plain(op.op.body.block) for op in space.ops)

    def run(self) -> None:
        launch, b = self.launch, self.launch.b
        tiles = -(-self.queries // QUERIES)
        launch.threads, launch.blocks = (THREADS, 1), self.first.batches * tiles
        thread = launch.thread()
        batch, tile = divide(b, launch.block(), tiles)
        self.origin = place(b, launch.space.origin, self.first.batch, self.first.extents, batch)
        start = b.mul(tile, QUERIES)
        (q, k, v), results = self._memories()
        warp, lane = divide(b, thread, WARP)
        row = b.mul(warp, ROWS)
        self.scores = Warps(ROWS, KEYS, row, 0, lane)
        self.sums = Warps(ROWS, self.columns, row, 0, lane)
        self.q = Fragments(b, q, self.scores, row, ROWS, left=True)
        self.k = Fragments(b, k, self.scores, 0, KEYS, left=False)
        self.v = Fragments(b, v, self.sums, 0, self.columns, left=False)
        group, self.member = divide(b, lane, 4)
        self.rows = [b.minimum(b.add(b.add(start, row), b.add(group, 8 * half)), self.queries - 1) for half in range(2)]
        Copies(q, b, self.origin, start, thread, THREADS).issue(b, 0, 0)
        copies = [Copies(v, b, self.origin, 0, thread, THREADS), _KeyCopies(k, self.origin, thread)]
        maximum = self.ops["maximum"].init
        assert maximum is not None
        shift = [self._of_row(b, "shift", half, {"maximum": maximum}) for half in range(2)]
        zero = b.constant(_number(0.0))
        inits = [*zeros(b, self.sums, f32), maximum, maximum, *shift, zero, zero, b.value(0)]
        carried = pipelined(b, copies, 0, -(-self.keys // KEYS), STAGES, inits, self._step)
        count = len(zeros(b, self.sums, f32))
        combiner = self._combiner("total")
        totals = [across_warp(b, combiner, carried[count + 4 + half], 4) for half in range(2)]
        factors = [self._of_row(b, "factor", half, {"total": totals[half]}) for half in range(2)]
        sums = [self._scaled(b, value, factors) for value in carried[:count]]
        visit(b, self.sums, sums, lambda pair, r, c: save(b, pair, results, [r, c], 2))
        b.op(gpu.BarrierOp)
        tile_results(self.second, b, results, (QUERIES, self.columns), (start, 0), thread, THREADS, self.origin, None)

    def _memories(self) -> tuple[list[Staged], SSAValue]:
        b = self.launch.b
        plans = [
            (self.first, self.first.rows, QUERIES, self.depth, 1),
            (self.first, self.first.columns, KEYS, self.depth, STAGES),
            (self.second, self.second.columns, self.columns, KEYS, STAGES),
        ]
        types = [staged_type(p, side, self.element, free, depth, count, mma=True) for p, side, free, depth, count in plans]
        results = gpu.shared(f32, QUERIES, self.columns + RESULT_PAD)
        offsets = [0]
        for t in types:
            offsets.append(-(-(offsets[-1] + _bytes(t)) // ALIGN) * ALIGN)
        memory = self.launch.workgroup_bytes(max(offsets[-1], _bytes(results)))
        views = [b(memref.ViewOp, [memory, b.value(at)], [t]) for at, t in zip((*offsets[:-1], 0), (*types, results))]
        staged = [stage(p, side, view, free, depth, mma=True, asynchronous=True) for (p, side, free, depth, _), view in zip(plans, views)]
        return staged, views[-1]

    # one step of keys

    def _step(self, b: LoopBuilder, stage: Index, carried: list[SSAValue]) -> list[SSAValue]:
        first = carried[-1]
        count = len(carried) - 7
        sums, old_maximum, old_shift, old_total = (
            carried[:count],
            carried[count : count + 2],
            carried[count + 2 : count + 4],
            carried[-3:-1],
        )
        scores = self._scores(b, stage, first)
        combiner, adder = self._combiner("maximum"), self._combiner("total")
        maxima: list[SSAValue] = []
        shifts: list[SSAValue] = []
        totals: list[SSAValue] = []
        scales: list[SSAValue] = []
        weights: list[list[SSAValue]] = []
        for half in range(2):
            found = self._across(b, combiner, scores[half])
            maxima.append(combine(b, combiner, old_maximum[half], across_warp(b, combiner, found, 4)))
            shifts.append(self._of_row(b, "shift", half, {"maximum": maxima[half]}))
            scales.append(self._of_row(b, "exponential", half, {"score": old_shift[half], "shift": shifts[half]}))
            tile = self._at(half).with_axes(Axis(self.key, 2))
            known = {self.ops["shift"].key: shifts[half]}
            weights.append([self._pull(b, "exponential", tile, {**known, self.ops["score"].key: s}) for s in scores[half]])
            product = b(arith.MulfOp, [old_total[half], scales[half]], [f32])
            totals.append(combine(b, adder, product, self._across(b, adder, weights[half])))
        sums = [self._scaled(b, value, scales) for value in sums]
        for step in range(KEYS // ROWS):
            lefts = self._left_fragments(b, weights, step)
            for j in range(self.v.count):
                for part, right in enumerate(self.v.read(b, stage, j, step)):
                    at = 2 * j + part
                    for left in lefts:
                        sums[at] = self._product(b, left, right, sums[at])
        return [*sums, *maxima, *shifts, *totals, b.value(b.add(first, KEYS))]

    def _scores(self, b: LoopBuilder, stage: Index, first: Index) -> list[list[SSAValue]]:
        """Of both rows of this lane: pairs of scores, one for every 8 keys, minus infinity behind the last key."""
        found = zeros(b, self.scores, f32)
        for k in range(self.depth // 16):
            (left,) = self.q.read(b, 0, 0, k)
            for j in range(self.k.count):
                for part, right in enumerate(self.k.read(b, stage, j, k)):
                    found[2 * j + part] = self._product(b, left, right, found[2 * j + part])
        pair = vector_type(f32, 2)
        return [
            [
                self._score(b, b(vector.ExtractOp, [v], [pair], {"static_position": i64_array((half,))}), half, j, first)
                for j, v in enumerate(found)
            ]
            for half in range(2)
        ]

    def _score(self, b: LoopBuilder, pair: SSAValue, half: int, j: int, first: Index) -> SSAValue:
        """What the program makes of two neighbouring products."""
        at = b.add(b.add(first, b.mul(self.member, 2)), COLUMNS * j)
        tail = self.keys % KEYS != 0
        lowest = b.constant(_number(float("-inf")))
        core = self.ops["scores"].key
        if self.pairs:
            here = b.minimum(at, self.keys - 2) if tail else at
            value = self._pull(b, "score", self._at(half).moved(self.key, here).with_axes(Axis(self.key, 2)), {core: pair})
            if not tail:
                return value
            return b(arith.SelectOp, [compare(b, "slt", at, self.keys), value, b.splat(lowest, pair.type)], [pair.type])
        lanes: list[SSAValue] = []
        for lane in range(2):
            product = b(vector.ExtractOp, [pair], [f32], {"static_position": i64_array((lane,))})
            place_ = b.add(at, lane)
            here = b.minimum(place_, self.keys - 1) if tail else place_
            value = self._pull(b, "score", self._at(half).moved(self.key, here), {core: product})
            lanes.append(b(arith.SelectOp, [compare(b, "slt", place_, self.keys), value, lowest], [f32]) if tail else value)
        return b(vector.FromElementsOp, lanes, [pair.type])

    def _left_fragments(self, b: LoopBuilder, weights: list[list[SSAValue]], step: int) -> list[SSAValue]:
        """The weights of 16 keys as a left fragment; as two, whose sum they are, where the program keeps them in f32."""
        four, two, wide = (vector_type(t, *shape) for t, shape in ((self.element, (4, 2)), (self.element, (2,)), (f32, (2,))))
        parts = [weights[0][2 * step], weights[1][2 * step], weights[0][2 * step + 1], weights[1][2 * step + 1]]
        high = [b(arith.TruncFOp, [p], [two]) for p in parts]
        found = [high]
        if not self.narrow_weights:
            rest = [b(arith.SubfOp, [p, b(arith.ExtFOp, [h], [wide])], [wide]) for p, h in zip(parts, high)]
            found.append([b(arith.TruncFOp, [r], [two]) for r in rest])
        fragments: list[SSAValue] = []
        for rows in found:
            value = b.constant(DenseIntOrFPElementsAttr.from_list(four, [0]))
            for k, row in enumerate(rows):
                value = b(vector.InsertOp, [row, value], [four], {"static_position": i64_array((k,))})
            fragments.append(value)
        return fragments

    # small pieces

    def _product(self, b: LoopBuilder, left: SSAValue, right: SSAValue, acc: SSAValue) -> SSAValue:
        found = append(b, nvgpu.MmaSyncOp.make(left, right, acc, _SHAPE))
        assert found is not None
        return found

    def _combiner(self, name: str) -> Any:
        joined = self.ops[name].combination
        assert joined is not None
        return joined.combiner

    def _across(self, b: LoopBuilder, combiner: Any, pairs: list[SSAValue]) -> SSAValue:
        """All elements of the pairs, joined."""
        while len(pairs) > 1:
            pairs = [combine(b, combiner, p, q) for p, q in zip(pairs[::2], pairs[1::2])]
        return b(vector.ReductionOp, [pairs[0]], [f32], {"kind": KINDS[type(combiner)]})

    def _at(self, half: int) -> Tile:
        return self.origin.moved(self.query, self.rows[half])

    def _pull(self, b: LoopBuilder, name: str, tile: Tile, known: dict[SSAValue, SSAValue]) -> SSAValue:
        value = self.launch.pull(b, self.ops[name].key, tile, dict(known), frozenset())
        return b.splat(value, tile.type(f32))

    def _of_row(self, b: LoopBuilder, name: str, half: int, known: dict[str, SSAValue]) -> SSAValue:
        return self._pull(b, name, self._at(half), {self.ops[k].key: v for k, v in known.items()})

    def _scaled(self, b: LoopBuilder, value: SSAValue, by: list[SSAValue]) -> SSAValue:
        """A fragment of sums, its rows times the two numbers."""
        factor = b(vector.FromElementsOp, [by[0], by[0], by[1], by[1]], [value.type])
        return b(arith.MulfOp, [value, factor], [value.type])


@dataclass(frozen=True)
class _KeyCopies:
    """Copies of a step of keys: the tile moves along the keys, not along the depth."""

    staged: Staged
    origin: Tile
    thread: Index

    def issue(self, b: LoopBuilder, stage: Index, step: Index) -> list[SSAValue]:
        """Start the copies of the keys from `step` on."""
        return Copies(self.staged, b, self.origin, step, self.thread, THREADS, overruns=True).issue(b, stage, 0)


def _number(value: float) -> Attribute:
    return FloatAttr(value, f32)


def _bytes(t: MemRefType[Any]) -> int:
    return prod(t.get_shape()) * element_bytes(t.element_type)
