"""`gpu`: launches run block after block; the threads of a block run one at a time, in random order, between barriers.

Each thread is a Python thread that runs only when the scheduler hands it the turn, until it reaches a barrier, exchanges a value with its
warp, or ends. Accesses of two threads to one place between two barriers, one of them a write, are reported as a race; reads of shared
memory that nobody wrote are reads of poison.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from itertools import count, product
from typing import Any

import numpy as np
from xdsl.ir import Operation

from gradir.dialects.upstream import gpu
from gradir.reference.buffers import Race, View, allocate
from gradir.reference.machine import Machine, Value, evaluates
from gradir.reference.memory import sizes_of
from gradir.reference.values import dtype_of

WARP = 32
_keys = count(1 << 40)  # of races: apart from those of parallel loops


@dataclass
class Thread:
    """One device thread: its coordinates, and where it waits (`barrier`, `shuffle`, or nothing)."""

    position: tuple[int, int, int]
    number: int
    block: _Block
    waits: str = ""
    value: Any = None
    done: bool = False
    turn: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    error: BaseException | None = None
    abandoned: bool = False
    copies: list[Any] = field(default_factory=list[Any])
    """Asynchronous copies of no group yet, and (below) the groups under way, oldest first: see `tensor_cores`."""
    groups: list[list[Any]] = field(default_factory=list[list[Any]])

    def pause(self, reason: str) -> None:
        """Give the turn back until the scheduler says that all who must are here."""
        self.waits = reason
        self.block.back.release()
        self.turn.acquire()
        if self.abandoned:
            raise _Abandoned


@dataclass
class _Block:
    """The threads of the running block, and what all of them see."""

    position: tuple[int, int, int]
    size: tuple[int, int, int]
    grid: tuple[int, int, int]
    back: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    threads: list[Thread] = field(default_factory=list[Thread])
    race: Race | None = None
    dynamic: View | None = None
    """Workgroup memory whose size the launch says."""


_running = threading.local()


def here(machine: Machine, op: Operation) -> Thread:
    """The running device thread."""
    thread = getattr(_running, "thread", None)
    if thread is None:
        machine.fail(op, "OP100", "outside of a kernel")
    return thread


def _axis(op: Any) -> int:
    return "xyz".index(op.dimension.data.value)


@evaluates(gpu.ThreadIdOp)
def _thread_id(machine: Machine, op: Operation) -> Value:
    return np.int64(here(machine, op).position[_axis(op)])


@evaluates(gpu.BlockIdOp)
def _block_id(machine: Machine, op: Operation) -> Value:
    return np.int64(here(machine, op).block.position[_axis(op)])


@evaluates(gpu.BlockDimOp)
def _block_dim(machine: Machine, op: Operation) -> Value:
    return np.int64(here(machine, op).block.size[_axis(op)])


@evaluates(gpu.GridDimOp)
def _grid_dim(machine: Machine, op: Operation) -> Value:
    return np.int64(here(machine, op).block.grid[_axis(op)])


@evaluates(gpu.BarrierOp)
def _barrier(machine: Machine, op: Operation) -> None:
    thread = here(machine, op)
    thread.pause("barrier")
    _enter_epoch(machine, thread)


def _enter_epoch(machine: Machine, thread: Thread) -> None:
    """Accesses from here on race only with those after the same barrier."""
    assert thread.block.race is not None
    machine.race = _Turn(thread.block.race, thread.number)


class _Turn:
    """A thread's view of the race of the current epoch."""

    def __init__(self, race: Race, number: int) -> None:
        self.race, self.iteration, self.key = race, number, race.key

    NOBODY, MANY = Race.NOBODY, Race.MANY

    def attach(self, allocation: Any) -> None:
        self.race.attach(allocation)


@evaluates(gpu.ShuffleOp)
def _shuffle(machine: Machine, op: gpu.ShuffleOp, value: Value, offset: Value, width: Value) -> tuple[Value, Value]:
    if op.mode.data != "xor" or int(width) != WARP:
        machine.fail(op, "OP100", "only shuffles of mode xor over whole warps", found=f"{op.mode.data}, width {int(width)}")
    thread = here(machine, op)
    thread.value = value
    thread.pause("shuffle")
    other = thread.block.threads[thread.number ^ int(offset)]
    taken = other.value
    thread.pause("shuffled")  # nobody writes the next value before all have read this one
    return taken, np.bool_(True)


@evaluates(gpu.DynamicSharedMemoryOp)
def _dynamic(machine: Machine, op: Operation) -> View:
    found = here(machine, op).block.dynamic
    assert found is not None
    return found


@evaluates(gpu.AllocOp)
def _alloc(machine: Machine, op: gpu.AllocOp, *dynamic: Value) -> View:
    return allocate(sizes_of(op.memref.type, dynamic), dtype_of(op.memref.type), f"the device buffer %{op.memref.name_hint or '?'}")


@evaluates(gpu.DeallocOp)
def _dealloc(machine: Machine, op: Operation, view: View) -> None:
    view.allocation.alive = False


@evaluates(gpu.ModuleOp)
def _module(machine: Machine, op: Operation) -> None:
    """A module is no action."""


@evaluates(gpu.LaunchFuncOp)
def _launch(machine: Machine, op: gpu.LaunchFuncOp, *values: Value) -> None:
    kernel = _kernel(machine, op)
    grid, size = tuple(int(v) for v in values[:3]), tuple(int(v) for v in values[3:6])
    dynamic = op.dynamicSharedMemorySize is not None
    shared, operands = int(values[6]) if dynamic else 0, values[6 + dynamic :]
    required = kernel.known_block_size
    if required is not None and tuple(required.get_values()) != size:
        machine.fail(op, "OP100", "the block size is not the kernel's", expected=str(list(required.get_values())), found=str(list(size)))
    if machine.launcher is not None:
        machine.launcher(kernel, (grid[0], grid[1], grid[2]), (size[0], size[1], size[2]), operands, shared)
        return
    blocks = list(product(*(range(n) for n in reversed(grid))))
    machine.rng.shuffle(blocks)
    for z, y, x in blocks:
        block = _Block((x, y, z), (size[0], size[1], size[2]), (grid[0], grid[1], grid[2]))
        block.dynamic = allocate([shared], np.dtype(np.int8), "the dynamic workgroup memory")
        _run_block(machine, op, kernel, block, list(operands))


def _kernel(machine: Machine, op: gpu.LaunchFuncOp) -> gpu.FuncOp:
    """The function that a launch names."""
    module = machine.symbol(op, type(op.kernel)(op.kernel.root_reference.data))
    name = op.kernel.nested_references.data[0].data
    for function in module.regions[0].block.ops:
        if isinstance(function, gpu.FuncOp) and function.sym_name.data == name:
            return function
    machine.fail(op, "OP100", f"no kernel @{name} in the module")


def _run_block(machine: Machine, op: Operation, kernel: gpu.FuncOp, block: _Block, operands: list[Value]) -> None:
    arguments = kernel.body.block.args
    shared = [
        allocate(sizes_of(a.type, ()), dtype_of(a.type), f"the workgroup buffer {k}")
        for k, a in enumerate(arguments[kernel.operand_count :])
    ]
    block.race = Race(next(_keys))
    places = product(*(range(n) for n in reversed(block.size)))
    block.threads = [Thread((x, y, z), number, block) for number, (z, y, x) in enumerate(places)]
    workers = [
        threading.Thread(target=_run_thread, args=(machine, kernel, thread, [*operands, *shared]), daemon=True) for thread in block.threads
    ]
    for worker in workers:
        worker.start()
    _schedule(machine, op, block)
    for worker in workers:
        worker.join()


def _run_thread(machine: Machine, kernel: gpu.FuncOp, thread: Thread, values: list[Value]) -> None:
    thread.turn.acquire()
    _running.thread = thread
    try:
        if thread.abandoned:
            raise _Abandoned
        own = Machine(machine.module, watch=machine.watch)
        own.globals, own._steps = machine.globals, machine._steps  # one thread runs at a time
        _enter_epoch(own, thread)
        with np.errstate(all="ignore"):
            own.enter(kernel.body, values)
    except BaseException as error:
        thread.error = error
    thread.done = True
    thread.waits = ""
    thread.block.back.release()


def _schedule(machine: Machine, op: Operation, block: _Block) -> None:
    """Turns in random order; a barrier opens when all threads that live wait at it, a shuffle when the whole warp does."""
    while True:
        ready = [t for t in block.threads if not t.done and not t.waits]
        if not ready:
            ready = _opened(machine, op, block)
            if not ready:
                break
        machine.rng.shuffle(ready)
        for thread in ready:
            thread.waits = ""
            thread.turn.release()
            block.back.acquire()
            if thread.error is not None:
                _abandon(block)
                raise thread.error
    if any(t.error for t in block.threads):
        raise next(t.error for t in block.threads if t.error)


def _opened(machine: Machine, op: Operation, block: _Block) -> list[Thread]:
    """Threads that may go on; none when all have ended."""
    living = [t for t in block.threads if not t.done]
    if not living:
        return []
    if all(t.waits == "barrier" for t in living):
        if len(living) != len(block.threads):
            _abandon(block)
            machine.fail(op, "OP107", "some threads ended while others wait at a barrier")
        block.race = Race(next(_keys))
        return living
    for start in range(0, len(block.threads), WARP):
        warp = block.threads[start : start + WARP]
        for reason in ("shuffle", "shuffled"):
            if all(t.waits == reason for t in warp):
                return warp
    _abandon(block)
    machine.fail(
        op, "OP107", "threads of a block wait for each other at different places", found=str(sorted({t.waits or "end" for t in living}))
    )


class _Abandoned(BaseException):
    """Ends a thread whose block has failed."""


def _abandon(block: _Block) -> None:
    """Let the threads that still wait end."""
    for thread in block.threads:
        if not thread.done:
            thread.abandoned = True
            thread.turn.release()
