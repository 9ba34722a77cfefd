"""Passes for the tests of the tools: each misbehaves in one way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation

from gradir.driver.passes import register_pass
from gradir.ir.passes import Pass, PassContext, error_at


@dataclass(frozen=True)
class Report(Pass):
    """Reports one thing for each op of a kind."""

    NAME: ClassVar[str] = "test-report"
    ANCHOR: ClassVar[str | None] = "func.func"

    def apply(self, op: Operation, context: PassContext) -> None:
        for inner in op.walk():
            if inner.name == "arith.addi":
                context.diagnostics.error(inner, "'arith.addi' is not welcome", (op, "first argument"))
            elif inner.name == "arith.muli":
                context.diagnostics.warning(inner, "a warning")
            elif inner.name == "arith.subi":
                context.diagnostics.remark(inner, "a remark")
            elif inner.name == "arith.divsi":
                context.diagnostics.error(inner, "somewhere")


@dataclass(frozen=True)
class Crash(Pass):
    """Raises on the function called `victim`."""

    NAME: ClassVar[str] = "test-crash"
    ANCHOR: ClassVar[str | None] = "func.func"
    victim: str = "f"

    def apply(self, op: Operation, context: PassContext) -> None:
        if op.properties["sym_name"] == StringAttr(self.victim):
            raise KeyError("boom")


@dataclass(frozen=True)
class Break(Pass):
    """Reverses the ops of each function: the result is invalid."""

    NAME: ClassVar[str] = "test-break"
    ANCHOR: ClassVar[str | None] = "func.func"

    def apply(self, op: Operation, context: PassContext) -> None:
        block = op.regions[0].block
        for inner in [o for o in block.ops if o is not block.last_op]:
            inner.detach()
            block.insert_op_before(inner, block.first_op)


@dataclass(frozen=True)
class Options(Pass):
    """Writes its options on the module."""

    NAME: ClassVar[str] = "test-options"
    text: str = "default"
    count: int = 0
    scale: float = 1.0
    fast: bool = False
    sizes: tuple[int, ...] = ()

    def apply(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, ModuleOp)
        op.attributes["options"] = StringAttr(f"{self.text} {self.count} {self.scale} {self.fast} {self.sizes}")


@dataclass(frozen=True)
class Refuse(Pass):
    """Raises the error that a user sees."""

    NAME: ClassVar[str] = "test-refuse"
    ANCHOR: ClassVar[str | None] = "func.func"

    def apply(self, op: Operation, context: PassContext) -> None:
        raise error_at(op, "refused", part="operator", code="GR011", expected="this", found="that", hint="do otherwise")


@dataclass(frozen=True)
class Miscompile(Pass):
    """Turns every subtraction round: a planted bug."""

    NAME: ClassVar[str] = "test-miscompile"
    ANCHOR: ClassVar[str | None] = "func.func"

    def apply(self, op: Operation, context: PassContext) -> None:
        for inner in op.walk():
            if inner.name in ("nd.sub", "arith.subf"):
                inner.operands = [inner.operands[1], inner.operands[0]]


register_pass("test-miscompile", Miscompile, "a planted bug")
register_pass("test-report", Report, "reports one thing for each op of a kind")
register_pass("test-crash", Crash, "raises on one function")
register_pass("test-break", Break, "makes invalid IR")
register_pass("test-options", Options, "writes its options on the module")
register_pass("test-refuse", Refuse, "raises the error that a user sees")
