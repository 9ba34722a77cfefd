"""`vector.reduction` and `vector.multi_reduction`: lanes to scalars, rows to rows."""

from __future__ import annotations

from itertools import product
from typing import Any

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Operation

from gradir.targets.llvm.arithmetic import fastmath
from gradir.targets.llvm.emitter import FunctionEmitter, Handler
from gradir.targets.llvm.halves import from_float, to_float
from gradir.targets.llvm.types import ValueType, vector_of, with_element
from gradir.targets.llvm.vectors import linear

_REDUCE = {
    "minui": "umin", "minsi": "smin", "maxui": "umax", "maxsi": "smax", "and": "and", "or": "or", "xor": "xor",
    "minnumf": "fmin", "maxnumf": "fmax", "minimumf": "fminimum", "maximumf": "fmaximum",
}  # fmt: skip
_ELEMENTWISE = {
    "minui": "umin", "minsi": "smin", "maxui": "umax", "maxsi": "smax",
    "minnumf": "minnum", "maxnumf": "maxnum", "minimumf": "minimum", "maximumf": "maximum",
}  # fmt: skip


def combine(e: FunctionEmitter, kind: str, t: ValueType, a: str, b: str, flags: str = "") -> str:
    """a (kind) b on rows or scalars; 16-bit floats in f32."""
    if t.half:
        f = with_element(t)
        return from_float(e, combine(e, kind, f, to_float(e, a, t), to_float(e, b, t), flags), f, t)
    name = _ELEMENTWISE.get(kind)
    if name is not None:
        return e.call(t.text, f"llvm.{name}.{t.suffix}", [(t.text, a), (t.text, b)])
    instruction = ("f" if t.is_float else "") + kind
    return e.pure(f"{instruction} {flags if t.is_float else ''}{t.text} {a}, {b}")


def reduce_row(e: FunctionEmitter, kind: str, t: ValueType, row: str, flags: str) -> str:
    """One row to a scalar; float sums in index order unless `flags` allow reassociation."""
    if t.half:
        f = with_element(t)
        s = with_element(f, "float")
        scalar = reduce_row(e, kind, f, to_float(e, row, t), flags)
        one = ValueType("float", "float", "float", "float", 0, (), "f32", "", s.bytes)
        return from_float(e, scalar, one, ValueType("i16", "i16", "i16", "i16", 0, (), "i16", t.half, 2))
    if t.lanes == 1:
        return e.lane(row, t, 0)
    if t.is_float and kind in ("add", "mul"):
        start = "-0.0" if kind == "add" else "1.0"
        return e.call(t.element, f"llvm.vector.reduce.f{kind}.{t.suffix}", [(t.element, start), (t.text, row)], flags)
    return e.call(t.element, f"llvm.vector.reduce.{_REDUCE.get(kind, kind)}.{t.suffix}", [(t.text, row)])


def reduction(e: FunctionEmitter, op: Operation) -> None:
    """Sums in index order start with the accumulator; others combine with it at the end."""
    t = e.type_of(op.operands[0])
    kind = str(getattr(op.properties["kind"], "data", ""))
    flags = fastmath(op)
    result = reduce_row(e, kind, t, e.text(op.operands[0]), flags)
    if len(op.operands) > 1:
        result = combine(e, kind, e.type_of(op.results[0]), e.text(op.operands[1]), result, flags)
    e.values[op.results[0]] = result


def multi_reduction(e: FunctionEmitter, op: Any) -> None:
    """Reduce several dimensions into the accumulator: outer ones row by row, the innermost across lanes."""
    source, acc = op.operands[0], op.operands[1]
    t = e.type_of(source)
    kind = str(op.kind.data)
    flags = fastmath(op)
    dims = {int(d) for d in op.reduction_dims.get_values()}
    rows = e.rows(source)
    kept = [d for d in range(t.rank - 1) if d not in dims]
    shape = tuple(t.shape[d] for d in kept)
    partial: dict[int, str] = {}
    row_type = vector_of(t.element, t.lanes) if not t.half else t
    for row, index in zip(rows, product(*map(range, t.shape[:-1]))):
        at = linear([index[d] for d in kept], shape)
        partial[at] = row if at not in partial else combine(e, kind, row_type, partial[at], row, flags)
    flat = [partial[k] for k in range(len(partial))]
    result_type = e.type_of(op.results[0])
    if t.rank - 1 not in dims:
        starts = e.rows(acc)
        e.set_rows(op.results[0], [combine(e, kind, row_type, a, b, flags) for a, b in zip(starts, flat)])
        return
    scalars = [reduce_row(e, kind, row_type, row, flags) for row in flat]
    if not isinstance(op.results[0].type, VectorType):
        e.values[op.results[0]] = combine(e, kind, result_type, e.text(acc), scalars[0], flags)
        return
    lanes = result_type.lanes
    packed = [e.pack(scalars[k : k + lanes], result_type) for k in range(0, len(scalars), lanes)]
    e.set_rows(op.results[0], [combine(e, kind, result_type, a, b, flags) for a, b in zip(e.rows(acc), packed)])


HANDLERS: dict[str, Handler] = {"vector.reduction": reduction, "vector.multi_reduction": multi_reduction}
