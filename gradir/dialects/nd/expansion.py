"""A small vocabulary in which composites write their expansions: one method per primitive, numbers become splat constants."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, TypeAlias

from xdsl.dialects.builtin import IntegerType, Signedness, f32, f64, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from gradir.dialects.ad import StopGradientOp
from gradir.dialects.nd import elementwise as el
from gradir.dialects.nd.base import emit
from gradir.dialects.nd.contraction import DotGeneralOp
from gradir.dialects.nd.creation import ConstantOp, IotaOp, SymbolOp
from gradir.dialects.nd.reduction import ReduceMaxOp, ReduceMinOp, ReduceSumOp
from gradir.dialects.nd.shape import BroadcastOp, DimOp, ReshapeOp, SliceOp, TransposeOp
from gradir.dialects.types import Shape, element_of, shape_of, tensor
from gradir.dialects.upstream.arith import IndexCastOp
from gradir.dialects.upstream.tensor import FromElementsOp

if TYPE_CHECKING:
    from gradir.ir.builder import Builder

Value: TypeAlias = SSAValue | float | int

_UI32, _UI64 = IntegerType(32, Signedness.UNSIGNED), IntegerType(64, Signedness.UNSIGNED)
_LIMITS: dict[Attribute, tuple[float, float]] = {
    f32: (3.4028234663852886e38, 1.1754943508222875e-38),
    f64: (1.7976931348623157e308, 2.2250738585072014e-308),
}


class Expansion:
    """Appends primitives to a builder's block. A Python number stands for a constant of the other operand's type."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def emit(self, op: Operation) -> SSAValue:
        """Append an op that a `make` gave; its result."""
        return emit(self.builder, op)

    # types
    def widen(self, x: SSAValue) -> SSAValue:
        """f16 and bf16 as f32; others unchanged."""
        return x if element_of(x) in _LIMITS else emit(self.builder, el.ConvertOp.make(x, f32))

    def narrow(self, x: SSAValue, kind: Attribute) -> SSAValue:
        """`x` in the element type of `kind`."""
        return x if x.type == kind else emit(self.builder, el.ConvertOp.make(x, element_of(kind)))

    def tiny(self, x: SSAValue) -> float:
        """The least normal number of the element type of `x`."""
        return _LIMITS[element_of(x)][1]

    # constants and shapes
    def fill(self, value: float | int, like: SSAValue) -> SSAValue:
        """A tensor like `like`, every element `value`."""
        kind = like.type
        if all(isinstance(n, int) for n in shape_of(like)):
            return emit(self.builder, ConstantOp.splat(value, kind))
        scalar = emit(self.builder, ConstantOp.splat(value, tensor(element_of(like))))
        return self.broadcast(scalar, (), shape_of(like))

    def sizes(self, shape: Shape) -> list[SSAValue]:
        """The run-time sizes of the named dimensions of `shape`, in order."""
        return [emit(self.builder, SymbolOp.make(n)) for n in shape if isinstance(n, str)]

    def broadcast(self, x: SSAValue, dims: Sequence[int], shape: Shape) -> SSAValue:
        """`x` repeated to `shape`; its dimension k is dimension dims[k] of the result."""
        return emit(self.builder, BroadcastOp.make(x, dims, shape, self.sizes(shape)))

    def spread(self, reduced: SSAValue, like: SSAValue, dims: Sequence[int]) -> SSAValue:
        """What was reduced over `dims`, repeated to the shape of `like`."""
        shape = shape_of(like)
        return self.broadcast(reduced, [d for d in range(len(shape)) if d not in dims], shape)

    def along(self, vector: SSAValue, like: SSAValue, dim: int) -> SSAValue:
        """A vector along dimension `dim` of `like`, repeated over the others."""
        return self.broadcast(vector, (dim,), shape_of(like))

    def element(self, vector: SSAValue, at: int) -> SSAValue:
        """One element of a vector, of rank 0."""
        piece = emit(self.builder, SliceOp.make(vector, (at,), (at + 1,)))
        return emit(self.builder, ReshapeOp.make(piece, ()))

    def reshape(self, x: SSAValue, shape: Shape) -> SSAValue:
        return emit(self.builder, ReshapeOp.make(x, shape))

    def transpose(self, x: SSAValue, perm: Sequence[int]) -> SSAValue:
        return emit(self.builder, TransposeOp.make(x, perm))

    def not_after(self, like: SSAValue, inner: int, outer: int) -> SSAValue:
        """`i[inner] <= i[outer]` at every position i of the shape of `like`."""
        kind, sizes = tensor(i32, shape_of(like)), self.sizes(shape_of(like))
        first, second = (emit(self.builder, IotaOp.make(kind, dim, sizes)) for dim in (inner, outer))
        return emit(self.builder, el.CompareOp.make("le", first, second))

    # elementwise
    def _pair(self, x: Value, y: Value) -> tuple[SSAValue, SSAValue]:
        if isinstance(x, SSAValue):
            return x, (y if isinstance(y, SSAValue) else self.fill(y, x))
        assert isinstance(y, SSAValue), "one operand is a value"
        return self.fill(x, y), y

    def _binary(self, kind: type[el.Binary], x: Value, y: Value) -> SSAValue:
        return emit(self.builder, kind.make(*self._pair(x, y)))

    def add(self, x: Value, y: Value) -> SSAValue:
        return self._binary(el.AddOp, x, y)

    def sub(self, x: Value, y: Value) -> SSAValue:
        return self._binary(el.SubOp, x, y)

    def mul(self, x: Value, y: Value) -> SSAValue:
        return self._binary(el.MulOp, x, y)

    def div(self, x: Value, y: Value) -> SSAValue:
        return self._binary(el.DivOp, x, y)

    def max(self, x: Value, y: Value) -> SSAValue:
        return self._binary(el.MaxOp, x, y)

    def exp(self, x: SSAValue) -> SSAValue:
        return emit(self.builder, el.ExpOp.make(x))

    def log(self, x: SSAValue) -> SSAValue:
        return emit(self.builder, el.LogOp.make(x))

    def abs(self, x: SSAValue) -> SSAValue:
        return emit(self.builder, el.AbsOp.make(x))

    def neg(self, x: SSAValue) -> SSAValue:
        return emit(self.builder, el.NegOp.make(x))

    def log1p(self, x: SSAValue) -> SSAValue:
        return emit(self.builder, el.Log1pOp.make(x))

    def min(self, x: Value, y: Value) -> SSAValue:
        return self._binary(el.MinOp, x, y)

    def sqrt(self, x: SSAValue) -> SSAValue:
        return emit(self.builder, el.SqrtOp.make(x))

    def tanh(self, x: SSAValue) -> SSAValue:
        return emit(self.builder, el.TanhOp.make(x))

    def erf(self, x: SSAValue) -> SSAValue:
        return emit(self.builder, el.ErfOp.make(x))

    def xor(self, x: Value, y: Value) -> SSAValue:
        return self._binary(el.XorOp, x, y)

    def rotate(self, x: SSAValue, bits: int) -> SSAValue:
        """The bits of a ui32 rotated to the left."""
        return self._binary(el.OrOp, self._binary(el.ShlOp, x, bits), self._binary(el.ShrUOp, x, 32 - bits))

    def multiply_wide(self, x: SSAValue, factor: int) -> tuple[SSAValue, SSAValue]:
        """The low and the high word of a ui32 times a constant."""
        wide, narrow = tensor(_UI64, shape_of(x)), x.type
        product = self.mul(self.narrow(x, wide), factor)
        return self.narrow(product, narrow), self.narrow(self._binary(el.ShrUOp, product, 32), narrow)

    def select(self, pred: SSAValue, on_true: SSAValue, on_false: Value) -> SSAValue:
        return emit(self.builder, el.SelectOp.make(pred, *self._pair(on_true, on_false)))

    # contractions and reductions
    def dot(
        self, x: SSAValue, y: SSAValue, *, batch: tuple[Sequence[int], Sequence[int]], contract: tuple[Sequence[int], Sequence[int]]
    ) -> SSAValue:
        """`nd.dot_general`: batch dimensions, what is left of x, what is left of y."""
        return emit(self.builder, DotGeneralOp.make(x, y, *contract, *batch))

    def count(self, x: SSAValue, dims: Sequence[int], like: SSAValue) -> SSAValue:
        """How many elements `x` has along `dims`, as a tensor like `like`."""
        shape = [shape_of(x)[d] for d in dims]
        found = self.fill(prod(n for n in shape if isinstance(n, int)), like)
        for d, n in zip(dims, shape):
            if not isinstance(n, int):
                size = self.builder(IndexCastOp, (emit(self.builder, DimOp.make(x, d)),), (i64,))
                scalar = self.narrow(self.builder(FromElementsOp, (size,), (tensor(i64),)), tensor(element_of(like)))
                found = self.mul(found, self.broadcast(scalar, (), shape_of(like)))
        return found

    def standardized(self, x: SSAValue, dims: Sequence[int], epsilon: float) -> tuple[SSAValue, SSAValue, SSAValue]:
        """`(x - mean) / sqrt(var + epsilon)`, mean and (biased) variance over `dims`; of a constant group exactly 0."""
        # h = (x - top) / 2 cannot overflow, z = h / s lies in [-1, 0]
        # neither result depends on top and s, so no derivative runs through them
        top = self.constant_in_ad(self.reduce_max(x, dims))
        least = self.constant_in_ad(self.reduce_min(x, dims))
        h = self.sub(self.mul(x, 0.5), self.spread(self.mul(top, 0.5), x, dims))
        floor = max(epsilon**0.5 / 2, self.tiny(x))
        s = self.max(self.sub(self.mul(top, 0.5), self.mul(least, 0.5)), floor)
        z = self.mul(h, self.spread(self.div(1.0, s), x, dims))  # the rounding of 1 / s cancels: it scales z and its deviation alike
        count = self.count(x, dims, s)
        middle = self.div(self.sum(z, dims), count)
        centred = self.sub(z, self.spread(middle, x, dims))
        variance = self.div(self.sum(self.mul(centred, centred), dims), count)
        # (x - mean) / sqrt(var + eps) == centred / sqrt(variance + eps / (2 s)**2)
        root = self.sqrt(self.max(self.add(variance, self.div(self.div(self.fill(epsilon / 4, s), s), s)), self.tiny(x)))
        mean = self.add(self.mul(self.mul(middle, s), 2.0), top)
        # a / root == a * (1 / root) up to one more rounding: one division a row
        return self.mul(centred, self.spread(self.div(1.0, root), x, dims)), mean, self.mul(self.mul(self.mul(variance, s), s), 4.0)

    def sum(self, x: SSAValue, dims: Sequence[int]) -> SSAValue:
        return emit(self.builder, ReduceSumOp.make(x, dims))

    def reduce_max(self, x: SSAValue, dims: Sequence[int]) -> SSAValue:
        return emit(self.builder, ReduceMaxOp.make(x, dims))

    def reduce_min(self, x: SSAValue, dims: Sequence[int]) -> SSAValue:
        return emit(self.builder, ReduceMinOp.make(x, dims))

    def constant_in_ad(self, x: SSAValue) -> SSAValue:
        """`x`, through which no derivative runs: the result that it helps to compute does not depend on it."""
        return emit(self.builder, StopGradientOp.make(x))

    def finite_max(self, x: SSAValue, dims: Sequence[int], also_above: bool = False) -> SSAValue:
        """The maximum over `dims`, at least the least finite number (so that -inf - max is -inf) and, if asked, at most the greatest."""
        greatest = _LIMITS[element_of(x)][0]
        top = self.max(self.reduce_max(x, dims), -greatest)
        if also_above:
            top = self._binary(el.MinOp, top, greatest)
        return self.constant_in_ad(top)

    def one_hot(self, labels: SSAValue, like: SSAValue, classes: int) -> SSAValue:
        """`result[n, c] = clamp(labels[n]) == c`, shaped like `like` [N, C]."""
        wide = i64 if element_of(labels) in (i64, _UI32, _UI64) else i32
        shape = shape_of(like)
        numbers = labels if element_of(labels) == _UI64 else self.narrow(labels, tensor(wide, shape_of(labels)))
        inside = emit(self.builder, el.ClampOp.make(self.fill(0, numbers), numbers, self.fill(classes - 1, numbers)))
        inside = self.narrow(inside, tensor(wide, shape_of(labels)))
        positions = emit(self.builder, IotaOp.make(tensor(wide, shape), 1, self.sizes(shape)))
        return emit(self.builder, el.CompareOp.make("eq", self.broadcast(inside, (0,), shape), positions))
