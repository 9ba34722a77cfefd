"""Building single ops on block arguments, for tests of their meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.ir import Block, Operation

from gradir.dialects.types import element_type, tensor


def evaluate(make: Callable[..., Operation], *arrays: Any) -> np.ndarray[Any, Any]:
    """`make` applied to values of the arrays' types, verified and evaluated on the arrays."""
    values = [np.asarray(a) for a in arrays]
    block = Block(arg_types=[tensor(element_type(v.dtype), v.shape) for v in values])
    op = make(*block.args)
    op.verify()
    return op.evaluate(*values)


def f32(*values: Any) -> np.ndarray[Any, Any]:
    """An f32 array of these values (or of the one list given)."""
    return np.array(values[0] if len(values) == 1 and isinstance(values[0], list) else values, np.float32)
