"""`memref.global`: constant data in the object."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Operation

from gradir.ir.passes import error_at
from gradir.targets.llvm.types import buffer_type, symbol

_BYTES = [chr(b) if 32 <= b < 127 and chr(b) not in '"\\' else f"\\{b:02X}" for b in range(256)]


def global_text(op: Operation) -> str:
    """One global: bytes in little-endian order, zero where the op leaves it uninitialised. i1 is one byte."""
    size, data = _content(op)
    name = symbol(str(getattr(op.properties["sym_name"], "data", "")))
    kind = "constant" if "constant" in op.properties and data is not None else "global"
    content = "zeroinitializer" if data is None or not any(data) else 'c"' + "".join([_BYTES[b] for b in data]) + '"'
    return f"{name} = internal {kind} [{size} x i8] {content}, align 64"


def constant_bytes(op: Operation) -> bytes:
    """The bytes of a global; zeros where the op leaves it uninitialised."""
    size, data = _content(op)
    return bytes(size) if data is None else data


def _content(op: Operation) -> tuple[int, bytes | None]:
    t: Any = op.properties["type"]
    buffer = buffer_type(t)
    count = 1
    for n in buffer.sizes:
        if n is None:
            raise error_at(op, "a global of dynamic size", part="operator", code="OP040", expected="a static shape", found=str(t))
        count *= n
    size = count * buffer.element.bytes
    return size, _bytes(op, op.properties.get("initial_value"), size, buffer.element.element == "i1")


def _bytes(op: Operation, value: Any, size: int, boolean: bool) -> bytes | None:
    """The bytes of an initial value; None for an uninitialised global."""
    if value is None or value.name == "unit":
        return None
    array = getattr(value, "array", None)
    if array is not None:  # a resource attribute: a numpy array by reference
        data = array.tobytes()
    elif isinstance(value, DenseIntOrFPElementsAttr):
        data = value.data.data
    else:
        raise error_at(
            op,
            "an initial value of an unknown form",
            part="operator",
            code="OP040",
            expected="dense<...> or a resource",
            found=str(value)[:80],
        )
    if boolean:
        data = bytes(1 if b else 0 for b in data)
    if len(data) != size and size % max(1, len(data)) == 0:
        data *= size // len(data)
    assert len(data) == size, (len(data), size)
    return data
