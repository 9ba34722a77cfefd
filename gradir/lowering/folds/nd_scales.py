"""Scales of the channels of a product move into its constant weights: batch normalisation at inference, learned or fixed temperatures.

    sum_k x[m, k] w[k, n] * s[n]  ==  sum_k x[m, k] (w[k, n] * s[n])        for real numbers

The sides round differently, so this is done only in functions that ask for `fastmath="fast"` (docs/numerics.md, row `fastmath`), and only
where weights and scale are constants: otherwise the scale stays where it costs nothing, in the kernel's epilogue. What is added per channel
stays there as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue

from gradir.dialects.nd.contraction import DotGeneralOp
from gradir.dialects.nd.convolution import ConvGeneralOp
from gradir.dialects.nd.creation import ConstantOp
from gradir.dialects.nd.elementwise import MulOp
from gradir.dialects.nd.shape import BroadcastOp, TransposeOp
from gradir.dialects.types import element_of, is_float, numpy_dtype, rank_of
from gradir.lowering.folds.nd_values import FOLDED_LIMIT, Values, place, splat
from gradir.lowering.folds.table import Folder, Rule

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FASTMATH = "gradir.fastmath"


def scale_into_weights(op: Any, folder: Folder) -> Values:
    """(x * w) s -> x * (w s), of a contraction or convolution with constant w and a constant s per channel, also behind a transpose."""
    if not is_float(element_of(op.result)) or numpy_dtype(element_of(op.result)).itemsize < 4:
        return None
    for product, scale in ((op.operands[0], op.operands[1]), (op.operands[1], op.operands[0])):
        inner, perm = _behind_transpose(product)
        if not isinstance(inner, DotGeneralOp | ConvGeneralOp) or not inner.results[0].has_one_use() or not _is_fast(op):
            continue
        factors = _factors(scale)
        if factors is None:
            continue
        array, dims = factors
        moved = _scaled(inner, array, [perm[d] for d in dims], folder)
        if moved is not None:
            return [moved if perm == tuple(range(len(perm))) else place(folder, TransposeOp.make(moved, perm))]
    return None


def _behind_transpose(value: SSAValue) -> tuple[Operation | None, tuple[int, ...]]:
    """The op that makes `value`, or makes what is transposed to it for nobody else, and the permutation."""
    owner = value.owner if isinstance(value.owner, Operation) else None
    if isinstance(owner, TransposeOp) and value.has_one_use():
        perm = owner.numbers("perm")
        inner = owner.operand.owner
        return (inner if isinstance(inner, Operation) else None), perm
    return owner, tuple(range(rank_of(value)))


def _factors(scale: SSAValue) -> tuple[NDArray[Any], tuple[int, ...]] | None:
    """A constant scale as an array over some of the dimensions, and which; None of anything else, or of numbers that are not finite."""
    import numpy as np  # lazy: programs without such scales never pay for numpy

    number = splat(scale)
    if number is not None:
        return (np.asarray(number, numpy_dtype(element_of(scale))), ()) if isfinite(number) else None
    op = scale.owner
    dims: tuple[int, ...] = tuple(range(rank_of(scale)))
    if isinstance(op, BroadcastOp):
        dims, op = op.numbers("dims"), op.operand.owner
    if not isinstance(op, ConstantOp):
        return None
    array = np.asarray(op.evaluate())
    return (array, dims) if np.isfinite(array).all() else None


def _scaled(op: DotGeneralOp | ConvGeneralOp, factors: NDArray[Any], dims: Sequence[int], folder: Folder) -> SSAValue | None:
    """`op` with the factors, which go along dimensions `dims` of its result, in its weights; None where they do not fit."""
    sides = _dot_sides(op) if isinstance(op, DotGeneralOp) else {1: {rank_of(op.results[0]) - 1: rank_of(op.rhs) - 1}}
    for side, place_of in sides.items():
        weights = op.operands[side].owner
        fits = isinstance(weights, ConstantOp) and not weights.is_splat and all(d in place_of for d in dims)
        if not fits or element_of(op.operands[side]) != element_of(op.results[0]) or not op.operands[side].has_one_use():
            continue
        known = cast("ConstantOp", weights).evaluate()
        if known.size > FOLDED_LIMIT:
            continue
        order = sorted(range(len(dims)), key=lambda k: place_of[dims[k]])
        shape = [1] * known.ndim
        for d in dims:
            shape[place_of[d]] = known.shape[place_of[d]]
        product = (known * factors.transpose(order).reshape(shape)).astype(known.dtype)
        operands = list(op.operands)
        operands[side] = place(folder, ConstantOp.make(product))
        return folder.new(type(op), operands, [op.results[0].type], op.properties).results[0]
    return None


def _dot_sides(op: DotGeneralOp) -> dict[int, dict[int, int]]:
    """For rhs and lhs: dimension of the result -> dimension of the operand, of batch and free dimensions."""
    batch = len(op.numbers("lhs_batch"))
    left, right = op.free_dims()
    lhs = {**dict(enumerate(op.numbers("lhs_batch"))), **{batch + k: d for k, d in enumerate(left)}}
    rhs = {**dict(enumerate(op.numbers("rhs_batch"))), **{batch + len(left) + k: d for k, d in enumerate(right)}}
    return {1: rhs, 0: lhs}


def _is_fast(op: Operation) -> bool:
    """Is `op` in a function whose arithmetic may be reassociated?"""
    parent = op.parent_op()
    while parent is not None:
        setting = parent.attributes.get(_FASTMATH)
        if isinstance(setting, StringAttr):
            return setting.data == "fast"
        parent = parent.parent_op()
    return False


FOLDS: dict[type[Operation], Rule] = {MulOp: scale_into_weights}

__all__ = ["FOLDS"]
