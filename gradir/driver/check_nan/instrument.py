"""The calls that look: `nd.custom_call @check.nan(operands, results)` behind each op, and one at each round of a loop.

Relies on the effects of these calls to keep their order. Ops that only move elements make no number and are left alone, as are constants:
an infinity that is written in the program is meant.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp, TensorType, i1
from xdsl.ir import Block, Operation, SSAValue

from gradir.dialects import custom_calls, nd
from gradir.dialects.types import element_of, is_complex, is_float, tensor
from gradir.dialects.upstream.func import FuncOp
from gradir.driver.check_nan.watch import NAME, Site, Watch, look, watches
from gradir.ir.passes import function_name, location_text

_MOVES = frozenset(
    [
        *("abs", "assert", "bind", "broadcast", "concatenate", "conj", "constant", "custom_call", "dim", "dynamic_slice", "empty"),
        *("gather", "dynamic_update_slice", "imag", "index_at", "iota", "neg", "optimization_barrier", "pad", "print"),
        *("real", "reshape", "reverse", "select", "slice", "sort", "split", "symbol", "take_along_axis", "top_k"),
        *("transpose", "update_at", "yield"),
    ]
)
"""Ops of nd whose results hold no number that their operands do not hold, up to the sign."""

Loops = tuple[int, ...]
"""Numbers of the loops around an op, outermost first."""


def instrument(module: ModuleOp) -> Watch:
    """Put the calls into every function of `module`; what collects what they see."""
    watch = Watch()
    watches[watch.number] = watch
    custom_calls.define(custom_calls.CustomCall(NAME, look, infer=lambda kinds, config: (), effects=True))
    for function in [op for op in module.body.block.ops if isinstance(op, FuncOp)]:
        for block in function.body.blocks:
            _block(block, (), watch)
    return watch


def _block(block: Block, loops: Loops, watch: Watch) -> None:
    """The calls of a block that stands in `loops`, and of what is inside of it."""
    for op in list(block.ops):
        if isinstance(op, scf.ForOp | scf.WhileOp):
            _loop(op, loops, watch)
        elif isinstance(op, scf.IfOp | scf.IndexSwitchOp):
            for region in op.regions:
                for inner in region.blocks:
                    _block(inner, loops, watch)
        elif op.name.startswith("nd.") and op.name.partition(".")[2] not in _MOVES:
            results = [value for value in op.results if _holds_floats(value)]
            if results:
                _look_behind(op, results, loops, watch)


def _loop(op: scf.ForOp | scf.WhileOp, loops: Loops, watch: Watch) -> None:
    """Count its rounds: from -1 in front of it, one more at the top of each round."""
    number = watch.add_loop(location_text(op.location))
    top = op.regions[0].block
    assert op.parent is not None and top.first_op is not None
    for region in op.regions:
        _block(region.block, (*loops, number), watch)
    token = nd.ConstantOp.splat(True, tensor(i1))  # a call below level 1 has an operand at least
    op.parent.insert_ops_before([token, _call(watch, op, token.results, {"enter": number})], op)
    top.insert_op_before(_call(watch, op, token.results, {"round": number}), top.first_op)


def _look_behind(op: Operation, results: Sequence[SSAValue], loops: Loops, watch: Watch) -> None:
    """A call behind `op` that sees its float operands and these results."""
    operands = [value for value in op.operands if _holds_floats(value)]
    site = watch.add_site(Site(op.name, location_text(op.location), function_name(op), len(operands), loops))
    assert op.parent is not None
    op.parent.insert_op_after(_call(watch, op, [*operands, *results], {"site": site}), op)


def _call(watch: Watch, op: Operation, values: Sequence[SSAValue], config: custom_calls.Config) -> Operation:
    call = nd.CustomCallOp.make(NAME, values, (), {"watch": watch.number, **config}, effects=True)
    call.location = op.location
    return call


def _holds_floats(value: SSAValue) -> bool:
    """Also complex numbers: their parts are looked at."""
    return isinstance(value.type, TensorType) and (is_float(element_of(value)) or is_complex(element_of(value)))
