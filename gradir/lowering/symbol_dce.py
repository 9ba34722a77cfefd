"""Remove private functions and globals that nothing reaches from a public symbol."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, Operation

from gradir.ir.checks import CHECK
from gradir.ir.passes import Pass, PassContext


@dataclass(frozen=True)
class SymbolDce(Pass):
    """Before and after: any level. Every private symbol of the module is used by something that a public one reaches.

    ```mlir
    func.func private @unused() { return }   // removed
    func.func @f() { return }
    ```
    """

    NAME: ClassVar[str] = "symbol-dce"

    def apply(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, ModuleOp)
        remove_unused_symbols(op)


def remove_unused_symbols(module: ModuleOp) -> int:
    """Remove private symbols that nothing reaches; how many went. Checks of derivatives stay: whoever runs them reaches them."""
    symbols = {name: op for op in module.body.block.ops if (name := symbol_name(op)) is not None}
    reached: set[str] = set()
    pending: list[Operation] = [op for op in module.body.block.ops if symbol_name(op) is None or _is_root(op)]
    names = list(_references((*module.properties.values(), *module.attributes.values())))
    while pending or names:
        for op in pending:
            names.extend(symbol_uses(op))
        new = [name for name in dict.fromkeys(names) if name in symbols and name not in reached]
        reached.update(new)
        pending = [symbols[name] for name in new if not _is_root(symbols[name])]
        names = []
    dead = [op for name, op in symbols.items() if not _is_root(op) and name not in reached]
    for op in dead:
        op.detach()
        op.erase(safe_erase=False)
    return len(dead)


def symbol_name(op: Operation) -> str | None:
    """The name of a function, global or other symbol."""
    name = op.properties.get("sym_name") or op.attributes.get("sym_name")
    return name.data if isinstance(name, StringAttr) else None


def is_private(op: Operation) -> bool:
    """Whether `op` is a symbol that only its module may use."""
    visibility = op.properties.get("sym_visibility") or op.attributes.get("sym_visibility")
    return isinstance(visibility, StringAttr) and visibility.data == "private"


def _is_root(op: Operation) -> bool:
    """Whether something outside of the module may use the symbol `op`."""
    return not is_private(op) or CHECK in op.attributes


def symbol_uses(op: Operation) -> Iterator[str]:
    """The symbols that `op` and the ops in it name, in order, with repetitions."""
    for inner in op.walk():
        yield from _references((*inner.properties.values(), *inner.attributes.values()))


def _references(attributes: Iterable[Attribute]) -> Iterator[str]:
    for attribute in attributes:
        if isinstance(attribute, SymbolRefAttr):
            yield attribute.root_reference.data
        elif isinstance(attribute, ArrayAttr):
            yield from _references(attribute.data)
        elif isinstance(attribute, DictionaryAttr):
            yield from _references(attribute.data.values())
