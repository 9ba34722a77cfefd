"""Building ops of level 2: loop nests over views, empty and filled tensors, slices.

A nest reads each distinct (base, index) once; scalars and iotas become constants and `linalg.index` in the body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    BFloat16Type,
    Float16Type,
    IntegerType,
    i64,
)
from xdsl.ir import Attribute, Block, Region, SSAValue

from gradir.dialects.types import Dim, Shape, element_of, i64_array, i64_attr, reassociation, segments, shape_of, tensor
from gradir.dialects.upstream import arith, linalg, tensor as tensors
from gradir.ir.builder import Builder
from gradir.lowering.convert_nd_to_linalg.conversions import convert, widen
from gradir.lowering.convert_nd_to_linalg.elements import compute_type, lowered, number, number_of
from gradir.lowering.convert_nd_to_linalg.scalars import INDEX, Scalars, index_constant
from gradir.lowering.convert_nd_to_linalg.views import Iota, Linear, View, dim, dims, map_attr

Offset: TypeAlias = "int | SSAValue"
NestBody: TypeAlias = Callable[[Scalars, list[SSAValue], SSAValue], SSAValue]
"""`body(scalars, elements of the inputs, accumulator)` -> the new element."""

_PARALLEL = linalg.IteratorTypeAttr.parallel()
_REDUCTION = linalg.IteratorTypeAttr.reduction()


@lru_cache(None)
def iterators(kinds: str) -> ArrayAttr[Any]:
    """`"ppr"` as iterator types."""
    return ArrayAttr([_REDUCTION if k == "r" else _PARALLEL for k in kinds])


@lru_cache(1 << 10)
def _maps(rank: int, indices: tuple[tuple[Linear, ...], ...]) -> ArrayAttr[Any]:
    return ArrayAttr([map_attr(rank, index) for index in indices])


def upright(inputs: Sequence[View], kinds: str) -> Sequence[View]:
    """The views with reduction loops turned around that are only ever walked backwards: an extent must be readable off some operand.

    sum over k of a[c - k] b[i + k] == sum over k of a[k] b[i + c - k]
    """
    forms = [form for view in inputs if view.is_tensor for form in view.index]
    turned: dict[int, Linear] = {}
    for loop, kind in enumerate(kinds):
        if kind != "r" or any(form.dim == loop for form in forms):
            continue
        backwards = [form.const for form in forms if form.terms == ((loop, -1),)]
        if backwards:
            turned[loop] = dim(loop, -1, max(backwards))
    if not turned:
        return inputs
    over = [turned.get(loop, dim(loop)) for loop in range(len(kinds))]
    return [view.over(over) for view in inputs]


class Nests:
    """Emits level-2 ops with `self.builder`; `size_of` gives the run-time value of a named size, `index` a constant index."""

    def __init__(self, builder: Builder, size_of: Callable[[Dim], SSAValue], index: Callable[[int], SSAValue]) -> None:
        self.builder = builder
        self.size_of = size_of
        self.index = index

    def empty(self, element: Attribute, shape: Shape) -> SSAValue:
        """A tensor without contents; `element` is of level 1."""
        sizes = [self.size_of(n) for n in shape if not isinstance(n, int)]
        return self.builder(tensors.EmptyOp, sizes, (tensor(lowered(element), shape),))

    def filled(self, element: Attribute, shape: Shape, value: float) -> SSAValue:
        """The accumulator of a reduction: every element `value`."""
        destination = self.empty(element, shape)
        scalar = self.builder(arith.ConstantOp, (), (lowered(element),), {"value": number(value, lowered(element))})
        return self.builder(linalg.FillOp, (scalar, destination), (destination.type,), {"operandSegmentSizes": segments(1, 1)})

    def nest(
        self,
        inputs: Sequence[View],
        element: Attribute,
        shape: Shape,
        body: NestBody,
        *,
        kinds: str | None = None,
        out: Sequence[int] | None = None,
        init: float | None = None,
        compute: bool = True,
        unsigned: bool = False,
        windows: Sequence[int] = (),
        share: bool = True,
    ) -> SSAValue:
        """One `linalg.generic` with a result of `element` (level 1) and `shape`; the indices of `inputs` are in its loops.

        `kinds` ("p", "r") and `out` (loop of each output dimension) default to elementwise. `init` is what a reduction starts from.
        `compute`: narrow floats are widened when read and rounded when written. `windows` are loops (after all others of `kinds`) whose
        extents no operand tells: they get a shape-only operand. `share`: equal operands are read once.
        """
        kinds = kinds if kinds is not None else "p" * len(shape)
        out_index = dims(*(out if out is not None else range(len(shape))))
        inputs = upright(inputs, kinds)
        destination = self.empty(element, shape) if init is None else self.filled(element, shape, init)
        operands: list[SSAValue] = []
        indices: list[tuple[Linear, ...]] = []
        slots: list[int | None] = []
        for view in inputs:
            slots.append(self._operand(view, operands, indices, share) if view.is_tensor else None)
        if windows:
            operands.append(self.builder(tensors.EmptyOp, (), (tensor(lowered(element), windows),)))
            indices.append(dims(*range(len(kinds) - len(windows), len(kinds))))
        types = [element_of(v) for v in operands]
        block = Block(arg_types=[*types, lowered(element)])
        inner = self.builder.nested(block)
        scalars = Scalars(inner, unsigned)
        xs = [block.args[slot] if slot is not None else self._scalar(scalars, view, compute) for slot, view in zip(slots, inputs)]
        if compute:
            xs = [widen(scalars, x) for x in xs]
        value = body(scalars, xs, block.args[-1])
        if compute and isinstance(lowered(element), Float16Type | BFloat16Type):
            value = scalars.to(arith.TruncFOp, value, lowered(element))
        inner(linalg.YieldOp, (value,))
        return self.builder(
            linalg.GenericOp,
            (*operands, destination),
            (destination.type,),
            {
                "indexing_maps": _maps(len(kinds), (*indices, out_index)),
                "iterator_types": iterators(kinds),
                "operandSegmentSizes": segments(len(operands), 1),
            },
            regions=(Region(block),),
        )

    @staticmethod
    def _operand(view: View, operands: list[SSAValue], indices: list[tuple[Linear, ...]], share: bool) -> int:
        assert isinstance(view.base, SSAValue)
        for slot, (base, index) in enumerate(zip(operands, indices)):
            if share and base is view.base and index == view.index:
                return slot
        operands.append(view.base)
        indices.append(view.index)
        return len(operands) - 1

    def _scalar(self, s: Scalars, view: View, compute: bool) -> SSAValue:
        """An element of a view that is not in memory, inside a body."""
        if isinstance(view.base, SSAValue):
            return view.base
        if isinstance(view.base, Iota):
            return iota_element(s, view)
        type_ = compute_type(view.element) if compute else lowered(view.element)
        return s.constant(number_of(view.base), type_)

    def elementwise(
        self,
        inputs: Sequence[View],
        element: Attribute,
        shape: Shape,
        body: Callable[..., SSAValue],
        *,
        compute: bool = True,
        unsigned: bool = False,
    ) -> SSAValue:
        """A nest over `shape` whose body is `body(scalars, *elements)`."""
        return self.nest(inputs, element, shape, lambda s, xs, _: body(s, *xs), compute=compute, unsigned=unsigned)

    def copy(self, view: View, shape: Shape) -> SSAValue:
        """The elements of a view in memory, in their own order."""
        return self.nest([view], view.element, shape, lambda _, xs, __: xs[0], compute=False)

    def cast(self, value: SSAValue, source: Attribute, target: Attribute) -> SSAValue:
        """A tensor in another level-1 element type."""
        if source == target:
            return value
        shape = shape_of(value)
        view = View(value, dims(*range(len(shape))), source)
        return self.nest([view], target, shape, lambda s, xs, _: convert(s, xs[0], source, target), compute=False)

    def extract_slice(
        self, source: SSAValue, offsets: Sequence[Offset], sizes: Shape, strides: Sequence[int], drop: Sequence[int] = ()
    ) -> SSAValue:
        """`source[offsets][sizes][strides]`; the dimensions `drop` (of size 1) disappear from the type."""
        operands, properties = self._slice(offsets, sizes, strides)
        kept = [n for d, n in enumerate(sizes) if d not in drop]
        counts = properties.pop("counts")
        return self.builder(
            tensors.ExtractSliceOp,
            (source, *operands),
            (tensor(element_of(source), kept),),
            {**properties, "operandSegmentSizes": segments(1, *counts)},
        )

    def insert_slice(self, value: SSAValue, into: SSAValue, offsets: Sequence[Offset], sizes: Shape, strides: Sequence[int]) -> SSAValue:
        """`into` with `[offsets][sizes][strides]` replaced by `value`, which may lack dimensions of size 1."""
        operands, properties = self._slice(offsets, sizes, strides)
        counts = properties.pop("counts")
        return self.builder(
            tensors.InsertSliceOp,
            (value, into, *operands),
            (into.type,),
            {**properties, "operandSegmentSizes": segments(1, 1, *counts)},
        )

    def _slice(self, offsets: Sequence[Offset], sizes: Shape, strides: Sequence[int]) -> tuple[list[SSAValue], dict[str, Any]]:
        dynamic = [o for o in offsets if not isinstance(o, int)]
        counts = [self.size_of(n) for n in sizes if not isinstance(n, int)]
        return [*dynamic, *counts], {
            "static_offsets": i64_array(o if isinstance(o, int) else DYNAMIC_INDEX for o in offsets),
            "static_sizes": i64_array(n if isinstance(n, int) else DYNAMIC_INDEX for n in sizes),
            "static_strides": i64_array(strides),
            "counts": (len(dynamic), len(counts), 0),
        }

    def collapse(self, source: SSAValue, groups: Sequence[Sequence[int]], shape: Shape) -> SSAValue:
        """Neighbouring dimensions become one; no copy."""
        return self.builder(
            tensors.CollapseShapeOp, (source,), (tensor(element_of(source), shape),), {"reassociation": reassociation(groups)}
        )

    def expand(self, source: SSAValue, groups: Sequence[Sequence[int]], shape: Shape) -> SSAValue:
        """Dimensions become several; no copy."""
        sizes = [self.size_of(n) for n in shape if not isinstance(n, int)]
        static = i64_array(n if isinstance(n, int) else DYNAMIC_INDEX for n in shape)
        return self.builder(
            tensors.ExpandShapeOp,
            (source, *sizes),
            (tensor(element_of(source), shape),),
            {"reassociation": reassociation(groups), "static_output_shape": static},
        )

    def add(self, a: Offset, b: Offset) -> SSAValue:
        """The sum of two indices."""
        return self.builder(arith.AddiOp, (self._value(a), self._value(b)), (INDEX,))

    def minus(self, a: Offset, b: Offset) -> SSAValue:
        """The difference of two indices."""
        return self.builder(arith.SubiOp, (self._value(a), self._value(b)), (INDEX,))

    def last(self, size: SSAValue) -> SSAValue:
        """`size - 1`"""
        return self.builder(arith.SubiOp, (size, self.index(1)), (INDEX,))

    def _value(self, offset: Offset) -> SSAValue:
        return self.index(offset) if isinstance(offset, int) else offset

    def mirrored(self, source: SSAValue, from_end: dict[int, SSAValue], element: Attribute) -> SSAValue:
        """`source` read backwards along the dimensions of `from_end`, which holds their last indices."""
        shape = shape_of(source)

        def body(s: Scalars, _: list[SSAValue], __: SSAValue) -> SSAValue:
            at = [linear_index(s, form) for form in dims(*range(len(shape)))]
            at = [s.i(arith.SubiOp, from_end[d], i) if d in from_end else i for d, i in enumerate(at)]
            return s.builder(tensors.ExtractOp, (source, *at), (lowered(element),))

        return self.nest([], element, shape, body, compute=False)


def linear_index(s: Scalars, form: Linear) -> SSAValue:
    """A linear form of the loops as an index value in the body."""
    total: SSAValue | None = None
    for d, c in form.terms:
        term = s.builder(linalg.IndexOp, (), (INDEX,), {"dim": i64_attr(d)})
        if c != 1:
            term = s.i(arith.MuliOp, term, index_constant(s.builder, c))
        total = term if total is None else s.i(arith.AddiOp, total, term)
    if total is None:
        return index_constant(s.builder, form.const)
    return s.i(arith.AddiOp, total, index_constant(s.builder, form.const)) if form.const else total


def iota_element(s: Scalars, view: View) -> SSAValue:
    """The index itself in the view's element type; integers wrap, floats are rounded once."""
    position = linear_index(s, view.index[0])
    type_ = lowered(view.element)
    if isinstance(type_, IntegerType):
        return s.to(arith.IndexCastOp, position, type_)
    return convert(s, s.to(arith.IndexCastOp, position, i64), i64, view.element)
