"""Building single ops on block arguments, for tests of their meaning: by definition, or in another way that a test asks for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np
from xdsl.ir import Block, Operation

from gradir.dialects.types import element_type, tensor

Array = np.ndarray[Any, Any]


def by_definition(_: Block, op: Operation, arrays: Sequence[Array]) -> Array:
    """What the op's own `evaluate` says."""
    return op.evaluate(*arrays)


RUNNER: ContextVar[Callable[[Block, Any, Sequence[Array]], Array]] = ContextVar("RUNNER", default=by_definition)
"""How `evaluate` runs an op (not yet in the block) on the arrays that stand for the block's arguments."""


def evaluate(make: Callable[..., Operation], *arrays: Any) -> Array:
    """`make` applied to values of the arrays' types, verified and run on the arrays."""
    values = [np.asarray(a) for a in arrays]
    block = Block(arg_types=[tensor(element_type(v.dtype), v.shape) for v in values])
    op = make(*block.args)
    op.verify()
    return RUNNER.get()(block, op, values)


def f32(*values: Any) -> np.ndarray[Any, Any]:
    """An f32 array of these values (or of the one list given)."""
    return np.array(values[0] if len(values) == 1 and isinstance(values[0], list) else values, np.float32)
