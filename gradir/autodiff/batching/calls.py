"""Batched functions, and calls of them."""

from __future__ import annotations

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Block

from gradir.autodiff.batching import branches, indexing, loops, nests, sizes_and_effects
from gradir.autodiff.batching.lanes import Size
from gradir.autodiff.batching.sweep import BatchSweep, lane_kinds, structured
from gradir.autodiff.reverse.functions import Program
from gradir.autodiff.reverse.sweep import clone
from gradir.dialects import ad
from gradir.dialects.upstream import func
from gradir.ir.builder import Builder, new_function

REGISTERED = (branches, indexing, loops, nests, sizes_and_effects)
"""Importing these registers their rules."""


def batched_function(program: Program, primal: func.FuncOp, flags: tuple[bool, ...], n: Size, *, ruled: bool = False) -> str:
    """`@f.batch`: the arguments in `flags` and all results have lanes; equal ones are made once.

    Error AD006 for a function that calls itself, unless it is a rule that names itself (`ruled`).
    """
    stem = primal.sym_name.data
    key = (stem, flags, n)
    if key in program.batches:
        return program.batches[key]
    if ruled and key in program.batching:
        return program.batching[key]
    name = program.batching[key] = program.fresh_name(f"{stem}.batch")
    with program.making(primal, "batches", flags, n):
        block = _with_lanes(program, primal, flags, n)
    returned = block.last_op
    assert returned is not None
    kinds = [v.type for v in returned.operands]
    function = new_function(name, block, kinds, private=True, loc=primal.location)
    del program.batching[key]
    program.batches[key] = program.insert(function, primal)
    return program.batches[key]


def _with_lanes(program: Program, primal: func.FuncOp, flags: tuple[bool, ...], n: Size) -> Block:
    """The body of the batched function."""
    source = primal.body.block
    sweep = BatchSweep(program, n)
    block = Block(arg_types=lane_kinds(sweep, Builder(Block()), source.args, flags))
    for old, new in zip(source.args, block.args):
        new.location = old.location
    sweep.bind(source.args, block.args, flags)
    last = sweep.block(source, block)
    builder = Builder(block, last.location)
    builder.op(func.ReturnOp, [sweep.with_lanes(builder, v) for v in last.operands])
    return block


@structured(func.CallOp)
def batch_call(sweep: BatchSweep, op: func.CallOp, builder: Builder) -> None:
    """A call of the batched callee."""
    flags = tuple(sweep.has(v) for v in op.operands)
    if not any(flags):
        builder.block.add_op(clone(op, sweep.values))
        return
    callee = sweep.program.function(op.callee.string_value(), op)
    name = batched_function(sweep.program, callee, flags, sweep.n)
    kinds = [sweep.lanes(builder).lanes(r.type) for r in op.results]
    new = builder.op(func.CallOp, [sweep.value(v) for v in op.operands], kinds, {"callee": SymbolRefAttr(name)})
    sweep.bind(op.results, new.results, [True] * len(kinds))


@structured(ad.CheckpointOp, ad.CustomJvpOp, ad.CustomVjpOp)
def batch_ruled(sweep: BatchSweep, op: ad.RuledCall, builder: Builder) -> None:
    """The rules are batched as the callee is; every argument has lanes, so that every cotangent has."""
    functions = [sweep.program.function(name, op) for name in op.functions()]
    names = [batched_function(sweep.program, f, (True,) * len(f.body.block.args), sweep.n, ruled=True) for f in functions]
    operands = [sweep.with_lanes(builder, v) for v in op.operands]
    lanes = sweep.lanes(builder)
    new = type(op).make(names, operands, [lanes.lanes(r.type) for r in op.results])
    new.location = op.location
    builder.block.add_op(new)
    sweep.bind(op.results, new.results, [True] * len(op.results))
