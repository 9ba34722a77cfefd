"""f16 and bf16 bits to f32 and back, without library calls.

bf16 is the upper half of an f32; GPUs round to it by an instruction. f16 uses those of F16C, or the integer code of F. Giesen's notes
(https://gist.github.com/rygorous/2156668), extended to denormals, infinities and NaN. Rounding is to nearest even, once.
"""

from __future__ import annotations

from gradir.targets.llvm.emitter import FunctionEmitter
from gradir.targets.llvm.types import ValueType, with_element


def to_float(e: FunctionEmitter, bits: str, t: ValueType) -> str:
    """The f32 value of one row (or scalar) of 16-bit floats; exact."""
    f, i = with_element(t), with_element(t, "i32")
    wide = e.pure(f"zext {t.text} {bits} to {i.text}")
    if t.half == "bfloat":
        return _bitcast(e, _shift(e, "shl", wide, 16, i), i, f)
    if e.module.has_f16c:
        h = t.text.replace("i16", "half")
        return e.pure(f"fpext {h} {e.pure(f'bitcast {t.text} {bits} to {h}')} to {f.text}")
    magnitude = _shift(e, "shl", _mask(e, wide, 0x7FFF, i), 13, i)
    # exponent rebias by a multiplication: exact for denormals too (2^112)
    scaled = e.pure(f"fmul {f.text} {_bitcast(e, magnitude, i, f)}, {e.splat('0x46F0000000000000', f)}")
    special = e.pure(f"icmp uge {i.text} {magnitude}, {e.splat(str(0x7C00 << 13), i)}")
    huge = _bitcast(e, e.pure(f"or {i.text} {magnitude}, {e.splat(str(0xFF << 23), i)}"), i, f)
    b1 = with_element(t, "i1").text
    absolute = _bitcast(e, e.pure(f"select {b1} {special}, {f.text} {huge}, {f.text} {scaled}"), f, i)
    sign = _shift(e, "shl", _mask(e, wide, 0x8000, i), 16, i)
    return _bitcast(e, e.pure(f"or {i.text} {absolute}, {sign}"), i, f)


def from_float(e: FunctionEmitter, value: str, f: ValueType, t: ValueType) -> str:
    """The 16-bit float nearest to an f32 (or, by round-to-odd, f64) row."""
    if f.element == "double":
        value, f = _round_to_odd(e, value, f), with_element(f)
    i = with_element(t, "i32")
    b1 = with_element(t, "i1").text
    if t.half == "bfloat" and e.module.has_bf16:
        h = t.text.replace("i16", "bfloat")
        return e.pure(f"bitcast {h} {e.pure(f'fptrunc {f.text} {value} to {h}')} to {t.text}")
    if t.half == "bfloat":
        bits = _bitcast(e, value, f, i)
        odd = _mask(e, _shift(e, "lshr", bits, 16, i), 1, i)
        rounded = e.pure(f"add {i.text} {bits}, {e.pure(f'add {i.text} {odd}, {e.splat(str(0x7FFF), i)}')}")
        nan = e.pure(f"fcmp uno {f.text} {value}, {value}")
        quiet = e.pure(f"or {i.text} {bits}, {e.splat(str(0x400000), i)}")
        chosen = e.pure(f"select {b1} {nan}, {i.text} {quiet}, {i.text} {rounded}")
        return e.pure(f"trunc {i.text} {_shift(e, 'lshr', chosen, 16, i)} to {t.text}")
    if e.module.has_f16c:
        h = t.text.replace("i16", "half")
        return e.pure(f"bitcast {h} {e.pure(f'fptrunc {f.text} {value} to {h}')} to {t.text}")
    return _half_by_integers(e, value, f, t)


def _half_by_integers(e: FunctionEmitter, value: str, f: ValueType, t: ValueType) -> str:
    i = with_element(t, "i32")
    b1 = with_element(t, "i1").text
    bits = _bitcast(e, value, f, i)
    absolute = _mask(e, bits, 0x7FFFFFFF, i)
    # denormal result: adding 0.5 aligns the ten mantissa bits at the bottom, rounded by the adder
    magic = 0x3F000000
    small = e.pure(f"fadd {f.text} {_bitcast(e, absolute, i, f)}, {e.splat('0x3FE0000000000000', f)}")
    small = e.pure(f"sub {i.text} {_bitcast(e, small, f, i)}, {e.splat(str(magic), i)}")
    odd = _mask(e, _shift(e, "lshr", absolute, 13, i), 1, i)
    normal = e.pure(f"add {i.text} {absolute}, {e.splat(str(((15 - 127) << 23) + 0xFFF), i)}")
    normal = _shift(e, "lshr", e.pure(f"add {i.text} {normal}, {odd}"), 13, i)
    is_small = e.pure(f"icmp ult {i.text} {absolute}, {e.splat(str(113 << 23), i)}")
    finite = e.pure(f"select {b1} {is_small}, {i.text} {small}, {i.text} {normal}")
    nan = e.pure(f"icmp ugt {i.text} {absolute}, {e.splat(str(255 << 23), i)}")
    special = e.pure(f"select {b1} {nan}, {i.text} {e.splat(str(0x7E00), i)}, {i.text} {e.splat(str(0x7C00), i)}")
    overflow = e.pure(f"icmp uge {i.text} {absolute}, {e.splat(str((127 + 16) << 23), i)}")
    chosen = e.pure(f"select {b1} {overflow}, {i.text} {special}, {i.text} {finite}")
    sign = _mask(e, _shift(e, "lshr", bits, 16, i), 0x8000, i)
    return e.pure(f"trunc {i.text} {e.pure(f'or {i.text} {chosen}, {sign}')} to {t.text}")


def _round_to_odd(e: FunctionEmitter, value: str, d: ValueType) -> str:
    """f64 -> f32 whose last bit is sticky: a second rounding to 16 bits is then the correct one."""
    f, i = with_element(d), with_element(d, "i32")
    b1 = with_element(d, "i1").text
    near = e.pure(f"fptrunc {d.text} {value} to {f.text}")
    back = e.pure(f"fpext {f.text} {near} to {d.text}")
    inexact = e.pure(f"fcmp one {d.text} {back}, {value}")
    magnitudes = [e.call(d.text, f"llvm.fabs.{d.suffix}", [(d.text, x)]) for x in (back, value)]
    larger = e.pure(f"fcmp ogt {d.text} {magnitudes[0]}, {magnitudes[1]}")
    bits = _bitcast(e, near, f, i)
    down = e.pure(f"sub {i.text} {bits}, {e.pure(f'zext {b1} {larger} to {i.text}')}")
    odd = e.pure(f"or {i.text} {down}, {e.splat('1', i)}")
    return _bitcast(e, e.pure(f"select {b1} {inexact}, {i.text} {odd}, {i.text} {bits}"), i, f)


def _bitcast(e: FunctionEmitter, value: str, source: ValueType, target: ValueType) -> str:
    return e.pure(f"bitcast {source.text} {value} to {target.text}")


def _mask(e: FunctionEmitter, value: str, mask: int, i: ValueType) -> str:
    return e.pure(f"and {i.text} {value}, {e.splat(str(mask), i)}")


def _shift(e: FunctionEmitter, instruction: str, value: str, by: int, i: ValueType) -> str:
    return e.pure(f"{instruction} {i.text} {value}, {e.splat(str(by), i)}")
