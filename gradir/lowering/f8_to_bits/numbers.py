"""From the bits of an 8-bit float to f32 and back, in level-1 ops on integers.

The magnitude of an f8 number, moved to the top of f32's mantissa, is the same number but for the bias of its exponent: one exact product
gives f32, denormals included. Back: nearest even, not saturating (docs/numerics.md, "f8 overflow").
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import Float8E4M3FNType, Float8E5M2Type, Float64Type, f32, f64, i8, i32
from xdsl.ir import Attribute, SSAValue

from gradir.dialects import nd
from gradir.dialects.nd.expansion import Expansion
from gradir.dialects.types import element_of

_F32_MANTISSA, _F32_BIAS, _F32_INF = 23, 127, 0x7F800000


@dataclass(frozen=True)
class Format:
    """An 8-bit float: bits of its mantissa, bias, and the magnitudes that spell infinity (None) and the first NaN."""

    mantissa: int
    bias: int
    inf: int | None
    nan: int

    @property
    def shift(self) -> int:
        """How far its mantissa ends above that of f32."""
        return _F32_MANTISSA - self.mantissa


FORMATS: dict[type[Attribute], Format] = {
    Float8E4M3FNType: Format(3, 7, None, 0x7F),
    Float8E5M2Type: Format(2, 15, 0x7C, 0x7E),
}


def format_of(element: Attribute) -> Format | None:
    """The format of an 8-bit float type, None of any other type."""
    return FORMATS.get(type(element))


class Numbers(Expansion):
    """Appends conversions of whole tensors to a builder's block."""

    def to(self, x: SSAValue, element: Attribute) -> SSAValue:
        """`nd.convert`"""
        return x if element_of(x) == element else self.emit(nd.ConvertOp.make(x, element))

    def _op(self, kind: type[nd.Binary], x: SSAValue, y: SSAValue | int) -> SSAValue:
        return self.emit(kind.make(x, y if isinstance(y, SSAValue) else self.fill(y, x)))

    def _test(self, direction: str, x: SSAValue, y: SSAValue | float) -> SSAValue:
        return self.emit(nd.CompareOp.make(direction, x, y if isinstance(y, SSAValue) else self.fill(y, x)))

    def _bits(self, x: SSAValue, element: Attribute) -> SSAValue:
        return self.emit(nd.BitcastConvertOp.make(x, element))

    def widened(self, bits: SSAValue, f: Format) -> SSAValue:
        """The numbers in f32, exactly."""
        whole = self.to(bits, i32)
        size = self._op(nd.AndOp, whole, 0x7F)
        exact = self.mul(self._bits(self._op(nd.ShlOp, size, f.shift), f32), 2.0 ** (_F32_BIAS - f.bias))
        magnitude = self._bits(exact, i32)
        if f.inf is not None:
            magnitude = self.select(self._test("eq", size, f.inf), self.fill(_F32_INF, size), magnitude)
        first_nan = f.nan if f.inf is None else f.inf + 1
        magnitude = self.select(self._test("ge", size, first_nan), self.fill(0x7FC00000, size), magnitude)
        sign = self._op(nd.ShlOp, self._op(nd.AndOp, whole, 0x80), 24)
        return self._bits(self._op(nd.OrOp, magnitude, sign), f32)

    def narrowed(self, x: SSAValue, f: Format) -> SSAValue:
        """The bits of the nearest 8-bit floats, one rounding from f64, f32 and integers."""
        single = self._bits(self._to_odd(x), i32) if isinstance(element_of(x), Float64Type) else self._bits(self.to(x, f32), i32)
        size = self._op(nd.AndOp, single, 0x7FFFFFFF)
        # normal results: rebias, round the dropped bits to nearest even by an addition that may carry into the exponent
        odd = self._op(nd.AndOp, self._op(nd.ShrUOp, size, f.shift), 1)
        rebias = ((f.bias - _F32_BIAS) << _F32_MANTISSA) + (1 << (f.shift - 1)) - 1
        normal = self._op(nd.ShrSOp, self._op(nd.AddOp, self._op(nd.AddOp, size, rebias), odd), f.shift)
        # denormal results: adding a number whose last place is the least denormal rounds to a multiple of it
        magic = 2.0 ** (1 - f.bias - f.mantissa + _F32_MANTISSA)
        moved = self._bits(self.add(self._bits(size, f32), magic), i32)
        denormal = self._op(nd.SubOp, moved, self._bits(self.fill(magic, self._bits(size, f32)), i32))
        least_normal = (_F32_BIAS + 1 - f.bias) << _F32_MANTISSA
        found = self.select(self._test("lt", size, least_normal), denormal, normal)
        found = self._op(nd.MinOp, found, f.nan if f.inf is None else f.inf)
        found = self.select(self._test("gt", size, _F32_INF), self.fill(f.nan, size), found)
        sign = self._op(nd.AndOp, self._op(nd.ShrUOp, single, 24), 0x80)
        return self.to(self._op(nd.OrOp, found, sign), i8)

    def _to_odd(self, x: SSAValue) -> SSAValue:
        """f64 in f32, rounded toward zero with the last bit set where that is not exact: a second rounding cannot undo it."""
        nearest = self.to(x, f32)
        back = self.to(nearest, f64)
        inexact = self._test("ne", back, x)
        above = self._test("gt", self.emit(nd.AbsOp.make(back)), self.emit(nd.AbsOp.make(x)))
        bits = self._bits(nearest, i32)
        toward_zero = self.select(above, self._op(nd.SubOp, bits, 1), bits)
        usable = self.emit(nd.AndOp.make(inexact, self._test("eq", x, x)))
        return self._bits(self.select(usable, self._op(nd.OrOp, toward_zero, 1), bits), f32)
