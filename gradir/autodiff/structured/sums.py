"""The sum of all elements of a tensor, as a scalar."""

from __future__ import annotations

from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineMap

from gradir.autodiff.reverse.cotangents import accumulator_type
from gradir.autodiff.tensors import TensorBuilder
from gradir.dialects.nests import Nest
from gradir.dialects.types import element_of, shape_of, tensor
from gradir.dialects.upstream import linalg, tensor as tensors
from gradir.ir.builder import Builder


def total(t: TensorBuilder, x: SSAValue) -> SSAValue:
    """The sum of `x`, f16 and bf16 in f32."""
    rank = len(shape_of(x))
    kind = accumulator_type(element_of(x))
    if rank == 0:
        return t.convert(t.builder(tensors.ExtractOp, [x], [element_of(x)]), kind)
    block = Block(arg_types=[element_of(x), kind])
    inner = TensorBuilder(Builder(block, t.builder.loc))
    inner.builder.op(linalg.YieldOp, [inner.add(block.args[1], inner.convert(block.args[0], kind))])
    start = t.zeros(tensor(kind))
    maps = (AffineMap.identity(rank), AffineMap(rank, 0, ()))
    (found,) = Nest((x,), (start,), maps, (False,) * rank, block).emit(t.builder)
    return t.builder(tensors.ExtractOp, [found], [kind])
