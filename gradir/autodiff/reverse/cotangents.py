"""The cotangents of one block under construction.

Several contributions to an f16 or bf16 value are summed in f32, over the iterations of a loop too, and rounded once, when somebody
reads the sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir import Attribute, SSAValue

from gradir.autodiff.names import name_after
from gradir.autodiff.reverse.parts import Part, joined, part_of
from gradir.autodiff.tensors import TensorBuilder
from gradir.dialects import nd
from gradir.dialects.types import NARROW_CLASSES, element_of, shape_of, tensor
from gradir.ir.builder import Builder

Entry: TypeAlias = "Callable[[Cotangents], None]"
"""One recorded op: emits its contribution, given the cotangents so far."""


def accumulator_type(kind: Attribute) -> Attribute:
    """The type in which cotangents of a value of type `kind` are summed."""
    if isinstance(kind, TensorType) and isinstance(kind.element_type, NARROW_CLASSES):
        return tensor(f32, shape_of(kind))
    return f32 if isinstance(kind, NARROW_CLASSES) else kind


class Cotangents:
    """Maps forward values to their cotangents; emits into `builder`."""

    def __init__(self, builder: Builder, active: set[SSAValue], *, strong: bool = True) -> None:
        self.builder = builder
        self.t = TensorBuilder(builder, strong=strong)
        self.active = active
        self._of: dict[SSAValue, SSAValue] = {}
        self._parts: dict[SSAValue, list[Part]] = {}

    def run(self, tape: Sequence[Entry]) -> None:
        """Replay the recorded ops backwards."""
        for entry in reversed(tape):
            entry(self)

    def get(self, value: SSAValue) -> SSAValue | None:
        """The cotangent in the value's own type, None when nothing has contributed."""
        self._join(value)
        ct = self._of.get(value)
        if ct is None:
            return None
        rounded = self.t.convert(ct, element_of(value))
        name_after(rounded, value)
        return rounded

    def get_or_zeros(self, value: SSAValue) -> SSAValue:
        ct = self.get(value)
        return self.t.zeros_as(value, value.type) if ct is None else ct

    def sum_so_far(self, value: SSAValue) -> SSAValue | None:
        """As `get`, in the type in which the sum is."""
        self._join(value)
        return self._of.get(value)

    def accumulator(self, value: SSAValue) -> SSAValue:
        """The cotangent so far, or zeros, in its accumulator type."""
        self._join(value)
        kind = accumulator_type(value.type)
        ct = self._of.get(value)
        return self.t.zeros_as(value, kind) if ct is None else self._unrounded(ct, kind)

    def has(self, value: SSAValue) -> bool:
        """Whether anything has contributed so far."""
        return value in self._of or value in self._parts

    def set(self, value: SSAValue, ct: SSAValue) -> None:
        """The cotangent from here on, in place of what has contributed."""
        self._of[value] = ct
        name_after(ct, value)

    def add(self, value: SSAValue, ct: SSAValue) -> None:
        """Accumulate; values that are not active take no cotangent."""
        if value not in self.active:
            return
        if value not in self._of:
            self.set(value, ct)
            return
        old = self.accumulator(value)
        self.set(value, self.t.add(old, self._unrounded(ct, old.type)))

    def _unrounded(self, ct: SSAValue, kind: Attribute) -> SSAValue:
        """`ct` in the type of a sum, as it was before it was rounded where a conversion did that: a sum is rounded once, at its end."""
        source = ct.owner
        if isinstance(source, nd.ConvertOp) and source.operand.type == kind and accumulator_type(ct.type) == kind:
            return source.operand
        return self.t.convert(ct, element_of(kind))

    def add_slice(self, op: nd.SliceOp, ct: SSAValue) -> bool:
        """Accumulate `ct` into what `op` read of its operand, once the whole is asked for. False where the slice is of no such kind."""
        part = part_of(op, ct) if op.operand in self.active else None
        if part is not None:
            self._parts.setdefault(op.operand, []).append(part)
        return part is not None

    def _join(self, value: SSAValue) -> None:
        """Sum up what came by slices."""
        parts = self._parts.pop(value, None)
        for ct in joined(self.t, value, parts) if parts else ():
            self.add(value, ct)

    def add_at(self, value: SSAValue, at: SSAValue, dim: int, ct: SSAValue) -> None:
        """Accumulate `ct` into the slice `at` of the cotangent: never a full-size zero plus an add."""
        if value not in self.active:
            return
        self._join(value)
        if value not in self._of:
            self.set(value, self.t.update_at(ct, self.t.zeros(value.type), at, dim))
            return
        whole = self.accumulator(value)
        part = self.t.add(self.t.index_at(whole, at, dim), self.t.convert(ct, element_of(whole)))
        self.set(value, self.t.update_at(part, whole, at, dim))
