"""`linalg`: a loop nest as numpy over its iteration grid. The order of a reduction is free, so it is computed as exactly as is cheap.

Operands are gathered through their maps, the body runs once on whole arrays, the result is stored through the output's map. A reduction
whose body ends in a known combiner is folded at once (floats in f64, rounded once); any other runs point by point over its reduction loops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from gradir.dialects.upstream import arith, linalg, scf
from gradir.ir.structure import block_of
from gradir.reference.buffers import View, check_index, overlap, read, write
from gradir.reference.machine import Machine, Value, evaluates
from gradir.reference.scalars import maximum, minimum, rounded, signed, unsigned
from gradir.reference.values import Partial, partial, parts, require_defined, whole

Array = np.ndarray[Any, Any]
Ranges = tuple[range, ...]

GRID_LIMIT = 1 << 22
"""Points evaluated at once; larger nests are cut along one loop."""


def _fold_by(ufunc: Any, *, exact: bool = False) -> Callable[[Array, Array, tuple[int, ...]], Array]:
    """Combine `init` and all `terms` along `axes`; floats in f64 when `exact`."""

    def fold(init: Array, terms: Array, axes: tuple[int, ...]) -> Array:
        if exact and init.dtype.kind not in "iub":
            with np.errstate(all="ignore"):
                total = ufunc(init.astype(np.float64), ufunc.reduce(terms.astype(np.float64), axis=axes, keepdims=True))
            return np.asarray(rounded(total, init.dtype))
        return ufunc(init, ufunc.reduce(terms, axis=axes, keepdims=True, dtype=init.dtype)).astype(init.dtype)

    return fold


def _fold_pairwise(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array, tuple[int, ...]], Array]:
    """Fold with a function that is no numpy ufunc, one term after the other."""

    def fold(init: Array, terms: Array, axes: tuple[int, ...]) -> Array:
        total = init
        for point in product(*(range(terms.shape[axis]) for axis in axes)):
            index = [slice(None)] * terms.ndim
            for axis, i in zip(axes, point):
                index[axis] = slice(i, i + 1)
            total = function(total, terms[tuple(index)])
        return np.asarray(total)

    return fold


def _modulo_two(fold: Callable[..., Array], boolean: Callable[..., Array]) -> Callable[..., Array]:
    def choose(init: Array, terms: Array, axes: tuple[int, ...]) -> Array:
        return (boolean if init.dtype == np.bool_ else fold)(init, terms, axes)

    return choose


COMBINERS: dict[type[Operation], Callable[[Array, Array, tuple[int, ...]], Array]] = {
    arith.AddfOp: _fold_by(np.add, exact=True),
    arith.MulfOp: _fold_by(np.multiply, exact=True),
    arith.AddiOp: _modulo_two(_fold_by(np.add), _fold_by(np.logical_xor)),
    arith.MuliOp: _modulo_two(_fold_by(np.multiply), _fold_by(np.logical_and)),
    arith.AndIOp: _fold_by(np.bitwise_and),
    arith.OrIOp: _fold_by(np.bitwise_or),
    arith.XOrIOp: _fold_by(np.bitwise_xor),
    arith.MaximumfOp: _fold_pairwise(maximum),
    arith.MinimumfOp: _fold_pairwise(minimum),
    arith.MaxnumfOp: _fold_pairwise(np.fmax),
    arith.MinnumfOp: _fold_pairwise(np.fmin),
    arith.MaxSIOp: _modulo_two(_fold_by(np.maximum), _fold_by(np.logical_and)),
    arith.MinSIOp: _modulo_two(_fold_by(np.minimum), _fold_by(np.logical_or)),
    arith.MaxUIOp: _fold_pairwise(lambda x, y: signed(np.maximum(unsigned(x), unsigned(y)), x)),
    arith.MinUIOp: _fold_pairwise(lambda x, y: signed(np.minimum(unsigned(x), unsigned(y)), x)),
}


@dataclass(frozen=True)
class Reduction:
    """The body's last step for one output: `yield combine(acc, term)`."""

    combine: Operation
    term: SSAValue


def reductions_of(op: LinalgStructuredOperation) -> list[Reduction] | None:
    """How each output is combined, when every output ends in a known combiner and accumulators are used nowhere else."""
    block = op.body.block
    terminator = block.last_op
    assert terminator is not None
    accumulators = block.args[len(op.inputs) :]
    found: list[Reduction] = []
    for accumulator, result in zip(accumulators, terminator.operands, strict=True):
        combine = result.owner
        if not isinstance(combine, Operation) or type(combine) not in COMBINERS or combine.parent is not block:
            return None
        if len(list(accumulator.uses)) != 1 or len(list(result.uses)) != 1 or accumulator not in combine.operands:
            return None
        found.append(Reduction(combine, combine.operands[1 if combine.operands[0] is accumulator else 0]))
    return found


@evaluates(linalg.GenericOp)
def _generic(machine: Machine, op: linalg.GenericOp, *operands: Value) -> Value:
    nest = Nest(machine, op, operands)
    nest.check_aliasing()
    for ranges in _pieces(nest.extents, 1 if nest.pointwise else GRID_LIMIT):
        nest.evaluate(ranges)
    return nest.results()


def _pieces(extents: tuple[int, ...], limit: int) -> list[Ranges]:
    """The iteration space cut into boxes of at most `limit` points, in lexicographic order."""
    if not extents or prod(extents) <= limit:
        return [tuple(range(n) for n in extents)]
    inner = prod(extents[1:])
    step = max(1, limit // inner)
    boxes: list[Ranges] = []
    for low in range(0, extents[0], step):
        head = range(low, min(low + step, extents[0]))
        tails = _pieces(extents[1:], max(1, limit // len(head)))
        boxes += [(head, *tail) for tail in tails]
    return boxes


class Nest:
    """One execution of a structured op: its operands, maps and the sizes of its loops."""

    def __init__(self, machine: Machine, op: LinalgStructuredOperation, operands: Sequence[Value]) -> None:
        self.machine, self.op = machine, op
        self.maps = [attribute.data for attribute in op.get_indexing_maps()]
        self.parallel = [str(kind.data) == "parallel" for kind in op.get_iterator_types()]
        self.inputs = len(op.inputs)
        self.operands: list[Value] = list(operands)
        for k in range(self.inputs, len(operands)):
            if not isinstance(operands[k], View):
                array, defined = parts(operands[k])
                self.operands[k] = Partial(array.copy(), defined.copy())
        self.extents = self._extents()
        self.pointwise = any(inner.regions and not _runs_on_grids(inner, op.body.block) for inner in op.body.block.ops)
        self.reductions = None if self.pointwise or self._writes_along_reductions() else reductions_of(op)

    def _writes_along_reductions(self) -> bool:
        """Whether an output is indexed by a reduction loop: its elements are no sums over that loop."""
        used = {d for mapping in self.maps[self.inputs :] for d in mapping.used_dims()}
        return any(not self.parallel[d] for d in used)

    def _extents(self) -> tuple[int, ...]:
        sizes: dict[int, int] = {}
        for k, (value, mapping) in enumerate(zip(self.operands, self.maps, strict=True)):
            shape = value.shape if isinstance(value, Partial | View) else np.shape(value)
            for expr, size in zip(mapping.results, shape, strict=True):
                if isinstance(expr, AffineDimExpr) and sizes.setdefault(expr.position, size) != size:
                    message = f"operand {k} gives loop d{expr.position} another size"
                    self.machine.fail(self.op, "OP111", message, expected=str(sizes[expr.position]), found=str(size))
        if missing := [d for d in range(len(self.parallel)) if d not in sizes]:
            self.machine.fail(self.op, "OP111", f"no operand gives the size of loop d{missing[0]}")
        return tuple(sizes[d] for d in range(len(self.parallel)))

    def check_aliasing(self) -> None:
        """In place is defined only where input and output are the same elements in the same order."""
        for j in range(self.inputs, len(self.operands)):
            for i in range(len(self.operands)):
                a, b = self.operands[i], self.operands[j]
                if i == j or not isinstance(a, View) or not isinstance(b, View) or not overlap(a, b):
                    continue
                same = (a.start, a.shape, a.strides) == (b.start, b.shape, b.strides) and self.maps[i] == self.maps[j]
                used = bool(self.op.body.block.args[i].uses)
                if (used or i >= self.inputs) and not (same and i < self.inputs and all(self.parallel)):
                    self.machine.fail(self.op, "OP109", f"operand {i} overlaps output {j - self.inputs}, which the op overwrites")

    def evaluate(self, ranges: Ranges) -> None:
        """All points of one box."""
        if all(self.parallel) or self.reductions is not None:
            self._at_once(ranges)
            return
        sequential = [d for d, parallel in enumerate(self.parallel) if not parallel]
        for point in product(*(ranges[d] for d in sequential)):
            inner = list(ranges)
            for d, i in zip(sequential, point):
                inner[d] = range(i, i + 1)
            self._body(tuple(inner))

    def _at_once(self, ranges: Ranges) -> None:
        if all(self.parallel) or self.reductions is None:
            self._body(ranges)
            return
        grids = self._open(ranges)
        if any(len(r) == 0 for r in ranges):
            return
        skipped = {reduction.combine for reduction in self.reductions}
        self._run(grids, skip=skipped, accumulators=False)
        axes = tuple(d for d, parallel in enumerate(self.parallel) if not parallel)
        shape = [len(r) for r in ranges]
        outer = [grid if parallel else grid[tuple([slice(0, 1)] * grid.ndim)] for grid, parallel in zip(grids, self.parallel)]
        for k, reduction in enumerate(self.reductions):
            terms = np.broadcast_to(np.asarray(whole(self.machine, self.op, self.machine.values[reduction.term])), shape)
            index = self._index(self.maps[self.inputs + k], outer)
            kept = [n if parallel else 1 for n, parallel in zip(shape, self.parallel)]
            init = np.broadcast_to(self._load(self.inputs + k, index), kept)
            total: Any = COMBINERS[type(reduction.combine)](np.asarray(init), terms, axes)
            if self.machine.watch is not None:
                (total,) = self.machine.watch(reduction.combine, (init, terms), (total,))
            self._store(self.inputs + k, index, total)

    def _body(self, ranges: Ranges) -> None:
        if any(len(r) == 0 for r in ranges):
            return
        grids = self._open(ranges)
        yielded = self._run(grids, skip=set(), accumulators=True)
        shape = [len(r) for r in ranges]
        for k, value in enumerate(yielded):
            whole_grid = np.broadcast_to(np.asarray(whole(self.machine, self.op, value)), () if self.pointwise else shape)
            self._store(self.inputs + k, self._index(self.maps[self.inputs + k], grids), whole_grid)

    def _open(self, ranges: Ranges) -> list[Any]:
        """Coordinates of the box's points: one array per loop, or one number per loop."""
        rank = len(ranges)
        if self.pointwise:
            return [np.int64(r.start) for r in ranges]
        return [np.arange(r.start, r.stop).reshape([-1 if k == d else 1 for k in range(rank)]) for d, r in enumerate(ranges)]

    def _index(self, mapping: AffineMap, grids: Sequence[Array]) -> tuple[Any, ...]:
        return tuple(expr.eval(list(grids), []) for expr in mapping.results)  # pyright: ignore[reportArgumentType] (arrays add and multiply as ints do)

    def _run(self, grids: list[Any], *, skip: set[Operation], accumulators: bool) -> list[Value]:
        """The body on arrays; ops in `skip` are left out, and accumulators then have no value."""
        machine, block = self.machine, self.op.body.block
        for k, argument in enumerate(block.args):
            if _used(argument) and (k < self.inputs or accumulators):
                machine.values[argument] = self._load(k, self._index(self.maps[k], grids))
        outer, machine.grids = machine.grids, grids
        try:
            return machine.run(block, skip) if skip else machine.run(block)
        finally:
            machine.grids = outer

    def _load(self, k: int, index: tuple[Any, ...]) -> Any:
        value = self.operands[k]
        if isinstance(value, View):
            return read(self.machine, self.op, value, index)
        array, defined = parts(value)
        check_index(self.machine, self.op, array.shape, index)
        if isinstance(value, Partial):
            require_defined(self.machine, self.op, np.asarray(defined[index]))
        return array[index]

    def _store(self, k: int, index: tuple[Any, ...], values: Array) -> None:
        target = self.operands[k]
        if isinstance(target, View):
            write(self.machine, self.op, target, index, values)
            return
        check_index(self.machine, self.op, target.shape, index)
        if not index:
            values = np.asarray(values).reshape(-1)[-1:].reshape(())
        target.array[index], target.defined[index] = values, True

    def results(self) -> Value:
        """The outputs that are tensors."""
        return tuple(partial(v.array, v.defined) for v in self.operands[self.inputs :] if not isinstance(v, View))


def _runs_on_grids(op: Operation, body: Block) -> bool:
    """Whether all points may go through a loop of the body together: arithmetic, with the same trips or a condition of each point."""
    if isinstance(op, scf.ForOp):
        if any(block_of(v) is body and not isinstance(v.owner, arith.ConstantOp) for v in (op.lb, op.ub, op.step)):
            return False
    elif not isinstance(op, scf.WhileOp):
        return False
    return all(
        _runs_on_grids(inner, body) if inner.regions else inner.name.split(".")[0] in ("arith", "math", "scf")
        for region in op.regions
        for inner in region.block.ops
    )


def _used(argument: BlockArgument) -> bool:
    return bool(argument.uses)


@evaluates(linalg.IndexOp)
def _index(machine: Machine, op: linalg.IndexOp) -> Value:
    return machine.grids[op.dim.value.data]


@evaluates(linalg.FillOp)
def _fill(machine: Machine, op: linalg.FillOp, value: Value, target: Value) -> Value | None:
    value = whole(machine, op, value)
    if isinstance(target, View):
        write(machine, op, target, target.everywhere(), value)
        return None
    array, _ = parts(target)
    return np.full(array.shape, value, array.dtype)


@evaluates(linalg.CopyOp)
def _copy(machine: Machine, op: linalg.CopyOp, source: Value, target: Value) -> Value | None:
    if not isinstance(target, View):
        return source
    same = isinstance(source, View) and (source.start, source.strides) == (target.start, target.strides)
    if isinstance(source, View) and not same and overlap(source, target):
        machine.fail(op, "OP109", "input and output overlap")
    array = read(machine, op, source, source.everywhere()) if isinstance(source, View) else whole(machine, op, source)
    if np.shape(array) != target.shape:
        machine.fail(op, "OP111", "input and output differ in shape", expected=str(target.shape), found=str(np.shape(array)))
    write(machine, op, target, target.everywhere(), array)
    return None
