"""Tensor maps on the host: the words from which the runtime makes one (`gradir.runtime.cuda.tensor_maps`), on the stack."""

from __future__ import annotations

from typing import Any

from gradir.dialects.target import abi
from gradir.dialects.upstream.nvgpu_types import SWIZZLES, TensorMapType
from gradir.ir.passes import error_at
from gradir.targets.llvm.emitter import FunctionEmitter


def described(e: FunctionEmitter, op: Any) -> tuple[str, str, str]:
    """Pointers of a `nvgpu.tma.create.descriptor`: room for the map, the tensor's first element, the words, whose number comes first."""
    t = op.tensorMap.type
    assert isinstance(t, TensorMapType)
    buffer = e.buffer(op.tensor)
    box = tuple(e.index(size) for size in op.boxDimensions)
    element = str(t.tensor.element_type)
    checks = (
        (box == t.tensor.get_shape(), f"a box of {list(t.tensor.get_shape())}", f"{list(box)}"),
        (len(box) == len(buffer.sizes), "a box with the tensor's dimensions", f"{len(box)} of {len(buffer.sizes)}"),
        (buffer.strides[-1:] == (1,), "elements side by side", f"a stride of {buffer.strides[-1:]}"),
        (t.oob.data == "zero", "zeros outside of the tensor", t.oob.data),
        (t.interleave.data == "none", "no interleaving", t.interleave.data),
        (element in abi.ELEMENT_CODES, "elements that a tensor map may have", element),
    )
    for good, expected, found in checks:
        if not good:
            raise error_at(op, "no tensor map of this form", part="operator", code="OP040", expected=expected, found=found)
    size = buffer.type.element.bytes
    strides = [e.mul(stride, size) for stride in buffer.strides[:-1]]
    words = [abi.ELEMENT_CODES[element], len(box), *buffer.sizes[::-1], *strides[::-1], *box[::-1], SWIZZLES[t.swizzle.data]]
    slot = e.stack_slot(f"[{len(words) + 1} x i64], align 8")
    for position, word in enumerate((len(words), *words)):
        e.line(f"store i64 {word}, ptr {e.pure(f'getelementptr inbounds i64, ptr {slot}, i64 {position}')}, align 8")
    return e.stack_slot(f"[{abi.TENSOR_MAP_BYTES} x i8], align 64"), buffer.pointer, slot
