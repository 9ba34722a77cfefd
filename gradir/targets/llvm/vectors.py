"""`vector` ops that move lanes: broadcast, extract, insert, shape changes, transposes, outer products, masks."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

from xdsl.dialects.builtin import DYNAMIC_INDEX, VectorType
from xdsl.ir import Operation

from gradir.ir.passes import error_at
from gradir.targets.llvm.arithmetic import multiply_add
from gradir.targets.llvm.emitter import Column, FunctionEmitter, Handler
from gradir.targets.llvm.types import ValueType, vector_of


def linear(index: tuple[int, ...] | list[int], shape: tuple[int, ...]) -> int:
    """Row-major position."""
    at = 0
    for i, n in zip(index, shape):
        at = at * n + i
    return at


def lanes_of(e: FunctionEmitter, rows: list[str], t: ValueType) -> list[str]:
    """All elements in row-major order."""
    return [e.lane(row, t, k) for row in rows for k in range(t.lanes)]


def rows_of(e: FunctionEmitter, scalars: list[str], t: ValueType) -> list[str]:
    """Rows of a vector whose elements are `scalars` in row-major order."""
    return [e.pack(scalars[r : r + t.lanes], t) for r in range(0, len(scalars), t.lanes)]


def broadcast(e: FunctionEmitter, op: Operation) -> None:
    """Trailing dimensions match or are 1; leading ones are new."""
    t, source = e.type_of(op.results[0]), op.operands[0]
    if not isinstance(source.type, VectorType):
        e.set_rows(op.results[0], [e.splat(e.text(source), t)] * t.rows)
        return
    s = e.type_of(source)
    rows = e.rows(source)
    if s.lanes != t.lanes:
        rows = [e.splat(e.lane(row, s, 0), t) for row in rows]
    padded = (1,) * (t.rank - s.rank) + s.shape
    out = [rows[linear([0 if n == 1 else i for i, n in zip(index, padded)], padded[:-1])] for index in product(*map(range, t.shape[:-1]))]
    e.set_rows(op.results[0], out)


def only_left_of_outer_products(op: Operation) -> bool:
    """Is the result a `Column` to all of its users?"""
    uses = list(op.results[0].uses)
    return bool(uses) and all(u.operation.name == "vector.outerproduct" and u.index == 0 for u in uses)


def outer_product(e: FunctionEmitter, op: Operation) -> None:
    """acc[i, j] + lhs[i] * rhs[j], one fma a row; a scalar right side scales the left one."""
    lhs, rhs = op.operands[0], op.operands[1]
    t = e.type_of(op.results[0])
    kind = str(getattr(op.properties.get("kind"), "data", "add"))
    acc = e.rows(op.operands[2]) if len(op.operands) > 2 else None
    if not isinstance(rhs.type, VectorType):
        pairs = [(e.text(lhs), e.splat(e.text(rhs), t))]
    else:
        left = e.values[lhs]
        s = e.type_of(lhs)
        row = e.text(rhs)
        if isinstance(left, Column):
            pairs = [(e.splat(scalar, t), row) for scalar in left]
        else:
            pairs = [(_splat_lane(e, e.text(lhs), s, t, k), row) for k in range(s.lanes)]
    e.set_rows(op.results[0], [_combine_product(e, t, kind, a, b, acc[r] if acc else None, op) for r, (a, b) in enumerate(pairs)])


def _splat_lane(e: FunctionEmitter, row: str, s: ValueType, t: ValueType, lane: int) -> str:
    if s.lanes == t.lanes and row[0] == "%":
        return e.shuffle(row, "poison", s, [lane] * t.lanes) if s.lanes > 1 else row
    return e.splat(e.lane(row, s, lane), t)


def _combine_product(e: FunctionEmitter, t: ValueType, kind: str, a: str, b: str, acc: str | None, op: Operation) -> str:
    if acc is not None and kind == "add":
        return multiply_add(e, t, a, b, acc)
    if acc is not None:
        raise error_at(op, f"outer product of kind {kind}", part="operator", code="OP040", expected="kind add", found=kind)
    return e.pure(f"{'fmul' if t.is_float else 'mul'} {t.text} {a}, {b}")


def extract(e: FunctionEmitter, op: Any) -> None:
    """A row, a block of rows, or one element; only the last position may be dynamic, and then selects a lane."""
    source = op.operands[0]
    s = e.type_of(source)
    static = [int(n) for n in op.static_position.get_values()]
    if not static and isinstance(op.results[0].type, VectorType):
        e.set_rows(op.results[0], e.rows(source))
        return
    if not static:
        _set_scalar(e, op, e.lane(e.text(source), s, 0))
        return
    dynamic = _last_is_dynamic(op, static, s.rank)
    rows, leading = e.rows(source), s.shape[:-1]
    if len(static) == s.rank:
        lane = e.index(op.operands[1]) if dynamic else static[-1]
        held = e.values[source]
        if isinstance(held, Column) and isinstance(lane, int):
            _set_scalar(e, op, held[lane])
        else:
            _set_scalar(e, op, e.lane(rows[linear(static[:-1], leading)], s, lane))
        return
    step = prod(leading[len(static) :])
    first = linear(static, leading[: len(static)]) * step
    e.set_rows(op.results[0], rows[first : first + step])


def _last_is_dynamic(op: Operation, static: list[int], rank: int) -> bool:
    """Whether the lane of a position is known only to the run. Raises GradirError OP040 when an outer position is."""
    if DYNAMIC_INDEX not in static:
        return False
    if static.index(DYNAMIC_INDEX) == rank - 1:
        return True
    raise error_at(
        op,
        "a dynamic position that is not the last",
        part="operator",
        code="OP040",
        expected="static outer positions",
        found=str(static),
    )


def _set_scalar(e: FunctionEmitter, op: Operation, name: str) -> None:
    e.values[op.results[0]] = name


def insert(e: FunctionEmitter, op: Any) -> None:
    """The destination with a block of rows, or one element, replaced."""
    source, dest = op.operands[0], op.operands[1]
    t = e.type_of(op.results[0])
    static = [int(n) for n in op.static_position.get_values()]
    rows, leading = list(e.rows(dest)), t.shape[:-1]
    dynamic = _last_is_dynamic(op, static, t.rank)
    if len(static) == t.rank or not isinstance(source.type, VectorType):
        at = linear(static[:-1], leading)
        lane = e.index(op.operands[2]) if dynamic else static[-1] if static else 0
        rows[at] = e.pure(f"insertelement {t.text} {rows[at]}, {t.element} {e.text(source)}, i64 {lane}")
    else:
        step = prod(leading[len(static) :])
        first = linear(static, leading[: len(static)]) * step
        rows[first : first + step] = e.rows(source)
    e.set_rows(op.results[0], rows)


def extract_strided_slice(e: FunctionEmitter, op: Any) -> None:
    s, t = e.type_of(op.operands[0]), e.type_of(op.results[0])
    rows = e.rows(op.operands[0])
    offsets = [a.value.data for a in op.offsets.data] + [0] * (s.rank - len(op.offsets.data))
    out: list[str] = []
    for index in product(*map(range, t.shape[:-1])):
        row = rows[linear([i + o for i, o in zip(index, offsets)], s.shape[:-1])]
        out.append(row if s.lanes == t.lanes else e.shuffle(row, "poison", s, range(offsets[-1], offsets[-1] + t.lanes)))
    e.set_rows(op.results[0], out)


def insert_strided_slice(e: FunctionEmitter, op: Any) -> None:
    s, t = e.type_of(op.operands[0]), e.type_of(op.results[0])
    offsets = [a.value.data for a in op.offsets.data]
    rows, source = list(e.rows(op.operands[1])), e.rows(op.operands[0])
    outer = t.rank - s.rank
    for k, index in enumerate(product(*map(range, s.shape[:-1]))):
        full = [*offsets[:outer], *(i + o for i, o in zip(index, offsets[outer:]))]
        at = linear(full, t.shape[:-1])
        if s.lanes == t.lanes:
            rows[at] = source[k]
            continue
        start = offsets[-1]
        wide = e.shuffle(source[k], "poison", s, [min(max(j - start, 0), s.lanes - 1) for j in range(t.lanes)])
        rows[at] = e.shuffle(wide, rows[at], t, [j if start <= j < start + s.lanes else t.lanes + j for j in range(t.lanes)])
    e.set_rows(op.results[0], rows)


def shape_cast(e: FunctionEmitter, op: Operation) -> None:
    """Same elements in row-major order: rows stay, split or join where the innermost sizes divide each other."""
    if all(u.operation.name == "vector.contract" and u.index == 1 for u in op.results[0].uses):
        return  # contractions read the operand of the cast
    s, t = e.type_of(op.operands[0]), e.type_of(op.results[0])
    held = e.values[op.operands[0]]
    if isinstance(held, Column) and t.lanes == 1:
        e.set_rows(op.results[0], [e.pack([x], t) for x in held])
        return
    rows = e.rows(op.operands[0])
    if s.lanes == t.lanes:
        out = rows
    elif t.lanes and s.lanes % t.lanes == 0:
        out = [e.shuffle(row, "poison", s, range(k, k + t.lanes)) for row in rows for k in range(0, s.lanes, t.lanes)]
    else:
        out = rows_of(e, lanes_of(e, rows, s), t)
    e.set_rows(op.results[0], out)


def shuffle(e: FunctionEmitter, op: Any) -> None:
    s = e.type_of(op.operands[0])
    mask = [int(k) for k in op.mask.get_values()]
    if s.rank >= 2:
        step = s.rows // s.shape[0]
        both = [*e.rows(op.operands[0]), *e.rows(op.operands[1])]
        e.set_rows(op.results[0], [row for k in mask for row in both[max(k, 0) * step : (max(k, 0) + 1) * step]])
        return
    a, b = e.text(op.operands[0]), e.text(op.operands[1])
    other = e.type_of(op.operands[1])
    if other.lanes != s.lanes:
        scalars = lanes_of(e, [a], s) + lanes_of(e, [b], other)
        e.values[op.results[0]] = e.pack([scalars[max(k, 0)] for k in mask], e.type_of(op.results[0]))
    else:
        e.values[op.results[0]] = e.shuffle(a, b, s, [max(k, 0) for k in mask])


def transpose(e: FunctionEmitter, op: Any) -> None:
    """result[i_perm[0], ...] = source[i]: rows move, square tiles by log2(n) rounds of two-input shuffles, others lane by lane."""
    s, t = e.type_of(op.operands[0]), e.type_of(op.results[0])
    perm = [int(p) for p in op.permutation.get_values()]
    rows = e.rows(op.operands[0])
    n = s.lanes
    if perm[-1] == s.rank - 1:
        positions = [[0] * (s.rank - 1) for _ in range(t.rows)]
        for out, index in zip(positions, product(*map(range, t.shape[:-1]))):
            for place, dim in zip(index, perm[:-1]):
                out[dim] = place
        e.set_rows(op.results[0], [rows[linear(p, s.shape[:-1])] for p in positions])
    elif s.rank == 2 and s.shape[0] == n and n & (n - 1) == 0:
        e.set_rows(op.results[0], _butterfly(e, rows, s))
    else:
        scalars = lanes_of(e, rows, s)
        moved: list[str] = []
        for index in product(*map(range, t.shape)):
            place = [0] * s.rank
            for i, dim in zip(index, perm):
                place[dim] = i
            moved.append(scalars[linear(place, s.shape)])
        e.set_rows(op.results[0], rows_of(e, moved, t))


def _butterfly(e: FunctionEmitter, rows: list[str], t: ValueType) -> list[str]:
    """Transpose of a square power-of-two tile: swap off-diagonal halves, then quarters, ... (Eklundh 1972)."""
    n, half = t.lanes, t.lanes // 2
    while half:
        swapped = list(rows)
        for i in range(n):
            if i & half:
                continue
            low = [k if not k & half else n + k - half for k in range(n)]
            high = [k + half if not k & half else n + k for k in range(n)]
            swapped[i] = e.shuffle(rows[i], rows[i + half], t, low)
            swapped[i + half] = e.shuffle(rows[i], rows[i + half], t, high)
        rows, half = swapped, half // 2
    return rows


def step(e: FunctionEmitter, op: Operation) -> None:
    t = e.type_of(op.results[0])
    e.values[op.results[0]] = "<" + ", ".join(f"{t.element} {k}" for k in range(t.lanes)) + ">"


def create_mask(e: FunctionEmitter, op: Operation) -> None:
    """True where every index is below its bound."""
    _mask_rows(e, op, [e.index(v) for v in op.operands])


def constant_mask(e: FunctionEmitter, op: Any) -> None:
    _mask_rows(e, op, [int(n) for n in op.mask_dim_sizes.get_values()])


def _mask_rows(e: FunctionEmitter, op: Operation, bounds: list[int | str]) -> None:
    t = e.type_of(op.results[0])
    last = lane_mask(e, bounds[-1], t.lanes) or e.splat("true", t)
    out: list[str] = []
    for index in product(*map(range, t.shape[:-1])):
        row = last
        for i, bound in zip(index, bounds):
            if isinstance(bound, int):
                row = row if i < bound else e.splat("false", t)
            else:
                inside = e.pure(f"icmp sgt i64 {bound}, {i}")
                row = e.pure(f"select i1 {inside}, {t.text} {row}, {t.text} zeroinitializer")
        out.append(row)
    e.set_rows(op.results[0], out)


def lane_mask(e: FunctionEmitter, count: int | str, lanes: int) -> str | None:
    """`<lanes x i1>`, true for the first `count` lanes; None when all are."""
    if isinstance(count, int):
        if count >= lanes:
            return None
        return "<" + ", ".join(f"i1 {'true' if k < count else 'false'}" for k in range(lanes)) + ">"
    clamped = e.call("i64", "llvm.smin.i64", [("i64", count), ("i64", str(lanes))])
    clamped = e.call("i64", "llvm.smax.i64", [("i64", clamped), ("i64", "0")])
    narrow = e.pure(f"trunc i64 {clamped} to i32")
    i32 = vector_of("i32", lanes)
    steps = "<" + ", ".join(f"i32 {k}" for k in range(lanes)) + ">"
    return e.pure(f"icmp ult {i32.text} {steps}, {e.splat(narrow, i32)}")


def from_elements(e: FunctionEmitter, op: Operation) -> None:
    if e.type_of(op.results[0]).rank == 1 and only_left_of_outer_products(op):
        e.values[op.results[0]] = Column(e.text(v) for v in op.operands)
        return
    e.set_rows(op.results[0], rows_of(e, [e.text(v) for v in op.operands], e.type_of(op.results[0])))


def to_elements(e: FunctionEmitter, op: Operation) -> None:
    s = e.type_of(op.operands[0])
    for result, scalar in zip(op.results, lanes_of(e, e.rows(op.operands[0]), s)):
        e.values[result] = scalar


def interleave(e: FunctionEmitter, op: Operation) -> None:
    s = e.type_of(op.operands[0])
    mask = [k // 2 + (s.lanes if k % 2 else 0) for k in range(2 * s.lanes)]
    e.set_rows(op.results[0], [e.shuffle(a, b, s, mask) for a, b in zip(e.rows(op.operands[0]), e.rows(op.operands[1]))])


def deinterleave(e: FunctionEmitter, op: Operation) -> None:
    s = e.type_of(op.operands[0])
    for parity, result in enumerate(op.results):
        e.set_rows(result, [e.shuffle(row, "poison", s, range(parity, s.lanes, 2)) for row in e.rows(op.operands[0])])


HANDLERS: dict[str, Handler] = {
    "vector.broadcast": broadcast,
    "vector.splat": broadcast,
    "vector.outerproduct": outer_product,
    "vector.extract": extract,
    "vector.insert": insert,
    "vector.extract_strided_slice": extract_strided_slice,
    "vector.insert_strided_slice": insert_strided_slice,
    "vector.shape_cast": shape_cast,
    "vector.shuffle": shuffle,
    "vector.transpose": transpose,
    "vector.step": step,
    "vector.create_mask": create_mask,
    "vector.constant_mask": constant_mask,
    "vector.from_elements": from_elements,
    "vector.to_elements": to_elements,
    "vector.interleave": interleave,
    "vector.deinterleave": deinterleave,
}
