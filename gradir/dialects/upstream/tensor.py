"""`tensor`: xDSL's ops."""

from __future__ import annotations

from xdsl.dialects.tensor import (
    CastOp as CastOp,
    CollapseShapeOp as CollapseShapeOp,
    ConcatOp as ConcatOp,
    DimOp as DimOp,
    EmptyOp as EmptyOp,
    ExpandShapeOp as ExpandShapeOp,
    ExtractOp as ExtractOp,
    ExtractSliceOp as ExtractSliceOp,
    FromElementsOp as FromElementsOp,
    InsertOp as InsertOp,
    InsertSliceOp as InsertSliceOp,
    PadOp as PadOp,
    ReshapeOp as ReshapeOp,
    SplatOp as SplatOp,
    Tensor as Tensor,
    YieldOp as YieldOp,
)
