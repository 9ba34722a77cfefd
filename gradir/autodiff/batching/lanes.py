"""What batching rules are written with: values of `n` lanes, the lanes along dimension 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import IndexType, IntegerAttr, TensorType, i1, i64
from xdsl.ir import Attribute, Operation, SSAValue

from gradir import size_algebra
from gradir.autodiff.reverse.sweep import clone
from gradir.autodiff.tensors import TensorBuilder
from gradir.dialects.types import i64_array, rank_of, shape_of, tensor
from gradir.dialects.upstream import arith, tensor as upstream_tensor
from gradir.ir.builder import Builder

Size = int | str


def lane_type(kind: Attribute, n: Size) -> TensorType:
    """The type of `n` values of type `kind`; scalars become elements (index values i64)."""
    if isinstance(kind, TensorType):
        return tensor(kind.element_type, (n, *shape_of(kind)))
    return tensor(i64 if isinstance(kind, IndexType) else kind, (n,))


class Lanes:
    """Emits ops on `n` lanes at the end of a block."""

    def __init__(self, builder: Builder, n: Size) -> None:
        self.builder, self.n = builder, n
        self.t = TensorBuilder(builder)

    def lanes(self, kind: Attribute) -> TensorType:
        return lane_type(kind, self.n)

    def spread(self, value: SSAValue) -> SSAValue:
        """The same value in every lane."""
        kind = value.type
        if not isinstance(kind, TensorType):
            if isinstance(kind, IndexType):
                value = self.builder(arith.IndexCastOp, [value], [i64])
            value = self.builder(upstream_tensor.FromElementsOp, [value], [tensor(value.type, ())])
        return self.t.broadcast(value, self.lanes(kind), range(1, rank_of(value) + 1))

    def to_front(self, value: SSAValue, dim: int) -> SSAValue:
        """The lanes moved from dimension `dim` to the front."""
        rank = rank_of(value)
        return self.t.transpose(value, [dim, *(k for k in range(rank) if k != dim)])

    def from_front(self, value: SSAValue, dim: int) -> SSAValue:
        """The lanes moved from the front to dimension `dim`."""
        order = list(range(1, rank_of(value)))
        order.insert(dim, 0)
        return self.t.transpose(value, order)

    def merged(self, value: SSAValue, dim: int) -> SSAValue:
        """Dimensions `dim` and `dim + 1` as one."""
        shape = shape_of(value)
        return self.t.reshape(value, (*shape[:dim], size_algebra.times(shape[dim], shape[dim + 1]), *shape[dim + 2 :]))

    def divided(self, value: SSAValue, dim: int, first: Size, second: Size) -> SSAValue:
        """Dimension `dim` as two."""
        shape = shape_of(value)
        return self.t.reshape(value, (*shape[:dim], first, second, *shape[dim + 1 :]))

    def again(
        self, op: Operation, operands: Sequence[SSAValue], kinds: Sequence[Attribute], properties: Mapping[str, Attribute] | None = None
    ) -> list[SSAValue]:
        """The op with other operands and result types, and the properties given changed."""
        copy = clone(op, dict(zip(op.operands, op.operands)))
        regions = [copy.detach_region(region) for region in list(copy.regions)]
        copy.drop_all_references()
        return list(
            self.builder.op(type(op), list(operands), list(kinds), {**op.properties, **(properties or {})}, regions, op.attributes).results
        )

    def lane_select(self, pred: SSAValue, on_true: SSAValue, on_false: SSAValue) -> SSAValue:
        """Per lane, one of two values of `n` lanes."""
        wide = self.t.broadcast(pred, tensor(i1, shape_of(on_true)), (0,))
        return self.t.select(wide, on_true, on_false)

    def index_vectors(self, columns: Sequence[SSAValue]) -> SSAValue:
        """Per lane, the vector of these numbers (each `n` of them), in i64: `n x k`."""
        wide = [self.t.reshape(self.t.convert(c, i64), (self.n, 1)) for c in columns]
        return wide[0] if len(wide) == 1 else self.t.concatenate(wide, 1)


def moved(dims: Sequence[int]) -> Attribute:
    """Dimensions behind one more in front."""
    return i64_array(tuple(d + 1 for d in dims))


def with_first(first: int, numbers: Sequence[int]) -> Attribute:
    """Numbers per dimension with one for the lanes in front."""
    return i64_array((first, *numbers))


def next_dim(dim: int) -> Attribute:
    return IntegerAttr(dim + 1, i64)
