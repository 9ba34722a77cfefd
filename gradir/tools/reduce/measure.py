"""What is smaller? The order in which a reduction makes progress, so that it ends."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    Float32Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    ShapedType,
)
from xdsl.ir import Attribute, Operation

CONSTANTS = ("nd.constant", "arith.constant")
"""Ops that stand for what was removed."""

Measure = tuple[int, int, int, int, int, int, int]


def measure(module: ModuleOp, text: str) -> Measure:
    """Computing ops, all ops, values, sizes, types, numbers in constants and attributes, length of the text."""
    ops = computing = values = sizes = types = numbers = 0
    for op in module.walk():
        ops += 1
        computing += op.name not in CONSTANTS
        numbers += sum(map(_number_cost, op.properties.values()))
        for kind in _types(op):
            values += 1
            types += _type_cost(kind)
            sizes += sum(size if size >= 0 else 1000 for size in kind.get_shape()) if isinstance(kind, ShapedType) else 0
    return computing, ops, values, sizes, types, numbers, len(text)


def _types(op: Operation) -> Iterator[Attribute]:
    for result in op.results:
        yield result.type
    for region in op.regions:
        for block in region.blocks:
            for argument in block.args:
                yield argument.type


def _type_cost(kind: Attribute) -> int:
    """f32, i32 and index are simplest; each dimension, each name and each other element type costs."""
    if isinstance(kind, ShapedType):
        element: Attribute = kind.element_type  # pyright: ignore[reportAttributeAccessIssue]  (every shaped type has one)
        encoding = getattr(kind, "encoding", None)
        return _type_cost(element) + kind.get_num_dims() + (encoding is not None and bool(getattr(encoding, "data", ())))
    if isinstance(kind, IntegerType):
        return 0 if kind.width.data == 32 else 1 if kind.width.data == 1 else 2
    return 0 if isinstance(kind, Float32Type) else 3 if isinstance(kind, BFloat16Type) else 2


def _number_cost(value: Attribute) -> int:
    if isinstance(value, IntegerAttr | FloatAttr):
        return 0 if value.value.data == 0 else 1 if value.value.data == 1 else 2
    if isinstance(value, DenseArrayBase):
        return sum(0 if number == 0 else 1 if number == 1 else 2 for number in value.get_values())
    if isinstance(value, DenseIntOrFPElementsAttr):
        return 3 if value.is_splat() else 4
    return 4
