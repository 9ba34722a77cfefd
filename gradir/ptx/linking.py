"""A kernel and the device functions that it may call as one body: names of a function get its own suffix, labels their places in the whole.

Recursion needs no copies: a call keeps the caller's registers where the callee can come to be called again, and every activation has a
piece of the thread's local memory of its own (variables, parameters, results).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gradir.ptx.syntax import (
    Address,
    Callee,
    Function,
    Instruction,
    Name,
    Negated,
    Operand,
    Pair,
    PtxModule,
    Register,
    Source,
    Variable,
    Vector,
)


def linked(module: PtxModule, entry: Function) -> Function:
    """The entry with all that it may call behind it; the entry itself where it calls nothing that has a body."""
    names = _reachable(module, entry)
    if not names:
        return entry
    body = [*_closed(entry.body)]
    variables, registers = dict(entry.variables), dict(entry.registers)
    labels, tables = dict(entry.labels), dict(entry.tables)
    callees: dict[str, Callee] = {}
    for name in names:
        function = module.functions[name]
        renamed = _Renamed(function)
        start = len(body)
        body += _closed(tuple(renamed.instruction(op) for op in function.body))
        registers.update((renamed.of(register), kind) for register, kind in function.registers.items())
        labels.update((renamed.of(label), start + at) for label, at in function.labels.items())
        tables.update((renamed.of(table), tuple(renamed.of(label) for label in found)) for table, found in function.tables.items())
        inner = {**function.variables, **{v.name: v for v in (*function.parameters, *function.results)}}
        variables.update((renamed.of(key), replace(v, name=renamed.of(key))) for key, v in inner.items() if v.space != "reg")
        callees[name] = Callee(
            name, start, renamed.variables(function.parameters), renamed.variables(function.results), name in _called(module, function)
        )
    return replace(entry, body=tuple(body), variables=variables, registers=registers, labels=labels, tables=tables, callees=callees)


def owner(name: str) -> str:
    """The device function that a name of a linked body belongs to; empty for the kernel's own."""
    return name.rpartition("@")[2] if "@" in name else ""


class _Renamed:
    def __init__(self, function: Function) -> None:
        self.suffix = f"@{function.name}"
        self.names = {*function.registers, *function.variables, *function.labels, *function.tables}
        self.names |= {v.name for v in (*function.parameters, *function.results)}

    def of(self, name: str) -> str:
        return name + self.suffix if name in self.names else name

    def variables(self, found: tuple[Variable, ...]) -> tuple[Variable, ...]:
        return tuple(replace(v, name=self.of(v.name)) for v in found)

    def operand(self, operand: Operand) -> Operand:
        if isinstance(operand, Register):
            return operand if operand.special else Register(self.of(operand.name))
        if isinstance(operand, Name):
            return Name(self.of(operand.name), operand.offset)
        if isinstance(operand, Address):
            base = self.operand(operand.base)
            assert not isinstance(base, Address | Vector | Pair | Negated)
            return Address(base, operand.offset, tuple(self.operand(c) for c in operand.coordinates))
        if isinstance(operand, Vector):
            return Vector(tuple(self.operand(element) for element in operand.elements))
        if isinstance(operand, Pair):
            return Pair(self.operand(operand.first), self.operand(operand.second))
        if isinstance(operand, Negated):
            return Negated(Register(self.of(operand.operand.name)))
        return operand

    def instruction(self, op: Instruction) -> Instruction:
        predicate = Register(self.of(op.predicate.name)) if op.predicate is not None else None
        return replace(op, operands=tuple(self.operand(operand) for operand in op.operands), predicate=predicate)


def _closed(body: tuple[Instruction, ...]) -> tuple[Instruction, ...]:
    """A body that does not run into the next one."""
    if body and body[-1].opcode[0] in ("ret", "exit", "trap", "bra") and body[-1].predicate is None:
        return (*body, Instruction(("ret",), (), body[-1].source))  # labels at the end stand here
    return (*body, Instruction(("ret",), (), body[-1].source if body else Source(0)))


def _targets(module: PtxModule, function: Function) -> Iterator[str]:
    """Functions with a body that `function` calls itself; all whose address is taken where it calls by address."""
    for op in function.body:
        if op.opcode[0] == "call":
            target = op.operands[1]
            if isinstance(target, Name):
                yield from (target.name,) if _has_body(module, target.name) else ()
            else:
                yield from _addressed(module)


def _has_body(module: PtxModule, name: str) -> bool:
    return name in module.functions and bool(module.functions[name].body)


def _addressed(module: PtxModule) -> Iterator[str]:
    pointees = {name for variable in module.variables.values() for _, name, _ in variable.pointees}
    for function in module.functions.values():
        for op in function.body:
            if op.opcode[0] != "call":
                pointees |= {operand.name for operand in op.operands if isinstance(operand, Name)}
    yield from (name for name in module.functions if name in pointees and _has_body(module, name))


def _reachable(module: PtxModule, entry: Function) -> list[str]:
    found: list[str] = []
    todo = [entry]
    while todo:
        for name in _targets(module, todo.pop()):
            if name not in found:
                found.append(name)
                todo.append(module.functions[name])
    return found


def _called(module: PtxModule, function: Function) -> frozenset[str]:
    return frozenset(_reachable(module, function))
