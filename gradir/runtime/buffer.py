"""`Buffer`: an array whose memory belongs to Gradir's pool, exchanged without copies with numpy and through DLPack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradir.errors import GradirError
from gradir.runtime.dlpack import from_dlpack
from gradir.runtime.dtypes import dtype_name, numpy_dtype
from gradir.runtime.memory import Block

Array = np.ndarray[Any, np.dtype[Any]]


def pool_array(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """A fresh, writable, uninitialised C-contiguous array over a block of the pool; the block returns with the last view of it."""
    count = 1
    for size in shape:
        count *= size
    block = Block(count * dtype.itemsize)
    return np.asarray(block)[: count * dtype.itemsize].view(dtype).reshape(tuple(shape))


class Buffer:
    """Owns 64-byte aligned memory of `shape` and `dtype` (a name like "f32"). `numpy()` is a view that keeps it alive."""

    __slots__ = ("__weakref__", "_array", "_given_to")

    def __init__(self, shape: Sequence[int], dtype: str = "f32") -> None:
        self._array = pool_array(shape, numpy_dtype(dtype))
        self._given_to = ""

    @classmethod
    def from_array(cls, source: Any) -> Buffer:
        """A copy of an array: anything that `numpy.asarray` or DLPack takes."""
        foreign = hasattr(source, "__dlpack__") and not isinstance(source, np.ndarray)
        array: Array = from_dlpack(source) if foreign else np.asarray(source)
        made = cls(array.shape, dtype_name(array.dtype))
        made._array[...] = array
        return made

    @classmethod
    def frozen(cls, source: Any) -> Buffer:
        """A copy of an array whose elements nobody can change: every view of it is read-only."""
        made = cls.from_array(source)
        array = made._array
        array.setflags(write=False)
        if array.size:
            # over a read-only memoryview numpy refuses to set `writeable` again
            raw: Any = array.reshape(-1).view(np.uint8)
            made._array = np.frombuffer(memoryview(raw).toreadonly(), np.uint8).view(array.dtype).reshape(array.shape)
        return made

    @property
    def is_frozen(self) -> bool:
        """Made by `frozen`."""
        return not self._array.flags.writeable

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dims."""
        return self._array.shape

    @property
    def dtype(self) -> str:
        """Name of the element type, as in the IR."""
        return dtype_name(self._array.dtype)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return self._array.nbytes

    @property
    def address(self) -> int:
        """Address of the first element."""
        return self._array.ctypes.data

    def numpy(self) -> Array:
        """A view, writable unless frozen; GradirError RT023 when the memory was given away (`donate=`)."""
        if self._given_to:
            raise GradirError(
                "the memory of this Buffer was given away",
                part="runtime",
                code="RT023",
                expected="a Buffer that no call has taken over",
                found=f"{'x'.join(map(str, (*self.shape, self.dtype)))}, {self._given_to}",
                hint="use the call's result, which lies in that memory now, or leave the argument out of donate=",
            )
        return self._array

    def give_away(self, to: str) -> None:
        """From now on the memory belongs to the results of a call, `to`."""
        self._given_to = to

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy or (dtype is not None and np.dtype(dtype) != self._array.dtype):
            return np.array(self.numpy(), dtype=dtype)
        return self.numpy()

    def __buffer__(self, flags: int) -> memoryview:
        view: Any = self.numpy()
        return memoryview(view)

    def __dlpack__(self, **options: Any) -> Any:
        return self.numpy().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def __repr__(self) -> str:
        return f"Buffer({'x'.join(map(str, (*self.shape, self.dtype)))}, at {self.address:#x})"
