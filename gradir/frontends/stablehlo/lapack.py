"""The LAPACK functions that JAX calls on the CPU.

JAX (0.4.36 and later) prints LAPACK as `@lapack_<letter><name>_ffi` with the options in `mhlo.backend_config`, characters as numbers. Each
becomes the op of level 1 that computes the same; its `info` is 0 where a result is not NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import i32
from xdsl.ir import Operation, SSAValue

from gradir.dialects import nd
from gradir.dialects.types import element_of, is_complex, shape_of, tensor
from gradir.frontends.stablehlo.conversion import Conversion, Values, like, reshape


def _letter(settings: dict[str, Any], key: str) -> str:
    """A character that JAX prints as its number."""
    value = settings.get(key)
    return chr(value) if isinstance(value, int) else ""


def _info(conversion: Conversion, value: SSAValue, batch: Sequence[Any]) -> SSAValue:
    """1 where a number is NaN, else 0: `value` has one for each matrix."""
    one = reshape(conversion, value, cast("Sequence[int]", batch))
    bad = conversion.emit(nd.CompareOp.make("ne", one, one))
    return conversion.emit(nd.ConvertOp.make(bad, i32))


def potrf(conversion: Conversion, op: Operation, settings: dict[str, Any]) -> Values:
    """(factor, info)"""
    (a,) = conversion.operands(op)
    lower = _letter(settings, "uplo") == "L"
    factor = conversion.emit(nd.CholeskyOp.make(a, lower))
    *batch, n, _ = cast("tuple[int, ...]", shape_of(a))
    return [factor, _failed(conversion, factor, batch, (n, n))]


def _failed(conversion: Conversion, x: SSAValue, batch: Sequence[int], sizes: Sequence[int]) -> SSAValue:
    """`info` by the last element of each matrix (or row) of `x`; 0 of empty ones."""
    if 0 in sizes:
        return conversion.constant(0, tensor(i32, tuple(batch)))
    start = [*(0 for _ in batch), *(n - 1 for n in sizes)]
    corner = conversion.emit(nd.SliceOp.make(x, start, [*batch, *sizes]))
    if is_complex(element_of(corner)):
        corner = conversion.emit(nd.RealOp.make(corner))
    return _info(conversion, corner, batch)


def trsm(conversion: Conversion, op: Operation, settings: dict[str, Any]) -> Values:
    """The solution."""
    a, b = conversion.operands(op)
    flags: dict[str, Any] = {
        "left": _letter(settings, "side") == "L",
        "lower": _letter(settings, "uplo") == "L",
        "unit_diagonal": _letter(settings, "diag") == "U",
        "transposition": _letter(settings, "trans_x"),
    }
    return [conversion.emit(nd.TriangularSolveOp.make(a, b, **flags))]


def getrf(conversion: Conversion, op: Operation, _settings: dict[str, Any]) -> Values:
    """(factors, pivots counted from 1, info): info is the number, from 1, of the first zero on the diagonal, else 0"""
    (a,) = conversion.operands(op)
    factors, pivots, _ = _several(conversion, nd.LuOp.make(a))
    counted = conversion.emit(nd.AddOp.make(pivots, like(conversion, 1, pivots)))
    return [factors, counted, _first_zero(conversion, factors)]


def _first_zero(conversion: Conversion, factors: SSAValue) -> SSAValue:
    *batch, rows, columns = cast("tuple[int, ...]", shape_of(factors))
    k = min(rows, columns)
    if k == 0:
        return conversion.constant(0, tensor(i32, tuple(batch)))
    square = conversion.emit(nd.SliceOp.make(factors, [0] * len(shape_of(factors)), [*batch, k, k]))
    kind, rank = tensor(i32, (*batch, k, k)), len(batch) + 2
    row, column = (conversion.emit(nd.IotaOp.make(kind, d)) for d in (rank - 2, rank - 1))
    zero = conversion.emit(nd.CompareOp.make("eq", square, like(conversion, 0, square)))
    diagonal = conversion.emit(nd.CompareOp.make("eq", row, column))
    hit = conversion.emit(nd.AndOp.make(zero, diagonal))
    beyond = like(conversion, k + 1, row)
    place = conversion.emit(nd.SelectOp.make(hit, conversion.emit(nd.AddOp.make(row, like(conversion, 1, row))), beyond))
    first = conversion.emit(nd.ReduceMinOp.make(place, (rank - 2, rank - 1)))
    none = conversion.emit(nd.CompareOp.make("eq", first, like(conversion, k + 1, first)))
    return conversion.emit(nd.SelectOp.make(none, like(conversion, 0, first), first))


def _several(conversion: Conversion, op: Any) -> Sequence[SSAValue]:
    """Append an op of several results."""
    conversion.emit(op)
    return op.results


def geqrf(conversion: Conversion, op: Operation, _settings: dict[str, Any]) -> Values:
    """(reflections below the diagonal of r, their factors)"""
    return _library(conversion, "lapack.geqrf", op)


def orgqr(conversion: Conversion, op: Operation, _settings: dict[str, Any]) -> Values:
    """The product of reflections."""
    return _library(conversion, "lapack.orgqr", op)


def _library(conversion: Conversion, name: str, op: Operation) -> Values:
    made = nd.CustomCallOp.make(name, conversion.operands(op), [r.type for r in op.results])
    made.location = op.location
    conversion.builder.block.add_op(made)
    return made.results


def syevd(conversion: Conversion, op: Operation, settings: dict[str, Any]) -> Values:
    """(vectors, values, info)"""
    (a,) = conversion.operands(op)
    values, vectors = _several(conversion, nd.EighOp.make(a, _letter(settings, "uplo") == "L"))
    *batch, n, _ = cast("tuple[int, ...]", shape_of(a))
    return [vectors, values, _failed(conversion, values, batch, (n,))]


def gesdd(conversion: Conversion, op: Operation, _settings: dict[str, Any]) -> Values:
    """(operand, s, u, vh, info); with mode N nobody reads u and vh."""
    (a,) = conversion.operands(op)
    full = shape_of(op.results[2])[-1] == shape_of(a)[-2] and shape_of(op.results[3])[-2] == shape_of(a)[-1]
    u, s, vh = _several(conversion, nd.SvdOp.make(a, full))
    *batch, k = cast("tuple[int, ...]", shape_of(s))
    return [a, s, u, vh, _failed(conversion, s, batch, (k,))]


RULES: dict[str, Callable[[Conversion, Operation, dict[str, Any]], Values]] = {
    "potrf": potrf,
    "trsm": trsm,
    "getrf": getrf,
    "geqrf": geqrf,
    "orgqr": orgqr,
    "ungqr": orgqr,
    "syevd": syevd,
    "heevd": syevd,
    "gesdd": gesdd,
}
"""LAPACK's name without its letter -> what it becomes."""
