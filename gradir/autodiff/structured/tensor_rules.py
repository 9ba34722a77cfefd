"""Derivatives of `tensor` and whole-tensor `linalg` ops: they move data, so their cotangents move back.

The cotangent of a slice or an element is accumulated into the slice of the whole, never as a full-size zero plus an add.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, i64
from xdsl.ir import Attribute, Operation, SSAValue

from gradir.autodiff.registry import Contribution, jvp, skip, vjp
from gradir.autodiff.reverse.cotangents import Cotangents
from gradir.autodiff.reverse.sweep import Sweep, structured
from gradir.autodiff.structured.extrema import elementwise
from gradir.autodiff.structured.sums import total
from gradir.autodiff.tensors import TensorBuilder
from gradir.dialects.linear import index
from gradir.dialects.slices import Number, added, dropped_dims, extract_slice, insert_slice, mixed, sizes_of
from gradir.dialects.types import element_of, shape_of
from gradir.dialects.upstream import linalg, tensor

Rule = tuple[Contribution, ...]
Tangents = Mapping[int, SSAValue]

skip(tensor.DimOp, "a size has no derivative")
skip(tensor.EmptyOp, "no value yet")


def rebuilt(t: TensorBuilder, op: Operation, operands: Sequence[SSAValue], kinds: Sequence[Attribute]) -> Operation:
    """The same op on other operands."""
    return t.builder.op(type(op), operands, kinds, op.properties, (), op.attributes)


def place(op: tensor.ExtractSliceOp | tensor.InsertSliceOp) -> tuple[list[Number], list[Number], list[Number]]:
    """Offsets, sizes and strides."""
    return mixed(op.static_offsets, op.offsets), mixed(op.static_sizes, op.sizes), mixed(op.static_strides, op.strides)


# elements ------------------------------------------------------------------------------------------------------------


@structured(tensor.ExtractOp)
def reverse_extract(sweep: Sweep, op: tensor.ExtractOp) -> None:
    """y = x[i]: dx[i] += dy"""
    new = sweep.copy(op)
    source, *at = new.operands

    def reverse(cts: Cotangents) -> None:
        ct = cts.get(new.results[0])
        if ct is None or source not in cts.active:
            return
        cts.builder.loc = op.location
        whole = cts.accumulator(source)
        element = cts.builder(tensor.ExtractOp, [whole, *at], [element_of(whole)])
        sum_ = cts.t.add(element, cts.t.convert(ct, element_of(whole)))
        cts.set(source, cts.builder(tensor.InsertOp, [sum_, whole, *at], [whole.type]))

    sweep.tape.append(reverse)


@vjp(tensor.InsertOp)
def insert_vjp(t: TensorBuilder, op: tensor.InsertOp, ct: SSAValue) -> Rule:
    """The scalar takes its element of ct, the tensor the rest."""
    at = list(op.indices)
    return (
        lambda: t.builder(tensor.ExtractOp, [ct, *at], [element_of(ct)]),
        lambda: t.builder(tensor.InsertOp, [t.zeros(element_of(ct)), ct, *at], [ct.type]),
        *(None for _ in at),
    )


@vjp(tensor.FromElementsOp)
def from_elements_vjp(t: TensorBuilder, op: tensor.FromElementsOp, ct: SSAValue) -> Rule:
    """Each scalar takes its element."""
    shape = [n for n in shape_of(ct) if isinstance(n, int)]

    def element(position: int) -> SSAValue:
        at: list[SSAValue] = []
        for n in reversed(shape):
            at.insert(0, index(t.builder, position % n))
            position //= n
        return t.builder(tensor.ExtractOp, [ct, *at], [element_of(ct)])

    return tuple(lambda k=k: element(k) for k in range(len(op.operands)))


@vjp(tensor.SplatOp)
def splat_vjp(t: TensorBuilder, op: tensor.SplatOp, ct: SSAValue) -> Rule:
    """The sum of ct"""
    return (lambda: t.convert(total(t, ct), element_of(ct)), *(None for _ in op.operands[1:]))


@vjp(linalg.FillOp)
def fill_vjp(t: TensorBuilder, op: linalg.FillOp, ct: SSAValue) -> Rule:
    """The scalar takes the sum of ct; what was there before is gone."""
    return (lambda: t.convert(total(t, ct), element_of(ct)), None)


@vjp(linalg.CopyOp)
def copy_vjp(t: TensorBuilder, op: linalg.CopyOp, ct: SSAValue) -> Rule:
    """The input takes ct, in its own type."""
    return (lambda: t.convert(ct, element_of(op.operands[0])), None)


# slices --------------------------------------------------------------------------------------------------------------


@structured(tensor.ExtractSliceOp)
def reverse_extract_slice(sweep: Sweep, op: tensor.ExtractSliceOp) -> None:
    """y = x[slice]: dx[slice] += dy"""
    new = sweep.copy(op)
    assert isinstance(new, tensor.ExtractSliceOp)
    source = new.source
    offsets, sizes, strides = place(new)
    gone = dropped_dims(new.static_sizes, new.result)

    def reverse(cts: Cotangents) -> None:
        ct = cts.get(new.result)
        if ct is None or source not in cts.active:
            return
        cts.builder.loc = op.location
        first = not cts.has(source)
        whole = cts.accumulator(source)
        part = cts.t.convert(ct, element_of(whole))
        if not first:
            old = extract_slice(cts.builder, whole, offsets, sizes, strides, gone)
            part = elementwise(cts.builder, [old, part], old, lambda t, v: t.add(v[0], v[1]))
        cts.set(source, insert_slice(cts.builder, part, whole, offsets, sizes, strides))

    sweep.tape.append(reverse)


@vjp(tensor.InsertSliceOp)
def insert_slice_vjp(t: TensorBuilder, op: tensor.InsertSliceOp, ct: SSAValue) -> Rule:
    """The part takes its slice of ct, the tensor the rest."""
    offsets, sizes, strides = place(op)
    gone = dropped_dims(op.static_sizes, op.source)

    def by_part() -> SSAValue:
        found = extract_slice(t.builder, ct, offsets, sizes, strides, gone)
        return found if found.type == op.source.type else t.builder(tensor.CastOp, [found], [op.source.type])

    def by_whole() -> SSAValue:
        return insert_slice(t.builder, t.zeros_as(op.source, op.source.type), ct, offsets, sizes, strides)

    return (by_part, by_whole, *(None for _ in op.operands[2:]))


@vjp(tensor.ConcatOp)
def concat_vjp(t: TensorBuilder, op: tensor.ConcatOp, ct: SSAValue) -> Rule:
    """Each input takes its slice."""
    dim = op.dim.value.data
    parts: list[Contribution] = []
    start: Number = 0
    for x in op.inputs:
        sizes = sizes_of(t.builder, x)
        offsets: list[Number] = [start if d == dim else 0 for d in range(len(sizes))]
        ones: list[Number] = [1] * len(sizes)
        parts.append(lambda o=offsets, s=sizes, one=ones: extract_slice(t.builder, ct, o, s, one))
        start = added(t.builder, start, sizes[dim])
    return tuple(parts)


# shapes --------------------------------------------------------------------------------------------------------------


@vjp(tensor.CastOp)
def cast_vjp(t: TensorBuilder, op: tensor.CastOp, ct: SSAValue) -> Rule:
    """The same elements under the other type."""
    return (lambda: t.builder(tensor.CastOp, [ct], [op.source.type]),)


@vjp(tensor.CollapseShapeOp)
def collapse_vjp(t: TensorBuilder, op: tensor.CollapseShapeOp, ct: SSAValue) -> Rule:
    """Expanded again"""

    def back() -> SSAValue:
        sizes = sizes_of(t.builder, op.src)
        given = [n for n in sizes if not isinstance(n, int)]
        static = DenseArrayBase.from_list(i64, [n if isinstance(n, int) else DYNAMIC_INDEX for n in sizes])
        properties = {"reassociation": op.reassociation, "static_output_shape": static}
        return t.builder(tensor.ExpandShapeOp, [ct, *given], [op.src.type], properties)

    return (back,)


@vjp(tensor.ExpandShapeOp)
def expand_vjp(t: TensorBuilder, op: tensor.ExpandShapeOp, ct: SSAValue) -> Rule:
    """Collapsed again"""
    properties = {"reassociation": op.reassociation}
    return (lambda: t.builder(tensor.CollapseShapeOp, [ct], [op.src.type], properties), *(None for _ in op.operands[1:]))


# forward -------------------------------------------------------------------------------------------------------------


@jvp(tensor.ExtractOp)
@jvp(tensor.ExtractSliceOp)
@jvp(tensor.CastOp)
@jvp(tensor.CollapseShapeOp)
@jvp(tensor.ExpandShapeOp)
@jvp(tensor.SplatOp)
@jvp(linalg.FillOp)
@jvp(linalg.CopyOp)
def linear(t: TensorBuilder, op: Operation, tangents: Tangents) -> Sequence[SSAValue | None]:
    """`y = L x`: `dy = L dx`"""
    if 0 not in tangents:
        return [None]
    return list(rebuilt(t, op, [tangents[0], *op.operands[1:]], [op.results[0].type]).results)


@jvp(tensor.InsertOp)
@jvp(tensor.InsertSliceOp)
@jvp(tensor.FromElementsOp)
@jvp(tensor.ConcatOp)
def linear_in_all(t: TensorBuilder, op: Operation, tangents: Tangents) -> Sequence[SSAValue | None]:
    """Linear in every operand that is no index; zeros where one does not move."""
    count = 2 if isinstance(op, tensor.InsertOp | tensor.InsertSliceOp) else len(op.operands)
    operands = [tangents[k] if k in tangents else t.zeros_as(v, v.type) for k, v in enumerate(op.operands[:count])]
    return list(rebuilt(t, op, [*operands, *op.operands[count:]], [op.results[0].type]).results)
