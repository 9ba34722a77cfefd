"""A PTX module as data: what the parser reads and the emulator runs. Names and spellings are those of the PTX ISA."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Register:
    """`%r12`, or a special register such as `%tid.x` (then `special`)."""

    name: str
    special: bool = False


@dataclass(frozen=True, slots=True)
class Immediate:
    """A literal: an integer, or a float with `bits` (0f..., 0d...: exact) or a decimal one."""

    value: int | float
    bits: int | None = None


@dataclass(frozen=True, slots=True)
class Name:
    """A variable, a parameter, a label or a function, and an offset from it in bytes."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Address:
    """`[base + offset]`, `[base, {coordinates}]`."""

    base: Register | Name | Immediate
    offset: int = 0
    coordinates: tuple[Operand, ...] = ()


@dataclass(frozen=True, slots=True)
class Vector:
    """`{a, b, ...}`."""

    elements: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """`%p|%q`: two destinations of one instruction."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class Negated:
    """`!%p`."""

    operand: Register


Operand: TypeAlias = Register | Immediate | Name | Address | Vector | Pair | Negated


@dataclass(frozen=True, slots=True)
class Source:
    """Where an instruction stands: its line in the PTX text and, from `.loc`, the line of the program that it came from."""

    line: int
    file: str = ""
    file_line: int = 0

    def __str__(self) -> str:
        return f"line {self.line}" + (f" ({self.file}:{self.file_line})" if self.file_line else "")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. `opcode` are the parts between dots: `("ld", "global", "nc", "v4", "f32")`."""

    opcode: tuple[str, ...]
    operands: tuple[Operand, ...]
    source: Source
    predicate: Register | None = None
    negated: bool = False

    @property
    def name(self) -> str:
        """The opcode as it is written."""
        return ".".join(self.opcode)


@dataclass(frozen=True, slots=True)
class Variable:
    """A `.param`, `.shared`, `.global`, `.const` or `.local` variable: its size, alignment and initial bytes (None: undefined).

    `extern` arrays of no size are dynamic shared memory.
    """

    name: str
    space: str
    type: str
    size: int
    align: int
    data: bytes | None = None
    extern: bool = False
    pointees: tuple[tuple[int, str, int], ...] = ()
    """Addresses of other variables in the initial bytes: (position, name, offset)."""


@dataclass(frozen=True, slots=True)
class Callee:
    """A device function within a linked body: where it starts, its parameters and results; may it come to be called by itself?"""

    name: str
    start: int
    parameters: tuple[Variable, ...]
    results: tuple[Variable, ...]
    recursive: bool


@dataclass(frozen=True, slots=True)
class Function:
    """A kernel (`entry`) or a device function: parameters in order, variables, registers by name with their types, instructions.

    `labels` are positions in `body`; `limits` what the directives say (`reqntid`, `maxntid`, `maxnreg`, `minnctapersm`, ...).
    """

    name: str
    entry: bool
    parameters: tuple[Variable, ...]
    results: tuple[Variable, ...]
    variables: Mapping[str, Variable]
    registers: Mapping[str, str]
    body: tuple[Instruction, ...]
    labels: Mapping[str, int]
    tables: Mapping[str, tuple[str, ...]]
    """`.branchtargets` of `brx.idx`."""
    limits: Mapping[str, tuple[int, ...]]
    callees: Mapping[str, Callee] = field(default_factory=dict[str, Callee])
    """Device functions whose bodies stand behind that of the kernel (`gradir.ptx.linking`)."""


@dataclass(frozen=True, slots=True)
class PtxModule:
    """A whole text."""

    version: tuple[int, int]
    target: str
    functions: Mapping[str, Function]
    variables: Mapping[str, Variable] = field(default_factory=dict[str, Variable])

    def entries(self) -> tuple[str, ...]:
        """Names of the kernels."""
        return tuple(name for name, function in self.functions.items() if function.entry)
