"""`#target.cuda<"sm_80", threads = 1024, shared = 49152, sms = 108>`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import IntAttr, StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from gradir.dialects.target.fields import parse_fields, print_fields

SMS: dict[str, int] = {
    "sm_70": 80,
    "sm_75": 40,
    "sm_80": 108,
    "sm_86": 84,
    "sm_87": 16,
    "sm_89": 128,
    "sm_90": 132,
    "sm_90a": 132,
    "sm_100": 148,
    "sm_100a": 148,
    "sm_120": 170,
}
"""Known architectures and the multiprocessors of their usual card: grids are sized by it, nothing depends on it for correctness."""


@irdl_attr_definition
class CudaTargetAttr(ParametrizedAttribute):
    """One kind of NVIDIA GPU: architecture, threads per block, bytes of shared memory per block, number of multiprocessors."""

    name = "target.cuda"
    FIELDS: ClassVar[dict[str, Any]] = {"threads": 1024, "shared": 49152, "sms": 108}

    arch_: StringAttr
    threads_: IntAttr
    shared_: IntAttr
    sms_: IntAttr

    @classmethod
    def of(cls, arch: str, **fields: int) -> CudaTargetAttr:
        """`CudaTargetAttr.of("sm_90")`."""
        unknown = set(fields) - set(cls.FIELDS)
        if unknown:
            raise ValueError(f"target.cuda has no field {sorted(unknown)[0]}")
        values = {**cls.FIELDS, "sms": SMS.get(arch, 108), **fields}
        new: Any = cls
        return new(StringAttr(arch), *(IntAttr(v) for v in values.values()))

    @property
    def arch(self) -> str:
        return self.arch_.data

    @property
    def threads(self) -> int:
        return self.threads_.data

    @property
    def shared(self) -> int:
        return self.shared_.data

    @property
    def sms(self) -> int:
        return self.sms_.data

    @property
    def warp(self) -> int:
        """Threads of a warp."""
        return 32

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        return parse_fields(parser, cls.name, cls.FIELDS)

    def print_parameters(self, printer: Printer) -> None:
        print_fields(printer, self.arch, self.FIELDS, {field: getattr(self, field) for field in self.FIELDS})
