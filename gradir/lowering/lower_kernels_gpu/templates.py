"""Kernels that are loops already (scatter, sort, scan): one thread runs them, in their order.

Correct for every kernel, and slow: a parallel form is a kernel of another kind.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import DYNAMIC_INDEX, DictionaryAttr, StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from gradir.dialects.upstream import func, gpu, memref
from gradir.ir.passes import error_at
from gradir.lowering.lower_kernels.lower import lower_in_place
from gradir.lowering.schedules.machine import Machine


@dataclass
class Sequential:
    """A launch of one thread over the body of `source`; top-level allocations become operands."""

    source: func.FuncOp
    kept: list[SSAValue]
    threads: tuple[int, int] = (1, 1)
    blocks: int = 1
    dynamic_bytes: int = 0

    @classmethod
    def of(cls, source: func.FuncOp) -> Sequential:
        """Lower the linalg ops of a template to loops and collect its buffers."""
        lower_in_place(source, Machine())
        return cls(source, [op.memref for op in source.body.block.ops if isinstance(op, memref.AllocOp)])

    def finish(self, name: str) -> gpu.FuncOp:
        """The device function."""
        old = self.source.body.block
        block = Block(arg_types=[a.type for a in (*old.args, *self.kept)])
        values: dict[SSAValue, SSAValue] = dict(zip((*old.args, *self.kept), block.args))
        for op in old.ops:
            if isinstance(op, func.ReturnOp) or (isinstance(op, memref.AllocOp) and op.memref in values):
                continue
            if isinstance(op, memref.DeallocOp) and op.memref in self.kept:
                continue
            new = op.clone(values)
            block.add_op(new)
            values.update(zip(op.results, new.results))
        for op in list(block.walk()):
            _localise(op)
        block.add_op(gpu.ReturnOp.create())
        given = self.source.arg_attrs
        own = list(given.data) if given is not None else [DictionaryAttr({}) for _ in old.args]
        own += [DictionaryAttr({"gradir.access": StringAttr("readwrite")}) for _ in self.kept]
        return gpu.kernel_function(name, Region(block), len(block.args), (1, 1, 1), own)


def _localise(op: Operation) -> None:
    """A buffer of one iteration lies in the thread's own memory."""
    parent = op.parent
    assert parent is not None
    if isinstance(op, memref.DeallocOp) and isinstance(op.memref.owner, memref.AllocaOp | memref.AllocOp):
        parent.erase_op(op)
    elif isinstance(op, memref.AllocOp):
        if DYNAMIC_INDEX in op.memref.type.get_shape():
            raise error_at(
                op,
                "a buffer of dynamic size inside a loop of a kernel",
                part="operator",
                code="OP040",
                expected="a static size",
                found=str(op.memref.type),
                hint="allocate it before the loop",
            )
        new = memref.AllocaOp.create(result_types=[op.memref.type], properties=dict(op.properties), location=op.location)
        parent.insert_op_before(new, op)
        op.memref.replace_all_uses_with(new.results[0])
        parent.erase_op(op)
