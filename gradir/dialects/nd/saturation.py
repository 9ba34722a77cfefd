"""What `nd.convert .. saturate` means in other ops: a clamp to what the result's type holds, then a cast that cannot overflow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float8E4M3FNType,
    Float8E5M2Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    f32,
    f64,
)
from xdsl.ir import Attribute, SSAValue

from gradir.dialects.nd.base import emit
from gradir.dialects.nd.comparison import ClampOp
from gradir.dialects.nd.elementwise import ConvertOp
from gradir.dialects.nd.expansion import Expansion
from gradir.dialects.types import element_of, is_unsigned

if TYPE_CHECKING:
    from gradir.ir.builder import Builder

LARGEST: dict[type[Attribute], float] = {
    Float64Type: 1.7976931348623157e308,
    Float32Type: 3.4028234663852886e38,
    BFloat16Type: 3.3895313892515355e38,
    Float16Type: 65504.0,
    Float8E5M2Type: 57344.0,
    Float8E4M3FNType: 448.0,
}
"""The greatest finite number of a float type."""


def saturated(op: ConvertOp, builder: Builder, x: SSAValue) -> SSAValue:
    """`x` in the element type of the result, what is beyond its largest number as that one; NaN stays NaN.

    Floats are clamped in f32 or f64, which hold them exactly; integers as integers.
    """
    source, target = element_of(x), element_of(op.result)
    most = LARGEST[type(target)]
    e = Expansion(builder)
    if isinstance(source, IntegerType):
        width = source.width.data
        least = 0 if is_unsigned(source) or width == 1 else -int(most)
        if width > 1 and most < 2.0 ** (width if is_unsigned(source) else width - 1):
            x = emit(builder, ClampOp.make(e.fill(least, x), x, e.fill(int(most), x)))
    else:
        wide = f64 if f64 in (source, target) else f32
        x = x if source == wide else emit(builder, ConvertOp.make(x, wide))
        x = emit(builder, ClampOp.make(e.fill(-most, x), x, e.fill(most, x)))
    return x if element_of(x) == target else emit(builder, ConvertOp.make(x, target))
