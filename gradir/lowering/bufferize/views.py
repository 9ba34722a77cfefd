"""The records of bufferize's analysis: contents, views of them, reads, and what callers know about kernels.

A `Content` is what one op puts into memory: a result, a carried value, an argument. Every tensor value is a `View` of one content: the
content itself, its elements in another shape, or a part of it. `contents.Contents` fills them in.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue

from gradir.lowering.bufferize.slices import Slice

Tensor: TypeAlias = TensorType[Any]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a content comes into being as seen from some of its reads: a block, and a position in it."""

    block: Block
    position: int


@dataclass(frozen=True, eq=False, slots=True)
class Read:
    """One op that reads a content.

    `legal`: contents that may come into being in the same memory at that very moment (in-place updates, carried values). `part`: the box
    that is read, None for all. `through`: the op only passes the content on (the rest of an insert's destination).
    """

    op: Operation
    position: int
    origin: Origin
    legal: frozenset[Content] = frozenset()
    part: Slice | None = None
    through: bool = False


@dataclass(eq=False, slots=True)
class Content:
    """What one op puts into memory. `owned`: its memory may be overwritten when it is dead (no argument, no constant, no pointer)."""

    value: SSAValue | None
    type: Tensor
    origin: Origin
    owned: bool = True
    empty: bool = False
    definitions: list[tuple[int, Operation]] = field(default_factory=list[tuple[int, Operation]])
    spans: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Stretches of the timeline where it lives besides the ones that lead to reads."""
    sources: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    """Of a content that control flow chooses: the value that it takes over at each of its definitions."""
    exit: Origin | None = None
    """Origin of reads behind the loop that carries it."""
    reads: list[Read] = field(default_factory=list[Read])
    mentions: list[Operation] = field(default_factory=list[Operation])
    """Ops that need its memref but not its elements."""
    buffer: Any = None
    pointer: Any = None

    def __repr__(self) -> str:
        owner = self.value.owner if self.value is not None else None
        name = owner.name if isinstance(owner, Operation) else "argument"
        return f"Content({name}, {self.type})"


@dataclass(frozen=True, slots=True)
class View:
    """A tensor value as a view of a content. `whole`: the content under its own type; `reshaped`: all of it in another shape."""

    content: Content
    kind: Literal["whole", "reshaped", "part"]
    origin: Origin
    part: Slice | None = None


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """What callers of a kernel rely on: (operand, result) pairs that may share memory, destinations whose old elements are read.

    `contiguous`: it takes whole buffers only, no slices with gaps: functions of libraries.
    """

    results: int
    in_place: frozenset[tuple[int, int]]
    updates: frozenset[int]
    contiguous: bool = False
