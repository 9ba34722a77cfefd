"""Where every content of a function lives: the requests that are put to `ownership`, and in which order.

Order matters for speed, not for correctness. Updates first: one that fails copies a whole tensor whenever it runs. Then control flow and
outputs, outermost first, so that a buffer of a whole loop is not lost to a detail inside. Then arguments that were given away are paired
with results. Then sources of inserts are forwarded, which spares the copy of a slice. Then, inner loops first, what loops still carry by
address gets its place. Results of kernels take the memory of operands that die there before that, as far as neither is inserted
anywhere, and after it.
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from gradir.dialects.upstream import func, scf, tensor
from gradir.lowering.bufferize.contents import LINALG, Contents, reads_outputs
from gradir.lowering.bufferize.donation import Donation
from gradir.lowering.bufferize.forwarding import Forwarding
from gradir.lowering.bufferize.loops import Loops
from gradir.lowering.bufferize.ownership import Ownership
from gradir.lowering.bufferize.slices import Slice
from gradir.lowering.bufferize.views import Content


class Plan:
    """The decisions for one function: buffers with their storage, and how each loop carries its tensors."""

    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        self.ownership = Ownership(contents)
        self.loops = Loops(contents, self.ownership)
        for number, output in enumerate(contents.outputs):
            self.ownership.buffer(output).storage = number
        inserts = [op for op in contents.timeline.start if isinstance(op, tensor.InsertSliceOp)]
        for op in contents.timeline.start:
            self._updates(op)
        for op in contents.timeline.start:
            self._joins(op)
        self.donation = Donation(contents, self.ownership)
        self.donation.decide()
        for op in contents.timeline.start:
            self._reuse(op, early=True)
        forwarding = Forwarding(self.ownership)
        for insert in inserts:
            forwarding.forward(insert)
        for loop in reversed(self.loops.carried):
            self.loops.leave(loop)
        for op in contents.timeline.start:
            self._reuse(op, early=False)

    def slice_of(self, op: tensor.ExtractSliceOp | tensor.InsertSliceOp) -> Slice | None:
        """The box of `op` in the coordinates of the memory that it looks into, if that is known."""
        if isinstance(op, tensor.InsertSliceOp):
            return self.contents.slices[op]
        return self.contents.view(op.result).part if self.contents.view(op.source).kind == "whole" else None

    def _updates(self, op: Operation) -> None:
        """Ops that change elements of a tensor change them in place if the tensor is not needed any more."""
        if isinstance(op, tensor.InsertSliceOp | tensor.InsertOp):
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

    def _joins(self, op: Operation) -> None:
        """Values that control flow hands on lie where they are handed to."""
        if isinstance(op, scf.IfOp | scf.IndexSwitchOp):
            self._branch(op)
        elif isinstance(op, scf.ForOp):
            self.loops.enter_for(op)
        elif isinstance(op, scf.WhileOp):
            self.loops.enter_while(op)
        elif isinstance(op, func.ReturnOp):
            for value, output in zip(op.operands, self.contents.outputs):
                self._offer(output, value)

    def _reuse(self, op: Operation, *, early: bool) -> None:
        """A kernel writes a result over an operand that nobody reads after it, where the order of its reads and writes allows that."""
        if not isinstance(op, func.CallOp):
            return
        facts = self.contents.kernels[op.callee.root_reference.data]
        for operand, result in sorted(facts.in_place):
            source, content = self.contents.whole(op.operands[operand]), self.contents.content(op.results[result])
            if source is None or not (self._is_free(source, early) and self._is_free(content, early)):
                continue
            earlier, later = self.ownership.buffer(source), self.ownership.buffer(content)
            members = [*earlier.members, *later.members]  # the first states the sizes: it comes first in the program
            if earlier is not later and self.ownership.share(content, source):
                self.ownership.buffer(content).members = members

    def _is_free(self, content: Content, early: bool) -> bool:
        """May the buffer of `content` take in more? Early, what may become a slice of another buffer is left to `forwarding`."""
        if not content.owned:
            return False
        buffer = self.ownership.buffer(content)
        if early and any(isinstance(r.op, tensor.InsertSliceOp) and not r.through for c in buffer.members for r in c.reads):
            return False
        return not buffer.parts and (buffer.storage is None or isinstance(buffer.storage, int))

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
