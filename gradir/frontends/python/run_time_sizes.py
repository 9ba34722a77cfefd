"""Run-time sizes as values of the function being traced.

The name of a size stands for a number inside of one function: an argument's type tells it, or `nd.bind`. A function that uses a name
of an outer one (a loss that divides by the caller's batch size) gets one more argument, which it binds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects.builtin import IndexType, IntegerAttr, StringAttr, TensorType, i1, i64
from xdsl.ir import Block, Operation, SSAValue

from gradir import size_algebra
from gradir.dialects import nd
from gradir.dialects.types import element_type, is_static, shape_of, tensor
from gradir.dialects.upstream import arith, tensor as upstream_tensor
from gradir.frontends.python import arrays as array_module, trace as tracing
from gradir.frontends.python.dims import bounds
from gradir.ir.builder import Builder

_INDEX = IndexType()
_NUMBER = tensor(i64, ())


def size_operands(kind: type[Operation], result: TensorType) -> list[SSAValue]:
    """What an op of that class needs beside its tensors: one index per run-time size of the result."""
    if kind not in nd.SIZED or is_static(result):
        return []
    return [size_value(size) for size in shape_of(result) if not isinstance(size, int)]


def size_value(size: int | str | None) -> SSAValue:
    """A run-time size as an index value of the current function."""
    function, builder = tracing.current()
    builder.loc = tracing.python_location()
    assert isinstance(size, str)
    for name in size_algebra.names_in(size):
        _know(function, name)
    return builder(nd.SymbolOp, [], [_INDEX], {"sym": StringAttr(str(size))})


def size_array(size: str, dtype: np.dtype[Any]) -> array_module.Array:
    """A run-time size as a rank-0 array."""
    value = size_value(size)
    function, builder = tracing.current()
    number = builder(upstream_tensor.FromElementsOp, [builder(arith.IndexCastOp, [value], [i64])], [_NUMBER])
    array = array_module.Array(_NUMBER, number, function)
    elem = element_type(dtype)
    return array if elem == i64 else tracing.apply(nd.ConvertOp, [array], tensor(elem, ()))


def require_multiple(size: str, divisor: int, message: str) -> None:
    """The program checks that `size` is a multiple of `divisor`."""
    _require(str(size_algebra.mod(size, divisor)), "eq", 0, message)


def require_at_least(size: int | str, least: int, message: str) -> None:
    """The program checks that `size` is at least `least`, unless the limits of its names say so."""
    if bounds(size)[0] >= least:
        return
    _require(str(size), "sge", least, message)


def _require(size: str, predicate: str, number: int, message: str) -> None:
    """The program checks `size predicate number`, a comparison of `arith.cmpi`."""
    value = size_value(size)
    _, builder = tracing.current()
    bound = builder(arith.ConstantOp, [], [_INDEX], {"value": IntegerAttr(number, _INDEX)})
    holds = builder(arith.CmpiOp, [value, bound], [i1], {"predicate": arith.integer_predicate(predicate)})
    builder.op(nd.AssertOp, [holds], [], {"message": StringAttr(message)})


def _know(function: tracing.FunctionTrace, name: str) -> None:
    """Make the name stand for its size in `function`: by an argument's type, else by one more argument that holds the number."""
    parent = function.parent
    if parent is None or name in function.bound or name in _named(function):
        return
    function.bound.add(name)
    _know(parent, name)
    outside, inside = Block(), Block()
    builder = Builder(outside, tracing.python_location())
    scalar = builder(arith.IndexCastOp, [builder(nd.SymbolOp, [], [_INDEX], {"sym": StringAttr(str(name))})], [i64])
    number = builder(upstream_tensor.FromElementsOp, [scalar], [_NUMBER])
    _put_first(outside, parent.block)
    given = function.capture(array_module.Array(_NUMBER, number, parent))
    builder = Builder(inside, tracing.python_location())
    value = builder(arith.IndexCastOp, [builder(upstream_tensor.ExtractOp, [given], [i64])], [_INDEX])
    builder.op(nd.BindOp, [value], [], {"sym": StringAttr(str(name))})
    _put_first(inside, function.block)


def _named(function: tracing.FunctionTrace) -> set[str]:
    """The names that the arguments of a function tell."""
    sizes = [size for arg in function.block.args if isinstance(arg.type, TensorType) for size in shape_of(arg.type)]
    return {row[0] for row in size_algebra.solve([size for size in sizes if isinstance(size, str)])}


def _put_first(ops: Block, block: Block) -> None:
    """Move ops to the beginning of `block`, behind what binds the names that they may ask for."""
    bound = [op for op in block.ops if isinstance(op, nd.BindOp)]
    place = bound[-1].next_op if bound else block.first_op
    for op in list(ops.ops):
        op.detach()
        if place is None:
            block.add_op(op)
        else:
            block.insert_op_before(op, place)
