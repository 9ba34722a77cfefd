"""What a fold is, and where the folds of each dialect are.

A rule `rule(op, folder)` returns the values that replace the op's results (the op is then removed), or None if it does not
apply. It may build ops through the folder, in front of the op and at its location. It may also change the op in place and
say so with `folder.updated()`. Rules are small, pure and named for their equation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from gradir.dialects.upstream.arith import ConstantOp
from gradir.lowering.purity import Purity

Rule = Callable[[Any, "Folder"], Sequence[SSAValue] | None]

FOLD_MODULES: dict[str, list[str]] = {
    "arith": ["gradir.lowering.folds.arith"],
    "nd": ["gradir.lowering.folds.nd", "gradir.lowering.folds.nd_scales"],
    "scf": ["gradir.lowering.folds.scf"],
    "tensor": ["gradir.lowering.folds.tensor"],
}
"""Dialect -> modules with a table `FOLDS`, imported when a program uses the dialect. Plugins append."""


def load_rules(dialect: str) -> Mapping[type[Operation], Sequence[Rule]]:
    """The rules of one dialect by op class."""
    rules: dict[type[Operation], list[Rule]] = {}
    for module in FOLD_MODULES.get(dialect, ()):
        for kind, rule in import_module(module).FOLDS.items():
            rules.setdefault(kind, []).append(rule)
    return rules


class Folder:
    """What a rule may ask and build while it looks at `op`."""

    def __init__(self, purity: Purity) -> None:
        self.purity = purity
        self.op: Operation = None  # pyright: ignore[reportAttributeAccessIssue]  (set before each rule runs)
        self.built: list[Operation] = []
        self.released: list[SSAValue] = []
        self.in_place = False

    # -- asking

    def constant(self, value: SSAValue) -> Attribute | None:
        """The attribute of the `arith.constant` that defines `value`."""
        return value.owner.properties["value"] if isinstance(value.owner, ConstantOp) else None

    def integer(self, value: SSAValue) -> int | None:
        """The number of a constant scalar, signed (`i1`: 0 or -1)."""
        constant = self.constant(value)
        return signed(constant.value.data, constant.type) if isinstance(constant, IntegerAttr) else None

    def truth(self, value: SSAValue) -> bool | None:
        """The value of a constant `i1`."""
        number = self.integer(value)
        return None if number is None else number != 0

    def real(self, value: SSAValue) -> float | None:
        """The number of a constant scalar float."""
        constant = self.constant(value)
        return constant.value.data if isinstance(constant, FloatAttr) else None

    # -- building

    def new(
        self,
        kind: type[Operation],
        operands: Sequence[SSAValue],
        types: Sequence[Attribute],
        properties: Mapping[str, Attribute] | None = None,
        **more: Any,
    ) -> Operation:
        """A new op in front of the current one."""
        op = kind.create(operands=operands, result_types=types, properties=dict(properties or {}), location=self.op.location, **more)
        self.insert(op)
        return op

    def insert(self, op: Operation) -> None:
        """Put a ready op in front of the current one."""
        block = self.op.parent
        assert block is not None
        block.insert_op_before(op, self.op)
        self.built.append(op)

    def make_integer(self, value: int, type: Attribute) -> SSAValue:
        """`arith.constant` of a scalar integer or index type; `value` wraps."""
        assert isinstance(type, IntegerType | IndexType)
        wrapped = signed(value, type)
        attribute = IntegerAttr.from_bool(wrapped != 0) if width(type) == 1 else IntegerAttr(wrapped, type)
        return self.new(ConstantOp, (), (type,), {"value": attribute}).results[0]

    def inline(self, block: Block, arguments: Sequence[SSAValue]) -> tuple[SSAValue, ...]:
        """Move the ops of `block` in front of the current op; what its terminator yielded. The block is left empty."""
        for old, new in zip(block.args, arguments, strict=True):
            old.replace_all_uses_with(new)
        terminator = block.last_op
        assert terminator is not None
        yielded = tuple(terminator.operands)
        terminator.detach()
        terminator.erase()
        for op in list(block.ops):
            op.detach()
            self.insert(op)
        return yielded

    def release(self, values: Sequence[SSAValue]) -> None:
        """`values` lost a use that the current op's own removal does not show: their ops may be dead."""
        self.released.extend(values)

    def updated(self) -> None:
        """The current op was changed in place."""
        self.in_place = True


def width(type: Attribute) -> int:
    """Bits of an integer type; `index` has 64."""
    return type.width.data if isinstance(type, IntegerType) else 64


def signed(value: int, type: Attribute) -> int:
    """`value` wrapped into the signed range of `type`."""
    bits = width(type)
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def unsigned(value: int, type: Attribute) -> int:
    """`value` wrapped into the unsigned range of `type`."""
    return value & ((1 << width(type)) - 1)
