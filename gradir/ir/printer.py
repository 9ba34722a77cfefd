"""MLIR text out: xDSL's printer with locations that parse again, and the printing of one op for a message.

xDSL prints the location inside `print_operation_type`, which `scf.while` also calls in its custom syntax: with debug
info it would appear twice and nothing could parse it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from io import StringIO

from xdsl.dialects.builtin import UnregisteredOp
from xdsl.ir import Operation, Region, SSAValue
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove

CONTEXT_MODULE = "gradir.dialects.registry"
"""Where dialects with resources are found: by name, since this folder stays below `gradir.dialects`."""

MAX_SHOWN = 400
"""Characters of an op that a message shows."""


class LocPrinter(Printer):
    """Prints modules; `print_debuginfo` writes each op's location once, behind it."""

    def print_operation_type(self, op: Operation) -> None:
        self.print_function_type(op.operand_types, op.result_types)

    def print_op_with_default_format(self, op: Operation) -> None:
        super().print_op_with_default_format(op)
        generic = self.print_generic_format or isinstance(op, UnregisteredOp) or Operation.print is type(op).print
        if self.print_debuginfo and generic:  # a custom format is followed by its location in `print_op`
            self.print_string(" ")
            self.print_attribute(op.location)


class OneOpPrinter(LocPrinter):
    """Prints ops with their regions elided."""

    def print_region(self, region: Region, *_: object, **__: object) -> None:
        self.print_string("{...}" if region.first_block is not None else "{}")


def print_op(op: Operation, *, generic: bool = False, debuginfo: bool = False) -> str:
    """The text of `op` and all in it, without a final newline; behind a whole module the data of the resources that it names."""
    stream = StringIO()
    printer = LocPrinter(stream=stream, print_generic_format=generic, print_debuginfo=debuginfo)
    printer.print_op(op)
    if printer._dialect_resources and op.parent is None:
        context = importlib.import_module(CONTEXT_MODULE).make_context()
        printer.print_metadata([context.get_dialect(name) for name in printer._dialect_resources])
    return stream.getvalue()


def print_one(op: Operation) -> str:
    """`op` alone, in generic form, regions as `{...}`, values named as they are in the text of its function.

    Costs 1 us per op of the function around it: for error messages.
    """
    stream = StringIO()
    printer = OneOpPrinter(stream=stream, print_generic_format=True)
    top = op
    while (parent := top.parent_op()) is not None and not top.has_trait(IsolatedFromAbove):
        top = parent
    _name_values(printer, top)
    printer.print_op(op)
    text = stream.getvalue()
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 3] + "..."


def _name_values(printer: Printer, top: Operation) -> None:
    """Give every value of `top` the name that printing `top` would give it."""
    count, used = 0, dict[str, int]()
    for value in _values(top):
        if hint := value.name_hint:
            seen = used.get(hint, 0)
            used[hint] = seen + 1
            printer._ssa_values[value] = f"{hint}_{seen}" if seen else hint
        else:
            printer._ssa_values[value] = str(count)
            count += 1


def _values(top: Operation) -> Iterable[SSAValue]:
    for op in top.walk():
        yield from op.results
        for region in op.regions:
            for block in region.blocks:
                yield from block.args
