"""The verifier: one linear walk that checks structure, each op's own `verify_`, SSA dominance, symbols and kernel invariants.

Replaces `Operation.verify`, which is quadratic in blocks, stops at the first error, prints the whole module and knows no
dominance. Errors go to a `gradir.ir.diagnostics.Engine`, up to a limit. Invariants of outlined kernels come from
`gradir.dialects.kernel_invariants`, through `register_invariant`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any

from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.parser.core import ForwardDeclaredValue
from xdsl.traits import IsolatedFromAbove, IsTerminator, NoTerminator, SymbolTable
from xdsl.utils.exceptions import VerifyException

from gradir.errors import GradirError
from gradir.ir.diagnostics import Engine
from gradir.ir.dominance import dominator_tree
from gradir.ir.regions import check_regions

DEFAULT_LIMIT = 20

Report = Callable[[Operation, str], None]
"""Reports an error at an op."""

Invariant = Callable[[Any, Report], None]
"""Checks one function or module that carries the attribute it was registered for."""

INVARIANTS: dict[str, list[Invariant]] = {}
"""Attribute name of a function or module (`gradir.kernel`, ...) -> checks; filled by `register_invariant`."""

INVARIANT_MODULES: dict[str, str] = {
    "gradir.kernel": "gradir.dialects.kernel_invariants",
    "gradir.target": "gradir.dialects.target.invariants",
}
"""Attribute name -> module that registers its checks, imported when a function carries the attribute."""


def register_invariant(attribute: str) -> Callable[[Invariant], Invariant]:
    """Decorator: check every `func.func` and module that carries the discardable `attribute`."""

    def register(check: Invariant) -> Invariant:
        INVARIANTS.setdefault(attribute, []).append(check)
        return check

    return register


def verify(op: Operation, engine: Engine, *, limit: int = DEFAULT_LIMIT, classes: bool = True) -> bool:
    """Report what is wrong with `op` and everything in it; whether nothing was.

    Without `classes` the verifiers of the op classes are left out (9/10 of the time): for modules that our own passes made, before
    emission. Structure, dominance, symbols, calls and invariants are checked all the same.
    """
    before = len(engine.errors)
    with suppress(_LimitError):
        _Walk(engine, limit, classes).top(op)
    return len(engine.errors) == before


INVALID = "GR011"
"""Code of what the verifier reports."""

_ISOLATION = "Operation using value defined out of its IsolatedFromAbove parent"
"""xDSL's message for what the dominance walk reports at the using op."""


class _LimitError(Exception):
    """Enough errors were reported."""


_Traits = tuple[bool, bool, bool]
_TRAITS: dict[type[Operation], _Traits] = {}


def _traits(op: Operation) -> _Traits:
    """(isolated from above, terminator, blocks need no terminator) of the op's class; a lookup by class is 10x cheaper."""
    found = _TRAITS.get(type(op))
    if found is None:
        found = _TRAITS[type(op)] = (
            op.has_trait(IsolatedFromAbove),
            op.has_trait(IsTerminator, value_if_unregistered=True),
            op.has_trait(NoTerminator, value_if_unregistered=True),
        )
    return found


def _invariants(attribute: str) -> list[Invariant]:
    module = INVARIANT_MODULES.get(attribute)
    if module is not None:
        import_module(module)
    return INVARIANTS.get(attribute, [])


class _Walk:
    """State of one run: `live` sets hold `id(value)` of what the current op may use."""

    def __init__(self, engine: Engine, limit: int, classes: bool) -> None:
        self.engine, self.left, self.classes = engine, limit, classes
        self.functions: dict[int, dict[str, FuncOp]] = {}  # of each symbol table, by its id

    def error(self, op: Operation, message: str, *notes: tuple[Operation, str]) -> None:
        named = message.startswith(f"{op.name}: ")  # our own ops' messages begin with their name
        self.engine.error(op, message if named else f"'{op.name}' op {message}", *notes).code = INVALID
        self.spend()

    def spend(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise _LimitError

    def top(self, op: Operation) -> None:
        live: set[int] = set()
        if op.parent is not None and not _traits(op)[0]:
            live = {id(value) for value in op.operands}
        self.op(op, live)

    # -- ops

    def op(self, op: Operation, live: set[int]) -> None:
        for i, value in enumerate(op._operands):
            if id(value) not in live:
                self.not_visible(op, i, value)
        if op.regions:
            isolated, _, no_terminator = _traits(op)
            inner = set[int]() if isolated else live
            for region in op.regions:
                self.region(region, inner, op, no_terminator)
        self.own(op)
        for result in op.results:
            live.add(id(result))

    def own(self, op: Operation) -> None:
        """What the op's class and the tables of this module demand."""
        left = self.left
        if isinstance(op, CallOp):  # xDSL's verifiers of calls and modules search symbols linearly, each time
            self.call(op)
        elif isinstance(op, ModuleOp):
            self.symbols(op)
        elif self.classes:
            self.class_verifier(op)
        if op.name == "memref.get_global":
            self.symbol_use(op)
        if isinstance(op, FuncOp | ModuleOp) and self.left == left:  # invariants rely on a name and a type
            for attribute in op.attributes:
                for check in _invariants(attribute):
                    check(op, self.error)

    def class_verifier(self, op: Operation) -> None:
        try:
            op.verify_()
            check_regions(op)
        except VerifyException as error:
            if not str(error).startswith(_ISOLATION):
                self.error(op, " ".join(str(error).split()))
        except GradirError as error:
            self.engine.exception(error, op)
            self.spend()
        except Exception as error:
            around = op.parent_op()
            kind = around.properties.get("function_type") if isinstance(around, FuncOp) else None
            if isinstance(around, FuncOp) and not isinstance(kind, FunctionType):  # func.return asks it for results
                self.error(op, f"stands in a function {'without a type' if kind is None else f'whose type is {kind}'}")
                return
            if isinstance(error, ValueError) and str(error).startswith("Forward declared values"):
                if not any("is defined in no region" in found.message for found in self.engine.errors):  # in code that nothing reaches
                    self.error(op, "holds a use of a value that is defined in no region around it")
                return
            if type(error) is Exception:  # what some verifiers of xDSL raise: a message as good as any
                self.error(op, " ".join(str(error).split()))
                return
            # a verifier that crashes is a bug of that op: name it and go on
            self.error(op, f"crashed its own verifier: {type(error).__name__}: {error}")

    def symbols(self, module: ModuleOp) -> None:
        seen: dict[str, Operation] = {}
        blocks = tuple(module.body.blocks)
        if len(blocks) > 1:
            self.error(module, f"has {len(blocks)} blocks, at most one is allowed")
        for op in (op for block in blocks for op in block.ops):
            name = op.properties.get("sym_name") or op.attributes.get("sym_name")
            if not isinstance(name, StringAttr):
                continue
            if (first := seen.setdefault(name.data, op)) is not op:
                self.error(op, f"redefines the symbol @{name.data}", (first, "first defined here"))

    def call(self, op: CallOp) -> None:
        callee = op.properties.get("callee")
        if not isinstance(callee, SymbolRefAttr) or callee.nested_references.data:
            self.error(op, f"needs a flat symbol as property 'callee', found {callee}")
            return
        name = callee.root_reference.data
        function = self.functions_around(op).get(name)
        if function is None:
            self.error(op, f"calls @{name}, which is not a function of this module")
            return
        for kind, given, wanted in (
            ("argument", tuple(v.type for v in op.operands), tuple(function.function_type.inputs)),
            ("result", tuple(v.type for v in op.results), tuple(function.function_type.outputs)),
        ):
            if len(given) != len(wanted):
                self.error(op, f"has {len(given)} {kind}s, but @{name} has {len(wanted)}", (function, "callee defined here"))
                continue
            for i, (got, want) in enumerate(zip(given, wanted)):
                if got != want:
                    self.error(op, f"{kind} #{i} has type {got}, but @{name} has {want}", (function, "callee defined here"))

    def symbol_use(self, op: Operation) -> None:
        """The buffer that `memref.get_global` names is there and has the type of the result."""
        name = op.properties.get("name")
        if not isinstance(name, SymbolRefAttr) or not op.results:
            return  # reported by the class
        table = self.table_around(op)
        found = SymbolTable.lookup_symbol(table, name) if table is not None else None
        if found is None or found.name != "memref.global":
            what = "is not in this module" if found is None else f"is a {found.name}"
            self.error(op, f"names @{name.string_value()}, which {what}; expected a memref.global")
        elif found.properties.get("type") != op.results[0].type:
            kinds = f"@{name.string_value()} has type {found.properties.get('type')}, the result has {op.results[0].type}"
            self.error(op, f"types differ: {kinds}", (found, "defined here"))

    def table_around(self, op: Operation) -> Operation | None:
        table = op.parent_op()
        while table is not None and not table.has_trait(SymbolTable):
            table = table.parent_op()
        return table

    def functions_around(self, op: Operation) -> dict[str, FuncOp]:
        table = self.table_around(op)
        if table is None:
            return {}
        if (found := self.functions.get(id(table))) is None:
            ops = (inner for block in table.regions[0].blocks for inner in block.ops)
            functions = (f for f in ops if isinstance(f, FuncOp) and _is_callable(f))
            found = self.functions[id(table)] = {f.sym_name.data: f for f in functions}
        return found

    # -- regions and blocks

    def region(self, region: Region, live: set[int], parent: Operation, no_terminator: bool) -> None:
        entry = region.first_block
        if entry is None:
            return
        if entry.next_block is None:
            live.difference_update(self.block(entry, live, parent, no_terminator))
            return
        tree = dominator_tree(entry)
        stack: list[tuple[Block, list[int] | None]] = [(entry, None)]
        while stack:
            block, added = stack.pop()
            if added is not None:  # leaving the subtree that the block dominates
                live.difference_update(added)
                continue
            stack.append((block, self.block(block, live, parent, False)))
            stack += [(child, None) for child in tree.children.get(id(block), ())]
        unreachable = [block for block in region.blocks if id(block) not in tree.reachable]
        for block in unreachable:  # as in MLIR, nothing is known to dominate there: only the ops themselves are checked
            for op in block.ops:
                self.own(op)

    def block(self, block: Block, live: set[int], parent: Operation, no_terminator: bool) -> list[int]:
        """Check one block; the ids that it made live, for the caller to remove."""
        added = [id(arg) for arg in block.args]
        live.update(added)
        last: Operation | None = None
        op = block.first_op
        while op is not None:
            self.op(op, live)
            if op.successors and op.next_op is not None:
                self.error(op, "has successors and must end its block")
            added.extend(id(result) for result in op.results)
            last, op = op, op.next_op
        if not no_terminator:
            self.terminator(block, last, parent)
        return added

    def terminator(self, block: Block, last: Operation | None, parent: Operation) -> None:
        if last is None:
            self.error(parent, "has an empty block: it needs a terminator")
            return
        if not _traits(last)[1]:
            self.error(last, "ends its block but is not a terminator")
        for successor in last.successors:
            if successor.parent is not block.parent:
                self.error(last, "branches to a block of another region")

    # -- dominance

    def not_visible(self, op: Operation, index: int, value: SSAValue) -> None:
        if isinstance(value, ForwardDeclaredValue):  # xDSL's parser lets a definition in an inner region stand for it
            self.error(op, f"operand #{index} is defined in no region around this use")
            return
        owner = value.owner
        definition = owner.parent_op() if isinstance(owner, Block) else owner
        if definition is None or (not isinstance(owner, Block) and owner.parent is None):
            self.error(op, f"operand #{index} is defined by an op or block that is not in the module")
            return
        why = f"operand #{index} does not dominate this use: {_reason(op, owner, definition)}"
        self.error(op, why, (definition, "operand defined here"))


def _is_callable(function: FuncOp) -> bool:
    """Whether name and type are there and are what they should be; the function's own check reports it if not."""
    properties = function.properties
    return isinstance(properties.get("sym_name"), StringAttr) and isinstance(properties.get("function_type"), FunctionType)


def _reason(op: Operation, owner: Operation | Block, definition: Operation) -> str:
    """Why a value that `owner` defines (in or below `definition`) is not visible at `op`."""
    block = owner if isinstance(owner, Block) else owner.parent
    inner, isolated = op, False  # inner: the op around the use that stands in the region of the definition
    while block is not None and inner.parent_region() is not block.parent:
        around = inner.parent_op()
        if around is None:
            return "defined in a region that does not enclose this use"
        isolated = isolated or around.has_trait(IsolatedFromAbove)
        inner = around
    if isolated:
        return "defined outside of the isolated op around this use"
    if inner is definition:
        return "used inside of the op that defines it"
    if inner.parent is not block:
        return "defined in a block that does not dominate it"
    return "defined below this use" if inner is op else "defined below the op around this use"
