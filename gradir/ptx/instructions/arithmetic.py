"""Floating-point arithmetic, comparison and selection of f32 and f64 (and of single f16 and bf16), rounded once per operation.

Sums, products, quotients and roots of numpy are rounded to nearest even, as `.rn` says; halves go through f64, which is wide enough to be
rounded twice. `fma` is rounded once (`gradir.ptx.instructions.rounding`). The other roundings of f32 step to the neighbour where the
nearest lies beyond; those of f64 are not known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradir.ptx.instructions.forms import Array, Pointwise, binary, flushed, has, pointwise, saturated, ternary, types_of
from gradir.ptx.instructions.rounding import directed, fma, narrowed
from gradir.ptx.machine import Machine, Step
from gradir.ptx.state import Gang
from gradir.ptx.syntax import Instruction, Pair

FLOATS = ("f32", "f64", "f16", "bf16")
ROUNDINGS = ("rz", "rm", "rp")


def _rounded(op: Instruction, kind: str, function: Pointwise) -> Pointwise:
    """`function` with the rounding, `.ftz`, `.sat` and `.relu` of an opcode."""
    rounding = next((part for part in op.opcode[1:] if part in ROUNDINGS), None)
    ftz, sat, relu = has(op, "ftz") and kind == "f32", has(op, "sat"), has(op, "relu")

    def rounded(*values: Array) -> Array:
        if ftz:
            values = tuple(flushed(v) for v in values)
        found = function(*values)
        if rounding is not None and kind == "f32":
            found = directed(found, function(*(v.astype(np.float64) for v in values)), rounding)
        found = flushed(found) if ftz else found
        found = saturated(found) if sat else found
        return np.maximum(found, np.zeros((), found.dtype)) if relu else found

    return rounded


def _halves(kind: str, function: Pointwise) -> Pointwise:
    """f16 and bf16 compute in f64 and round once more: f64 has more than twice their bits."""
    if kind not in ("f16", "bf16"):
        return function

    def wide(*values: Array) -> Array:
        return narrowed(function(*(v.astype(np.float64) for v in values)), values[0].dtype)

    return wide


def minimum(a: Array, b: Array) -> Array:
    """The number of the two, -0 below +0; NaN only of two NaNs."""
    found = np.fmin(a, b)
    return np.where((a == b) & (np.signbit(a) != np.signbit(b)), np.where(np.signbit(a), a, b), found)


def maximum(a: Array, b: Array) -> Array:
    """The same for the greater one."""
    found = np.fmax(a, b)
    return np.where((a == b) & (np.signbit(a) != np.signbit(b)), np.where(np.signbit(a), b, a), found)


def _extreme(op: Instruction, function: Pointwise) -> Pointwise:
    if not has(op, "NaN"):
        return function

    def with_nan(*values: Array) -> Array:
        found = values[0]
        for value in values[1:]:
            found = np.where(np.isnan(found) | np.isnan(value), np.full((), np.nan, found.dtype), function(found, value))
        return found

    return with_nan


def _sqrt(x: Array) -> Array:
    return np.sqrt(x)


def _rsqrt(x: Array) -> Array:
    return (1.0 / np.sqrt(x.astype(np.float64))).astype(x.dtype)


def _rcp(x: Array) -> Array:
    return (np.ones((), x.dtype) / x).astype(x.dtype)


def _through_f64(function: Callable[[Any], Any]) -> Pointwise:
    def computed(x: Array) -> Array:
        return function(x.astype(np.float64)).astype(x.dtype)

    return computed


BINARY: dict[str, Pointwise] = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "min": minimum, "max": maximum}
UNARY: dict[str, Pointwise] = {
    "neg": np.negative, "abs": np.abs, "sqrt": _sqrt, "rsqrt": _rsqrt, "rcp": _rcp, "sin": _through_f64(np.sin),
    "cos": _through_f64(np.cos), "ex2": _through_f64(np.exp2), "lg2": _through_f64(np.log2), "tanh": _through_f64(np.tanh),
}  # fmt: skip


def _is_known(op: Instruction, kind: str) -> bool:
    """A float, and not f64 with a directed rounding: that would take more precision than numpy has."""
    return kind in FLOATS and not (kind == "f64" and has(op, *ROUNDINGS))


def compile_binary(op: Instruction) -> Step | None:
    kind = types_of(op)[-1]
    if not _is_known(op, kind):
        return None
    function = BINARY[op.opcode[0]]
    if op.opcode[0] in ("min", "max"):
        function = _extreme(op, function)
    count = len(op.operands) - 1
    return pointwise(op, _rounded(op, kind, _halves(kind, function)), [kind] * count)


def compile_unary(op: Instruction) -> Step | None:
    kind = types_of(op)[-1]
    if not _is_known(op, kind):
        return None
    return pointwise(op, _rounded(op, kind, _halves(kind, UNARY[op.opcode[0]])), [kind])


def compile_fma(op: Instruction) -> Step | None:
    kind = types_of(op)[-1]
    if not _is_known(op, kind):
        return None
    return pointwise(op, _rounded(op, kind, fma), [kind] * 3)


def compile_copysign(op: Instruction) -> Step | None:
    kind = types_of(op)[-1]
    return binary(op, lambda a, b: np.copysign(b, a), [kind, kind]) if kind in FLOATS else None


def compile_testp(op: Instruction) -> Step | None:
    kind = types_of(op)[-1]
    tiny = np.finfo(np.float32 if kind == "f32" else np.float64).tiny
    tests: dict[str, Callable[[Array], Array]] = {
        "finite": np.isfinite, "infinite": np.isinf, "number": lambda x: ~np.isnan(x), "notanumber": np.isnan,
        "normal": lambda x: np.isfinite(x) & (np.abs(x) >= tiny), "subnormal": lambda x: (np.abs(x) < tiny) & (x != 0),
    }  # fmt: skip
    return pointwise(op, tests[op.opcode[1]], [kind]) if op.opcode[1] in tests else None


# Comparison and selection, of numbers of any kind

_ORDERED: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip
_COMBINED: dict[str, Pointwise] = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def _comparison(name: str, floats: bool) -> Callable[[Array, Array], Array]:
    if name in ("num", "nan"):
        return lambda a, b: (np.isnan(a) | np.isnan(b)) == (name == "nan")
    if name.endswith("u") and name[:-1] in _ORDERED:
        compare = _ORDERED[name[:-1]]
        return lambda a, b: compare(a, b) | np.isnan(a) | np.isnan(b)
    compare = _ORDERED[name]
    if name == "ne" and floats:
        return lambda a, b: (a != b) & ~np.isnan(a) & ~np.isnan(b)
    return compare


def compile_setp(op: Instruction) -> Step | None:
    """`setp.cmp[.bool].type p[|q], a, b[, c]` and `set.cmp.type.type`."""
    kinds = types_of(op)
    kind = kinds[-1]
    name = op.opcode[1]
    compare = _comparison(name, kind in FLOATS)
    combine = next((_COMBINED[part] for part in op.opcode[2:] if part in _COMBINED), None)
    destination, a, b, *third = op.operands
    result = kinds[0] if op.opcode[0] == "set" else "pred"

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        with np.errstate(all="ignore"):
            holds = compare(_comparable(machine.read(gang, a, kind)), _comparable(machine.read(gang, b, kind)))
        negated = ~holds
        if combine is not None:
            c = machine.read(gang, third[0], "pred")
            holds, negated = combine(holds, c), combine(negated, c)
        if result != "pred":
            holds = (
                np.where(holds, np.float32(1), np.float32(0)) if result == "f32" else np.where(holds, np.uint32(0xFFFFFFFF), np.uint32(0))
            )
        if isinstance(destination, Pair):
            machine.write(gang, mask, destination.first, holds)
            machine.write(gang, mask, destination.second, negated)
        else:
            machine.write(gang, mask, destination, holds)

    return step


def _comparable(values: Array) -> Array:
    return (
        values.astype(np.float32) if values.dtype.kind == "V" or (values.dtype.itemsize == 2 and values.dtype.kind not in "ui") else values
    )


def compile_selp(op: Instruction) -> Step | None:
    kind = types_of(op)[-1]
    bits = f"b{8 * {'f16': 2, 'bf16': 2}.get(kind, 0)}" if kind in ("f16", "bf16") else kind
    return ternary(op, lambda a, b, p: np.where(p, a, b), [bits, bits, "pred"])


def compile_slct(op: Instruction) -> Step | None:
    kinds = types_of(op)
    return ternary(op, lambda a, b, c: np.where(c >= 0, a, b), [kinds[0], kinds[0], kinds[1]])


COMPILERS = {
    **dict.fromkeys(UNARY, compile_unary),
    "fma": compile_fma, "copysign": compile_copysign, "testp": compile_testp, "setp": compile_setp, "set": compile_setp,
    "selp": compile_selp, "slct": compile_slct,
}  # fmt: skip
"""`add`, `sub`, `mul`, `div`, `min`, `max`, `neg`, `abs` are of integers too: `gradir.ptx.instructions.integers` asks here first."""
