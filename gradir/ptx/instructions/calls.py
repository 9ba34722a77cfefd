"""`call` of device functions, by name and by address, and of the functions that the CUDA runtime has for every kernel."""

from __future__ import annotations

import numpy as np

from gradir.ptx.calls import function_address
from gradir.ptx.instructions.forms import Array
from gradir.ptx.instructions.runtime_functions import RUNTIME
from gradir.ptx.machine import Machine, Step
from gradir.ptx.state import Frame, Gang
from gradir.ptx.syntax import Instruction, Name, Vector


def compile_call(op: Instruction) -> Step | None:
    """`call[.uni] (results), function, (arguments)[, targets]`."""
    results, target, arguments, *_ = op.operands
    assert isinstance(arguments, Vector) and isinstance(results, Vector)

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        count = len(gang.warps)
        gang, mask = machine.concerned(gang, mask)
        if isinstance(target, Name):
            callee = machine.function.callees.get(target.name)
            if callee is None:
                if target.name not in RUNTIME:
                    raise machine.unknown(f"the function {target.name}, which has no body")
                RUNTIME[target.name](machine, gang, mask, results.elements, arguments.elements)
            else:
                machine.call(gang, mask, callee, arguments.elements)
        else:
            gang = _through(machine, gang, mask, np.broadcast_to(machine.read(gang, target, "u64"), mask.shape), arguments)
        if len(gang.warps) < count:
            machine.pass_on(gang)

    return step


def _through(machine: Machine, gang: Gang, mask: Array, addresses: Array, arguments: Vector) -> Gang:
    """Calls by address: lanes with one target at a time, the others of a warp come back to the same instruction."""
    chosen = addresses[mask][0]
    callee = next((c for c in machine.function.callees.values() if function_address(c.start) == chosen), None)
    yes = mask & (addresses == chosen)
    if callee is None:
        machine.report("out of bounds", gang, yes, f"no function has the address {int(chosen):#x}")
        machine.end(gang, yes)
    else:
        some = yes.any(1)
        if not some.all():
            gang, mask, yes = machine.keep(gang, some), mask[some], yes[some]
        rest = mask & ~yes
        if rest.any():
            gang.frames.append(Frame(gang.position + 1, gang.mask & ~mask, gang.position, rest))
            gang.mask = yes
        machine.call(gang, yes, callee, arguments.elements)
    return gang


COMPILERS = {"call": compile_call}
