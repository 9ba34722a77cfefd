"""Frozen arguments: what a program computes from them alone, packed weights above all, is computed once for each set of them.

`jit(f, frozen=(1,))` asks for buffers that cannot change (`freeze`). A set of them is known by the buffers themselves, not by addresses:
an entry lives as long as they do.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gradir.errors import GradirError
from gradir.frontends.python.pytrees import flatten, unflatten
from gradir.runtime.buffer import Buffer
from gradir.runtime.module import Function


def freeze(tree: Any) -> Any:
    """A copy of a container of arrays, each a `Buffer` that nobody can change: what `jit(.., frozen=..)` takes. Frozen ones stay."""
    leaves, structure = flatten(tree)
    return unflatten(structure, [x if isinstance(x, Buffer) and x.is_frozen else Buffer.frozen(x) for x in leaves])


@dataclass(eq=False)
class Preparation:
    """What runs once for each set of frozen buffers: `function` takes them, `kept` are the flat arguments that the program still takes."""

    name: str
    function: Function | None
    frozen: tuple[int, ...]
    kept: tuple[int, ...]
    _known: dict[tuple[int, ...], tuple[list[weakref.ref[Buffer]], tuple[Any, ...]]] = field(default_factory=dict, repr=False)

    def arguments(self, leaves: Sequence[Any]) -> list[Any]:
        """The flat arguments of the program; GradirError RT066 for a frozen one that could change."""
        buffers = [self._checked(leaves[k], k) for k in self.frozen]
        rest = [leaves[k].numpy() if isinstance(leaves[k], Buffer) else leaves[k] for k in self.kept]
        return rest if self.function is None else [*rest, *self._prepared(buffers)]

    def _checked(self, leaf: Any, position: int) -> Buffer:
        if isinstance(leaf, Buffer) and leaf.is_frozen:
            return leaf
        raise GradirError(
            f"{self.name}: flat argument {position} is declared frozen, and its elements can change",
            part="runtime",
            code="RT066",
            function=f"@{self.name}",
            expected="a frozen Buffer",
            found=f"a writable {type(leaf).__name__}" if isinstance(leaf, Buffer) else type(leaf).__name__,
            hint="make it once, weights = gradir.freeze(weights), and pass that; or take the argument out of frozen=",
        )

    def _prepared(self, buffers: Sequence[Buffer]) -> tuple[Any, ...]:
        key = tuple(id(b) for b in buffers)
        found = self._known.get(key)
        if found is not None and all(ref() is b for ref, b in zip(found[0], buffers)):
            return found[1]
        assert self.function is not None
        values = self.function.flat(*(b.numpy() for b in buffers))
        known = self._known
        self._known[key] = [weakref.ref(b, lambda _, key=key: known.pop(key, None) and None) for b in buffers], values
        return values
