"""The marks of an instrumented program: calls of `profile.enter` and `profile.leave` around everything that does work in it.

Runs on level 3, when buffers are planned and before loops are made: the kernels stay what they are (and are found in the kernel cache),
only the code that calls them changes. Sites are calls of kernels, copies, and loop nests that stayed outside of kernels.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    i64,
)
from xdsl.ir import Attribute, Operation, Region, SSAValue

from gradir.dialects.kernel import (
    CONFIG_ATTRIBUTE,
    DESTINATIONS_ATTRIBUTE,
    ELEMENTS_ATTRIBUTE,
    KERNEL_ATTRIBUTE,
    LIBRARY_ATTRIBUTE,
    LibraryAttr,
)
from gradir.dialects.target.abi import ELEMENT_CODES
from gradir.dialects.upstream import linalg, memref
from gradir.dialects.upstream.func import CallOp, FuncOp
from gradir.ir.passes import location_text
from gradir.runtime.profile import ENTER, LEAVE

_numbers = itertools.count()

Shape = tuple[int | None, ...]


@dataclass(frozen=True)
class Place:
    """One site: what runs there (`kernel` for a call), where in the source, and the shapes of its operands as far as types tell.

    `measured` are the positions of the operands whose sizes only the run knows; the recording has them in this order.
    """

    number: int
    kernel: str
    location: str
    op: Operation
    shapes: tuple[Shape | None, ...]
    measured: tuple[int, ...]


@dataclass(frozen=True)
class Marks:
    """The sites of one program, in the order of its text; `program` tells programs apart in the recorder."""

    program: int
    places: tuple[Place, ...]


def instrument(module: ModuleOp) -> Marks:
    """Put marks into every function of a level-3 module that is no kernel; the sites."""
    functions = {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, FuncOp)}
    program, places = next(_numbers), list[Place]()
    top = module.body.block
    for function in list(functions.values()):
        if KERNEL_ATTRIBUTE in function.attributes or not function.body.blocks:
            continue
        for op in list(function.walk()):
            kernel = _worker(op, functions)
            if kernel is None:
                continue
            place = _place(len(places), kernel, op)
            places.append(place)
            parent = op.parent
            assert parent is not None
            seen = [op.operands[k] for k in place.measured]
            for name, values, put in ((ENTER, seen, parent.insert_op_before), (LEAVE, [], parent.insert_op_after)):
                mark = _declaration(name, program, place.number, values)
                top.insert_op_before(mark, function)
                call = CallOp(mark.sym_name.data, values, [])
                call.location = op.location
                put(call, op)
    return Marks(program, tuple(places))


def _worker(op: Operation, functions: dict[str, FuncOp]) -> str | None:
    """The name of the kernel that `op` calls, or of what it is; None for an op that does no work by itself."""
    if isinstance(op, CallOp):
        name = op.callee.string_value()
        return name if name in functions and KERNEL_ATTRIBUTE in functions[name].attributes else None
    if isinstance(op, memref.CopyOp):
        return "copy"
    return op.name if isinstance(op, linalg.GenericOp | linalg.FillOp) else None


def _place(number: int, kernel: str, op: Operation) -> Place:
    shapes = tuple(_shape(value.type) for value in op.operands)
    unknown = [k for k, shape in enumerate(shapes) if shape is not None and None in shape]
    measured = tuple(k for k in unknown if _element(op.operands[k]) in ELEMENT_CODES)
    return Place(number, kernel, location_text(op.location), op, shapes, measured)


def _shape(kind: Attribute) -> Shape | None:
    return tuple(None if n == DYNAMIC_INDEX else n for n in kind.get_shape()) if isinstance(kind, MemRefType) else None


def _element(value: SSAValue) -> str:
    return str(cast("MemRefType[Any]", value.type).element_type)


def _declaration(name: str, program: int, site: int, values: Sequence[SSAValue]) -> FuncOp:
    """`func.func private @profile_enter_0_3(operand types)`, a declared kernel."""
    kinds = [value.type for value in values]
    attributes: dict[str, Attribute] = {
        KERNEL_ATTRIBUTE: LibraryAttr(),
        LIBRARY_ATTRIBUTE: StringAttr(name),
        ELEMENTS_ATTRIBUTE: ArrayAttr([cast("MemRefType[Any]", kind).element_type for kind in kinds]),
        DESTINATIONS_ATTRIBUTE: IntegerAttr(0, i64),
        CONFIG_ATTRIBUTE: DictionaryAttr({"profile": IntegerAttr(program, i64), "site": IntegerAttr(site, i64)}),
    }
    symbol = f"{name.replace('.', '_')}_{program}_{site}"
    properties: dict[str, Attribute] = {
        "sym_name": StringAttr(symbol),
        "function_type": FunctionType.from_lists(kinds, []),
        "sym_visibility": StringAttr("private"),
    }
    return FuncOp.create(properties=properties, attributes=attributes, regions=[Region()])


__all__ = ["Marks", "Place", "instrument"]
