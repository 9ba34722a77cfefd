"""One result per nest, written through dimensions alone into a destination that holds nothing, or the identity of a reduction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineMap

from gradir.dialects.linear import dims_in
from gradir.dialects.nests import Nest, is_slice, pure_dims
from gradir.dialects.slices import sizes_of
from gradir.dialects.types import element_of, segments, shape_of
from gradir.dialects.upstream import arith, linalg, tensor as tensors
from gradir.ir.builder import Builder
from gradir.ir.copying import copy_into, copy_op


def _least(kind: IntegerType) -> int:
    return -(1 << (kind.width.data - 1))


def _greatest(kind: IntegerType) -> int:
    return (1 << (kind.width.data - 1)) - 1


IDENTITIES: dict[type[Operation], Callable[[Any], float | int]] = {
    arith.AddfOp: lambda _: 0.0,
    arith.MulfOp: lambda _: 1.0,
    arith.MaximumfOp: lambda _: float("-inf"),
    arith.MinimumfOp: lambda _: float("inf"),
    arith.AddiOp: lambda _: 0,
    arith.MuliOp: lambda _: 1,
    arith.OrIOp: lambda _: 0,
    arith.AndIOp: lambda _: -1,
    arith.MaxSIOp: _least,
    arith.MinSIOp: _greatest,
    arith.MaxUIOp: lambda _: 0,
    arith.MinUIOp: lambda _: -1,
}
"""Ops that join an accumulator and a term in any order -> the number that changes nothing."""


def normal_form(builder: Builder, op: linalg.GenericOp) -> list[SSAValue] | None:
    """The results of `op` in the form of the pass; None where it has that form."""
    if not op.results:
        return None  # on buffers
    nest = Nest.of(op)
    if any(pure_dims(m) is None for m in nest.output_maps):
        return nest.peel(builder, [] if all(map(is_slice, nest.output_maps)) else _to_slices(nest))
    reads = _reads(nest)
    if len(nest.outputs) > 1:
        if any(j != k for j, read in enumerate(reads) for k in read) and not all(nest.parallel):
            return nest.peel(builder, _in_order(nest))
        return _one_by_one(builder, nest, reads)
    written = set(pure_dims(next(iter(nest.output_maps))) or ())
    if any(not nest.parallel[d] for d in written):  # its elements are different ones
        return replace(nest, parallel=tuple(flag or d in written for d, flag in enumerate(nest.parallel))).emit(builder)
    fill = next(iter(nest.outputs)).owner
    if all(nest.parallel):
        return _over_nothing(builder, nest) if reads[0] or not isinstance(fill, tensors.EmptyOp) else None
    if isinstance(fill, linalg.FillOp | tensors.EmptyOp) or not reads[0]:
        return None if not _stale(fill, reads[0]) else _over_nothing(builder, nest)
    return _joined(builder, nest) or nest.peel(builder, _in_order(nest))


def _stale(owner: object, read: set[int]) -> bool:
    """A destination that holds something and is not read."""
    return not read and not isinstance(owner, linalg.FillOp | tensors.EmptyOp)


def _to_slices(nest: Nest) -> list[int]:
    """Dimensions that become loops so that every output is a slice of the others."""
    return sorted({d for m in nest.output_maps if not is_slice(m) for e in m.results for d in dims_in(e)})


def _in_order(nest: Nest) -> list[int]:
    """Reductions, and whatever an output leaves out."""
    left_out = {d for m in nest.output_maps for d in set(range(nest.rank)) - set(pure_dims(m) or ())}
    return sorted(left_out | {d for d, flag in enumerate(nest.parallel) if not flag})


def _reads(nest: Nest) -> list[set[int]]:
    """For each output, the outputs whose elements before the point it depends on."""
    last = nest.body.last_op
    assert last is not None
    accumulators = nest.body.args[len(nest.inputs) :]
    depends: dict[SSAValue, set[int]] = {a: {k} for k, a in enumerate(accumulators)}
    for op in nest.body.ops:
        inner = [v for o in op.walk() for v in o.operands]
        found: set[int] = set().union(*(depends[v] for v in inner if v in depends))
        if found:
            depends.update((r, found) for r in op.results)
    return [depends.get(v, set()) for v in last.operands]


def _one_by_one(builder: Builder, nest: Nest, reads: Sequence[set[int]]) -> list[SSAValue]:
    """A nest for each result. In a parallel nest, elements of other outputs are inputs."""
    count = len(nest.inputs)
    found: list[SSAValue] = []
    for j, (output, map_) in enumerate(zip(nest.outputs, nest.output_maps)):
        others = [k for k in sorted(reads[j]) if k != j]
        inputs = (*nest.inputs, *(nest.outputs[k] for k in others))
        arguments = [*nest.body.args[:count], *(nest.body.args[count + k] for k in others), nest.body.args[count + j]]
        body = Block(arg_types=[a.type for a in arguments])
        values: dict[SSAValue, SSAValue] = dict(zip(arguments, body.args))
        last = nest.body.last_op
        assert last is not None
        for inner in list(nest.body.ops)[:-1]:
            if _known(inner, values, nest.body):
                body.add_op(copy_op(inner, values))
        Builder(body, builder.loc).op(linalg.YieldOp, [values.get(last.operands[j], last.operands[j])])
        maps = (*nest.maps[:count], *(nest.output_maps[k] for k in others), map_)
        written = set(pure_dims(map_) or ())
        parallel = tuple(flag or d in written for d, flag in enumerate(nest.parallel))
        found += Nest(inputs, (output,), maps, parallel, body).emit(builder)
    return found


def _known(op: Operation, values: dict[SSAValue, SSAValue], body: Block) -> bool:
    """Whether everything that `op` reads of the body has been copied."""
    for inner in op.walk():
        for value in inner.operands:
            home = value.owner if isinstance(value.owner, Block) else value.owner.parent
            if home is body and value not in values:
                return False
    return True


def _over_nothing(builder: Builder, nest: Nest) -> list[SSAValue]:
    """The same nest with a destination of its own; what it wrote over is an input."""
    (output,) = nest.outputs
    count = len(nest.inputs)
    body = Block(arg_types=[*(a.type for a in nest.body.args), element_of(output)])
    copy_into(body, nest.body, dict(zip(nest.body.args, body.args)))
    inputs = (*nest.inputs, output)
    maps = (*nest.maps[:count], nest.maps[count], nest.maps[count])
    return replace(nest, inputs=inputs, outputs=(destination(builder, output),), maps=maps, body=body).emit(builder)


def destination(builder: Builder, like: SSAValue) -> SSAValue:
    """A tensor of the type of `like` that holds nothing."""
    sizes = [size for size in sizes_of(builder, like) if not isinstance(size, int)]
    return builder(tensors.EmptyOp, sizes, [like.type])


def _joined(builder: Builder, nest: Nest) -> list[SSAValue] | None:
    """`combine(initial value, reduction from the identity)`; None where the body does not end in a known combiner."""
    last = nest.body.last_op
    assert last is not None
    combine, accumulator = last.operands[0].owner, nest.body.args[-1]
    if not isinstance(combine, Operation) or type(combine) not in IDENTITIES or not accumulator.has_one_use():
        return None
    if accumulator not in combine.operands:
        return None
    (output,) = nest.outputs
    kind = element_of(output)
    number = constant(builder, IDENTITIES[type(combine)](kind), kind)
    start = builder(linalg.FillOp, [number, destination(builder, output)], [output.type], {"operandSegmentSizes": segments(1, 1)})
    (reduced,) = replace(nest, outputs=(start,)).emit(builder)
    body = Block(arg_types=[kind] * 3)
    inner = Builder(body, builder.loc)
    inner.op(linalg.YieldOp, [inner(type(combine), body.args[:2], [kind], combine.properties)])
    rank = len(shape_of(output))
    maps = (AffineMap.identity(rank),) * 3
    return Nest((output, reduced), (destination(builder, output),), maps, (True,) * rank, body).emit(builder)


def constant(builder: Builder, number: float, kind: Attribute) -> SSAValue:
    """A scalar constant."""
    attr = FloatAttr(number, kind) if isinstance(kind, AnyFloat) else IntegerAttr(int(number), kind)  # pyright: ignore[reportArgumentType, reportCallIssue] (an integer or index type)
    return builder(arith.ConstantOp, [], [kind], {"value": attr})
