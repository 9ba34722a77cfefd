"""Running the region of an op on whole arrays: each of its ops is elementwise, so one pass serves all elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import Block, SSAValue

from gradir.dialects.nd.meaning.rounding import Array
from gradir.dialects.nd.regions import YieldOp


def run(block: Block, arguments: Sequence[Any]) -> list[Array]:
    """What `nd.yield` gives for these argument values; they broadcast against each other."""
    values: dict[SSAValue, Any] = dict(zip(block.args, arguments, strict=True))
    for op in block.ops:
        operands = [values[value] for value in op.operands]
        if isinstance(op, YieldOp):
            return [np.asarray(value) for value in operands]
        found = op.evaluate(*operands)  # pyright: ignore[reportAttributeAccessIssue]  (an op of nd, verified)
        values.update(zip(op.results, found if isinstance(found, tuple) else (found,), strict=True))
    raise AssertionError("a region without nd.yield passed the verifier")
