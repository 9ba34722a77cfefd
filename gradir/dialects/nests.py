"""A loop nest as data, and as what it stands for: `linalg.generic`, or `scf.for` over some of its dimensions around a smaller nest.

`Nest.peel` is how a nest that no structured op can express becomes explicit: the derivative of an overlapping window, a body that
only runs in order. It reads and writes slices; with all dimensions peeled, single elements (`tensor.extract`, `tensor.insert`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, IntegerAttr, TensorType, i64
from xdsl.dialects.linalg.attrs import IteratorType, IteratorTypeAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from gradir.dialects.linear import INDEX, Linear, arithmetic, dims_in, index, linear, value_of
from gradir.dialects.slices import Number, extract_slice, insert_slice, sliced_type
from gradir.dialects.types import segments, shape_of
from gradir.dialects.upstream import arith, linalg, scf, tensor as tensors
from gradir.ir.builder import Builder
from gradir.ir.copying import copy_into

PARALLEL, REDUCTION = IteratorTypeAttr(IteratorType.PARALLEL), IteratorTypeAttr(IteratorType.REDUCTION)


@dataclass(frozen=True)
class Nest:
    """For every point d, in row-major order where order matters: `outs[j][o_j(d)] = body(ins[i][m_i(d)], outs[j][o_j(d)])[j]`.

    `body` ends in `linalg.yield`. It is copied wherever the nest is written; this one stays as it is.
    """

    inputs: tuple[SSAValue, ...]
    outputs: tuple[SSAValue, ...]
    maps: tuple[AffineMap, ...]
    parallel: tuple[bool, ...]
    body: Block

    @classmethod
    def of(cls, op: linalg.GenericOp) -> Nest:
        """The nest that an op is."""
        parallel = tuple(kind.data is IteratorType.PARALLEL for kind in op.iterator_types.data)
        return cls(tuple(op.inputs), tuple(op.outputs), tuple(m.data for m in op.indexing_maps.data), parallel, op.body.block)

    @property
    def rank(self) -> int:
        return len(self.parallel)

    @property
    def operands(self) -> tuple[SSAValue, ...]:
        return (*self.inputs, *self.outputs)

    @property
    def output_maps(self) -> tuple[AffineMap, ...]:
        return self.maps[len(self.inputs) :]

    @cached_property
    def sizes(self) -> tuple[int | tuple[SSAValue, int] | None, ...]:
        """Each dimension's extent: a number, or (operand, dimension of it); None where no operand tells."""
        found: list[int | tuple[SSAValue, int] | None] = [None] * self.rank
        for value, map_ in zip(self.operands, self.maps):
            if not isinstance(value.type, TensorType):
                continue
            for k, (size, expr) in enumerate(zip(shape_of(value), map_.results)):
                if isinstance(expr, AffineDimExpr) and not isinstance(found[expr.position], int):
                    if isinstance(size, int):
                        found[expr.position] = size
                    elif found[expr.position] is None:
                        found[expr.position] = (value, k)
        return tuple(found)

    def extent(self, builder: Builder, d: int) -> Number:
        """The number of trips of dimension d."""
        size = self.sizes[d]
        assert size is not None, "a verified nest tells all its extents"
        return size if isinstance(size, int) else builder(tensors.DimOp, [size[0], index(builder, size[1])], [INDEX])

    def emit(self, builder: Builder) -> list[SSAValue]:
        """The nest as one `linalg.generic`; inputs that the body does not read stay only where an extent needs them."""
        nest = self.pruned()
        body = Block(arg_types=[a.type for a in nest.body.args])
        copy_into(body, nest.body, dict(zip(nest.body.args, body.args)))
        properties = {
            "indexing_maps": ArrayAttr([AffineMapAttr(m) for m in nest.maps]),
            "iterator_types": ArrayAttr([PARALLEL if flag else REDUCTION for flag in nest.parallel]),
            "operandSegmentSizes": segments(len(nest.inputs), len(nest.outputs)),
        }
        return list(builder.op(linalg.GenericOp, nest.operands, [v.type for v in nest.outputs], properties, [Region(body)]).results)

    def pruned(self) -> Nest:
        """Without the inputs that the body does not read, as far as the extents allow; needless ops of the body go too."""
        body = Block(arg_types=[a.type for a in self.body.args])
        copy_into(body, self.body, dict(zip(self.body.args, body.args)))
        remove_unused(body)
        count = len(self.inputs)
        told = {d for k, m in enumerate(self.maps) if k >= count or body.args[k].uses for d in _pure(m)}
        kept: list[int] = []
        for k, m in enumerate(self.maps[:count]):
            if body.args[k].uses or not _pure(m) <= told:
                kept.append(k)
                told |= _pure(m)
        for k in reversed(range(count)):
            if k not in kept:
                body.erase_arg(body.args[k])
        maps = (*(self.maps[k] for k in kept), *self.output_maps)
        return Nest(tuple(self.inputs[k] for k in kept), self.outputs, maps, self.parallel, body)

    # loops -----------------------------------------------------------------------------------------------------------

    def peel(self, builder: Builder, dims: Sequence[int]) -> list[SSAValue]:
        """The results, computed by `scf.for` over `dims` around the nest of the other dimensions."""
        if not dims:
            return self._inner(builder, {}, list(self.outputs))
        return self._loop(builder, sorted(dims), {}, list(self.outputs))

    def _loop(self, builder: Builder, dims: Sequence[int], at: dict[int, SSAValue], carried: list[SSAValue]) -> list[SSAValue]:
        if not dims:
            return self._inner(builder, at, carried)
        bound = self.extent(builder, dims[0])
        bounds = [index(builder, 0), index(builder, bound), index(builder, 1)]
        body = Block(arg_types=[INDEX, *(v.type for v in carried)])
        inner = builder.nested(body)
        inner.op(scf.YieldOp, self._loop(inner, dims[1:], {**at, dims[0]: body.args[0]}, list(body.args[1:])))
        return list(builder.op(scf.ForOp, [*bounds, *carried], [v.type for v in carried], regions=[Region(body)]).results)

    def _inner(self, builder: Builder, at: Mapping[int, SSAValue], carried: list[SSAValue]) -> list[SSAValue]:
        """The nest over the dimensions that are not in `at`."""
        rest = [d for d in range(self.rank) if d not in at]
        number = {d: k for k, d in enumerate(rest)}
        if not rest:
            return self._point(builder, at, carried)
        inputs: list[SSAValue] = []
        maps: list[AffineMap] = []
        for value, map_ in zip(self.inputs, self.maps):
            part, exprs = self._read(builder, value, map_, at) if isinstance(value.type, TensorType) else (value, [])
            inputs.append(part)
            maps.append(_renumbered(exprs, number))
        outputs: list[SSAValue] = []
        slices: list[tuple[list[Number], list[Number], list[Number]] | None] = []
        for k, (value, map_) in enumerate(zip(carried, self.output_maps)):
            part, exprs, place = self._write(builder, value, map_, at, bool(self.body.args[len(self.inputs) + k].uses))
            outputs.append(part)
            maps.append(_renumbered(exprs, number))
            slices.append(place)
        body = Block(arg_types=[a.type for a in self.body.args])

        def looped(op: Operation) -> SSAValue | None:
            return at.get(op.dim.value.data) if isinstance(op, linalg.IndexOp) else None

        copy_into(body, self.body, dict(zip(self.body.args, body.args)), looped)
        for op in body.walk():
            if isinstance(op, linalg.IndexOp):
                op.properties["dim"] = IntegerAttr(number[op.dim.value.data], i64)
        inner = Nest(tuple(inputs), tuple(outputs), tuple(maps), tuple(self.parallel[d] for d in rest), body)
        found = inner.emit(builder)
        return [new if place is None else insert_slice(builder, new, whole, *place) for new, whole, place in zip(found, carried, slices)]

    def _read(self, builder: Builder, value: SSAValue, map_: AffineMap, at: Mapping[int, SSAValue]) -> tuple[SSAValue, list[AffineExpr]]:
        """The part of an input that the loops outside leave, and its map."""
        looped = frozenset(at)
        if not any(dims_in(e) & looped for e in map_.results):
            return value, list(map_.results)
        offsets: list[Number] = []
        sizes: list[Number] = []
        kept: list[AffineExpr] = []
        dropped: set[int] = set()
        for k, expr in enumerate(map_.results):
            used = dims_in(expr)
            if not used - looped:
                offsets.append(value_of(builder, expr, at))
                sizes.append(1)
                dropped.add(k)
                continue
            if not used & looped:
                size = shape_of(value)[k]
                offsets.append(0)
                sizes.append(size if isinstance(size, int) else builder(tensors.DimOp, [value, index(builder, k)], [INDEX]))
                kept.append(expr)
                continue
            form = linear(expr)
            assert form is not None, "the caller peels every dimension of an expression that is no sum"
            outside, inside = form.only(looped), form.only(frozenset(form.factors) - looped)
            low, size = self._span(builder, inside)
            offsets.append(value_of(builder, Linear(outside.factors, form.constant + low).expression(), at))
            sizes.append(size)
            kept.append(Linear(inside.factors, -low).expression())
        ones: list[Number] = [1] * len(offsets)
        if not kept:
            places = [index(builder, n) for n in offsets]
            assert isinstance(value.type, TensorType)
            return builder(tensors.ExtractOp, [value, *places], [value.type.element_type]), []
        return extract_slice(builder, value, offsets, sizes, ones, frozenset(dropped)), kept

    def _span(self, builder: Builder, form: Linear) -> tuple[int, Number]:
        """The least value of a sum over its dimensions, and how many values from there to the greatest."""
        low, total = 0, 1
        values: list[SSAValue] = []
        for d, c in form.factors.items():
            n = self.extent(builder, d)
            if isinstance(n, int):
                low += min(0, c * (n - 1))
                total += abs(c) * (n - 1)
                continue
            assert c > 0, "the caller peels a dimension of run-time size that counts down"
            steps = arithmetic(builder, arith.SubiOp, n, index(builder, 1))
            values.append(steps if c == 1 else arithmetic(builder, arith.MuliOp, steps, index(builder, c)))
        if not values:
            return low, total
        size = index(builder, total)
        for value in values:
            size = arithmetic(builder, arith.AddiOp, size, value)
        return low, size

    def _write(
        self, builder: Builder, value: SSAValue, map_: AffineMap, at: Mapping[int, SSAValue], reads: bool
    ) -> tuple[SSAValue, list[AffineExpr], tuple[list[Number], list[Number], list[Number]] | None]:
        """The part of an output that one run of the inner nest writes, its map, and where it goes; None for the whole output."""
        if all(isinstance(e, AffineDimExpr) and e.position not in at for e in map_.results):
            return value, list(map_.results), None
        offsets: list[Number] = []
        sizes: list[Number] = []
        strides: list[Number] = []
        kept: list[AffineExpr] = []
        dropped: set[int] = set()
        for k, expr in enumerate(map_.results):
            rest = dims_in(expr) - frozenset(at)
            form = linear(expr)
            if not rest:
                offsets.append(value_of(builder, expr, at))
                sizes.append(1)
                strides.append(1)
                dropped.add(k)
                continue
            assert form is not None and len(rest) == 1, "an inner output is indexed by single dimensions"
            (d,) = rest
            outside = Linear({e: c for e, c in form.factors.items() if e != d}, form.constant)
            offsets.append(value_of(builder, outside.expression(), at))
            sizes.append(self.extent(builder, d))
            strides.append(form.factors[d])
            kept.append(AffineDimExpr(d))
        kind = sliced_type(value, sizes, frozenset(dropped))
        if reads or not all(isinstance(n, int) for n in sizes):
            part = extract_slice(builder, value, offsets, sizes, strides, frozenset(dropped))
        else:
            part = builder(tensors.EmptyOp, [], [kind])
        return part, kept, (offsets, sizes, strides)

    def _point(self, builder: Builder, at: Mapping[int, SSAValue], carried: list[SSAValue]) -> list[SSAValue]:
        """The body at one point, in the open."""
        values: dict[SSAValue, SSAValue] = {}
        places: list[list[SSAValue]] = []
        for k, (value, map_, argument) in enumerate(zip((*self.inputs, *carried), self.maps, self.body.args)):
            where = [value_of(builder, e, at) for e in map_.results] if argument.uses or k >= len(self.inputs) else []
            place = [index(builder, n) for n in where]
            if k >= len(self.inputs):
                places.append(place)
            if argument.uses:
                values[argument] = (
                    builder(tensors.ExtractOp, [value, *place], [argument.type]) if isinstance(value.type, TensorType) else value
                )

        def looped(op: Operation) -> SSAValue | None:
            return at[op.dim.value.data] if isinstance(op, linalg.IndexOp) else None

        yielded = copy_into(builder.block, self.body, values, looped, terminator=False)
        return [builder(tensors.InsertOp, [v, whole, *place], [whole.type]) for v, whole, place in zip(yielded, carried, places)]


def pure_dims(map_: AffineMap) -> tuple[int, ...] | None:
    """The dimensions of a map whose results are different dimensions and nothing else."""
    found = [e.position for e in map_.results if isinstance(e, AffineDimExpr)]
    return tuple(found) if len(found) == len(map_.results) and len(set(found)) == len(found) else None


def is_slice(map_: AffineMap) -> bool:
    """Whether a map runs over a slice: `factor * d + constant` for different dimensions d, or constants."""
    forms = [linear(e) for e in map_.results]
    dims = [d for form in forms if form is not None for d in form.factors]
    counts_up = all(form is not None and len(form.factors) <= 1 and all(c > 0 for c in form.factors.values()) for form in forms)
    return counts_up and len(set(dims)) == len(dims)


def _pure(map_: AffineMap) -> set[int]:
    """The dimensions whose extents the operand of this map tells."""
    return {e.position for e in map_.results if isinstance(e, AffineDimExpr)}


def _renumbered(exprs: Sequence[AffineExpr], number: Mapping[int, int]) -> AffineMap:
    """A map over fewer dimensions; those that are gone do not occur in it."""
    dims = [AffineDimExpr(number[d]) if d in number else AffineConstantExpr(0) for d in range(max([*number, -1]) + 1)]
    return AffineMap(len(number), 0, tuple(e.replace_dims_and_symbols(dims, []) for e in exprs))


def remove_unused(block: Block) -> None:
    """Drop the ops of a body that nothing reads."""
    for op in reversed(list(block.ops)):
        if op.results and not isinstance(op, linalg.YieldOp) and not any(r.uses for r in op.results):
            op.detach()
            op.erase()
