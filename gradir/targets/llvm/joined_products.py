"""`vector.contract` over neighbours: `acc[i, j] + sum over c of lhs[i, c] * rhs[j, c]` for two neighbours c of 16 bits.

One instruction of x86 multiplies and adds such pairs: `vpdpwssd` (AVX512_VNNI), `pmaddwd` (SSE2, AVX2, AVX512BW) for i16 into i32,
`vdpbf16ps` (AVX512_BF16) for bf16 into f32. Other targets widen, multiply and add. `rhs` is a shape cast of the joined columns as they
lie in memory, `<2 n x i16>`; a row of `lhs` is one pair, which is broadcast.
"""

from __future__ import annotations

from typing import Any

from xdsl.ir import SSAValue

from gradir.dialects.target import CpuTargetAttr
from gradir.dialects.upstream import vector
from gradir.ir.passes import error_at
from gradir.targets.llvm.arithmetic import multiply_add
from gradir.targets.llvm.emitter import FunctionEmitter, Handler
from gradir.targets.llvm.halves import to_float
from gradir.targets.llvm.types import ValueType, vector_of

JOINED = 2


def contract(e: FunctionEmitter, op: Any) -> None:
    """The accumulator's rows, each with the products of one broadcast pair added."""
    flat = _flat(op)
    t, left = e.type_of(op.results[0]), e.type_of(op.lhs)
    if flat is None or left.lanes != JOINED or [m.data for m in op.indexing_maps.data] != _maps(op):
        raise error_at(
            op,
            "a contraction of this form",
            part="operator",
            code="OP040",
            expected="acc[i, j] + sum over two neighbours c of lhs[i, c] * rhs[j, c], rhs a shape cast of one row",
            found=str([str(m.data) for m in op.indexing_maps.data]),
        )
    joined, s = e.text(flat), e.type_of(flat)
    word = vector_of("i32", t.lanes)
    rows: list[str] = []
    for pair, acc in zip(e.rows(op.lhs), e.rows(op.acc)):
        scalar = e.pure(f"bitcast {left.text} {pair} to i32")
        same = e.pure(f"bitcast {word.text} {e.splat(scalar, word)} to {s.text}")
        rows.append(_joined(e, t, s, acc, same, joined))
    e.set_rows(op.results[0], rows)


def _flat(op: Any) -> SSAValue | None:
    owner = op.rhs.owner
    return owner.operands[0] if isinstance(owner, vector.ShapeCastOp) else None


def _maps(op: Any) -> list[Any]:
    wanted: Any = vector.contract_properties(len(op.iterator_types) - 2)["indexing_maps"]
    return [m.data for m in wanted.data]


def _joined(e: FunctionEmitter, t: ValueType, s: ValueType, acc: str, a: str, b: str) -> str:
    """`acc[j] + a[2j] * b[2j] + a[2j + 1] * b[2j + 1]`."""
    found = _instruction(e, t.lanes, s)
    if found is None:
        return _widened(e, t, s, acc, a, b)
    name, lanes, accumulates = found
    piece, narrow = vector_of(t.element, lanes), f"<{2 * lanes} x {'bfloat' if s.half else 'i16'}>"
    out: list[str] = []
    for k in range(0, t.lanes, lanes):
        whole = t.lanes == lanes
        total = acc if whole else e.shuffle(acc, "poison", t, range(k, k + lanes))
        x, y = (v if whole else e.shuffle(v, "poison", s, range(2 * k, 2 * (k + lanes))) for v in (a, b))
        integers = f"<{2 * lanes} x i16>"
        if s.half:
            x, y = (e.pure(f"bitcast {integers} {v} to {narrow}") for v in (x, y))
        if accumulates:
            out.append(e.call(piece.text, name, [(piece.text, total), (narrow, x), (narrow, y)]))
        else:
            products = e.call(piece.text, name, [(integers, x), (integers, y)])
            out.append(e.pure(f"add {piece.text} {total}, {products}"))
    lanes_so_far = lanes
    while len(out) > 1:
        half = vector_of(t.element, lanes_so_far)
        out = [e.shuffle(x, y, half, range(2 * lanes_so_far)) for x, y in zip(out[::2], out[1::2])]
        lanes_so_far *= 2
    return out[0]


def _instruction(e: FunctionEmitter, lanes: int, s: ValueType) -> tuple[str, int, bool] | None:
    """Intrinsic, 32-bit lanes of it, and whether it adds to an accumulator; None where the target has none for so many lanes."""
    target = e.module.target
    if not isinstance(target, CpuTargetAttr) or target.triple.startswith(("aarch64", "arm64")):
        return None
    wide = next((w for w in (16, 8, 4) if lanes % w == 0 and w <= target.vector), None)
    if wide is None:
        return None
    bits = {16: "512", 8: "256", 4: "128"}[wide]
    small = wide == 16 or target.has("avx512vl")
    if s.half:
        usable = s.half == "bfloat" and target.has("avx512bf16") and small
        return (f"llvm.x86.avx512bf16.dpbf16ps.{bits}", wide, True) if usable else None
    if target.has("avx512vnni") and small:
        return f"llvm.x86.avx512.vpdpwssd.{bits}", wide, True
    if wide == 16:
        return ("llvm.x86.avx512.pmaddw.d.512", 16, False) if target.has("avx512bw") else ("llvm.x86.avx2.pmadd.wd", 8, False)
    if wide == 8:
        return ("llvm.x86.avx2.pmadd.wd", 8, False) if target.has("avx2") else ("llvm.x86.sse2.pmadd.wd", 4, False)
    return "llvm.x86.sse2.pmadd.wd", 4, False


def _widened(e: FunctionEmitter, t: ValueType, s: ValueType, acc: str, a: str, b: str) -> str:
    """The same with plain instructions."""
    half = vector_of("i16", t.lanes)
    for first in range(JOINED):
        x, y = (e.shuffle(v, "poison", s, range(first, 2 * t.lanes, 2)) for v in (a, b))
        if s.half:
            narrow = ValueType(half.text, half.element, half.memory, half.memory_element, half.lanes, half.shape, half.suffix, s.half, 2)
            acc = multiply_add(e, t, to_float(e, x, narrow), to_float(e, y, narrow), acc)
        else:
            x, y = (e.pure(f"sext {half.text} {v} to {t.text}") for v in (x, y))
            acc = e.pure(f"add {t.text} {acc}, {e.pure(f'mul {t.text} {x}, {y}')}")
    return acc


HANDLERS: dict[str, Handler] = {"vector.contract": contract}
