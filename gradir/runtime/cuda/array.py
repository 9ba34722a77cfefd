"""`DeviceArray`: an array in a device's memory. Results of programs for CUDA are such arrays; they stay there from call to call.

Nothing waits but what needs the values: `numpy()`, `numpy.asarray`, `float`, `int`, `bool`, `item`. Other libraries take it through DLPack
and `__cuda_array_interface__`, in the order of their streams.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from gradir.errors import GradirError
from gradir.runtime.cuda.pool import Block
from gradir.runtime.dtypes import dtype_name, numpy_dtype

if TYPE_CHECKING:
    from gradir.runtime.cuda.device import Device, Stream

Array = np.ndarray[Any, np.dtype[Any]]


class DeviceArray(np.lib.mixins.NDArrayOperatorsMixin):
    """An array without gaps in the memory of `device`; `element` is a name like "f32". Made by programs and by `gradir.device_put`.

    Operators, indices and numpy's functions read the values and give numpy arrays: what is to stay on the device belongs into a program.
    """

    __slots__ = ("__weakref__", "_given_to", "_owner", "_stream", "address", "device", "element", "shape")

    def __init__(self, device: Device, address: int, shape: Sequence[int], element: str, owner: Any, stream: Stream) -> None:
        self.device, self.address, self.shape, self.element = device, address, tuple(shape), element
        self._owner, self._stream = owner, stream
        self._given_to = ""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type as numpy has it."""
        return numpy_dtype(self.element)

    @property
    def ndim(self) -> int:
        """Number of dims."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return self.size * self.dtype.itemsize

    @property
    def is_foreign(self) -> bool:
        """Whether another library owns the memory."""
        return not isinstance(self._owner, Block)

    def numpy(self) -> Array:
        """A copy on the host; waits for the work that makes it. GradirError RT023 when the memory was given away (`donate=`)."""
        self._usable()
        made = np.empty(self.shape, self.dtype)
        with self.device.activate():
            self.device.copy_out(made, self.address, self._stream)
        return made

    def item(self) -> Any:
        """The number that an array of one element holds."""
        return self.numpy().item()

    def synchronize(self) -> DeviceArray:
        """Wait until it has its values."""
        self._usable()
        with self.device.activate():
            self._stream.synchronize()
        return self

    def use_on(self, stream: Stream) -> int:
        """The address, for work that is queued on `stream` from now on."""
        self._usable()
        if stream is not self._stream:
            used = getattr(self._owner, "used_on", None)
            if used is not None:
                used(stream)
            else:
                stream.wait(self._stream.record())
            self._stream = stream
        return self.address

    def give_away(self, to: str) -> Any:
        """From now on the memory belongs to the results of a call, `to`; what keeps it alive is returned."""
        self._given_to = to
        return self._owner

    def reshaped(self, shape: Sequence[int]) -> DeviceArray:
        """The same memory under another shape."""
        return DeviceArray(self.device, self.address, shape, self.element, self._owner, self._stream)

    def _usable(self) -> None:
        if self._given_to:
            raise GradirError(
                "the memory of this array was given away",
                part="runtime",
                code="RT023",
                expected="an array that no call has taken over",
                found=f"{'x'.join(map(str, (*self.shape, self.element)))}, {self._given_to}",
                hint="use the call's result, which lies in that memory now, or leave the argument out of donate=",
            )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        found = self.numpy()
        return found if dtype is None else found.astype(dtype, copy=False)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        read = [value.numpy() if isinstance(value, DeviceArray) else value for value in inputs]
        return getattr(ufunc, method)(*read, **options)

    def __getitem__(self, index: Any) -> Any:
        return self.numpy()[index]

    def __iter__(self) -> Any:
        return iter(self.numpy())

    def __float__(self) -> float:
        return float(self.numpy())

    def __int__(self) -> int:
        return int(self.numpy())

    def __bool__(self) -> bool:
        return bool(self.numpy())

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array of rank 0")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"DeviceArray({'x'.join(map(str, (*self.shape, self.element)))} on {self.device.name})"

    # Other libraries

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        export = getattr(self.device, "array_interface", None)
        if export is None:
            raise AttributeError(f"memory of {self.device.name} is no memory of a GPU")
        self._usable()
        return export(self)

    def __dlpack__(self, **options: Any) -> Any:
        export = getattr(self.device, "dlpack", None)
        if export is None:
            return self.numpy().__dlpack__()
        self._usable()
        return export(self, **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return getattr(self.device, "dlpack_device", (1, 0))

    @property
    def stream(self) -> Stream:
        """Where the work that makes it is queued."""
        return self._stream


def put(value: Any, device: Device, label: str) -> DeviceArray:
    """A copy of an array of the host in the device's memory, or the array itself where it lies there."""
    stream = device.current_stream()
    if isinstance(value, DeviceArray):
        if value.device is device:
            return value
        value = value.numpy()
    with device.activate():
        there = device.foreign(value, stream)
        if there is not None:
            address, shape, dtype, owner = there
            return DeviceArray(device, address, shape, dtype, owner, stream)
        array = np.ascontiguousarray(np.asarray(value))
        array = array.reshape(np.shape(value))
        block = device.pool.take(array.nbytes, stream, label)
        device.copy_in(block.address, array, stream)
    return DeviceArray(device, block.address, array.shape, dtype_name(array.dtype), block, stream)
