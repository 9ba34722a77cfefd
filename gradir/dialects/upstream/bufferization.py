"""`bufferization`: xDSL's ops."""

from __future__ import annotations

from xdsl.dialects.bufferization import (
    AllocTensorOp as AllocTensorOp,
    Bufferization as Bufferization,
    CloneOp as CloneOp,
    MaterializeInDestinationOp as MaterializeInDestinationOp,
    ToBufferOp as ToBufferOp,
    ToTensorOp as ToTensorOp,
)
