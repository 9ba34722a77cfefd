"""Loads, stores, moves, addresses, hints."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradir.ptx.instructions.accesses import (
    addresses,
    elements_of,
    in_space,
    is_strong,
    load_global,
    load_local,
    load_parameter,
    load_shared,
    space_of,
    store_global,
    store_local,
    store_shared,
    synchronise,
    targets_of,
)
from gradir.ptx.instructions.forms import Array, has, pointwise, types_of
from gradir.ptx.machine import Machine, Step
from gradir.ptx.memory import BIAS, FIRST, LOCAL_WINDOW, OFFSET_BITS, PARAMETERS, SHARED_WINDOW
from gradir.ptx.state import Gang
from gradir.ptx.syntax import Address, Immediate, Instruction, Name, Operand, Vector
from gradir.ptx.types import WIDTHS, storage

# Instructions


def compile_ld(op: Instruction) -> Step | None:
    """`ld`, `ldu`, `ld.global.nc`, `ld.param`, vectors, all caching hints."""
    kind, count = elements_of(op)
    space, width = space_of(op), WIDTHS[kind] // 8
    destinations = targets_of(op.operands[0])
    strong = is_strong(op)
    if width > 8:
        return None

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        where = addresses(machine, gang, op.operands[1])
        place = space
        if place == "param" and isinstance(op.operands[1], Address) and isinstance(op.operands[1].base, Name):
            place = "param" if op.operands[1].base.name in machine.parameters else "local"
        if place == "param":
            values = load_parameter(machine, gang, where, width, count)
        elif place == "shared":
            where = in_space(where)
            values = load_shared(machine, gang, mask, where, width, count, strong=strong)
        elif place == "local":
            values = load_local(machine, gang, mask, in_space(where), width, count)
        else:
            values = load_global(machine, gang, mask, where, width, count, strong=strong)
        if strong:
            synchronise(machine, gang, mask, op, where, reads=True, writes=False)
        for destination, value in zip(destinations, values):
            machine.write(gang, mask, destination, _extended(value, kind))

    return step


def _extended(value: Array, kind: str) -> Array:
    return value.view(f"i{value.dtype.itemsize}") if kind[0] == "s" else value


def compile_st(op: Instruction) -> Step | None:
    """`st`, vectors, all caching hints; `st.async` and `st.param` of calls are elsewhere."""
    kind, count = elements_of(op)
    space, width = space_of(op), WIDTHS[kind] // 8
    if width > 8 or has(op, "async"):
        return None
    sources = targets_of(op.operands[1])
    strong = is_strong(op)

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        where = addresses(machine, gang, op.operands[0])
        unsigned = f"u{8 * width}"
        values = np.stack([np.broadcast_to(machine.read(gang, source, unsigned), mask.shape) for source in sources[:count]])
        if space == "shared":
            where = in_space(where)
            store_shared(machine, gang, mask, where, values, width, strong=strong)
        elif space in ("local", "param"):
            store_local(machine, gang, mask, in_space(where), values, width)
        else:
            store_global(machine, gang, mask, where, values, width, strong=strong)
        if strong:
            synchronise(machine, gang, mask, op, where, reads=False, writes=True)

    return step


def compile_mov(op: Instruction) -> Step | None:
    """Registers, literals, addresses of variables; packing and unpacking of vectors."""
    kind = types_of(op)[-1]
    destination, source = op.operands
    if isinstance(source, Vector):
        return _packing(op, kind, source)
    if isinstance(destination, Vector):
        return _unpacking(op, kind, destination)
    if isinstance(source, Name):

        def address(machine: Machine, gang: Gang, mask: Array) -> None:
            machine.write(gang, mask, destination, machine.address_of(gang, source).astype(np.uint64))

        return address
    return pointwise(op, np.copy, [kind if kind == "pred" or WIDTHS[kind] > 64 else f"u{WIDTHS[kind]}"] if not _float(source) else [kind])


def _float(source: Operand) -> bool:
    return isinstance(source, Immediate) and isinstance(source.value, float)


def _packing(op: Instruction, kind: str, source: Vector) -> Step:
    part = f"u{WIDTHS[kind] // len(source.elements)}"

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        whole = np.zeros((1, 1), storage(kind))
        for k, element in enumerate(source.elements):
            bits = machine.read(gang, element, part).astype(whole.dtype)
            whole = whole | bits << whole.dtype.type(k * WIDTHS[part])
        machine.write(gang, mask, op.operands[0], whole)

    return step


def _unpacking(op: Instruction, kind: str, destination: Vector) -> Step:
    width = WIDTHS[kind] // len(destination.elements)

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        whole = machine.read(gang, op.operands[1], f"u{WIDTHS[kind]}")
        for k, element in enumerate(destination.elements):
            machine.write(gang, mask, element, (whole >> whole.dtype.type(k * width)).astype(f"u{width // 8}"))

    return step


def compile_cvta(op: Instruction) -> Step | None:
    """Between generic addresses and those of a space: shared and local memory are reached through windows."""
    window = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "param": PARAMETERS}.get(space_of(op))
    to = has(op, "to")

    def function(value: Array) -> Array:
        if window is None:
            return value.copy()  # registers share no memory
        start = np.uint64((window << OFFSET_BITS) + BIAS)
        through = value >= start
        if to:
            return np.where(through, value - start, value)
        return np.where(through, value, value + start)

    return pointwise(op, function, ["u64"])


def compile_isspacep(op: Instruction) -> Step | None:
    window = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "param": PARAMETERS}.get(space_of(op))

    def function(value: Array) -> Array:
        number = value >> np.uint64(OFFSET_BITS)
        return number == window if window is not None else number >= FIRST

    return pointwise(op, function, ["u64"])


def compile_nothing(op: Instruction) -> Step | None:
    """Hints."""

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        return

    return step


def compile_fence(op: Instruction) -> Step | None:
    """`fence` and `membar`: accesses take effect at once here; who may rely on that is what the order of accesses is about."""
    if has(op, "proxy", "mbarrier_init"):
        return compile_nothing(op)
    everywhere = not has(op, "cta")

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        machine.order.fence(gang.warps[mask.any(1)], everywhere=everywhere)

    return step


_HINTS = ("prefetch", "prefetchu", "applypriority", "discard", "nanosleep", "griddepcontrol", "createpolicy", "pmevent")
COMPILERS: dict[str, Any] = {
    "ld": compile_ld, "ldu": compile_ld, "st": compile_st, "mov": compile_mov, "cvta": compile_cvta, "isspacep": compile_isspacep,
    "fence": compile_fence, "membar": compile_fence,
    **dict.fromkeys(_HINTS, compile_nothing),
}  # fmt: skip
