"""Level 2 on many lanes: a loop nest gets one more parallel dimension in front, a slice takes all lanes, a scalar op becomes a nest.

What a body captures by name becomes an input if it differs from lane to lane; a tensor that it reads elements of is read at the lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import IndexType, IntegerAttr, TensorType, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap

from gradir.autodiff.activity import free_values
from gradir.autodiff.batching.lanes import Lanes, next_dim
from gradir.autodiff.batching.rules import batches
from gradir.autodiff.batching.sweep import BatchSweep, structured
from gradir.autodiff.reverse.sweep import clone
from gradir.autodiff.tensors import INDEX
from gradir.dialects.nests import Nest
from gradir.dialects.slices import Number, dropped_dims, extract_slice, insert_slice, mixed
from gradir.dialects.types import element_of, i64_array, rank_of, reassociation, segments, shape_of
from gradir.dialects.upstream import arith, linalg, math, tensor
from gradir.ir.builder import Builder
from gradir.ir.copying import copy_into
from gradir.ir.passes import error_at


def empty(lanes: Lanes, kind: TensorType[Any]) -> SSAValue:
    """A tensor that holds nothing yet."""
    return lanes.builder(tensor.EmptyOp, lanes.t.sizes(shape_of(kind)), [kind])


def fill(lanes: Lanes, number: SSAValue, kind: TensorType[Any]) -> SSAValue:
    """A tensor filled with a scalar."""
    return lanes.builder(linalg.FillOp, [number, empty(lanes, kind)], [kind], {"operandSegmentSizes": segments(1, 1)})


@structured(linalg.GenericOp)
def batch_generic(sweep: BatchSweep, op: linalg.GenericOp, builder: Builder) -> None:
    """One more parallel dimension; operands without lanes are read at their own place by all."""
    lanes = sweep.lanes(builder)
    nest = Nest.of(op)
    captured = [v for v in free_values(op) if sweep.has(v)]
    scalars = [v for v in captured if not isinstance(v.type, TensorType)]
    inputs = [*(sweep.value(v) for v in nest.inputs), *(sweep.value(v) for v in scalars)]
    outputs = [sweep.value(v) if sweep.has(v) else _spread_output(sweep, lanes, v) for v in nest.outputs]
    lane = AffineMap(nest.rank + 1, 0, (AffineDimExpr(0),))
    maps = [
        *(_shifted(m, front=sweep.has(v)) for v, m in zip(nest.inputs, nest.maps)),
        *(lane for _ in scalars),
        *(_shifted(m, front=True) for m in nest.output_maps),
    ]
    body = _body(sweep, nest, scalars, captured, builder)
    results = Nest(tuple(inputs), tuple(outputs), tuple(maps), (True, *nest.parallel), body).emit(builder)
    sweep.bind(op.results, results, [True] * len(results))


def _spread_output(sweep: BatchSweep, lanes: Lanes, old: SSAValue) -> SSAValue:
    """The initial value of an output in every lane; one that holds nothing, or one number, is made anew."""
    owner, kind = old.owner, lanes.lanes(old.type)
    if isinstance(owner, tensor.EmptyOp):
        return empty(lanes, kind)
    if isinstance(owner, linalg.FillOp) and not sweep.has(owner.operands[0]):
        return fill(lanes, sweep.value(owner.operands[0]), kind)
    return lanes.spread(sweep.value(old))


def _shifted(map_: AffineMap, *, front: bool) -> AffineMap:
    """The map behind one more dimension, which comes first where the operand has lanes."""
    dims = [AffineDimExpr(d + 1) for d in range(map_.num_dims)]
    rest = tuple(e.replace_dims_and_symbols(dims, []) for e in map_.results)
    first: tuple[AffineExpr, ...] = (AffineDimExpr(0),) if front else ()
    return AffineMap(map_.num_dims + 1, 0, (*first, *rest))


def _body(sweep: BatchSweep, nest: Nest, scalars: Sequence[SSAValue], captured: Sequence[SSAValue], builder: Builder) -> Block:
    """The body with its coordinates shifted, and what differs read at the lane."""
    count = len(nest.inputs)
    kinds: list[Attribute] = [a.type for a in nest.body.args]
    more: list[Attribute] = [element_of(sweep.value(v)) for v in scalars]
    body = Block(arg_types=[*kinds[:count], *more, *kinds[count:]])
    inner = Builder(body, builder.loc)
    values: dict[SSAValue, SSAValue] = dict(sweep.values)
    values.update(zip(nest.body.args, [*body.args[:count], *body.args[count + len(more) :]]))
    for old, new in zip(scalars, body.args[count:]):
        values[old] = inner(arith.IndexCastOp, [new], [INDEX]) if isinstance(old.type, IndexType) else new
    here = inner(linalg.IndexOp, [], [INDEX], {"dim": IntegerAttr(0, i64)})
    copy_into(body, nest.body, values)
    lanes_of = {sweep.value(v) for v in captured if isinstance(v.type, TensorType)}
    for op in list(body.walk()):  # elements of what differs: at the lane
        if isinstance(op, linalg.IndexOp) and op.result is not here:
            op.properties["dim"] = next_dim(op.dim.value.data)
        elif isinstance(op, tensor.ExtractOp) and op.tensor in lanes_of:
            op.operands = [op.tensor, here, *op.indices]
        elif any(v in lanes_of for v in op.operands):
            raise error_at(
                op,
                "this op on a whole tensor, inside of a loop nest, has no meaning for many lanes",
                part="autodiff",
                code="AD013",
                expected="tensor.extract of single elements",
                found=op.name,
                hint="compute it before the nest",
            )
    return body


# slices and shapes ---------------------------------------------------------------------------------------------------


def _count(lanes: Lanes) -> Number:
    return lanes.n if isinstance(lanes.n, int) else lanes.t.sizes((lanes.n,))[0]


@batches(tensor.ExtractSliceOp)
def batch_extract_slice(lanes: Lanes, op: tensor.ExtractSliceOp, operands: list[SSAValue], on: list[bool]) -> list[SSAValue] | None:
    """All lanes, at the same place; places that differ run in a loop."""
    if any(on[1:]):
        return None
    parts = _with_lanes(lanes, op, operands[1:])
    dropped = frozenset(d + 1 for d in dropped_dims(op.static_sizes, op.result))
    found = extract_slice(lanes.builder, operands[0], *parts, dropped)
    return [_cast(lanes, found, lanes.lanes(op.result.type))]


@batches(tensor.InsertSliceOp)
def batch_insert_slice(lanes: Lanes, op: tensor.InsertSliceOp, operands: list[SSAValue], on: list[bool]) -> list[SSAValue] | None:
    """All lanes, at the same place; places that differ run in a loop."""
    if any(on[2:]):
        return None
    part, whole = (v if flag else lanes.spread(v) for v, flag in zip(operands[:2], on))
    return [insert_slice(lanes.builder, part, whole, *_with_lanes(lanes, op, operands[2:]))]


def _with_lanes(
    lanes: Lanes, op: tensor.ExtractSliceOp | tensor.InsertSliceOp, given: Sequence[SSAValue]
) -> tuple[list[Number], list[Number], list[Number]]:
    """Offsets, sizes and strides behind those of the lanes."""
    first, second = len(op.offsets), len(op.offsets) + len(op.sizes)
    return (
        [0, *mixed(op.static_offsets, given[:first])],
        [_count(lanes), *mixed(op.static_sizes, given[first:second])],
        [1, *mixed(op.static_strides, given[second:])],
    )


def _cast(lanes: Lanes, value: SSAValue, kind: Attribute) -> SSAValue:
    return value if value.type == kind else lanes.builder(tensor.CastOp, [value], [kind])


@batches(linalg.FillOp)
def batch_fill(lanes: Lanes, op: linalg.FillOp, operands: list[SSAValue], on: list[bool]) -> list[SSAValue]:
    """Each lane's own number."""
    kind = lanes.lanes(op.res[0].type)
    return [lanes.t.broadcast(operands[0], kind, (0,)) if on[0] else fill(lanes, operands[0], kind)]


@batches(tensor.SplatOp)
def batch_splat(lanes: Lanes, op: tensor.SplatOp, operands: list[SSAValue], on: list[bool]) -> list[SSAValue] | None:
    """Each lane's own number."""
    return None if any(on[1:]) else [lanes.t.broadcast(operands[0], lanes.lanes(op.result.type), (0,))]


@batches(linalg.CopyOp)
def batch_copy(lanes: Lanes, op: linalg.CopyOp, operands: list[SSAValue], on: list[bool]) -> list[SSAValue]:
    """The input, with lanes."""
    return [operands[0] if on[0] else lanes.spread(operands[0])]


@batches(tensor.CastOp)
def batch_cast(lanes: Lanes, op: tensor.CastOp, operands: list[SSAValue], on: list[bool]) -> list[SSAValue]:
    """Lanes stay in front."""
    return lanes.again(op, operands, [lanes.lanes(op.results[0].type)])


@batches(tensor.ConcatOp)
def batch_concat(lanes: Lanes, op: tensor.ConcatOp, operands: list[SSAValue], on: list[bool]) -> list[SSAValue]:
    """`dim` counts from one."""
    wide = [v if flag else lanes.spread(v) for v, flag in zip(operands, on)]
    return lanes.again(op, wide, [lanes.lanes(op.result.type)], {"dim": next_dim(op.dim.value.data)})


@batches(tensor.CollapseShapeOp)
def batch_collapse(lanes: Lanes, op: tensor.CollapseShapeOp, operands: list[SSAValue], on: list[bool]) -> list[SSAValue]:
    """Lanes are a group of their own."""
    return lanes.again(op, operands, [lanes.lanes(op.result.type)], {"reassociation": _groups(op)})


@batches(tensor.ExpandShapeOp)
def batch_expand(lanes: Lanes, op: tensor.ExpandShapeOp, operands: list[SSAValue], on: list[bool]) -> list[SSAValue] | None:
    """Lanes are a group of their own."""
    if any(on[1:]) or not isinstance(lanes.n, int):
        return None
    shape = i64_array((lanes.n, *(int(n) for n in op.static_output_shape.get_values())))
    return lanes.again(op, operands, [lanes.lanes(op.result.type)], {"reassociation": _groups(op), "static_output_shape": shape})


def _groups(op: tensor.CollapseShapeOp | tensor.ExpandShapeOp) -> Attribute:
    groups: Any = op.reassociation
    return reassociation(((0,), *(tuple(int(k.value.data) + 1 for k in group) for group in groups)))


# scalars -------------------------------------------------------------------------------------------------------------


def over_lanes(lanes: Lanes, op: Operation, operands: Sequence[SSAValue], on: Sequence[bool]) -> list[SSAValue]:
    """A scalar op in a nest over the lanes; index values are i64 in memory."""
    inputs = [v for v, flag in zip(operands, on) if flag]
    kind = lanes.lanes(op.results[0].type)
    body = Block(arg_types=[*(element_of(v) for v in inputs), kind.element_type])
    inner = Builder(body, op.location)
    given = iter(body.args)
    values: list[SSAValue] = []
    for old, new, flag in zip(op.operands, operands, on):
        value = next(given) if flag else new
        values.append(inner(arith.IndexCastOp, [value], [INDEX]) if isinstance(old.type, IndexType) and flag else value)
    result = inner.op(type(op), values, [op.results[0].type], op.properties, (), op.attributes).results[0]
    if isinstance(result.type, IndexType):
        result = inner(arith.IndexCastOp, [result], [i64])
    inner.op(linalg.YieldOp, [result])
    lane = AffineMap(1, 0, (AffineDimExpr(0),))
    return Nest(tuple(inputs), (empty(lanes, kind),), (lane,) * (len(inputs) + 1), (True,), body).emit(lanes.builder)


@batches(*(kind for dialect in (arith.Arith, math.Math) for kind in dialect.operations if kind is not arith.ConstantOp))
def scalar(lanes: Lanes, op: Operation, operands: list[SSAValue], on: list[bool]) -> list[SSAValue] | None:
    """The op for each lane; one on whole tensors is itself with lanes."""
    if not any(isinstance(v.type, TensorType) for v in op.operands):
        return over_lanes(lanes, op, operands, on) if len(op.results) == 1 else None
    wide = [v if flag else lanes.spread(v) for v, flag in zip(operands, on)]
    return lanes.again(op, wide, [lanes.lanes(r.type) for r in op.results])


@structured(tensor.ExtractOp)
def batch_extract(sweep: BatchSweep, op: tensor.ExtractOp, builder: Builder) -> None:
    """An element of each lane; of a rank-0 tensor with lanes, the tensor of the lanes."""
    on = [sweep.has(v) for v in op.operands]
    if not any(on):
        builder.block.add_op(clone(op, sweep.values))
        return
    operands = [sweep.value(v) for v in op.operands]
    if rank_of(op.tensor) == 0:
        sweep.bind(op.results, [operands[0]], [True])
        return
    lanes = sweep.lanes(builder)
    if on[0] and not any(on[1:]):
        at: list[Number] = [0, *operands[1:]]
        ones: list[Number] = [1] * (len(at) - 1)
        found = extract_slice(builder, operands[0], at, [_count(lanes), *ones], [1, *ones], frozenset(range(1, len(at))))
        sweep.bind(op.results, [_cast(lanes, found, lanes.lanes(op.result.type))], [True])
        return
    sweep.bind(op.results, _elements(lanes, op, operands, on), [True])


def _elements(lanes: Lanes, op: tensor.ExtractOp, operands: list[SSAValue], on: list[bool]) -> list[SSAValue]:
    """Elements at places that differ: a nest that reads the tensor by name."""
    if not on[0]:
        return over_lanes(lanes, op, operands, on)
    inputs = [v for v, flag in zip(operands[1:], on[1:]) if flag]
    kind = lanes.lanes(op.result.type)
    body = Block(arg_types=[*(element_of(v) for v in inputs), kind.element_type])
    inner = Builder(body, op.location)
    given = iter(body.args)
    here = inner(linalg.IndexOp, [], [INDEX], {"dim": IntegerAttr(0, i64)})
    at = [inner(arith.IndexCastOp, [next(given)], [INDEX]) if flag else v for v, flag in zip(operands[1:], on[1:])]
    inner.op(linalg.YieldOp, [inner(tensor.ExtractOp, [operands[0], here, *at], [op.result.type])])
    lane = AffineMap(1, 0, (AffineDimExpr(0),))
    return Nest(tuple(inputs), (empty(lanes, kind),), (lane,) * (len(inputs) + 1), (True,), body).emit(lanes.builder)


@structured(tensor.FromElementsOp)
def batch_from_elements(sweep: BatchSweep, op: tensor.FromElementsOp, builder: Builder) -> None:
    """The lanes of each element side by side; a scalar with lanes and a rank-0 tensor with lanes are the same."""
    if not any(sweep.has(v) for v in op.operands):
        builder.block.add_op(clone(op, sweep.values))
        return
    lanes = sweep.lanes(builder)
    if rank_of(op.result) == 0:
        sweep.bind(op.results, [sweep.value(op.operands[0])], [True])
        return
    columns = [lanes.t.reshape(sweep.with_lanes(builder, v), (lanes.n, 1)) for v in op.operands]
    flat = columns[0] if len(columns) == 1 else lanes.t.concatenate(columns, 1)
    sweep.bind(op.results, [lanes.t.reshape(flat, shape_of(lanes.lanes(op.result.type)))], [True])
