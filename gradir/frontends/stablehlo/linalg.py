"""cholesky, triangular_solve, fft, and custom calls: the LAPACK functions that JAX calls on the CPU, and functions registered by name.

JAX (0.4.36 and later) prints LAPACK as `@lapack_<letter><name>_ffi` with the options in `mhlo.backend_config`, characters as numbers. Each
becomes the op of level 1 that computes the same; its `info` is 0 where a result is not NaN.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import DictionaryAttr, StringAttr, bf16, f16, f32, i32
from xdsl.ir import Operation, SSAValue

from gradir.dialects import custom_calls, nd
from gradir.dialects.types import element_of, is_complex, shape_of, tensor
from gradir.frontends.stablehlo.attributes import word_of
from gradir.frontends.stablehlo.conversion import Conversion, Rule, UnsupportedError, Values, like, reshape
from gradir.frontends.stablehlo.dialect import attribute, number, numbers
from gradir.frontends.stablehlo.dynamic import shape_assertion
from gradir.frontends.stablehlo.dynamic_windows import dynamic_reduce_window

IGNORED_CALLS = ("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement", "LayoutConstraint")

_LAPACK = re.compile(r"lapack_([sdcz])(\w+?)_ffi")


def cholesky(conversion: Conversion, op: Operation) -> Values:
    """`L L* = operand`, or with lower = false `U* U = operand`."""
    (operand,) = conversion.operands(op)
    found = conversion.emit(nd.CholeskyOp.make(_widened(conversion, operand), bool(number(op, "lower"))))
    return [_narrowed(conversion, found, operand)]


def _widened(conversion: Conversion, x: SSAValue) -> SSAValue:
    """Halves in f32, in which they are computed."""
    return conversion.emit(nd.ConvertOp.make(x, f32)) if element_of(x) in (f16, bf16) else x


def _narrowed(conversion: Conversion, x: SSAValue, like: SSAValue) -> SSAValue:
    return x if element_of(x) == element_of(like) else conversion.emit(nd.ConvertOp.make(x, element_of(like)))


def triangular_solve(conversion: Conversion, op: Operation) -> Values:
    """`op(a) x = b`, or with left_side = false `x op(a) = b`."""
    a, b = conversion.operands(op)
    turned = _word(op, "transpose_a", "NO_TRANSPOSE")
    letters: dict[str, Any] = {"NO_TRANSPOSE": "N", "TRANSPOSE": "T", "ADJOINT": "C"}
    if turned not in letters:
        raise UnsupportedError(f"transpose_a = {turned}")
    flags = {name: bool(number(op, key)) for name, key in (("left", "left_side"), ("lower", "lower"), ("unit_diagonal", "unit_diagonal"))}
    wide = _widened(conversion, a), _widened(conversion, b)
    return [_narrowed(conversion, conversion.emit(nd.TriangularSolveOp.make(*wide, **flags, transposition=letters[turned])), b)]


def fft(conversion: Conversion, op: Operation) -> Values:
    """The four kinds of transforms, over the last dimensions."""
    (operand,) = conversion.operands(op)
    kind, length = _word(op, "fft_type", "FFT"), list(numbers(op, "fft_length") or ())
    dims = len(length)
    if kind == "IRFFT":
        return [conversion.emit(nd.IrfftOp.make(operand, dims, length[-1]))]
    classes: dict[str, type[nd.Fourier]] = {"FFT": nd.FftOp, "IFFT": nd.IfftOp, "RFFT": nd.RfftOp}
    if kind not in classes:
        raise UnsupportedError(f"fft_type = {kind}")
    return [conversion.emit(classes[kind].make(operand, dims))]


def _word(op: Operation, name: str, default: str) -> str:
    """The word of an enumeration, which the short form gives as a plain word."""
    found = attribute(op, name)
    return found.data if isinstance(found, StringAttr) else word_of(found, default)


# -- custom calls


def custom_call(conversion: Conversion, op: Operation) -> Values:
    """Placement on devices is the operand; LAPACK becomes ops; a registered name becomes `nd.custom_call`."""
    target = attribute(op, "call_target_name")
    name = target.data if isinstance(target, StringAttr) else ""
    if name == "shape_assertion":
        return shape_assertion(conversion, op)
    if name == "stablehlo.dynamic_reduce_window" and conversion.dynamic is not None:
        return dynamic_reduce_window(conversion, op)
    if name in IGNORED_CALLS:
        conversion.sharded.append(op)
        return conversion.operands(op)
    settings = _settings(op)
    if custom_calls.find(name) is not None:
        effects = bool(number(op, "has_side_effect"))
        made = nd.CustomCallOp.make(name, conversion.operands(op), [r.type for r in op.results], settings, effects=effects)
        made.location = op.location
        conversion.builder.block.add_op(made)
        return made.results
    match = _LAPACK.fullmatch(name)
    rule = LAPACK.get(match[2]) if match is not None else None
    if rule is None:
        raise UnsupportedError(f"custom call @{name}, which is not registered (gradir.register_custom_call)")
    return rule(conversion, op, settings)


def _settings(op: Operation) -> dict[str, Any]:
    """The options of the call as Python values."""
    for key in ("mhlo.backend_config", "backend_config"):
        found = attribute(op, key)
        if isinstance(found, DictionaryAttr):
            return custom_calls.config_value(found)
        if isinstance(found, StringAttr) and found.data:
            return {"backend_config": found.data}
    return {}


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


def gesdd(conversion: Conversion, op: Operation, settings: dict[str, Any]) -> Values:
    """(operand, s, u, vh, info); with mode N nobody reads u and vh."""
    (a,) = conversion.operands(op)
    full = shape_of(op.results[2])[-1] == shape_of(a)[-2] and shape_of(op.results[3])[-2] == shape_of(a)[-1]
    u, s, vh = _several(conversion, nd.SvdOp.make(a, full))
    *batch, k = cast("tuple[int, ...]", shape_of(s))
    return [a, s, u, vh, _failed(conversion, s, batch, (k,))]


LAPACK: dict[str, Callable[[Conversion, Operation, dict[str, Any]], Values]] = {
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

RULES: dict[str, Rule] = {
    "stablehlo.cholesky": cholesky,
    "stablehlo.triangular_solve": triangular_solve,
    "stablehlo.fft": fft,
    "stablehlo.custom_call": custom_call,
}
