"""Types, everywhere at once: one size becomes smaller, a run-time size a number, one element type another."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    NoneAttr,
    TensorType,
    VectorType,
    f32,
    i32,
    i64,
)
from xdsl.ir import Attribute, SSAValue

from gradir.dialects.nd.creation import splat_attr
from gradir.dialects.types import Dim, i64_array, shape_of, tensor
from gradir.tools.reduce.edits.edit import Choose

SHAPED = (TensorType, MemRefType, VectorType)

SizeMap = Callable[[Dim], Dim]
ElementMap = Callable[[Attribute], Attribute]


def smaller_sizes(module: ModuleOp, choose: Choose) -> None:
    """Each size that occurs in the types of the module becomes 1, 2 or half of it."""
    for size, new in _shrunk(module):
        if choose():
            substitute(module, sizes=lambda n, size=size, new=new: new if n == size else n)
            return


def smaller_sizes_and_numbers(module: ModuleOp, choose: Choose) -> None:
    """As `smaller_sizes`, and equal numbers in lists of numbers (limits of slices, windows) change with the size."""
    for size, new in _shrunk(module):
        if choose():
            substitute(module, sizes=lambda n, size=size, new=new: new if n == size else n, numbers=True)
            return


def named_sizes(module: ModuleOp, choose: Choose) -> None:
    """Each run-time size becomes 1, or else 2."""
    for name in dict.fromkeys(size for kind in _types(module) for size in _dims(kind) if not isinstance(size, int)):
        for new in (1, 2):
            if choose():
                substitute(module, sizes=lambda n, name=name, new=new: new if n == name else n)
                return


def simpler_elements(module: ModuleOp, choose: Choose) -> None:
    """Each float type becomes f32, each integer type i32, everywhere."""
    elements: dict[Attribute, None] = dict.fromkeys(kind.element_type if isinstance(kind, SHAPED) else kind for kind in _types(module))
    for element in elements:
        new: Attribute = f32 if isinstance(element, AnyFloat) else i32 if isinstance(element, IntegerType) else element
        if new != element and choose():
            substitute(module, elements=partial(_exchanged, element, new))
            return


def _exchanged(old: Attribute, new: Attribute, element: Attribute) -> Attribute:
    return new if element == old else element


def _shrunk(module: ModuleOp) -> list[tuple[int, int]]:
    sizes = dict.fromkeys(size for kind in _types(module) for size in _dims(kind) if isinstance(size, int) and size > 1)
    return [(size, new) for size in sorted(sizes, reverse=True) for new in dict.fromkeys((1, 2, 3, size // 2)) if 0 < new < size]


def _types(module: ModuleOp) -> list[Any]:
    values: list[SSAValue] = []
    for op in module.walk():
        values += op.results
        values += [argument for region in op.regions for block in region.blocks for argument in block.args]
    return list(dict.fromkeys(value.type for value in values))


def _dims(kind: Attribute) -> tuple[Dim, ...]:
    if isinstance(kind, TensorType):
        return shape_of(kind)
    if isinstance(kind, MemRefType | VectorType):
        return tuple(None if n == DYNAMIC_INDEX else n for n in kind.get_shape())
    return ()


def substitute(module: ModuleOp, *, sizes: SizeMap = lambda n: n, elements: ElementMap = lambda e: e, numbers: bool = False) -> None:
    """Map every size and element type of the module, in place; with `numbers` also those in lists of numbers."""
    mapping = _Mapping(sizes, elements, numbers)
    for op in module.walk():
        op.properties.update({name: mapping(value) for name, value in op.properties.items()})
        for result in op.results:
            result._type = mapping(result.type)  # xDSL has no setter
        for region in op.regions:
            for block in region.blocks:
                for argument in block.args:
                    argument._type = mapping(argument.type)


class _Mapping:
    def __init__(self, sizes: SizeMap, elements: ElementMap, numbers: bool) -> None:
        self.sizes, self.elements, self.numbers = sizes, elements, numbers

    def __call__(self, value: Attribute) -> Any:
        if isinstance(value, TensorType):
            return tensor(self(value.element_type), map(self.sizes, shape_of(value)))
        if isinstance(value, VectorType):
            return VectorType(self(value.element_type), [self.size(n) for n in value.get_shape()], value.scalable_dims)
        if isinstance(value, MemRefType):
            return MemRefType(self(value.element_type), [self.size(n) for n in value.get_shape()], value.layout, value.memory_space)
        if isinstance(value, FunctionType):
            return FunctionType.from_lists([self(t) for t in value.inputs.data], [self(t) for t in value.outputs.data])
        if isinstance(value, DenseIntOrFPElementsAttr):
            return self.dense(value)
        if isinstance(value, IntegerAttr | FloatAttr):
            kind = self.elements(value.type)
            return value if kind == value.type or isinstance(value.type, IndexType) else splat_attr(value.value.data, kind)
        if isinstance(value, DenseArrayBase) and self.numbers and value.elt_type == i64:
            return i64_array([n if not isinstance(new := self.sizes(n), int) else new for n in value.get_values()])
        if hasattr(value, "kind") and hasattr(value, "data") and not isinstance(value, NoneAttr):
            return self.resource(value)
        return self.elements(value) if isinstance(value, AnyFloat | IntegerType) else value

    def size(self, n: int) -> int:
        new = self.sizes(None if n == DYNAMIC_INDEX else n)
        return new if isinstance(new, int) else DYNAMIC_INDEX

    def dense(self, value: DenseIntOrFPElementsAttr[Any]) -> Attribute:
        """The first numbers, repeated if there are too few."""
        kind = self(value.type)
        if kind == value.type:
            return value
        if DYNAMIC_INDEX in kind.get_shape():
            raise ValueError("a constant has no run-time sizes")
        count = prod(kind.get_shape())
        given = list(value.get_values())
        floating = isinstance(kind.element_type, AnyFloat)
        cycled = [given[i % len(given)] for i in range(count)] if given else [0] * count
        return DenseIntOrFPElementsAttr.from_list(kind, [float(n) if floating else int(n) for n in cycled])

    def resource(self, value: Any) -> Attribute:
        """A large constant whose type changes is filled with one number."""
        kind = value.kind
        return value if not isinstance(kind, TensorType) or self(kind) == kind else splat_attr(1, self(kind).element_type)
