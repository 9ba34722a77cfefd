"""Types of quantized numbers, `!quant.uniform<i8<-127:127>:f32:1, {0.5:1, 0.25}>`: the integer that is stored, the float that is meant.

MLIR's quant dialect is not read otherwise: the type stays text until it is asked for here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import IntegerType, Signedness, TensorType, UnregisteredAttr
from xdsl.ir import Attribute

from gradir.dialects.nd.quantization import WHOLE
from gradir.dialects.types import element_type, is_float, is_integer, shape_of, tensor

_TYPE = re.compile(r"([iu])(\d+)(?:<(-?\d+):(-?\d+)>)?:(\w+)(?::(\d+))?,\s*(.+)", re.S)
_FLOATS = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16"}


@dataclass(frozen=True)
class QuantizedType:
    """`range` is empty where it is that of the storage type; `scales` and `zeros` are one number, or one per index of `axis`."""

    storage: Attribute
    expressed: Attribute
    axis: int
    range: tuple[int, ...]
    scales: tuple[float, ...]
    zeros: tuple[int, ...]


def quantized(element: Attribute) -> QuantizedType | None:
    """What an element type says; None of any other type, and of quantized ones that level 1 cannot hold (i4, sub-channels)."""
    if not isinstance(element, UnregisteredAttr) or element.attr_name.data != "quant.uniform":
        return None
    match = _TYPE.fullmatch(element.value.data.strip())
    if match is None or match[5] not in _FLOATS:
        return None
    storage = IntegerType(int(match[2]), Signedness.UNSIGNED if match[1] == "u" else Signedness.SIGNLESS)
    expressed = element_type(_FLOATS[match[5]])
    if not is_integer(storage) or not is_float(expressed):
        return None
    pairs = [pair.strip().partition(":") for pair in match[7].strip("{} ").split(",")]
    axis = WHOLE if match[6] is None else int(match[6])
    limits = () if match[3] is None else (int(match[3]), int(match[4]))
    try:
        scales, zeros = tuple(float(scale) for scale, _, _ in pairs), tuple(int(zero or "0") for _, _, zero in pairs)
    except ValueError:
        return None
    return QuantizedType(storage, expressed, axis, limits, scales, zeros)


def stored_type(kind: Attribute) -> Attribute:
    """The tensor of integers that stands for a tensor of quantized numbers; any other type as it is."""
    found = quantized(cast("TensorType[Attribute]", kind).element_type) if isinstance(kind, TensorType) else None
    return kind if found is None else tensor(found.storage, shape_of(kind))
