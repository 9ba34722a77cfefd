"""Composites that only arrange: their expansions have the derivatives; where only integers come in there is none."""

from __future__ import annotations

from gradir.autodiff.registry import skip
from gradir.dialects import nd

skip(nd.OneHotOp, "its operand is an integer")
