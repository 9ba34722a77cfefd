"""`DeviceFunction`: a compiled function whose arrays lie in a device's memory. It looks like `gradir.runtime.module.Function`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from gradir import size_algebra
from gradir.runtime import abi
from gradir.runtime.call import scalar_word
from gradir.runtime.caller import caller_location
from gradir.runtime.cuda.array import DeviceArray
from gradir.runtime.cuda.device import Device, Stream
from gradir.runtime.cuda.program import GRAPH_LAUNCHES, Captured, DeviceProgram, GraphCache, Outcome
from gradir.runtime.donation import shared_memory
from gradir.runtime.dtypes import numpy_dtype
from gradir.runtime.failures import assertion_failed, misuse
from gradir.runtime.library.table import failure
from gradir.runtime.manifest import FunctionSpec, TensorSpec
from gradir.runtime.run_time_sizes import CallSizes
from gradir.runtime.signature import as_array, check_array, output_shape, plain, wrong_count

if TYPE_CHECKING:
    from gradir.runtime.cuda.loading import Loader

Array = np.ndarray[Any, np.dtype[Any]]

ALIGNMENT = 16
"""Kernels access memory in 16 bytes at a time, counted from the start of an argument."""


class DeviceFunction:
    """A compiled function. `f(*inputs)` gives a `DeviceArray`, or a tuple of them when it has several (or no) results.

    Inputs are numpy arrays and what numpy takes (copied), `DeviceArray`s, arrays of other libraries in the device's memory (DLPack,
    `__cuda_array_interface__`; taken on the caller's stream), and Python numbers for rank 0. The call returns when its work is queued.
    """

    plan = None

    def __init__(self, spec: FunctionSpec, entry: int, loader: Loader, threads: int, library: object = None) -> None:
        """`library` is the code at `entry`; it lives as long."""
        self.spec, self._loader, self._entry, self._threads, self._library = spec, loader, entry, threads, library
        self._graphs = GraphCache()
        self._single = len(spec.outputs) == 1

    @property
    def name(self) -> str:
        """The function's name in the IR, without `@`."""
        return self.spec.name

    @property
    def program(self) -> DeviceProgram:
        """The loaded module on its device."""
        return self._loader.program

    @property
    def device(self) -> Device:
        """Where it runs."""
        return self.program.device

    def __repr__(self) -> str:
        inputs = ", ".join(f"{t.name}: {t}" for t in self.spec.inputs)
        return f"<gradir function @{self.name}({inputs}) -> ({', '.join(map(str, self.spec.outputs))}) on {self._loader.name}>"

    def set_threads(self, threads: int) -> None:
        """How many threads library functions on the host may use."""
        self._threads = threads

    def planned_bytes(self, *inputs: Any) -> int:
        """Bytes of the device's memory that a call takes beside inputs and results."""
        fixed = self.spec.arena_bytes + self.program.spec.scratch
        if not self.spec.workspace:
            return fixed
        sizes: dict[str, int] = {}
        for tensor, value in zip(self.spec.inputs, inputs, strict=True):
            shape = np.shape(value) if not isinstance(value, DeviceArray) else value.shape
            sizes |= {f"{tensor.name}_{d}": size for d, size in enumerate(shape)} if tensor.shape else {tensor.name: int(value)}
        return fixed + size_algebra.evaluate(self.spec.workspace, sizes)

    def __call__(self, *inputs: Any, out: Any = None) -> Any:
        results = self.flat(*inputs) if out is None else self.write(inputs, out)
        return results[0] if self._single else results

    def flat(self, *inputs: Any) -> tuple[DeviceArray, ...]:
        """The results as a tuple."""
        with self.device.activate():
            return self._call(inputs, self.device.current_stream())

    def write(self, values: Sequence[Any], out: Any) -> tuple[Any, ...]:
        """A call whose results are copied to the arrays of `out`, numpy arrays (which waits) or `DeviceArray`s."""
        given = tuple(out) if isinstance(out, list | tuple) else (out,)
        for tensor, target in zip(self.spec.outputs, given):
            if isinstance(target, np.ndarray) and not target.flags.writeable:
                found = f"a read-only array for '{tensor.name}'"
                raise misuse(
                    self.spec, "RT006", f"out= of '{tensor.name}' is read-only", "a writable array", found, "pass a writable array"
                )
        results = self.flat(*values)
        if len(given) != len(results):
            raise misuse(self.spec, "RT006", "wrong number of arrays in out=", f"{len(results)} arrays", str(len(given)), "one per result")
        for tensor, target, result in zip(self.spec.outputs, given, results, strict=True):
            if not isinstance(target, DeviceArray | np.ndarray) or tuple(target.shape) != result.shape:
                found = type(target).__name__ if not hasattr(target, "shape") else "x".join(map(str, target.shape))
                raise misuse(
                    self.spec, "RT006", f"out= does not fit '{tensor.name}'", str(tensor), found, "pass an array of the result's shape"
                )
            if isinstance(target, np.ndarray):
                target[...] = result.numpy()
            else:
                stream = self.device.current_stream()
                self.device.copy_within(target.use_on(stream), result.use_on(stream), result.nbytes, stream)
        return given

    # One call

    def _call(self, values: Sequence[Any], stream: Stream) -> tuple[DeviceArray, ...]:
        spec = self.spec
        if len(values) != len(spec.inputs):
            raise wrong_count(spec, len(values))
        sizes = CallSizes(spec)
        place: list[str] = []

        def where() -> str:
            if not place:
                place.append(caller_location())
            return place[0]

        arrays = [self._input(tensor, value, sizes, stream, where) for tensor, value in zip(spec.inputs, values, strict=True)]
        sizes.finish()
        taken = {result: argument for argument, result in spec.aliases}
        results: list[DeviceArray] = []
        for position, tensor in enumerate(spec.outputs):
            if position in taken:
                results.append(self._taken_over(taken[position], position, values, arrays, stream, where))
                continue
            shape, dtype = output_shape(spec, tensor, sizes), numpy_dtype(tensor.dtype)
            count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
            block = self.device.pool.take(count, stream, lambda name=tensor.name: f"'{name}' of @{self.name}, {where()}")
            results.append(DeviceArray(self.device, block.address, shape, tensor.dtype, block, stream))
        words = self._words(arrays, results)
        arena = None
        if spec.arena_bytes:
            arena = self.device.pool.take(spec.arena_bytes, stream, lambda: f"arena of @{self.name}, {where()}")
            words.append(arena.address)
        self._run(words, stream)
        self.device.hold([array for array in arrays if isinstance(array, DeviceArray) and array.is_foreign], stream)
        return tuple(results)

    def _input(self, tensor: TensorSpec, value: Any, sizes: CallSizes, stream: Stream, where: Callable[[], str]) -> Any:
        device = self.device
        if not isinstance(value, DeviceArray | np.ndarray):
            there = device.foreign(value, stream)
            if there is not None:
                address, shape, dtype, owner = there
                value = DeviceArray(device, address, shape, dtype, owner, stream)
        if isinstance(value, DeviceArray) and (value.device is not device or tensor.kind == "scalar"):
            value = value.numpy()
        if isinstance(value, DeviceArray):
            check_array(self.spec, tensor, value.shape, value.dtype, sizes)
            address = value.use_on(stream)
            if address % ALIGNMENT == 0:
                return value
            block = device.pool.take(value.nbytes, stream, lambda: f"an aligned copy of '{tensor.name}' for @{self.name}, {where()}")
            device.copy_within(block.address, address, value.nbytes, stream)
            device.hold([value] if value.is_foreign else [], stream)
            return DeviceArray(device, block.address, value.shape, tensor.dtype, block, stream)
        array = as_array(self.spec, tensor, value)
        check_array(self.spec, tensor, array.shape, array.dtype, sizes)
        if tensor.kind == "scalar":
            if tensor.binds:
                sizes.see(tensor.binds, int(array), f"value of '{tensor.name}'")
            return array[()]
        array = plain(array, numpy_dtype(tensor.dtype))
        block = device.pool.take(array.nbytes, stream, lambda: f"a copy of '{tensor.name}' for @{self.name}, {where()}")
        device.copy_in(block.address, array, stream)
        return DeviceArray(device, block.address, array.shape, tensor.dtype, block, stream)

    def _taken_over(
        self, argument: int, result: int, values: Sequence[Any], arrays: list[Any], stream: Stream, where: Callable[[], str]
    ) -> DeviceArray:
        """The result that lies in the memory of a donated argument."""
        tensor, array, given = self.spec.inputs[argument], arrays[argument], values[argument]
        if array is given:  # the caller's own memory
            if any(k != argument and isinstance(other, DeviceArray) and _overlap(array, other) for k, other in enumerate(arrays)):
                twin = next(k for k, o in enumerate(arrays) if k != argument and isinstance(o, DeviceArray) and _overlap(array, o))
                raise shared_memory(self.spec, argument, twin)
            owner = array.give_away(f"argument '{tensor.name}' of a call of @{self.name}")
            array = arrays[argument] = DeviceArray(self.device, array.address, array.shape, array.element, owner, stream)
        return array.reshaped(tuple(dim if isinstance(dim, int) else n for dim, n in _dims(self.spec.outputs[result], array)))

    def _words(self, arrays: Sequence[Any], results: Sequence[DeviceArray]) -> list[int]:
        words: list[int] = []
        for tensor, value in zip(self.spec.inputs + self.spec.outputs, (*arrays, *results), strict=True):
            if tensor.kind == "scalar":
                words.append(scalar_word(value, tensor))
            else:
                words.append(value.address)
                words += [value.shape[k] for k in tensor.dynamic_dims]
        return words

    def _run(self, words: Sequence[int], stream: Stream) -> None:
        program, graphs = self.program, self._graphs
        captured = graphs.enabled and self.device.graphs
        scratch = program.scratch(stream)
        key = (*words, scratch)
        found = graphs.find(key) if captured else None
        if found is None and captured and graphs.seen(key):
            outcomes: list[Outcome] = []
            graph = self.device.capture(stream, lambda s: outcomes.append(self._checked(words, s, scratch)))
            found = Captured(graph, outcomes[-1].launched)
            graphs.store(key, found)
        if found is not None:
            found.graph.launch(stream)
            stream.note(found.launched)
            return
        outcome = self._checked(words, stream, scratch)
        if captured and outcome.repeatable and outcome.launches >= GRAPH_LAUNCHES:
            graphs.note(key)

    def _checked(self, words: Sequence[int], stream: Stream, scratch: int) -> Outcome:
        outcome = self.program.run(self._entry, words, self.name, stream, self._threads, scratch)
        if outcome.status != abi.STATUS_OK or outcome.call.error is not None:
            self._failed(outcome)
        return outcome

    def _failed(self, outcome: Outcome) -> NoReturn:
        code, op_id, *operands = outcome.error
        if outcome.call.error is not None:
            raise outcome.call.error
        line = self.program.line(op_id)
        if outcome.status == abi.STATUS_DEVICE:
            raise self.program.refused(self.name, op_id, operands[0])
        if outcome.status == abi.STATUS_CALLBACK:
            raise failure(line, f"@{self.name}", operands[0])
        detail = f"status {outcome.status}, code {code}" if outcome.status != abi.STATUS_ASSERTION else "it does not hold"
        raise assertion_failed(line, self.name, detail)


def _overlap(a: DeviceArray, b: DeviceArray) -> bool:
    return a.address < b.address + b.nbytes and b.address < a.address + a.nbytes


def _dims(tensor: TensorSpec, array: DeviceArray) -> list[tuple[Any, int]]:
    """Each dim of a result in an argument's memory: its static size, and the argument's; they have one type where sizes are dynamic."""
    if len(tensor.shape) == len(array.shape):
        return list(zip(tensor.shape, array.shape))
    return [(dim, 0) for dim in tensor.shape]
