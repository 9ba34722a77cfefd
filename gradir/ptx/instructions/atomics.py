"""Atomic operations and reductions on global and shared memory: one lane after the other, in the order of warps and lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from gradir.ptx.bits import bits_of
from gradir.ptx.instructions.accesses import (
    SET,
    addresses,
    all_set,
    checked,
    checked_shared,
    elements_of,
    flat,
    in_space,
    report_some,
    space_of,
    synchronise,
    targets_of,
    warps_of,
)
from gradir.ptx.instructions.arithmetic import maximum, minimum
from gradir.ptx.instructions.forms import Array
from gradir.ptx.instructions.packed import HALVES, packed, unpacked
from gradir.ptx.machine import Machine, Step
from gradir.ptx.memory import BIAS, OFFSET_BITS, SHARED_WINDOW, parts_of, scatter
from gradir.ptx.state import Gang
from gradir.ptx.syntax import Instruction
from gradir.ptx.types import DTYPES, WIDTHS, storage

_LOW = (1 << OFFSET_BITS) - 1
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda old, new: old + new, "min": min, "max": max, "and": lambda old, new: old & new, "or": lambda old, new: old | new,
    "xor": lambda old, new: old ^ new, "exch": lambda old, new: new,
    "inc": lambda old, new: type(old)(0) if old >= new else old + type(old)(1),
    "dec": lambda old, new: new if old == 0 or old > new else old - type(old)(1),
}  # fmt: skip
_PACKED: dict[str, Callable[[Array, Array], Array]] = {"add": np.add, "min": minimum, "max": maximum}
"""Of two halves in one register."""


def compile_atom(op: Instruction) -> Step | None:
    """`atom` (returns what was there) and `red` (does not); of vectors one element after the other."""
    kind, count = elements_of(op)
    name = next((part for part in op.opcode[1:] if part in OPERATIONS or part == "cas"), "")
    if not name or WIDTHS[kind] > 64 or (kind in HALVES and name not in _PACKED):
        return None
    returns = op.opcode[0] == "atom"
    address, *sources = op.operands[1:] if returns else op.operands
    width = WIDTHS[kind] // 8

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        where = addresses(machine, gang, address)
        for k in range(count):
            read = "b32" if kind in HALVES else kind
            values = [np.broadcast_to(machine.read(gang, targets_of(source)[k], read), mask.shape) for source in sources]
            old = _at(machine, gang, mask, op, where + k * width, name, kind, values)
            if returns:
                machine.write(gang, mask, targets_of(op.operands[0])[k], bits_of(old, storage(f"b{8 * width}")))
        synchronise(machine, gang, mask, op, where, reads=True, writes=True)

    return step


def _at(machine: Machine, gang: Gang, mask: Array, op: Instruction, where: Array, name: str, kind: str, values: list[Array]) -> Array:
    """The operation at one place of each lane; what was there."""
    width = WIDTHS[kind] // 8
    shared = space_of(op) == "shared"
    old = np.zeros(mask.shape, np.uint32 if kind in HALVES else DTYPES[kind])
    where = in_space(where) if shared else where
    numbers = np.full(mask.shape, SHARED_WINDOW) if shared else where >> OFFSET_BITS
    offsets = where if shared else (where & _LOW) - BIAS
    for number, lanes in parts_of(numbers, mask):
        found = (
            _in_shared(machine, gang, lanes, offsets, width)
            if number == SHARED_WINDOW
            else _in_global(machine, gang, lanes, number, offsets, width)
        )
        if found is None:
            continue
        good, data, written, at = found
        if written is not None:
            unknown = ~all_set(written, at, width)
            report_some("uninitialised read", machine, gang, good, unknown, None, "an atomic on bytes that nobody wrote")
            scatter(written.view(np.uint8), at, SET[width], width)
        whole = data[: data.size // width * width].view(old.dtype)
        old[good] = _apply(name, kind, whole, at // width, [value[good] for value in values])
        machine.changes += bool((whole[at // width].view(np.uint8) != old[good].view(np.uint8)).any())
    return old


Place: TypeAlias = "tuple[Array, Array, Array | None, Array]"
"""Lanes whose access is good; bytes of their memory, which of them are written, and where in them each lane's place is."""


def _in_shared(machine: Machine, gang: Gang, lanes: Array, offsets: Array, width: int) -> Place | None:
    good = checked_shared(machine, gang, lanes, offsets, width)
    if not good.any():
        return None
    warps, block, at = flat(machine, gang, good, offsets)
    for access in (machine.history.read, machine.history.write):
        races, others = access(warps, block, at, width, machine.position, strong=True)
        report_some("race", machine, gang, good, races, others, "an atomic where another warp may still read or write")
    at = block * machine.blocks.shared.shape[1] + at
    busy, copies = machine.pending.touched(at, width)
    report_some("unwaited copy", machine, gang, good, busy, copies, "an asynchronous copy still goes there")
    return good, machine.blocks.shared.reshape(-1), machine.blocks.defined.reshape(-1), at


def _in_global(machine: Machine, gang: Gang, lanes: Array, number: int, offsets: Array, width: int) -> Place | None:
    allocation = machine.memory.allocations.get(number)
    if allocation is None or allocation.readonly:
        what = "no allocation has this address" if allocation is None else f"{allocation.name} is read-only"
        machine.report("out of bounds", gang, lanes, what)
        return None
    good = checked(machine, gang, lanes, offsets, allocation, width, 1)
    if not good.any():
        return None
    at = offsets[good]
    races, others = machine.accesses.write(number, allocation.data.size, warps_of(gang, good), at, width, machine.position, True)
    what = f"an atomic on {allocation.name}, where another warp may still read or write"
    report_some("race", machine, gang, good, races, others, what)
    return good, allocation.data, allocation.written, at


def _apply(name: str, kind: str, whole: Array, at: Array, values: list[Array]) -> Array:
    """Do the operation for every lane in turn; what each found there."""
    with np.errstate(all="ignore"):
        if len(np.unique(at)) == len(at):
            old = whole[at].copy()
            whole[at] = _packed(name, kind, old, values[0]) if kind in HALVES else _together(name, old, values)
            return old
        if name == "add" and whole.dtype.kind in "iu" and kind not in HALVES:
            return _sums(whole, at, values[0])
        old = np.empty(at.shape, whole.dtype)
        for k, place in enumerate(at):
            found = whole[place]
            old[k] = found
            if name == "cas":
                whole[place] = values[1][k] if found == values[0][k] else found
            elif kind in HALVES:
                whole[place] = _packed(name, kind, old[k : k + 1], values[0][k : k + 1])[0]
            else:
                whole[place] = OPERATIONS[name](found, values[0][k])
    return old


def _packed(name: str, kind: str, old: Array, new: Array) -> Array:
    return packed(_PACKED[name](unpacked(old, kind), unpacked(new, kind)), kind)


def _sums(whole: Array, at: Array, values: Array) -> Array:
    """Additions of whole numbers, all at once: what lane k found is what was there and all that lanes before it added to the place."""
    order = np.argsort(at, kind="stable")
    places, added = at[order], values[order].astype(whole.dtype)
    before = np.cumsum(added, dtype=whole.dtype) - added
    first = np.flatnonzero(np.concatenate([[True], places[1:] != places[:-1]]))
    lengths = np.diff(np.concatenate([first, [len(places)]]))
    old = np.empty(at.shape, whole.dtype)
    old[order] = whole[places] + before - np.repeat(before[first], lengths)
    np.add.at(whole, at, values)
    return old


def _together(name: str, old: Array, values: list[Array]) -> Array:
    if name == "cas":
        return np.where(old == values[0], values[1], old)
    new = values[0]
    functions: dict[str, Callable[[], Array]] = {
        "add": lambda: old + new, "min": lambda: np.minimum(old, new), "max": lambda: np.maximum(old, new), "and": lambda: old & new,
        "or": lambda: old | new, "xor": lambda: old ^ new, "exch": lambda: new,
        "inc": lambda: np.where(old >= new, np.zeros_like(old), old + np.ones_like(old)),
        "dec": lambda: np.where((old == 0) | (old > new), new, old - np.ones_like(old)),
    }  # fmt: skip
    return functions[name]()


COMPILERS = {"atom": compile_atom, "red": compile_atom}
