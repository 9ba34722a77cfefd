"""Floats that leave the types which carry derivatives: into memory, into vectors. Their derivative would be lost without a word."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, IntegerType, MemRefType, TensorType, UnrankedMemRefType, VectorType
from xdsl.ir import Attribute, Operation

from gradir.autodiff.tensors import is_differentiable
from gradir.dialects.upstream.effects import Effects, effects
from gradir.errors import GradirError
from gradir.ir.passes import error_at


def untracked(op: Operation) -> GradirError | None:
    """The error AD018 where `op`, which reads a value that moves, gives a float in a type without derivatives, or writes it to memory."""
    if op.results:
        hidden = [r.type for r in op.results if _hides(r.type)]
    else:
        hidden = [v.type for v in op.operands if _in_memory(v.type)] if Effects.WRITE in effects(op) else []
    if not hidden:
        return None
    return error_at(
        op,
        f"a derivative would be lost in a {hidden[0]}",
        part="autodiff",
        code="AD018",
        expected="tensors and scalars of floats between the arguments in wrt and the results",
        found=str(hidden[0]),
        hint="differentiate before the program is lowered to buffers and vectors, or cut the path with ad.stop_gradient",
    )


def _hides(kind: Attribute) -> bool:
    if is_differentiable(kind) or isinstance(kind, TensorType | IntegerType | IndexType):
        return False
    return not (isinstance(kind, VectorType | MemRefType) and isinstance(kind.element_type, IntegerType | IndexType))


def _in_memory(kind: Attribute) -> bool:
    return isinstance(kind, MemRefType | UnrankedMemRefType)
