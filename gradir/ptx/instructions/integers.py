"""Integer arithmetic, logic, shifts and bit fields; extended precision with a carry."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradir.ptx.bits import bits_of
from gradir.ptx.instructions import arithmetic
from gradir.ptx.instructions.forms import Array, Pointwise, binary, has, pointwise, ternary, types_of, unary
from gradir.ptx.machine import Machine, Step
from gradir.ptx.state import Gang
from gradir.ptx.syntax import Instruction
from gradir.ptx.types import WIDTHS

_PACKED = ("f16x2", "bf16x2")


def _binary(op: Instruction) -> Step | None:
    kind = types_of(op)[-1]
    if kind in _PACKED:
        return None
    if kind in arithmetic.FLOATS:
        return arithmetic.compile_binary(op)
    name = op.opcode[0]
    if name in ("add", "sub") and has(op, "cc"):
        return _with_carry(op, kind)
    if name == "mul":
        return _product(op, kind)
    if name in ("add", "sub") and has(op, "sat"):
        return binary(
            op, lambda a, b: _clamped(a.astype(np.int64) + (b.astype(np.int64) if name == "add" else -b.astype(np.int64))), [kind] * 2
        )
    functions: dict[str, Pointwise] = {
        "add": np.add, "sub": np.subtract, "min": np.minimum, "max": np.maximum, "div": _quotient, "rem": _remainder,
    }  # fmt: skip
    return pointwise(op, functions[name], [kind] * 2)


def _clamped(wide: Array) -> Array:
    return np.clip(wide, -(2**31), 2**31 - 1).astype(np.int32)


def _quotient(a: Array, b: Array) -> Array:
    """Rounded toward zero; of a division by zero all bits are set."""
    a, b = np.broadcast_arrays(a, b)
    safe = np.where(b == 0, np.ones_like(b), b)
    if a.dtype.kind == "u":
        return np.where(b == 0, ~np.zeros_like(a), a // safe)
    floor = a // safe
    toward = floor + ((floor < 0) & (floor * safe != a)).astype(a.dtype)
    return np.where(b == 0, ~np.zeros_like(a), toward)


def _remainder(a: Array, b: Array) -> Array:
    a, b = np.broadcast_arrays(a, b)
    return np.where(b == 0, a, a - _quotient(a, b) * b)


def _product(op: Instruction, kind: str) -> Step | None:
    if has(op, "wide"):
        wide = f"{kind[0]}{2 * WIDTHS[kind]}"
        dtype = np.dtype(f"{'i' if kind[0] == 's' else 'u'}{WIDTHS[wide] // 8}")
        return binary(op, lambda a, b: a.astype(dtype) * b.astype(dtype), [kind] * 2)
    return pointwise(op, high if has(op, "hi") else np.multiply, [kind] * 2)


def high(a: Array, b: Array) -> Array:
    """The upper half of the product."""
    bits = 8 * a.dtype.itemsize
    if bits < 64:
        wide = np.dtype(f"{a.dtype.kind}{2 * a.dtype.itemsize}")
        return (a.astype(wide) * b.astype(wide) >> wide.type(bits)).astype(a.dtype)
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    x, y = a.astype(np.uint64), b.astype(np.uint64)
    x0, x1, y0, y1 = x & low, x >> half, y & low, y >> half
    middle = x1 * y0 + ((x0 * y0) >> half)
    other = x0 * y1 + (middle & low)
    found = x1 * y1 + (middle >> half) + (other >> half)
    if a.dtype.kind == "i":
        found = found - np.where(a < 0, y, np.uint64(0)) - np.where(b < 0, x, np.uint64(0))
    return found.astype(a.dtype)


def _mad(op: Instruction) -> Step | None:
    kind = types_of(op)[-1]
    if kind in arithmetic.FLOATS:
        return arithmetic.compile_fma(op)
    if has(op, "cc") or op.opcode[0] == "madc":
        return _with_carry(op, kind)
    if has(op, "wide"):
        wide = f"{kind[0]}{2 * WIDTHS[kind]}"
        dtype = np.dtype(f"{'i' if kind[0] == 's' else 'u'}{WIDTHS[wide] // 8}")
        return ternary(op, lambda a, b, c: a.astype(dtype) * b.astype(dtype) + c, [kind, kind, wide])
    if has(op, "hi"):
        return ternary(op, lambda a, b, c: high(a, b) + c, [kind] * 3)
    return ternary(op, lambda a, b, c: a * b + c, [kind] * 3)


def _with_carry(op: Instruction, kind: str) -> Step:
    """`add.cc`, `addc`, `sub.cc`, `subc`, `mad.lo.cc`, `madc.hi`: through the condition code of each lane."""
    name = op.opcode[0]
    takes, gives = name in ("addc", "subc", "madc"), has(op, "cc")
    destination, *sources = op.operands
    unsigned = f"u{WIDTHS[kind]}"

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        values = [machine.read(gang, source, unsigned) for source in sources]
        carry = machine.carry
        old = carry[machine.index(gang)] & takes
        if name in ("mad", "madc"):
            a, b, c = values
            first: Any = (
                high(*(v.view(f"i{v.dtype.itemsize}") for v in (a, b))).view(a.dtype)
                if has(op, "hi") and kind[0] == "s"
                else (high(a, b) if has(op, "hi") else a * b)
            )
            second = c
        else:
            first, second = values
        if name in ("sub", "subc"):
            total = first - second - old.astype(first.dtype)
            out = (first < second) | ((first == second) & old)
        else:
            total = first + second + old.astype(first.dtype)
            out = (total < first) | ((total == first) & old & (second != 0)) | (old & (second == ~np.zeros((), second.dtype)))
        machine.write(gang, mask, destination, total)
        if gives:
            carry[gang.warps] = np.where(mask, out, carry[gang.warps])

    return step


def _carried(op: Instruction) -> Step | None:
    return _with_carry(op, types_of(op)[-1])


def _unary(op: Instruction) -> Step | None:
    kind = types_of(op)[-1]
    if kind in _PACKED:
        return None
    if kind in arithmetic.FLOATS:
        return arithmetic.compile_unary(op)
    return pointwise(op, np.negative if op.opcode[0] == "neg" else np.abs, [kind])


def _logic(op: Instruction) -> Step | None:
    kind = types_of(op)[-1]
    functions: dict[str, Pointwise] = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
    return pointwise(op, functions[op.opcode[0]], [kind] * 2)


def _not(op: Instruction) -> Step | None:
    kind = types_of(op)[-1]
    return unary(op, lambda a: a == 0 if op.opcode[0] == "cnot" and kind != "pred" else ~a, [kind])


def _lop3(op: Instruction) -> Step | None:
    destination, a, b, c, table = op.operands
    assert hasattr(table, "value")
    chosen = int(table.value)  # type: ignore[union-attr]

    def function(x: Array, y: Array, z: Array) -> Array:
        found = np.zeros(np.broadcast_shapes(x.shape, y.shape, z.shape), x.dtype)
        for case in range(8):
            if chosen >> case & 1:
                found |= (x if case & 4 else ~x) & (y if case & 2 else ~y) & (z if case & 1 else ~z)
        return found

    return pointwise(Instruction(op.opcode, (destination, a, b, c), op.source), function, ["b32"] * 3)


def _shift(op: Instruction) -> Step | None:
    kind = types_of(op)[-1]
    bits = WIDTHS[kind]

    def left(a: Array, by: Array) -> Array:
        return np.where(by >= bits, np.zeros((), a.dtype), a << np.minimum(by, bits - 1).astype(a.dtype))

    def right(a: Array, by: Array) -> Array:
        shifted = a >> np.minimum(by, bits - 1).astype(a.dtype)
        return shifted if a.dtype.kind == "i" else np.where(by >= bits, np.zeros((), a.dtype), shifted)

    return pointwise(op, left if op.opcode[0] == "shl" else right, [kind, "u32"])


def _funnel(op: Instruction) -> Step | None:
    def function(a: Array, b: Array, c: Array) -> Array:
        by = (c & 31) if has(op, "wrap") else np.minimum(c, 32)
        both = (b.astype(np.uint64) << np.uint64(32)) | a.astype(np.uint64)
        if has(op, "l"):
            return ((both << by.astype(np.uint64)) >> np.uint64(32)).astype(np.uint32)
        return (both >> by.astype(np.uint64)).astype(np.uint32)

    return pointwise(op, function, ["u32"] * 3)


def _count(op: Instruction) -> Step | None:
    kind = types_of(op)[-1]
    bits = WIDTHS[kind]

    def popc(a: Array) -> Array:
        return np.bitwise_count(a).astype(np.uint32)

    def clz(a: Array) -> Array:
        found = np.full(a.shape, bits, np.uint32)
        rest = a.copy()
        for width in (32, 16, 8, 4, 2, 1):
            if width < bits:
                big = (rest >> rest.dtype.type(width)) != 0
                found = np.where(big, found - width, found)
                rest = np.where(big, rest >> rest.dtype.type(width), rest)
        return (found - (rest != 0)).astype(np.uint32)

    def brev(a: Array) -> Array:
        found = np.zeros_like(a)
        for bit in range(bits):
            found |= (a >> a.dtype.type(bit) & a.dtype.type(1)) << a.dtype.type(bits - 1 - bit)
        return found

    functions: dict[str, Pointwise] = {"popc": popc, "clz": clz, "brev": brev}
    return pointwise(op, functions[op.opcode[0]], [kind])


def _bfind(op: Instruction) -> Step | None:
    kind = types_of(op)[-1]
    bits = WIDTHS[kind]

    def function(a: Array) -> Array:
        a = np.where(a < 0, ~a, a).view(f"u{bits // 8}") if kind[0] == "s" else a
        found = np.full(a.shape, 0xFFFFFFFF, np.uint32)
        for bit in range(bits):
            found = np.where(a >> a.dtype.type(bit) & a.dtype.type(1) != 0, np.uint32(bit), found)
        return np.where((found != 0xFFFFFFFF) & has(op, "shiftamt"), np.uint32(bits - 1) - found, found)

    return pointwise(op, function, [kind])


def _bfe(op: Instruction) -> Step | None:
    kind = types_of(op)[-1]
    bits = WIDTHS[kind]

    def function(a: Array, start: Array, length: Array) -> Array:
        start, length = start & 0xFF, length & 0xFF
        u = a.view(f"u{bits // 8}")
        one = u.dtype.type(1)
        moved = np.where(start < bits, u >> np.minimum(start, bits - 1).astype(u.dtype), 0 * u)
        mask = np.where(length >= bits, ~(0 * u), (one << np.minimum(length, bits - 1).astype(u.dtype)) - one)
        found = moved & mask
        if kind[0] == "s":
            top = np.clip(start.astype(np.int64) + length.astype(np.int64) - 1, 0, bits - 1).astype(u.dtype)
            negative = (u >> top & one != 0) & (length > 0)
            found = np.where(negative, found | ~mask, found)
        return found.astype(u.dtype)

    return pointwise(op, function, [kind, "u32", "u32"])


def _bfi(op: Instruction) -> Step | None:
    kind = types_of(op)[-1]
    bits = WIDTHS[kind]

    def function(a: Array, b: Array, start: Array, length: Array) -> Array:
        start, length = np.minimum(start & 0xFF, bits), np.minimum(length & 0xFF, bits)
        one = a.dtype.type(1)
        ones = np.where(length >= bits, ~(0 * a), (one << np.minimum(length, bits - 1).astype(a.dtype)) - one)
        at = np.minimum(start, bits - 1).astype(a.dtype)
        mask = np.where(start >= bits, 0 * ones, ones << at)
        return (b & ~mask) | ((a << at) & mask)

    return pointwise(op, function, [kind, kind, "u32", "u32"])


def _prmt(op: Instruction) -> Step | None:
    if any(part in op.opcode for part in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")):
        return None

    def function(a: Array, b: Array, chosen: Array) -> Array:
        both = (b.astype(np.uint64) << np.uint64(32)) | a.astype(np.uint64)
        found = np.zeros(np.broadcast_shapes(a.shape, b.shape, chosen.shape), np.uint64)
        for k in range(4):
            pick = (chosen >> np.uint32(4 * k)).astype(np.uint64) & np.uint64(15)
            byte = both >> ((pick & np.uint64(7)) * np.uint64(8)) & np.uint64(255)
            sign = np.where(byte & np.uint64(128) != 0, np.uint64(255), np.uint64(0))
            found |= np.where(pick & np.uint64(8) != 0, sign, byte) << np.uint64(8 * k)
        return found.astype(np.uint32)

    return pointwise(op, function, ["u32"] * 3)


def _sad(op: Instruction) -> Step | None:
    kind = types_of(op)[-1]
    return ternary(op, lambda a, b, c: c + np.where(a > b, a - b, b - a), [kind] * 3)


def _dp4a(op: Instruction) -> Step | None:
    first, second = types_of(op)
    signs = [np.int8 if t[0] == "s" else np.uint8 for t in (first, second)]

    def function(a: Array, b: Array, c: Array) -> Array:
        a, b, c = np.broadcast_arrays(a, b, c)
        x, y = (np.ascontiguousarray(v).view(sign).reshape(*v.shape, 4).astype(np.int64) for v, sign in zip((a, b), signs))
        return bits_of((c.astype(np.int64) + (x * y).sum(-1)).astype(np.int32), np.dtype(np.uint32))

    return pointwise(op, function, ["u32", "u32", "s32"])


COMPILERS = {
    **dict.fromkeys(("add", "sub", "mul", "div", "rem", "min", "max"), _binary),
    **dict.fromkeys(("neg", "abs"), _unary),
    **dict.fromkeys(("and", "or", "xor"), _logic),
    **dict.fromkeys(("not", "cnot"), _not),
    **dict.fromkeys(("shl", "shr"), _shift),
    **dict.fromkeys(("popc", "clz", "brev"), _count),
    **dict.fromkeys(("mad", "madc"), _mad),
    **dict.fromkeys(("addc", "subc"), _carried),
    "lop3": _lop3, "shf": _funnel, "bfind": _bfind, "bfe": _bfe, "bfi": _bfi, "prmt": _prmt, "sad": _sad, "dp4a": _dp4a,
}  # fmt: skip
