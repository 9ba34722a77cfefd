"""The StableHLO of a lowered JAX function: text without its large constants, and these as arrays, never spelled out in between."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from gradir.frontends.stablehlo.blobs import Bytes, Extracted, extract

LONGEST = 1 << 10
"""Constants of more elements are left out of the text."""

_ELIDED = re.compile(r"dense_resource<__elided__>")


def text_of(lowered: Any) -> Extracted:
    """The program with its locations. `lowered` is what `jax.jit(f).lower(..)` gave."""
    module = lowered.compiler_ir("stablehlo").operation
    text = module.get_asm(enable_debug_info=True, large_elements_limit=LONGEST)
    blobs = {f"literal_{k}": data for k, data in enumerate(_constants(module))}
    found = iter(blobs)
    if len(_ELIDED.findall(text)) != len(blobs):  # something else was left out: all of it as text
        return extract(lowered.as_text(debug_info=True))
    return Extracted(_ELIDED.sub(lambda _: f"dense_resource<{next(found)}>", text), blobs)


def _constants(op: Any) -> Iterator[Bytes]:
    """The large constants under `op`, in the order in which they are printed."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                inner = inner.operation
                if inner.name == "stablehlo.constant":
                    value = _value(inner)
                    if value is not None and not value.is_splat and len(value) > LONGEST:
                        yield _elements(value)
                yield from _constants(inner)


def _value(op: Any) -> Any:
    """The elements of a constant; None of complex ones, which MLIR's Python classes do not know: they stay in the text."""
    try:
        return op.attributes["value"]
    except TypeError:
        return None


def _elements(value: Any) -> Bytes:
    try:
        return np.array(value).reshape(-1).view(np.uint8)  # a copy: the memory is that of MLIR, which goes
    except (TypeError, ValueError):  # a type that its buffer cannot name, such as bf16
        digits = re.search(r'"0x([0-9A-Fa-f]*)"', str(value))
        assert digits is not None, "a large constant prints as digits"
        return np.frombuffer(bytes.fromhex(digits[1]), np.uint8)
