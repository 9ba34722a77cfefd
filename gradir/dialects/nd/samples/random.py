"""Samples of the generators of bits."""

from __future__ import annotations

import numpy as np

from gradir.dialects.nd.base import NdOp, Sample
from gradir.dialects.nd.samples.case import Array, case, type_text

_KEY = np.array([0x13198A2E, 0x03707344], np.uint32)
_TOP = np.array([0xFFFFFFFF, 0xFFFFFFFF], np.uint32)


def _bits() -> list[Sample]:
    def bits(name: str, dtype: type, *shape: int, key: Array = _KEY) -> Sample:
        kind = type_text(np.zeros(shape, dtype))
        return case(name, "nd.random_bits %0 : {0} -> {1}", [key], kind)

    sizes, result = np.zeros(5, np.float32), 'tensor<3x?xui32, ["", "n"]>'
    line, before = "nd.random_bits %0 sizes (%n) : {0} -> {2}", ('%n = nd.symbol "n"',)
    named = case("ui32 of a named size", line, [_KEY, sizes], result, names={1: ("n",)}, before=before)
    return [
        bits("ui32", np.uint32, 3, 5),
        bits("ui32 scalar", np.uint32),
        bits("ui32 zero key", np.uint32, 4, key=np.zeros(2, np.uint32)),
        bits("ui64", np.uint64, 2, 3, 2, key=_TOP),
        bits("ui16", np.uint16, 7),
        bits("ui8", np.uint8, 33),
        bits("ui32 empty", np.uint32, 0, 2),
        bits("ui64 one", np.uint64, 1, 1),
        named,
    ]


def _generator(op: str, words: int) -> list[Sample]:
    def block(name: str, shape: tuple[int, ...], key: Array = _KEY, fill: int | None = None) -> Sample:
        rng = np.random.default_rng(words)
        counter = [rng.integers(0, 1 << 32, shape, np.uint32) if fill is None else np.full(shape, fill, np.uint32) for _ in range(words)]
        kind = type_text(counter[0])
        operands = ", ".join(f"%{k}" for k in range(words + 1))
        arguments = ", ".join(f"%{k}: {kind if k else 'tensor<2xui32>'}" for k in range(words + 1))
        results = ", ".join(f"%r{k}" for k in range(words))
        types = ", ".join([kind] * words)
        text = (
            f"func.func @f({arguments}) -> ({types}) {{\n"
            f"  {results} = {op} {operands} : tensor<2xui32>, {kind}\n"
            f"  return {results} : {types}\n}}\n"
        )
        return Sample(name, text, lambda: (key.copy(), *(word.copy() for word in counter)))

    return [
        block("any words", (2, 9)),
        block("zeros", (4,), np.zeros(2, np.uint32), 0),
        block("ones", (), _TOP, 0xFFFFFFFF),
        block("empty", (0, 3)),
    ]


def samples_of(cls: type[NdOp]) -> tuple[Sample, ...]:
    """The samples of one op of this family."""
    if cls.name == "nd.random_bits":
        return tuple(_bits())
    return tuple(_generator(cls.name, {"nd.threefry2x32": 2, "nd.philox4x32": 4}[cls.name]))
