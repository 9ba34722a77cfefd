"""Families `shape` and `indexing`: what moves elements moves their parts, what adds them adds their parts."""

from __future__ import annotations

from xdsl.ir import Operation

from gradir.dialects import nd
from gradir.lowering.split_complex.parts import Rule, partwise

RULES: dict[type[Operation], Rule] = dict.fromkeys(
    (
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
    ),
    partwise,
)
