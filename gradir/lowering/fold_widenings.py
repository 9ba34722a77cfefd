"""Products read their factors as they lie in memory: a cast to a wider type before a contraction moves into its body.

    extf(a) @ extf(b)   ==   contraction of a and b whose body widens both

For a GPU only, where tensor cores multiply the narrow type exactly and add up the wide one, and half the bytes are read. On a CPU a
factor is converted once instead of for every tile that reads it.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, TensorType
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineMap

from gradir.dialects.target import CudaTargetAttr
from gradir.dialects.upstream import arith, linalg
from gradir.lowering.groups import is_generic, loops_of
from gradir.lowering.schedules.gpu_contraction import has_instruction

_WIDENINGS = (arith.ExtFOp, arith.ExtSIOp)


def fold_widenings(block: Block, target: CudaTargetAttr) -> None:
    """Fold the casts of both factors of every contraction of `block` that then runs on tensor cores."""
    for op in _contractions(block):
        casts = [widening_of(v) for v in op.inputs]
        elements = {_element(cast.inputs[0] if cast is not None else v) for cast, v in zip(casts, op.inputs)}
        if len(elements) == 1 and has_instruction(elements.pop(), _element(op.results[0]), target):
            for position, cast in enumerate(casts):
                if cast is not None:
                    fold(op, position, cast)


def _contractions(block: Block) -> Iterator[linalg.GenericOp]:
    for op in list(block.ops):
        if isinstance(op, linalg.GenericOp) and is_generic(op) and len(op.inputs) == 2:
            loops = loops_of(op)
            if loops.multiplies and loops.is_reduction:
                yield op


def _element(value: SSAValue) -> str:
    return str(value.type.element_type) if isinstance(value.type, TensorType) else ""


def widening_of(value: SSAValue) -> linalg.GenericOp | None:
    """The nest that does nothing but widen each element of one tensor to make `value`."""
    op = value.owner
    if not isinstance(op, linalg.GenericOp) or not is_generic(op) or len(op.inputs) != 1:
        return None
    body = list(op.body.block.ops)
    if len(body) != 2 or not isinstance(body[0], _WIDENINGS) or body[0].operands[0] is not op.body.block.args[0]:
        return None
    maps = [m.data for m in op.indexing_maps.data]
    plain = isinstance(op.inputs[0].type, TensorType) and maps[1] == AffineMap.identity(maps[1].num_dims)
    return op if plain and body[1].operands[0] is body[0].results[0] else None


def fold(op: linalg.GenericOp, position: int, cast: linalg.GenericOp) -> None:
    """Let `op` read what `cast` (its operand `position`) reads, and widen it itself; a cast that nobody reads any more goes."""
    source = cast.inputs[0]
    maps = list(op.indexing_maps.data)
    old = maps[position].data
    through = cast.indexing_maps.data[0].data.replace_dims_and_symbols(list(old.results), [], old.num_dims, 0)
    maps[position] = AffineMapAttr(through)
    op.properties["indexing_maps"] = ArrayAttr(maps)
    op.operands[position] = source
    block = op.body.block
    before = block.args[position]
    (widening, _) = cast.body.block.ops
    assert isinstance(source.type, TensorType)
    after = block.insert_arg(source.type.element_type, position)
    new = type(widening).create(
        operands=[after], result_types=[widening.results[0].type], properties=widening.properties, location=widening.location
    )
    first = block.first_op
    assert first is not None
    block.insert_op_before(new, first)
    before.replace_all_uses_with(new.results[0])
    block.erase_arg(before)
    if cast.results[0].first_use is None:
        cast.detach()
        cast.erase()
