"""A Python function of single elements as the region of an op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.ir import Block, Region

from gradir.dialects import nd
from gradir.dialects.types import element_type, tensor
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.operands import as_array
from gradir.frontends.python.trace import FunctionTrace, ModuleTrace, argument, current, into, ssa, user_error


def region_of(function: Callable[..., Any], dtypes: Sequence[Any], results: Sequence[Any] | None = None) -> Region:
    """The region that `function` computes on elements of these dtypes; it returns one value or a tuple of elements of `results`.

    By default the results have the dtypes of the first half of the arguments. An array from outside is an error GR110.
    """
    wanted = [np.dtype(d) for d in (dtypes[: len(dtypes) // 2] if results is None else results)]
    block = Block(arg_types=[tensor(element_type(np.dtype(d))) for d in dtypes])
    trace = FunctionTrace(ModuleTrace(), block, None)
    with into(trace, block):
        found = function(*(argument(trace, value) for value in block.args))
        values = [as_array(value) for value in (found if isinstance(found, tuple | list) else (found,))]
        _check(function, values, wanted)
        current()[1].op(nd.YieldOp, [ssa(value) for value in values])
    return Region(block)


def _check(function: Callable[..., Any], values: Sequence[Array], wanted: Sequence[np.dtype[Any]]) -> None:
    if [(value.dtype, value.shape) for value in values] == [(dtype, ()) for dtype in wanted]:
        return
    raise user_error(
        f"{getattr(function, '__name__', 'the function')} does not return single elements of the right dtypes",
        code="GR103",
        expected=", ".join(f"{dtype}[]" for dtype in wanted),
        found=", ".join(f"{value.dtype}{list(value.shape)}" for value in values),
    )
