"""`#target.cpu<"znver4", features = "+avx2", vector = 16, registers = 32, threads = 2, l1 = 32768, l2 = 1048576, l3 = 33554432>`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import IntAttr, StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from gradir.dialects.target.fields import parse_fields, print_fields
from gradir.dialects.target.isa import NEON, SSE2, X86_CPUS, Isa


@irdl_attr_definition
class CpuTargetAttr(ParametrizedAttribute):
    """One kind of CPU.

    `cpu` is LLVM's processor name, `features` LLVM's changes to it (`+f16c,-avx512f`); `vector` counts the f32 lanes of a register,
    `registers` the vector registers, `threads` the threads that a parallel loop may use, `l1`, `l2`, `l3` are bytes (0: unknown);
    `triple` is empty for the machine that compiles.
    """

    name = "target.cpu"
    FIELDS: ClassVar[dict[str, Any]] = {
        "features": "", "vector": 8, "registers": 16, "threads": 1, "l1": 32768, "l2": 524288, "l3": 0, "triple": "",
    }  # fmt: skip

    cpu_: StringAttr
    features_: StringAttr
    vector_: IntAttr
    registers_: IntAttr
    threads_: IntAttr
    l1_: IntAttr
    l2_: IntAttr
    l3_: IntAttr
    triple_: StringAttr

    @classmethod
    def of(cls, cpu: str, **fields: int | str) -> CpuTargetAttr:
        """`CpuTargetAttr.of("znver4", vector=16)`: fields that are not given have the defaults of `FIELDS`."""
        unknown = set(fields) - set(cls.FIELDS)
        if unknown:
            raise ValueError(f"target.cpu has no field {sorted(unknown)[0]}")
        values = {**cls.FIELDS, **fields}
        new: Any = cls  # the fields alternate between two attribute types
        return new(StringAttr(cpu), *(StringAttr(v) if isinstance(v, str) else IntAttr(v) for v in values.values()))

    @property
    def cpu(self) -> str:
        return self.cpu_.data

    @property
    def features(self) -> str:
        return self.features_.data

    @property
    def vector(self) -> int:
        """Lanes of f32 in one register."""
        return self.vector_.data

    @property
    def registers(self) -> int:
        return self.registers_.data

    @property
    def threads(self) -> int:
        return self.threads_.data

    @property
    def l1(self) -> int:
        return self.l1_.data

    @property
    def l2(self) -> int:
        return self.l2_.data

    @property
    def l3(self) -> int:
        return self.l3_.data

    @property
    def triple(self) -> str:
        return self.triple_.data

    @property
    def isa(self) -> Isa:
        """What the processor's name stands for; SSE2 for a name that the table lacks."""
        return NEON if self.triple.startswith(("aarch64", "arm64")) else X86_CPUS.get(self.cpu, SSE2)

    def has(self, feature: str) -> bool:
        """Is `feature` (`fma`, `f16c`, `sse4.1`, ...) there? The last mention in `features` wins over the processor's name."""
        mentioned = [change[0] == "+" for change in self.features.split(",") if change[1:] == feature]
        return mentioned[-1] if mentioned else feature in self.isa.features

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        return parse_fields(parser, cls.name, cls.FIELDS)

    def print_parameters(self, printer: Printer) -> None:
        print_fields(printer, self.cpu, self.FIELDS, {field: getattr(self, field) for field in self.FIELDS})
