"""Calls of device functions: arguments and results through the thread's local memory, lanes that return meet behind the call."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradir.ptx.linking import owner
from gradir.ptx.memory import BIAS, FUNCTIONS, OFFSET_BITS, POISON
from gradir.ptx.paths import Finished, Paths
from gradir.ptx.state import LANES, Call, Frame, Gang
from gradir.ptx.syntax import Callee, Name, Operand, Register, Variable, Vector
from gradir.ptx.types import WIDTHS

Array = np.ndarray[Any, np.dtype[Any]]
DEEPEST = 1 << 16
"""Bytes of local memory of a thread that nested calls may come to."""


def function_address(start: int) -> int:
    """The address of a device function: the place of its first instruction in a window of its own."""
    return (FUNCTIONS << OFFSET_BITS) + BIAS + start


def _called_from(start: int) -> int:
    """Where lanes in a function meet: at no instruction, and elsewhere than those in another function."""
    return -2 - start


class Calls(Paths):
    """Calls, and returns from them."""

    def call(self, gang: Gang, mask: Array, callee: Callee, arguments: tuple[Operand, ...]) -> None:
        """The lanes of `mask` go on at the start of a function; the others of the gang wait behind the call."""
        caller, called = self._frame_bytes(self.body_owner(gang.position)), self._frame_bytes(callee.name)
        base = self.stack[gang.warps] + caller
        if not self._room(gang, mask, base, called):
            self.end(gang, mask)
        for parameter, argument in zip(callee.parameters, arguments):
            if parameter.space == "reg":
                self.write(gang, mask, Register(parameter.name), self.read(gang, argument, parameter.type))
            elif isinstance(argument, Name):
                source = self.stack[gang.warps] + self.symbols[argument.name][1] + argument.offset
                self._copy(gang, mask, source, base + self.symbols[parameter.name][1], parameter)
            else:
                width = WIDTHS[parameter.type] // 8
                values = np.broadcast_to(self.read(gang, argument, f"u{8 * width}"), mask.shape)
                self._put(gang, mask, base + self.symbols[parameter.name][1], values[..., None].copy().view(np.uint8))
        saved: dict[str, Array] = {}
        if callee.recursive:
            mine = (name for name in self.registers if owner(name) == callee.name)
            saved = {name: self.registers[name][gang.warps].copy() for name in mine}
        self.stack[gang.warps] = np.where(mask, base, self.stack[gang.warps])
        gang.frames.append(
            Frame(_called_from(callee.start), gang.mask & ~mask, gang.position + 1, None, Call(callee.name, mask.copy(), saved))
        )
        gang.mask, gang.position = mask.copy(), callee.start - 1

    def body_owner(self, position: int) -> str:
        """The device function that an instruction belongs to; empty for the kernel."""
        found = ""
        for name, callee in self.function.callees.items():
            if callee.start <= position:
                found = name
        return found

    def _frame_bytes(self, name: str) -> int:
        return self.frames.get(name, 0)

    def _room(self, gang: Gang, mask: Array, base: Array, size: int) -> bool:
        needed = int(base[mask].max()) + size
        if needed > DEEPEST:
            self.report("out of bounds", gang, mask & (base + size > DEEPEST), f"calls nest deeper than {DEEPEST} bytes of local memory")
            return False
        if needed > self.local.shape[2]:
            more = max(needed, 2 * self.local.shape[2]) - self.local.shape[2]
            self.local = np.concatenate([self.local, np.full((self.warps, LANES, more), POISON, np.uint8)], 2)
        return True

    def _places(self, gang: Gang, mask: Array, where: Array, size: int) -> Array:
        """[lane, byte] places in the local memory of all lanes."""
        rows, lanes = np.nonzero(mask)
        base = (gang.warps[rows] * LANES + lanes) * self.local.shape[2] + where[mask]
        return base[:, None] + np.arange(size)

    def _copy(self, gang: Gang, mask: Array, source: Array, to: Array, variable: Variable) -> None:
        size = variable.size or WIDTHS[variable.type] // 8
        flat = self.local.reshape(-1)
        flat[self._places(gang, mask, to, size)] = flat[self._places(gang, mask, source, size)]

    def _put(self, gang: Gang, mask: Array, to: Array, data: Array) -> None:
        self.local.reshape(-1)[self._places(gang, mask, to, data.shape[-1])] = data[mask]

    def local_bytes(self, gang: Gang, mask: Array, where: Array, width: int) -> Array:
        """[warp, lane] integers of `width` bytes in the lanes' local memory."""
        found = np.zeros(mask.shape, f"u{width}")
        found[mask] = self.local.reshape(-1)[self._places(gang, mask, where, width)].view(f"u{width}")[:, 0]
        return found

    def set_local(self, gang: Gang, mask: Array, variable: Operand, values: Array) -> None:
        """Set a variable in local memory, such as the result of a call."""
        assert isinstance(variable, Name)
        where = np.broadcast_to(self.address_of(gang, variable), mask.shape)
        self._put(gang, mask, where, values[..., None].view(np.uint8))

    def returns(self, gang: Gang, lanes: Array) -> None:
        """`ret`: these lanes are back behind the call that is nearest on the stack; in the kernel itself they end."""
        depth = next((k for k in reversed(range(len(gang.frames))) if gang.frames[k].call is not None), None)
        if depth is None:
            self.end(gang, lanes)
        else:
            gang.frames[depth].joined |= lanes
            self.leave(gang, lanes)
        raise Finished

    def go_on(self, gang: Gang, frame: Frame) -> None:
        if frame.call is None:
            super().go_on(gang, frame)
            return
        callee = self.function.callees[frame.call.name]
        lanes = frame.call.lanes & frame.joined
        caller = self._frame_bytes(self.body_owner(frame.other - 1))
        base = self.stack[gang.warps]
        results = self.function.body[frame.other - 1].operands[0]
        assert isinstance(results, Vector)
        for result, operand in zip(callee.results, results.elements):
            if result.space == "reg":
                self.write(gang, lanes, operand, self.registers[result.name][gang.warps])
            elif isinstance(operand, Name):
                to = base - caller + self.symbols[operand.name][1]
                self._copy(gang, lanes, base + self.symbols[result.name][1], to, result)
        for name, bits in frame.call.saved.items():
            current = self.registers[name]
            current[gang.warps] = np.where(lanes, bits, current[gang.warps])
        self.stack[gang.warps] = np.where(lanes, base - caller, base)
        gang.mask, gang.position = frame.joined, frame.other
        self.put(gang)
