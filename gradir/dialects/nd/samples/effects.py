"""Samples of assertions, barriers and lines of output."""

from __future__ import annotations

import numpy as np

from gradir.dialects.nd.base import Sample
from gradir.dialects.nd.samples.case import BF16, SPECIAL, Array, case, type_text, wave


def _assert() -> list[Sample]:
    def holds(name: str, x: Array, wrt: tuple[int, ...] = ()) -> Sample:
        """`x` as it is, where its greatest element is below 100."""
        kind = type_text(x)
        element = kind[kind.rfind("x") + 1 : -1] if x.ndim else kind[len("tensor<") : -1]
        scalar = f"tensor<{element}>"
        lines = (
            f"%top = nd.reduce_max %0 dims {list(range(x.ndim))} : {{0}} -> {scalar}",
            f"%limit = nd.constant splat(100.0 : {element}) : {scalar}",
            f"%ok = nd.compare lt, %top, %limit : {scalar}",
            'nd.assert %ok, "every element must be below 100" : tensor<i1>',
        )
        return case(name, "nd.neg %0 : {0}", [x], kind, wrt, before=lines)

    sizes = (
        "%n = arith.constant 4 : index",
        "%ok = arith.cmpi sle, %1, %n : index",
        'nd.assert %ok, "the position must be at most 4" : i1',
    )
    x = wave(3, dtype=np.float32)
    return [
        holds("f64", wave(2, 3), (0,)),
        holds("f32 empty", np.zeros((0, 2), np.float32)),
        holds("f32 scalar", np.array(-0.0, np.float32)),
        case("f32 index", "nd.exp %0 : {0}", [x, 4], type_text(x), before=sizes),
    ]


def _barrier() -> list[Sample]:
    def apart(name: str, values: list[Array], wrt: tuple[int, ...] = ()) -> Sample:
        kinds = [type_text(value) for value in values]
        names = ", ".join(f"%b{k}" for k in range(len(values)))
        operands = ", ".join(f"%{k}" for k in range(len(values)))
        arguments = ", ".join(f"%{k}: {kind}" for k, kind in enumerate(kinds))
        types = ", ".join(kinds)
        text = (
            f"func.func @f({arguments}) -> ({types}) {{\n"
            f"  {names} = nd.optimization_barrier {operands} : {types}\n"
            f"  return {names} : {types}\n}}\n"
        )
        return Sample(name, text, lambda: tuple(value.copy() for value in values), wrt)

    return [
        apart("f64", [wave(2, 3)], (0,)),
        apart("f64 two", [wave(2, 3), wave(4, shift=1.0)], (0, 1)),
        apart("f32 special and int32", [np.array(SPECIAL, np.float32), np.arange(3, dtype=np.int32)]),
        apart("empty and scalar", [np.zeros((0, 2), np.float32), np.array(True), np.array(7, np.uint8)]),
    ]


def _print() -> list[Sample]:
    def line(name: str, template: str, values: list[Array], wrt: tuple[int, ...] = ()) -> Sample:
        kinds = [type_text(value) for value in values]
        operands = ", ".join(f"%{k}" for k in range(len(values)))
        shown = f'nd.print "{template}", {operands} : {", ".join(kinds)}' if "{" in template else f'nd.print "{template}"'
        return case(name, "nd.neg %0 : {0}", values, kinds[0], wrt, before=(shown.replace("{", "{{").replace("}", "}}"),))

    return [
        line("f64", "x = {}", [wave(2, 3)], (0,)),
        line("f32 and others", "{:.3f}, {} and {}", [wave(3, dtype=np.float32), np.array(7, np.int32), np.array([True, False])]),
        line("bf16 empty", "{}", [np.zeros((0, 2), BF16)]),
        line("words", "no operands", [wave(2)]),
    ]


def samples_of(cls: type) -> tuple[Sample, ...]:
    """The samples of one op of this family."""
    return tuple({"nd.assert": _assert, "nd.optimization_barrier": _barrier, "nd.print": _print}[cls.name]())
