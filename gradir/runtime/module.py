"""`Module` and `Function`: compiled code that is loaded and can be called. Arrays in, arrays out.

A call checks its inputs (`signature`), takes the arena and the outputs from the memory pool, releases the GIL while compiled code runs, and
turns a status into a `GradirError` at the model's source line. Calls of one function from several threads are independent.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from gradir import size_algebra
from gradir.errors import GradirError
from gradir.runtime import abi, artefact, memory
from gradir.runtime.call import Lent, invoke
from gradir.runtime.cuda.spec import DeviceSpec
from gradir.runtime.dispatch import ARRAY, DirectCall, Dispatch, Entry, Place, tuple_of
from gradir.runtime.donation import take_over
from gradir.runtime.failures import assertion_failed
from gradir.runtime.library.table import LibraryTable, failure
from gradir.runtime.loader import Library, load_object
from gradir.runtime.manifest import FunctionSpec, Manifest
from gradir.runtime.plan import CallPlan, fast_call_takes, is_plain
from gradir.runtime.signature import check_inputs, check_outputs, make_outputs, no_outputs, overlaps
from gradir.runtime.target import check_target
from gradir.runtime.threads import available_threads

Array = np.ndarray[Any, np.dtype[Any]]


class Function(DirectCall):
    """A compiled function. `f(*inputs)` gives an array, or a tuple of arrays when it has several (or no) results.

    Inputs are numpy arrays, `Buffer`s, DLPack exporters, and Python numbers for rank 0. Non-contiguous, unaligned and read-only arrays
    are fine: they are never written, and copied only when their layout asks for it. `flat(*inputs)` always gives a tuple. With `out=`, one
    array or a sequence of one for each result, the results are written to these arrays (any layout, may overlap inputs; copied where
    compiled code cannot write at once), which are returned.
    """

    __slots__ = ("__weakref__", "_entry", "_library", "_manifest", "_plan", "_single", "_table", "_threads", "flat", "spec")

    def __init__(self, spec: FunctionSpec, library: Library, manifest: Manifest, threads: int, table: LibraryTable | None = None) -> None:
        self.spec = spec
        self._library = library
        self._manifest = manifest
        self._table = table if table is not None else LibraryTable(())
        self._threads = threads
        self._entry = library.address(spec.symbol)
        self._single = len(spec.outputs) == 1
        self._plan: CallPlan | None = None
        self.flat: Callable[..., tuple[Array, ...]] = self._first_call
        self.__call__ = self._first_packed_call

    @property
    def name(self) -> str:
        """The function's name in the IR, without `@`."""
        return self.spec.name

    @property
    def plan(self) -> CallPlan | None:
        """What native code needs to call it; None where it cannot."""
        if self._plan is None and fast_call_takes(self.spec):
            self._plan = CallPlan(self.spec, self._entry, self._threads, self._failed, self._library, self._callbacks)
        return self._plan

    def __repr__(self) -> str:
        inputs = ", ".join(f"{t.name}: {t}" for t in self.spec.inputs)
        return f"<gradir function @{self.name}({inputs}) -> ({', '.join(map(str, self.spec.outputs))})>"

    def planned_bytes(self, *inputs: Any) -> int:
        """Bytes of memory that a call with inputs of these shapes takes beside inputs and results: the arena and the workspace."""
        if not self.spec.workspace:
            return self.spec.arena_bytes
        arrays, _ = check_inputs(self.spec, inputs)
        sizes: dict[str, int] = {}
        for tensor, array in zip(self.spec.inputs, arrays, strict=True):
            sizes |= {f"{tensor.name}_{d}": size for d, size in enumerate(np.shape(array))} if tensor.shape else {tensor.name: int(array)}
        return self.spec.arena_bytes + size_algebra.evaluate(self.spec.workspace, sizes)

    def set_threads(self, threads: int) -> None:
        """Let later calls use at most `threads` threads, the caller's included."""
        if type(threads) is not int or threads < 1:
            raise GradirError(
                "no such number of threads",
                part="runtime",
                code="RT017",
                function=f"@{self.name}",
                expected="a whole number from 1",
                found=repr(threads),
                hint="leave it to the default to use every processor",
            )
        self._threads = threads
        if self._plan is not None:
            self._plan.set_threads(threads)

    def _first_call(self, *inputs: Any) -> tuple[Array, ...]:
        self.flat = self._direct(self._slow_call, tuple_of(len(self.spec.outputs)), out=False)
        return self.flat(*inputs)

    def _first_packed_call(self, *inputs: Any, out: Any = None) -> Any:
        count = len(self.spec.outputs)
        self.__call__ = self._direct(self._slow_packed_call, ARRAY if self._single else tuple_of(count), out=True)
        return self.__call__(*inputs, out=out)

    def _direct(self, slow: Callable[..., Any], result: Place, *, out: bool) -> Callable[..., Any]:
        """`slow` behind a native function, where there can be one."""
        plan = self.plan
        if plan is None:
            return slow
        dispatch = Dispatch(slow, out="out" if out else None)
        dispatch.add(Entry(plan, (ARRAY,) * len(self.spec.inputs), {}, result))
        return dispatch.builtin()

    def _slow_call(self, *values: Any) -> tuple[Array, ...]:
        """What the native wrapper hands back: arguments to convert or to explain. It gets them again once they are plain arrays."""
        inputs, _ = check_inputs(self.spec, values)
        converted = any(given is not array for given, array in zip(values, inputs, strict=True))
        if converted and not self.spec.aliases and self.plan is not None and all(map(is_plain, self.spec.inputs, inputs)):
            return self.flat(*inputs)
        return self._checked_call(values if self.spec.aliases else inputs, None)

    def _slow_packed_call(self, *values: Any, out: Any = None) -> Any:
        results = self._slow_call(*values) if out is None else self.write(values, out)
        return results[0] if self._single else results

    def write(self, values: Sequence[Any], out: Any) -> tuple[Array, ...]:
        """A call whose results go to the arrays of `out`: one array, or a sequence of one for each result."""
        given = out if isinstance(out, list | tuple) or not hasattr(out, "__dlpack__") else (out,)
        if not isinstance(given, list | tuple):
            raise no_outputs(self.spec, given)
        return self._checked_call(values, tuple(given))

    def _checked_call(self, values: Sequence[Any], out: Sequence[Any] | None) -> tuple[Array, ...]:
        inputs, sizes = check_inputs(self.spec, values)
        if out is None:
            inputs, outputs = take_over(self.spec, values, inputs, make_outputs(self.spec, sizes))
            invoke(self.spec, self._entry, self._threads, inputs, outputs, self._failed, self._callbacks)
            return tuple(outputs)
        wanted = check_outputs(self.spec, out, sizes)
        written = [
            array if _plain_memory(array) and not overlaps(array, (*inputs, *wanted[:index])) else np.empty(array.shape, array.dtype)
            for index, array in enumerate(wanted)
        ]
        inputs, written = take_over(self.spec, values, inputs, written)
        invoke(self.spec, self._entry, self._threads, inputs, written, self._failed, self._callbacks)
        for array, source in zip(wanted, written, strict=True):
            if array is not source:
                array[...] = source
        return tuple(wanted)

    def run_in(self, lent: Lent, inputs: Sequence[Any], outputs: Sequence[Array], threads: int) -> None:
        """One call in memory of the caller's, with inputs that `check_inputs` has passed and plain arrays for the results."""
        invoke(self.spec, self._entry, threads, inputs, outputs, self._failed, self._callbacks, lent)

    @property
    def _callbacks(self) -> tuple[int, int]:
        """What the context needs for functions that are called by name."""
        return self._table.callback, self._table.user

    def _failed(self, status: int, code: int = 0, op_id: int = 0, *operands: int) -> NoReturn:
        if status == abi.STATUS_OUT_OF_MEMORY:
            figures = memory.statistics()
            raise GradirError(
                "out of memory",
                part="runtime",
                code="RT021",
                function=f"@{self.name}",
                expected=f"an arena of {self.spec.arena_bytes} bytes, the outputs, and what the run itself allocates",
                found=f"{figures.live_bytes} bytes live, {figures.cached_bytes} bytes cached",
                hint="drop results that are no longer needed, or call gradir.runtime.memory.trim()",
            )
        line = self._manifest.source_map.get(op_id)
        if status == abi.STATUS_CALLBACK:
            raise failure(line, f"@{self.name}", operands[0])
        found = f"status {status}, code {code}, operands {list(operands)}" if any(operands) else "it does not hold"
        raise assertion_failed(line, self.name, found)


class Module:
    """A loaded module: `module["f"]` or `module.f` is a `Function`; `save(path)` writes everything that a later `load` needs."""

    def __init__(self, manifest: Manifest, objects: Sequence[bytes], device: str = "") -> None:
        """Link `objects` (the first defines the functions, the others kernels) and fill the kernel table.

        `device`: where a module for a GPU runs (`cuda`, `cuda:N`, `cuda:emulated`). Raises `GradirError` RT014 when they were compiled for
        another machine, RT010 when they do not link, RT030 when they call a function by a name that is not registered, RT070 without a GPU.
        """
        check_target(manifest.target)
        self.manifest = manifest
        self.objects = tuple(objects)
        self._threads = manifest.threads or available_threads()
        self._library = _link(manifest, objects)
        table = LibraryTable(manifest.libraries)
        self._functions: dict[str, Any]
        if manifest.device is not None:
            cuda = import_module("gradir.runtime.cuda.loading")  # only programs for a GPU need it
            self._functions = cuda.device_functions(manifest, objects, self._library, table, device or "cuda", self._threads)
            return
        self._functions = {spec.name: Function(spec, self._library, manifest, self._threads, table) for spec in manifest.functions}

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of the public functions."""
        return tuple(self._functions)

    @property
    def threads(self) -> int:
        """How many threads a call may use, the caller's included."""
        return self._threads

    @threads.setter
    def threads(self, count: int) -> None:
        for function in self._functions.values():
            function.set_threads(count)
        self._threads = count

    def __getitem__(self, name: str) -> Function:
        found = self._functions.get(name.removeprefix("@"))
        if found is None:
            raise GradirError(
                f"the module has no function '{name}'",
                part="runtime",
                code="RT007",
                expected="one of " + ", ".join(self._functions),
                found=name,
                hint="names are those of the public functions of the compiled module",
            )
        return found

    def __getattr__(self, name: str) -> Function:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except GradirError as error:
            raise AttributeError(str(error)) from error

    def __iter__(self) -> Iterator[Function]:
        return iter(self._functions.values())

    def __repr__(self) -> str:
        return f"<gradir module: {', '.join(map(repr, self))}>"

    def explain(self) -> str:
        """What the module was compiled to: a line per kernel with its schedule, and why. What kernels cost, and how long they take, is
        `gradir.driver.explain` (`Compiled.explain`, `gradir-run --explain`), which needs the program."""
        rows = [("kernel", "strategy", "chosen by", "why"), *map(_note, self.manifest.details.get("kernels", ()))]
        widths = [max(len(row[k]) for row in rows) for k in range(4)]
        text = "".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() + "\n" for row in rows)
        return text + ("" if self.manifest.device is None else _device_notes(self.manifest.device))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the module as one file, atomically."""
        artefact.write_atomically(Path(path), artefact.pack(self.manifest, self.objects))


def load(path: str | os.PathLike[str], device: str = "") -> Module:
    """The module that `Module.save` wrote; hashes are checked before anything is linked. `device`: where one for a GPU runs (`cuda`).

    Raises `GradirError` RT013 (no such file), RT012 (truncated or altered), RT011 (another format), RT014 (another machine).
    """
    manifest, objects = artefact.unpack(artefact.read(path), os.fspath(path))
    return Module(manifest, objects, device)


def _link(manifest: Manifest, objects: Sequence[bytes]) -> Library:
    wanted: dict[int, list[str]] = {}
    for kernel in manifest.kernels:
        wanted.setdefault(kernel.object_index, []).append(kernel.symbol)
    kernels = {index: load_object(objects[index], sorted(set(symbols))) for index, symbols in wanted.items()}
    exports = [spec.symbol for spec in manifest.functions] + ([abi.KERNEL_TABLE] if manifest.kernels else [])
    main = load_object(objects[0], exports, depends=tuple(kernels.values()))
    if manifest.kernels:
        table = (ctypes.c_void_p * len(manifest.kernels)).from_address(main.address(abi.KERNEL_TABLE))
        for index, kernel in enumerate(manifest.kernels):
            table[index] = kernels[kernel.object_index].address(kernel.symbol)
    return main


def _device_notes(device: DeviceSpec) -> str:
    """A line for each function of a GPU."""
    lines = [f"\nfor {device.arch}, {device.scratch} bytes of temporaries"]
    for kernel in device.kernels:
        known = kernel.registers >= 0
        needs = f"{kernel.registers} registers, {kernel.shared + kernel.dynamic_shared} bytes shared, {kernel.spills} spilled"
        lines.append(f"  @{kernel.name}: {needs if known else 'registers are known where ptxas made a cubin'}")
    return "\n".join(lines) + "\n"


def _plain_memory(array: Array) -> bool:
    return array.flags.c_contiguous and array.flags.aligned


def _note(row: Mapping[str, Any]) -> tuple[str, str, str, str]:
    fields = (f"{name} {'x'.join(map(str, values))}" for name, values in row["schedule"].items())
    return row["name"], " ".join([row["kind"], *fields]), row["choice"], row["reason"] or (f"@{row['library']}" if "library" in row else "")
