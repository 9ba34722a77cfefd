"""What the rules of `split-complex` are written with: the pair of real tensors that each complex value became, and real arithmetic.

A rule takes the state and an op and gives, per result, a value or a pair. It appends to `builder`; the pass puts that in the op's place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from xdsl.dialects.builtin import IntegerAttr, TensorType, f32
from xdsl.ir import Attribute, Operation, SSAValue

from gradir.dialects import nd
from gradir.dialects.nd.expansion import Expansion, Value
from gradir.dialects.text import INDEX
from gradir.dialects.types import element_of, is_complex, real_of, shape_of, tensor
from gradir.dialects.upstream import arith
from gradir.ir.builder import Builder

Pair: TypeAlias = tuple[SSAValue, SSAValue]
Rule: TypeAlias = "Callable[[Parts, Any], Sequence[SSAValue | Pair]]"

LARGEST = {32: 3.4028234663852886e38, 64: 1.7976931348623157e308}
EPSILON = {32: 2.0**-23, 64: 2.0**-52}


def is_complex_type(kind: Attribute) -> bool:
    """Whether this is a tensor of complex numbers."""
    return isinstance(kind, TensorType) and is_complex(kind.element_type)


def real_type(kind: Attribute) -> Attribute:
    """The type of one part of a complex tensor; other types are their own."""
    return tensor(real_of(element_of(kind)), shape_of(kind)) if is_complex_type(kind) else kind


class Parts(Expansion):
    """`pairs` maps every complex value seen so far to its parts; the methods append real ops."""

    def __init__(self, builder: Builder, pairs: dict[SSAValue, Pair]) -> None:
        super().__init__(builder)
        self.pairs = pairs

    def pair(self, value: SSAValue) -> Pair:
        """The parts of a complex value."""
        return self.pairs[value]

    def again(self, op: Operation, part: int) -> SSAValue:
        """The same op on that part of its complex operands."""
        operands = [self.pairs[value][part] if value in self.pairs else value for value in op.operands]
        types = [real_type(result.type) for result in op.results]
        return self.builder.op(type(op), operands, types, op.properties, (), op.attributes).results[0]

    def bits(self, x: SSAValue) -> int:
        """32 or 64."""
        return 32 if element_of(x) == f32 else 64

    def zero(self, like: SSAValue) -> SSAValue:
        """0 everywhere, in the type of `like`."""
        return self.fill(0.0, like)

    # -- real arithmetic

    def unary(self, kind: type[nd.Unary], x: SSAValue) -> SSAValue:
        return self.emit(kind.make(x))

    def neg(self, x: SSAValue) -> SSAValue:
        return self.emit(nd.NegOp.make(x))

    def abs(self, x: SSAValue) -> SSAValue:
        return self.emit(nd.AbsOp.make(x))

    def sin(self, x: SSAValue) -> SSAValue:
        return self.emit(nd.SinOp.make(x))

    def cos(self, x: SSAValue) -> SSAValue:
        return self.emit(nd.CosOp.make(x))

    def log1p(self, x: SSAValue) -> SSAValue:
        return self.emit(nd.Log1pOp.make(x))

    def min(self, x: Value, y: Value) -> SSAValue:
        return self._binary(nd.MinOp, x, y)

    def atan2(self, y: Value, x: Value) -> SSAValue:
        return self._binary(nd.Atan2Op, y, x)

    def product(self, x: Value, y: Value) -> SSAValue:
        """`x * y` where 0 wins over infinity."""
        return self._binary(nd.MulStrongOp, x, y)

    def both(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.emit(nd.AndOp.make(x, y))

    def either(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.emit(nd.OrOp.make(x, y))

    def compare(self, direction: str, x: Value, y: Value) -> SSAValue:
        return self.emit(nd.CompareOp.make(direction, *self._pair(x, y)))

    def choose(self, pred: SSAValue, on_true: Value, on_false: Value) -> SSAValue:
        return self.emit(nd.SelectOp.make(pred, *self._pair(on_true, on_false)))

    def is_negative(self, x: SSAValue) -> SSAValue:
        """The sign bit: -0 counts. Where x is 0, 1 / x tells its sign."""
        return self.either(self.compare("lt", x, 0.0), self.compare("lt", self.div(1.0, x), 0.0))

    def copysign(self, size: SSAValue, sign: SSAValue) -> SSAValue:
        """`size`, which is not negative, with the sign of `sign`."""
        return self.choose(self.is_negative(sign), self.neg(size), size)

    def is_infinite(self, x: SSAValue) -> SSAValue:
        return self.emit(nd.IsInfOp.make(x))

    def scaled(self, x: SSAValue, y: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue, SSAValue]:
        """`(|x|, |y|, m, q)` with `m = max(|x|, |y|)` and `hypot(x, y) = m * q`, q in [1, sqrt 2]."""
        ax, ay = self.abs(x), self.abs(y)
        large, small = self.max(ax, ay), self.min(ax, ay)
        ratio = self.choose(self.compare("eq", large, small), 1.0, self.div(small, large))  # 0 / 0 and inf / inf are of equals
        return ax, ay, large, self.sqrt(self.add(self.mul(ratio, ratio), 1.0))

    def hypot(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """`sqrt(x**2 + y**2)` without overflow on the way; an infinity wins over NaN."""
        _, _, large, factor = self.scaled(x, y)
        either = self.either(self.is_infinite(x), self.is_infinite(y))
        return self.choose(either, float("inf"), self.mul(large, factor))


def index_constant(parts: Parts, value: int) -> SSAValue:
    """A number of type index."""
    return parts.builder(arith.ConstantOp, (), (INDEX,), {"value": IntegerAttr(value, INDEX)})


def partwise(parts: Parts, op: Operation) -> Sequence[Pair]:
    """`op(x + iy) = op(x) + i op(y)`: linear ops with real coefficients, and ops that move elements."""
    return [(parts.again(op, 0), parts.again(op, 1))]
