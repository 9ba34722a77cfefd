"""`affine`: xDSL's ops."""

from __future__ import annotations

from xdsl.dialects.affine import (
    Affine as Affine,
    ApplyOp as ApplyOp,
    ForOp as ForOp,
    IfOp as IfOp,
    LoadOp as LoadOp,
    MinOp as MinOp,
    ParallelOp as ParallelOp,
    StoreOp as StoreOp,
    VectorLoadOp as VectorLoadOp,
    VectorStoreOp as VectorStoreOp,
    YieldOp as YieldOp,
)
