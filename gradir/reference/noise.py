"""How large may a rounding error be? The program runs again with every rounded result moved by about its error bound.

This is Monte Carlo arithmetic (D. S. Parker, 1997): the spread of a few such runs gives each element of each result the scale of the errors
that any correct way of computing it may show, through branches, loops and cancellation alike. An integer that changes between runs depends
on a comparison, a floor or an argmax closer than its operands' error. Bounds: docs/numerics.md, "Reductions and composites", "accuracy".

Results that are exact, whoever computes them, stay untouched: moved data, comparisons, sums of small integers, `x - x`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.ir import Operation

from gradir.reference.machine import Value, implementation_of
from gradir.reference.magnitudes import COMPOSITES
from gradir.reference.scalars import rounded
from gradir.reference.values import Partial

Array = np.ndarray[Any, Any]

_ONE = "add sub mul div mul_strong sqrt"
_FEW = "exp expm1 log log1p rsqrt tanh logistic erf sin cos pow atan2 cbrt tan asin acos atan sinh cosh asinh acosh atanh erfc erf_inv"
_SPECIAL = "lgamma digamma trigamma bessel_i0e bessel_i1e zeta polygamma"
_UPSTREAM_FEW = (
    "acos acosh asin asinh atan atan2 atanh cbrt cos cosh erf erfc exp exp2 expm1 fpowi log log10 log1p log2 powf rsqrt sin sinh tan tanh"
)

ULPS: dict[str, float] = {
    **{f"nd.{name}": 1.0 for name in _ONE.split()},
    **{f"nd.{name}": 4.0 for name in f"{_FEW} {_SPECIAL}".split()},
    "nd.convert": 1.0,
    **dict.fromkeys(("arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.truncf", "arith.sitofp", "arith.uitofp"), 1.0),
    "math.sqrt": 1.0,
    "math.fma": 1.0,
    "nd.fma": 1.0,
    "nd.dequantize": 3.0,
    **{f"math.{name}": 4.0 for name in _UPSTREAM_FEW.split()},
    "vector.fma": 1.0,
    "vector.outerproduct": 1.0,
}
"""Elementwise ops: error in units in the last place of the result."""

COMPLEX_ULPS: dict[str, float] = {
    **{f"nd.{name}": 4.0 for name in (*_FEW.split(), "sqrt", "sign")},
    "nd.add": 1.0,
    "nd.sub": 1.0,
    "nd.convert": 1.0,
    "nd.abs": 4.0,
    "nd.mul": 3.0,
    "nd.mul_strong": 3.0,
    "nd.div": 4.0,
}
"""Elementwise ops on complex numbers: error of each part in units in the last place of the absolute value."""

_CANCELLING = ("nd.lgamma", "nd.digamma", "nd.zeta", "nd.polygamma")

COMPOSITE_ULPS = 16.0
"""Composites: error in units of the magnitudes of `magnitudes`."""

BACKWARD_STABLE = frozenset(
    f"nd.{name}" for name in ("cholesky", "triangular_solve", "lu", "qr", "eigh", "svd", "fft", "ifft", "rfft", "irfft", "custom_call")
)
"""Algorithms whose result is exact for operands close by: their error is that of operands moved by rounding (J. Wilkinson)."""

_SUMS = {
    *("nd.reduce_sum", "nd.dot_general", "nd.conv_general", "nd.reduce_window", "nd.select_and_scatter", "nd.scatter_add"),
    "nd.scatter_general",
    *("vector.reduction", "vector.multi_reduction", "vector.contract"),
}


def unit(dtype: np.dtype[Any]) -> float:
    """Relative distance between neighbouring numbers of a float dtype."""
    return 2.0 ** -ml_dtypes.finfo(dtype).nmant


def is_float(array: Array) -> bool:
    """Whether the elements are floats (ml_dtypes' included)."""
    return array.dtype.kind not in "iub" and array.dtype != np.bool_


def spacing(array: Array) -> Array:
    """One unit in the last place of each element, in f64; not less than the dtype's smallest number.

    Of complex elements: of both parts, along a last axis, the unit of the absolute value.
    """
    if array.dtype.kind == "c":
        with np.errstate(all="ignore"):
            size = np.abs(array)
        parts = np.stack([array.real, array.imag], axis=-1)
        return spacing(np.where(np.isfinite(size)[..., None], size[..., None], parts).astype(array.real.dtype))
    tiny = float(ml_dtypes.finfo(array.dtype).smallest_subnormal)
    return np.maximum(np.abs(array.astype(np.float64)) * unit(array.dtype), tiny)


class Noise:
    """A `Watcher` that moves every rounded result by 0.5 to 1 times its error bound, up or down at random."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def __call__(self, op: Operation, operands: Sequence[Value], results: Sequence[Value]) -> Sequence[Value]:
        if op.name in BACKWARD_STABLE:
            return self.of_moved_operands(op, operands, results)
        if len(results) > 1 and op.name in COMPOSITES:
            return tuple(self.of_result(op, k, operands, result) for k, result in enumerate(results))
        if len(results) != 1 or isinstance(results[0], Partial) or not isinstance(results[0], np.ndarray | np.generic):
            return results
        return (self.of_result(op, 0, operands, results[0]),)

    def of_result(self, op: Operation, number: int, operands: Sequence[Value], value: Value) -> Value:
        """One result moved within its bound."""
        result = np.asarray(value)
        if not is_float(result):
            return value
        bound = self.bound(op, operands, result, number)
        if bound is None:
            return value
        if result.dtype.kind == "c":
            return self.moved_complex(result, bound)
        sign = self.rng.choice([-1.0, 1.0], result.shape) * self.rng.uniform(0.5, 1.0, result.shape)
        exact = result.astype(np.float64)
        moved = np.where(np.isfinite(exact), exact + sign * bound, exact)
        return np.asarray(rounded(moved, result.dtype)).reshape(result.shape)[()]

    def of_moved_operands(self, op: Any, operands: Sequence[Value], results: Sequence[Value]) -> Sequence[Value]:
        """What the op gives on operands that are moved by a few units of their largest element; where that changes a choice (a pivot),
        the results as they are."""
        if any(isinstance(value, Partial) for value in operands):
            return results
        given = op.evaluate(*(self.moved_operand(np.asarray(value)) for value in operands))
        found = given if isinstance(given, tuple) else (given,)
        chosen = [(np.asarray(new), np.asarray(old)) for new, old in zip(found, results) if not is_float(np.asarray(old))]
        return found if all(np.array_equal(new, old) for new, old in chosen) else results

    def moved_operand(self, x: Array) -> Array:
        """Every element but zeros moved within a small share of the largest of its matrix."""
        if not is_float(x) or not x.size:
            return x
        axes = tuple(range(max(0, x.ndim - 2), x.ndim))
        size = np.where(np.isfinite(x), np.abs(x), 0.0)
        reach = max(x.shape[-2:], default=1) ** 0.5 + 2
        parts = np.real(np.empty(0, x.dtype)).dtype
        scale = size.max(axis=axes, keepdims=True) * unit(parts) * reach
        move = self.rng.uniform(-1.0, 1.0, x.shape) * scale
        if x.dtype.kind == "c":
            move = move + 1j * self.rng.uniform(-1.0, 1.0, x.shape) * scale
        with np.errstate(all="ignore"):
            return np.where(np.isfinite(x) & (x != 0), x + move, x).astype(x.dtype)

    def moved_complex(self, result: Array, bound: Array) -> Value:
        """Both parts moved, each by its own share of its bound."""
        moved = result.copy()
        for k, part in enumerate((moved.real, moved.imag)):
            share = self.rng.choice([-1.0, 1.0], result.shape) * self.rng.uniform(0.5, 1.0, result.shape)
            part[...] = np.where(np.isfinite(part), part + share * bound[..., k], part)
        return moved[()]

    def bound(self, op: Operation, operands: Sequence[Value], result: Array, number: int = 0) -> Array | None:
        """Absolute error bound per element (and part) of result `number`, None where the op does not round."""
        arrays = [np.asarray(value) for value in operands if isinstance(value, np.ndarray | np.generic)]
        if len(arrays) != len(operands):
            return None
        if any(array.dtype.kind == "c" for array in (result, *arrays)):
            return complex_bound(op, arrays, result)
        if (magnitude := COMPOSITES.get(op.name)) is not None:
            size = magnitude(op, number, result.astype(np.float64), [_wide(a) for a in arrays])
            return np.broadcast_to(COMPOSITE_ULPS * unit(result.dtype) * np.asarray(size), result.shape)
        if op.name in _SUMS:
            return _sum_bound(op, arrays, result)
        if op.name in ("arith.addf", "arith.mulf") and arrays[1].size > result.size:
            return _fold_bound(op.name, arrays, result)
        if op.name == "nd.reduce_prod":
            return spacing(result) * max(1, arrays[0].size // max(1, result.size))
        ulps = ULPS.get(op.name)
        if ulps is None or _is_exact(op.name, arrays, result):
            return None
        bound = ulps * spacing(result)
        if op.name in ("vector.fma", "vector.outerproduct", "math.fma", "nd.fma"):
            a, b = (_wide(array) for array in arrays[:2])
            product = a[:, None] * b if op.name == "vector.outerproduct" and b.ndim else a * b
            bound = bound + np.abs(product) * unit(result.dtype)
        if op.name in _CANCELLING and result.dtype == np.float64:
            bound = bound + ulps * unit(result.dtype) * _cancelling(op.name, arrays)
        return np.where(result == 0, 0.0, bound)


_FOLDS = ("nd.reduce", "nd.reduce_window_general", "nd.select_and_scatter_general")
"""Folds by a region, whose ops on complex numbers are rounded part by part below."""


def complex_bound(op: Operation, arrays: Sequence[Array], result: Array) -> Array | None:
    """Error bounds of both parts, in units of the absolute value: a part alone may cancel."""
    if op.name in _SUMS:
        magnitudes = [np.abs(array).astype(array.dtype) if array.dtype.kind == "c" else array for array in arrays]
        evaluate = getattr(op, "evaluate")  # noqa: B009  ops of level 1 alone have complex elements
        total = np.real(np.asarray(evaluate(*magnitudes))).astype(np.float64)
        bound = 2 * max(1, _terms(op, arrays, result)) * unit(result.real.dtype) * total
        return np.stack([bound, bound], axis=-1) + spacing(result)
    if op.name in ("nd.reduce_prod", "nd.cumprod", "nd.scatter_general") or op.name in _FOLDS:
        return 4 * spacing(result) * max(1, max(array.size for array in arrays))
    if op.name == "nd.cumsum":
        total = np.cumsum(np.abs(arrays[0]).astype(np.float64)).max(initial=0.0)
        return np.full((*result.shape, 2), 2 * total * unit(result.real.dtype))
    if op.name == "nd.pow":
        with np.errstate(all="ignore"):
            exponent = np.nan_to_num(np.abs(arrays[1] * np.log(arrays[0])), posinf=0.0)
        return spacing(result) * (16 + 4 * exponent[..., None])
    ulps = COMPLEX_ULPS.get(op.name)
    return None if ulps is None else ulps * spacing(result)


def _cancelling(name: str, arrays: Sequence[Array]) -> Array:
    """Of f64 functions with zeros at negative x: the terms whose difference is small there."""
    x = _wide(arrays[-1])
    with np.errstate(all="ignore"):
        a, fraction = np.abs(x), x - np.floor(x)
        if name in ("nd.lgamma", "nd.digamma"):
            terms = 2 + np.log1p(a) * (a if name == "nd.lgamma" else 1.0)
        else:
            s = _wide(arrays[0]) + (name == "nd.polygamma")
            terms = (np.exp(np.log(s) * s) if name == "nd.polygamma" else 1.0) * (fraction**-s + (1 - fraction) ** -s)
        return np.where((x < 0) & np.isfinite(terms), terms, 0.0)


def _wide(array: Array) -> Array:
    return array.astype(np.float64)


def _integral(arrays: Sequence[Array], total: Array) -> bool:
    """Sums of integers below 2**11 (f16, bf16 accumulate in f32: 2**24) are exact in any order."""
    return bool(np.all(total < 2.0**24)) and all(bool(np.all(array == np.rint(array))) for array in map(_wide, arrays))


def _sum_bound(op: Operation, arrays: Sequence[Array], result: Array) -> Array | None:
    """`K u sum |a b|`: the op itself on the operands' magnitudes gives the sum."""
    if op.name == "nd.reduce_window" and "prod" in str(op.properties.get("kind")):
        return spacing(result) * _terms(op, arrays, result)
    if op.name == "nd.reduce_window" and "sum" not in str(op.properties.get("kind")):
        return None
    if (op.name.startswith("vector.") or op.name == "nd.scatter_general") and "add" not in str(op.properties.get("kind")):
        return None
    magnitudes = [np.abs(array) if is_float(array) else array for array in arrays]
    evaluate = getattr(op, "evaluate", None)
    total = _wide(np.asarray(evaluate(*magnitudes) if evaluate is not None else _upstream(op, magnitudes)))
    terms = max(1, _terms(op, arrays, result))
    if _integral(arrays, total):
        return None
    final = spacing(result) if result.dtype.itemsize < 4 else 0.0
    single = unit(np.dtype(np.float32)) if result.dtype.itemsize <= 4 else unit(result.dtype)
    return terms * single / 2 * total + spacing(result) * (total != 0) + final


def _upstream(op: Operation, magnitudes: Sequence[Array]) -> Value:
    implementation = implementation_of(op.name)
    assert implementation is not None
    return implementation(None, op, *magnitudes)


def _terms(op: Operation, arrays: Sequence[Array], result: Array) -> int:
    """How many terms one element of the result adds up, at most."""
    if op.name == "nd.dot_general":
        dims = op.properties["lhs_contract"].get_values()  # pyright: ignore[reportAttributeAccessIssue] (an i64 array)
        return int(np.prod([arrays[0].shape[dim] for dim in dims], dtype=np.int64))
    if op.name == "nd.conv_general":
        return arrays[1].size // max(1, arrays[1].shape[-1])
    if op.name in ("nd.scatter_add", "nd.scatter_general"):
        return arrays[1].size
    if op.name in ("nd.reduce_window", "nd.select_and_scatter"):
        window = op.properties["window"].get_values()  # pyright: ignore[reportAttributeAccessIssue] (an i64 array)
        return int(np.prod(window, dtype=np.int64))
    return max(array.size for array in arrays) // max(1, result.size)


def _fold_bound(name: str, arrays: Sequence[Array], result: Array) -> Array | None:
    """A whole reduction of `linalg.generic`: `arrays` are the initial value and all terms."""
    init, terms = (_wide(array) for array in arrays)
    axes = tuple(axis for axis in range(terms.ndim) if terms.shape[axis] != result.shape[axis])
    count = terms.size // max(1, result.size)
    if name == "arith.mulf":
        return count * spacing(result)
    total = np.abs(init) + np.abs(terms).sum(axis=axes, keepdims=True)
    return None if _integral([init, terms], total) else count * unit(result.dtype) / 2 * total + spacing(result)


def _is_exact(name: str, arrays: Sequence[Array], result: Array) -> bool:
    """Whether no rounding happened in any element, so that every lowering gives these bits."""
    kind = name.partition(".")[2]
    wide = _wide(result)
    if kind in ("convert", "truncf", "sitofp", "uitofp"):
        return bool(np.all(wide == _wide(arrays[0])))
    if result.dtype == np.float64 or len(arrays) != 2:
        return False
    x, y = (_wide(array) for array in arrays)
    exact = {"add": x + y, "addf": x + y, "sub": x - y, "subf": x - y, "mul": x * y, "mulf": x * y, "mul_strong": x * y}.get(kind)
    return exact is not None and bool(np.all((exact == wide) | np.isnan(wide)))
