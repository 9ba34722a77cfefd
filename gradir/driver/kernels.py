"""Kernels apart from the program around them: each has a key by its structure, so that equal kernels are compiled once, ever.

A level-3 module is split in two: the host module calls its kernels by key through declarations, the kernel module defines those that
are not cached. Kernels that need the program around them (constants, calls, assertions with source lines) stay in the host module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from typing import cast

from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Block, Region, SSAValue

from gradir.dialects.kernel import KERNEL_ATTRIBUTE, REASON_ATTRIBUTE
from gradir.dialects.upstream.func import CallOp, FuncOp
from gradir.driver.cache import digest
from gradir.ir.printer import LocPrinter

_BOUND_OPS = frozenset({"memref.get_global", "func.call", "cf.assert"})
"""Ops that tie a kernel to the module that it is in."""


@dataclass(frozen=True)
class Split:
    """`host` and `kernels` are level-3 modules; `symbols` are the kernels that `host` calls, in the order of its kernel table."""

    host: ModuleOp
    kernels: ModuleOp
    symbols: tuple[str, ...]


class _StructurePrinter(LocPrinter):
    """Prints with numbered values: names of values are no part of a kernel's structure."""

    def print_ssa_value(self, value: SSAValue) -> str:
        name = self._ssa_values.get(value)
        if name is None:
            name = self._ssa_values[value] = self._get_new_valid_name_id()
        self.print_string(f"%{name}")
        return name


def structure_of(kernel: FuncOp) -> str:
    """The kernel's text without its name, the reason for its schedule, the names of its values and its locations."""
    name, reason = kernel.sym_name, kernel.attributes.pop(REASON_ATTRIBUTE, None)
    kernel.properties["sym_name"] = StringAttr("kernel")
    stream = StringIO()
    _StructurePrinter(stream=stream, print_generic_format=True).print_op(kernel)
    kernel.properties["sym_name"] = name
    if reason is not None:
        kernel.attributes[REASON_ATTRIBUTE] = reason
    return stream.getvalue()


def kernel_functions(module: ModuleOp) -> list[FuncOp]:
    """The outlined kernels that have a body here."""
    return [op for op in module.body.block.ops if isinstance(op, FuncOp) and KERNEL_ATTRIBUTE in op.attributes and op.body.blocks]


def kernel_symbol(key: str) -> str:
    """Name of the kernel with that key in every object that defines it."""
    return f"gradir.k.{key[:32]}"


def name_by_structure(module: ModuleOp, environment: str) -> dict[str, FuncOp]:
    """Rename every separable kernel to the symbol of its key and its calls with it; symbol -> one kernel of that structure.

    `environment` is what besides the structure decides the machine code: target and versions.
    """
    named: dict[str, FuncOp] = {}
    renamed: dict[str, str] = {}
    for kernel in kernel_functions(module):
        if any(op.name in _BOUND_OPS for op in kernel.walk()):
            continue
        symbol = kernel_symbol(digest(structure_of(kernel), environment))
        renamed[kernel.sym_name.data] = symbol
        if symbol in named:
            kernel.detach()
            kernel.erase()
            continue
        named[symbol] = kernel
        kernel.properties["sym_name"] = StringAttr(symbol)
    for op in module.walk():
        if isinstance(op, CallOp) and (new := renamed.get(op.callee.root_reference.data)) is not None:
            op.properties["callee"] = SymbolRefAttr(new)
    return named


def split_kernels(module: ModuleOp, named: dict[str, FuncOp], cached: Sequence[str]) -> Split:
    """Move the kernels `named` out of `module`, which keeps declarations; those in `cached` are dropped, the others make a module."""
    block = Block()
    known = frozenset(cached)
    for symbol, kernel in named.items():
        declared = FuncOp.external(symbol, list(kernel.function_type.inputs.data), list(kernel.function_type.outputs.data))
        cast(Block, kernel.parent_block()).insert_op_before(declared, kernel)
        kernel.detach()
        if symbol in known:
            kernel.erase()
        else:
            block.add_op(kernel)
    return Split(module, ModuleOp(Region(block), attributes=dict(module.attributes)), tuple(named))
