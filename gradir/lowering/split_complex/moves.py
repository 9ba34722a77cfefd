"""Families `shape` and `indexing`: what moves elements moves their parts, what adds them adds their parts."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from gradir.dialects import nd
from gradir.lowering.split_complex.parts import Parts, Rule, partwise


def split_dim(parts: Parts, op: nd.DimOp) -> Sequence[SSAValue]:
    """Both parts have the shape."""
    return [parts.again(op, 0)]


_MOVED: tuple[type[Operation], ...] = (
    nd.ReshapeOp,
    nd.TransposeOp,
    nd.BroadcastOp,
    nd.SliceOp,
    nd.PadOp,
    nd.ConcatenateOp,
    nd.ReverseOp,
    nd.GatherOp,
    nd.ScatterAddOp,
    nd.DynamicSliceOp,
    nd.DynamicUpdateSliceOp,
    nd.IndexAtOp,
    nd.UpdateAtOp,
)

RULES: dict[type[Operation], Rule] = {**dict.fromkeys(_MOVED, partwise), nd.DimOp: split_dim}
