"""Predicates that are read through a broadcast become part of the bodies that read them (part of `fuse`).

A mask of positions is one for all batches and heads, so it shares no space with its readers, and no group takes it in. Stored, it is a byte
an element that is read one by one; computed where it is read, it is a comparison of vectors.
"""

from __future__ import annotations

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, IntegerAttr, i1, i64
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr

from gradir.dialects.types import element_of, segments
from gradir.dialects.upstream import arith, linalg
from gradir.lowering.groups import is_generic
from gradir.lowering.groups.loops import pure_dims

MOST_OPS = 6
"""Ops of a body that is cheap enough to run for each reader."""


def inline_predicates(block: Block) -> None:
    """Write every cheap predicate that has a smaller space than its reader into the reader's body."""
    for op in list(block.ops):
        if isinstance(op, linalg.GenericOp) and is_generic(op) and op.results and _is_cheap(op):
            while (found := _broadcast_use(op, block)) is not None:
                _inline(op, *found)
            if op.results[0].first_use is None:
                op.detach()
                op.erase()


def _is_cheap(op: linalg.GenericOp) -> bool:
    maps = [m.data for m in op.indexing_maps.data]
    loops = pure_dims(maps[-1])
    parallel = all(t.data is linalg.IteratorType.PARALLEL for t in op.iterator_types.data)
    body = list(op.body.block.ops)
    return (
        element_of(op.results[0]) == i1
        and parallel
        and loops is not None
        and sorted(loops) == list(range(maps[0].num_dims))
        and len(body) <= MOST_OPS
        and not any(o.regions or o.name.startswith("math.") or o.name.startswith("tensor.") for o in body)
        and op.body.block.args[-1].first_use is None
    )


def _broadcast_use(op: linalg.GenericOp, block: Block) -> tuple[linalg.GenericOp, int] | None:
    """A reader to write the predicate into, and which of its operands that is."""
    for use in op.results[0].uses:
        reader = use.operation
        if isinstance(reader, linalg.GenericOp) and is_generic(reader) and reader.parent is block and _is_broadcast(op, reader, use.index):
            return reader, use.index
    return None


def _is_broadcast(op: linalg.GenericOp, reader: linalg.GenericOp, index: int) -> bool:
    """Does the reader, elementwise, see each element of the predicate several times?"""
    if index >= len(reader.inputs) or any(t.data is not linalg.IteratorType.PARALLEL for t in reader.iterator_types.data):
        return False
    read = reader.indexing_maps.data[index].data
    plain = all(isinstance(e, AffineDimExpr | AffineConstantExpr) for e in read.results)
    return plain and len(read.used_dims()) < read.num_dims and reader.results[0].type != op.results[0].type


def _inline(op: linalg.GenericOp, reader: linalg.GenericOp, index: int) -> None:
    """`reader(.., op(x), ..)` in one body: the operands of `op` follow those of the reader, read where it reads the predicate."""
    read = reader.indexing_maps.data[index].data
    own = [m.data for m in op.indexing_maps.data]
    loops = pure_dims(own[-1])
    assert loops is not None
    place: list[AffineExpr] = [AffineConstantExpr(0)] * own[0].num_dims
    for position, loop in enumerate(loops):
        place[loop] = read.results[position]
    moved = [m.replace_dims_and_symbols(place, [], read.num_dims, 0) for m in own[:-1]]
    count = len(reader.inputs)
    body, first = reader.body.block, reader.body.block.first_op
    assert first is not None
    mapping: dict[SSAValue, SSAValue] = {}
    for k, argument in enumerate(op.body.block.args[:-1]):
        mapping[argument] = body.insert_arg(argument.type, count + k)
    for inner in op.body.block.ops:
        if isinstance(inner, linalg.YieldOp):
            body.args[index].replace_all_uses_with(mapping.get(inner.operands[0], inner.operands[0]))
            continue
        new = _index(place[inner.dim.value.data], inner) if isinstance(inner, linalg.IndexOp) else inner.clone(mapping)
        new.location = inner.location
        body.insert_op_before(new, first)
        mapping.update(zip(inner.results, new.results))
    maps = [m.data for m in reader.indexing_maps.data]
    kept = [k for k in range(count) if k != index]
    body.erase_arg(body.args[index])
    reader.operands = [*(reader.operands[k] for k in kept), *op.inputs, *reader.outputs]
    reader.properties["operandSegmentSizes"] = segments(count - 1 + len(moved), 1)
    reader.properties["indexing_maps"] = ArrayAttr([AffineMapAttr(m) for m in (*(maps[k] for k in kept), *moved, *maps[count:])])


def _index(expr: AffineExpr, like: linalg.IndexOp) -> linalg.IndexOp | arith.ConstantOp:
    """The reader's index at which the predicate is read."""
    if isinstance(expr, AffineConstantExpr):
        return arith.ConstantOp.create(properties={"value": IntegerAttr(expr.value, like.result.type)}, result_types=[like.result.type])
    assert isinstance(expr, AffineDimExpr)
    return linalg.IndexOp.create(properties={"dim": IntegerAttr(expr.position, i64)}, result_types=[like.result.type])
