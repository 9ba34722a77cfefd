"""`cf`: xDSL's ops."""

from __future__ import annotations

from xdsl.dialects.cf import (
    AssertOp as AssertOp,
    BranchOp as BranchOp,
    Cf as Cf,
    ConditionalBranchOp as ConditionalBranchOp,
    SwitchOp as SwitchOp,
)
