"""Launching a kernel of a PTX text on numpy arrays: `launch(text, "k", grid=4, block=128, args=[x, y, np.int32(n)])`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from gradir.errors import GradirError
from gradir.ptx.calls import function_address
from gradir.ptx.global_races import GlobalHistory
from gradir.ptx.instructions import compiled
from gradir.ptx.linking import linked, owner
from gradir.ptx.machine import Machine, Step, agents_of
from gradir.ptx.memory import OFFSET_BITS, PARAMETERS, POISON, WIDEST, Allocation, GlobalMemory
from gradir.ptx.ordering import Ordering
from gradir.ptx.parser import parse
from gradir.ptx.reports import Reports, launch_failed
from gradir.ptx.state import LANES, Blocks
from gradir.ptx.syntax import Function, PtxModule, Variable
from gradir.ptx.tensor_maps import MAP_BYTES, TensorMap, encoded
from gradir.ptx.types import WIDTHS

Array = np.ndarray[Any, np.dtype[Any]]
Size: TypeAlias = "int | Sequence[int]"

WORKSPACE = 256
"""Bytes that the driver gives to a cooperative launch."""
GRID = (2**31 - 1, 65535, 65535)
"""Blocks of a grid at most, in each direction."""
RESIDENT_BYTES = 1 << 27
"""Registers and shared memory of the blocks that run together; the rest of a grid runs after them."""


@lru_cache(64)
def module_of(text: str) -> PtxModule:
    """The module that a text spells, parsed once."""
    return parse(text)


@lru_cache(256)
def _program(text: str, entry: str) -> tuple[Function, tuple[Step, ...]]:
    module = module_of(text)
    function = linked(module, module.functions[entry])
    return function, compiled(function)


def launch(
    text: str,
    entry: str = "",
    *,
    grid: Size,
    block: Size,
    args: Sequence[Any] = (),
    shared: int = 0,
    seed: int | None = None,
    undefined: Sequence[int] = (),
    check: bool = True,
    together: bool = False,
    advice: bool = False,
) -> Reports:
    """Run kernel `entry` (empty: the only one) of a PTX text; arrays among `args` are its global memory and are changed in place.

    `args` in order of the parameters: arrays for pointers (each an allocation of its own, views of one array too), numbers for scalars
    (as numpy scalars or Python numbers, stored with the parameter's type), bytes for structures. `shared`: bytes of dynamic shared
    memory. `seed`: run warps in random order and pieces (None: in order); what is reported does not depend on it, results of racing
    kernels do. `undefined`: positions of arrays whose contents count as not written. `together`: all blocks are resident at once, for
    kernels that wait across blocks, as in a cooperative launch. `advice`: count what accesses move (`Reports.advice`). Returns the reports;
    with `check`, a mistake is a `GradirError` OP062.
    """
    module = module_of(text)
    function = _entry(module, entry)
    limits = _triple(block)
    wanted = function.limits.get("reqntid")
    if wanted and _triple(wanted) != limits:
        raise _bad_launch(function, f"a block of {_triple(wanted)} threads, as .reqntid says", str(limits))
    if min(limits) < 1 or math.prod(limits) > 1024:
        raise _bad_launch(function, "from 1 to 1024 threads a block", str(limits))
    most = function.limits.get("maxntid")
    if most and math.prod(limits) > math.prod(_triple(most)):
        raise _bad_launch(function, f"at most {math.prod(_triple(most))} threads a block, as .maxntid says", str(limits))
    size = _triple(grid)
    if any(not 1 <= n <= limit for n, limit in zip(size, GRID)):
        raise _bad_launch(function, f"a grid of at least one block and at most {GRID}", str(size))
    memory = GlobalMemory()
    parameters, parameter_bytes = _parameters(function, args, memory, frozenset(undefined))
    memory.allocations[PARAMETERS] = Allocation(PARAMETERS, "the parameters", parameter_bytes, readonly=True)
    function, steps = _program(text, function.name)
    symbols, static, frames = _symbols(module, function, memory)
    reports = Reports(traffic={} if advice else None)
    random = np.random.default_rng(seed)
    granule = _granule(function)
    per_block = -(-limits[0] * limits[1] * limits[2] // LANES)
    cluster = _cluster(function, size)
    together_in = cluster[0] * cluster[1] * cluster[2]
    order = Ordering(size[0] * size[1] * size[2] // together_in, per_block * together_in, _synchronises(function))
    accesses = GlobalHistory(order, _global_granule(function))
    workspace = memory.add("the grid's workspace", np.zeros(WORKSPACE, np.uint8)).address if together else 0
    for blocks in _batches(function, size, limits, static + shared, together):
        blocks.workspace = workspace
        Machine(
            module,
            function,
            steps,
            blocks,
            memory,
            parameters,
            parameter_bytes,
            symbols,
            accesses,
            reports,
            random,
            frames,
            seed is not None,
            granule,
            agents_of(function),
        ).run()
    if check and reports.mistakes:
        raise launch_failed(reports.mistakes)
    return reports


def _entry(module: PtxModule, entry: str) -> Function:
    names = module.entries()
    if not entry and len(names) == 1:
        return module.functions[names[0]]
    if entry not in names:
        raise GradirError(
            f"the PTX has no kernel '{entry}'",
            part="operator",
            code="OP064",
            expected=", ".join(names) or "an .entry",
            found=entry or "no name",
            hint="name one of them",
        )
    return module.functions[entry]


def _triple(size: Size) -> tuple[int, int, int]:
    found = (size,) if isinstance(size, int) else tuple(int(n) for n in size)
    full = (*found, 1, 1, 1)
    return full[0], full[1], full[2]


def _bad_launch(function: Function, expected: str, found: str) -> GradirError:
    return GradirError(
        f"@{function.name} cannot be launched so",
        part="operator",
        code="OP064",
        function=f"@{function.name}",
        expected=expected,
        found=found,
    )


def _parameters(function: Function, args: Sequence[Any], memory: GlobalMemory, undefined: frozenset[int]) -> tuple[dict[str, int], Array]:
    """Offsets of the parameters, and their bytes."""
    if len(args) != len(function.parameters):
        raise _bad_launch(function, f"{len(function.parameters)} arguments", str(len(args)))
    offsets: dict[str, int] = {}
    data = bytearray()
    for position, (parameter, value) in enumerate(zip(function.parameters, args)):
        data += bytes(-len(data) % parameter.align)
        offsets[parameter.name] = len(data)
        data += _bytes_of(function, parameter, position, value, memory, position not in undefined)
    return offsets, np.frombuffer(bytes(data) + bytes(16), np.uint8)


@dataclass(frozen=True)
class DeviceBuffer:
    """Memory that lives on between launches: its bytes, and a flag per byte that says whether it was written (None: all of it was)."""

    data: Array
    written: Array | None = None


def _bytes_of(function: Function, parameter: Variable, position: int, value: Any, memory: GlobalMemory, defined: bool) -> bytes:
    size = _size_of(parameter)
    if isinstance(value, TensorMap):
        if size != MAP_BYTES:
            raise _bad_launch(function, f"{size} bytes for {parameter.name}", "a tensor map, which has 128")
        return _encoded(function, parameter, value, memory)
    if isinstance(value, DeviceBuffer):
        return memory.add(parameter.name, value.data, written=value.written).address.to_bytes(8, "little")[:size]
    if isinstance(value, np.ndarray):
        if not value.flags.c_contiguous:
            raise _bad_launch(function, f"a contiguous array for {parameter.name}", f"strides {value.strides}")
        flat: Array = value.reshape(-1).view(np.uint8) if value.size else np.zeros(0, np.uint8)
        written = None if defined else np.zeros(flat.size, np.bool_)
        return memory.add(parameter.name, flat, written=written, readonly=not flat.flags.writeable).address.to_bytes(8, "little")[:size]
    if isinstance(value, bytes | bytearray):
        if len(value) != size:
            raise _bad_launch(function, f"{size} bytes for {parameter.name}", f"{len(value)} bytes")
        return bytes(value)
    if isinstance(value, np.generic) and not isinstance(value, np.integer | np.bool_):
        raw = value.tobytes()
        if len(raw) != size:
            raise _bad_launch(function, f"a value of {size} bytes for {parameter.name}", f"{value.dtype}")
        return raw
    if parameter.type in ("f32", "f64") and isinstance(value, int | float):
        return np.dtype(f"f{size}").type(value).tobytes()
    if not isinstance(value, int | np.integer | np.bool_):
        raise _bad_launch(function, f"a whole number or a numpy scalar for {parameter.name} (.{parameter.type})", repr(value))
    number, bits = int(value), 8 * size
    if not -(1 << (bits - 1)) <= number < 1 << bits:
        raise _bad_launch(function, f"a number of {bits} bits for {parameter.name} (.{parameter.type})", str(number))
    return (number & ((1 << bits) - 1)).to_bytes(size, "little")


def _encoded(function: Function, parameter: Variable, value: TensorMap, memory: GlobalMemory) -> bytes:
    """The bytes of a tensor map, whose array is an allocation of its own."""
    data, written = (value.base.data, value.base.written) if isinstance(value.base, DeviceBuffer) else (value.base, None)
    span = sum((n - 1) * s for n, s in zip(data.shape, data.strides)) + data.itemsize if data.size else 0
    if span < value.extent or any(s < 0 for s in data.strides):
        raise _bad_launch(function, f"an array of {value.extent} bytes for {parameter.name}", f"{span} bytes")
    first: Array = data[(slice(0, 1),) * data.ndim].reshape(-1).view(np.uint8)
    flat: Array = np.lib.stride_tricks.as_strided(first, (value.extent,), (1,), writeable=data.flags.writeable)
    number = memory.add(parameter.name, flat, written=written, readonly=not flat.flags.writeable).number
    memory.maps[number] = value
    return encoded(number)


def _size_of(variable: Variable) -> int:
    """Bytes of a variable."""
    return variable.size or WIDTHS[variable.type] // 8


def _symbols(module: PtxModule, function: Function, memory: GlobalMemory) -> tuple[dict[str, tuple[str, int]], int, dict[str, int]]:
    """Addresses of all variables, bytes of static shared memory, bytes of local memory of an activation of each function."""
    symbols: dict[str, tuple[str, int]] = {}
    shared = 0
    frames: dict[str, int] = {}
    dynamic: dict[str, int] = {}  # alignment of each
    for name, variable in {**module.variables, **function.variables}.items():
        if variable.space in ("global", "const"):
            data = np.frombuffer(variable.data if variable.data is not None else bytes(_size_of(variable)), np.uint8).copy()
            symbols[name] = ("global", memory.add(name, data, readonly=variable.space == "const").address)
        elif variable.space == "shared" and variable.extern:
            dynamic[name] = variable.align
        elif variable.space == "shared":
            at = -(-shared // variable.align) * variable.align
            symbols[name] = ("shared", at)
            shared = at + _size_of(variable)
        elif variable.space in ("local", "param"):
            frame = frames.get(owner(name), 0)
            at = -(-frame // variable.align) * variable.align
            symbols[name] = ("local", at)
            frames[owner(name)] = at + _size_of(variable)
    alignment = max([16, *dynamic.values()]) if dynamic else 1
    start = -(-shared // alignment) * alignment
    symbols.update((name, ("shared", start)) for name in dynamic)
    symbols.update((name, ("function", function_address(callee.start))) for name, callee in function.callees.items())
    for name, variable in {**module.variables, **function.variables}.items():
        for at, pointee, offset in variable.pointees:
            if pointee in symbols:  # functions that this kernel cannot come to call are nowhere
                target = memory.allocations[symbols[name][1] >> OFFSET_BITS].data
                address = symbols[pointee][1] + offset
                target[at : at + 8] = np.frombuffer(address.to_bytes(8, "little"), np.uint8)
    return symbols, start, {name: -(-size // WIDEST) * WIDEST for name, size in frames.items()}


def _granule(function: Function) -> int:
    """The narrowest access to shared memory in bytes, 4 at most: races are told apart so far."""
    found = 4
    for op in function.body:
        if op.opcode[0] in ("ld", "st", "atom", "red") and "param" not in op.opcode:
            kinds = [part for part in op.opcode if part in WIDTHS]
            found = min(found, max(1, WIDTHS[kinds[-1]] // 8)) if kinds else found
    return found


def _synchronises(function: Function) -> bool:
    """Fences, or accesses that acquire or release."""
    return any(op.opcode[0] in ("fence", "membar") or {"acquire", "release", "acq_rel"} & set(op.opcode) for op in function.body)


def _global_granule(function: Function) -> int:
    """The narrowest access to global memory in bytes, `WIDEST` at most."""
    found = WIDEST
    for op in function.body:
        if op.opcode[0] in ("ld", "ldu", "st", "atom", "red", "wmma") and not {"param", "shared", "local"} & set(op.opcode[1:]):
            kinds = [part for part in op.opcode if part in WIDTHS]
            count = next((int(part[1:]) for part in op.opcode if part in ("v2", "v4", "v8")), 1)
            found = min(found, max(1, WIDTHS[kinds[-1]] // 8 * count)) if kinds else found
        elif op.opcode[0] == "cp" and "bulk" not in op.opcode:
            found = min(found, 4)
    return found


def _batches(function: Function, grid: tuple[int, int, int], block: tuple[int, int, int], shared: int, together: bool) -> Iterator[Blocks]:
    """The blocks of a grid in order, so many at a time as fit into `RESIDENT_BYTES`."""
    total = grid[0] * grid[1] * grid[2]
    warps = -(-block[0] * block[1] * block[2] // LANES)
    cluster = _cluster(function, grid)
    size = cluster[0] * cluster[1] * cluster[2]
    cost = warps * LANES * 4 * max(1, len(function.registers)) + shared * (2 + 4 * (2 + warps * size + agents_of(function)))
    at_once = total if together else max(size, min(total, RESIDENT_BYTES // max(1, cost)) // size * size)
    clusters = [n // c for n, c in zip(grid, cluster)]
    for first in range(0, total, at_once):
        group, inner = np.divmod(np.arange(first, min(first + at_once, total)), size)  # blocks of a cluster one behind the other
        chosen = _coordinates(group, clusters) * cluster + _coordinates(inner, cluster)
        memory = np.full((len(chosen), -(-shared // WIDEST) * WIDEST), POISON, np.uint8)
        yield Blocks(chosen, block, grid, cluster, memory, np.zeros(memory.shape, np.bool_), warps, shared, first)


def _coordinates(numbers: np.ndarray[Any, Any], sizes: Sequence[int]) -> np.ndarray[Any, Any]:
    return np.stack([numbers % sizes[0], numbers // sizes[0] % sizes[1], numbers // (sizes[0] * sizes[1])], 1)


def _cluster(function: Function, grid: tuple[int, int, int]) -> tuple[int, int, int]:
    """Blocks of a cluster as `.reqnctapercluster` says."""
    found = _triple(function.limits.get("reqnctapercluster", (1, 1, 1)))
    size = found[0] * found[1] * found[2]
    if any(n % c for n, c in zip(grid, found)) or not 1 <= size <= 16:
        raise _bad_launch(function, f"a grid of whole clusters of {found} blocks, 16 at most", str(grid))
    return found
