"""What the CUDA runtime has for every kernel: `vprintf`, `__assertfail`, `malloc`, `free`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from gradir.ptx.instructions.accesses import load_global
from gradir.ptx.instructions.forms import Array
from gradir.ptx.machine import Machine
from gradir.ptx.memory import BIAS, OFFSET_BITS, POISON
from gradir.ptx.state import Gang
from gradir.ptx.syntax import Name, Operand

RuntimeFunction: TypeAlias = Callable[[Machine, Gang, Array, tuple[Operand, ...], tuple[Operand, ...]], None]
_CONVERSION = re.compile(r"%[-+ #0]*(\*|\d+)?(?:\.(\*|\d+))?(hh|h|ll|l|z|t|j)?([diouxXcsfFeEgGaAp%])")


def _argument(machine: Machine, gang: Gang, mask: Array, operand: Operand, width: int = 8) -> Array:
    """[warp, lane] bits of an argument, which lies in the caller's local memory."""
    assert isinstance(operand, Name)
    where = np.broadcast_to(machine.address_of(gang, operand), mask.shape)
    return machine.local_bytes(gang, mask, where, width)


def _text(machine: Machine, address: int) -> str:
    """The characters at a global address up to the zero."""
    allocation = machine.memory.allocations.get(address >> OFFSET_BITS)
    if allocation is None:
        return "?"
    data = allocation.data[(address & ((1 << OFFSET_BITS) - 1)) - BIAS :].tobytes()
    return data.partition(b"\0")[0].decode("utf-8", "replace")


def _printf(machine: Machine, gang: Gang, mask: Array, results: tuple[Operand, ...], arguments: tuple[Operand, ...]) -> None:
    """Text goes to the reports, lane by lane; the result is the number of arguments."""
    formats = _argument(machine, gang, mask, arguments[0])
    buffers = _argument(machine, gang, mask, arguments[1]).astype(np.int64)
    counts = np.zeros(mask.shape, np.uint32)
    for row, lane in np.argwhere(mask):
        one = np.zeros(mask.shape, np.bool_)
        one[row, lane] = True
        offset = 0

        def next_value(width: int, one: Array = one, row: int = int(row), lane: int = int(lane)) -> int:
            nonlocal offset
            offset = -(-offset // width) * width
            found = load_global(machine, gang, one, buffers + offset, width, 1)[0][row, lane]
            offset += width
            return int(found)

        text, count = _formatted(machine, _text(machine, int(formats[row, lane])), next_value)
        counts[row, lane] = count
        machine.reports.printed.append(text)
    if results:
        machine.set_local(gang, mask, results[0], counts)


def _formatted(machine: Machine, form: str, next_value: Callable[[int], int]) -> tuple[str, int]:
    text, at, count = "", 0, 0
    for match in _CONVERSION.finditer(form):
        text += form[at : match.start()]
        at = match.end()
        spec, length, kind = match.group(), match[3] or "", match[4]
        if kind == "%":
            text += "%"
            continue
        for star in (match[1], match[2]):
            if star == "*":
                spec = spec.replace("*", str(next_value(4)), 1)
                count += 1
        count += 1
        spec = spec.replace(length, "") if length else spec
        if kind in "fFeEgGaA":
            value: object = float(np.uint64(next_value(8)).view(np.float64))
            text += float(str(value)).hex() if kind in "aA" else spec % value
        elif kind == "s":
            text += spec % _text(machine, next_value(8))
        elif kind == "p":
            text += hex(next_value(8))
        elif kind == "c":
            text += chr(next_value(4) & 0xFF)
        else:
            bits = 64 if length in ("l", "ll", "z", "t", "j") else 32
            number = next_value(bits // 8)
            signed = kind in "di" and number >> (bits - 1)
            text += spec.replace("u", "d").replace("i", "d") % (number - (1 << bits) if signed else number)
    return text + form[at:], count


def _assertion(machine: Machine, gang: Gang, mask: Array, results: tuple[Operand, ...], arguments: tuple[Operand, ...]) -> None:
    """The message, where it stands, and the end of the lanes that came here."""
    first = tuple(np.argwhere(mask)[0])
    message, file, line, function = (int(_argument(machine, gang, mask, a, 4 if k == 2 else 8)[first]) for k, a in enumerate(arguments[:4]))
    where = f"{_text(machine, file)}:{line}, {_text(machine, function)}"
    machine.report("assertion", gang, mask, f"{_text(machine, message)} does not hold ({where})")
    machine.end(gang, mask)


def _malloc(machine: Machine, gang: Gang, mask: Array, results: tuple[Operand, ...], arguments: tuple[Operand, ...]) -> None:
    sizes = _argument(machine, gang, mask, arguments[0])
    found = np.zeros(mask.shape, np.uint64)
    for row, lane in np.argwhere(mask):
        size = int(sizes[row, lane])
        data = np.full(size, POISON, np.uint8)
        found[row, lane] = machine.memory.add(f"malloc({size})", data, written=np.zeros(size, np.bool_)).address
    machine.set_local(gang, mask, results[0], found)


def _free(machine: Machine, gang: Gang, mask: Array, results: tuple[Operand, ...], arguments: tuple[Operand, ...]) -> None:
    for address in _argument(machine, gang, mask, arguments[0])[mask]:
        if int(address) and machine.memory.allocations.pop(int(address) >> OFFSET_BITS, None) is None:
            machine.report("out of bounds", gang, mask, "frees what is no allocation")


RUNTIME: dict[str, RuntimeFunction] = {"vprintf": _printf, "__assertfail": _assertion, "malloc": _malloc, "free": _free}
