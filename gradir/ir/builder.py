"""Building ops cheaply: `Op.create` into a block, one location per source op.

Constructors of xDSL ops cost 20 to 40 us, `create` 6 to 9; a lowering that rebuilds a function uses this class alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import UNKNOWN_LOC, FunctionType, LocationAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

import gradir.ir.quick  # noqa: F401  # pyright: ignore[reportUnusedImport]  (xDSL's methods, quicker)

_NOTHING: dict[str, Attribute] = {}


class Builder:
    """Appends ops to `block`; every op gets `loc`, which the caller sets once per source op."""

    __slots__ = ("block", "loc")

    def __init__(self, block: Block, loc: LocationAttr = UNKNOWN_LOC) -> None:
        self.block = block
        self.loc = loc

    def op(
        self,
        kind: type[Operation],
        operands: Sequence[SSAValue] = (),
        result_types: Sequence[Attribute] = (),
        properties: Mapping[str, Attribute] = _NOTHING,
        regions: Sequence[Region] = (),
        attributes: Mapping[str, Attribute] = _NOTHING,
    ) -> Operation:
        """Append one op and return it."""
        new = kind.create(
            operands=operands,
            result_types=result_types,
            properties=dict(properties),
            attributes=dict(attributes),
            regions=regions,
            location=self.loc,
        )
        self.block.add_op(new)
        return new

    def __call__(
        self,
        kind: type[Operation],
        operands: Sequence[SSAValue] = (),
        result_types: Sequence[Attribute] = (),
        properties: Mapping[str, Attribute] = _NOTHING,
        **more: Any,
    ) -> Any:
        """Append one op; its only result, or the tuple of its results."""
        results = self.op(kind, operands, result_types, properties, **more).results
        return results[0] if len(results) == 1 else tuple(results)

    def nested(self, block: Block) -> Builder:
        """A builder into `block` with the same location."""
        return Builder(block, self.loc)


def new_function(
    name: str,
    block: Block,
    result_types: Sequence[Attribute],
    *,
    private: bool = False,
    attributes: Mapping[str, Attribute] = _NOTHING,
    loc: LocationAttr = UNKNOWN_LOC,
) -> FuncOp:
    """A `func.func` whose body is the finished `block`."""
    properties: dict[str, Attribute] = {
        "sym_name": StringAttr(name),
        "function_type": FunctionType.from_lists([a.type for a in block.args], list(result_types)),
    }
    if private:
        properties["sym_visibility"] = StringAttr("private")
    return FuncOp.create(properties=properties, attributes=dict(attributes), regions=[Region(block)], location=loc)
