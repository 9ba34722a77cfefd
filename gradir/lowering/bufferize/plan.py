"""Where every content of a function lives: the requests that are put to `ownership`, outermost first.

Order matters for speed, not for correctness. What spares the copy of a whole tensor comes first: carried values (before the body that they
contain, so that a buffer of the whole loop is not lost to a detail inside), branches, updates, outputs. Then sources of inserts are forwarded,
which spares the copy of a slice, and what loops still carry by address gets its place, inner loops first.
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue

from gradir.dialects.upstream import func, scf, tensor
from gradir.lowering.bufferize.contents import LINALG, Content, Contents, reads_outputs
from gradir.lowering.bufferize.loops import Loops
from gradir.lowering.bufferize.ownership import Ownership
from gradir.lowering.bufferize.slices import Slice


class Plan:
    """The decisions for one function: buffers with their storage, and how each loop carries its tensors."""

    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        self.ownership = Ownership(contents)
        self.loops = Loops(contents, self.ownership)
        for number, output in enumerate(contents.outputs):
            self.ownership.buffer(output).storage = number
        self._inserts: list[tensor.InsertSliceOp] = []
        self._loops: list[scf.ForOp | scf.WhileOp] = []
        self._block(contents.body)
        for insert in self._inserts:
            self.ownership.forward(insert)
        for loop in reversed(self._loops):
            self.loops.leave(loop)

    def slice_of(self, op: tensor.ExtractSliceOp | tensor.InsertSliceOp) -> Slice | None:
        """The box of `op` in the coordinates of the memory that it looks into, if that is known."""
        if isinstance(op, tensor.InsertSliceOp):
            return self.contents.slices[op]
        return self.contents.view(op.result).part if self.contents.view(op.source).kind == "whole" else None

    def _block(self, block: Block) -> None:
        for op in block.ops:
            if isinstance(op, tensor.InsertSliceOp):
                self._update(op.dest, op.result)
                self._inserts.append(op)
            elif isinstance(op, tensor.InsertOp):
                self._update(op.dest, op.result)
            elif isinstance(op, LINALG):
                for value, result, reads in zip(op.outputs, op.results, reads_outputs(op)):
                    if reads:
                        self._update(value, result)
            elif isinstance(op, func.CallOp):
                facts = self.contents.kernels[op.callee.root_reference.data]
                destinations = op.operands[len(op.operands) - facts.results :]
                for k in facts.updates:
                    self._update(destinations[k], op.results[k])
            elif isinstance(op, scf.IfOp | scf.IndexSwitchOp):
                self._branch(op)
            elif isinstance(op, scf.ForOp):
                self.loops.enter_for(op)
                self._loops.append(op)
                self._block(op.body.block)
            elif isinstance(op, scf.WhileOp):
                self.loops.enter_while(op)
                self._block(op.before_region.block)
                self._loops.append(op)
                self._block(op.after_region.block)
            elif isinstance(op, func.ReturnOp):
                for value, output in zip(op.operands, self.contents.outputs):
                    self._offer(output, value)

    def _update(self, destination: SSAValue, result: SSAValue) -> None:
        """Change `destination` in place if it is not needed any more."""
        self._offer(self.contents.content(result), destination)

    def _offer(self, content: Content, value: SSAValue) -> None:
        source = self.contents.whole(value)
        if source is not None:
            self.ownership.share(content, source)

    def _branch(self, op: scf.IfOp | scf.IndexSwitchOp) -> None:
        """Branches write one destination."""
        regions = [r for r in op.regions if r.first_block is not None]
        for index, result in enumerate(op.results):
            if isinstance(result.type, TensorType):
                for region in regions:
                    self._offer(self.contents.content(result), cast("Operation", region.block.last_op).operands[index])
        for region in regions:
            self._block(region.block)
