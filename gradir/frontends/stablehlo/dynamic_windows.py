"""`custom_call @stablehlo.dynamic_reduce_window`: how JAX spells a window whose size is a run-time size, as in a cumulative sum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, SymbolRefAttr
from xdsl.ir import Operation

from gradir import size_algebra
from gradir.dialects import nd
from gradir.dialects.types import rank_of, shape_of
from gradir.frontends.stablehlo.conversion import Conversion, UnsupportedError, Values
from gradir.frontends.stablehlo.dialect import attribute
from gradir.frontends.stablehlo.reductions import is_identity, known_op

CUMULATIVE: Mapping[str, type[Any]] = {
    "stablehlo.add": nd.CumsumOp,
    "stablehlo.multiply": nd.CumprodOp,
    "stablehlo.maximum": nd.CummaxOp,
    "stablehlo.minimum": nd.CumminOp,
}


def dynamic_reduce_window(conversion: Conversion, op: Operation) -> Values:
    """A window over all before (or after) each element is a cumulative fold; other windows of run-time size have no counterpart."""
    assert conversion.dynamic is not None
    operand = conversion.values[op.operands[0]]
    window, strides, spread, dilations, edges = (conversion.dynamic.symbolic.sizes(value) for value in op.operands[2:])
    name = _reducer(conversion, op)
    wide = [d for d in range(rank_of(operand)) if window[d] != 1]
    plain = set(strides) | set(spread) | set(dilations) <= {1}
    if not plain or len(wide) != 1 or name not in CUMULATIVE or not is_identity(op.operands[1], name):
        raise UnsupportedError(f"a window of run-time size {window} that is no cumulative sum, product, maximum or minimum")
    (dim,) = wide
    size = shape_of(operand)[dim]
    before, after = edges[2 * dim : 2 * dim + 2]
    rest = size_algebra.minus(size, 1)
    others = [n for k, n in enumerate(edges) if k // 2 != dim]
    if window[dim] != size or any(others) or (before, after) not in ((rest, 0), (0, rest)):
        raise UnsupportedError(f"a window of run-time size {window} with edges {edges}")
    return [conversion.emit(CUMULATIVE[name].make(operand, dim, reverse=before == 0))]


def _reducer(conversion: Conversion, op: Operation) -> str:
    """The op that the called computation repeats."""
    called = attribute(op, "called_computations")
    (symbol, *more) = called.data if isinstance(called, ArrayAttr) and len(called.data) else (None,)
    function = conversion.functions.get(symbol.string_value()) if isinstance(symbol, SymbolRefAttr) and not more else None
    body = function.body.first_block if function is not None else None
    return known_op(body) if body is not None else ""
