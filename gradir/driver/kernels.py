"""Kernels apart from the program around them: each has a key by its structure, so that equal kernels are compiled once, ever.

A level-3 module is split in two: the host module calls its kernels by key through declarations, the kernel module defines those that
are not cached. Kernels that need the program around them (constants, calls, assertions with source lines) stay in the host module.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from gradir.dialects.kernel import KERNEL_ATTRIBUTE, REASON_ATTRIBUTE, ChainAttr, ContractionAttr, RowsAttr
from gradir.dialects.upstream.func import CallOp, FuncOp
from gradir.driver.cache import digest

CHUNK = 4
"""Kernels that are compiled together: few, so that every processor has work soon; not one by one, which costs loading time."""

_WEIGHTS: dict[type[Attribute], int] = {ChainAttr: 8, ContractionAttr: 4, RowsAttr: 2}

_NO_STRUCTURE = frozenset({"sym_name", REASON_ATTRIBUTE})

_BOUND_OPS = frozenset({"memref.get_global", "func.call", "cf.assert"})
"""Ops that tie a kernel to the module that it is in."""


@dataclass(frozen=True)
class Split:
    """`host` and `chunks` are level-3 modules; `symbols` are the kernels that `host` calls, in the order of its kernel table.

    Each of the `chunks` defines at most `CHUNK` kernels, those first that take a code generator longest.
    """

    host: ModuleOp
    chunks: tuple[ModuleOp, ...]
    symbols: tuple[str, ...]


class Structure:
    """Texts of kernels without names of functions and values, reasons and places: equal texts, equal code.

    One per program: attributes that ops share are printed once.
    """

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}
        self._alive: list[Attribute] = []

    def of(self, kernel: FuncOp) -> str:
        """The text of one kernel."""
        numbers: dict[SSAValue | Block, int] = {}
        lines: list[str] = []
        self._op(kernel, numbers, lines)
        return "\n".join(lines)

    def _op(self, op: Operation, numbers: dict[SSAValue | Block, int], lines: list[str]) -> None:
        operands = [numbers.setdefault(value, len(numbers)) for value in op.operands]
        results = [numbers.setdefault(value, len(numbers)) for value in op.results]
        followers = [numbers.setdefault(block, len(numbers)) for block in op.successors]
        named = {**op.attributes, **op.properties}
        words = [f"{name}={self._text(value)}" for name, value in sorted(named.items()) if name not in _NO_STRUCTURE]
        types = [self._text(value.type) for value in op.results]
        lines.append(f"{op.name} {operands} {results} {followers} {words} {types}")
        for region in op.regions:
            lines.append("{")
            for block in region.blocks:
                arguments = [numbers.setdefault(value, len(numbers)) for value in block.args]
                lines.append(f"^{numbers.setdefault(block, len(numbers))} {arguments} {[self._text(a.type) for a in block.args]}")
                for inner in block.ops:
                    self._op(inner, numbers, lines)
            lines.append("}")

    def _text(self, attribute: Attribute) -> str:
        found = self._texts.get(id(attribute))
        if found is None:
            found = self._texts[id(attribute)] = str(attribute)
            self._alive.append(attribute)
        return found


def kernel_functions(module: ModuleOp) -> list[FuncOp]:
    """The outlined kernels that have a body here."""
    return [op for op in module.body.block.ops if isinstance(op, FuncOp) and KERNEL_ATTRIBUTE in op.attributes and op.body.blocks]


def code_weight(kernels: Iterable[FuncOp]) -> int:
    """How long a code generator takes for `kernels`, in elementwise ones (about 2 ms each)."""
    return sum(_WEIGHTS.get(type(kernel.attributes[KERNEL_ATTRIBUTE]), 1) for kernel in kernels)


def kernel_symbol(key: str) -> str:
    """Name of the kernel with that key in every object that defines it."""
    return f"gradir.k.{key[:32]}"


def name_by_structure(module: ModuleOp, environment: str) -> dict[str, FuncOp]:
    """Rename every separable kernel to the symbol of its key and its calls with it; symbol -> one kernel of that structure.

    `environment` is what besides the structure decides the machine code: target and versions.
    """
    structure = Structure()
    named: dict[str, FuncOp] = {}
    renamed: dict[str, str] = {}
    for kernel in kernel_functions(module):
        if any(op.name in _BOUND_OPS for op in kernel.walk()):
            continue
        symbol = kernel_symbol(digest(structure.of(kernel), environment))
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
    """Move the kernels `named` out of `module`, which keeps declarations; those in `cached` are dropped, the others make modules."""
    known = frozenset(cached)
    moved: list[FuncOp] = []
    for symbol, kernel in named.items():
        declared = FuncOp.external(symbol, list(kernel.function_type.inputs.data), list(kernel.function_type.outputs.data))
        cast(Block, kernel.parent_block()).insert_op_before(declared, kernel)
        kernel.detach()
        if symbol in known:
            kernel.erase()
        else:
            moved.append(kernel)
    moved.sort(key=lambda kernel: not isinstance(kernel.attributes[KERNEL_ATTRIBUTE], ContractionAttr))
    chunks = (moved[first : first + CHUNK] for first in range(0, len(moved), CHUNK))
    return Split(module, tuple(_module_of(kernels, module) for kernels in chunks), tuple(named))


def _module_of(kernels: Sequence[FuncOp], like: ModuleOp) -> ModuleOp:
    return ModuleOp(list(kernels), attributes=dict(like.attributes))
