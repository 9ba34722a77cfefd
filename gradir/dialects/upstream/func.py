"""`func`: xDSL's ops."""

from __future__ import annotations

from xdsl.dialects.func import (
    CallOp as CallOp,
    Func as Func,
    FuncOp as FuncOp,
    ReturnOp as ReturnOp,
)
