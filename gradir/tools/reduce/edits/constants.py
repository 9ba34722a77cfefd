"""Numbers: constants become 0 or 1, numbers in properties too, discardable attributes go."""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, DenseIntOrFPElementsAttr, IntegerAttr, ModuleOp, TensorType, VectorType, i64
from xdsl.ir import Attribute

from gradir.dialects.nd.creation import splat_attr
from gradir.dialects.types import i64_array
from gradir.tools.reduce.edits.edit import Choose, scalar
from gradir.tools.reduce.measure import CONSTANTS


def simplify_constants(module: ModuleOp, choose: Choose) -> None:
    """Each constant becomes 0, or else 1; of a list of numbers the first one is kept, or else."""
    for op in module.walk():
        if op.name not in CONSTANTS:
            continue
        value, kind = op.properties["value"], op.results[0].type
        for new in _simpler(op.name, value, kind):
            if new != value and choose():
                op.properties["value"] = new
                break


def _simpler(name: str, value: Attribute, kind: Attribute) -> list[Attribute]:
    """The values to try, simplest first."""
    number = getattr(getattr(value, "value", None), "data", None)
    numbers = [0, 1] if number not in (0, 1) else [0]
    if name == "nd.constant":
        element = cast("TensorType[Any]", kind).element_type
        found: list[Attribute] = [splat_attr(n, element) for n in numbers]
        if isinstance(value, DenseIntOrFPElementsAttr) and len(value) > 0:
            found.append(splat_attr(cast("Any", next(iter(value.iter_values()))), element))
        return found
    if isinstance(kind, TensorType | VectorType):
        shaped = cast("TensorType[Any] | VectorType[Any]", kind)
        elements = [scalar(shaped.element_type, n) for n in numbers]
        return [DenseIntOrFPElementsAttr.from_list(cast("Any", shaped), [e.value.data]) for e in elements if e is not None]
    return [new for n in numbers if (new := scalar(kind, n)) is not None]


def simplify_attributes(module: ModuleOp, choose: Choose) -> None:
    """Discardable attributes go; numbers and lists of numbers in properties become 0 or 1."""
    for op in module.walk():
        for name in list(op.attributes):
            if choose():
                del op.attributes[name]
        for name in ("arg_attrs", "res_attrs"):
            if isinstance(op.properties.get(name), ArrayAttr) and choose():
                del op.properties[name]
        if op.name in CONSTANTS:
            continue
        for name, value in list(op.properties.items()):
            for number in (0, 1):
                new = _filled(value, number)
                if new is not None and new != value and choose():
                    op.properties[name] = new


def _filled(value: Attribute, number: int) -> Attribute | None:
    if isinstance(value, DenseArrayBase) and value.elt_type == i64:
        return i64_array([number] * len(value))
    if isinstance(value, IntegerAttr):
        return IntegerAttr(number, cast("Any", value.type))
    return None
