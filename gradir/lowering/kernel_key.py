"""The structure of a kernel as a hashable key: equal keys, equal code.

Names of values and of sizes do not count (sizes are renamed by first occurrence), locations do not count, constants do, to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import pack
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import FloatAttr, TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from gradir.dialects.types import shape_of
from gradir.dialects.upstream.math import NONPOSITIVE

Key: TypeAlias = tuple[Any, ...]


class Interner:
    """Small numbers for attributes, so that keys hash fast; keeps the attributes alive that it knows by identity."""

    def __init__(self) -> None:
        self._by_identity: dict[int, int] = {}
        self._by_value: dict[Any, int] = {}
        self._alive: list[Attribute] = []

    def __call__(self, attribute: Attribute) -> int:
        found = self._by_identity.get(id(attribute))
        if found is None:
            found = self._by_value.setdefault(_exact(attribute), len(self._by_value))
            self._by_identity[id(attribute)] = found
            self._alive.append(attribute)
        return found


def _exact(attribute: Attribute) -> Any:
    """Floats by their bits: 0.0 == -0.0 as attributes, not as constants."""
    if isinstance(attribute, FloatAttr):
        number = cast("FloatAttr[Any]", attribute)
        return (number.type, pack("<d", number.value.data))
    return attribute


class KeyWriter:
    """Collects the key of one kernel: first its arguments, then its ops."""

    def __init__(self, intern: Interner) -> None:
        self._intern = intern
        self._numbers: dict[SSAValue, int] = {}
        self._sizes: dict[str, int] = {}
        self._items: list[Any] = []

    def argument(self, value: SSAValue) -> None:
        """The next argument of the kernel."""
        self._number(value)
        self._items.append(self._type(value.type))

    def note(self, *items: Any) -> None:
        """Anything hashable that tells kernels apart."""
        self._items.append(items)

    def op(self, op: Operation, operands: Sequence[SSAValue], lifted: dict[SSAValue, Any]) -> None:
        """An op with its regions. `lifted` values became arguments: their own definitions do not count."""
        if op.results and op.results[0] in lifted:
            return
        self._items.append(
            (
                op.name,
                tuple(self._number(v) for v in operands),
                tuple((name, self._intern(value)) for name, value in sorted(op.properties.items())),
                tuple(self._type(r.type) for r in op.results),
                NONPOSITIVE in op.attributes,
            )
        )
        for region in op.regions:
            for block in region.blocks:
                self._block(block, lifted)
        for result in op.results:
            self._number(result)

    def key(self) -> Key:
        """The key so far."""
        return tuple(self._items)

    def shape(self, value: SSAValue) -> Any:
        """The type of a value as the key has it."""
        return self._type(value.type)

    def number(self, value: SSAValue) -> int:
        """What the key calls a value."""
        return self._number(value)

    def _block(self, block: Block, lifted: dict[SSAValue, Any]) -> None:
        for argument in block.args:
            self.argument(argument)
        for op in block.ops:
            self.op(op, op.operands, lifted)
        self._items.append("}")

    def _number(self, value: SSAValue) -> int:
        return self._numbers.setdefault(value, len(self._numbers))

    def _type(self, type_: Attribute) -> Any:
        if isinstance(type_, TensorType):
            shape = tuple(f"s{self._sizes.setdefault(n, len(self._sizes))}" if isinstance(n, str) else n for n in shape_of(type_))
            return (self._intern(type_.element_type), shape)
        return self._intern(type_)
