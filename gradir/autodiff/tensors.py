"""A small vocabulary for writing rules: level-1 ops with inferred types.

`t.mul_strong(ct, y)` reads like the equation in a rule's docstring. Types of elementwise results follow the first operand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerAttr, IntegerType, StringAttr, TensorType, i1, i64
from xdsl.ir import Attribute, Operation, SSAValue

from gradir.autodiff import scalars
from gradir.dialects import nd
from gradir.dialects.nd.creation import splat_attr
from gradir.dialects.nd.shape import TO_END, padded_shape
from gradir.dialects.types import Dim, complex_of, element_of, i64_array, is_complex, is_unsigned, real_of, segments, shape_of, tensor
from gradir.dialects.upstream import arith, linalg, tensor as upstream_tensor
from gradir.errors import GradirError
from gradir.ir.builder import Builder
from gradir.ir.passes import error_at

INDEX = IndexType()


def is_differentiable(kind: Attribute) -> bool:
    """Whether a value of this type can carry a derivative: tensors and scalars of floats."""
    if not isinstance(kind, TensorType):
        return isinstance(kind, AnyFloat)
    return not isinstance(kind.element_type, IntegerType | IndexType)


def known_sizes(op: Operation, value: SSAValue) -> tuple[int, ...]:
    """The sizes of `value`, which the derivative of `op` needs as numbers. Raises GradirError AD008 when one is named."""
    shape = shape_of(value)
    sizes = tuple(n for n in shape if isinstance(n, int))
    if len(sizes) == len(shape):
        return sizes
    raise needs_static_sizes(op, "static dimensions", value)


def named_size(op: Operation, value: SSAValue, dim: int) -> int | str:
    """The size of one dimension of `value`, a number or a name. Raises GradirError AD008 when it has neither."""
    size = shape_of(value)[dim]
    if size is None:
        raise needs_static_sizes(op, "sizes that are numbers or have names", value)
    return size


def needs_static_sizes(op: Operation, expected: str, value: SSAValue) -> GradirError:
    """The error AD008 for `value`, which has a dimension that the derivative of `op` cannot do without."""
    return error_at(op, "this derivative needs static sizes", part="autodiff", code="AD008", expected=expected, found=str(value.type))


def like(x: SSAValue, element: Attribute) -> Attribute:
    """The type of `x` with another element type; of a scalar, that type."""
    return tensor(element, shape_of(x)) if isinstance(x.type, TensorType) else element


class TensorBuilder:
    """Emits nd ops into `builder`; on scalars, the ops of `arith` and `math` of the same meaning."""

    def __init__(self, builder: Builder, *, strong: bool = True) -> None:
        self.builder = builder
        self.strong = strong

    def emit(self, kind: type[Operation], operands: Sequence[SSAValue], result: Attribute, /, **properties: Attribute) -> Any:
        if operands and scalars.is_scalar(result) and scalars.is_scalar(operands[0].type) and kind in scalars.KINDS:
            return scalars.emit(self.builder, kind, operands, result, properties)
        return self.builder(kind, operands, [result], properties)

    # creation ------------------------------------------------------------------------------------------------------

    def full(self, value: float, kind: Attribute) -> SSAValue:
        """A tensor of type `kind` filled with `value`; run-time sizes come from their symbols. A scalar of a scalar type."""
        if not isinstance(kind, TensorType):
            return scalars.constant(self.builder, value, kind)
        elem = kind.element_type
        attr: Attribute = splat_attr(value, elem)
        shape = shape_of(kind)
        if all(isinstance(n, int) for n in shape):
            return self.emit(nd.ConstantOp, [], kind, value=attr)
        scalar = self.emit(nd.ConstantOp, [], tensor(elem, ()), value=attr)
        return self.emit(nd.BroadcastOp, [scalar, *self.sizes(shape)], kind, dims=i64_array(()))

    def sizes(self, shape: Sequence[int | str | None]) -> list[SSAValue]:
        """The run-time sizes of `shape`, one index per named dimension."""
        return [self.emit(nd.SymbolOp, [], INDEX, sym=StringAttr(n)) for n in shape if isinstance(n, str)]

    def position(self, at: int | str) -> SSAValue:
        """A place along a dimension, a number or computed from sizes, as the rank-0 tensor that dynamic slices start at."""
        kind = tensor(i64, ())
        if isinstance(at, int):
            return self.emit(nd.ConstantOp, [], kind, value=IntegerAttr(at, i64))
        size = self.emit(nd.SymbolOp, [], INDEX, sym=StringAttr(at))
        return self.emit(upstream_tensor.FromElementsOp, [self.emit(arith.IndexCastOp, [size], i64)], kind)

    def full_size(self, size: int | str, kind: Attribute) -> SSAValue:
        """A tensor of integer type `kind` filled with a size, or with the largest number of the type if that is less."""
        element = element_of(kind)
        assert isinstance(element, IntegerType)
        largest = (1 << (element.width.data - (0 if is_unsigned(element) else 1))) - 1
        if isinstance(size, int):
            return self.full(min(size, largest), kind)
        number = self.position(size)
        if element.width.data < 64:
            number = self.binary(nd.MinOp, number, self.full(largest, number.type))
        return self.broadcast(self.convert(number, element), kind, ())

    def part(self, x: SSAValue, start: Sequence[int | str], sizes: Sequence[Dim]) -> SSAValue:
        """The slice of these sizes, which lies inside of `x`."""
        op = nd.DynamicSliceOp.make(x, [self.position(at) for at in start], sizes)
        return self.emit(nd.DynamicSliceOp, list(op.operands), op.result.type, **op.properties)

    def put(self, part: SSAValue, into: SSAValue, start: Sequence[int | str]) -> SSAValue:
        """`into` with the slice from `start` on replaced by `part`."""
        return self.emit(nd.DynamicUpdateSliceOp, [into, part, *(self.position(at) for at in start)], into.type)

    def full_like(self, value: float, reference: SSAValue) -> SSAValue:
        return self.full(value, reference.type)

    def zeros(self, kind: Attribute) -> SSAValue:
        return self.full(0.0, kind)

    def zeros_as(self, value: SSAValue, kind: Attribute) -> SSAValue:
        """Zeros of type `kind`, which has the shape of `value`: where its sizes have no names, `value` is asked."""
        if not isinstance(kind, TensorType) or None not in shape_of(kind):
            return self.zeros(kind)
        sizes: list[SSAValue] = []
        for d, size in enumerate(shape_of(kind)):
            if not isinstance(size, int):
                at = self.builder(arith.ConstantOp, [], [INDEX], {"value": IntegerAttr(d, INDEX)})
                sizes.append(self.builder(upstream_tensor.DimOp, [value, at], [INDEX]))
        zero = scalars.constant(self.builder, 0.0, element_of(kind))
        empty = self.builder(upstream_tensor.EmptyOp, sizes, [kind])
        return self.builder(linalg.FillOp, [zero, empty], [kind], {"operandSegmentSizes": segments(1, 1)})

    def iota(self, kind: Attribute, dim: int) -> SSAValue:
        return self.emit(nd.IotaOp, self.sizes(shape_of(kind)), kind, dim=IntegerAttr(dim, i64))

    # elementwise ---------------------------------------------------------------------------------------------------

    def unary(self, kind: type[Operation], x: SSAValue) -> SSAValue:
        return self.emit(kind, [x], x.type)

    def binary(self, kind: type[Operation], x: SSAValue, y: SSAValue) -> SSAValue:
        return self.emit(kind, [x, y], x.type)

    def neg(self, x: SSAValue) -> SSAValue:
        return self.unary(nd.NegOp, x)

    def add(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.binary(nd.AddOp, x, y)

    def sub(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.binary(nd.SubOp, x, y)

    def mul(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.binary(nd.MulOp, x, y)

    def div(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.binary(nd.DivOp, x, y)

    def mul_strong(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """0 * anything = 0, unless this builder was told that products are plain."""
        return self.binary(nd.MulStrongOp if self.strong else nd.MulOp, x, y)

    def scale(self, x: SSAValue, factor: float) -> SSAValue:
        """`factor * x` for a finite factor other than 0: an ordinary product."""
        return self.mul(x, self.full_like(factor, x))

    def abs(self, x: SSAValue) -> SSAValue:
        """|x|, real of complex x."""
        return self.emit(nd.AbsOp, [x], like(x, real_of(element_of(x))))

    def real(self, x: SSAValue) -> SSAValue:
        """The real part; a real tensor as it is."""
        return self.emit(nd.RealOp, [x], tensor(real_of(element_of(x)), shape_of(x))) if is_complex(element_of(x)) else x

    def imag(self, x: SSAValue) -> SSAValue:
        """The imaginary part of a complex tensor."""
        return self.emit(nd.ImagOp, [x], tensor(real_of(element_of(x)), shape_of(x)))

    def complex(self, re: SSAValue, im: SSAValue) -> SSAValue:
        """re + im * i"""
        return self.emit(nd.ComplexOp, [re, im], tensor(complex_of(element_of(re)), shape_of(re)))

    def compare(self, direction: str, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.emit(nd.CompareOp, [x, y], like(x, i1), direction=nd.DirectionAttr(nd.Direction(direction)))

    def is_nan(self, x: SSAValue) -> SSAValue:
        return self.compare("ne", x, x)

    def logical_or(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.binary(nd.OrOp, x, y)

    def logical_and(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.binary(nd.AndOp, x, y)

    def logical_not(self, x: SSAValue) -> SSAValue:
        return self.unary(nd.NotOp, x)

    def select(self, pred: SSAValue, on_true: SSAValue, on_false: SSAValue) -> SSAValue:
        return self.emit(nd.SelectOp, [pred, on_true, on_false], on_true.type)

    def where(self, pred: SSAValue, x: SSAValue) -> SSAValue:
        """`x` where `pred`, 0 elsewhere."""
        return self.select(pred, x, self.zeros(x.type))

    def convert(self, x: SSAValue, elem: Attribute) -> SSAValue:
        return x if element_of(x) == elem else self.emit(nd.ConvertOp, [x], like(x, elem))

    # shapes --------------------------------------------------------------------------------------------------------

    def broadcast(self, x: SSAValue, kind: Attribute, dims: Sequence[int]) -> SSAValue:
        """Operand dim k becomes result dim `dims[k]`."""
        shape = shape_of(kind)
        if shape == shape_of(x) and tuple(dims) == tuple(range(len(shape))):
            return x
        return self.emit(nd.BroadcastOp, [x, *self.sizes(shape)], kind, dims=i64_array(tuple(dims)))

    def transpose(self, x: SSAValue, perm: Sequence[int]) -> SSAValue:
        """Result dim k is operand dim `perm[k]`."""
        if tuple(perm) == tuple(range(len(perm))):
            return x
        shape = shape_of(x)
        return self.emit(nd.TransposeOp, [x], tensor(element_of(x), tuple(shape[p] for p in perm)), perm=i64_array(tuple(perm)))

    def reshape(self, x: SSAValue, shape: Sequence[int | str | None]) -> SSAValue:
        if tuple(shape) == shape_of(x):
            return x
        return self.emit(nd.ReshapeOp, [x], tensor(element_of(x), tuple(shape)))

    def reverse(self, x: SSAValue, dims: Sequence[int]) -> SSAValue:
        return self.emit(nd.ReverseOp, [x], x.type, dims=i64_array(tuple(dims))) if dims else x

    def slice(self, x: SSAValue, start: Sequence[int], limit: Sequence[int], stride: Sequence[int] | None = None) -> SSAValue:
        """Every `stride`-th element of `start <= i < limit`; a limit of `TO_END` takes a run-time dimension to its end."""
        stride = tuple(stride) if stride is not None else (1,) * len(start)
        whole = all(hi in (n, TO_END) for n, hi in zip(shape_of(x), limit))
        if whole and not any(start) and set(stride) <= {1}:
            return x
        kind = tensor(element_of(x), nd.SliceOp.result_shape(shape_of(x), start, limit, stride))
        arrays = {"start": i64_array(tuple(start)), "limit": i64_array(tuple(limit)), "stride": i64_array(stride)}
        return self.emit(nd.SliceOp, [x], kind, **arrays)

    def pad(self, x: SSAValue, value: float, low: Sequence[int], high: Sequence[int], interior: Sequence[int] | None = None) -> SSAValue:
        """StableHLO's pad: `interior` first, then edges, which may be negative."""
        interior = tuple(interior) if interior is not None else (0,) * len(low)
        if not any(low) and not any(high) and not any(interior):
            return x
        shape = padded_shape(shape_of(x), low, high, interior)
        fill = self.full(value, tensor(element_of(x), ()))
        arrays = {"low": i64_array(tuple(low)), "high": i64_array(tuple(high)), "interior": i64_array(interior)}
        return self.emit(nd.PadOp, [x, fill], tensor(element_of(x), shape), **arrays)

    def concatenate(self, inputs: Sequence[SSAValue], dim: int) -> SSAValue:
        kind = tensor(element_of(inputs[0]), nd.ConcatenateOp.result_shape(inputs, dim))
        return self.emit(nd.ConcatenateOp, list(inputs), kind, dim=IntegerAttr(dim, i64))

    # reductions and contractions -----------------------------------------------------------------------------------

    def reduce(self, kind: type[Operation], x: SSAValue, dims: Sequence[int]) -> SSAValue:
        shape = tuple(n for k, n in enumerate(shape_of(x)) if k not in dims)
        return self.emit(kind, [x], tensor(element_of(x), shape), dims=i64_array(tuple(dims))) if dims else x

    def sum(self, x: SSAValue, dims: Sequence[int]) -> SSAValue:
        return self.reduce(nd.ReduceSumOp, x, dims)

    def expand(self, x: SSAValue, kind: Attribute, reduced: Sequence[int]) -> SSAValue:
        """Undo a reduction's shape: `x` repeated along the `reduced` dims of `kind`."""
        rank = len(shape_of(kind))
        return self.broadcast(x, tensor(element_of(x), shape_of(kind)), [k for k in range(rank) if k not in reduced])

    def dot_general(
        self,
        lhs: SSAValue,
        rhs: SSAValue,
        contract: tuple[Sequence[int], Sequence[int]],
        batch: tuple[Sequence[int], Sequence[int]],
        elem: Attribute,
    ) -> SSAValue:
        """Result dims: batch, free dims of lhs, free dims of rhs."""
        (lc, rc), (lb, rb) = contract, batch
        left, right = shape_of(lhs), shape_of(rhs)
        shape = (
            *(left[k] for k in lb),
            *(n for k, n in enumerate(left) if k not in lc and k not in lb),
            *(n for k, n in enumerate(right) if k not in rc and k not in rb),
        )
        arrays = {"lhs_batch": lb, "rhs_batch": rb, "lhs_contract": lc, "rhs_contract": rc}
        return self.emit(nd.DotGeneralOp, [lhs, rhs], tensor(elem, shape), **{k: i64_array(tuple(v)) for k, v in arrays.items()})

    # indexing ------------------------------------------------------------------------------------------------------

    def index_at(self, x: SSAValue, at: SSAValue, dim: int = 0) -> SSAValue:
        shape = shape_of(x)
        kind = tensor(element_of(x), shape[:dim] + shape[dim + 1 :])
        return self.emit(nd.IndexAtOp, [x, at], kind, dim=IntegerAttr(dim, i64))

    def update_at(self, value: SSAValue, into: SSAValue, at: SSAValue, dim: int = 0) -> SSAValue:
        return self.emit(nd.UpdateAtOp, [value, into, at], into.type, dim=IntegerAttr(dim, i64))
