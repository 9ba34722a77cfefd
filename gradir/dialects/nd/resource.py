"""Large constants: arrays that the IR names by key.

`#nd.resource<w_1f2e...>` in an op, the bytes once at the end of the text:

    {-#
      dialect_resources: { nd: { w_1f2e...: "f32 784 512 base64..." } }
    #-}

The key ends in a hash of type, shape and bytes: equal arrays have equal keys, and hashing the text of a program without its trailing
data still tells constants apart. Attributes with one key share one array, held alive by them alone.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from xdsl.dialect_interfaces.op_asm import OpAsmDialectInterface
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from gradir.dialects.types import element_type, tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Resource:
    """An array and its key; `array` is None between the use of a key in a text and its data at the text's end."""

    __slots__ = ("__weakref__", "array", "key")

    def __init__(self, key: str, array: NDArray[Any] | None = None) -> None:
        self.key = key
        self.array = array

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Resource) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"Resource({self.key!r})"


_KNOWN: WeakValueDictionary[str, Resource] = WeakValueDictionary()


def _known(key: str) -> Resource:
    found = _KNOWN.get(key)
    if found is None:
        found = _KNOWN[key] = Resource(key)
    return found


_PIECE = 1 << 18


def content_hash(array: NDArray[Any]) -> str:
    """16 hex digits over element type, shape and bytes."""
    hasher = sha256(f"{array.dtype.name}{array.shape}".encode())
    flat = array.reshape(-1)
    for start in range(0, flat.size, _PIECE):  # ml_dtypes have no buffer that a hash can read in place
        hasher.update(flat[start : start + _PIECE].tobytes())
    return hasher.hexdigest()[:16]


@irdl_attr_definition
class ResourceAttr(Data[Resource]):
    """`#nd.resource<key>`"""

    name = "nd.resource"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Resource:
        with parser.in_angle_brackets():
            return read_resource(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            print_resource(printer, self.data)

    @staticmethod
    def of(array: NDArray[Any], name: str = "c", *, copy: bool = True) -> ResourceAttr:
        """The attribute that holds a read-only copy of `array`, or without `copy` a view of it; `name` starts its key."""
        resource = _known(f"{name}_{content_hash(array)}")
        if resource.array is None:
            resource.array = array.copy(order="C") if copy or not array.flags.c_contiguous else array.view()
            resource.array.flags.writeable = False
        return ResourceAttr(resource)

    @property
    def array(self) -> NDArray[Any]:
        """The elements, read-only."""
        if self.data.array is None:
            raise KeyError(f"resource {self.data.key} has no data")
        return self.data.array

    @property
    def kind(self) -> TensorType[Any]:
        """The tensor type of the elements."""
        return tensor(element_type(self.array.dtype), self.array.shape)


def read_resource(parser: AttrParser) -> Resource:
    """A bare key; its data may come later in the text."""
    return _known(parser.parse_identifier())


def print_resource(printer: Printer, resource: Resource) -> None:
    """A bare key; the printer notes that its data must follow."""
    printer.print_resource_handle("nd", resource.key)


class ResourceStorage(OpAsmDialectInterface):
    """How the parser and the printer of a whole text reach the arrays."""

    def declare_resource(self, key: str) -> str:
        return key

    def parse_resource(self, key: str, val: str) -> None:
        import numpy as np  # lazy: only a text with resources pays for numpy

        name, *sizes, payload = val.split(" ")
        if name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
            import ml_dtypes  # lazy, as above

            dtype = np.dtype(getattr(ml_dtypes, name))
        else:
            dtype = np.dtype(name)
        array = np.frombuffer(b64decode(payload), dtype).reshape([int(n) for n in sizes])
        if key.rpartition("_")[2] != content_hash(array):
            raise ValueError(f"data of {key} does not match the hash in its key, {content_hash(array)}")
        resource = _KNOWN.get(key)
        if resource is not None:
            resource.array = array

    def lookup(self, key: str) -> str | None:
        resource = _KNOWN.get(key)
        if resource is None or resource.array is None:
            return None
        array = resource.array
        return " ".join([array.dtype.name, *map(str, array.shape), b64encode(array.tobytes()).decode()])

    def build_resources(self, keys: Iterable[str]) -> dict[str, str]:
        found = {key: self.lookup(key) for key in keys}
        return {key: text for key, text in found.items() if text is not None}
