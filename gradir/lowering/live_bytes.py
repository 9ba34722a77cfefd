"""Bytes of the tensors that the ops of a block make, and when each is read for the last time.

An op that writes a slice, or a view, passes the memory of its operand on. Tensors from outside the block are alive anyway, what the
block's terminator reads lives to the end. What an entry returns lies in buffers of its caller: it counts as nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import IntegerType, TensorType
from xdsl.ir import Operation, SSAValue

from gradir.dialects.types import is_float, numpy_dtype, shape_of
from gradir.dialects.upstream import func, tensor
from gradir.ir.structure import is_public
from gradir.lowering.dependences import ALIASES, used_values

NOMINAL_SIZE = 64
"""What a run-time size counts as."""


class LiveBytes:
    """The state of a run through the ops: `run(op)` advances it."""

    def __init__(self, order: Sequence[Operation], terminator: Operation | None) -> None:
        self._root: dict[SSAValue, SSAValue] = {}
        self._readers: dict[SSAValue, set[Operation]] = {}
        self._reads: dict[Operation, list[SSAValue]] = {}
        self._made: dict[Operation, list[SSAValue]] = {op: [] for op in order}
        self._bytes: dict[SSAValue, int] = {}
        for op in order:
            self._note_reads(op)
            if isinstance(op, tensor.EmptyOp):  # counts where a kernel fills it
                continue
            for result in op.results:
                if isinstance(result.type, TensorType):
                    self._note_result(op, result)
        if terminator is not None:
            self._note_reads(terminator)
            if _returns_to_caller(terminator):
                self._bytes.update(dict.fromkeys(self._reads[terminator], 0))

    def _note_reads(self, op: Operation) -> None:
        self._reads[op] = list(dict.fromkeys(self._root[v] for v in used_values(op) if v in self._root))
        for value in self._reads[op]:
            self._readers[value].add(op)

    def _note_result(self, op: Operation, result: SSAValue) -> None:
        passed = _passed_on(op)
        if passed is not None and not (isinstance(op, tensor.InsertSliceOp) and isinstance(passed.owner, tensor.EmptyOp)):
            if passed in self._root:
                self._root[result] = self._root[passed]
            return
        self._root[result] = result
        self._readers[result] = set()
        self._bytes[result] = bytes_of(result)
        self._made[op].append(result)

    def last_reads(self, place: Mapping[Operation, int]) -> dict[Operation, int]:
        """For each op, the least place of the last *other* reader over the tensors that it reads: up to there it frees nothing. The
        block's end comes after all."""
        end = len(place)
        latest = {v: sorted((place.get(reader, end) for reader in readers), reverse=True)[:2] for v, readers in self._readers.items()}
        found: dict[Operation, int] = {}
        for op in self._made:
            others = [ends[1:] if ends[0] == place[op] else ends for ends in (latest[v] for v in self._reads[op])]
            found[op] = min((ends[0] if ends else -1 for ends in others), default=end)
        return found

    def allocated(self, op: Operation) -> int:
        """Bytes that running `op` takes."""
        return sum(self._bytes[v] for v in self._made[op])

    def delta(self, op: Operation) -> int:
        """Bytes alive after `op` more than before it, were it to run now."""
        freed = sum(self._bytes[v] for v in self._reads[op] if self._readers[v] == {op})
        return sum(self._bytes[v] for v in self._made[op] if self._readers[v]) - freed

    def rank(self, op: Operation) -> tuple[bool, int, int]:
        """The smaller, the sooner `op` should run: what frees memory before what takes some, then what takes least on the way.

        Two ops that free memory, in either order, end at the same bytes; that which needs less room goes first (J. W. H. Liu, An
        application of generalized tree pebbling to sparse matrix factorization, 1987, for trees).
        """
        delta = self.delta(op)
        return (False, self.allocated(op), delta) if delta <= 0 else (True, delta, 0)

    def run(self, op: Operation) -> list[Operation]:
        """Note that `op` has run; the ops that are now the only readers left of something."""
        last: list[Operation] = []
        for value in self._reads[op]:
            left = self._readers[value]
            left.discard(op)
            if len(left) == 1:
                last += left
        return last


def peak_bytes(order: Sequence[Operation], terminator: Operation | None) -> int:
    """Most bytes alive at once when the ops run in this order."""
    lives = LiveBytes(order, terminator)
    live = top = 0
    for op in order:
        top = max(top, live + lives.allocated(op))
        live += lives.delta(op)
        lives.run(op)
    return top


def bytes_of(value: SSAValue) -> int:
    """Size of a tensor."""
    element = cast("TensorType[Any]", value.type).element_type
    width = numpy_dtype(element).itemsize if is_float(element) or isinstance(element, IntegerType) else 8
    return width * prod(n if isinstance(n, int) else NOMINAL_SIZE for n in shape_of(value))


def _returns_to_caller(terminator: Operation) -> bool:
    entry = terminator.parent_op()
    return isinstance(entry, func.FuncOp) and is_public(entry)


def _passed_on(op: Operation) -> SSAValue | None:
    if isinstance(op, ALIASES):
        return op.operands[0]
    return op.dest if isinstance(op, tensor.InsertSliceOp) else None
