"""Constants, iota and ops that move elements by static rules."""

from __future__ import annotations

import math

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, DenseResourceAttr
from xdsl.ir import Attribute, Operation

from gradir.dialects import nd
from gradir.dialects.types import element_of, numpy_dtype, rank_of, static_shape
from gradir.frontends.stablehlo.conversion import Conversion, Rule, UnsupportedError, Values, broadcast, reshape, transpose
from gradir.frontends.stablehlo.dialect import attribute, number, numbers, resource


def elements(conversion: Conversion, value: Attribute | None, kind: Attribute) -> np.ndarray:
    """The elements of a dense attribute, as an array."""
    data = value.data.data if isinstance(value, DenseIntOrFPElementsAttr) else None
    if isinstance(value, DenseResourceAttr):
        data = resource(conversion.context, value.resource_handle.data)
        if data is None:
            raise UnsupportedError(f"dense_resource<{value.resource_handle.data}> has no data: the text was printed without it")
    if data is None:
        raise UnsupportedError(f"a constant that is {value}, not dense<..>")
    found = np.frombuffer(data, numpy_dtype(element_of(kind)))
    if found.size != math.prod(static_shape(kind)):
        raise UnsupportedError(f"a constant of {found.size} elements, its type is {kind}")
    return found.reshape(static_shape(kind))


def constant(conversion: Conversion, op: Operation) -> Values:
    """The elements as they are spelled, bit by bit."""
    kind = op.results[0].type
    value = attribute(op, "value")
    if isinstance(value, DenseIntOrFPElementsAttr) and 0 not in static_shape(kind) and value.is_splat():
        first = np.frombuffer(value.data.data, numpy_dtype(element_of(kind)), count=1)
        return [conversion.emit(nd.ConstantOp.splat(first[0].item(), kind))]
    made = nd.ConstantOp.make(elements(conversion, value, kind), copy=False)
    return [conversion.emit(made)]


def iota(conversion: Conversion, op: Operation) -> Values:
    """Positions along one dimension."""
    return [conversion.emit(nd.IotaOp.make(op.results[0].type, number(op, "iota_dimension")))]  # pyright: ignore[reportArgumentType]  a tensor


def reshape_op(conversion: Conversion, op: Operation) -> Values:
    """The same elements in row-major order."""
    (operand,) = conversion.operands(op)
    return [reshape(conversion, operand, static_shape(op.results[0]))]


def transpose_op(conversion: Conversion, op: Operation) -> Values:
    """Result dim i is operand dim permutation[i]."""
    (operand,) = conversion.operands(op)
    return [transpose(conversion, operand, numbers(op, "permutation") or ())]


def broadcast_in_dim(conversion: Conversion, op: Operation) -> Values:
    """Operand dim k becomes result dim broadcast_dimensions[k]."""
    (operand,) = conversion.operands(op)
    return [broadcast(conversion, operand, numbers(op, "broadcast_dimensions") or (), static_shape(op.results[0]))]


def slice_op(conversion: Conversion, op: Operation) -> Values:
    """`operand[start:limit:stride]`"""
    starts, limits, strides = (numbers(op, name) for name in ("start_indices", "limit_indices", "strides"))
    (operand,) = conversion.operands(op)
    return [conversion.emit(nd.SliceOp.make(operand, starts or (), limits or (), strides or (1,) * rank_of(operand)))]


def pad(conversion: Conversion, op: Operation) -> Values:
    """Padding at the edges and between elements; negative padding removes."""
    operand, value = conversion.operands(op)
    low, high, interior = (numbers(op, name) or () for name in ("edge_padding_low", "edge_padding_high", "interior_padding"))
    if not any((*low, *high, *interior)):
        return [operand]
    return [conversion.emit(nd.PadOp.make(operand, value, low, high, interior))]


def concatenate(conversion: Conversion, op: Operation) -> Values:
    """One after the other along a dimension."""
    inputs = conversion.operands(op)
    return inputs if len(inputs) == 1 else [conversion.emit(nd.ConcatenateOp.make(inputs, number(op, "dimension")))]


def reverse(conversion: Conversion, op: Operation) -> Values:
    """Back to front along some dimensions."""
    dims = numbers(op, "dimensions") or ()
    operands = conversion.operands(op)
    return [conversion.emit(nd.ReverseOp.make(operands[0], dims))] if dims else operands


RULES: dict[str, Rule] = {
    "stablehlo.constant": constant,
    "stablehlo.iota": iota,
    "stablehlo.reshape": reshape_op,
    "stablehlo.transpose": transpose_op,
    "stablehlo.broadcast_in_dim": broadcast_in_dim,
    "stablehlo.slice": slice_op,
    "stablehlo.pad": pad,
    "stablehlo.concatenate": concatenate,
    "stablehlo.reverse": reverse,
}
