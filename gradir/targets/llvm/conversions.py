"""`arith` casts: between float formats, integers, indices and bit patterns. No cast becomes a library call."""

from __future__ import annotations

from xdsl.ir import Operation

from gradir.targets.llvm.emitter import FunctionEmitter, Handler
from gradir.targets.llvm.halves import from_float, to_float
from gradir.targets.llvm.types import ValueType, with_element


def cast(instruction: str) -> Handler:
    """A cast that is one LLVM instruction."""

    def handler(e: FunctionEmitter, op: Operation) -> None:
        source, target = e.type_of(op.operands[0]).text, e.type_of(op.results[0]).text
        e.map_rows(op, lambda a: e.pure(f"{instruction} {source} {a} to {target}"))

    return handler


def convert_float(e: FunctionEmitter, op: Operation) -> None:
    """`extf` and `truncf`; 16-bit floats go through f32, f64 -> 16 bits with one rounding."""
    source, target = e.type_of(op.operands[0]), e.type_of(op.results[0])
    e.map_rows(op, lambda a: resize_float(e, a, source, target))


def resize_float(e: FunctionEmitter, value: str, source: ValueType, target: ValueType) -> str:
    """One row of floats in another format."""
    if source.half:
        value, source = to_float(e, value, source), with_element(source)
    if target.half:
        return from_float(e, value, source, target)
    if source.bytes == target.bytes:
        return value
    return e.pure(f"{'fpext' if source.bytes < target.bytes else 'fptrunc'} {source.text} {value} to {target.text}")


def float_to_integer(instruction: str) -> Handler:
    """Toward zero; the lowering has guarded what is out of range."""

    def handler(e: FunctionEmitter, op: Operation) -> None:
        source, target = e.type_of(op.operands[0]), e.type_of(op.results[0])
        f = with_element(source) if source.half else source

        def row(a: str) -> str:
            value = to_float(e, a, source) if source.half else a
            return e.pure(f"{instruction} {f.text} {value} to {target.text}")

        e.map_rows(op, row)

    return handler


def integer_to_float(instruction: str) -> Handler:
    """One rounding: to 16 bits through f64, exact for integers of up to 32 bits, or by sticky bits beyond."""

    def handler(e: FunctionEmitter, op: Operation) -> None:
        source, target = e.type_of(op.operands[0]), e.type_of(op.results[0])

        def row(a: str) -> str:
            if not target.half:
                return e.pure(f"{instruction} {source.text} {a} to {target.text}")
            d = with_element(target, "double")
            value = _sticky(e, a, source, instruction == "sitofp") if source.element == "i64" else a
            return from_float(e, e.pure(f"{instruction} {source.text} {value} to {d.text}"), d, target)

        e.map_rows(op, row)

    return handler


def _sticky(e: FunctionEmitter, value: str, t: ValueType, signed: bool) -> str:
    """A 64-bit integer with its low 12 bits collapsed into one when it does not fit 53 bits: its f64 is exact, its rounding the same."""
    zero, one, low_bits, high_bits = (e.splat(k, t) for k in ("0", "1", "4095", "-4096"))
    b1 = with_element(t, "i1").text
    low = e.pure(f"and {t.text} {value}, {low_bits}")
    inexact = e.pure(f"icmp ne {t.text} {low}, {zero}")
    sticky = e.pure(f"shl {t.text} {e.pure(f'zext {b1} {inexact} to {t.text}')}, {e.splat('11', t)}")
    collapsed = e.pure(f"or {t.text} {e.pure(f'and {t.text} {value}, {high_bits}')}, {sticky}")
    if signed:  # the top 12 bits are all equal
        sign_bits = e.splat("52", t)
        top = e.pure(f"add {t.text} {e.pure(f'ashr {t.text} {value}, {sign_bits}')}, {one}")
        fits = e.pure(f"icmp ult {t.text} {top}, {e.splat('2', t)}")
    else:
        top = e.pure(f"lshr {t.text} {value}, {e.splat('53', t)}")
        fits = e.pure(f"icmp eq {t.text} {top}, {zero}")
    return e.pure(f"select {b1} {fits}, {t.text} {value}, {t.text} {collapsed}")


def index_cast(signed: bool) -> Handler:
    """`index` is i64: widen or narrow."""

    def handler(e: FunctionEmitter, op: Operation) -> None:
        source, target = e.type_of(op.operands[0]), e.type_of(op.results[0])
        a, b = int(source.element[1:]), int(target.element[1:])
        if a == b:
            e.set_rows(op.results[0], e.rows(op.operands[0]))
            return
        instruction = "trunc" if a > b else "sext" if signed else "zext"

        def row(x: str) -> str:
            if x[0] not in "%<s":  # a constant stays a constant, so that addresses fold
                value = {"true": 1, "false": 0}.get(x)
                value = int(x) if value is None else (-value if signed else value)
                value &= (1 << b) - 1
                return str(value - (1 << b) if value >> (b - 1) else value) if b > 1 else str(bool(value)).lower()
            return e.pure(f"{instruction} {source.text} {x} to {target.text}")

        e.map_rows(op, row)

    return handler


def bitcast(e: FunctionEmitter, op: Operation) -> None:
    source, target = e.type_of(op.operands[0]), e.type_of(op.results[0])
    if source.text == target.text:
        e.set_rows(op.results[0], e.rows(op.operands[0]))
    else:
        e.map_rows(op, lambda a: e.pure(f"bitcast {source.text} {a} to {target.text}"))


HANDLERS: dict[str, Handler] = {
    "arith.extsi": cast("sext"),
    "arith.extui": cast("zext"),
    "arith.trunci": cast("trunc"),
    "arith.extf": convert_float,
    "arith.truncf": convert_float,
    "arith.fptosi": float_to_integer("fptosi"),
    "arith.fptoui": float_to_integer("fptoui"),
    "arith.sitofp": integer_to_float("sitofp"),
    "arith.uitofp": integer_to_float("uitofp"),
    "arith.index_cast": index_cast(signed=True),
    "arith.index_castui": index_cast(signed=False),
    "arith.bitcast": bitcast,
    "vector.bitcast": bitcast,
}
