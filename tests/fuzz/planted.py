"""A pass with a fault of choice, for tests of the oracles."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

import pytest
from xdsl.ir import Operation

from gradir.dialects import nd
from gradir.driver.passes import PASSES
from gradir.ir.passes import Pass, PassContext, error_at


@dataclass(frozen=True)
class Planted(Pass):
    """`fault`: `values` makes a difference of each sum, `crash` raises, `invalid` leaves an op without an operand, `refuse` is an error,
    `slow` takes half a minute."""

    NAME: ClassVar[str] = "test-planted"

    fault: str = "values"

    def apply(self, op: Operation, context: PassContext) -> None:
        for inner in list(op.walk()):
            if not isinstance(inner, nd.AddOp):
                continue
            if self.fault == "crash":
                raise KeyError("planted")
            if self.fault == "slow":
                time.sleep(30)
            if self.fault == "refuse":
                raise error_at(inner, "is refused", part="graph", code="GR020")
            if self.fault == "invalid":
                inner.operands = inner.operands[:1]
                continue
            new = nd.SubOp.create(operands=list(inner.operands), result_types=[inner.result.type], location=inner.location)
            assert inner.parent is not None
            inner.parent.insert_op_before(new, inner)
            inner.result.replace_all_uses_with(new.results[0])
            inner.detach()
            inner.erase()


def register(monkeypatch: pytest.MonkeyPatch) -> str:
    """Enter the pass in the table for one test; its name."""
    monkeypatch.setitem(PASSES, Planted.NAME, (f"{__name__}:Planted", "a fault for tests"))
    return Planted.NAME
