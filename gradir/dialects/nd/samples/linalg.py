"""Samples of linear algebra: batches, empty ones, matrices without a factor, one and no row, NaN and infinities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradir.dialects.nd.base import NdOp, Sample
from gradir.dialects.nd.samples.case import INF, NAN, Array, type_text, wave
from gradir.dialects.types import element_type, tensor


def spd(*shape: int, dtype: type = np.float64) -> Array:
    """Symmetric positive definite matrices with distinct eigenvalues, well apart."""
    a = wave(*shape) + 0.3 * wave(*shape, shift=0.5)
    n = shape[-1]
    return (a @ np.swapaxes(a, -1, -2) + np.diag(np.arange(1.0, n + 1))).astype(dtype)


def triangular(*shape: int, dtype: type = np.float64) -> Array:
    """Matrices with a dominant diagonal; both triangles are filled, so that reading the wrong one shows."""
    return (wave(*shape) + 2.5 * np.eye(shape[-1])).astype(dtype)


def call(name: str, line: str, inputs: Sequence[Array], results: Sequence[str], wrt: Sequence[int] = ()) -> Sample:
    """A function that returns all results of the op."""
    types = [type_text(x) for x in inputs]
    arguments = ", ".join(f"%{k}: {text}" for k, text in enumerate(types))
    count = len(results)
    bound, returned = ("%r", "%r") if count == 1 else (f"%r:{count}", ", ".join(f"%r#{k}" for k in range(count)))
    kinds = ", ".join(results)
    signature = kinds if count == 1 else f"({kinds})"
    body = f"  {bound} = {line} : {', '.join(types)} -> {kinds}\n  return {returned} : {kinds}\n"
    text = f"func.func @f({arguments}) -> {signature} {{\n{body}}}\n"
    return Sample(name, text, lambda: tuple(x.copy() for x in inputs), tuple(wrt))


def of(shape: Sequence[int], dtype: Any) -> str:
    """A tensor type."""
    return str(tensor(element_type(np.dtype(dtype)), tuple(shape)))


def _cholesky() -> tuple[Sample, ...]:
    def one(name: str, flags: str, a: Array, wrt: Sequence[int] = ()) -> Sample:
        return call(name, f"nd.cholesky %0{flags}", [a], [type_text(a)], wrt)

    not_definite = np.array([[[4.0, 9], [2, 5]], [[1, 0], [2, 1]]], np.float32)
    return (
        one("f64", " lower", spd(3, 3), (0,)),
        one("f64 upper batch", "", spd(2, 3, 3), (0,)),
        one("f32 not definite", " lower", not_definite),
        one("f32 not definite upper", "", np.array([[1.0, 2], [7, 1]], np.float32)),
        one("f32 special", " lower", np.array([[[NAN, 0], [0, 1]], [[INF, 0], [0, 1]], [[0, 0], [0, 1]]], np.float32)),
        one("f32 one", " lower", np.array([[9.0]], np.float32)),
        one("f32 no rows", " lower", np.zeros((2, 0, 0), np.float32)),
        one("f32 no batch", "", np.zeros((0, 2, 2), np.float32)),
        one("f32 larger", " lower", spd(40, 40, dtype=np.float32)),
        one("complex64", " lower", np.array([[4, 9j], [1 + 2j, 6]], np.complex64)),
        one("complex128 upper", "", np.array([[4, 1 - 2j], [9j, 6]], np.complex128)),
    )


def _triangular_solve() -> tuple[Sample, ...]:
    def one(name: str, flags: str, a: Array, b: Array, wrt: Sequence[int] = ()) -> Sample:
        return call(name, f"nd.triangular_solve %0, %1{flags}", [a, b], [type_text(b)], wrt)

    a, b = triangular(3, 3), wave(3, 2)
    z = (triangular(2, 2) + 1j * wave(2, 2)).astype(np.complex64)
    return (
        one("f64", " left lower", a, b, (0, 1)),
        one("f64 upper", " left", a, b, (0, 1)),
        one("f64 lower transpose", " left lower transpose", a, b, (0, 1)),
        one("f64 upper adjoint unit", " left unit_diagonal adjoint", a, b, (0, 1)),
        one("f64 right lower", " lower", a, wave(2, 3), (0, 1)),
        one("f64 right upper transpose unit", " unit_diagonal transpose", a, wave(2, 3), (0, 1)),
        one("f64 right lower adjoint batch", " lower adjoint", triangular(2, 3, 3), wave(2, 1, 3), (0, 1)),
        one("f32 special", " left lower", np.array([[0, 9], [1, 2]], np.float32), np.array([[1, 0, NAN], [1, INF, 2]], np.float32)),
        one("f32 no rows", " left lower", np.zeros((0, 0), np.float32), np.zeros((0, 2), np.float32)),
        one("f32 no columns", " left", np.ones((2, 2), np.float32), np.zeros((2, 0), np.float32)),
        one("f32 one", " left", np.array([[4.0]], np.float32), np.array([[2.0]], np.float32)),
        one(
            "f32 larger",
            " left lower",
            triangular(40, 40, dtype=np.float32) + 8 * np.eye(40, dtype=np.float32),
            wave(40, 3, dtype=np.float32),
        ),
        one("complex64", " left lower adjoint", z, np.array([[1, 2j], [1 - 1j, 3]], np.complex64)),
        one("complex64 right", " transpose", z, np.array([[1, 2j]], np.complex64)),
    )


def _lu() -> tuple[Sample, ...]:
    def one(name: str, a: Array, wrt: Sequence[int] = ()) -> Sample:
        *batch, m, n = a.shape
        results = [type_text(a), of((*batch, min(m, n)), np.int32), of((*batch, m), np.int32)]
        return call(name, "nd.lu %0", [a], results, wrt)

    return (
        one("f64", np.array([[1.0, 2, 3], [4, 5, 6], [7, 8, 10]]), (0,)),
        one("f64 tall batch", wave(2, 4, 3) ** 3, (0,)),
        one("f64 wide", wave(2, 4), (0,)),
        one("f32 singular", np.array([[0, 1, 2], [0, 3, 4], [0, 5, 6]], np.float32)),
        one("f32 special", np.array([[[1, NAN], [2, 3]], [[NAN, 1], [NAN, 2]], [[1, 2], [INF, 3]]], np.float32)),
        one("f32 ties", np.array([[1, 2], [-1, 3]], np.float32)),
        one("f32 one", np.array([[-3]], np.float32)),
        one("f32 no rows", np.zeros((0, 0), np.float32)),
        one("f32 larger", triangular(40, 40, dtype=np.float32)),
        one("complex64", np.array([[1, 2j], [3 + 1j, 4]], np.complex64)),
    )


def _qr() -> tuple[Sample, ...]:
    def one(name: str, a: Array, full: bool = False, wrt: Sequence[int] = ()) -> Sample:
        *batch, m, n = a.shape
        k = m if full else min(m, n)
        results = [of((*batch, m, k), a.dtype), of((*batch, k, n), a.dtype)]
        return call(name, f"nd.qr %0{' full' if full else ''}", [a], results, wrt)

    return (
        one("f64", triangular(3, 3), wrt=(0,)),
        one("f64 tall batch", wave(2, 4, 2), wrt=(0,)),
        one("f64 wide", wave(2, 4), wrt=(0,)),
        one("f32 full", wave(4, 2, dtype=np.float32), True),
        one("f32 special", np.array([[1, NAN], [2, 3]], np.float32)),
        one("f32 one", np.array([[-3]], np.float32)),
        one("f32 no rows", np.zeros((2, 0, 3), np.float32)),
        one("complex64", np.array([[1, 2j], [3 + 1j, 4]], np.complex64)),
    )


def _eigh() -> tuple[Sample, ...]:
    def one(name: str, flags: str, a: Array, wrt: Sequence[int] = ()) -> Sample:
        real = a.real.dtype if a.dtype.kind == "c" else a.dtype
        return call(name, f"nd.eigh %0{flags}", [a], [of(a.shape[:-1], real), type_text(a)], wrt)

    return (
        one("f64", " lower", spd(3, 3), (0,)),
        one("f64 upper batch", "", spd(2, 2, 2), (0,)),
        one("f32 half", " lower", np.array([[2, 99], [1, 3]], np.float32)),
        one("f32 special", "", np.array([[1, NAN], [2, 3]], np.float32)),
        one("f32 one", " lower", np.array([[-3]], np.float32)),
        one("f32 no rows", " lower", np.zeros((2, 0, 0), np.float32)),
        one("complex64", " lower", np.array([[2, 9], [1 + 1j, 5]], np.complex64)),
    )


def _svd() -> tuple[Sample, ...]:
    def one(name: str, a: Array, full: bool = False, wrt: Sequence[int] = ()) -> Sample:
        *batch, m, n = a.shape
        k = min(m, n)
        real = a.real.dtype if a.dtype.kind == "c" else a.dtype
        shapes = ((*batch, m, m if full else k), (*batch, k), (*batch, n if full else k, n))
        results = [of(shapes[0], a.dtype), of(shapes[1], real), of(shapes[2], a.dtype)]
        return call(name, f"nd.svd %0{' full' if full else ''}", [a], results, wrt)

    return (
        one("f64", triangular(3, 3), wrt=(0,)),
        one("f64 tall batch", wave(2, 3, 2), wrt=(0,)),
        one("f64 wide", wave(2, 3), wrt=(0,)),
        one("f32 full", np.array([[1, 2], [3, 4], [5, 7]], np.float32), True),
        one("f32 special", np.array([[1, INF], [2, 3]], np.float32)),
        one("f32 one", np.array([[-3]], np.float32)),
        one("f32 no rows", np.zeros((2, 0, 3), np.float32)),
        one("complex64", np.array([[1, 2j], [3 + 1j, 4]], np.complex64)),
    )


SAMPLES = {
    "nd.cholesky": _cholesky,
    "nd.triangular_solve": _triangular_solve,
    "nd.lu": _lu,
    "nd.qr": _qr,
    "nd.eigh": _eigh,
    "nd.svd": _svd,
}


def samples_of(cls: type[NdOp]) -> tuple[Sample, ...]:
    """The samples of one op of this family."""
    return SAMPLES[cls.name]()
