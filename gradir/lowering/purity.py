"""Effects of ops with calls looked through: what `cse`, `dce` and folding may remove, merge or skip.

Relies on `gradir.dialects.upstream.effects` for single ops; a `func.call` has the effects of its callee's body. A recursive
call, and a call of a function without a body, may do anything.
"""

from __future__ import annotations

from functools import cache

from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation
from xdsl.traits import IsTerminator, NoMemoryEffect, SymbolOpInterface, SymbolTable

from gradir.dialects.kernel import EFFECTS_ATTRIBUTE, LIBRARY_ATTRIBUTE
from gradir.dialects.upstream.effects import Effects, own_effects
from gradir.dialects.upstream.func import CallOp, FuncOp

REMOVABLE = Effects.READ | Effects.ALLOCATE
"""Effects that nobody sees once the results are unused."""


@cache
def _always_pure(kind: type[Operation]) -> bool:
    """Whether every op of the class is pure whatever its operands and regions: most are, and this is 10x cheaper to know."""
    if not issubclass(kind, IRDLOperation) or kind.get_irdl_definition().regions:
        return False
    pure, *other = (kind.has_trait(trait, value_if_unregistered=False) for trait in (NoMemoryEffect, IsTerminator, SymbolOpInterface))
    return pure and not any(other)


class Purity:
    """Effects of the ops under one symbol table; each callee is looked at once."""

    def __init__(self, op: Operation) -> None:
        table: Operation | None = op
        while table is not None and not table.has_trait(SymbolTable):
            table = table.parent_op()
        self._functions: dict[str, FuncOp] = {}
        if table is not None:
            self._functions = {f.sym_name.data: f for f in table.regions[0].block.ops if isinstance(f, FuncOp)}
        self._callees: dict[str, Effects] = {}

    def effects(self, op: Operation) -> Effects:
        """Everything that running `op` may do."""
        if isinstance(op, CallOp):
            return self._callee(op.callee.root_reference.data)
        found = own_effects(op)
        for region in op.regions:
            for block in region.blocks:
                for inner in block.ops:
                    if found == Effects.ANYTHING:
                        return found
                    found |= self.effects(inner)
        return found

    def is_pure(self, op: Operation) -> bool:
        """A value and nothing else: may be merged with an equal op."""
        return _always_pure(type(op)) or (not op.has_trait(IsTerminator) and self.effects(op) == Effects.NOTHING)

    def is_removable(self, op: Operation) -> bool:
        """Whether nobody would miss `op` if its results had no uses."""
        if _always_pure(type(op)):
            return True
        if op.has_trait(IsTerminator) or op.has_trait(SymbolOpInterface):
            return False
        return not self.effects(op) & ~REMOVABLE

    def _callee(self, name: str) -> Effects:
        known = self._callees.get(name)
        if known is not None:
            return known
        function = self._functions.get(name)
        if function is not None and LIBRARY_ATTRIBUTE in function.attributes and function.function_type.outputs.data:
            return Effects.ORDER if EFFECTS_ATTRIBUTE in function.attributes else Effects.NOTHING  # on tensors: values in, values out
        if function is None or function.body.first_block is None:
            return Effects.ANYTHING
        self._callees[name] = Effects.ANYTHING  # what a recursive call sees
        found = Effects.NOTHING
        for block in function.body.blocks:
            for op in block.ops:
                found |= self.effects(op)
        self._callees[name] = found
        return found
