"""Schedules of kernels: the attribute `gradir.kernel` of a private function, one class per kind of kernel.

`outline-kernels` writes the kind with no fields (`#kernel.contraction<>`), `schedule-kernels` fills the fields from the target, a person
or the tuner may change them, `lower-kernels` obeys them. A field that is absent is empty and means "as the generator decides".
Relies on xDSL's attribute machinery only; which numbers are good is `gradir.lowering.schedules`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import ClassVar, Self, TypeAlias

from xdsl.dialects.builtin import I64, DenseArrayBase, i64
from xdsl.ir import Attribute, Dialect, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

PARALLEL = "gradir.parallel"
"""Attribute of an `scf.for` of a template whose trips write apart from each other: how many of them are worth a thread."""

KERNEL_ATTRIBUTE = "gradir.kernel"
REASON_ATTRIBUTE = "gradir.reason"
"""Of a kernel: why it has its schedule, for people (`explain`); no part of the kernel's structure."""
LIBRARY_ATTRIBUTE = "gradir.library"
"""Of a declared kernel: the name of the function that the runtime calls for it."""
CONFIG_ATTRIBUTE = "gradir.config"
EFFECTS_ATTRIBUTE = "gradir.effects"
"""Of a declared kernel whose calls keep their place and are never removed."""
ELEMENTS_ATTRIBUTE = "gradir.elements"
"""Of a declared kernel: element types of its operands and results at level 1, where signs and complex numbers are known."""
DESTINATIONS_ATTRIBUTE = "gradir.destinations"
"""Of a declared kernel: how many of its last arguments are results."""
COMPLEX_ATTRIBUTE = "gradir.complex"
"""Of a declared kernel: positions of the arguments whose last dimension is a real and an imaginary part."""
_FIELDS = ("tile", "block", "pack", "parallel")
_STREAMING = ("tile", "block", "parallel", "stream")


@cache
def sizes(*values: int) -> DenseArrayBase[I64]:
    """The (interned) array of a schedule's field."""
    return DenseArrayBase.from_list(i64, list(values))


class Schedule(ParametrizedAttribute):
    """What all kinds share. The fields are lists of integers:

    - `tile`: sizes of the register tile, in elements, outermost dimension first;
    - `block`: sizes of the cache blocks around the tile, of one task where the kernel is parallel;
    - `pack`: positions of the operands that are copied into contiguous panels first;
    - `parallel`: loop dimensions (of the group) whose blocks may run on several threads;
    - `stream`: positions of the results that are written past the caches (non-temporal stores);
    - `stages`, `split`: see `ContractionAttr`.
    """

    FIELDS: ClassVar[tuple[str, ...]] = ("tile", "block", "parallel")

    @classmethod
    def of(cls, **fields: Sequence[int]) -> Self:
        """`cls.of(tile=[6, 16])`: fields that are not given are empty."""
        unknown = set(fields) - set(cls.FIELDS)
        if unknown:
            raise ValueError(f"{cls.name} has no field {sorted(unknown)[0]}")
        return cls(*(sizes(*fields.get(name, ())) for name in cls.FIELDS))

    def field(self, name: str) -> tuple[int, ...]:
        """The integers of one field; empty for a field that this kind lacks."""
        return tuple(int(v) for v in getattr(self, name).get_values()) if name in self.FIELDS else ()

    @property
    def kind(self) -> str:
        """`contraction`, `rows`, ...: the kind without the dialect's name."""
        return self.name.removeprefix("kernel.")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        found: dict[str, DenseArrayBase[I64]] = {}

        def parse_field() -> None:
            start = parser.pos
            name = parser.parse_identifier()
            if name not in cls.FIELDS:
                known = ", ".join(cls.FIELDS) or "none"
                parser.raise_error(f"#{cls.name} has no field '{name}', expected one of: {known}", start, parser.pos)
            if name in found:
                parser.raise_error(f"#{cls.name}: field '{name}' is given twice", start, parser.pos)
            parser.parse_punctuation("=")
            found[name] = sizes(*parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer))

        parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parse_field)
        return [found.get(name, sizes()) for name in cls.FIELDS]

    def print_parameters(self, printer: Printer) -> None:
        given = ((name, self.field(name)) for name in self.FIELDS)
        printer.print_string("<" + ", ".join(f"{name} = {list(values)}" for name, values in given if values) + ">")


@irdl_attr_definition
class ElementwiseAttr(Schedule):
    """One pass over an index space of any rank, all of it parallel. tile = [lanes], block = [elements of a task]."""

    FIELDS = _STREAMING

    name = "kernel.elementwise"
    tile: DenseArrayBase[I64]
    block: DenseArrayBase[I64]
    parallel: DenseArrayBase[I64]
    stream: DenseArrayBase[I64]


@irdl_attr_definition
class RowsAttr(Schedule):
    """Reductions along rows or columns and elementwise ops around them. tile = [accumulators, lanes], block = [rows of a task]."""

    FIELDS = _STREAMING

    name = "kernel.rows"
    tile: DenseArrayBase[I64]
    block: DenseArrayBase[I64]
    parallel: DenseArrayBase[I64]
    stream: DenseArrayBase[I64]


@irdl_attr_definition
class ContractionAttr(Schedule):
    """One contraction, then elementwise ops. tile = [rows, columns], block = [m, n, k], pack: of 0 (row operand), 1 (column operand).

    On a GPU also stages = [tiles in workgroup memory at once] and split = [blocks that share one sum].
    """

    FIELDS = (*_FIELDS, "stages", "split")

    name = "kernel.contraction"
    tile: DenseArrayBase[I64]
    block: DenseArrayBase[I64]
    pack: DenseArrayBase[I64]
    parallel: DenseArrayBase[I64]
    stages: DenseArrayBase[I64]
    split: DenseArrayBase[I64]


@irdl_attr_definition
class LoopsAttr(Schedule):
    """Anything else, one op after the other, as plain loops. tile = [lanes], block = [iterations of a task]."""

    name = "kernel.loops"
    tile: DenseArrayBase[I64]
    block: DenseArrayBase[I64]
    parallel: DenseArrayBase[I64]


@irdl_attr_definition
class ChainAttr(Schedule):
    """Groups one after the other over the same rows: contraction, softmax, contraction. block = [rows that go through all stages at once].

    The stages' own schedules follow from their groups when they are lowered.
    """

    name = "kernel.chain"
    tile: DenseArrayBase[I64]
    block: DenseArrayBase[I64]
    parallel: DenseArrayBase[I64]


@irdl_attr_definition
class TemplateAttr(Schedule):
    """Already loops when outlined: `lower-kernels` leaves it as it is."""

    FIELDS = ()

    name = "kernel.template"


@irdl_attr_definition
class LibraryAttr(Schedule):
    """A declared function: the attribute `gradir.library` of the function names who computes it, `gradir.config` says how."""

    FIELDS = ()

    name = "kernel.library"


KernelAttr: TypeAlias = ElementwiseAttr | RowsAttr | ContractionAttr | LoopsAttr | ChainAttr | TemplateAttr | LibraryAttr

_ATTRIBUTES: tuple[type[Schedule], ...] = (ElementwiseAttr, RowsAttr, ContractionAttr, LoopsAttr, ChainAttr, TemplateAttr, LibraryAttr)
KINDS: dict[str, type[Schedule]] = {attribute.name.removeprefix("kernel."): attribute for attribute in _ATTRIBUTES}

Kernel = Dialect("kernel", [], list(KINDS.values()))
