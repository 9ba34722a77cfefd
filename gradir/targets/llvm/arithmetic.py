"""`arith` and the `math` ops that targets have, elementwise on scalars and on the rows of vectors.

f16 and bf16 arithmetic runs in f32 with one rounding per op (docs/numerics.md), conversions included in `halves`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr
from xdsl.ir import Operation

from gradir.ir.passes import error_at
from gradir.targets.llvm.emitter import FunctionEmitter, Handler
from gradir.targets.llvm.halves import from_float, to_float
from gradir.targets.llvm.types import ValueType, float_literal, int_literal, splat_literal, with_element

_FLAGS = {
    "reassoc": "reassoc",
    "nnan": "nnan",
    "ninf": "ninf",
    "nsz": "nsz",
    "arcp": "arcp",
    "contract": "contract",
    "afn": "afn",
    "fast": "fast",
}


def fastmath(op: Operation) -> str:
    """LLVM's fast-math flags of an op, with a trailing space."""
    attribute: Any = op.properties.get("fastmath")
    if attribute is None or not attribute.data:
        return ""
    flags = [_FLAGS[str(flag.value)] for flag in attribute.data]
    return "fast " if len(flags) >= 7 else "".join(sorted(f + " " for f in flags))


def constant(e: FunctionEmitter, op: Operation) -> None:
    value: Any = op.properties["value"]
    result = op.results[0]
    t = e.type_of(result)
    if isinstance(value, FloatAttr):
        e.values[result] = float_literal(value.value.data, t)
    elif isinstance(value, IntegerAttr):
        e.values[result] = int_literal(value.value.data, t)
    elif isinstance(value, DenseIntOrFPElementsAttr):
        e.set_rows(result, dense_rows(value, t))
    else:
        raise error_at(
            op, "constant of an unknown form", part="operator", code="OP040", expected="a number or dense<...>", found=str(value)[:80]
        )


def dense_rows(value: DenseIntOrFPElementsAttr, t: ValueType) -> list[str]:
    """Rows of a dense constant; splats stay splats."""
    spell = cast("Callable[[Any, ValueType], str]", float_literal if t.is_float else int_literal)
    data, size = value.data.data, len(value.data.data) // max(1, t.rows * t.lanes)
    if data == data[:size] * (len(data) // size):
        return [splat_literal(spell(next(iter(value.iter_values())), t), t)] * t.rows
    lanes = [f"{t.element} {spell(v, t)}" for v in value.get_values()]
    return ["<" + ", ".join(lanes[r * t.lanes : (r + 1) * t.lanes]) + ">" for r in range(t.rows)]


def integer(instruction: str) -> Handler:
    """Two operands of the result's type, any element type, no rounding."""

    def handler(e: FunctionEmitter, op: Operation) -> None:
        text = e.type_of(op.results[0]).text
        e.map_rows(op, lambda a, b: e.pure(f"{instruction} {text} {a}, {b}"))

    return handler


def floating(instruction: str) -> Handler:
    """`fadd`, `fsub`, `fmul`, `fdiv`."""

    def handler(e: FunctionEmitter, op: Operation) -> None:
        t = e.type_of(op.results[0])
        flags = fastmath(op)
        if not t.half:
            e.map_rows(op, lambda a, b: e.pure(f"{instruction} {flags}{t.text} {a}, {b}"))
            return
        f = with_element(t)
        e.map_rows(op, lambda a, b: from_float(e, e.pure(f"{instruction} {flags}{f.text} {to_float(e, a, t)}, {to_float(e, b, t)}"), f, t))

    return handler


def intrinsic(name: str) -> Handler:
    """An LLVM intrinsic overloaded on the result's type."""

    def handler(e: FunctionEmitter, op: Operation) -> None:
        t = e.type_of(op.results[0])
        flags = fastmath(op)
        f = with_element(t) if t.half else t

        def row(*operands: str) -> str:
            if t.half:
                operands = tuple(to_float(e, x, t) for x in operands)
            found = e.call(f.text, f"llvm.{name}.{f.suffix}", [(f.text, x) for x in operands], flags)
            return from_float(e, found, f, t) if t.half else found

        e.map_rows(op, row)

    return handler


def bit_intrinsic(name: str) -> Handler:
    """`ctlz`, `cttz`, `abs`: one operand and a flag that makes the corner case defined."""

    def handler(e: FunctionEmitter, op: Operation) -> None:
        t = e.type_of(op.results[0])
        e.map_rows(op, lambda a: e.call(t.text, f"llvm.{name}.{t.suffix}", [(t.text, a), ("i1", "false")]))

    return handler


def contracted(e: FunctionEmitter, op: Operation) -> None:
    """`vector.fma`: one rounding where the target has fma, two where it has not (a contraction either way)."""
    t = e.type_of(op.results[0])
    e.map_rows(op, lambda a, b, c: multiply_add(e, t, a, b, c))


def multiply_add(e: FunctionEmitter, t: ValueType, a: str, b: str, c: str) -> str:
    """a * b + c on one row."""
    if t.half:
        f = with_element(t)
        return from_float(e, multiply_add(e, f, *(to_float(e, x, t) for x in (a, b, c))), f, t)
    if not t.is_float:
        return e.pure(f"add {t.text} {e.pure(f'mul {t.text} {a}, {b}')}, {c}")
    if e.module.has_fma:
        return e.call(t.text, f"llvm.fma.{t.suffix}", [(t.text, a), (t.text, b), (t.text, c)])
    return e.pure(f"fadd contract {t.text} {e.pure(f'fmul contract {t.text} {a}, {b}')}, {c}")


def math_fma(e: FunctionEmitter, op: Operation) -> None:
    """`math.fma`: one rounding; `expand-math` has removed it where the target has no such instruction."""
    if not e.module.has_fma:
        raise error_at(
            op, "the target has no fma", part="operator", code="OP040", found=op.name, hint="run `expand-math` with the module's target set"
        )
    intrinsic("fma")(e, op)


def negate(e: FunctionEmitter, op: Operation) -> None:
    t = e.type_of(op.results[0])
    if t.half:
        e.map_rows(op, lambda a: e.pure(f"xor {t.text} {a}, {splat_literal('-32768', t)}"))
    else:
        e.map_rows(op, lambda a: e.pure(f"fneg {fastmath(op)}{t.text} {a}"))


def absolute(e: FunctionEmitter, op: Operation) -> None:
    t = e.type_of(op.results[0])
    if t.half:
        e.map_rows(op, lambda a: e.pure(f"and {t.text} {a}, {splat_literal('32767', t)}"))
    else:
        e.map_rows(op, lambda a: e.call(t.text, f"llvm.fabs.{t.suffix}", [(t.text, a)]))


_CMPF = ("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true")
_CMPI = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


def compare_floats(e: FunctionEmitter, op: Operation) -> None:
    t = e.type_of(op.operands[0])
    predicate: Any = op.properties["predicate"]
    name = _CMPF[predicate.value.data]
    f = with_element(t) if t.half else t

    def row(a: str, b: str) -> str:
        if t.half:
            a, b = to_float(e, a, t), to_float(e, b, t)
        return e.pure(f"fcmp {name} {f.text} {a}, {b}")

    e.map_rows(op, row)


def compare_integers(e: FunctionEmitter, op: Operation) -> None:
    t = e.type_of(op.operands[0])
    predicate: Any = op.properties["predicate"]
    name = _CMPI[predicate.value.data]

    def row(a: str, b: str) -> str:
        return e.pure(f"icmp {name} {t.text} {a}, {b}")

    e.map_rows(op, row)


def select(e: FunctionEmitter, op: Operation) -> None:
    """A scalar condition chooses whole vectors, a vector condition lanes."""
    t, c = e.type_of(op.results[0]), e.type_of(op.operands[0])
    e.map_rows(op, lambda p, a, b: e.pure(f"select {c.text} {p}, {t.text} {a}, {t.text} {b}"))


def floor_divide(e: FunctionEmitter, op: Operation) -> None:
    """floor(a / b): the quotient toward zero, minus one where a remainder has the other sign than b."""
    t = e.type_of(op.results[0])
    b1 = with_element(t, "i1").text

    def row(a: str, b: str) -> str:
        q, r = e.pure(f"sdiv {t.text} {a}, {b}"), e.pure(f"srem {t.text} {a}, {b}")
        zero = splat_literal("0", t)
        signs = e.pure(f"icmp slt {t.text} {e.pure(f'xor {t.text} {r}, {b}')}, {zero}")
        inexact = e.pure(f"and {b1} {signs}, {e.pure(f'icmp ne {t.text} {r}, {zero}')}")
        return e.pure(f"add {t.text} {q}, {e.pure(f'sext {b1} {inexact} to {t.text}')}")

    e.map_rows(op, row)


def ceil_divide(signed: bool) -> Handler:
    """ceil(a / b): plus one where there is a remainder and the quotient is positive."""

    def handler(e: FunctionEmitter, op: Operation) -> None:
        t = e.type_of(op.results[0])
        b1 = with_element(t, "i1").text
        s = "s" if signed else "u"

        def row(a: str, b: str) -> str:
            q, r = e.pure(f"{s}div {t.text} {a}, {b}"), e.pure(f"{s}rem {t.text} {a}, {b}")
            up = e.pure(f"icmp ne {t.text} {r}, {splat_literal('0', t)}")
            if signed:
                same = e.pure(f"icmp sge {t.text} {e.pure(f'xor {t.text} {r}, {b}')}, {splat_literal('0', t)}")
                up = e.pure(f"and {b1} {up}, {same}")
            return e.pure(f"add {t.text} {q}, {e.pure(f'zext {b1} {up} to {t.text}')}")

        e.map_rows(op, row)

    return handler


def extended(signed: bool, multiply: bool) -> Handler:
    """`addui_extended` (sum, carry) and `mul?i_extended` (low, high)."""

    def handler(e: FunctionEmitter, op: Operation) -> None:
        t = e.type_of(op.results[0])
        width = int(t.element[1:])
        wide = f"<{t.lanes} x i{2 * width}>" if t.lanes else f"i{2 * width}"
        low: list[str] = []
        high: list[str] = []
        extension = "sext" if signed else "zext"
        for a, b in zip(e.rows(op.operands[0]), e.rows(op.operands[1])):
            if not multiply:
                low.append(e.pure(f"add {t.text} {a}, {b}"))
                high.append(e.pure(f"icmp ult {t.text} {low[-1]}, {a}"))
                continue
            x, y = (e.pure(f"{extension} {t.text} {v} to {wide}") for v in (a, b))
            product = e.pure(f"mul {wide} {x}, {y}")
            shift = f"splat (i{2 * width} {width})" if t.lanes else str(width)
            low.append(e.pure(f"trunc {wide} {product} to {t.text}"))
            high.append(e.pure(f"trunc {wide} {e.pure(f'lshr {wide} {product}, {shift}')} to {t.text}"))
        e.set_rows(op.results[0], low)
        e.set_rows(op.results[1], high)

    return handler


def poison(e: FunctionEmitter, op: Operation) -> None:
    e.set_rows(op.results[0], ["poison"] * max(1, e.type_of(op.results[0]).rows))


HANDLERS: dict[str, Handler] = {
    "arith.constant": constant,
    **{f"arith.{op}": integer(llvm) for op, llvm in {
        "addi": "add", "subi": "sub", "muli": "mul", "divsi": "sdiv", "divui": "udiv", "remsi": "srem", "remui": "urem",
        "andi": "and", "ori": "or", "xori": "xor", "shli": "shl", "shrsi": "ashr", "shrui": "lshr",
    }.items()},
    **{f"arith.{op}": floating(llvm) for op, llvm in {"addf": "fadd", "subf": "fsub", "mulf": "fmul", "divf": "fdiv"}.items()},
    **{f"arith.{op}": intrinsic(llvm) for op, llvm in {
        "maximumf": "maximum", "minimumf": "minimum", "maxnumf": "maxnum", "minnumf": "minnum",
        "maxsi": "smax", "minsi": "smin", "maxui": "umax", "minui": "umin",
    }.items()},
    "arith.floordivsi": floor_divide,
    "arith.ceildivsi": ceil_divide(signed=True),
    "arith.ceildivui": ceil_divide(signed=False),
    "arith.addui_extended": extended(signed=False, multiply=False),
    "arith.mului_extended": extended(signed=False, multiply=True),
    "arith.mulsi_extended": extended(signed=True, multiply=True),
    "arith.negf": negate,
    "arith.cmpf": compare_floats,
    "arith.cmpi": compare_integers,
    "arith.select": select,
    **{f"math.{op}": intrinsic(llvm) for op, llvm in {
        "sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "roundeven": "roundeven",
        "copysign": "copysign", "ctpop": "ctpop",
    }.items()},
    "math.fma": math_fma,
    "math.absf": absolute,
    "math.absi": bit_intrinsic("abs"),
    "math.ctlz": bit_intrinsic("ctlz"),
    "math.cttz": bit_intrinsic("cttz"),
    "vector.fma": contracted,
    "ub.poison": poison,
}  # fmt: skip
